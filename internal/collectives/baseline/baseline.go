// Package baseline judges a bandwidth by the bandwidths before it.
package baseline

import (
	"math"
	"math/bits"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	minValues = 10 // before that there is nothing to judge by
	maxWindow = 4096
	floor     = 0.01 // of the median: a spread below 1 % is not worth an alarm
)

// Baseline is the window of one population of bandwidths: a communicator, an operation, a size bucket. It is not safe for concurrent use.
type Baseline struct {
	ring   []float64 // in the order of arrival
	next   int
	sorted []float64
	size   int
}

// New makes a Baseline over the last window values (10 to 4096).
func New(window int) *Baseline {
	window = min(max(window, minValues), maxWindow)
	return &Baseline{size: window}
}

// Observe judges v by the window before it and adds it to the window. median is the window's, deviation how many robust standard deviations
// (1.4826·MAD, at least 1 % of the median) v is below it: negative above. ok is false for the first 10 values and for values that are no bandwidth: NaN, ±Inf
// and values ≤ 0, which are not added.
func (b *Baseline) Observe(v float64) (median, deviation float64, ok bool) {
	if !(v > 0) || math.IsInf(v, 1) {
		return 0, 0, false
	}
	if len(b.sorted) >= minValues {
		median = stat.Median(b.sorted)
		deviation, ok = (median-v)/max(stat.Sigma(b.sorted, median), floor*median), true
	}
	b.add(v)
	return median, deviation, ok
}

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
	if to > from { // the values between move by one, either way
		to--
		copy(b.sorted[from:to], b.sorted[from+1:to+1])
	} else {
		copy(b.sorted[to+1:from+1], b.sorted[to:from])
	}
	b.sorted[to] = v
}

// Bucket is the power-of-two bucket of a size in By: sizes from 2^b on and below 2^(b+1) are in bucket b; −1: no size (≤ 0).
func Bucket(size int64) int {
	if size <= 0 {
		return -1
	}
	return bits.Len64(uint64(size)) - 1
}
