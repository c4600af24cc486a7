package why

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Hold keeps a window of finished logs until enough later windows are known; then done is called with its verdict, once. Some 4,000 windows are kept, of all
// runs: the last makes all keys judge the windows that can be judged.
func (h *History) Hold(w *Window, done func(v *Verdict, slow bool)) {
	s := h.of(w.Key)
	now, ranks := h.take(w)
	if s.seen >= warmUp {
		h.count(w, ranks)
	}
	s.seen++
	// A copy: now and w.Breakdown share memory that is reused for the next window.
	var kept *window
	if n := len(h.free); n > 0 {
		kept, h.free = h.free[n-1], h.free[:n-1]
	} else {
		kept = new(window)
	}
	*kept = *now
	kept.Breakdown, kept.done = nil, done
	kept.ranks, kept.ops, kept.notes, kept.timers = slices.Clone(now.ranks), slices.Clone(now.ops), longest(nil, w.Notes), slices.Clone(now.timers)
	kept.Timers = kept.timers
	s.held = append(s.held, kept)
	if h.held++; h.held < held {
		return
	}
	for _, key := range h.series.Keys() {
		if s, ok := h.series.Peek(key); ok {
			h.settle(s, false)
		}
	}
	if h.held > held/2 { // many keys, each with too few later windows: all are judged now, to make room
		h.Settle()
	}
}

// Settle gives the verdicts of all held windows.
func (h *History) Settle() {
	for _, key := range h.series.Keys() {
		if s, ok := h.series.Peek(key); ok {
			h.settle(s, true)
		}
	}
}

// settle judges the held windows of a key that have no verdict yet: all, or those with enough later windows (around). Each gets its verdict (done); judged
// windows stay as long as later ones need them for comparison.
//
// A window is slow if its time is beyond the limit of its regime (package regimes); or, if the work alone is usual, by its overhead.
func (h *History) settle(s *series, all bool) {
	until := len(s.held)
	if !all {
		until -= around
	}
	if until <= s.judged {
		return
	}
	slices.SortStableFunc(s.held[s.judged:], func(a, b *window) int { return cmp.Compare(a.Start, b.Start) })
	steps := attempt(s.held, false)
	steps.Earlier = s.periods
	run := regimes.Judge(steps)
	s.recall(run.Periods)
	work := h.workOf(s.held)
	var rare [breakdown.Evaluation + 1][]int // the windows with the kind
	for k := range rare {
		for i, w := range s.held {
			if w.time[k] > 0 {
				rare[k] = append(rare[k], i)
			}
		}
	}
	var near []int
	var v Verdict // on the heap, once
	for i := s.judged; i < until; i++ {
		w, step := s.held[i], &run.Steps[i]
		v = Verdict{}
		slow := false
		if step.State != regimes.Unknown {
			for k := range rare {
				h.peers.rare[k] = others(h.peers.rare[k][:0], s.held, rare[k], i, breakdown.Kind(k))
			}
			v = h.peers.limit(w, regimes.Level{Usual: step.Usual, Spread: step.Spread, Limit: step.Limit})
			slow = step.State != regimes.First && v.Value > v.Threshold // First: a warm-up
		}
		if !slow && work != nil { // a second look, at the overhead alone
			near = work.Neighbours(near[:0], i)
			h.peers.take(s.held, near)
			if more, ok := h.peers.overhead(w, &work.Steps[i]); ok {
				v, slow = more, true
			}
		} else if slow {
			near = run.Neighbours(near[:0], i)
			h.peers.take(s.held, near)
			h.peers.explain(w, &v)
			// A window that is slow in each period, as with a step that saves, is slow only with a cause.
			slow = step.State != regimes.Periodic || len(v.Causes) > 0
			if !slow {
				v = Verdict{Judged: true, Value: v.Value, Usual: v.Usual, Threshold: v.Threshold}
			}
		}
		h.blame(w, &v)
		w.done(&v, slow)
		w.done = nil
	}
	// Windows too old for comparison are freed.
	h.held -= until - s.judged
	first := max(0, until-around)
	h.free = append(h.free, s.held[:first]...)
	s.held = slices.Delete(s.held, 0, first)
	s.judged = until - first
}

// recall keeps the periods of steps for later windows, the latest eight.
func (s *series) recall(found []regimes.Period) {
	for _, p := range found {
		s.periods = append(slices.DeleteFunc(s.periods, p.Same), p)
	}
	const most = 8
	s.periods = slices.Delete(s.periods, 0, max(0, len(s.periods)-most))
}

// workOf judges windows without their overhead (past.overhead); nil: none has any.
func (h *History) workOf(of []*window) *regimes.Run {
	if !slices.ContainsFunc(of, func(w *window) bool { return w.overhead() > 0 }) {
		return nil
	}
	return regimes.Judge(attempt(of, true))
}

// take sets the windows for a comparison: those of the indices near.
func (o *peers) take(of []*window, near []int) {
	o.windows = o.windows[:0]
	for _, n := range near {
		o.windows = append(o.windows, &of[n].past)
	}
}

// overhead returns the verdict on a window whose work is usual (step, judged without overhead), and whose overhead, waiting and input, makes it slow. Unlike
// longer work, which in many windows in succession is another regime, longer overhead is slow in any number of windows. false: not slow, or without a cause.
func (o *peers) overhead(w *window, step *regimes.Step) (v Verdict, slow bool) {
	if step.State != regimes.Usual || len(o.windows) == 0 {
		return v, false
	}
	usual, spread := o.of((*past).overhead)
	more := w.overhead() - usual
	// The limit of the whole: usual work and usual overhead, and what both may vary together.
	over := max(step.Limit-step.Usual, deviations*math.Hypot(step.Spread, spread))
	v = o.limit(w, regimes.Level{Usual: step.Usual + usual, Spread: math.Hypot(step.Spread, spread), Limit: step.Usual + usual + over})
	mostlyOverhead := more >= majority*(v.Value-v.Usual)
	if v.Value <= v.Threshold || !mostlyOverhead {
		return Verdict{}, false
	}
	o.explain(w, &v)
	return v, len(v.Causes) > 0
}

// attempt returns the input of regimes: the durations of windows without their checkpoints and evaluations, which are compared with their own kind. work: also
// without overhead. Where the step numbers go back, the run was restarted (Starts). If any window has no number, no numbers are given.
func attempt(of []*window, work bool) (out regimes.Attempt) {
	out.Seconds, out.Number = make([]float64, 0, len(of)), make([]int64, 0, len(of))
	for i, w := range of {
		seconds := w.base
		if work {
			seconds -= w.overhead()
		}
		out.Seconds = append(out.Seconds, seconds)
		out.Number = append(out.Number, w.Number)
		if i > 0 && w.Number >= 0 && w.Number < of[i-1].Number {
			out.Starts = append(out.Starts, i)
		}
	}
	if slices.ContainsFunc(out.Number, func(n int64) bool { return n < 0 }) {
		out.Number = nil
	}
	return out
}

// others appends the durations of a kind in the windows around window self, without its own: of have, the indices of the windows with the kind, half on each
// side.
func others(to []float64, of []*window, have []int, self int, k breakdown.Kind) []float64 {
	at, _ := slices.BinarySearch(have, self)
	const side = len(rare{}.last) / 2
	for _, i := range have[max(0, at-side):min(len(have), at+side+1)] {
		if i != self {
			to = append(to, of[i].time[k])
		}
	}
	return to
}
