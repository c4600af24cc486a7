package digest

import (
	"cmp"
	"math"
	"slices"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// QuantileError is the relative error of quantiles beyond the stored values: the result is within 1 % of the true one.
const QuantileError = 0.01

const (
	mostKept  = 100_000 // values of a kind with exact quantiles; beyond, a sketch
	leastKept = 2048    // of each kind, however many kinds
	budget    = 4 << 20 // values of all kinds of a digest together: 32 MiB
	lookEvery = 65_536  // spans between two looks at the budget
)

// bins of a sketch: 17 decades. Values below the highest 17 are counted in the lowest bin.
const bins = 2048

// indices is the bucket of a value in a sketch. The interpolation is twice as fast as a logarithm, and has 1 % more buckets.
var indices = func() mapping.IndexMapping {
	m, err := mapping.NewCubicallyInterpolatedMapping(QuantileError)
	if err != nil {
		panic(err) // the constant is between 0 and 1
	}
	return m
}()

// Total has the count, the sum and the extremes of numbers, all exact. The zero value is empty.
type Total struct {
	n        int64
	sum      sum
	min, max float64
}

// Add adds a number; NaN and infinities are ignored.
func (t *Total) Add(x float64) {
	if !stat.Finite(x) {
		return
	}
	if t.n == 0 {
		t.min, t.max = x, x
	}
	t.n++
	t.sum.add(x)
	t.min, t.max = min(t.min, x), max(t.max, x)
}

// Count returns the number of values.
func (t *Total) Count() int64 { return t.n }

// Sum returns the sum of the numbers; 0 without numbers.
func (t *Total) Sum() float64 { return t.sum.value() }

// Mean returns the mean of the numbers; NaN without numbers.
func (t *Total) Mean() float64 { return t.Sum() / float64(t.n) }

// Min returns the lowest number; NaN without numbers.
func (t *Total) Min() float64 { return t.orNaN(t.min) }

// Max returns the highest number; NaN without numbers.
func (t *Total) Max() float64 { return t.orNaN(t.max) }

// orNaN returns x, or NaN without numbers.
func (t *Total) orNaN(x float64) float64 {
	if t.n == 0 {
		return math.NaN()
	}
	return x
}

// Values are numbers with their distribution: quantiles are exact up to 100,000 values if the budget of the digest has room for them, and within
// [QuantileError] beyond. The zero value is empty.
type Values struct {
	Total

	mean, m2 float64 // and the sum of the squared distances from the mean (Welford)
	exact    []float64
	sorted   bool
	sketch   *ddsketch.DDSketch
}

// Add adds a number; NaN and infinities are ignored.
func (v *Values) Add(x float64) {
	if !stat.Finite(x) {
		return
	}
	v.Total.Add(x)    // counts x in v.n
	off := x - v.mean // from the mean before
	v.mean += off / float64(v.n)
	v.m2 += off * (x - v.mean)
	if v.sketch == nil && len(v.exact) < mostKept {
		v.exact, v.sorted = append(v.exact, x), false
		return
	}
	v.ensureSketch()
	v.addToSketch(x)
}

// ensureSketch replaces the stored values by a sketch, unless there is one already.
func (v *Values) ensureSketch() {
	if v.sketch != nil {
		return
	}
	v.sketch = ddsketch.NewDDSketch(indices, store.NewCollapsingLowestDenseStore(bins), store.NewCollapsingLowestDenseStore(bins))
	for _, x := range v.exact {
		v.addToSketch(x)
	}
	v.exact = nil
}

// quantileBudget bounds the stored values, of all kinds of a digest. The zero value has seen none.
type quantileBudget struct {
	most  int64 // of one kind; 0: mostKept
	spans int   // since the budget was looked at
}

// count counts spans, and checks the budget from time to time: if the values of all kinds exceed it, the limit per kind is halved. The final limit depends on
// the number of values of each kind, not on their order: a kind that has become a sketch counts as full.
func (k *quantileBudget) count(spans int, each func(func(*Values))) {
	if k.spans += spans; k.spans >= lookEvery {
		k.enforce(each)
	}
}

// enforce halves the limit per kind, down to leastKept, until the values of all kinds fit into the budget, and makes sketches of the kinds above the limit.
func (k *quantileBudget) enforce(each func(func(*Values))) {
	k.spans, k.most = 0, cmp.Or(k.most, mostKept)
	for ; k.most > leastKept; k.most = max(k.most/2, leastKept) {
		all := int64(0)
		each(func(v *Values) { all += min(v.n, k.most) })
		if all <= budget {
			break
		}
	}
	each(func(v *Values) {
		if v.n > k.most {
			v.ensureSketch()
		}
	})
}

// addToSketch adds a number to the sketch. The sketch refuses numbers beyond ±10³⁰⁰, which then are in no quantile.
func (v *Values) addToSketch(x float64) { _ = v.sketch.Add(x) }

// Std returns the standard deviation of the numbers, as numpy.std; NaN without numbers.
func (v *Values) Std() float64 { return v.orNaN(math.Sqrt(v.m2 / float64(v.n))) }

// Exact reports whether quantiles are exact.
func (v *Values) Exact() bool { return v.sketch == nil }

// Quantile returns the value below which a share q of all lie, interpolated between neighbours, as in numpy.quantile and pandas. NaN without numbers.
func (v *Values) Quantile(q float64) float64 {
	switch {
	case v.n == 0:
		return math.NaN()
	case q <= 0:
		return v.min
	case q >= 1:
		return v.max
	case v.sketch != nil:
		x, err := v.sketch.GetValueAtQuantile(q)
		if err != nil { // all were refused
			return math.NaN()
		}
		return min(max(x, v.min), v.max)
	}
	if !v.sorted {
		slices.Sort(v.exact)
		v.sorted = true
	}
	at := q * float64(len(v.exact)-1) // between two indices
	low := int(at)
	x := v.exact[low]
	if low+1 < len(v.exact) {
		x += (at - float64(low)) * (v.exact[low+1] - x)
	}
	return x
}

// sum adds with the error of each addition kept (Neumaier): the result is independent of the order of the numbers, but for the last digit.
type sum struct{ s, err float64 }

// add adds x to the sum, and the rounding error of the addition to err.
func (t *sum) add(x float64) {
	s := t.s + x
	if math.Abs(t.s) >= math.Abs(x) {
		t.err += t.s - s + x
	} else {
		t.err += x - s + t.s
	}
	t.s = s
}

// value returns the sum, corrected by the rounding errors.
func (t *sum) value() float64 { return t.s + t.err }
