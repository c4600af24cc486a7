package collectives

import "math"

// End returns when the last rank left the collective, Unix ns.
func (c *Collective) End() int64 { return c.end }

// Since returns the earliest start of the waiting collectives of a run, by their records so far, Unix ns; math.MaxInt64: no collective waits.
func (j *Joiner[H]) Since(run string) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	since := int64(math.MaxInt64)
	for c := j.oldest; c != nil; c = c.newer {
		if c.run.id != run {
			continue
		}
		for i := range c.parts {
			if p := &c.parts[i]; p.start > 0 {
				since = min(since, p.start)
			} else if p.end > 0 {
				since = min(since, p.end-max(p.duration, 0))
			}
		}
	}
	return since
}
