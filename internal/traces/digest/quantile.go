package digest

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Values are figures of which quantiles are of interest.
type Values []float64

// Quantile is the smallest value that at least q of all do not exceed, NaN where there is none.
func (v Values) Quantile(q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}

// add keeps a figure that is known.
func (v *Values) add(x float64) {
	if !math.IsNaN(x) {
		*v = append(*v, x)
	}
}

// ByCount are the keys, the highest numbers first.
func ByCount[N int | int64](m map[string]N) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
}
