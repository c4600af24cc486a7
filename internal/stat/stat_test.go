package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Values printed by numpy 2.4: median, quantile(method="inverted_cdf") and median(abs(v - median(v))).
func TestNumpy(t *testing.T) {
	for _, tt := range []struct {
		values                []float64
		median, p10, p50, p95 float64
		deviation             float64
	}{
		{[]float64{7}, 7, 7, 7, 7, 0},
		{[]float64{1, 2}, 1.5, 1, 1, 2, 0.5},
		{[]float64{1, 2, 4}, 2, 1, 2, 4, 1},
		{[]float64{-3, 0, 0.5, 10}, 0.25, -3, 0, 10, 1.75},
		{[]float64{1, 1, 2, 2, 4, 6, 9}, 2, 1, 2, 9, 1},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19}, 9.5, 1, 9, 18, 5},
	} {
		assert.InDelta(t, tt.median, Median(tt.values), 0, "%v", tt.values)
		assert.InDelta(t, tt.p10, Quantile(tt.values, 0.1), 0, "%v", tt.values)
		assert.InDelta(t, tt.p50, Quantile(tt.values, 0.5), 0, "%v", tt.values)
		assert.InDelta(t, tt.p95, Quantile(tt.values, 0.95), 0, "%v", tt.values)
		slices.Reverse(tt.values)
		assert.InDelta(t, tt.p95, AtQuantile(tt.values, 0.95), 0, "%v", tt.values)
		assert.InDelta(t, tt.deviation, MAD(tt.values, Median(tt.values)), 0, "%v", tt.values)
	}
	assert.InDelta(t, 2.5, Median([]int64{1, 2, 3, 9}), 0)
	assert.InDelta(t, 2.5, Middle([]float64{4, 1, 3, 2}), 0)
	assert.InDelta(t, math.MaxFloat64, Median([]float64{math.MaxFloat64, math.MaxFloat64}), 0)
	assert.True(t, math.IsNaN(Median[float64](nil)))
}

// The MAD equals the one by sorting the distances.
func TestMAD(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 200; n++ {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Round(20*rng.NormFloat64()) / 4 // with ties
		}
		slices.Sort(values)
		median := Median(values)
		far := make([]float64, n)
		for i, v := range values {
			far[i] = math.Abs(v - median)
		}
		slices.Sort(far)
		assert.InDelta(t, Median(far), MAD(values, median), 0)
		assert.InDelta(t, 1.4826*Median(far), Sigma(values, median), 0)
	}
}

func TestFinite(t *testing.T) {
	for _, share := range []float64{0.1, 1.0 / 3, 0.986} {
		assert.True(t, Finite(100*share))
	}
	for _, x := range []float64{0, -1, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64} {
		assert.True(t, Finite(x))
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		assert.False(t, Finite(x))
	}
}

// Select is the value of a sorted list, and parts the others, also where many are the same or none is a number.
func TestSelect(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 200; n++ {
		values := make([]float64, n)
		for i := range values {
			values[i] = math.Round(float64(n%7)*4*rng.NormFloat64()) / 4 // with ties, or all the same
		}
		sorted := slices.Sorted(slices.Values(values))
		assert.InDelta(t, Median(sorted), Middle(values), 0)
		rank := rng.IntN(n)
		assert.InDelta(t, sorted[rank], Select(values, rank), 0)
		assert.LessOrEqual(t, slices.Max(values[:rank+1]), sorted[rank])
		assert.GreaterOrEqual(t, slices.Min(values[rank:]), sorted[rank])
		slices.Sort(values)
		assert.Equal(t, sorted, values)
		values[rng.IntN(n)] = math.NaN()
		Select(values, rank)
	}
}

// The values below x, also of several equal ones.
func TestBelow(t *testing.T) {
	values := []float64{1, 2, 2, 2, 5}
	for x, want := range map[float64]int{0: 0, 1: 0, 1.5: 1, 2: 1, 3: 4, 5: 4, 6: 5, math.Inf(1): 5} {
		assert.Equal(t, want, Below(values, x), "%v", x)
	}
	assert.Zero(t, Below(nil, 1))
}
