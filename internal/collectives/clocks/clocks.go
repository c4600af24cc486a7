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

	window     = 64
	jumpPoints = 3
	gapPoints  = 8
	gapSpans   = 2
	trim       = 3.5    // robust standard deviations
	minTrim    = 20e3   // ns: closer points are no outliers
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
	clocks []*state
	any    bool
	first  int32
	here   []int32 // clocks in the collective
	ends   []int64
	next   []int32 // the next end of the same clock
}

// Reference is the first clock seen, the zero of all offsets; −1: none yet.
func (e *Estimator) Reference() int32 {
	if !e.any {
		return -1
	}
	return e.first
}

// Offset is how many ns a clock was ahead of the reference's when it showed at (Unix ns): the reference showed at − offset then. uncertainty is the half
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
	return float64(s.baseOffset) + y, math.Sqrt(width*width*variance + s.chain*s.chain), true
}

// Observe takes the ends of a collective that all ranks leave together, in the order of the collectives.
func (e *Estimator) Observe(ends []End) {
	e.group(ends)
	if len(e.here) < 2 {
		return
	}
	// The shortest way to the reference.
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
		if h, ok := e.hops(c); ok && h <= hops {
			continue
		}
		if s.n > 0 && s.hops < hops+1 {
			continue
		}
		if s.hops > hops+1 {
			s.forget()
		}
		s.hops, s.chain = hops+1, chain
		s.add(s.end, s.end-reference)
	}
}

// hops is the length of a clock's chain to the reference; 0: the reference.
func (e *Estimator) hops(clock int32) (int32, bool) {
	s := e.clocks[clock]
	return s.hops, clock == e.first || s.n > 0
}

// group finds the clocks of a collective and the median of each's ends.
func (e *Estimator) group(ends []End) {
	e.here, e.next = e.here[:0], e.next[:0]
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
	hops  int32
	head  int32   // of its ends in the collective
	end   int64   // their median
	chain float64 // uncertainty of the clocks in the comparison, ns

	// A ring of points relative to base and baseOffset, for the precision of float64.
	base, baseOffset int64
	x, y             [window]float64
	n, next          int
	fitted           bool
	fresh            int // points since the last fit
	far              int // of the last, in a row, how many were far from the line
	drift            float64
	line             line
}

// line is y = mean + slope·(x − center), with the variances of both.
type line struct {
	center, mean, slope    float64
	meanVariance, slopeVar float64
	noise                  float64 // standard deviation of a point
}

func (l *line) at(x float64) (y, variance float64) {
	d := x - l.center
	return l.mean + l.slope*d, l.meanVariance + l.slopeVar*d*d
}

func (s *state) forget() { s.n, s.next, s.fitted, s.far, s.fresh = 0, 0, false, 0, 0 }

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
	if s.n >= jumpPoints {
		s.fit()
		if want, _ := s.line.at(x); math.Abs(y-want) > max(2*trim*s.line.noise, 5*minTrim) {
			s.far++
		} else {
			s.far = 0
		}
	}
	s.x[s.next], s.y[s.next] = x, y
	s.next = (s.next + 1) % window
	s.n = min(s.n+1, window)
	s.fresh++
	if s.far >= jumpPoints {
		s.jump()
	}
}

// jump forgets all but the last points if the last ones are near each other.
func (s *state) jump() {
	last := func(i int) int { return (s.next + window - jumpPoints + i) % window }
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range jumpPoints {
		level := s.y[last(i)] - s.line.slope*s.x[last(i)]
		lo, hi = min(lo, level), max(hi, level)
	}
	if hi-lo > max(4*trim*s.line.noise, 10*minTrim) {
		return
	}
	var points [jumpPoints][2]float64
	for i := range points {
		points[i] = [2]float64{s.x[last(i)], s.y[last(i)]}
	}
	for i, p := range points {
		s.x[i], s.y[i] = p[0], p[1]
	}
	s.n, s.next, s.far, s.fitted, s.drift = jumpPoints, jumpPoints, 0, false, s.line.slope
}
