package account

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// State is the activity of a run in a second of its wall clock.
type State uint8

// The states.
const (
	StartUp     State = iota // until the first step
	InStep                   // in steps that counted
	Checkpoint               // between steps or in them, as timed by the trainer
	Evaluation               // as Checkpoint
	Redone                   // in steps repeated after a restart
	Down                     // between two attempts
	Stalled                  // no step for far longer than usual, and no log says why
	Unexplained              // between two steps, otherwise
	AfterEnd                 // from the last step on
	States
)

var stateNames = [States]string{"start_up", "step", "checkpoint", "evaluation", "redone", "down", "stalled", "unexplained", "after_end"}

// String returns the name of the state in metrics and the JSON report.
func (s State) String() string { return stateNames[s] }

// Step is a record of one step, or of several together.
type Step struct {
	Start, End       int64    // ns since 1970; equal: the duration is unknown
	Number           int64    // of the last step; below 0: the log numbers none
	Offset           int64    // By, of its record in the log; below 0: unknown
	Trace            [16]byte // of the record
	Steps            int32    // number of steps, at least 1
	Attempt          int32    // the writer's, from 0
	Ranks            int32    // of the job at the time; 0: unknown
	Writer           int32    // the writer's number, given by the caller: one per rank and file
	Name             uint32   // a hash of the writer's name: numbers depend on the order of reading, as logs are read in parallel
	Checkpoint       float32  // s, of checkpoints within the step, part of its duration
	Evaluation       float32  // s, of evaluations within the step, likewise
	CheckpointBehind float32  // s, of checkpoints between the step and the next
	EvaluationBehind float32  // s, of evaluations between the step and the next
	Others           float32  // s, of all other parts directly below the step, as far as known
	Source           int16    // the log's number: steps of several logs are of one training
	Evaluated        bool     // the log has the result of an evaluation behind the step
	Synthetic        bool     // the log has no clock; its order and its durations are true
	Typical          bool     // the duration is a median of many steps, not that of these

	again bool  // a step done before a restart, done again
	moved int64 // ns: within the second of the log's stamp (spread)
}

// Place returns the position of the step's record.
func (s *Step) Place() Place { return Place{s.Trace, s.Offset, s.Writer} }

// Place is the position of a record, in the caller's terms.
type Place struct {
	Trace  [16]byte
	Offset int64 // in the file of the writer; below 0: unknown
	Writer int32
}

// length returns the duration of the step, ns, without checkpoints and evaluations in it.
func (s *Step) length() float64 {
	return max(0, float64(s.End-s.Start)-1e9*float64(s.Checkpoint+s.Evaluation))
}

// Each returns the duration of one of the steps, s, as in length; 0: unknown.
func (s *Step) Each() float64 { return s.length() / 1e9 / float64(s.Steps) }

// pause is a checkpoint or an evaluation with a logged time.
type pause struct {
	start, end int64
	state      State
}

const mostPauses = 1 << 17

// Times and lengths beyond these bounds are of no clock, and sums within do not overflow.
const (
	latest  = 1 << 62 // ns since 1970: in 2116
	longest = 1e8     // s, of a pause: 3 years
)

// boundedTime returns a time within 0 and latest, ns.
func boundedTime(ns int64) int64 { return min(max(ns, 0), latest) }

// nanoseconds converts s to ns; negative or NaN: 0; at most twice longest.
func nanoseconds(seconds float64) int64 {
	if !(seconds > 0) {
		return 0
	}
	return int64(math.Round(min(seconds, 2*longest) * 1e9))
}

// addSeconds returns was plus seconds, at most longest; negative seconds or NaN are ignored.
func addSeconds(was float32, seconds float64) float32 {
	if !(seconds > 0) {
		return was
	}
	return float32(min(float64(was)+seconds, longest))
}

// Ledger collects the records of a run from its logs. Not safe for concurrent use. The caller bounds the number of records by Merge. The zero value is empty.
type Ledger struct {
	steps  []Step
	pauses []pause
	begins []int64           // ns, when a process began
	ends   []int64           // ns, when the scheduler or the launcher ended the job
	excess map[int64]float64 // s beyond the usual time of a step, by its start
	ranks  []ranks           // changes, in order of arrival
	firsts []edge            // the first lines of logs, and the last ones
	lasts  []edge
	rankOf map[int32]int64 // of writers, as far as known
	merges int32           // number of merges
	same   int             // number of first steps unchanged since Stored
}

// Ref refers to a step of a ledger, until the next merge, which moves steps.
type Ref struct{ merges, index int32 }

// Add adds a step and returns a reference to it. Values outside of their bounds, such as times of no clock or negative durations, are set to the nearest bound.
func (l *Ledger) Add(s Step) Ref {
	s.Steps, s.Number, s.Ranks = max(1, s.Steps), min(max(s.Number, -1), latest), max(0, s.Ranks)
	s.Start = boundedTime(s.Start)
	s.End = max(s.Start, boundedTime(s.End))
	for _, of := range [...]*float32{&s.Checkpoint, &s.Evaluation, &s.CheckpointBehind, &s.EvaluationBehind, &s.Others} {
		*of = addSeconds(0, float64(*of))
	}
	// append alone grows a list of 256 and more by a quarter, and so copies each step four times. This list doubles, by at most 1<<16 steps.
	if len(l.steps) == cap(l.steps) {
		l.steps = slices.Grow(l.steps, min(max(len(l.steps), 64), 1<<16))
	}
	l.steps = append(l.steps, s)
	return Ref{l.merges, int32(len(l.steps) - 1)}
}

// Steps returns the steps in their stored order, owned by the ledger. The first same of them are unchanged since Stored.
func (l *Ledger) Steps() (steps []Step, same int) { return l.steps, l.same }

// Stored records that the first n steps are stored.
func (l *Ledger) Stored(n int) { l.same = min(n, len(l.steps)) }

// Pauses calls f with the arguments of each call of Pause.
func (l *Ledger) Pauses(f func(of State, start, end int64)) {
	for _, p := range l.pauses {
		f(p.state, p.start, p.end)
	}
}

// Len returns the number of records.
func (l *Ledger) Len() int { return len(l.steps) }

// Merge frees at least a quarter of the records, with as little loss as needed, in this order: records of one step by several writers become one record; every
// second record of a log joins the one before; only the writer with most steps stays; records join that do not follow closely (the time between two is then in
// the step). If too few join, the second half is dropped. References from before are invalid.
//
// It reports whether the number of records decreased.
func (l *Ledger) Merge() bool {
	before := len(l.steps)
	enough := before * 3 / 4
	sortSteps(l.steps)
	l.uniteWriters()
	for _, shorten := range [...]func(){func() { l.joinPairs(true) }, l.keepOneWriter, func() { l.joinPairs(false) }} {
		if len(l.steps) > enough {
			shorten()
		}
	}
	if len(l.steps) > enough && before > 1 { // too few join, as numbers do not advance: the first half is as good as any
		l.steps = l.steps[:before/2]
	}
	l.merges++
	l.same = 0
	return len(l.steps) < before
}

// log identifies a sequence of steps in one order.
type log struct {
	source    int16
	synthetic bool
	lengths   bool // some step of the writer has a length, for leadingSteps
}

// mostCovered bounds the steps of a record known to be in other records too.
const mostCovered = 1 << 6

// uniteWriters merges the records of one step by several writers of a log at the same time, in steps sorted by time. The first record stays, with the longest
// pauses after the step.
func (l *Ledger) uniteWriters() {
	if !slices.ContainsFunc(l.steps, func(s Step) bool { return s.Writer != l.steps[0].Writer }) {
		return
	}
	type step struct {
		number    int64
		source    int16
		synthetic bool
	}
	last := make(map[step]int, len(l.steps)) // position among the kept
	kept := l.steps[:0]
	for _, s := range l.steps {
		of := step{s.Number, s.Source, s.Synthetic}
		if i, ok := last[of]; ok && s.Number >= 0 {
			o := &kept[i]
			overlaps := s.Start < o.End || s.Start == o.Start
			if o.Writer != s.Writer && o.Attempt == s.Attempt && overlaps {
				o.CheckpointBehind = max(o.CheckpointBehind, s.CheckpointBehind)
				o.EvaluationBehind = max(o.EvaluationBehind, s.EvaluationBehind)
				o.Evaluated = o.Evaluated || s.Evaluated
				continue
			}
		}
		for range min(s.Steps, mostCovered) { // all numbers that the record covers
			last[of] = len(kept)
			of.number--
		}
		kept = append(kept, s)
	}
	l.steps = kept
}

// keepOneWriter drops the steps of every writer but the one with most steps; of equals the first to reach the number stays.
func (l *Ledger) keepOneWriter() {
	steps := map[int32]int64{}
	best := l.steps[0].Writer
	for i := range l.steps {
		of := l.steps[i].Writer
		steps[of] += int64(l.steps[i].Steps)
		if steps[of] > steps[best] {
			best = of
		}
	}
	l.steps = slices.DeleteFunc(l.steps, func(s Step) bool { return s.Writer != best })
}

// joinPairs joins every second step to the one before in its log. closely: only if the second directly follows the first, whoever wrote them. Otherwise the two
// are neighbours among the records of their writer, and any time and steps between them become part of the joined record.
func (l *Ledger) joinPairs(closely bool) {
	type who struct {
		log
		writer int32
	}
	waits := map[who]int{} // position of the last kept record, which the next may join
	kept := l.steps[:0]
	for _, s := range l.steps {
		of := who{log{source: s.Source, synthetic: s.Synthetic}, 0}
		if !closely {
			of.writer = s.Writer
		}
		if i, ok := waits[of]; ok && kept[i].canJoin(&s, closely) {
			o := &kept[i]
			o.MoveBehind()
			s.MoveBehind()
			// The time behind the first step lies within the joined record.
			o.Checkpoint = addSeconds(o.Checkpoint, float64(o.CheckpointBehind+s.Checkpoint))
			o.Evaluation = addSeconds(o.Evaluation, float64(o.EvaluationBehind+s.Evaluation))
			o.Others = addSeconds(o.Others, float64(s.Others))
			o.End, o.Number, o.Steps = s.End, s.Number, o.Steps+s.Steps
			o.CheckpointBehind, o.EvaluationBehind, o.Evaluated = s.CheckpointBehind, s.EvaluationBehind, s.Evaluated
			delete(waits, of)
			continue
		}
		waits[of] = len(kept)
		kept = append(kept, s)
	}
	l.steps = kept
}

// canJoin reports whether the next step n may join s: of the same log and attempt, and later in number and time. closely: n also has the next number, starts
// within a second, and no pause is between the two.
func (s *Step) canJoin(n *Step, closely bool) bool {
	sameLog := n.Source == s.Source && n.Synthetic == s.Synthetic
	goesBack := n.End < s.End || n.Number >= 0 && n.Number <= s.Number
	tooMany := s.Steps > math.MaxInt32-n.Steps
	if !sameLog || n.Attempt != s.Attempt || goesBack || tooMany {
		return false
	}
	nextNumber := n.Number < 0 || n.Number == s.Number+int64(n.Steps)
	follows := nextNumber && n.Start >= s.End && n.Start-s.End < 1e9
	noPause := s.CheckpointBehind+s.EvaluationBehind == 0 && !s.Evaluated
	return !closely || follows && noPause
}

// Part adds a checkpoint, an evaluation or (InStep) any other part of so many seconds to a step: within the step, or behind: between the step and the next. If
// the reference is invalid after a merge, the seconds are lost.
func (l *Ledger) Part(step Ref, state State, seconds float64, behind bool) {
	if step.merges != l.merges || !(seconds > 0) {
		return
	}
	l.same = min(l.same, int(step.index))
	s := &l.steps[step.index]
	to := &s.Checkpoint
	switch {
	case state == Checkpoint && behind:
		to = &s.CheckpointBehind
	case state == Evaluation && behind:
		to = &s.EvaluationBehind
	case state == Evaluation:
		to = &s.Evaluation
	case state == InStep:
		to = &s.Others
	}
	*to = addSeconds(*to, seconds)
}

// Renumber changes the number of a step.
func (l *Ledger) Renumber(step Ref, number int64) {
	if step.merges == l.merges && l.steps[step.index].Number != number {
		l.same = min(l.same, int(step.index))
		l.steps[step.index].Number = min(max(number, -1), latest)
	}
}

// Evaluated records that the log has the result of an evaluation after a step.
func (l *Ledger) Evaluated(step Ref) {
	if step.merges == l.merges {
		l.same = min(l.same, int(step.index))
		l.steps[step.index].Evaluated = true
	}
}

// Pause adds a checkpoint or an evaluation (state) with a logged start and end, ns.
func (l *Ledger) Pause(state State, start, end int64) {
	start, end = boundedTime(start), boundedTime(end)
	if end > start && len(l.pauses) < mostPauses {
		l.pauses = append(l.pauses, pause{start, end, state})
	}
}

// edge is the first or the last line of a log: its clock, ns since 1970, and how far it is from the log's first or last step, ns; below 0: not known.
type edge struct{ at, apart int64 }

// Seen records the clock of a line, ns since 1970: the wall clock of the run includes the line.
func (l *Ledger) Seen(ns int64) {
	l.Began(ns, -1)
	l.Over(ns, -1)
}

// Began records the clock of the first line of a log, ns since 1970, and how long before the first record of the log the line is, ns; below 0: unknown. The
// wall clock of the run includes the line.
func (l *Ledger) Began(at, before int64) { l.firsts = appendEdge(l.firsts, at, before) }

// Over records the clock of the last line of a log, ns since 1970, and how long after the last record of the log the line is, ns; below 0: unknown.
func (l *Ledger) Over(at, after int64) { l.lasts = appendEdge(l.lasts, at, after) }

// appendEdge appends an edge; nothing for a time of 0, or beyond mostNoted.
func appendEdge(all []edge, at, apart int64) []edge {
	if at = boundedTime(at); at == 0 || len(all) >= mostNoted {
		return all
	}
	return append(all, edge{at, apart})
}

// first returns the first line of the run by the clock of the leading log, whose first step starts at start (ns since 1970); 0: none. The clock of another host
// may be wrong, so how long its log is before its steps limits the result.
func (l *Ledger) first(start int64) (first int64) {
	for _, e := range l.firsts {
		at := e.at
		if e.apart >= 0 {
			at = max(at, start-e.apart)
		}
		if first == 0 || at < first {
			first = at
		}
	}
	return first
}

// last returns the last line of the run by the clock of the leading log, whose last step ends at end (ns since 1970), limited as in first; 0: none.
func (l *Ledger) last(end int64) (last int64) {
	for _, e := range l.lasts {
		at := e.at
		if e.apart >= 0 {
			at = min(at, end+e.apart)
		}
		last = max(last, at)
	}
	return last
}

// mostNoted bounds the notes beside the steps.
const mostNoted = 1 << 17

// Slow records the excess of a slow step over its usual time, s, by the start of the step: a join of several logs knows more than the durations of steps.
func (l *Ledger) Slow(start int64, excess float64) {
	if l.excess == nil {
		l.excess = map[int64]float64{}
	}
	if len(l.excess) < mostNoted && excess > 0 {
		l.excess[start] = excess
	}
}

// Known calls slow with the arguments of each call of Slow, and had with those of each recorded call of Had.
func (l *Ledger) Known(slow func(start int64, excess float64), had func(n, start int64)) {
	for _, start := range slices.Sorted(maps.Keys(l.excess)) {
		slow(start, l.excess[start])
	}
	for _, r := range l.ranks {
		had(r.n, r.from)
	}
}

// ranks is the number of ranks of the job from a time on.
type ranks struct {
	from int64 // ns
	n    int64
}

// Had records the number of ranks of the job in the step that began at start, ns: communicators know more than the training log, which has the number once.
func (l *Ledger) Had(n, start int64) {
	// Only changes are kept, and steps before the last change, since another number may have been in between.
	if k := len(l.ranks); n > 0 && k < mostNoted && (k == 0 || l.ranks[k-1].n != n || start < l.ranks[k-1].from) {
		l.ranks = append(l.ranks, ranks{boundedTime(start), n})
	}
}

// Begins records the start of a process of the training, ns since 1970: until its first step the process is starting up.
func (l *Ledger) Begins(ns int64) { l.begins = append(l.begins, boundedTime(ns)) }

// Ended records when the scheduler or the launcher ended the job, ns since 1970: steps that follow after a pause belong to a new attempt.
func (l *Ledger) Ended(ns int64) { l.ends = append(l.ends, boundedTime(ns)) }

// spreadWithinSecond moves the steps of writers whose stamps are whole seconds so that they follow one another, by less than a second: the true end is anywhere
// within the second of the stamp. Otherwise steps of less than a second would overlap, and leave gaps.
func spreadWithinSecond(steps []Step) {
	fine := map[int32]bool{}
	for i := range steps {
		if s := &steps[i]; s.End%1e9 != 0 {
			fine[s.Writer] = true
		}
	}
	var coarse []*Step
	for i := range steps {
		if s := &steps[i]; !s.Synthetic && !fine[s.Writer] {
			coarse = append(coarse, s)
		}
	}
	slices.SortFunc(coarse, func(a, b *Step) int {
		return cmp.Or(cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.End, b.End), cmp.Compare(a.Number, b.Number))
	})
	for i, s := range coarse[:max(0, len(coarse)-1)] {
		next := coarse[i+1]
		over := s.End - next.Start
		follows := s.Writer == next.Writer && s.Number < next.Number && next.Number <= s.Number+int64(next.Steps)
		if follows && next.End > next.Start && over > 0 && over < 2e9 {
			next.moved = min(over, 1e9-1)
			next.Start, next.End = next.Start+next.moved, next.End+next.moved
		}
	}
}

// sortSteps sorts steps by their start. Of steps with the same start, those of unknown length come first, then the longest; the other criteria only make the
// result the same for any order of reading.
func sortSteps(steps []Step) {
	by := func(a, b Step) int {
		if a.Start == b.Start && (a.Start == a.End) != (b.Start == b.End) { // one has an unknown length, and comes first: the step ends as the next begins
			return cmp.Compare(a.End, b.End)
		}
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Writer, b.Writer),
			cmp.Compare(a.Number, b.Number))
	}
	if !slices.IsSortedFunc(steps, by) {
		slices.SortStableFunc(steps, by)
	}
}

// sortNotes sorts everything but the steps by time.
func (l *Ledger) sortNotes() {
	slices.Sort(l.begins)
	slices.Sort(l.ends)
	slices.SortStableFunc(l.ranks, func(a, b ranks) int { return cmp.Compare(a.from, b.from) })
	slices.SortFunc(l.pauses, func(a, b pause) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
}
