package account

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/trainers"
)

// Account is where the time of a run went. Sum of Seconds = Wall.
type Account struct {
	Start, End int64           // ns since 1970
	Wall       float64         // s
	Seconds    [States]float64 // s
	Devices    [States]float64 // s, times the ranks of the job at the time; 0: unknown
	Clock      bool            // false: no log has a clock, and Wall is the time of its steps

	Attempts []Attempt
	Steps    int64   // without repetitions
	Redone   int64   // repeated after restarts
	Ranks    int64   // the largest number of ranks; 0: unknown
	Usual    float64 // s, of one step: the median; NaN: unknown
	// Productive is s of the steps that counted; a slow step counts only as long as its usual time.
	Productive float64

	Saved  int64   // ns, end of the last checkpoint of the last attempt; 0: none is known
	Pauses []Pause // checkpoints and evaluations, in order of time, at most mostListed
	Gaps   []Gap   // Down, Stalled and Unexplained, in order of time, at most mostListed
	Apart  []Gap   // between unrelated runs, in order of time: outside of the account

	Course [][]Step       // of each attempt in order of time, each step once
	beside []beside       // of the steps in Course, in the same order
	Judged []*regimes.Run // of each attempt, step by step
}

// Attempt is from a start of the training to its end or to the next start.
type Attempt struct {
	First, Last int64 // numbers of steps; below 0: not numbered
	Steps       int64
	Redone      int64
	Ranks       int64 // the largest number of ranks; 0: unknown
	Start, End  int64 // ns, of the steps

	// Of the time before the attempt, where others were before:
	stopped int64 // ns, end of the attempt before
	began   int64 // ns, start of the process; 0: unknown
	saved   int64 // ns, last checkpoint of the attempt before; 0: unknown
}

// beside is the time in a step of the course and behind the step, up to the next, that was not training but evaluations and checkpoints.
type beside struct {
	attempt, step    int     // indices in Course
	evaluated, saved float64 // s
}

// Pause is a checkpoint or an evaluation.
type Pause struct {
	State   State
	After   int64   // number of the step before, or with the pause; below 0: unknown
	Seconds float64 // s
	Between bool    // between two steps
	At      Place   // of the step
}

// Gap is a time without a step.
type Gap struct {
	State      State
	After      int64 // number of the last step before
	Start, End int64 // ns
	At         Place // of the step After
}

// Seconds returns the length of the gap, s.
func (g Gap) Seconds() float64 { return float64(g.End-g.Start) / 1e9 }

const (
	// A gap of at least stalledSteps usual steps and stalledSeconds s is a stall. Logging, garbage collection and an unlogged checkpoint take less.
	stalledSteps   = 20
	stalledSeconds = 60

	// A process that began in a gap of at least beganSteps usual steps and beganSeconds s is a new attempt. Other logs begin between steps too.
	beganSteps   = 3
	beganSeconds = 10

	// Logs are appended to: a gap of at least two weeks, in ns, separates two runs. Jobs wait for repairs for days.
	otherRun = 14 * 24 * 3600e9

	mostListed = 10_000  // pauses, and gaps
	mostDone   = 1 << 20 // numbers of steps kept individually …
	mostOfOne  = 1 << 16 // … and of them of one record
)

// Snapshot is a ledger at a moment, reduced to its leading log.
type Snapshot struct{ ledger Ledger }

// Snapshot copies what the account needs, so that the ledger can get more records while the account is made.
func (l *Ledger) Snapshot() *Snapshot {
	s := &Snapshot{*l}
	s.ledger.steps = l.leadingSteps()
	s.ledger.pauses, s.ledger.begins, s.ledger.ends = slices.Clone(l.pauses), slices.Clone(l.begins), slices.Clone(l.ends)
	s.ledger.ranks, s.ledger.excess, s.ledger.rankOf = slices.Clone(l.ranks), maps.Clone(l.excess), maps.Clone(l.rankOf)
	return s
}

// Account returns the account so far, of the steps of one log; the ledger may get more records afterwards. false: no step has a duration.
func (l *Ledger) Account() (a Account, ok bool) { return l.Snapshot().Account() }

// Account returns the account; it may be called once. false: no step has a duration.
func (s *Snapshot) Account() (a Account, ok bool) {
	l := &s.ledger
	l.sortNotes()
	spreadWithinSecond(l.steps)
	sortSteps(l.steps)
	l.alignClocks()
	steps := l.steps
	if !anyTimed(steps) {
		return a, false
	}
	t := builder{ledger: l, a: &a, firstDone: make(map[int64]int64, len(steps)), attempts: map[int32]int32{}, logged: map[int32]logged{}}
	a.Clock = !steps[0].Synthetic
	a.Usual = medianStep(steps)
	a.Start = steps[0].Start
	// From the first line on the training is starting up, unless the line is of an older run.
	if first := l.first(a.Start); a.Clock && first > 0 && first < a.Start && a.Start-first < otherRun {
		a.Start = first
		t.setRanks(&steps[0]) // whose ranks start up
		t.spend(StartUp, a.Start, steps[0].Start)
	}
	t.at = steps[0].Start
	for i := range steps {
		t.addStep(&steps[i])
	}
	t.finish()
	a.judge(l.excess)
	return a, true
}

// anyTimed reports whether any step has a duration. With a clock alone, as in Hugging Face's rows with the stamps of kubectl logs, steps and pauses cannot be
// distinguished.
func anyTimed(steps []Step) bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.End > s.Start })
}

// judge compares each step with its neighbours in the attempt (a.Judged), and sets a.Productive: the time of the steps without repetitions. A step that is
// slow, a warm-up or periodic counts for no longer than the level of its segment, unless the period is that of gradient accumulation. excess has slow steps
// known otherwise (Ledger.Slow).
func (a *Account) judge(excess map[int64]float64) {
	for _, steps := range a.Course {
		run := regimes.Judge(attemptOf(steps))
		a.Judged = append(a.Judged, run)
		for i := range steps {
			s := &steps[i]
			if s.again {
				continue
			}
			each, judged := s.Each(), &run.Steps[i]
			asWork := judged.State == regimes.Periodic && run.Periods[judged.Period].Accumulates()
			if judged.State != regimes.Usual && judged.State != regimes.Unknown && !asWork && judged.Segment < len(run.Segments) {
				each = min(each, run.Segments[judged.Segment].Level)
			}
			if more, ok := excess[s.Start-s.moved]; ok { // excess is about the whole step, including the checkpoint and evaluation that Each leaves out
				each = min(each, max(0, (float64(s.End-s.Start)/1e9-more)/float64(s.Steps)))
			}
			a.Productive += each * float64(s.Steps)
		}
	}
}

// attemptOf returns the steps of an attempt in the form of regimes. Numbers are set only if each step has one and they ascend.
func attemptOf(steps []Step) regimes.Attempt {
	attempt := regimes.Attempt{Seconds: make([]float64, len(steps)), Loads: make([]regimes.Load, len(steps)), Number: make([]int64, 0, len(steps))}
	for i := range steps {
		s := &steps[i]
		attempt.Seconds[i] = s.Each()
		if !(attempt.Seconds[i] > 0) {
			attempt.Seconds[i] = math.NaN()
		}
		attempt.Loads[i].Ranks = int64(s.Ranks)
		ascends := s.Number >= 0 && (i == 0 || s.Number > steps[i-1].Number)
		if ascends && len(attempt.Number) == i { // every step before has an ascending number, too
			attempt.Number = append(attempt.Number, s.Number)
		}
	}
	if len(attempt.Number) < len(steps) {
		attempt.Number = nil
	}
	return attempt
}

// leadingSteps returns a copy of the steps of the leading log, in stored order. Logs of one training repeat the same steps, so the account uses one log only. A
// log with a clock leads before one without; among these, a log with lengths of steps before one with none; then a log with the time of each step before one
// with medians; then the log that covers most steps; then the log found first (the lowest number).
func (l *Ledger) leadingSteps() []Step {
	covered, typical, hasLengths := map[log]int64{}, map[log]int{}, l.withLengths()
	of := func(s *Step) log { return log{s.Source, s.Synthetic, hasLengths[s.Writer]} }
	for i := 0; i < len(l.steps); { // mostly the next step is of the same log
		key, n := of(&l.steps[i]), int64(0)
		for ; i < len(l.steps) && key == of(&l.steps[i]); i++ {
			n += int64(l.steps[i].Steps)
			if l.steps[i].Typical {
				typical[key] = 1
			}
		}
		covered[key] += n
	}
	one := map[bool]int{true: 1}
	var best log
	chosen := false
	for other, n := range covered { // in any order: no two logs are equal in all of these
		better := cmp.Or(cmp.Compare(one[best.synthetic], one[other.synthetic]), cmp.Compare(one[other.lengths], one[best.lengths]),
			cmp.Compare(typical[best], typical[other]), cmp.Compare(n, covered[best]), cmp.Compare(best.source, other.source)) > 0
		if !chosen || better {
			best, chosen = other, true
		}
	}
	out := make([]Step, 0, len(l.steps))
	for i := range l.steps {
		if s := &l.steps[i]; of(s) == best {
			out = append(out, *s)
		}
	}
	return out
}

// withLengths returns, by writer, whether any step has a length. Of the records that Hugging Face's Trainer writes to two files, those beside the bar have one.
func (l *Ledger) withLengths() (has []bool) {
	for i := range l.steps {
		s := &l.steps[i]
		if more := int(s.Writer) + 1 - len(has); more > 0 {
			has = append(has, make([]bool, more)...)
		}
		has[s.Writer] = has[s.Writer] || s.End > s.Start
	}
	return has
}

// medianStep returns the median time of a step, s; NaN: no step has a time.
func medianStep(steps []Step) float64 {
	all := make([]float64, 0, len(steps))
	for i := range steps {
		if each := steps[i].Each(); each > 0 {
			all = append(all, each)
		}
	}
	return stat.MedianInPlace(all)
}

// builder goes through the steps of a run in order of time, and accounts for each and for the time before.
type builder struct {
	ledger    *Ledger
	a         *Account
	at        int64            // ns: end of the accounted time
	last      *Step            // last accounted step
	firstDone map[int64]int64  // by number: when each step was done first, ns
	highest   int64            // number in done
	attempts  map[int32]int32  // the last attempt of each writer
	logged    map[int32]logged // last accounted step of each writer
	pause     int              // index of the first of the ledger's pauses not accounted for
	behind    [2]float64       // s of checkpoints and evaluations after the last step, not accounted for
	spent     [States]int64    // ns
	ranks     int64            // the job's latest number; 0: unknown
	noted     int              // number of the ledger's changes of ranks applied
	saved     int64            // ns, last checkpoint of the attempt; 0: unknown
	stopped   int64            // ns, when the last attempt was over
	began     int64            // ns, start of the next process; 0: unknown
}

// logged is the last step of a writer, with the attempt of the run.
type logged struct {
	attempt int
	number  int64
}

// spend adds the time between two moments, ns, to a state; for Devices, multiplied by the ranks of the job.
func (t *builder) spend(s State, from, to int64) {
	t.spent[s] += to - from
	t.a.Devices[s] += float64(to-from) / 1e9 * float64(t.ranks)
}

// setRanks sets the number of ranks of the job in a step. The changes of ranks in the ledger, if any, are more reliable than the record of the step.
func (t *builder) setRanks(s *Step) {
	all := t.ledger.ranks
	for t.noted < len(all) && all[t.noted].from <= s.Start {
		t.noted++
	}
	t.ranks = int64(s.Ranks)
	if len(all) > 0 {
		t.ranks = all[max(0, t.noted-1)].n // before the first change too the number is the first's
	}
	t.a.Ranks = max(t.a.Ranks, t.ranks)
}

// spendPause accounts for a checkpoint or an evaluation (state) after the last step, between two times, Unix ns. until becomes the end of the accounted time.
func (t *builder) spendPause(state State, from, until int64) {
	t.spend(state, from, until)
	t.listPause(Pause{state, t.last.Number, float64(until-from) / 1e9, true, t.last.Place()}, until, microClock(until)-microClock(from))
	t.at = until
}

// addStep accounts for a record: a copy of a step already accounted for, the continuation of the last step, or a new step, possibly the first of a run or of an
// attempt.
func (t *builder) addStep(s *Step) {
	done, again := int64(0), s.Number <= t.highest // mostly a new number, which need not be looked up
	if again {
		done, again = t.firstDone[s.Number]
	}
	other := t.a.Clock && t.last != nil && s.Start-t.at >= otherRun // an unrelated run begins
	again = again && s.Number >= 0 && !other
	switch {
	case t.last != nil && t.isAccounted(s, done, again):
		t.mergeCopy(s)
		return
	case again && t.continuesLast(s):
		t.extendLast(s)
		return
	case t.last == nil || other || t.beginsAttempt(s, again):
		t.beginAttempt(s, other)
	default:
		t.spendGap(s.Start, nil)
	}
	t.attempts[s.Writer] = s.Attempt
	t.logged[s.Writer] = logged{len(t.a.Attempts), s.Number}
	t.setRanks(s)
	s.MoveBehind()
	s.again = again
	t.a.Course[len(t.a.Course)-1] = append(t.a.Course[len(t.a.Course)-1], *s)
	t.countSteps(s)
	t.spendStep(s)
	t.last = s
	t.behind = [2]float64{float64(s.CheckpointBehind), float64(s.EvaluationBehind)}
}

// MoveBehind moves the checkpoint and the evaluation of a record to the time after the record (CheckpointBehind, EvaluationBehind), if they do not fit within
// the record.
func (s *Step) MoveBehind() {
	if trainers.Beside(float64(s.End-s.Start)/1e9, float64(s.Others), float64(s.Checkpoint)+float64(s.Evaluation)) {
		s.Checkpoint, s.Evaluation, s.CheckpointBehind, s.EvaluationBehind = 0, 0, s.CheckpointBehind+s.Checkpoint, s.EvaluationBehind+s.Evaluation
	}
}

// isAccounted reports whether a record is of a step already accounted for, by another rank or in another log: a step done before (again), at done (Unix ns), if
// the record begins earlier or its writer advances beside others; the last step, also without a number, if the record begins in that step; or any record whose
// time is accounted for.
//
// A repetition after a restart begins later. Half of a step is the tolerance for clocks and for the spread of ranks.
func (t *builder) isAccounted(s *Step, done int64, again bool) bool {
	half := (s.End - s.Start) / 2
	doneBeside := again && (s.Start < done-half || t.advancesBeside(s))
	lastBeside := s.Number == t.last.Number && s.Start < t.last.End-half
	accounted := s.End <= t.at && s.End > s.Start
	return doneBeside || lastBeside || accounted
}

// beginAttempt starts an attempt with a step, and accounts for the time before. other: the attempt is the first of an unrelated run.
func (t *builder) beginAttempt(s *Step, other bool) {
	t.stopped, t.began = t.at, 0 // gap may know more
	if other {
		t.beginRun(s.Start)
	}
	t.spendGap(s.Start, s)
	t.a.Course = append(t.a.Course, nil)
	if len(t.a.Course) == 1 { // usually the only one
		t.a.Course[0] = make([]Step, 0, len(t.ledger.steps))
	}
	first := max(s.Number-int64(s.Steps)+1, min(s.Number, 0)) // the first of the record's steps, 0 at least; below 0: no number
	t.a.Attempts = append(t.a.Attempts, Attempt{First: first, Start: s.Start, stopped: t.stopped, began: t.began, saved: t.saved})
	t.saved = 0
}

// countSteps counts the steps of a record for the run and the attempt, as new or repeated, and keeps the numbers of new steps.
func (t *builder) countSteps(s *Step) {
	at := &t.a.Attempts[len(t.a.Attempts)-1]
	at.Ranks = max(at.Ranks, t.ranks)
	at.Last, at.Steps, at.End = s.Number, at.Steps+int64(s.Steps), max(at.End, s.End)
	if s.again {
		t.a.Redone += int64(s.Steps)
		at.Redone += int64(s.Steps)
		return
	}
	t.a.Steps += int64(s.Steps)
	if s.Number >= 0 {
		numbers := min(int(s.Steps), mostOfOne, max(1, mostDone-len(t.firstDone))) // the last ones, as far as there is room: one at least
		for n := s.Number; n > s.Number-int64(numbers); n-- {
			t.firstDone[n] = s.End
		}
		t.highest = max(t.highest, s.Number)
	}
}

// spendStep accounts for the time of a step: its checkpoint, its evaluation, and the rest as training. Time already accounted for, of overlapping records, is
// left out.
func (t *builder) spendStep(s *Step) {
	from := max(t.at, s.Start)
	if s.End <= from {
		return
	}
	state := InStep
	if s.again {
		state = Redone
	}
	checkpoint := min(nanoseconds(float64(s.Checkpoint)), s.End-from)
	evaluation := min(nanoseconds(float64(s.Evaluation)), s.End-from-checkpoint)
	t.spendWithin(s, Checkpoint, checkpoint)
	t.spendWithin(s, Evaluation, evaluation)
	t.spend(state, from, s.End-checkpoint-evaluation)
	t.at = s.End
}

// continuesLast reports whether a record continues the last step: some loops log each micro-batch with the number of its step. A restart takes longer.
func (t *builder) continuesLast(s *Step) bool {
	return s.Number == t.last.Number && s.Writer == t.last.Writer && s.Attempt == t.last.Attempt && s.Start-t.at < beganSeconds*1e9
}

// extendLast adds a record to the last step, whose number it has (continuesLast): the step now ends with the record, and the time in between is a gap like any
// other.
func (t *builder) extendLast(s *Step) {
	t.spendGap(s.Start, nil)
	s.MoveBehind()
	s.again = t.last.again
	t.spendStep(s)
	course := t.a.Course[len(t.a.Course)-1]
	for _, step := range [...]*Step{&course[len(course)-1], t.last} { // the course has a copy of the last step
		step.End = t.at
		step.Checkpoint += s.Checkpoint
		step.Evaluation += s.Evaluation
		step.Evaluated = step.Evaluated || s.Evaluated
		step.Ranks = max(step.Ranks, s.Ranks)
	}
	t.firstDone[s.Number] = t.at
	t.a.Attempts[len(t.a.Attempts)-1].End = t.at
	t.behind = [2]float64{float64(s.CheckpointBehind), float64(s.EvaluationBehind)}
}

// mergeCopy takes from a copy of a step what the first record may lack: the progress of the writer, and the checkpoints and evaluations after the step.
func (t *builder) mergeCopy(s *Step) {
	t.attempts[s.Writer] = max(t.attempts[s.Writer], s.Attempt)
	t.logged[s.Writer] = logged{len(t.a.Attempts), s.Number}
	if s.Number == t.last.Number { // after an earlier step, the time is already accounted for
		s.MoveBehind()
		t.behind[0] = max(t.behind[0], float64(s.CheckpointBehind))
		t.behind[1] = max(t.behind[1], float64(s.EvaluationBehind))
		t.last.Evaluated = t.last.Evaluated || s.Evaluated
	}
}

// advancesBeside reports whether a writer advances in this attempt beside others that logged the step. A writer that logs the step a second time, or that is
// new after every other writer has finished, has restarted.
func (t *builder) advancesBeside(s *Step) bool {
	at := &t.a.Attempts[len(t.a.Attempts)-1]
	if s.Number < max(at.First, 0) || s.Number > at.Last { // nobody logged the step in this attempt
		return false
	}
	if attempt, known := t.attempts[s.Writer]; known && s.Attempt > attempt { // the writer says that it has restarted
		return false
	}
	if was, known := t.logged[s.Writer]; known && was.attempt == len(t.a.Attempts) { // the writer has logged a step of this attempt
		return s.Number > was.number
	}
	return s.Start < t.at // new in this attempt: the others are still at work
}

// beginsAttempt reports whether a step begins an attempt: the writer says so; the number goes back to a finished step (again), or, after a time as long as a
// stall, to any lower number; or a process began, or the job was ended, in a time without steps of at least beganSteps and beganSeconds.
func (t *builder) beginsAttempt(s *Step, again bool) bool {
	attempt, known := t.attempts[s.Writer]
	if known && s.Attempt > attempt || again && s.Number <= t.last.Number {
		return true
	}
	// The time without steps, checkpoints and evaluations, ns.
	idle := s.Start - t.at - nanoseconds(t.behind[0]) - nanoseconds(t.behind[1])
	for _, p := range t.ledger.pauses[t.pause:] {
		if p.start >= s.Start {
			break
		}
		idle -= max(0, min(p.end, s.Start)-max(p.start, t.at))
	}
	if s.Number >= 0 && s.Number < t.last.Number && t.stalls(float64(idle)/1e9) {
		return true
	}
	if long := float64(idle) / 1e9; long < beganSeconds || long < beganSteps*t.a.Usual {
		return false
	}
	_, began := t.processStart(s.Start)
	return began && !t.last.Evaluated || t.endedBefore(s.Start) // an evaluation may be a process of its own
}

// endedBefore reports whether the scheduler or the launcher ended the job between the start of the last step and a time, Unix ns. The start of the step, not
// its end, counts: a line about the end that has no clock has the time of the line before.
func (t *builder) endedBefore(before int64) bool {
	i, _ := slices.BinarySearch(t.ledger.ends, before)
	return t.a.Clock && i > 0 && t.ledger.ends[i-1] >= t.last.Start
}

// processStart returns the start of the last process that began after the accounted time and before a time, Unix ns. false: none, or the log has no clock.
func (t *builder) processStart(before int64) (int64, bool) {
	if !t.a.Clock {
		return 0, false
	}
	i, _ := slices.BinarySearch(t.ledger.begins, before)
	if i == 0 || t.ledger.begins[i-1] <= t.at {
		return 0, false
	}
	return t.ledger.begins[i-1], true
}

// spendWithin accounts for a checkpoint or an evaluation (state) within a step, which took so many ns.
func (t *builder) spendWithin(s *Step, state State, took int64) {
	if took > 0 {
		t.spend(state, 0, took)
		t.listPause(Pause{state, s.Number, float64(took) / 1e9, false, s.Place()}, s.End, float64(took)/1e9)
	}
}

// listPause adds a pause to Pauses, at most mostListed, and to a.beside for the last step of the course; a checkpoint becomes the last of the attempt. until is
// the end of the pause, Unix ns, and took its duration by the clock, s, which Google's goodput uses.
func (t *builder) listPause(p Pause, until int64, took float64) {
	attempt := len(t.a.Course) - 1
	entry := beside{attempt: attempt, step: len(t.a.Course[attempt]) - 1}
	// The step's pauses are one entry, the last.
	if n := len(t.a.beside); n > 0 && t.a.beside[n-1].attempt == entry.attempt && t.a.beside[n-1].step == entry.step {
		entry, t.a.beside = t.a.beside[n-1], t.a.beside[:n-1]
	}
	if p.State == Checkpoint {
		t.saved = until
		entry.saved += p.Seconds
	} else {
		entry.evaluated += took
	}
	t.a.beside = append(t.a.beside, entry)
	if len(t.a.Pauses) < mostListed {
		t.a.Pauses = append(t.a.Pauses, p)
	}
}

// listGap accounts for a gap, and adds it to Gaps, at most mostListed.
func (t *builder) listGap(g Gap) {
	t.spend(g.State, g.Start, g.End)
	if len(t.a.Gaps) < mostListed {
		t.a.Gaps = append(t.a.Gaps, g)
	}
}

// stalls reports whether a time without steps is too long for the usual work between steps.
func (t *builder) stalls(seconds float64) bool {
	return seconds >= stalledSeconds && seconds >= stalledSteps*t.a.Usual
}

// spendIdle accounts for a time without steps, until to (Unix ns), that nothing explains: Stalled if too long, else Unexplained.
func (t *builder) spendIdle(to int64) {
	g := Gap{Unexplained, t.last.Number, t.at, to, t.last.Place()}
	if t.stalls(g.Seconds()) {
		g.State = Stalled
	}
	t.listGap(g)
	t.at = to
}

// beginRun starts the next, unrelated run at to (Unix ns): the time before is outside of the account, and numbers of steps start again.
func (t *builder) beginRun(to int64) {
	if len(t.a.Apart) < mostListed {
		t.a.Apart = append(t.a.Apart, Gap{Down, t.last.Number, t.at, to, t.last.Place()})
	}
	for t.pause < len(t.ledger.pauses) && t.ledger.pauses[t.pause].start < to {
		t.pause++
	}
	clear(t.firstDone)
	t.highest = 0
	t.at, t.behind, t.saved = to, [2]float64{}, 0
}

// spendGap accounts for the time from the last step up to the next, which starts at to (Unix ns): first logged pauses, then pauses without a time. The rest is
// Down and StartUp before a new attempt, whose first step is first (else nil); Evaluation if only the result of one is logged; else idle.
func (t *builder) spendGap(to int64, first *Step) {
	if t.last == nil {
		return
	}
	if !t.a.Clock { // steps are back to back: logged time between them is added
		t.spendWithoutClock()
		t.at = max(t.at, to)
		return
	}
	t.spendTimed(to)
	// Pauses without a time count directly after the step.
	for i, of := range [...]State{Checkpoint, Evaluation} {
		if until := min(to, t.at+nanoseconds(t.behind[i])); until > t.at {
			t.behind[i] -= float64(until-t.at) / 1e9
			t.spendPause(of, t.at, until)
		}
	}
	t.stopped = t.at
	switch {
	case to <= t.at:
	case first != nil: // from its start, the last process before the step is starting up
		from := to
		if began, ok := t.processStart(to); ok {
			from, t.began = began, began
		}
		t.listGap(Gap{Down, t.last.Number, t.at, from, t.last.Place()})
		t.setRanks(first) // whose ranks start up
		t.spend(StartUp, from, to)
		t.at = to
	case t.last.Evaluated: // the log has the result without its duration
		t.spendPause(Evaluation, t.at, to)
	default:
		t.spendIdle(to)
	}
}

// spendWithoutClock accounts for the pauses after the last step of a log without a clock: they have a duration, but no place in time.
func (t *builder) spendWithoutClock() {
	for i, of := range [...]State{Checkpoint, Evaluation} {
		if s := t.behind[i]; s > 0 {
			t.spend(of, 0, nanoseconds(s))
			t.listPause(Pause{of, t.last.Number, s, true, t.last.Place()}, 0, s)
		}
	}
	t.behind = [2]float64{}
}

// spendTimed accounts for the pauses with a logged time that start before to (Unix ns), and for the time before each as idle.
func (t *builder) spendTimed(to int64) {
	for ; t.pause < len(t.ledger.pauses) && t.ledger.pauses[t.pause].start < to; t.pause++ {
		p := &t.ledger.pauses[t.pause]
		from, until := max(p.start, t.at), min(p.end, to)
		if until <= from { // accounted for already
			continue
		}
		if from > t.at {
			t.spendIdle(from)
		}
		t.spendPause(p.state, from, until)
	}
}

// finish accounts for the time after the last step, and sums up the account.
func (t *builder) finish() {
	a := t.a
	if a.Clock {
		t.spendAfterEnd()
	} else {
		t.spendWithoutClock()
		a.End = t.at
	}
	a.Saved = t.saved
	whole := int64(0)
	for s, ns := range t.spent {
		a.Seconds[s] = float64(ns) / 1e9
		whole += ns
	}
	a.Wall = float64(whole) / 1e9
}

// spendAfterEnd accounts for the time after the last step of a log with a clock, up to the last line: pauses, and the rest as AfterEnd. Lines after otherRun
// belong to another run.
func (t *builder) spendAfterEnd() {
	for i, of := range [...]State{Checkpoint, Evaluation} { // logged pauses after the last step count, even without a later line
		if took := nanoseconds(t.behind[i]); took > 0 {
			t.spendPause(of, t.at, t.at+took)
		}
	}
	for _, p := range t.ledger.pauses[t.pause:] {
		if from := max(p.start, t.at); p.end > from && from-t.at < otherRun {
			t.spend(AfterEnd, t.at, from)
			t.spendPause(p.state, from, p.end)
		}
	}
	t.a.End = max(t.at, t.ledger.last(t.at))
	if t.a.End-t.at >= otherRun {
		t.a.End = t.at
	}
	t.spend(AfterEnd, t.at, t.a.End)
}

// Of returns the listed pauses of a state, the longest first.
func (a *Account) Of(s State) (all []Pause) {
	for _, p := range a.Pauses {
		if p.State == s {
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(x, y Pause) int { return cmp.Compare(y.Seconds, x.Seconds) })
	return all
}
