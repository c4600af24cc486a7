package baseline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// judge computes the result of Observe the long way.
func judge(window []float64, v float64) (median, deviation float64) {
	middle := func(v []float64) float64 {
		slices.Sort(v)
		return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	median = middle(slices.Clone(window))
	var off []float64
	for _, x := range window {
		off = append(off, math.Abs(x-median))
	}
	sigma := max(1.4826*middle(off), median/100)
	return median, (median - v) / sigma
}

func TestByHand(t *testing.T) {
	b := New(10, 3.5)
	for _, v := range []float64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109} {
		_, ok := b.Observe(v)
		require.False(t, ok, "not from fewer than ten")
	}
	// Median 104.5, distances 0.5 0.5 1.5 1.5 2.5 2.5 3.5 3.5 4.5 4.5: MAD 2.5, σ 3.7065.
	got, ok := b.Observe(80)
	assert.True(t, ok)
	assert.InDelta(t, 104.5, got.Median, 1e-12)
	assert.InDelta(t, 24.5/3.7065, got.Deviation, 1e-12)
	// Now 80 took the place of 100; the median is the same, the distances 24.5 0.5 0.5 1.5 1.5 2.5 2.5 3.5 3.5 4.5.
	got, _ = b.Observe(120)
	assert.InDelta(t, 104.5, got.Median, 1e-12)
	assert.InDelta(t, -15.5/3.7065, got.Deviation, 1e-12)
}

func TestFloor(t *testing.T) {
	b := New(20, 3.5)
	for range 15 {
		b.Observe(200e9)
	}
	got, ok := b.Observe(190e9)
	assert.True(t, ok)
	assert.InDelta(t, 5, got.Deviation, 1e-9, "5 % below, with a floor of 1 %")
}

func TestNoBandwidth(t *testing.T) {
	b := New(10, 3.5)
	for range 20 {
		for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -5} {
			_, ok := b.Observe(v)
			require.False(t, ok)
		}
	}
	for range 10 {
		_, ok := b.Observe(1)
		require.False(t, ok, "those before were not added")
	}
	_, ok := b.Observe(math.NaN())
	require.False(t, ok)
	_, ok = b.Observe(1)
	require.True(t, ok)
}

func TestOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, window := range []int{10, 11, 50, 333} {
		b := New(window, 3.5)
		var all []float64
		for i := range 4 * window {
			v := math.Exp(rng.NormFloat64())
			if i%3 == 0 {
				v = float64(1 + rng.IntN(4)) // ties
			}
			got, ok := b.Observe(v)
			require.Equal(t, len(all) >= 10, ok)
			if ok {
				m, d := judge(all[max(0, len(all)-window):], v)
				require.InDelta(t, m, got.Median, 1e-12)
				require.InDelta(t, d, got.Deviation, 1e-9*math.Abs(d)+1e-12)
			}
			all = append(all, v)
		}
	}
}

func TestWindow(t *testing.T) {
	for _, tt := range [][2]int{{-1, 10}, {0, 10}, {50, 50}, {1 << 40, 4096}} {
		b := New(tt[0], 3.5)
		for i := range 5000 {
			b.Observe(float64(i + 1))
		}
		assert.Len(t, b.ring, tt[1])
		assert.Len(t, b.sorted, tt[1])
	}
}

func TestBucket(t *testing.T) {
	for size, want := range map[int64]int{math.MinInt64: -1, -1: -1, 0: -1, 1: 1, 7: 7, 8: 24, 15: 31, 16: 32, 17: 32, 18: 33, 1 << 20: 160, 1<<21 - 1: 167} {
		assert.Equal(t, want, Bucket(size), size)
	}
	from, last := int64(8), Bucket(8)
	for size := int64(9); size < 1<<17; size++ {
		if b := Bucket(size); b != last {
			require.Equal(t, last+1, b, size)
			from, last = size, b
		}
		require.Less(t, float64(size)/float64(from), 1.125, size)
	}
	assert.Equal(t, 62*8+7, Bucket(math.MaxInt64))
}

// TestRow: neither one nor two low bandwidths are low; of three each is 20 % and 3.5 robust standard deviations below the median; noise needs more; and common
// values are usual.
func TestRow(t *testing.T) {
	steady := slices.Repeat([]float64{100, 101, 99}, 10) // σ̂ is 1.4826
	noisy := slices.Repeat([]float64{100, 110, 90}, 10)  // σ̂ is 14.826
	for name, tt := range map[string]struct {
		before, then []float64
		low          []bool
	}{
		"two, and again":          {steady, []float64{50, 50, 100, 50, 50, 85}, []bool{false, false, false, false, false, false}},
		"three and more":          {steady, []float64{70, 70, 70, 70, 95, 70}, []bool{false, false, true, true, false, false}},
		"7 % less":                {steady, []float64{93, 93, 93, 93, 93, 93}, make([]bool, 6)},
		"19 % less":               {steady, []float64{81, 81, 81, 81, 81, 81}, make([]bool, 6)},
		"noise: 2 σ each":         {noisy, []float64{70, 70, 70, 70}, make([]bool, 4)},
		"noise: more of them":     {noisy, slices.Repeat([]float64{60}, 6), []bool{false, false, false, false, false, true}},
		"each fifth was so low":   {slices.Repeat([]float64{100, 101, 99, 100, 70}, 6), []float64{70, 70, 70, 70}, make([]bool, 4)},
		"each thirtieth was so":   {append(slices.Clone(steady), 70, 100, 101), []float64{70, 70, 70}, []bool{false, false, true}},
		"one is as low as it may": {steady, []float64{1e-9, 85, 1e-9, 1e-9}, make([]bool, 4)},
	} {
		b := New(50, 3.5)
		for _, v := range tt.before {
			j, _ := b.Observe(v)
			require.False(t, j.Low, name)
		}
		var low []bool
		for _, v := range tt.then {
			j, _ := b.Observe(v)
			low = append(low, j.Low)
		}
		assert.Equal(t, tt.low, low, name)
	}
}

// FuzzObserve compares with the long way.
func FuzzObserve(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 255, 0, 9, 200, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		b := New(12, 3.5)
		var all []float64
		for _, c := range in {
			v := float64(c) * 1e9
			got, ok := b.Observe(v)
			require.Equal(t, c > 0 && len(all) >= 10, ok)
			if ok {
				m, d := judge(all[max(0, len(all)-12):], v)
				require.InDelta(t, m, got.Median, 0)
				require.InDelta(t, d, got.Deviation, 1e-9*math.Abs(d)+1e-12)
			}
			if c > 0 {
				all = append(all, v)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	for _, window := range []int{50, 1000} {
		b.Run(map[int]string{50: "50", 1000: "1000"}[window], func(b *testing.B) {
			base, rng := New(window, 3.5), rand.New(rand.NewPCG(1, 2))
			values := make([]float64, 4096)
			for i := range values {
				values[i] = 100 + rng.NormFloat64()
				base.Observe(values[i])
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				base.Observe(values[i&4095])
				i++
			}
		})
	}
}
