package ncclreceiver

import (
	"cmp"
	"encoding/binary"
	"math"
	bits64 "math/bits"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/baseline"
	"github.com/trainbridge/trainbridge/internal/collectives/busbw"
	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/late"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/spans"
)

// close lets a collective go: into the batch of the handler at hand, whichever stream brought its records.
func (a *assembler) close(h *handler, c *collective, why outcome) {
	c.outcome = why
	slices.SortStableFunc(c.parts, func(x, y part) int { return cmp.Compare(x.rank, y.rank) })
	if c.waiting {
		a.withdraw(c)
	}
	if c.sure = c.join == byNumber; !c.sure {
		c.sure = c.track.trust(c.whole)
	} else if c.track != nil {
		a.absent(c)
	} else if m := c.parts[0].more; m != nil {
		c.hang = m.timedOut && c.parts[0].state != op.Completed
	}
	c.commName, c.commSize = c.comm.name, c.comm.size
	for i := range c.parts {
		p := &c.parts[i]
		if p.name = spans.SpanNCCLRank; c.joined && int(p.rank) < len(c.comm.rows) {
			p.name = c.comm.rows[p.rank]
		}
	}
	c.identify()
	c.run.closed++
	c.comm.closed++
	a.times(c)
	a.measure(c)
	a.judge(c)
	a.follow(c)
	c.dropped = !a.keeps(c)
	if t := c.track; t != nil && c.join == byNumber && (len(c.missing) > 0 || c.comm.size == 0 || c.ranks < a.r.ranksOf(c.comm.size)) {
		a.ghosts.put(t.key, c.seq, !c.dropped)
	}
	h.take(c)
}

// trust says whether something is concluded from a collective of which the numbers are counted. After one that was not whole others must be, first: what was lost is
// soon lost again, and chance joins some that do not belong together.
func (t *track) trust(whole bool) bool {
	if !whole {
		t.shaky = shaky
		return false
	}
	t.shaky = max(t.shaky-1, -1)
	return t.shaky < 0
}

// identify makes the ids. The natural key is the communicator, the operation and its number, or the record itself where it is not joined.
func (c *collective) identify() {
	var seq [9]byte
	binary.BigEndian.PutUint64(seq[:], c.seq)
	if c.ordinal {
		seq[8] = 1
	}
	operation := c.operation()
	if c.track != nil && c.track == c.comm.all {
		operation = "" // ranks may disagree about it
	}
	var room [64]byte
	if !c.joined || c.join == byTime {
		p := &c.parts[0]
		key := p.key(binary.BigEndian.AppendUint64(room[:0], uint64(c.size)))
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:], []byte(p.src.key), key)
	} else {
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(operation), seq[:])
		for i := range c.parts {
			// A rank has as many records as links, which may leave in parts. In what order they come depends on that of the files.
			if p := &c.parts[i]; p.more != nil && p.more.sends > 0 {
				p.more.id = spans.SpanID(c.trace, "rank", p.key(room[:0]))
			}
		}
	}
	c.id = spans.SpanID(c.trace, "collective")
	if c.hasParent {
		own := c.trace
		var number [9]byte
		binary.BigEndian.PutUint64(number[:], c.parentSeq)
		c.trace = spans.KeyTraceID(c.run.id, c.comm.family, []byte(c.comm.id), []byte(c.parentKind.String()), number[:])
		c.parent = c.rankID(&c.parts[0])
		c.id = spans.SpanID(c.trace, "proxy", own[:])
	}
}

// key appends what tells the record from others about the same, as logged.
func (p *part) key(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(p.rank))
	b = binary.BigEndian.AppendUint64(b, uint64(p.start))
	b = binary.BigEndian.AppendUint64(b, uint64(p.duration))
	m := p.more
	if m == nil {
		return b
	}
	for _, n := range [...]int32{m.peer, m.sourceRank, m.destRank, m.channel} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	if len(m.details) > 0 {
		b = binary.BigEndian.AppendUint64(b, uint64(m.details[0].start))
		b = binary.BigEndian.AppendUint32(b, uint32(m.details[0].step))
	}
	return b
}

// absent finds out which ranks have no record, and what that means.
func (a *assembler) absent(c *collective) {
	comm := c.comm
	seen := comm.seen
	if comm.sparse {
		seen = nil
	}
	for w, word := range seen {
		for word != 0 {
			rank := int32(w*64) + int32(bits64.TrailingZeros64(word))
			word &= word - 1
			if c.has.has(rank) || comm.size > 0 && rank >= comm.size && !comm.global {
				continue
			}
			if c.missingCount++; len(c.missing) < maxListed {
				c.missing = append(c.missing, rank)
			}
			if c.outcome == timedOut && !comm.gone.has(rank) && !c.track.beyond(rank, c.seq) {
				comm.gone.set(rank)
				comm.lost++
			}
		}
	}
	stuck := 0
	for i := range c.parts {
		p := &c.parts[i]
		if p.state == op.Completed {
			continue
		}
		stuck++
		if len(c.stuck) < maxListed {
			c.stuck = append(c.stuck, p.rank)
		}
		if p.more != nil && p.more.timedOut {
			c.hang = true
		}
	}
	switch c.outcome {
	case complete:
		if stuck == 0 {
			comm.completedAt = max(comm.completedAt, c.opened) // the ranks' logs are not read at one time: its end may be read late
		}
	case timedOut:
		comm.settled = true
		// Where records only tell what was completed: no rank has gone on since.
		c.hang = c.hang || stuck > 0 || c.missingCount > 0 && c.seq == c.track.top && comm.completedAt <= c.last
		c.waited = a.r.cfg.HangTimeout.Nanoseconds() * 5 / 4
	case evicted:
		comm.settled = comm.settled || a.silent == 0
	case gap, gone, ended, tardy, outcomes:
	}
}

// beyond says whether a rank has gone on.
func (t *track) beyond(rank int32, seq uint64) bool {
	return int(rank) < len(t.last) && t.last[rank].seen && t.last[rank].seq > seq
}

// times corrects clocks and finds the ends of the whole.
func (a *assembler) times(c *collective) {
	many := false
	for i := range c.parts {
		many = many || c.parts[i].src.clock != c.parts[0].src.clock
	}
	if many {
		a.offsets(c)
	}
	// Where only the time of writing is known, all ended at the latest when the first of them was written.
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

// maxUncertainty is that of an offset which says nothing, ns.
const maxUncertainty = 1e9

// offsets learns from a collective how its hosts' clocks differ, and says what is known of that.
func (a *assembler) offsets(c *collective) {
	r := c.run
	if c.kind.Symmetric() && !c.mismatch && c.sure {
		a.ends = a.ends[:0]
		for i := range c.parts {
			if p := &c.parts[i]; !p.how.synthetic && p.how.waits && p.state == op.Completed && c.comm.family != formatRecorder {
				a.ends = append(a.ends, clocks.End{Clock: p.src.clock, At: p.end})
			}
		}
		r.est.Observe(a.ends)
	}
	for i := range c.parts {
		p := &c.parts[i]
		if p.how.synthetic || slices.ContainsFunc(c.offsets, func(o clockOffset) bool { return o.clock == p.src.clock }) {
			continue
		}
		if offset, uncertainty, ok := r.est.Offset(p.src.clock, p.end); ok && uncertainty < maxUncertainty {
			c.offsets = append(c.offsets, clockOffset{p.src.clock, offset, uncertainty})
		}
	}
	if len(c.offsets) == 0 {
		return
	}
	c.reference = r.hosts[r.est.Reference()].name
	if !a.r.cfg.CorrectClock {
		return
	}
	c.corrected = true
	for i := range c.parts {
		p := &c.parts[i]
		if o := c.offset(p.src.clock); o != nil && !p.how.synthetic {
			p.start -= int64(o.offset)
			p.end -= int64(o.offset)
		}
	}
}

func (c *collective) offset(clock int32) *clockOffset {
	for i := range c.offsets {
		if c.offsets[i].clock == clock {
			return &c.offsets[i]
		}
	}
	return nil
}

// measure finds durations and bandwidths.
func (a *assembler) measure(c *collective) {
	c.duration, c.transfer = op.Unknown, op.Unknown
	c.alg, c.bus, c.busMean = math.NaN(), math.NaN(), math.NaN()
	c.factor = math.NaN()
	if f, ok := busbw.Factor(c.kind, int(c.commSize), busbw.InNetwork([]byte(c.algorithm))); ok {
		c.factor = f
	}
	var sum, n float64
	for i := range c.parts {
		p := &c.parts[i]
		if p.duration <= 0 || p.state != op.Completed {
			continue
		}
		own := p.reportedBus
		if math.IsNaN(own) {
			own = c.bandwidth(p) * c.factor
		}
		if !math.IsNaN(own) {
			sum, n = sum+own, n+1
		}
		c.duration = max(c.duration, p.duration)
		if c.transfer < 0 || p.duration < c.transfer {
			c.transfer = p.duration
		}
		if off := c.off(p); off > c.disagreement {
			c.disagreement = off
		}
	}
	if c.unconfirmed() { // who came last may not be here
		c.transfer = op.Unknown
	}
	if c.joined && n > 0 && !c.unconfirmed() {
		c.busMean = sum / n
	}
	if c.total > 0 && c.transfer > 0 {
		c.alg = float64(c.total) / (float64(c.transfer) / 1e9)
		c.bus = c.alg * c.factor
	}
}

// A duration of whole µs and a bandwidth of few digits may differ by so much without meaning anything.
const roundingShare = 0.02

// bandwidth is S/t of one rank, By/s; NaN: it is not known. With the factor it is the bus bandwidth.
func (c *collective) bandwidth(p *part) float64 {
	if c.total <= 0 || p.duration <= 0 || p.state != op.Completed {
		return math.NaN()
	}
	return float64(c.total) / (float64(p.duration) / 1e9)
}

// ownBandwidth is that of one rank without its waiting: where all wait for all that of the transfer, By/s; NaN: it is not known.
func (c *collective) ownBandwidth(p *part) float64 {
	if !c.kind.Symmetric() || !p.how.waits {
		return c.bandwidth(p)
	}
	if p.state != op.Completed || p.duration <= 0 {
		return math.NaN()
	}
	return c.alg
}

// off is |recomputed − reported| / recomputed of one rank; 0: print rounding explains it, or there is nothing to compare.
func (c *collective) off(p *part) float64 {
	alg := c.bandwidth(p)
	own, reported := alg*c.factor, p.reportedBus
	if math.IsNaN(reported) || math.IsNaN(own) {
		own, reported = alg, p.reportedAlg
	}
	off := math.Abs(own-reported) / own
	if math.IsNaN(off) || off <= roundingShare {
		return 0
	}
	return off
}

// judge finds out who was late, and whether the bandwidth is low.
func (a *assembler) judge(c *collective) {
	c.latest, c.slowest = -1, -1
	c.baseline, c.deviation = math.NaN(), math.NaN()
	if !a.r.cfg.AnomalyDetection || !c.sure {
		return
	}
	if c.joined && c.kind.Symmetric() && len(c.parts) > 1 && c.outcome != tardy {
		a.arrive(c)
	}
	v := c.bus
	if math.IsNaN(v) {
		v = c.alg
	}
	if math.IsNaN(v) {
		return
	}
	key := baselineKey{c.kind, c.name, baseline.Bucket(c.total)}
	b := c.comm.baselines[key]
	if b == nil {
		if len(c.comm.baselines) >= maxBaselines {
			return
		}
		b = baseline.New(a.r.cfg.WindowSize)
		c.comm.baselines[key] = b
		a.remember(c.comm, 16*a.r.cfg.WindowSize)
	}
	if median, deviation, ok := b.Observe(v); ok && deviation > a.r.cfg.AnomalyThreshold {
		c.baseline, c.deviation = median, deviation
	}
}

// maxBaselines bounds those of a communicator: operations × powers of two.
const maxBaselines = 512

func (a *assembler) arrive(c *collective) {
	a.arrivals = a.arrivals[:0]
	for i := range c.parts {
		p := &c.parts[i]
		if !p.how.waits || p.duration < 0 || p.state != op.Completed {
			return // the ranks' durations do not compare
		}
		start := p.start
		if p.how.synthetic || c.comm.family == formatRecorder { // whose times a watchdog saw, every 100 ms
			start = 0
		}
		a.arrivals = append(a.arrivals, late.Arrival{Rank: p.rank, Duration: p.duration, Start: start})
	}
	if n := len(a.arrivals); n > len(a.lateness) {
		a.lateness = make([]int64, 2*n)
	}
	lateness := a.lateness[:len(a.arrivals)]
	res := c.comm.window.Observe(a.arrivals, lateness)
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

// lateOf is how late a rank came, ns; op.Unknown.
func (c *collective) lateOf(rank int32) int64 {
	i, ok := slices.BinarySearchFunc(c.parts, rank, func(p part, rank int32) int { return cmp.Compare(p.rank, rank) })
	if !ok {
		return op.Unknown
	}
	return c.parts[i].late
}

// hostOf is where a rank of the communicator runs, as far as the log says.
func (comm *communicator) hostOf(rank int32) string {
	if int(rank) < len(comm.hosts) && comm.hosts[rank] != nil {
		return comm.hosts[rank].host
	}
	return ""
}

// linksEvery is how many collectives of a run lie between two looks at its links.
const linksEvery = 64

// follow adds up what went from rank to rank.
func (a *assembler) follow(c *collective) {
	r := c.run
	for i := range c.parts {
		p := &c.parts[i]
		if p.rank >= 0 && p.rank <= maxRank {
			r.ranks[p.rank] = p.src.node
		}
		m := p.more
		if m == nil {
			continue
		}
		src, dst := m.sourceRank, m.destRank
		if src < 0 && m.peer >= 0 && c.kind == op.Send {
			src, dst = p.rank, m.peer
		}
		if src < 0 || dst < 0 || c.proxy && src != p.rank || p.state != op.Completed { // both ends of a transfer have a proxy
			continue
		}
		switch {
		case c.size > 0 && p.duration > 0:
			r.links.Add(src, dst, c.size, p.duration)
		case m.sends > 0:
			r.links.AddBandwidth(src, dst, m.linkBandwidth)
		default:
			continue
		}
		r.moved = true
		if c.size > 0 {
			from := p.src.node
			if at, ok := r.ranks[src]; ok {
				from = at
			}
			if to, ok := r.ranks[dst]; ok && from >= 0 && to >= 0 {
				r.between.Add(from, to, c.size, max(p.duration, 0))
			}
		}
	}
	if r.closed%linksEvery == 0 {
		r.hot, r.slow = r.hot[:0:0], r.slow[:0:0]
		for _, l := range r.links.Hot() {
			r.hot = append(r.hot, linkName(l.Src, l.Dst))
		}
		for _, l := range r.links.Slow() {
			r.slow = append(r.slow, linkName(l.Src, l.Dst))
		}
		c.hotLinks, c.slowLinks = r.hot, r.slow
	}
}

// keeps says whether a collective is sent.
func (a *assembler) keeps(c *collective) bool {
	rate := a.r.cfg.SampleRate
	switch {
	case rate >= 1:
		return true
	case c.outcome == tardy:
		return !c.dropped // as those that came in time
	case c.errs > 0 || c.retries > 0 || c.hang || c.mismatch || c.missingCount > 0 || len(c.stuck) > 0 || !math.IsNaN(c.deviation):
		return true
	case c.newlySlow, len(c.over) > 0, !c.joined && !c.proxy && c.parts[0].state != op.Completed:
		return true
	}
	return float64(binary.BigEndian.Uint64(c.trace[:8])>>11)/(1<<53) < rate
}
