// Package baseline judges a bandwidth by earlier ones.
package baseline

import (
	"math"
	"math/bits"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	minValues = 10 // fewer values are no basis for a judgement
	maxWindow = 4096
	floor     = 0.01 // of the median: a spread below 1 % is not worth an alarm

	// LeastEffect is how far below the median a bandwidth must be, relative. Bandwidths of a healthy network vary by 10 % and more with message size,
	// congestion and foreign traffic; a collective at 80 % takes 25 % longer. A smaller loss does not make a step slow: a step is slow from 10 % on, and hides
	// some of its transfers.
	LeastEffect = 0.2

	inARow = 3   // a slow link slows the following collectives too; a single transfer may be slow for many reasons
	enough = 20  // values for an estimate of common ones: with fewer, the row must be longer
	common = 0.1 // of the window: low bandwidths as common as this are usual
)

// Baseline is the window of one population of bandwidths: a communicator, an operation, a size bucket. It is not safe for concurrent use.
type Baseline struct {
	ring      []float64 // the values in the order of arrival
	next      int       // index in ring of the oldest, once ring is full
	sorted    []float64 // the same values by size
	size      int       // number of values looked back on
	threshold float64   // robust standard deviations

	evidence float64 // of the latest row of low bandwidths: the sum of their squared deviations
	usual    bool    // equally low bandwidths were common before the row
}

// New makes a Baseline over the last window values (10 to 4096). threshold is the deviation of each of three low bandwidths, in robust standard deviations
// below the median; in a longer row each may be closer.
func New(window int, threshold float64) *Baseline {
	window = min(max(window, minValues), maxWindow)
	return &Baseline{size: window, threshold: threshold}
}

// Judgement is of one bandwidth, by the window before.
type Judgement struct {
	Median    float64 // of the window
	Deviation float64 // how many robust standard deviations (1.4826·MAD, at least 1 % of the median) below the median: negative above
	Low       bool
}

// Observe judges v by the window before and adds v to the window. ok is false for the first 10 values and for values that are no bandwidth: NaN, ±Inf and
// values ≤ 0, which are not added.
//
// v is low as the last of a row of values [LeastEffect] below the median, unless chance explains the row. With normal noise the probability of a row with
// deviations d falls as exp(−Σd²/2): the sum has to reach the sum of three at the threshold. No deviation counts for more than the threshold: a row has at
// least three. If a tenth of the window before the row was as low, low bandwidths are usual, for example of overlapping transfers.
func (b *Baseline) Observe(v float64) (j Judgement, ok bool) {
	if !(v > 0) || math.IsInf(v, 1) {
		return j, false
	}
	if len(b.sorted) >= minValues {
		j.Median = stat.Median(b.sorted)
		j.Deviation, ok = (j.Median-v)/max(stat.Sigma(b.sorted, j.Median), floor*j.Median), true
		j.Low = b.row(v, &j)
	}
	b.add(v)
	return j, ok
}

// row adds v to the row of low bandwidths, or ends the row. low: the row is long and deep enough for v to be an anomaly.
func (b *Baseline) row(v float64, j *Judgement) (low bool) {
	limit := (1 - LeastEffect) * j.Median
	if v > limit {
		b.evidence = 0
		return false
	}
	if b.evidence == 0 { // the first of a row
		below, _ := slices.BinarySearch(b.sorted, limit)
		b.usual = float64(below) >= common*float64(len(b.sorted))
	}
	counted := min(j.Deviation, b.threshold)
	b.evidence += counted * counted
	required := inARow * max(1, float64(min(enough, b.size))/float64(len(b.sorted))) // values at the threshold: more while the window has few
	return !b.usual && b.evidence >= required*b.threshold*b.threshold
}

// add adds v to the window. A full window loses its oldest value.
func (b *Baseline) add(v float64) {
	if len(b.ring) < b.size {
		b.ring = append(b.ring, v)
		i, _ := slices.BinarySearch(b.sorted, v)
		b.sorted = slices.Insert(b.sorted, i, v)
		return
	}
	old := b.ring[b.next]
	b.ring[b.next] = v
	b.next = (b.next + 1) % b.size
	from, _ := slices.BinarySearch(b.sorted, old)
	to, _ := slices.BinarySearch(b.sorted, v)
	if to > from { // the values between move by one place
		to--
		copy(b.sorted[from:to], b.sorted[from+1:to+1])
	} else {
		copy(b.sorted[to+1:from+1], b.sorted[to:from])
	}
	b.sorted[to] = v
}

// Bucket returns the bucket of a size in By, eight for each power of two: sizes of a bucket differ by less than 1/8, and so do their bandwidths where latency
// dominates, less than [LeastEffect]. Sizes below 8 are buckets of their own; −1: no size (≤ 0).
func Bucket(size int64) int {
	if size <= 0 {
		return -1
	}
	power := bits.Len64(uint64(size)) - 1
	if power < eighths {
		return int(size)
	}
	eighth := int(uint64(size) >> (power - eighths) & (1<<eighths - 1)) // the three bits behind the highest
	return power<<eighths + eighth
}

const eighths = 3 // bits
