package digest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func valuesOf(all ...float64) *Values {
	v := new(Values)
	for _, x := range all {
		v.Add(x)
	}
	return v
}

// The wanted numbers are from numpy 2: quantile, std.
func TestValues(t *testing.T) {
	v := valuesOf(5, 1, math.NaN(), 4, 2, math.Inf(1), 3, 10)
	for q, want := range map[float64]float64{0: 1, 0.1: 1.5, 0.25: 2.25, 0.5: 3.5, 0.95: 8.75, 0.99: 9.75, 1: 10} {
		assert.InDelta(t, want, v.Quantile(q), 1e-12, q)
	}
	assert.Equal(t, int64(6), v.Count())
	assert.InDelta(t, 2.9107081994288304, v.Std(), 1e-12)
	assert.InDeltaSlice(t, []float64{25, 25.0 / 6, 1, 10}, []float64{v.Sum(), v.Mean(), v.Min(), v.Max()}, 1e-12)
	v.Add(0)
	assert.InDelta(t, 3, v.Quantile(0.5), 1e-12, "after a question, too")
	for _, x := range []float64{new(Values).Quantile(0.5), new(Values).Mean(), new(Values).Min(), new(Values).Max(), new(Values).Std()} {
		assert.True(t, math.IsNaN(x))
	}
	assert.Zero(t, new(Values).Sum())
}

// Sums do not depend on the order: 1e16 would swallow each single 1 by itself.
func TestSum(t *testing.T) {
	assert.Equal(t, 1002.0, valuesOf(append(slices.Repeat([]float64{1}, 1002), 1e16, -1e16)...).Sum())                       //nolint:testifylint // exact
	assert.Equal(t, 1002.0, valuesOf(append([]float64{1e16}, append(slices.Repeat([]float64{1}, 1002), -1e16)...)...).Sum()) //nolint:testifylint // exact
}

var distributions = map[string]func(random *rand.Rand) float64{
	"normal":     func(random *rand.Rand) float64 { return 100 + 10*random.NormFloat64() },
	"lognormal":  func(random *rand.Rand) float64 { return math.Exp(3 * random.NormFloat64()) },
	"uniform":    (*rand.Rand).Float64,
	"with zeros": func(random *rand.Rand) float64 { return max(0, random.NormFloat64()) },
	"negative":   func(random *rand.Rand) float64 { return random.NormFloat64() * 1e-6 },
	"constant":   func(*rand.Rand) float64 { return 0.1 },
}

var ranks = []float64{0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1}

// Up to the stored values quantiles equal numpy's; beyond, they are within the stated error, whatever the distribution.
func TestSketch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, draw := range distributions {
		all := make([]float64, mostKept+1)
		v := new(Values)
		for i := range all {
			all[i] = draw(random)
			if i == mostKept {
				require.True(t, v.Exact())
				sorted := slices.Sorted(slices.Values(all[:i]))
				for _, q := range ranks {
					at := q * float64(i-1)
					low, high := sorted[int(at)], sorted[int(math.Ceil(at))]
					assert.InDelta(t, low+(at-math.Floor(at))*(high-low), v.Quantile(q), 1e-12*math.Abs(high), "%s %v", name, q)
				}
			}
			v.Add(all[i])
		}
		require.False(t, v.Exact())
		slices.Sort(all)
		for _, q := range ranks {
			at := q * float64(len(all)-1) // the true one lies between two values
			low, high := all[int(at)], all[int(math.Ceil(at))]
			got := v.Quantile(q)
			low, high = low-QuantileError*math.Abs(low)-1e-300, high+QuantileError*math.Abs(high)+1e-300
			assert.True(t, got >= low && got <= high, "%s %v: %v, %v, %v", name, q, low, got, high)
		}
		assert.InDelta(t, all[0], v.Min(), 0)
		assert.InDelta(t, all[len(all)-1], v.Max(), 0)
	}
}

// A digest of many distributions stores no more values than the budget; which ones is independent of the order.
func TestBudget(t *testing.T) {
	var order []int // the n-th distribution has 100·n values, all together 4,485,000
	for i := range 300 {
		order = append(order, slices.Repeat([]int{i}, 100*i)...)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for _, arrange := range []func(){
		func() {}, func() { slices.Reverse(order) }, func() { random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] }) },
	} {
		arrange()
		all := make([]Values, 300)
		each := func(f func(*Values)) {
			for i := range all {
				f(&all[i])
			}
		}
		var k quantileBudget
		for n, i := range order {
			all[i].Add(float64(n))
			k.count(1, each)
		}
		k.enforce(each)
		for i := range all {
			assert.Equal(t, int64(100*i), all[i].Count())
			assert.Equal(t, i <= 125, all[i].Exact(), "%d: with 25,000 of each they are 4,362,500, with 12,500 they are 2,962,500", i)
		}
	}
}

func TestSeries(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, steps := range []int{1, 4096, 4097, 1_000_000} {
		order := random.Perm(steps)
		var s, sorted Series
		for _, i := range order {
			s.Add(int64(i)-5, float64(i))
		}
		for i := range steps {
			sorted.Add(int64(i)-5, float64(i))
		}
		all := s.Buckets()
		assert.Equal(t, sorted.Buckets(), all, "in any order")
		assert.LessOrEqual(t, len(all), buckets)
		if steps <= 4096 {
			assert.Equal(t, int64(1), s.Width)
		}
		var sum float64
		n := int64(0)
		for i, b := range all {
			n, sum = n+b.Count, sum+b.Sum
			require.True(t, b.Min >= float64(b.At+5) && b.Max < float64(b.At+5+s.Width) && b.Mean() >= b.Min && b.Mean() <= b.Max)
			require.True(t, i == 0 || all[i-1].Max < b.Min)
		}
		assert.Equal(t, int64(steps), n)
		assert.InDelta(t, float64(steps)*float64(steps-1)/2, sum, 0)
	}
	var far Series
	for _, at := range []int64{math.MaxInt64, math.MinInt64, 0} {
		far.Add(at, 1)
	}
	far.Add(0, math.NaN())
	assert.Len(t, far.Buckets(), 3)
}
