package collectives

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/collectives/clocks"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// measureTimes corrects clocks, and finds start and end of the collective, durations and bandwidths.
func (j *joiner) measureTimes(c *closed) {
	severalClocks := false
	for i := range c.parts {
		severalClocks = severalClocks || c.parts[i].src.clock != c.parts[0].src.clock
	}
	if severalClocks {
		j.offsets(c)
	}
	// If only the time of writing is known, all records ended before the first of them was written.
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
		} else if p.end < p.start { // no end is logged
			p.end = p.start + max(p.duration, 0)
		}
		c.start, c.end = min(c.start, p.start), max(c.end, p.end)
	}
	c.measure()
}

// maxUncertainty is the uncertainty from which on an offset is useless, ns.
const maxUncertainty = 1e9

// offsets updates the estimate of the clocks of the hosts from a collective, and sets the known offsets of the clocks in the collective. With CorrectClock the
// offsets are subtracted from the times.
func (j *joiner) offsets(c *closed) {
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
	c.corrected = j.set.CorrectClock
	if c.corrected {
		c.correctClocks()
	}
}

// observeEnds gives the ends of the records to the clock estimator of the run, if the ranks left together: then the ends differ only by the clocks.
func (j *joiner) observeEnds(c *closed) {
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

// correctClocks subtracts the offsets of the clocks from the times.
func (c *closed) correctClocks() {
	for i := range c.parts {
		p := &c.parts[i]
		if o := c.offset(p.src.clock); o != nil && !p.how.synthetic {
			p.start -= int64(o.offset)
			p.end -= int64(o.offset)
		}
	}
}

// leastApart is the smallest difference of clocks worth an attribute of the root, ns: below, clocks are as good as in most logs.
const leastApart = 1e6

// clockSpread returns how far the clocks of the collective may differ, including the uncertainty of their offsets, ns.
func (c *closed) clockSpread() float64 {
	least, most := 0.0, 0.0 // the reference has offset 0
	for i := range c.offsets {
		o := &c.offsets[i]
		least, most = min(least, o.offset-o.uncertainty), max(most, o.offset+o.uncertainty)
	}
	return most - least
}

// offset returns the offset of a clock; nil: unknown.
func (c *closed) offset(clock int32) *clockOffset {
	for i := range c.offsets {
		if c.offsets[i].clock == clock {
			return &c.offsets[i]
		}
	}
	return nil
}

// measure finds durations and bandwidths of the collective. The longest duration is that of the rank that came first; the shortest, of the last, is the
// transfer. The algorithm bandwidth is of the transfer; busMean is the mean over the ranks, as logged or by the duration of each rank.
func (c *closed) measure() {
	c.duration, c.transfer = op.Unknown, op.Unknown
	c.alg, c.bus, c.busMean = math.NaN(), math.NaN(), math.NaN()
	c.factor = math.NaN()
	if f, ok := busFactor(c.kind, c.rankCount(), isInNetwork([]byte(c.algorithm))); ok {
		c.factor = f
	}
	var sum, n float64 // of the ranks' own bus bandwidths
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
		if off := c.disagreementOf(p); off > c.disagreement {
			c.disagreement = off
		}
	}
	if c.unconfirmed() { // the rank that came last may be missing
		c.transfer = op.Unknown
	}
	if c.joined && n > 0 && !c.unconfirmed() {
		c.busMean = sum / n
	}
	if c.total > 0 && c.transfer > 0 { // bus is NaN without a factor
		c.alg = float64(c.total) / (float64(c.transfer) / 1e9)
		c.bus = c.alg * c.factor
	}
}

// rankCount returns the number of ranks of the collective; 0: unknown. VCCL does not log the size of a communicator, but a record may name the next rank of its
// ring: if the ring leads through all records and back to the first, no rank lacks a record. VCCL does not log either whether the size of an AllGather is of
// one rank or of all, so for such operations the number is useless, and 0 is returned.
func (c *closed) rankCount() int {
	if c.commSize > 0 || !c.joined || c.unconfirmed() || len(c.parts) < 2 {
		return int(c.commSize)
	}
	if c.kind != op.AllReduce && c.kind != op.Broadcast && c.kind != op.Reduce {
		return 0
	}
	at := 0 // index in parts, which are sorted by rank
	for k := 1; k <= len(c.parts); k++ {
		next, ok := slices.BinarySearchFunc(c.parts, destination(&c.parts[at]), func(p part, rank int32) int { return cmp.Compare(p.rank, rank) })
		if !ok || next == 0 && k < len(c.parts) { // the next rank has no record, or the ring closes without some of the records
			return 0
		}
		at = next
	}
	if at != 0 {
		return 0
	}
	return len(c.parts)
}

// Rounding: a duration of whole µs and a bandwidth of few digits may differ by this much.
const roundingShare = 0.02

// bandwidth returns the algorithm bandwidth of one rank, size by duration, By/s; NaN: unknown.
func (c *closed) bandwidth(p *part) float64 {
	if c.total <= 0 || p.duration <= 0 || p.state != op.Completed {
		return math.NaN()
	}
	return float64(c.total) / (float64(p.duration) / 1e9)
}

// ownBandwidth returns the bandwidth of a rank without its waiting, By/s; NaN: unknown. Where the ranks wait for each other, that is the bandwidth of the
// transfer.
func (c *closed) ownBandwidth(p *part) float64 {
	if !c.kind.Symmetric() || !p.how.waits {
		return c.bandwidth(p)
	}
	if p.state != op.Completed || p.duration <= 0 {
		return math.NaN()
	}
	return c.alg
}

// disagreementOf returns how far the bandwidth logged for a rank differs from the bandwidth by size and duration: |recomputed − reported| / recomputed. Bus
// bandwidths are compared, or, if one is unknown, algorithm bandwidths. 0: within rounding, or nothing to compare.
func (c *closed) disagreementOf(p *part) float64 {
	alg := c.bandwidth(p)
	recomputed, reported := alg*c.factor, p.reportedBus
	if math.IsNaN(reported) || math.IsNaN(recomputed) {
		recomputed, reported = alg, p.reportedAlg
	}
	difference := math.Abs(recomputed-reported) / recomputed
	if math.IsNaN(difference) || difference <= roundingShare {
		return 0
	}
	return difference
}

// The factor between algorithm and bus bandwidth: busbw = algbw · f(n), algbw = S/t.
//
// Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (@03a204a1), and src/*.cu for the operations missing in the document: gather.cu, scatter.cu: (n−1)/n;
// sendrecv.cu: 1. S is the size of nccl-tests: for AllGather, ReduceScatter, AllToAll, Gather and Scatter the bytes of all ranks together, else of the buffer
// or message (op.Op.Total).

// busFactor returns f(n) of an operation among n ranks. false: no factor, for a communicator of one rank; for an unknown number of ranks (n ≤ 0), which may be
// one, except for Send and Recv, which are between two; and for operations unknown in nccl-tests. inNetwork: switches did the reduction (see isInNetwork),
// which matters for AllReduce only, as the document has no factor for other operations.
func busFactor(kind op.Kind, ranks int, inNetwork bool) (f float64, ok bool) {
	if ranks == 1 || ranks < 1 && kind != op.Send && kind != op.Recv {
		return 0, false
	}
	n := float64(ranks)
	switch kind {
	case op.AllReduce:
		if inNetwork {
			return (n - 1) / (n + 1), true
		}
		return 2 * (n - 1) / n, true
	case op.AllGather, op.ReduceScatter, op.AllToAll, op.Gather, op.Scatter:
		return (n - 1) / n, true
	case op.Broadcast, op.Reduce, op.Send, op.Recv, op.SendRecv:
		return 1, true
	}
	return 0, false
}

// isInNetwork reports whether switches do the reduction with an algorithm, as logged, in any case of letters.
func isInNetwork(algorithm []byte) bool {
	for _, name := range inNetwork {
		if bytes.EqualFold(algorithm, name) {
			return true
		}
	}
	return false
}

// Spellings of NCCL_ALGO and the Inspector (NVLS_TREE) and of NCCL's ncclAlgoStr (NVLSTree). All further algorithms (RING, TREE, PAT) go from rank to rank.
var inNetwork = [][]byte{
	[]byte("NVLS"), []byte("NVLS_TREE"), []byte("NVLSTree"), []byte("COLLNET"), []byte("COLLNET_DIRECT"), []byte("CollNetDirect"), []byte("COLLNET_CHAIN"),
	[]byte("CollNetChain"), []byte("SHARP"),
}
