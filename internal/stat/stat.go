// Package stat has the figures of order that every part of trainbridge uses. All but Middle take values in rising order.
package stat

import (
	"math"
	"slices"
)

// MADToSigma is the standard deviation of a normal distribution by its MAD: 1/Φ⁻¹(¾).
const MADToSigma = 1.4826

// Finite says whether x is a number: neither NaN nor infinite. x-x == 0 is not that for every x that is a product: arm64 computes both in one operation, and
// what the rounding took off is left.
func Finite(x float64) bool { return math.Abs(x) <= math.MaxFloat64 }

// Median is numpy.median: the middle value, of an even number the mean of the two in the middle. NaN: there are no values.
func Median[T ~int64 | ~float32 | ~float64](sorted []T) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	// Halves first: the sum of two large values must not be +Inf.
	return float64(sorted[(n-1)/2])/2 + float64(sorted[n/2])/2
}

// Middle is the median of values in any order.
func Middle(values []float64) float64 { return Median(slices.Sorted(slices.Values(values))) }

// Quantile is the value at a rank, numpy.quantile with the method "inverted_cdf": the lowest value that at least the share q of all does not exceed. There must
// be values.
func Quantile(sorted []float64, q float64) float64 {
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}

// MAD is the median of |v − median|: the distances grow to both sides of the median, so that walking outwards meets them in order. There must be values.
func MAD(sorted []float64, median float64) float64 {
	n := len(sorted)
	hi, _ := slices.BinarySearch(sorted, median)
	lo := hi - 1
	var last, d float64
	for range n/2 + 1 {
		last = d
		if lo < 0 || hi < n && sorted[hi]-median <= median-sorted[lo] {
			d = sorted[hi] - median
			hi++
		} else {
			d = median - sorted[lo]
			lo--
		}
	}
	if n%2 == 1 {
		return d
	}
	return last/2 + d/2
}

// Sigma is the standard deviation as the median and the MAD of values tell it, whatever outliers there are.
func Sigma(sorted []float64, median float64) float64 { return MADToSigma * MAD(sorted, median) }
