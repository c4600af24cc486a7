package collectives

import "github.com/trainbridge/trainbridge/spans"

// Whoever sends records from another host does not know after a crash which of the last ones have arrived, and sends them again. Were a record taken twice, a
// collective that has left whole would leave again, with one rank.

// repeated says whether the same record came before: it is in its collective, or its collective has left with it. Where numbers begin anew, as in a job that
// was started again, records are later than those that had the numbers before.
func (j *joiner) repeated(r *record) bool {
	if !r.joins() {
		return false // it leaves alone, and makes the same spans again
	}
	o, t := r.op, j.track(r.comm, r.op)
	if c := t.open[o.Seq]; c != nil && c.has.has(o.Rank) {
		for i := range c.parts {
			if c.parts[i].same(r) {
				return true
			}
		}
		return false
	}
	left, ok := j.ghosts.has(t.key, o.Seq)
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
