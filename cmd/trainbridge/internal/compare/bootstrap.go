package compare

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	resamples = 20_000 // draws for each interval
	mostUnits = 100    // more units are joined into blocks of neighbours: an interval of a mean needs no more
	fewUnits  = 6      // with fewer there is no finding
	manyUnits = 20     // with fewer the draws have too few rare values: the interval is no narrower than Welch's

	fewIndependent  = 3    // values independent of each other: with fewer there is no finding
	mostCorrelation = 0.98 // correlation of neighbours: a series with longer likeness drifts, and has no mean

	equal = 1e-9 // relative: nearer means are the same number, written with other roundings
)

// unit is what the bootstrap draws as one: the values of a figure in a step, or in several steps in a row.
type unit struct{ sum, count float64 }

// mean returns the mean of the values of all units.
func mean(units []unit) float64 {
	var all unit
	for _, u := range units {
		all.sum += u.sum
		all.count += u.count
	}
	return all.sum / all.count
}

// blocksOf joins neighbouring units into blocks that are independent of each other, as the bootstrap needs. If τ, the autocorrelation time, is above 1, a block
// is three τ long (after Politis and White's rule), but never so long that fewer than fewUnits blocks are left. Blocks are at least so long that no more than
// mostUnits are left. correctDrift makes up for blocks that are too short. like has a value for each unit, from which τ is computed. length is the number of
// units in a block, 1 if units are not joined; tau is τ in units.
func blocksOf(units []unit, like []float64) (blocks []unit, length int, tau float64) {
	length = (len(units) + mostUnits - 1) / mostUnits
	if tau = autocorrelationTime(like); tau > 1 {
		length = max(length, min(int(math.Ceil(3*tau)), len(units)/fewUnits))
	}
	n := len(units) / max(1, length) // blocks
	if n == len(units) || n == 0 {
		return units, 1, tau
	}
	for i := range n {
		var block unit
		for _, u := range units[i*len(units)/n : (i+1)*len(units)/n] {
			block.sum += u.sum
			block.count += u.count
		}
		blocks = append(blocks, block)
	}
	return blocks, length, tau
}

// autocorrelationTime returns the autocorrelation time τ of a series, 1 + 2 Σρ over the lags: a mean of n values is as certain as a mean of n/τ independent
// values. 1: the values are independent.
func autocorrelationTime(values []float64) float64 {
	n := len(values)
	m, variance := 0.0, 0.0
	for _, v := range values {
		m += v / float64(n)
	}
	for _, v := range values {
		variance += (v - m) * (v - m)
	}
	tau, rho := 1.0, 0.0                        // rho becomes the highest correlation of any lag
	if variance <= float64(n)*equal*equal*m*m { // all values are the same
		return tau
	}
	for lag := 1; lag < n/4; lag++ { // longer lags have too few pairs of values
		c := 0.0
		for i := lag; i < n; i++ {
			c += (values[i] - m) * (values[i-lag] - m)
		}
		if c /= variance; c < 1.96/math.Sqrt(float64(n)) { // within what independent values show by chance, in 95 of 100 series
			break
		}
		tau += 2 * c
		rho = max(rho, c)
	}
	// Short series show too little of a correlation: rho is raised by the known bias of its estimate and by a standard error. τ is at least that of a
	// first-order autoregression with this rho.
	if rho > 0 {
		rho = min(rho+(1+4*rho)/float64(n)+math.Sqrt((1-rho*rho)/float64(n)), mostCorrelation)
		tau = max(tau, (1+rho)/(1-rho))
	}
	return tau
}

// estimate is the difference of the means of two runs, with intervals.
type estimate struct {
	a, b       float64 // means
	difference interval
	ratio      interval // B/A; NaN where a mean may be 0 or less
	told       bool     // there are enough units for a finding
}

// interval is a measured value, and from where to where the true value lies with the given confidence.
type interval struct{ value, low, high float64 }

// noDifference reports whether no difference is found: too few units, or an interval that contains 0.
func (e *estimate) noDifference() bool {
	return !e.told || e.difference.low <= 0 && e.difference.high >= 0
}

// compareMeans estimates the means of both runs, their difference and ratio, with intervals of the given confidence. It draws units at random, again and again,
// from each run, or the same from both where they are pairs. An interval holds the middle of these draws, widened as a t interval is beside a normal one
// (Hesterberg 2014, expanded percentiles). BCa intervals find more false differences than their confidence allows: at 99 %, with skewed values of 39 steps, BCa
// intervals missed the truth in 2 to 5 of 100 pairs of runs, the intervals here in 1 to 2. Of few units the interval is no narrower than Welch's; of fewer than
// fewUnits it is infinite. name seeds the draws: a figure has the same interval each time.
func compareMeans(name string, a, b []unit, paired bool, confidence float64) (e estimate) {
	e = estimate{a: mean(a), b: mean(b)}
	e.difference.value, e.ratio.value = e.b-e.a, e.b/e.a
	if e.a <= 0 || e.b < 0 { // a ratio has no meaning
		e.ratio.value = math.NaN()
	}
	e.told = min(len(a), len(b)) >= fewUnits
	if !e.told {
		e.difference.low, e.difference.high, e.ratio.low, e.ratio.high = math.Inf(-1), math.Inf(1), math.NaN(), math.NaN()
		return e
	}
	influence, freedom := influences(a, b, paired)
	squares := 0.0
	for _, u := range influence {
		squares += u * u
	}
	// Nothing to draw where no unit moves the difference (squares is 0), as with the same value throughout each run, or where all values of both runs are the
	// same but for roundings: the interval is the difference itself.
	sameMean := math.Abs(e.difference.value) <= equal*math.Abs(e.a)
	if squares == 0 || sameMean && squares <= equal*equal*e.a*e.a {
		if sameMean {
			e.difference.value = 0
		}
		e.difference.low, e.difference.high, e.ratio.low, e.ratio.high = e.difference.value, e.difference.value, e.ratio.value, e.ratio.value
		return e
	}
	h := fnv.New64a()
	h.Write([]byte(name))
	random := &dice{pcg: rand.NewPCG(1, h.Sum64())}
	differences, ratios := make([]float64, resamples), make([]float64, resamples)
	for i := range differences {
		ma, mb := resample(random, a, b, paired)
		differences[i], ratios[i] = mb-ma, mb/ma
	}
	// The interval goes from one quantile of the draws to another. Fewer draws than tail lie beyond: as many as of a normal distribution beyond the t quantile
	// times √(n/(n−1)), because draws from n units scatter too little.
	tail := (1 - confidence) / 2
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(1 - tail)
	low := distuv.UnitNormal.CDF(-t * math.Sqrt((freedom+1)/freedom)) // the share of draws below the interval
	e.difference.low, e.difference.high = stat.AtQuantile(differences, low), stat.AtQuantile(differences, 1-low)
	e.ratio.low, e.ratio.high = stat.AtQuantile(ratios, low), stat.AtQuantile(ratios, 1-low)
	if min(len(a), len(b)) < manyUnits {
		t *= math.Sqrt(squares) // now half of Welch's interval
		e.difference.low, e.difference.high = min(e.difference.low, e.difference.value-t), max(e.difference.high, e.difference.value+t)
		// B/A is 1 + (B − A)/A.
		e.ratio.low, e.ratio.high = min(e.ratio.low, 1+e.difference.low/e.a), max(e.ratio.high, 1+e.difference.high/e.a)
	}
	// Nor has the ratio a meaning if a draw had a mean of 0 or less: the lowest ratio is then 0 or less, or the highest infinite.
	if math.IsNaN(e.ratio.value) || !(slices.Min(ratios) > 0) || math.IsInf(slices.Max(ratios), 1) {
		e.ratio = interval{math.NaN(), math.NaN(), math.NaN()}
	}
	return e
}

// dice draws whole numbers, two of each word of 64 bits. (math/rand/v2 takes three times as long, through an interface.)
type dice struct {
	pcg  *rand.PCG
	rest uint64 // the word at hand
	left bool   // half of the word is not drawn yet
}

// intn returns a random number from 0 to n-1: half a word times n, of which the upper 32 bits count.
func (d *dice) intn(n int) int {
	if d.left = !d.left; d.left {
		d.rest = d.pcg.Uint64()
	} else {
		d.rest >>= 32
	}
	return int((d.rest & math.MaxUint32) * uint64(n) >> 32)
}

// resample draws as many units of each run as there are, with replacement, and returns the means of the drawn units. For pairs the same steps are drawn from
// both runs.
func resample(random *dice, a, b []unit, paired bool) (ma, mb float64) {
	var sa, sb unit
	for range a {
		i := random.intn(len(a))
		sa.sum += a[i].sum
		sa.count += a[i].count
		if paired {
			sb.sum += b[i].sum
			sb.count += b[i].count
		}
	}
	if !paired {
		for range b {
			u := &b[random.intn(len(b))]
			sb.sum += u.sum
			sb.count += u.count
		}
	}
	return sa.sum / sa.count, sb.sum / sb.count
}

// influences returns how much each unit moves the difference of the means, scaled so that the sum of their squares is the variance of the difference. freedom
// is Welch's degrees of freedom. Of pairs each influence is that of a pair, and freedom is the number of pairs less one.
func influences(a, b []unit, paired bool) (all []float64, freedom float64) {
	of := func(units []unit) (out []float64, variance float64) {
		m, count := mean(units), 0.0
		for _, u := range units {
			count += u.count
		}
		n := float64(len(units))
		for _, u := range units {
			// What the unit adds to the mean sum/count, to the first order; the root corrects the variance for a sample.
			v := (u.sum - m*u.count) / count * math.Sqrt(n/(n-1))
			out = append(out, v)
			variance += v * v
		}
		return out, variance
	}
	ia, va := of(a)
	ib, vb := of(b)
	if paired {
		for i := range ia {
			all = append(all, ib[i]-ia[i])
		}
		return all, float64(len(a) - 1)
	}
	for _, v := range ia {
		all = append(all, -v)
	}
	all = append(all, ib...)
	if va+vb == 0 { // nothing is drawn then, and freedom not used
		return all, 1
	}
	return all, (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
}
