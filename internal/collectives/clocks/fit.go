package clocks

import (
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// fit fits the line to the points (see the package's Method), unless nearly all points are the same as at the last fit: a full window waits for refit new ones,
// or for one far from the line.
func (s *state) fit() {
	fewNew := s.n == window && s.fresh < refit && s.farInRow == 0
	if s.fitted && (s.fresh == 0 || fewNew) {
		return
	}
	s.fitted, s.fresh = true, 0
	center, level, slope := s.resistant()
	var residuals [window]float64
	for range 2 {
		r := residuals[:s.n]
		for i := range r {
			r[i] = math.Abs(s.y[i] - level - slope*(s.x[i]-center))
		}
		slices.Sort(r)
		limit := max(trim*1.4826*r[s.n/2], minTrim) // 1.4826·MAD: the standard deviation of normal noise
		s.least(center, level, slope, limit)
		center, level, slope = s.line.center, s.line.mean, s.line.slope
	}
}

// resistant is Tukey's line through the medians of the first and the last third of the points: level at x = center, and the slope. For fewer than three points
// the slope is the drift known before.
func (s *state) resistant() (center, level, slope float64) {
	var order [window]int // the points' indices by x
	o := order[:s.n]
	for i := range o {
		o[i] = i
	}
	if s.n == window { // the ring from its oldest on is nearly sorted
		for i := range o {
			o[i] = (s.next + i) % window
		}
	}
	for i := 1; i < len(o); i++ { // insertion sort: collectives come in order but for a few
		for k := i; k > 0 && s.x[o[k]] < s.x[o[k-1]]; k-- {
			o[k], o[k-1] = o[k-1], o[k]
		}
	}
	var scratch [window]float64
	median := func(of []int, v func(i int) float64) float64 {
		m := scratch[:0]
		for _, i := range of {
			m = append(m, v(i))
		}
		slices.Sort(m)
		return stat.Median(m)
	}
	x, y := func(i int) float64 { return s.x[i] }, func(i int) float64 { return s.y[i] }
	slope = s.drift
	if third := s.n / 3; third >= 1 {
		first, last := o[:third], o[s.n-third:]
		if dx := median(last, x) - median(first, x); dx > 0 {
			slope = (median(last, y) - median(first, y)) / dx
		}
	}
	// A steeper slope than any clock's is noise of points close in time.
	slope = max(-5*driftPrior, min(slope, 5*driftPrior))
	center = median(o, x)
	return center, median(o, func(i int) float64 { return s.y[i] - slope*(s.x[i]-center) }), slope
}

// least sets the line by least squares through the points within limit (ns) of the given line (level at center, and slope), with a prior of the drift. The
// noise is estimated from the points. All sums are relative to the given line, and to the points' mean, for their precision.
func (s *state) least(center, level, slope, limit float64) {
	var n, sx, sy, sxx, sxy float64 // number of points, and the sums of x, y, x², x·y
	for i := range s.n {
		x := s.x[i] - center
		if y := s.y[i] - level - slope*x; math.Abs(y) <= limit {
			n, sx, sy = n+1, sx+x, sy+y
		}
	}
	if n == 0 { // cannot be: half of the points are within the median of the distances
		return
	}
	mx, my := sx/n, sy/n
	for i := range s.n {
		x := s.x[i] - center
		if y := s.y[i] - level - slope*x; math.Abs(y) <= limit {
			sxx, sxy = sxx+(x-mx)*(x-mx), sxy+(x-mx)*(y-my)
		}
	}
	// y − mean = slope'·x with slope' ~ N(drift − slope, driftPrior²): the prior is weighted with the noise around the first line.
	noise := s.residual(center+mx, level+slope*mx+my, slope, limit, center, level, slope, n)
	prior := noise * noise / (driftPrior * driftPrior)
	change := (sxy + prior*(s.drift-slope)) / (sxx + prior)
	s.line = line{center: center + mx, mean: level + slope*mx + my, slope: slope + change}
	noise = s.residual(s.line.center, s.line.mean, s.line.slope, limit, center, level, slope, n)
	s.line.noise = noise
	s.line.meanVariance, s.line.slopeVar = noise*noise/n, noise*noise/(sxx+prior)
}

// residual returns the standard deviation of points around a line (mean at center, and slope), with the prior of the noise. The n points are those within limit
// of the line least started from: level0 at center0, and slope0.
func (s *state) residual(center, mean, slope, limit, center0, level0, slope0, n float64) float64 {
	sum := 0.
	for i := range s.n {
		if math.Abs(s.y[i]-level0-slope0*(s.x[i]-center0)) <= limit {
			r := s.y[i] - mean - slope*(s.x[i]-center)
			sum += r * r
		}
	}
	free := max(n-2, 0) // degrees of freedom: mean and slope are estimated from the same points
	return math.Sqrt((noiseCount*noisePrior*noisePrior + sum) / (noiseCount + free))
}
