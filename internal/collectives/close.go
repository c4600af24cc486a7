package collectives

import (
	"cmp"
	bits64 "math/bits"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// close lets a collective go: it is judged, and leaves with the record at hand, whichever inputs brought its own records.
func (j *joiner) close(c *Collective, why Outcome) {
	c.outcome = why
	slices.SortStableFunc(c.parts, func(x, y part) int { return cmp.Compare(x.rank, y.rank) })
	if c.waiting {
		j.withdraw(c)
	}
	j.findOut(c)
	c.nameRanks()
	c.identify()
	c.run.closed++
	c.comm.closed++
	j.times(c)
	c.measure()
	j.judge(c)
	c.run.follow(c)
	c.dropped = !j.keeps(c)
	j.haunt(c)
	j.leaving = append(j.leaving, c)
}

// findOut finds out whether the records are surely one collective, and which of its records are missing.
func (j *joiner) findOut(c *Collective) {
	if c.sure = c.join == byNumber; !c.sure {
		c.sure = c.track.trust(c.whole)
	} else if c.track != nil {
		j.absent(c)
	} else if m := c.parts[0].more; m != nil {
		c.hang = m.timedOut && c.parts[0].state != op.Completed
	}
}

// nameRanks gives the ranks' spans their names.
func (c *Collective) nameRanks() {
	c.commName, c.commSize = c.comm.name, c.comm.size
	for i := range c.parts {
		p := &c.parts[i]
		if p.name = spans.SpanNCCLRank; c.joined && int(p.rank) < len(c.comm.rows) {
			p.name = c.comm.rows[p.rank]
		}
	}
}

// haunt remembers a collective that leaves while ranks may still have records of it.
func (j *joiner) haunt(c *Collective) {
	if c.track == nil || c.join != byNumber {
		return
	}
	if len(c.missing) > 0 || c.comm.size == 0 || c.ranks < j.ranksOf(c.comm.size) {
		j.ghosts.put(c.track.key, c.seq, !c.dropped)
	}
}

// trust says whether conclusions are drawn from a collective whose numbers are counted. After a collective that was not whole, some whole ones must come first:
// records that were lost are soon lost again, and chance joins some that do not belong together.
func (t *track) trust(whole bool) bool {
	if !whole {
		t.shaky = shaky
		return false
	}
	t.shaky = max(t.shaky-1, -1)
	return t.shaky < 0
}

// MaxListed bounds the ranks that an attribute lists.
const MaxListed = 32

// absent finds out which ranks have no record, and what that means.
func (j *joiner) absent(c *Collective) {
	c.miss()
	stuck := c.findStuck()
	comm := c.comm
	switch c.outcome {
	case Complete:
		if stuck == 0 {
			comm.completedAt = max(comm.completedAt, c.opened) // the ranks' logs are not read at one time: its end may be read late
		}
	case TimedOut:
		comm.settled = true
		// Where there are records of completed operations only, a hang is that no rank has gone on since.
		c.hang = c.hang || stuck > 0 || c.missingCount > 0 && c.seq == c.track.top && comm.completedAt <= c.last
		c.waited = j.set.HangTimeout.Nanoseconds() * 5 / 4
	case Evicted:
		comm.settled = comm.settled || j.silent == 0
	case Gap, Gone, Ended, Tardy, Outcomes:
	}
}

// miss lists the ranks that were seen before and have no record.
func (c *Collective) miss() {
	comm := c.comm
	if comm.sparse {
		return
	}
	for w, word := range comm.seen {
		for word != 0 {
			rank := int32(w*64) + int32(bits64.TrailingZeros64(word))
			word &= word - 1
			if c.has.has(rank) || comm.size > 0 && rank >= comm.size && !comm.global {
				continue
			}
			if c.missingCount++; len(c.missing) < MaxListed {
				c.missing = append(c.missing, rank)
			}
			if c.outcome == TimedOut && !c.track.beyond(rank, c.seq) {
				comm.lose(rank)
			}
		}
	}
}

// findStuck lists the ranks that did not complete by their log, and counts them.
func (c *Collective) findStuck() (stuck int) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.state == op.Completed {
			continue
		}
		stuck++
		if len(c.stuck) < MaxListed {
			c.stuck = append(c.stuck, p.rank)
		}
		if p.more != nil && p.more.timedOut {
			c.hang = true
		}
	}
	return stuck
}
