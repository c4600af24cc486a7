package collectives

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// judge finds out who was late, and whether the bandwidth is low.
func (j *joiner) judge(c *Collective) {
	c.latest, c.slowest = -1, -1
	c.baseline, c.deviation = math.NaN(), math.NaN()
	if !j.set.AnomalyDetection || !c.sure {
		return
	}
	if c.joined && c.kind.Symmetric() && len(c.parts) > 1 && c.outcome != Tardy {
		j.judgeArrivals(c)
	}
	j.judgeBandwidth(c)
}

// judgeArrivals finds out who came late, and who does so again and again.
func (j *joiner) judgeArrivals(c *Collective) {
	j.arrivals = j.arrivals[:0]
	for i := range c.parts {
		p := &c.parts[i]
		if !p.how.waits || p.duration < 0 || p.state != op.Completed {
			return // the ranks' durations do not compare
		}
		start := p.start
		if p.how.synthetic || p.src.coarse {
			start = 0
		}
		j.arrivals = append(j.arrivals, late.Arrival{Rank: p.rank, Duration: p.duration, Start: start})
	}
	if n := len(j.arrivals); n > len(j.lateness) {
		j.lateness = make([]int64, 2*n)
	}
	lateness := j.lateness[:len(j.arrivals)]
	res := c.comm.window.Observe(j.arrivals, lateness)
	for i := range c.parts {
		c.parts[i].late = lateness[i]
	}
	c.latest, c.lateMax, c.lateCost = res.Last, res.Max, res.Cost
	for i, s := range res.Slow {
		c.newlySlow = c.newlySlow || s.New
		if c.slowest < 0 && (s.New || c.lateOf(s.Rank) > s.Late/2) {
			c.slowest = i
		}
		c.slow = append(c.slow, slowRank{rank: s.Rank, host: c.comm.hostOf(s.Rank), late: s.Late, cost: s.Cost, score: s.Score})
	}
	for _, rank := range res.Over {
		c.over = append(c.over, slowRank{rank: rank, host: c.comm.hostOf(rank)})
	}
}

// judgeBandwidth compares the bandwidth with earlier bandwidths of the same operation and size.
func (j *joiner) judgeBandwidth(c *Collective) {
	v := c.bus
	if math.IsNaN(v) {
		v = c.alg
	}
	if math.IsNaN(v) {
		return
	}
	b := j.baselineOf(c)
	if b == nil {
		return
	}
	if median, deviation, ok := b.Observe(v); ok && deviation > j.set.AnomalyThreshold {
		c.baseline, c.deviation = median, deviation
	}
}

// maxBaselines bounds the baselines of a communicator: operations × powers of two.
const maxBaselines = 512

// baselineOf finds the baseline that a collective's bandwidth is compared with; nil: there is no room for one.
func (j *joiner) baselineOf(c *Collective) *baseline.Baseline {
	key := baselineKey{c.kind, c.name, baseline.Bucket(c.total)}
	b := c.comm.baselines[key]
	if b == nil && len(c.comm.baselines) < maxBaselines {
		b = baseline.New(j.set.WindowSize)
		c.comm.baselines[key] = b
		j.remember(c.comm, baselineBytes*j.set.WindowSize)
	}
	return b
}

// lateOf is how late a rank came, ns; op.Unknown.
func (c *Collective) lateOf(rank int32) int64 {
	i, ok := slices.BinarySearchFunc(c.parts, rank, func(p part, rank int32) int { return cmp.Compare(p.rank, rank) })
	if !ok {
		return op.Unknown
	}
	return c.parts[i].late
}

// keeps says whether a collective is sent.
func (j *joiner) keeps(c *Collective) bool {
	rate := j.set.SampleRate
	switch {
	case rate >= 1:
		return true
	case c.outcome == Tardy:
		return !c.dropped // it is kept when the records that came in time were kept
	case c.errs > 0 || c.retries > 0 || c.hang || c.mismatch || c.missingCount > 0 || len(c.stuck) > 0 || !math.IsNaN(c.deviation):
		return true
	case c.newlySlow, len(c.over) > 0, !c.joined && !c.proxy && c.parts[0].state != op.Completed:
		return true
	}
	return float64(binary.BigEndian.Uint64(c.trace[:8])>>11)/(1<<53) < rate
}
