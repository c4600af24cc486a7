package collectives

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// times corrects clocks and finds the ends of the whole.
func (j *joiner) times(c *Collective) {
	many := false
	for i := range c.parts {
		many = many || c.parts[i].src.clock != c.parts[0].src.clock
	}
	if many {
		j.offsets(c)
	}
	// Where only the time of writing is known, all records ended at the latest when the first of them was written.
	written := int64(math.MaxInt64)
	for i := range c.parts {
		if p := &c.parts[i]; p.how.synthetic {
			written = min(written, p.end)
		}
	}
	c.start, c.end = math.MaxInt64, math.MinInt64
	for i := range c.parts {
		p := &c.parts[i]
		if p.how.synthetic {
			p.end = written
			p.start = p.end - max(p.duration, 0)
		} else if p.end < p.start {
			p.end = p.start + max(p.duration, 0)
		}
		c.start, c.end = min(c.start, p.start), max(c.end, p.end)
	}
}

// maxUncertainty is the uncertainty of an offset that says nothing, ns.
const maxUncertainty = 1e9

// offsets learns from a collective how its hosts' clocks differ, and sets the offsets that are known.
func (j *joiner) offsets(c *Collective) {
	j.observeEnds(c)
	est := &c.run.est
	for i := range c.parts {
		p := &c.parts[i]
		if p.how.synthetic || c.offset(p.src.clock) != nil {
			continue
		}
		if offset, uncertainty, ok := est.Offset(p.src.clock, p.end); ok && uncertainty < maxUncertainty {
			c.offsets = append(c.offsets, clockOffset{p.src.clock, offset, uncertainty})
		}
	}
	if len(c.offsets) == 0 {
		return
	}
	c.reference = c.run.hosts[est.Reference()].name
	if c.corrected = j.set.CorrectClock; c.corrected {
		c.correct()
	}
}

// observeEnds has the run's estimator see when the ranks ended that left together.
func (j *joiner) observeEnds(c *Collective) {
	if !c.kind.Symmetric() || c.mismatch || !c.sure {
		return
	}
	j.ends = j.ends[:0]
	for i := range c.parts {
		if p := &c.parts[i]; !p.how.synthetic && !p.src.coarse && p.how.waits && p.state == op.Completed {
			j.ends = append(j.ends, clocks.End{Clock: p.src.clock, At: p.end})
		}
	}
	c.run.est.Observe(j.ends)
}

// correct takes the offsets from the times.
func (c *Collective) correct() {
	for i := range c.parts {
		p := &c.parts[i]
		if o := c.offset(p.src.clock); o != nil && !p.how.synthetic {
			p.start -= int64(o.offset)
			p.end -= int64(o.offset)
		}
	}
}

// offset is what is known of a clock; nil: nothing.
func (c *Collective) offset(clock int32) *clockOffset {
	for i := range c.offsets {
		if c.offsets[i].clock == clock {
			return &c.offsets[i]
		}
	}
	return nil
}
