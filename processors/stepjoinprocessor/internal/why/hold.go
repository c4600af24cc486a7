package why

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Hold keeps a window of finished logs until enough later windows are known. Then done is called once, with the verdict and whether the window was slow.
//
// At most held windows (4,096, of all runs) wait: the next one makes every key judge the windows that can be judged.
func (h *History) Hold(w *Window, done func(v *Verdict, slow bool)) {
	s := h.seriesOf(w.Key)
	now, ranks := h.readWindow(w)
	if s.seen >= warmUp {
		h.countStep(w, ranks)
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
	kept.ranks, kept.ops, kept.notes, kept.timers = slices.Clone(now.ranks), slices.Clone(now.ops), longestNotes(nil, w.Notes), slices.Clone(now.timers)
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
	if h.held > held/2 { // many keys, each with too few later windows: every window is judged now, to free memory
		h.Settle()
	}
}

// Settle calls done for every window that waits for a verdict.
func (h *History) Settle() {
	for _, key := range h.series.Keys() {
		if s, ok := h.series.Peek(key); ok {
			h.settle(s, true)
		}
	}
}

// settle judges the windows of a key that wait for a verdict: all of them, or those with enough later windows (around). Each gets its verdict (done); judged
// windows stay while later windows need them for comparison.
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
	steps := attemptOf(s.held, false)
	steps.Earlier = s.periods
	run := regimes.Judge(steps)
	s.keepPeriods(run.Periods)
	work := h.judgeWork(s.held)
	var rare [breakdown.Evaluation + 1][]int // the windows with the kind
	for k := range rare {
		for i, w := range s.held {
			if w.time[k] > 0 {
				rare[k] = append(rare[k], i)
			}
		}
	}
	var near []int
	var v Verdict // declared here to be allocated once: done takes its address
	for i := s.judged; i < until; i++ {
		w, step := s.held[i], &run.Steps[i]
		v = Verdict{}
		slow := false
		if step.State != regimes.Unknown {
			for k := range rare {
				h.peers.rare[k] = otherDurations(h.peers.rare[k][:0], s.held, rare[k], i, breakdown.Kind(k))
			}
			v = h.peers.verdictOf(w, regimes.Level{Usual: step.Usual, Spread: step.Spread, Limit: step.Limit})
			slow = step.State != regimes.First && v.Value > v.Threshold // First: a warm-up
		}
		if !slow && work != nil { // a second look, at the overhead alone
			near = work.Neighbours(near[:0], i)
			h.peers.setWindows(s.held, near)
			if more, ok := h.peers.overhead(w, &work.Steps[i]); ok {
				v, slow = more, true
			}
		} else if slow {
			near = run.Neighbours(near[:0], i)
			h.peers.setWindows(s.held, near)
			h.peers.explain(w, &v)
			// A window that is slow in each period, as with a step that saves, is slow only with a cause.
			if step.State == regimes.Periodic {
				isUpdate := run.Periods[step.Period].Accumulates() && v.updates()
				slow = len(v.Causes) > 0 && !isUpdate
			}
			if !slow {
				v = Verdict{Judged: true, Value: v.Value, Usual: v.Usual, Threshold: v.Threshold}
			}
		}
		h.addCosts(w, &v)
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

// updates reports whether the causes are all work of an update of parameters: computing, and collectives without a late rank.
func (v *Verdict) updates() bool {
	return !slices.ContainsFunc(v.Causes, func(c Cause) bool { return c.Kind != breakdown.Compute && c.Kind != breakdown.Collective })
}

// keepPeriods remembers the periods found in steps for later windows, at most the latest eight.
func (s *series) keepPeriods(found []regimes.Period) {
	for _, p := range found {
		s.periods = append(slices.DeleteFunc(s.periods, p.Same), p)
	}
	const most = 8
	s.periods = slices.Delete(s.periods, 0, max(0, len(s.periods)-most))
}

// judgeWork judges the windows by their time without overhead (past.overhead); nil: no window has overhead.
func (h *History) judgeWork(list []*window) *regimes.Run {
	if !slices.ContainsFunc(list, func(w *window) bool { return w.overhead() > 0 }) {
		return nil
	}
	return regimes.Judge(attemptOf(list, true))
}

// setWindows selects the windows to compare with: those of list with the indices near.
func (o *peers) setWindows(list []*window, near []int) {
	o.windows = o.windows[:0]
	for _, n := range near {
		o.windows = append(o.windows, &list[n].past)
	}
}

// overhead returns the verdict on a window whose work is usual (step, judged without overhead), but whose overhead (waiting and input) makes it slow; false:
// not slow, or without a cause.
//
// Longer work in many windows in succession is another regime; longer overhead is slow in any number of windows.
func (o *peers) overhead(w *window, step *regimes.Step) (v Verdict, slow bool) {
	if step.State != regimes.Usual || len(o.windows) == 0 {
		return v, false
	}
	usual, spread := o.usualOf((*past).overhead)
	more := w.overhead() - usual
	// The limit of the whole window: usual work, usual overhead, and the joint variation of both.
	over := max(step.Limit-step.Usual, deviations*math.Hypot(step.Spread, spread))
	v = o.verdictOf(w, regimes.Level{Usual: step.Usual + usual, Spread: math.Hypot(step.Spread, spread), Limit: step.Usual + usual + over})
	mostlyOverhead := more >= majority*(v.Value-v.Usual)
	if v.Value <= v.Threshold || !mostlyOverhead {
		return Verdict{}, false
	}
	o.explain(w, &v)
	return v, len(v.Causes) > 0
}

// attemptOf returns the input of regimes: the durations of windows without their checkpoints and evaluations, which are compared separately; with work also
// without overhead. Where the step numbers go back, the run was restarted (Starts). If any window has no number, no numbers are given.
func attemptOf(list []*window, work bool) (out regimes.Attempt) {
	out.Seconds, out.Number = make([]float64, 0, len(list)), make([]int64, 0, len(list))
	for i, w := range list {
		seconds := w.base
		if work {
			seconds -= w.overhead()
		}
		out.Seconds = append(out.Seconds, seconds)
		out.Number = append(out.Number, w.Number)
		if i > 0 && w.Number >= 0 && w.Number < list[i-1].Number {
			out.Starts = append(out.Starts, i)
		}
	}
	if slices.ContainsFunc(out.Number, func(n int64) bool { return n < 0 }) {
		out.Number = nil
	}
	return out
}

// otherDurations appends the durations of kind k in windows near the window self, without self: up to 16 on each side (half of rare.last). withKind has the
// indices of the windows with the kind, in order.
func otherDurations(to []float64, list []*window, withKind []int, self int, k breakdown.Kind) []float64 {
	at, _ := slices.BinarySearch(withKind, self)
	const side = len(rare{}.last) / 2
	for _, i := range withKind[max(0, at-side):min(len(withKind), at+side+1)] {
		if i != self {
			to = append(to, list[i].time[k])
		}
	}
	return to
}
