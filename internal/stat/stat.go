// Package stat has the order statistics for all parts of trainbridge. All functions but Middle, MedianInPlace, Select and AtQuantile take values in rising
// order.
package stat

import (
	"math"
	"slices"
)

// MADToSigma is the standard deviation of a normal distribution by its MAD: 1/Φ⁻¹(¾).
const MADToSigma = 1.4826

// Finite reports whether x is a number: neither NaN nor infinite. x-x == 0 fails for a product x: arm64 computes both in one operation, and the rounding error
// remains.
func Finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// Median returns numpy.median: the middle value, or of an even number the mean of the two middle values. NaN: no values.
func Median[T ~int64 | ~float32 | ~float64](sorted []T) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	// Halves first: the sum of two large values must not be +Inf.
	return float64(sorted[(n-1)/2])/2 + float64(sorted[n/2])/2
}

// Middle returns the median of values in any order, without a change of their order. NaN: no values.
func Middle(values []float64) float64 { return MedianInPlace(slices.Clone(values)) }

// MedianInPlace returns the median of values in any order, and reorders the values. NaN: no values.
func MedianInPlace(values []float64) float64 {
	n := len(values)
	if n == 0 {
		return math.NaN()
	}
	upper := Select(values, n/2)
	if n%2 == 1 {
		return upper
	}
	return slices.Max(values[:n/2])/2 + upper/2
}

// Select returns the value at a rank from 0, by quickselect. Values are reordered: none before the rank is larger, and none behind is smaller. Time O(n)
// mostly.
func Select(values []float64, rank int) float64 {
	for len(values) > 16 {
		n := len(values)
		pivot := max(min(values[0], values[n/2]), min(max(values[0], values[n/2]), values[n-1])) // the median of three
		below, above := 0, n                                                                     // values[below:above] are equal to the pivot, or not compared yet
		for i := 0; i < above; {
			switch x := values[i]; {
			case x < pivot:
				values[i], values[below] = values[below], x
				below++
				i++
			case x > pivot:
				above--
				values[i], values[above] = values[above], x
			default:
				i++
			}
		}
		switch {
		case rank < below:
			values = values[:below]
		case rank >= above:
			values, rank = values[above:], rank-above
		default:
			return pivot
		}
	}
	slices.Sort(values)
	return values[rank]
}

// Quantile returns the value at a rank, numpy.quantile with the method "inverted_cdf": the lowest value not exceeded by at least the share q of all. There must
// be values.
func Quantile(sorted []float64, q float64) float64 { return sorted[quantileRank(len(sorted), q)] }

// AtQuantile returns Quantile of values in any order, which are reordered as by Select.
func AtQuantile(values []float64, q float64) float64 {
	return Select(values, quantileRank(len(values), q))
}

func quantileRank(n int, q float64) int { return min(max(int(math.Ceil(q*float64(n)))-1, 0), n-1) }

// MAD returns the median of |v − median|. There must be values. The n/2+1 values closest to the median are neighbours in the list, and the farthest of them are
// the middle distances. How many of them are above is found by binary search: each included value above is no farther than the next excluded value below, and
// vice versa.
func MAD(sorted []float64, median float64) float64 {
	n := len(sorted)
	hi := Below(sorted, median) // index of the first value above or at the median
	half := n/2 + 1
	from, to := max(0, half-hi), min(half, n-hi) // bounds of the number of close values from hi on
	for from < to {
		middle := (from + to) / 2
		if sorted[hi+middle]-median <= median-sorted[hi-half+middle] {
			from = middle + 1
		} else {
			to = middle
		}
	}
	lo := hi - half + from
	hi += from
	farthest := func(lo, hi int) float64 { return max(median-sorted[lo], sorted[hi-1]-median) }
	d := farthest(lo, hi)
	if n%2 == 1 {
		return d
	}
	if median-sorted[lo] == d { // the farthest is the first: the next distance is without it
		lo++
	} else {
		hi--
	}
	return farthest(lo, hi)/2 + d/2
}

// Below returns the number of values below x. slices.BinarySearch takes twice as long, as NaN may be among its values.
func Below(sorted []float64, x float64) int {
	from, to := 0, len(sorted)
	for from < to {
		if middle := (from + to) / 2; sorted[middle] < x {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// Sigma returns the standard deviation estimated from the median and the MAD of values, robust against outliers.
func Sigma(sorted []float64, median float64) float64 { return MADToSigma * MAD(sorted, median) }
