// Package regimes finds the slow steps of a job, by their durations alone: each step is compared with its neighbours on both sides, in its own regime. A
// lasting level (another sequence length, world size or batch), a trend and a period are reported too, and make no step slow.
//
// Everything is by order statistics (median, MAD, quartiles), so that a few slow steps, or the noise of a shared machine, move no limit.
package regimes

import (
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// Attempt is the steps of one attempt, in order. Lists but Seconds may be nil; Number and Loads are as long as Seconds otherwise.
type Attempt struct {
	Seconds []float64 // s of each; NaN, infinite, or not above 0: unknown
	Number  []int64   // of each step; nil: 0, 1, 2, …
	Loads   []Load    // a lasting change is a change of regime, whatever the times
	Starts  []int     // with several attempts judged together: the first steps of the later ones, possible warm-ups like step 0
	Earlier []Period  // of earlier steps of the job: too few of a period's steps may be left to find the period again
}

// Load is the work of a step. 0: unknown.
type Load struct{ Ranks, Batch, Tokens int64 }

// Run is the result for the steps of an attempt.
type Run struct {
	Steps    []Step    // for each of Attempt.Seconds
	Segments []Segment // in order and without gaps; a single segment if the level never changes
	Periods  []Period

	members []group // steps compared with one another, for Neighbours
	of      []place // of each step
}

// State is the verdict on a step.
type State uint8

// The states of a step.
const (
	Unknown State = iota // not judged: without a duration, or with too few similar steps
	Usual
	Slow     // above Limit
	First    // slow, and the first of its attempt, or one of the first three in falling order: a warm-up
	Periodic // above Limit, like each step of its period
)

// Step is the verdict on a step with its figures.
type Step struct {
	State
	Segment              int     // the place in Run.Segments
	Period               int     // of a Periodic step: the place in Run.Periods
	Usual, Spread, Limit float64 // s; NaN if not judged. Of a Slow step above its period or mixture: of the period or mixture
}

// Segment is a lasting level: at an end of the attempt for about 10 steps, within for 20, or, if higher than the levels beside, for longer than a burst of slow
// steps.
type Segment struct {
	From, To int     // indices into Attempt.Seconds, half open
	Level    float64 // s: the median
	Spread   float64 // s: a robust standard deviation
	Trend    float64 // growth of the steps from From to To, as a share of the level, such as 0.2; 0: below 10 %, uncertain, or of several loads
}

// Period is a step in every Every that takes longer, by about the same time.
type Period struct {
	Every, Rest int64   // n mod Every = Rest for the numbers n of its steps
	Slow, Of    int     // slow steps of the period, and all its steps, such as 20 of 20
	All         int     // slow steps of the attempt, with those of the period
	Usual       float64 // s: of one of its steps
	Limit       float64 // s: a longer one of its steps is slow
	Excess      float64 // s: in all, beyond the usual time of the others
}

const (
	near       = 64           // neighbours on each side
	least      = 8            // neighbours at least
	slower     = 0.1          // of the usual time: less is not slow
	deviations = 6            // robust standard deviations
	few        = 8            // a spread of n values is multiplied by 1 + (few/n)²: the spread of few values is often too low
	upper      = 0.7          // the quantile for the spread of the upper half, unmoved by three faulty steps in ten
	skew       = 0.8 / 0.5244 // of its distance from the median: a normal distribution's standard deviation, slightly less, because chance often raises it
	warm       = 3            // possible warm-up steps
)

// Level is the usual value of similar durations.
type Level struct {
	Usual  float64 // s: the median
	Spread float64 // s: a robust standard deviation, larger where the upper half is wider: long tails and mixtures are above
	Limit  float64 // s: a longer step is slow
}

// Of is the level of durations in rising order; at least one.
func Of(sorted []float64) Level {
	l := Level{Usual: stat.Median(sorted)}
	short := few / float64(len(sorted))
	above := stat.Quantile(sorted, upper)
	l.Spread = max(stat.Sigma(sorted, l.Usual), skew*(above-l.Usual)) * (1 + short*short)
	over := max(deviations*l.Spread, slower*l.Usual)
	if above == l.Usual { // else the next larger duration is within the deviations
		over = max(over, resolution(sorted, l.Usual))
	}
	l.Limit = l.Usual + over
	return l
}

// resolution is the unit in the last place of rounded durations, s, such as 0.1 for 2.3, 2.3 and 2.4: a step longer by one unit is not slow. Durations are
// rounded if the median is one of them, the next larger one occurs twice, their difference is a power of ten, and the median a multiple. 0: not rounded.
func resolution(sorted []float64, usual float64) float64 {
	at := stat.Below(sorted, usual)
	if at == len(sorted) || sorted[at] != usual {
		return 0
	}
	at += stat.Below(sorted[at:], math.Nextafter(usual, math.Inf(1)))
	if at+1 >= len(sorted) || sorted[at] != sorted[at+1] { // a single larger value may be a slow step
		return 0
	}
	step := sorted[at] - usual
	whole := func(x float64) bool { return math.Abs(x-math.Round(x)) < 1e-6 }
	if tens := math.Log10(step); !whole(tens) || !whole(usual/step) {
		return 0
	}
	return step * (1 + 1e-6) // more than the unit, whatever the rounding of the difference
}

// group is steps for comparison with one another, in order.
type group struct {
	steps []int   // indices into Attempt.Seconds
	slope float64 // s a step, subtracted before
}

// place is the position of a step in its group; group −1: in none.
type place struct{ group, at int }

// Judge judges each step, in O(n) time and memory. The order is fixed: steps are compared within regimes, so regimes come first; warm-ups and periods are named
// among the steps found slow; and mixtures are what is slow and neither.
func Judge(of Attempt) *Run {
	j := newJudge(of)
	for _, p := range j.pieces() {
		j.segment(p)
	}
	for i := range j.regimes {
		j.judge(i)
	}
	j.warm()
	j.evenly()
	j.period()
	j.mixtures()
	return j.run
}

// Neighbours appends to list the steps with which a step was compared, in order, without the step: up to near on each side in its group; for a step that is
// not of the group itself, one more behind.
func (r *Run) Neighbours(list []int, step int) []int {
	p := r.of[step]
	if p.group < 0 {
		return list
	}
	steps := r.members[p.group].steps
	for _, i := range steps[max(0, p.at-near):min(len(steps), p.at+near+1)] {
		if i != step {
			list = append(list, i)
		}
	}
	return list
}

// judge is the state of Judge.
type judge struct {
	of      Attempt
	run     *Run
	known   []int     // indices in Attempt.Seconds of the steps with a duration
	logs    []float64 // of the known ones: logarithms of the durations, s
	first   []bool    // of all steps: the first of an attempt, a possible warm-up
	regimes []regime  // in order
	values  []float64 // scratch
	over    []float64 // s of each step above its usual time
}

// regime is a segment and its bursts, ranges of slow steps on a higher level: as positions in judge.known, half open.
type regime struct {
	from, to int
	bursts   [][2]int
}

// newJudge makes the state of Judge: the known steps, and no verdict on any.
func newJudge(of Attempt) *judge {
	n := len(of.Seconds)
	j := &judge{
		of: of, run: &Run{Steps: make([]Step, n), of: make([]place, n)}, known: make([]int, 0, n), logs: make([]float64, 0, n), first: make([]bool, n),
		over: make([]float64, n),
	}
	nan := math.NaN()
	for i, s := range of.Seconds {
		j.run.Steps[i].Usual, j.run.Steps[i].Spread, j.run.Steps[i].Limit = nan, nan, nan
		j.run.of[i].group = -1
		if s > 0 && s <= math.MaxFloat64 {
			j.known = append(j.known, i)
			j.logs = append(j.logs, math.Log(s))
		}
	}
	if len(j.known) > 0 {
		j.first[j.known[0]] = true
	}
	for _, i := range of.Starts {
		if i >= 0 && i < n {
			j.first[i] = true
		}
	}
	return j
}

// number is the number of the i-th step.
func (j *judge) number(i int) int64 {
	if j.of.Number == nil {
		return int64(i)
	}
	return j.of.Number[i]
}

// seconds is the duration of the k-th known step, s.
func (j *judge) seconds(k int) float64 { return j.of.Seconds[j.known[k]] }

// middle is the median logarithm of a range of known steps.
func (j *judge) middle(from, to int) float64 {
	j.values = append(j.values[:0], j.logs[from:to]...)
	return stat.MedianInPlace(j.values)
}

// pieces are the ranges of known steps between lasting changes of the load, half open. A load lasts for settles steps; stretches of shorter ones, such as of
// alternating loads, are one range.
func (j *judge) pieces() (out [][2]int) {
	n := len(j.known)
	if n == 0 {
		return nil
	}
	if j.of.Loads == nil {
		return [][2]int{{0, n}}
	}
	from, lasted := 0, false // the beginning of the range, and whether the load before lasted
	for at := 0; at < n; {
		to := at + 1
		for to < n && j.of.Loads[j.known[to]] == j.of.Loads[j.known[at]] {
			to++
		}
		lasts := to-at >= settles
		if at > from && (lasts || lasted) {
			out = append(out, [2]int{from, at})
			from = at
		}
		lasted = lasts
		at = to
	}
	return append(out, [2]int{from, n})
}

// judge compares the steps of a regime (of is its index) with one another, by load where loads alternate, and adds the regime's Segment.
func (j *judge) judge(of int) {
	r := &j.regimes[of]
	segment := Segment{From: 0, To: len(j.of.Seconds)} // To: until the next regime is known
	if of > 0 {
		segment.From = j.known[r.from]
		j.run.Segments[of-1].To = segment.From
	}
	steady := j.steady(r)
	groups := j.byLoad(steady)
	if len(groups) == 1 {
		segment.Trend = groups[0].trend(j)
	}
	for i := range groups {
		j.compare(r, &groups[i], len(groups) == 1)
	}
	j.values = j.values[:0]
	for _, i := range steady {
		j.values = append(j.values, j.of.Seconds[i])
	}
	if len(j.values) == 0 { // only first steps of attempts, mostly a single one
		j.values = append(j.values, j.seconds(r.from))
	}
	segment.Level = stat.MedianInPlace(j.values)
	for i, x := range j.values {
		j.values[i] = math.Abs(x - segment.Level)
	}
	segment.Spread = stat.MADToSigma * stat.MedianInPlace(j.values)
	for k := r.from; k < r.to; k++ {
		j.run.Steps[j.known[k]].Segment = of
	}
	j.run.Segments = append(j.run.Segments, segment)
}

// steady are the steps of a regime that say what is usual there: all but bursts and possible warm-ups.
func (j *judge) steady(r *regime) []int {
	steady := make([]int, 0, r.to-r.from)
	burst := r.bursts
	for k := r.from; k < r.to; k++ {
		for len(burst) > 0 && k >= burst[0][1] {
			burst = burst[1:]
		}
		inBurst := len(burst) > 0 && k >= burst[0][0]
		if !inBurst && !j.first[j.known[k]] {
			steady = append(steady, j.known[k])
		}
	}
	return steady
}

// byLoad groups steps with alternating loads, a group for each load. Loads of few steps are one group together. Without steps there is one empty group.
func (j *judge) byLoad(steps []int) []group {
	if j.of.Loads == nil {
		return []group{{steps: steps}}
	}
	if !slices.ContainsFunc(steps, func(i int) bool { return j.of.Loads[i] != j.of.Loads[steps[0]] }) {
		return []group{{steps: steps}}
	}
	by := map[Load][]int{} // steps of each load
	for _, i := range steps {
		by[j.of.Loads[i]] = append(by[j.of.Loads[i]], i)
	}
	var out []group         // in order of their first steps: a map has none
	done := map[Load]bool{} // loads in out
	var rest []int          // steps of rare loads
	for _, i := range steps {
		of := j.of.Loads[i]
		switch {
		case len(by[of]) <= least: // compare needs least neighbours besides the step
			rest = append(rest, i)
		case !done[of]:
			done[of] = true
			out = append(out, group{steps: by[of]})
		}
	}
	if len(rest) > 0 || len(out) == 0 {
		out = append(out, group{steps: rest})
	}
	return out
}

// compare judges each step of a group by its neighbours: Usual, or Slow above the limit of their durations. all: the group is the only one of the regime, and
// the steps of bursts and possible warm-ups are judged too, by their neighbours in the group. Steps with too few neighbours stay Unknown.
func (j *judge) compare(r *regime, g *group, all bool) {
	of := len(j.run.members)
	value := func(at int) float64 { return j.of.Seconds[g.steps[at]] - g.slope*float64(at) } // without the trend
	window := make([]float64, 0, 2*near+2)                                                   // values of the steps from to to in the group, by size
	from, to := 0, 0
	judged := g.steps
	if all {
		judged = j.known[r.from:r.to]
	}
	at := 0 // in the group: the step, or the next one
	limits := make([]float64, 0, len(judged))
	held := make([]int, 0, len(judged)) // the steps with a verdict; limits has how far each may be above its usual time
	for _, i := range judged {
		for at < len(g.steps) && g.steps[at] < i {
			at++
		}
		// The window moves along: from near steps before to near steps behind.
		for until := min(len(g.steps), at+near+1); to < until || from < at-near; {
			switch {
			case to < until && from < at-near:
				replace(window, value(from), value(to))
				from, to = from+1, to+1
			case to < until:
				x := value(to)
				window = slices.Insert(window, stat.Below(window, x), x)
				to++
			default:
				p := stat.Below(window, value(from))
				window = slices.Delete(window, p, p+1)
				from++
			}
		}
		j.run.of[i] = place{of, at}
		own := 0 // the step itself, if in the window: it is no neighbour
		if at < len(g.steps) && g.steps[at] == i {
			own = 1
		}
		if len(window)-own < least {
			continue
		}
		s, l := &j.run.Steps[i], Of(window)
		s.State, s.Spread, s.Usual = Usual, l.Spread, max(l.Usual+g.slope*float64(at), 0) // with the trend again
		limits = append(limits, max(l.Limit-l.Usual, slower*s.Usual))
		held = append(held, i)
		j.over[i] = j.of.Seconds[i] - s.Usual
	}
	widen := j.tail(held, limits)
	for n, i := range held {
		s := &j.run.Steps[i]
		s.Limit = s.Usual + widen*limits[n]
		if j.of.Seconds[i] > s.Limit {
			s.State = Slow
		}
	}
	j.run.members = append(j.run.members, *g)
}

// replace puts x in place of old among values in rising order. Only values between the two move.
func replace(sorted []float64, old, x float64) {
	at, to := stat.Below(sorted, old), stat.Below(sorted, x)
	if to > at {
		to-- // old leaves
		copy(sorted[at:to], sorted[at+1:to+1])
	} else {
		copy(sorted[to+1:at+1], sorted[to:at])
	}
	sorted[to] = x
}

// tail is the factor by which the limits of the held steps are widened: if twice as many steps are between half the limit and the limit as above, the steps
// above are the end of a long tail and no fault. A limit grows by half, at most four times.
func (j *judge) tail(held []int, limits []float64) float64 {
	widen := 1.0
	for range 4 {
		above, below := 0, 0
		for n, i := range held {
			switch x := j.over[i] / (widen * limits[n]); {
			case x > 1:
				above++
			case x > 0.5:
				below++
			}
		}
		if above == 0 || below < 2*above {
			break
		}
		widen *= 1.5
	}
	return widen
}

// warm makes slow steps at the beginning of attempts First: up to warm steps, none longer than the one before.
func (j *judge) warm() {
	for _, at := range j.known {
		if !j.first[at] {
			continue
		}
		last := math.Inf(1)
		for i := at; i < min(at+warm, len(j.run.Steps)) && j.run.Steps[i].State == Slow && j.of.Seconds[i] <= last; i++ {
			j.run.Steps[i].State, last = First, j.of.Seconds[i]
		}
	}
}
