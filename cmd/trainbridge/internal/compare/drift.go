package compare

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// correctDrift widens the interval of a figure whose neighbouring values are alike. tauA and tauB are their autocorrelation times, in units: n values count as
// n/τ independent ones. The interval becomes no narrower than Welch's for so many values, because blocks may be too few, or still alike. With fewer than
// fewIndependent independent values there is no finding.
func (f *figure) correctDrift(tauA, tauB, confidence float64) {
	// Nothing to correct: too few units, values that are not alike, or an interval that is a single value.
	if !f.told || tauA <= 1 && tauB <= 1 || f.difference.low == f.difference.high {
		return
	}
	nA, nB := float64(len(f.a))/tauA, float64(len(f.b))/tauB
	if min(nA, nB) < fewIndependent {
		f.told = false
		f.difference.low, f.difference.high, f.ratio.low, f.ratio.high = math.Inf(-1), math.Inf(1), math.NaN(), math.NaN()
		return
	}
	vA, vB := variance(f.likeA)/nA, variance(f.likeB)/nB
	freedom := nA - 1
	if f.paired {
		vB = 0
	} else if vA+vB > 0 {
		freedom = (vA + vB) * (vA + vB) / (vA*vA/(nA-1) + vB*vB/(nB-1))
	}
	// The half width of Welch's interval; of pairs likeA has the differences.
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile((1+confidence)/2) * math.Sqrt(vA+vB)
	f.difference.low, f.difference.high = min(f.difference.low, f.difference.value-half), max(f.difference.high, f.difference.value+half)
	if !math.IsNaN(f.ratio.value) { // B/A is 1 + (B − A)/A
		f.ratio.low, f.ratio.high = min(f.ratio.low, 1+f.difference.low/f.estimate.a), max(f.ratio.high, 1+f.difference.high/f.estimate.a)
	}
}

// variance returns the sample variance.
func variance(values []float64) (v float64) {
	n, m := float64(len(values)), 0.0
	for _, x := range values {
		m += x / n
	}
	for _, x := range values {
		v += (x - m) * (x - m) / (n - 1)
	}
	return v
}
