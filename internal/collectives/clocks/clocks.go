// Package clocks estimates the offsets of hosts' clocks from the ends of collectives.
//
// All ranks leave an AllReduce, AllGather, ReduceScatter or AllToAll together, within some 10 µs. Every host's clock sees the same end: the differences
// between the times are the offsets, with noise; offsets drift by up to 50 ppm with the hosts' crystals.
//
// # Method
//
// A clock's end of a collective is the median of the ends of its ranks. The difference to the reference's end is a point of the clock, at its own end. A line
// (offset and drift) goes through the last 64 points of each clock:
//
//   - first Tukey's resistant line (Exploratory Data Analysis, 1977, ch. 10: medians of the outer thirds), robust against a sixth of outliers on one side;
//   - then least squares through the points within 3.5 robust standard deviations (1.4826·MAD), twice. The drift has a prior N(0, 100 ppm): points that span
//     too little time for an estimate (64 collectives in 0.6 s) leave the drift near 0, where it is harmless.
//
// The uncertainty is 2.2 standard deviations of the line at the given time, widened for few points (the variance of the noise has a prior too, (30 µs)² worth
// four points), and grows with the distance from the points. An error common to all points is invisible: a host that always learns late of the end of a
// collective seems to be ahead by the delay.
//
// Three points in a row far from the line but near each other mean a clock that was set (NTP, a leap second, a restored virtual machine): its earlier points
// are forgotten, but not its drift. If the reference was set, all other clocks jump, each on its own. Points are also forgotten after a pause much longer than
// their span.
//
// # The reference
//
// The reference is the first clock ever seen, for good. A clock that never shares a collective with the reference is compared with clocks that do (or by a
// longer chain): each has an estimate of the reference's time, the points of the clock are then differences to the mean of the estimates, and its uncertainty
// includes the clocks' own. A clock uses the shortest chain ever seen. Without any chain, Offset is not ok.
package clocks

import (
	"math"
	"slices"
)

const (
	// MaxClocks bounds the clocks: clocks with a higher number are not looked at.
	MaxClocks = 4096

	window     = 64     // points of a clock
	jumpPoints = 3      // in a row far from the line: the clock was set
	gapPoints  = 8      // with fewer points a pause does not count …
	gapSpans   = 2      // … and otherwise if longer than this number of the points' spans
	trim       = 3.5    // robust standard deviations: points farther from the line are outliers
	minTrim    = 20e3   // ns: closer points are no outliers
	far        = 2      // times trim or, at least, …
	minFar     = 100e3  // … ns from the line: the clock may have been set. A shorter jump looks like noise
	near       = 2      // times the limits of far: points on one level may scatter by as much to both sides
	driftPrior = 100e-6 // standard deviation
	noisePrior = 30e3   // ns, standard deviation …
	noiseCount = 4      // … worth this number of points
	refit      = 8      // points until a full window is fitted again
	width      = 2.2    // standard deviations: 1.96 would be 95 % of a normal distribution, had the noise not been cut off and the line not aged by refit points
)

// End is when a collective ended for one rank, by its host's clock.
type End struct {
	Clock int32 // the host: 0 … MaxClocks−1
	At    int64 // Unix ns
}

// Estimator has the state of all clocks, about 1.3 KB each. The zero value is ready; it is not safe for concurrent use.
type Estimator struct {
	clocks []*state // by number; nil: not seen
	any    bool     // a clock was seen
	first  int32    // the first clock seen: the reference

	// Scratch, of one collective.
	here []int32 // its clocks
	ends []int64 // of one clock
	next []int32 // for each end the index of the next one of the same clock; −1: none
}

// Reference returns the first clock seen, the zero of all offsets; −1: none yet.
func (e *Estimator) Reference() int32 {
	if !e.any {
		return -1
	}
	return e.first
}

// Offset returns how many ns a clock was ahead of the reference's when it showed at (Unix ns): the reference showed at − offset then. uncertainty is the half
// width of an interval with the true value 19 times out of 20, ns. ok is false for a clock without a chain to the reference.
func (e *Estimator) Offset(clock int32, at int64) (offset, uncertainty float64, ok bool) {
	if !e.any || clock < 0 || int(clock) >= len(e.clocks) || e.clocks[clock] == nil {
		return 0, 0, false
	}
	if clock == e.first {
		return 0, 0, true
	}
	s := e.clocks[clock]
	if s.n == 0 {
		return 0, 0, false
	}
	s.fit()
	y, variance := s.line.at(float64(at - s.base))
	uncertainty = math.Sqrt(width*width*variance + s.chain*s.chain) // the line's, and that of the clocks in between
	return float64(s.baseOffset) + y, uncertainty, true
}

// Observe takes the ends of a collective that all ranks leave together, in the order of the collectives. The clocks nearest to the reference, by their chains,
// say what time the reference showed; each clock farther away gets a point, the difference of its end to this time.
func (e *Estimator) Observe(ends []End) {
	e.group(ends)
	if len(e.here) < 2 {
		return
	}
	// The shortest chain to the reference among the clocks here.
	hops := int32(math.MaxInt32)
	for _, c := range e.here {
		if h, ok := e.hops(c); ok {
			hops = min(hops, h)
		}
	}
	if hops == math.MaxInt32 {
		return // no chain to the reference
	}
	// The reference's time: exact if its end is known, else by the clocks nearest to it. The time is a difference to one of the ends: float64 has not enough
	// digits for Unix ns.
	var zero int64
	var sum, chain float64
	n := 0
	for _, c := range e.here {
		h, ok := e.hops(c)
		if !ok || h != hops {
			continue
		}
		end := e.clocks[c].end
		offset, uncertainty, _ := e.Offset(c, end)
		if n == 0 {
			zero = end
		}
		sum += float64(end-zero) - offset
		chain += uncertainty
		n++
	}
	reference := zero + int64(math.Round(sum/float64(n)))
	chain /= float64(n)
	for _, c := range e.here {
		s := e.clocks[c]
		if h, ok := e.hops(c); ok && h <= hops { // gave the time: hops is the least
			continue
		}
		if s.hops > hops+1 { // its points are by a longer chain
			s.forget()
		}
		s.hops, s.chain = hops+1, chain
		s.add(s.end, s.end-reference)
	}
}

// hops returns the length of a clock's chain to the reference; 0: the reference itself. false: no chain.
func (e *Estimator) hops(clock int32) (int32, bool) {
	s := e.clocks[clock]
	return s.hops, clock == e.first || s.n > 0
}

// group puts the clocks of a collective's ends into here, and the median of each clock's ends into its state. New clocks get a state; ends without a time or
// with a clock out of bounds are left out.
func (e *Estimator) group(ends []End) {
	e.here, e.next = e.here[:0], e.next[:0]
	// The ends of each clock are chained: state.head is the last one, next leads to the one before.
	for i, end := range ends {
		e.next = append(e.next, -1)
		if end.Clock < 0 || end.Clock >= MaxClocks || end.At <= 0 {
			continue
		}
		if int(end.Clock) >= len(e.clocks) {
			e.clocks = append(e.clocks, make([]*state, int(end.Clock)+1-len(e.clocks))...)
		}
		s := e.clocks[end.Clock]
		if s == nil {
			s = &state{head: -1}
			e.clocks[end.Clock] = s
			if !e.any {
				e.any, e.first = true, end.Clock
			}
		}
		if s.head < 0 {
			e.here = append(e.here, end.Clock)
		}
		e.next[i], s.head = s.head, int32(i)
	}
	for _, c := range e.here {
		s := e.clocks[c]
		e.ends = e.ends[:0]
		for i := s.head; i >= 0; i = e.next[i] {
			e.ends = append(e.ends, ends[i].At)
		}
		s.head = -1
		slices.Sort(e.ends)
		lo, hi := e.ends[(len(e.ends)-1)/2], e.ends[len(e.ends)/2]
		s.end = lo + (hi-lo)/2
	}
}

// state is the state of a clock.
type state struct {
	hops  int32   // length of its chain to the reference
	head  int32   // index of the last of its ends in the collective; −1: none
	end   int64   // the median of its ends in the collective, Unix ns
	chain float64 // uncertainty of the clocks that its points are compared with, ns

	// A ring of points: x is the clock's time, y its offset, ns, both relative to base and baseOffset for the precision of float64.
	base, baseOffset int64
	x, y             [window]float64
	n, next          int // points, and the index of the next
	fitted           bool
	fresh            int     // points since the last fit
	farInRow         int     // of the last, in a row, how many were far from the line
	drift            float64 // mean of the prior of the line's slope: 0, after a jump the slope before
	line             line
}

// line is y = mean + slope·(x − center), with the variances of both.
type line struct {
	center, mean, slope    float64
	meanVariance, slopeVar float64
	noise                  float64 // standard deviation of a point
}

// at returns the value of the line at x, and the variance of the value.
func (l *line) at(x float64) (y, variance float64) {
	d := x - l.center
	return l.mean + l.slope*d, l.meanVariance + l.slopeVar*d*d
}

// forget drops all points.
func (s *state) forget() { s.n, s.next, s.fitted, s.farInRow, s.fresh = 0, 0, false, 0, 0 }

// add adds a point: at Unix ns at the clock was offset ns ahead of the reference. Points after a long pause, or after the clock was set (jump), replace the
// earlier ones.
func (s *state) add(at, offset int64) {
	if s.n >= gapPoints {
		// After a pause much longer than the points' span the line is worthless, and would bend for a new point instead of rejecting it.
		oldest, newest := s.x[0], s.x[(s.next+window-1)%window]
		if s.n == window {
			oldest = s.x[s.next]
		}
		if x := float64(at - s.base); x-newest > gapSpans*(newest-oldest) {
			s.forget()
		}
	}
	if s.n == 0 {
		s.base, s.baseOffset, s.drift = at, offset, 0
	}
	x, y := float64(at-s.base), float64(offset-s.baseOffset)
	if s.n >= jumpPoints { // else any line fits
		s.fit()
		if want, _ := s.line.at(x); math.Abs(y-want) > max(far*trim*s.line.noise, minFar) {
			s.farInRow++
		} else {
			s.farInRow = 0
		}
	}
	s.x[s.next], s.y[s.next] = x, y
	s.next = (s.next + 1) % window
	s.n = min(s.n+1, window)
	s.fresh++
	if s.farInRow >= jumpPoints {
		s.jump()
	}
}

// jump forgets all but the last jumpPoints points, which are far from the line, if they are near each other: the clock was set. Scattered ones are outliers.
func (s *state) jump() {
	last := func(i int) int { return (s.next + window - jumpPoints + i) % window } // index of the i-th of the last points
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range jumpPoints {
		level := s.y[last(i)] - s.line.slope*s.x[last(i)] // without the drift between the points
		lo, hi = min(lo, level), max(hi, level)
	}
	if hi-lo > max(near*far*trim*s.line.noise, near*minFar) {
		return
	}
	var points [jumpPoints][2]float64
	for i := range points {
		points[i] = [2]float64{s.x[last(i)], s.y[last(i)]}
	}
	for i, p := range points {
		s.x[i], s.y[i] = p[0], p[1]
	}
	s.n, s.next, s.farInRow, s.fitted, s.drift = jumpPoints, jumpPoints, 0, false, s.line.slope
}
