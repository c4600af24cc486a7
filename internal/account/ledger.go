package account

import (
	"cmp"
	"math"
	"slices"
)

// State is what a run did in a second of its wall clock.
type State uint8

// The states.
const (
	StartUp     State = iota // until the first step
	InStep                   // in steps that counted
	Checkpoint               // between steps or in them, as the trainer times it
	Evaluation               // likewise
	Redone                   // in steps that were done again after a restart
	Down                     // between two attempts
	Stalled                  // no step for far longer than usual, and no log says why
	Unexplained              // between two steps, otherwise
	AfterEnd                 // from the last step on
	States
)

var stateNames = [States]string{"start_up", "step", "checkpoint", "evaluation", "redone", "down", "stalled", "unexplained", "after_end"}

// String is the name of the state, as metrics and the JSON report have it.
func (s State) String() string { return stateNames[s] }

// Step is a record of one step, or of several together.
type Step struct {
	Start, End  int64    // ns since 1970; equal: how long it took is not known
	Number      int64    // of the last step; below 0: the log numbers none
	Offset      int64    // By, of its record in its log; below 0: not known
	Trace       [16]byte // of its record
	Steps       int32    // that it covers, at least 1
	Attempt     int32    // the writer's, from 0
	Ranks       int32    // of the job then; 0: not known
	Writer      int32    // who logged it, as the caller numbers them: a rank of a file
	Checkpoint  float32  // s, in the step
	Evaluation  float32  // s, in the step
	Checkpoints float32  // s, behind the step
	Evaluations float32  // s, behind the step
	Source      int16    // which log, likewise: steps of several are of one training
	Evaluated   bool     // the log has the result of an evaluation behind the step
	Synthetic   bool     // the log has no clock, its order and its durations are true

	again bool // it was done before
}

// at is where its record stands.
func (s *Step) at() Place { return Place{s.Trace, s.Offset, s.Writer} }

// Place is where a record stands, as the caller knows places.
type Place struct {
	Trace  [16]byte
	Offset int64 // in the file of the writer; below 0: not known
	Writer int32
}

// length is how long the step took, ns, without what the trainer does in it beside training.
func (s *Step) length() float64 {
	return max(0, float64(s.End-s.Start)-1e9*float64(s.Checkpoint+s.Evaluation))
}

// Each is how long one of the steps took, s, likewise; 0: not known.
func (s *Step) Each() float64 { return s.length() / 1e9 / float64(s.Steps) }

// pause is a checkpoint or an evaluation of which the log says when it was.
type pause struct {
	start, end int64
	state      State
}

// Most bounds the records that a ledger keeps, 88 bytes each. Beyond, neighbours are put together.
const Most = 1 << 19

// Ledger collects what logs say of a run. It is of one goroutine. The zero value is empty.
type Ledger struct {
	steps  []Step
	pauses []pause
	begins []int64           // ns, when a process began
	excess map[int64]float64 // s, by which a step took longer than usual, by its start
	first  int64             // ns, of the first line with a clock; 0: not known
	last   int64
	merges int32 // how often neighbours were put together
}

// Ref is a step of a ledger.
type Ref struct{ merges, index int32 }

// Add adds a step.
func (l *Ledger) Add(s Step) Ref {
	if len(l.steps) >= Most {
		l.merge()
	}
	s.Steps = max(1, s.Steps)
	l.steps = append(l.steps, s)
	return Ref{l.merges, int32(len(l.steps) - 1)}
}

// merge puts every second step of a writer to the one before.
func (l *Ledger) merge() {
	l.sort()
	kept := l.steps[:0]
	for i := 0; i < len(l.steps); i++ {
		s := l.steps[i]
		if i+1 < len(l.steps) {
			if n := &l.steps[i+1]; n.Writer == s.Writer && n.Attempt == s.Attempt && n.Number == s.Number+int64(n.Steps) && n.Start-s.End < 1e9 && s.Checkpoints+s.Evaluations == 0 {
				n.Start, n.Steps = s.Start, n.Steps+s.Steps
				n.Checkpoint, n.Evaluation = n.Checkpoint+s.Checkpoint, n.Evaluation+s.Evaluation
				continue
			}
		}
		kept = append(kept, s)
	}
	if len(kept) > Most*3/4 { // steps of many writers side by side: the first tell as much
		kept = kept[:Most/2]
	}
	l.steps = kept
	l.merges++
}

// Part adds a checkpoint or an evaluation of so many seconds to a step: in it, or behind it.
func (l *Ledger) Part(step Ref, of State, seconds float64, behind bool) {
	if step.merges != l.merges || !(seconds > 0) || math.IsInf(seconds, 0) {
		return
	}
	s := &l.steps[step.index]
	to := &s.Checkpoint
	switch {
	case of == Checkpoint && behind:
		to = &s.Checkpoints
	case of == Evaluation && behind:
		to = &s.Evaluations
	case of == Evaluation:
		to = &s.Evaluation
	}
	*to += float32(seconds)
}

// Evaluated notes that the log has the result of an evaluation behind a step.
func (l *Ledger) Evaluated(step Ref) {
	if step.merges == l.merges {
		l.steps[step.index].Evaluated = true
	}
}

// Pause adds a checkpoint or an evaluation of which the log says when it was.
func (l *Ledger) Pause(of State, start, end int64) {
	if end > start && len(l.pauses) < Most/4 {
		l.pauses = append(l.pauses, pause{start, end, of})
	}
}

// Seen notes the clock of a line, ns since 1970: the wall clock of the run has it in.
func (l *Ledger) Seen(ns int64) {
	if ns == 0 {
		return
	}
	if l.first == 0 || ns < l.first {
		l.first = ns
	}
	l.last = max(l.last, ns)
}

// Slow notes that a step, by its start, took so much longer than usual, s: who joins several logs knows more than the lengths of steps tell.
func (l *Ledger) Slow(start int64, excess float64) {
	if l.excess == nil {
		l.excess = map[int64]float64{}
	}
	if len(l.excess) < Most/4 && excess > 0 {
		l.excess[start] = excess
	}
}

// Begins notes when a process of the training began, ns since 1970: until its first step it starts up.
func (l *Ledger) Begins(ns int64) { l.begins = append(l.begins, ns) }

func (l *Ledger) sort() {
	slices.Sort(l.begins)
	slices.SortStableFunc(l.steps, func(a, b Step) int {
		if a.Start == b.Start && (a.Start == a.End) != (b.Start == b.End) { // a step of unknown length ends as the next begins
			return cmp.Compare(a.End, b.End)
		}
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Writer, b.Writer), cmp.Compare(a.Number, b.Number))
	})
	slices.SortFunc(l.pauses, func(a, b pause) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
}
