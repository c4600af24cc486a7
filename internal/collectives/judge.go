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

// judge compares a collective with earlier ones: lateness, bandwidth, links. Then it decides whether the collective is drawn, and remembers the collective for
// late records.
func (j *joiner) judge(c *judged) {
	j.compare(c)
	if !c.known { // known: its traffic was counted before the restart
		j.addLinks(c)
	}
	j.set.Conclusions.restoreOrRemember(c)
	j.decideDrawn(c)
	j.noteDeparture(c)
}

// compare judges the arrivals of the ranks against each other, and the bandwidth against earlier bandwidths. Arrivals are comparable only where no rank leaves
// before the last has come.
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

// judgeArrivals finds how late each rank came, who came last and at which cost, and the stragglers: ranks that are late again and again (package late). Nothing
// is judged unless every rank has a duration that includes waiting.
func (j *joiner) judgeArrivals(c *judged) {
	j.arrivals = j.arrivals[:0]
	for i := range c.parts {
		p := &c.parts[i]
		if !p.how.waits || p.duration < 0 || p.state != op.Completed {
			return // the ranks' durations do not compare
		}
		start := p.start
		if p.how.synthetic || p.src.coarse {
			start = 0 // not known well enough
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
		// Late in this collective, by more than half of the usual lateness: in a dense row only the first collective waits for the rank.
		lateHere := c.lateOf(s.Rank) > s.Late/2
		if c.slowest < 0 && (s.New || lateHere) {
			c.slowest = i
		}
		c.slow = append(c.slow, slowRank{Rank: s.Rank, host: c.comm.hostOf(s.Rank), Late: s.Late, Cost: s.Cost, Score: finite(s.Score)})
	}
	for _, rank := range res.Over {
		c.over = append(c.over, slowRank{Rank: rank, host: c.comm.hostOf(rank)})
	}
}

// judgeBandwidth compares the bandwidth with earlier bandwidths of the same operation and size, and sets baseline and deviation if it is low. With missing
// ranks nothing is judged: the shortest duration may include the wait for one of them.
func (j *joiner) judgeBandwidth(c *judged) {
	if c.lacksRanks() {
		return
	}
	bandwidth := c.bus
	if math.IsNaN(bandwidth) || c.commSize == 0 { // without a logged size few collectives have a bus bandwidth (rankCount): alg is compared
		bandwidth = c.alg
	}
	if math.IsNaN(bandwidth) {
		return
	}
	b := j.baselineOf(c)
	if b == nil {
		return
	}
	if judgement, _ := b.Observe(bandwidth); judgement.Low {
		c.baseline, c.deviation = judgement.Median, judgement.Deviation
	}
}

// lacksRanks reports whether some rank of a collective has no record here, although the ranks wait for each other; always true for a late record.
func (c *judged) lacksRanks() bool {
	return !c.proxy && c.kind != op.Send && c.kind != op.Recv && (c.outcome == Late || c.missingCount > 0 || int(c.commSize) > c.ranks)
}

// maxBaselines bounds the baselines of a communicator: operations × buckets of sizes.
const maxBaselines = 512

// baselineOf returns the baseline for the bandwidth of a collective, made if absent; nil: beyond maxBaselines.
func (j *joiner) baselineOf(c *judged) *baseline.Baseline {
	key := baselineKey{c.kind, c.name, baseline.Bucket(c.total)}
	b := c.comm.baselines[key]
	if b == nil && len(c.comm.baselines) < maxBaselines {
		b = baseline.New(j.set.WindowSize, j.set.AnomalyThreshold)
		c.comm.baselines[key] = b
		j.countMemory(c.comm, baselineBytes*j.set.WindowSize)
	}
	return b
}

// lateOf returns how late a rank came to the collective, ns; op.Unknown: the rank has no record here.
func (c *judged) lateOf(rank int32) int64 {
	i, ok := slices.BinarySearchFunc(c.parts, rank, func(p part, rank int32) int { return cmp.Compare(p.rank, rank) })
	if !ok {
		return op.Unknown
	}
	return c.parts[i].late
}

// linksEvery is the number of collectives of a run between two looks at its links: hot and slow links need a walk over all pairs of ranks. Of few pairs the
// walk is short, and a job of few collectives needs a look too.
const (
	linksEvery = 64
	fewEvery   = 16
	fewLinks   = 256
)

// addLinks adds the traffic of a collective to the links between ranks, and between nodes. Each linksEvery-th collective of a run, or fewEvery-th for few
// links, gets the names of the hot and slow links.
func (j *joiner) addLinks(c *judged) {
	r := c.run
	for i := range c.parts {
		p := &c.parts[i]
		j.noteNode(c.comm, p)
		if p.more != nil {
			r.addLink(c, p)
		}
	}
	every := linksEvery
	if r.links.Len() <= fewLinks {
		every = fewEvery
	}
	if r.closed%every == 0 {
		c.hotLinks, c.slowLinks = nameLinks(r.links.Hot()), nameLinks(r.links.Slow())
	}
}

// noteNode records the node of the rank of a record: other records name the rank as a peer by its number alone.
func (j *joiner) noteNode(comm *communicator, p *part) {
	switch {
	case p.rank < 0 || p.rank > MaxRank:
	case p.how.global:
		comm.run.ranks[p.rank] = p.src.node
	default:
		before, ok := comm.nodes[p.rank]
		if ok && before == p.src.node { // mostly
			return
		}
		if comm.nodes == nil {
			comm.nodes = make(map[int32]int32)
		}
		if !ok {
			j.countMemory(comm, nodeBytes)
		}
		comm.nodes[p.rank] = p.src.node
	}
}

// nodeOf returns the node of a rank that record p names; false: the rank has no record yet.
func (c *judged) nodeOf(p *part, rank int32) (node int32, ok bool) {
	nodes := c.comm.nodes
	if p.how.global {
		nodes = c.run.ranks
	}
	node, ok = nodes[rank]
	return node, ok
}

// addLink adds the traffic of a record, if any, to the link between two ranks, and to the link between their hosts.
func (r *run) addLink(c *judged, p *part) {
	m := p.more
	src, dst := m.sourceRank, m.destRank
	if src < 0 && m.peer >= 0 && c.kind == op.Send { // names a peer, not source and destination
		src, dst = p.rank, m.peer
	}
	otherEnd := c.proxy && src != p.rank // both ends of a transfer have a proxy: the sender's counts
	if src < 0 || dst < 0 || otherEnd || p.state != op.Completed {
		return
	}
	switch {
	case c.size > 0 && p.duration > 0:
		r.links.Add(src, dst, c.size, p.duration)
	case m.sends > 0: // a row of VCCL, about several sends
		r.links.AddBandwidth(src, dst, m.linkBandwidth)
	default:
		return
	}
	r.moved = true
	if c.size <= 0 { // no traffic between the nodes either
		return
	}
	from := p.src.node
	if at, ok := c.nodeOf(p, src); ok { // the record may be the receiver's
		from = at
	}
	if to, ok := c.nodeOf(p, dst); ok && from >= 0 && to >= 0 {
		r.between.Add(from, to, c.size, max(p.duration, 0))
	}
}

// nameLinks returns the names of links by their ranks: "3→4".
func nameLinks(pairs []links.Pair) (names []string) {
	for _, l := range pairs {
		names = append(names, strconv.Itoa(int(l.Src))+"→"+strconv.Itoa(int(l.Dst)))
	}
	return names
}
