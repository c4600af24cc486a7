package trainmetricsconnector

import (
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/bounds"
)

const (
	// maxScale has buckets 4.4 % wide, the largest error of a quantile.
	maxScale = 4
	// mostBuckets covers values of a series that span six decades. Beyond, neighbouring buckets are merged.
	mostBuckets = 320
)

// buckets count values as the exponential histograms of OpenTelemetry do (opentelemetry-proto, metrics.proto, ExponentialHistogramDataPoint): bucket i of a
// scale holds base^i < value ≤ base^(i+1), with base = 2^(2^−scale). When a value would need more than mostBuckets, each two neighbours are put together: the
// scale goes down by 1.
type buckets struct {
	coarser int // steps of the scale below maxScale
	offset  int // index of the first count
	counts  []uint64
	zeros   uint64 // values of 0 or below
}

// scale returns the scale as defined by OpenTelemetry: base = 2^(2^−scale).
func (b *buckets) scale() int { return maxScale - b.coarser }

// add counts a value. The list of counts grows to the bucket of the value on either side; if the list would get longer than mostBuckets, buckets are merged
// first.
func (b *buckets) add(x float64) {
	if !(x > 0) {
		b.zeros++
		return
	}
	i := index(x) >> b.coarser
	if len(b.counts) == 0 {
		b.offset = i
	}
	for max(b.offset+len(b.counts), i+1)-min(b.offset, i) > mostBuckets {
		b.halve()
		i >>= 1
	}
	if below := b.offset - i; below > 0 {
		b.counts = slices.Insert(b.counts, 0, make([]uint64, below)...)
		b.offset = i
	}
	if above := i + 1 - b.offset - len(b.counts); above > 0 {
		b.counts = append(b.counts, make([]uint64, above)...)
	}
	b.counts[i-b.offset]++
}

// halve merges each two neighbouring buckets, in place: bucket i becomes i>>1, rounded down also below 0, since i is a logarithm.
func (b *buckets) halve() {
	offset := b.offset >> 1
	for i, n := range b.counts {
		at := (b.offset+i)>>1 - offset
		b.counts[i] = 0 // before the next line: at may be i
		b.counts[at] += n
	}
	if n := len(b.counts); n > 0 {
		b.counts = b.counts[:(b.offset+n-1)>>1-offset+1]
	}
	b.offset = offset
	b.coarser++
}

// edges are where the 2^maxScale buckets from 1/2 to 1 begin.
var edges = func() (e [1 << maxScale]float64) {
	for i := range e {
		e[i] = math.Exp2(float64(i)/float64(len(e))) / 2
	}
	return e
}()

// index returns the bucket of a value above 0, at maxScale; infinity is in the last. The exponent of the float gives the power of 2, a binary search in edges
// the bucket in that power: exact at the bounds, where a logarithm is not.
func index(x float64) int {
	fraction, exponent := math.Frexp(min(x, math.MaxFloat64))
	lo, hi := 0, len(edges)
	for lo < hi {
		if mid := (lo + hi) / 2; edges[mid] < fraction {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return (exponent-1)<<maxScale + lo - 1
}

// cover extends the bounds of a metric to every bucket that is not empty.
func (b *buckets) cover(set *bounds.Set) {
	if b.zeros > 0 {
		set.AddZero()
	}
	for i, n := range b.counts {
		if n > 0 {
			set.Add(b.scale(), b.offset+i)
		}
	}
}

// explicitCounts returns the counts of an explicit histogram with the bounds of a set: the values up to the first bound, from each bound to the next, and above
// the last. cover has been called: each bucket lies between two bounds.
func (b *buckets) explicitCounts(set *bounds.Set) []uint64 {
	uppers := set.Uppers()
	out := make([]uint64, len(uppers)+1)
	at := 0
	for i, n := range b.counts {
		if n == 0 {
			continue
		}
		upper := (b.offset+i)>>(b.scale()-set.Scale()) + 1 // of the bucket, at the set's scale, never finer than the histogram's
		for uppers[at] < upper {
			at++
		}
		out[at] += n
	}
	if b.zeros > 0 { // the first bound is 0, and only zeros are up to it (cover)
		out[0] = b.zeros
	}
	return out
}

// Limits of a stored histogram: numbers above 0 are 2^−1074 to 2^1024.
const (
	mostIndex = 1074 << maxScale // of a bucket, to either side of 0
	coarsest  = maxScale + 11    // scale −11, of base 2^2048: a bucket below 1 and a bucket above hold all numbers
)
