package account

import (
	"cmp"
	"math"
	"slices"
)

// Goodput returns Productive / Wall, 0..1: the share of time in steps that counted, none longer than usual for its neighbours.
func (a *Account) Goodput() float64 {
	if a.Wall <= 0 {
		return 0
	}
	return min(1, a.Productive/a.Wall)
}

// Google returns the goodput of Google's ml-goodput-measurement 0.2.3, 0..1: GoodputCalculator.get_job_goodput of goodput.py, / 100.
//
// Events: job_start and job_end at the first and the last line, and step_start of each step. An evaluation is an eval_step, a custom badput event; a checkpoint
// has its save time.
//
// Rules: a step lasts until the next step starts. Steps before the resumed step count, and the last step counts until the end. The first step of each attempt
// counts no longer than the mean of the others. A step saved several times has the mean of its save times.
//
// NaN: no log has a clock or a time; the log has several runs; steps have no numbers, are too many, or jump back and forth (google.add); most numbers are not
// logged; or the result is not within 0..1.
func (a *Account) Google() float64 {
	if !a.Clock || a.Wall <= 0 || len(a.Apart) > 0 {
		return math.NaN()
	}
	var g google
	beside := a.beside
	for attempt, steps := range a.Course {
		for i := range steps {
			evaluated := 0.0
			// beside is in the order of the steps: its first is of this step, or of a later one.
			if len(beside) > 0 && beside[0].attempt == attempt && beside[0].step == i {
				evaluated, beside = beside[0].evaluated, beside[1:]
			}
			if !g.add(&steps[i], evaluated) {
				return math.NaN()
			}
		}
	}
	whole := microClock(a.End) - microClock(a.Start)
	productive := g.finish(microClock(a.End)) - a.saveSeconds()
	leavesOut := g.holes > g.steps/2 // most numbers are not logged
	// The library reports an error for productive > whole.
	if leavesOut || productive < 0 || productive > whole {
		return math.NaN()
	}
	return productive / whole
}

// saveSeconds returns the time of all checkpoints, s; a step saved several times, in several attempts, counts with the mean. The sum is in the order of the
// steps, so that its last bits do not vary.
func (a *Account) saveSeconds() (sum float64) {
	type save struct {
		seconds float64
		times   int
	}
	saves := map[int64]save{}
	for _, b := range a.beside {
		if n := a.Course[b.attempt][b.step].Number; b.saved > 0 {
			saves[n] = save{saves[n].seconds + b.saved, saves[n].times + 1}
		}
	}
	for _, b := range a.beside {
		n := a.Course[b.attempt][b.step].Number
		if all, ok := saves[n]; ok {
			sum += all.seconds / float64(all.times)
			delete(saves, n)
		}
	}
	return sum
}

// CRE returns the runtime goodput of NVIDIA's Cluster Readiness Engine v0.8, 0..1: CalculateGoodput of pkg/goodput/calculator.go,
//
//	(t_w - t_ch - t_rm - t_re - t_save) / (t_w - t_re)
//
// with t_w from the line of the first step to the last line, t_save for checkpoints, and of each interruption t_ch (work done again) since the last checkpoint
// (without one in the log: since the resumed step), t_re (rescheduling) until the next process begins, or until the line of its first step where its begin is
// not in the log, and t_rm (resuming) from there to that line. The first process has a t_rm too: from the first line of the log, if one is before the first
// step. NaN: no log has a clock, the log has several runs, or an interruption without a checkpoint and numbers of steps. 0: nothing is left of t_w.
func (a *Account) CRE() float64 {
	if !a.Clock || len(a.Course) == 0 || len(a.Apart) > 0 {
		return math.NaN()
	}
	first := a.Course[0][0].End
	lost, reschedule, resume := int64(0), int64(0), int64(0) // ns: t_ch, t_re and t_rm
	if a.Start < a.Course[0][0].Start {
		resume = first - a.Start
	}
	for i := 1; i < len(a.Attempts); i++ {
		at := &a.Attempts[i]
		saved, ok := a.lostSince(i)
		if !ok {
			return math.NaN()
		}
		resumed := a.Course[i][0].End
		scheduled := at.began
		if scheduled == 0 {
			scheduled = resumed
		}
		lost += max(0, at.stopped-saved)
		reschedule += max(0, scheduled-at.stopped)
		resume += max(0, resumed-scheduled)
	}
	training := float64(a.End-first) / 1e9 // t_w
	whole := training - float64(reschedule)/1e9
	if whole <= 0 {
		return 0
	}
	return min(1, max(0, whole-float64(lost+resume)/1e9-a.Seconds[Checkpoint])/whole)
}

// lostSince returns from when on work was lost when the attempt before the i-th was interrupted, Unix ns: its last checkpoint; without one in the log, the end
// of the step before the resumed one; without such a step, the start of its first step. false: no checkpoint is logged, and the steps have no numbers.
func (a *Account) lostSince(i int) (int64, bool) {
	at, before := &a.Attempts[i], a.Course[i-1]
	switch {
	case at.saved > 0:
		return at.saved, true
	case at.First < 0 || before[0].Number < 0:
		return 0, false
	}
	saved := before[0].Start
	for k := range before {
		if before[k].Number < at.First {
			saved = max(saved, before[k].End)
		}
	}
	return saved, true
}

// ETTR returns the effective training time ratio of Meta, 0..1 (Revisiting Reliability in Large-Scale Machine Learning Research Clusters, arXiv 2410.21680):
// productive runtime by the available wall-clock time of all attempts, R / (Q + R + U). Here Q is the time between attempts, and U the start-up of each, the
// repeated steps, and blocking checkpoints. R is all the rest, not Productive: the paper leaves open what is productive, so evaluations, stalls and the time
// after the last step count. NaN: no log has a clock or a time.
func (a *Account) ETTR() float64 {
	if !a.Clock || a.Wall <= 0 {
		return math.NaN()
	}
	return max(0, 1-(a.Seconds[StartUp]+a.Seconds[Down]+a.Seconds[Redone]+a.Seconds[Checkpoint])/a.Wall)
}

// microClock returns a time in the form of Google's library: s since 1970, in whole µs, so that sums are equal to the last bit.
func microClock(ns int64) float64 { return float64(ns/1e3) / 1e6 }

const (
	mostStarts = 1 << 20 // steps for Google's goodput
	mostRuns   = 64      // jumps back to numbers unseen in the attempt
)

// google goes through the starts of steps as ml-goodput-measurement does.
type google struct {
	starts     []start // since the first, or since the last restart
	runs       []int   // indices in starts where numbers begin, and where they go back: in between they ascend
	most       int64   // the largest number in starts
	productive float64 // s, until the last restart
	steps      int     // steps closed that have a next one
	holes      int     // of steps, those whose next number is not theirs plus 1
}

// start is a step_start event.
type start struct {
	number    int64
	at        float64 // s since 1970
	evaluated float64 // s of evaluations until the next
}

// add adds the steps of a record, of equal length, and the s of evaluations after them. A number that was there before is a restart: the steps until now are
// closed. false: the steps have no numbers, are too many, or jump back and forth: not steps of one training.
func (g *google) add(s *Step, evaluated float64) bool {
	if s.Number < 0 || g.steps+len(g.starts)+int(s.Steps) > mostStarts {
		return false
	}
	each := (s.End - s.Start) / int64(s.Steps)
	for i := range int64(s.Steps) {
		one := start{number: s.Number - int64(s.Steps) + 1 + i, at: microClock(s.Start + i*each)}
		if one.number == s.Number {
			one.evaluated = evaluated
		}
		if len(g.starts) > 0 && one.number <= g.most && g.hasNumber(one.number) { // resumed here
			g.closeSteps(one.number)
		}
		n := len(g.starts)
		if n == 0 {
			g.most = one.number
		}
		if n == 0 || one.number < g.starts[n-1].number { // back to a number not seen before
			g.runs = append(g.runs, n)
		}
		g.most = max(g.most, one.number)
		g.starts = append(g.starts, one)
	}
	return len(g.runs) <= mostRuns
}

// hasNumber reports whether a number is among g.starts.
func (g *google) hasNumber(number int64) bool {
	for k, from := range g.runs {
		to := len(g.starts)
		if k+1 < len(g.runs) {
			to = g.runs[k+1]
		}
		if _, ok := slices.BinarySearchFunc(g.starts[from:to], number, func(s start, n int64) int { return cmp.Compare(s.number, n) }); ok {
			return true
		}
	}
	return false
}

// closeSteps adds to g.productive the time of the steps before the number back, where the training resumed, and empties g.starts. A step lasts until the next
// one starts, less evaluations. The first step counts no longer than the mean of the others: the library takes the rest for start-up.
func (g *google) closeSteps(back int64) {
	total, first, others, counted := 0.0, 0.0, 0, 0 // s of all steps, s of the first, number of the others and of all
	least := g.starts[0].number                     // the number of the first step
	for _, from := range g.runs {
		least = min(least, g.starts[from].number)
	}
	for i := 1; i < len(g.starts); i++ {
		was, is := &g.starts[i-1], &g.starts[i]
		g.steps++
		if is.number > back { // done again later
			continue
		}
		if is.number-1 != was.number { // not all numbers are logged: the duration of was is unknown
			g.holes++
			continue
		}
		took := max(0, is.at-was.at-was.evaluated)
		total += took
		counted++
		if was.number == least {
			first = took
		} else {
			others++
		}
	}
	if back != 0 && counted > 0 { // resumed at step 0, nothing counts
		if others == 0 {
			g.productive += first
		} else {
			g.productive += total - max(0, first-(total-first)/float64(others))
		}
	}
	g.starts, g.runs = g.starts[:0], g.runs[:0]
}

// finish counts the remaining steps, and the last step until the end of the job, at (s since 1970). It returns the productive time, s.
func (g *google) finish(at float64) float64 {
	i := slices.IndexFunc(g.starts, func(s start) bool { return s.number == g.most })
	last := g.starts[i].at
	g.closeSteps(g.most)
	return g.productive + (at - last)
}
