package collectives

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/links"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// judge finds out who was late and whether the bandwidth is low, adds up links, and decides whether the collective is drawn.
func (j *joiner) judge(c *judged) {
	j.compare(c)
	if !c.known {
		c.run.follow(c)
	}
	j.set.Conclusions.settle(c)
	j.draw(c)
	j.noteDeparture(c)
}

// compare compares the ranks with each other, and the collective with earlier ones.
func (j *joiner) compare(c *judged) {
	c.latest, c.slowest = -1, -1
	c.baseline, c.deviation = math.NaN(), math.NaN()
	if !j.set.AnomalyDetection || !c.sure {
		return
	}
	if c.joined && c.kind.Symmetric() && len(c.parts) > 1 && c.outcome != Late {
		j.judgeArrivals(c)
	}
	j.judgeBandwidth(c)
}

// judgeArrivals finds late ranks and stragglers.
func (j *joiner) judgeArrivals(c *judged) {
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
		c.slow = append(c.slow, slowRank{Rank: s.Rank, host: c.comm.hostOf(s.Rank), Late: s.Late, Cost: s.Cost, Score: finite(s.Score)})
	}
	for _, rank := range res.Over {
		c.over = append(c.over, slowRank{Rank: rank, host: c.comm.hostOf(rank)})
	}
}

// judgeBandwidth compares the bandwidth with earlier bandwidths of the same operation and size. With missing ranks the shortest duration may include the wait
// for one of them.
func (j *joiner) judgeBandwidth(c *judged) {
	if c.lacksRanks() {
		return
	}
	v := c.bus
	if math.IsNaN(v) || c.commSize == 0 { // in this case only some collectives of the communicator may have its size
		v = c.alg
	}
	if math.IsNaN(v) {
		return
	}
	b := j.baselineOf(c)
	if b == nil {
		return
	}
	if of, _ := b.Observe(v); of.Low {
		c.baseline, c.deviation = of.Median, of.Deviation
	}
}

// lacksRanks reports whether ranks that wait for each other in the collective have no record.
func (c *judged) lacksRanks() bool {
	return !c.proxy && c.kind != op.Send && c.kind != op.Recv && (c.missingCount > 0 || int(c.commSize) > c.ranks)
}

// maxBaselines bounds the baselines of a communicator: operations × buckets of sizes.
const maxBaselines = 512

// baselineOf finds the baseline of a collective's bandwidth; nil: no room.
func (j *joiner) baselineOf(c *judged) *baseline.Baseline {
	key := baselineKey{c.kind, c.name, baseline.Bucket(c.total)}
	b := c.comm.baselines[key]
	if b == nil && len(c.comm.baselines) < maxBaselines {
		b = baseline.New(j.set.WindowSize, j.set.AnomalyThreshold)
		c.comm.baselines[key] = b
		j.remember(c.comm, baselineBytes*j.set.WindowSize)
	}
	return b
}

// lateOf is how late a rank came, ns; op.Unknown.
func (c *judged) lateOf(rank int32) int64 {
	i, ok := slices.BinarySearchFunc(c.parts, rank, func(p part, rank int32) int { return cmp.Compare(p.rank, rank) })
	if !ok {
		return op.Unknown
	}
	return c.parts[i].late
}

// linksEvery is the number of collectives of a run between two looks at its links.
const linksEvery = 64

// follow adds up the traffic between ranks.
func (r *run) follow(c *judged) {
	for i := range c.parts {
		p := &c.parts[i]
		if p.rank >= 0 && p.rank <= MaxRank {
			r.ranks[p.rank] = p.src.node
		}
		if p.more != nil {
			r.followPart(c, p)
		}
	}
	if r.closed%linksEvery == 0 {
		r.hot, r.slow = nameLinks(r.links.Hot()), nameLinks(r.links.Slow())
		c.hotLinks, c.slowLinks = r.hot, r.slow
	}
}

// followPart adds a record's traffic, if any, to the link between two ranks, and to the link between their hosts.
func (r *run) followPart(c *judged, p *part) {
	m := p.more
	src, dst := m.sourceRank, m.destRank
	if src < 0 && m.peer >= 0 && c.kind == op.Send {
		src, dst = p.rank, m.peer
	}
	if src < 0 || dst < 0 || c.proxy && src != p.rank || p.state != op.Completed { // both ends of a transfer have a proxy
		return
	}
	switch {
	case c.size > 0 && p.duration > 0:
		r.links.Add(src, dst, c.size, p.duration)
	case m.sends > 0:
		r.links.AddBandwidth(src, dst, m.linkBandwidth)
	default:
		return
	}
	r.moved = true
	if c.size <= 0 {
		return
	}
	from := p.src.node
	if at, ok := r.ranks[src]; ok {
		from = at
	}
	if to, ok := r.ranks[dst]; ok && from >= 0 && to >= 0 {
		r.between.Add(from, to, c.size, max(p.duration, 0))
	}
}

func nameLinks(pairs []links.Pair) (names []string) {
	for _, l := range pairs {
		names = append(names, strconv.Itoa(int(l.Src))+"→"+strconv.Itoa(int(l.Dst)))
	}
	return names
}
