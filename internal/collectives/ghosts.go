package collectives

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// haunt remembers a collective that leaves while ranks may still have records of it, or send those again that they had.
func (j *joiner) haunt(c *judged) {
	if c.track == nil || c.join != byNumber && !j.set.Remote {
		return
	}
	whole := len(c.missing) == 0 && c.comm.size > 0 && c.ranks >= j.ranksOf(c.comm.size) && !c.comm.sparse
	if !whole || j.set.Remote {
		left := ghost{sent: !c.undrawn, whole: whole, end: c.logged}
		if j.set.Remote && !whole {
			before, _ := j.ghosts.find(c.track.key, c.seq)
			left.ranks = before.ranks.with(c.has)
		}
		if c.byID {
			left.byID = &rootID{c.trace, c.id}
		}
		j.ghosts.put(c.track.key, c.seq, left)
	}
}

// ghosts remembers collectives that left without all their ranks, so that records that come later join their traces instead of making new ones.
// The oldest are forgotten.
type ghosts struct {
	set    map[ghostKey]ghost
	ring   []ghostKey
	next   int
	tracks trackKey // the last one
}

// ghost is what is remembered of a collective.
type ghost struct {
	sent  bool
	whole bool    // no rank's record can still come for the first time
	ranks bits    // where records may come twice: those that came, unless it is whole
	end   int64   // the latest that is logged, Unix ns
	byID  *rootID // nil: its key makes its ids
}

// rootID names the span of a collective whose trace an id in the log decided.
type rootID struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// trackKey is the number of a track.
type trackKey uint32

type ghostKey struct {
	track trackKey
	seq   uint64
}

const maxGhosts = 1 << 16

func (g *ghosts) find(track trackKey, seq uint64) (left ghost, ok bool) {
	if len(g.set) == 0 {
		return left, false
	}
	left, ok = g.set[ghostKey{track, seq}]
	return left, ok
}

// late says whether a collective has left without the record that a rank has of it, and takes note of the record.
func (g *ghosts) late(track trackKey, seq uint64, rank int32) (left ghost, ok bool) {
	if left, ok = g.find(track, seq); !ok || left.whole {
		return left, false
	}
	if left.ranks != nil {
		left.ranks.set(rank)
		g.set[ghostKey{track, seq}] = left
	}
	return left, true
}

func (g *ghosts) put(track trackKey, seq uint64, left ghost) {
	e := ghostKey{track, seq}
	_, ok := g.set[e]
	g.set[e] = left
	if ok {
		return
	}
	if len(g.ring) < maxGhosts {
		g.ring = append(g.ring, e)
		return
	}
	delete(g.set, g.ring[g.next])
	g.ring[g.next] = e
	g.next = (g.next + 1) % maxGhosts
}

// Whoever sends records from another host does not know after a crash which of the last ones have arrived, and sends them again. Were a record taken twice, a
// collective that has left whole would leave again, with one rank.

// repeated says whether the same record came before: it is in its collective, or its collective has left with it. Where numbers begin anew, as in a job that
// was started again, records are later than those that had the numbers before.
func (j *joiner) repeated(r *record) bool {
	if r.track == nil {
		return false // it leaves alone, and makes the same spans again
	}
	o, t := r.op, r.track
	if c := t.open[o.Seq]; c != nil && c.has.has(o.Rank) {
		for i := range c.parts {
			if c.parts[i].same(r) {
				return true
			}
		}
		return false
	}
	left, ok := j.ghosts.find(t.key, o.Seq)
	return ok && (left.whole || left.ranks.has(o.Rank)) && (o.End <= left.end || o.Time == spans.TimeSynthetic)
}

// same says whether the part is of this record.
func (p *part) same(r *record) bool {
	o := r.op
	if p.rank != o.Rank || p.start != o.Start || p.duration != o.Duration {
		return false
	}
	m := p.more
	return m == nil || m.sourceRank == o.Source && m.destRank == o.Destination && m.peer == o.Peer && m.channel == o.Channel
}
