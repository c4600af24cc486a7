package collectives

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// noteDeparture remembers a leaving collective, if more records of its ranks may come: missing ones, or repeated ones of remote collectors.
func (j *joiner) noteDeparture(c *judged) {
	if c.track == nil || c.join != byNumber && !j.set.Remote { // a counted number only finds the collective of a repeated record
		return
	}
	// All ranks of the communicator have a record: no new one can come.
	whole := len(c.missing) == 0 && c.comm.size > 0 && c.ranks >= j.ranksOf(c.comm.size) && !c.comm.sparse
	if !whole || j.set.Remote {
		left := departure{sent: !c.undrawn, whole: whole, end: c.logged}
		if j.set.Remote && !whole { // late records of the same number left before
			before, _ := j.departures.find(c.track.key, c.seq)
			left.ranks = before.ranks.union(c.has)
		}
		if c.byID {
			left.byID = &rootID{c.trace, c.id}
		}
		j.departures.remember(c.track.key, c.seq, left)
	}
}

// departures remembers collectives that left. Later records of incomplete ones join their traces instead of making new ones; with remote collectors (see
// repeated) complete ones are remembered too, to know repeated records. The oldest are forgotten.
type departures struct {
	set    map[departureKey]departure
	ring   []departureKey // the keys of set, at most maxDepartures, for the oldest to be forgotten
	next   int            // index in ring of the oldest, once ring is full
	tracks trackKey       // the latest number
}

// departure is the memory of a collective that left.
type departure struct {
	sent  bool    // its root was drawn: late records are drawn too
	whole bool    // no rank's record can still come for the first time
	ranks bits    // for repeated records: the ranks with a record, unless complete
	end   int64   // the latest logged end, Unix ns
	byID  *rootID // nil: its key makes its ids
}

// rootID names the span of a collective whose trace an id in the log decided.
type rootID struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// trackKey is the number of a track.
type trackKey uint32

type departureKey struct {
	track trackKey
	seq   uint64
}

const maxDepartures = 1 << 16

// find returns what is remembered of the collective with a number in a track; false: nothing.
func (g *departures) find(track trackKey, seq uint64) (left departure, ok bool) {
	if len(g.set) == 0 {
		return left, false
	}
	left, ok = g.set[departureKey{track, seq}]
	return left, ok
}

// lateRecordOf reports whether the collective of a record left while records were missing, and returns what is remembered of the collective. The rank counts as
// arrived from then on.
func (g *departures) lateRecordOf(track trackKey, seq uint64, rank int32) (left departure, ok bool) {
	left, ok = g.find(track, seq)
	if !ok || left.whole {
		return left, false
	}
	if left.ranks != nil {
		left.ranks.set(rank)
		g.set[departureKey{track, seq}] = left
	}
	return left, true
}

// remember stores a departure, and forgets the oldest if there are more than maxDepartures.
func (g *departures) remember(track trackKey, seq uint64, left departure) {
	key := departureKey{track, seq}
	_, ok := g.set[key]
	g.set[key] = left
	if ok {
		return
	}
	if len(g.ring) < maxDepartures {
		g.ring = append(g.ring, key)
		return
	}
	delete(g.set, g.ring[g.next])
	g.ring[g.next] = key
	g.next = (g.next + 1) % maxDepartures
}

// After a crash the sender of records from another host does not know the last accepted ones, and sends them again. A record taken twice would make a complete
// collective leave again, with a single rank.

// repeated reports whether the same record came before: it is in its collective, or its collective has left with it. If numbers restart, as in a restarted job,
// records are later than earlier ones of the same number.
func (j *joiner) repeated(r *record) bool {
	if r.track == nil {
		return false // a repeat makes the same spans again, with the same ids
	}
	o, t := r.op, r.track
	if c := t.open[o.Seq]; c != nil && c.has.has(o.Rank) {
		for i := range c.parts {
			if c.parts[i].isFrom(r) {
				return true
			}
		}
		return false
	}
	left, ok := j.departures.find(t.key, o.Seq)
	hadRank := left.whole || left.ranks.has(o.Rank)
	notLater := o.End <= left.end || o.Time == spans.TimeSynthetic // a time of writing says nothing
	return ok && hadRank && notLater
}

// isFrom reports whether the part was made from an equal record: of the same rank, times and link.
func (p *part) isFrom(r *record) bool {
	o := r.op
	if p.rank != o.Rank || p.start != o.Start || p.duration != o.Duration {
		return false
	}
	m := p.more
	return m == nil || m.sourceRank == o.Source && m.destRank == o.Destination && m.peer == o.Peer && m.channel == o.Channel
}
