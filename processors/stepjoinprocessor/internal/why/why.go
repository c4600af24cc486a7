// Package why says why a window (a step, a batch, a pass) was slow: what each part of its breakdown took more than is usual in its run.
//
// The windows of a run are expected in the order of their event time, and each once: a window is held against those that came
// before. In another order each verdict is held against others, and may differ; nothing else breaks.
package why

import (
	"cmp"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Of is what a window is.
type Of uint8

// What a window may be.
const (
	Step Of = iota
	Batch
	Pass
)

// Key says which windows are compared. Its texts must not share memory that is written again.
type Key struct {
	Run   string
	Of    Of
	Name  string // of the function, where a kind of window has several
	Steps int64  // covered; 0: not known
	Batch int64  // samples; 0: not known
}

// Window is a window that is over.
type Window struct {
	Key
	Subject   string // begins the sentence, such as "Step 4012"
	Ranks     int64  // that took part; 0: not known
	Breakdown *breakdown.Breakdown
	Apart     float64 // s, by which the clocks of its hosts differ, where that is too much to say when something went on
	Notes     []Note
}

// Note is what else is known of a rank or host in a window, and explains why it was slow.
type Note struct {
	Who     breakdown.Who
	Text    string // such as "GPU 3 was held down by heat"
	Seconds float64
}

// Verdict is said of a window that was slow.
type Verdict struct {
	Sentence  string
	Value     float64 // s, the window's duration
	Threshold float64 // s, the longest that is not slow
	Usual     float64 // s
	Excess    float64 // s, Value - Usual
	// Causes explain the excess, the largest first. There are none where the logs do not explain most of it: the sentence says which log would.
	Causes      []Cause
	Unexplained float64 // s
}

// Cause is a part that took longer than usual.
type Cause struct {
	Kind breakdown.Kind
	// Who is the rank that was waited for, or the communicator and operation that took longer. It says nothing where no single one is most of it.
	Who     breakdown.Who
	Seconds float64
	Note    Note // what else is known of it; without text there is nothing
}

const (
	kept   = 64 // windows of a key that are compared
	warmUp = 3  // first windows of a key that do not count: they compile, allocate and connect
	least  = 10 // windows before one can be slow

	leastRare = 5    // checkpoints, or evaluations, before one can be slow
	steadiest = 0.04 // of a checkpoint or evaluation: its standard deviation is taken for no less, as so few tell little of it

	slower     = 0.1  // of what is usual: less is not slow
	deviations = 6    // robust standard deviations
	part       = 0.05 // of the excess: less is no cause
	nothing    = 0.01 // of the excess: less is not said
	most       = 0.5  // of the excess must be explained, else nothing is named
	majority   = 2.0 / 3
	noted      = 0.25 // of a cause that a note must last as well
	causes     = 4    // that are named
	keys       = 256  // of all runs
	runs       = 64
)

// History holds what is usual, per run. It is of one goroutine.
type History struct {
	series *simplelru.LRU[Key, *series]
	runs   *simplelru.LRU[string, *run]
	ranks  grouped
	ops    grouped
}

// New is a History that has seen nothing. At its fullest, 256 keys and 64 runs of 4,096 ranks, it takes some 50 MB; mostly 20 to 100 kB a key.
func New() *History {
	return &History{series: lru.New[Key, *series](keys), runs: lru.New[string, *run](runs)}
}

// Judge holds a window against those before, and then is one of them. It says false for a window that is not slow, or that cannot be judged yet.
func (h *History) Judge(w *Window) (Verdict, bool) {
	s, ok := h.series.Get(w.Key)
	if !ok {
		s = &series{}
		h.series.Add(w.Key, s)
	}
	if s.seen < warmUp {
		s.seen++
		return Verdict{}, false
	}
	ranks := h.ranks.by(w.Breakdown.Waits, breakdown.Who.Worker)
	ops := h.ops.by(w.Breakdown.Collectives, func(who breakdown.Who) (breakdown.Who, bool) {
		return breakdown.Who{Comm: who.Comm, Operation: who.Operation}, who.Comm != "" || who.Operation != ""
	})
	var v Verdict
	slow := false
	if len(s.windows) >= least {
		v, slow = s.judge(w, ranks, ops)
	}
	s.add(w, ranks, ops)
	h.account(w, ranks, v)
	return v, slow
}

// change is what a kind took more than usual.
type change struct {
	kind     breakdown.Kind
	seconds  float64
	detailed bool
}

func (s *series) judge(w *Window, ranks, ops []named) (Verdict, bool) {
	b := w.Breakdown
	usual, spread := s.of(func(p *past) float64 { return p.base })
	for k := range s.rare {
		middle, of := s.rare[k].of(b.Time[k])
		usual, spread = usual+middle, math.Hypot(spread, of)
	}
	v := Verdict{
		Value: b.Duration, Usual: usual, Excess: b.Duration - usual, Threshold: usual + max(deviations*spread, slower*usual),
	}
	if !(v.Value > v.Threshold) {
		return Verdict{}, false
	}
	more, less := s.changes(w, v.Excess)
	explained := -less // what took less may have been counted elsewhere before
	for _, c := range more {
		if c.detailed {
			explained += c.seconds
		}
	}
	v.Unexplained = v.Excess
	if explained > most*v.Excess {
		if less < part*v.Excess {
			less = 0
		}
		v.Unexplained += less
		for _, c := range more {
			if len(v.Causes) == causes || v.Unexplained <= part*v.Excess {
				break
			}
			if c.detailed {
				v.Causes = append(v.Causes, s.cause(w, c, ranks, ops))
				v.Unexplained -= c.seconds
			}
		}
		less -= min(v.Unexplained, 0)
		v.Unexplained = max(v.Unexplained, 0)
	}
	v.Sentence = sentence(w, &v, less, more)
	return v, true
}

// changes are the kinds that took longer than usual and than noise explains, the one that grew most first; and how much shorter all others were.
func (s *series) changes(w *Window, excess float64) (more []change, less float64) {
	b := w.Breakdown
	for k := range breakdown.Kind(breakdown.Kinds) {
		usual, spread := 0.0, 0.0
		switch k {
		case breakdown.Checkpoint, breakdown.Evaluation:
			usual, spread = s.rare[k].of(b.Time[k])
		default:
			usual, spread = s.of(func(p *past) float64 { return p.time[k] })
		}
		switch d := b.Time[k] - usual; {
		case d < 0:
			less -= d
		case d > max(deviations*spread, part*excess):
			more = append(more, change{k, d, s.detailed(w, k, d, more)})
		}
	}
	slices.SortStableFunc(more, func(x, y change) int { return cmp.Compare(y.seconds, x.seconds) })
	return more, less
}

// detailed says whether the logs tell enough for the kind to be a cause. What no log takes apart may be anything that goes on within. Of computing only a
// note says why it took longer; where a rank is waited for as well, the note is that rank's affair.
func (s *series) detailed(w *Window, k breakdown.Kind, seconds float64, before []change) bool {
	known := &w.Breakdown.Known
	switch k {
	case breakdown.Checkpoint, breakdown.Evaluation:
		return true
	}
	if always, _ := s.of(func(p *past) float64 { return p.known[k] }); always < 1 {
		return false // a log that was not read before takes from what was counted elsewhere
	}
	switch k {
	case breakdown.Unattributed, breakdown.RPCUnattributed:
		return false
	case breakdown.Compute:
		waited := slices.ContainsFunc(before, func(c change) bool { return c.kind == breakdown.Wait })
		return !waited && s.note(w, seconds, anyone).Text != ""
	case breakdown.Collective:
		return known[breakdown.Wait]
	case breakdown.Wait:
		return slices.ContainsFunc(w.Breakdown.Waits, func(p breakdown.Part) bool { return p.Who.HasRank })
	case breakdown.RPCReceive:
		return known[breakdown.RPCServer]
	default:
		return true
	}
}

// is says whether the note is about a rank.
func (n *Note) is(rank breakdown.Who) bool {
	of, ok := n.Who.Worker()
	return ok && of == rank
}

func anyone(*Note) bool { return true }

// cause names who is behind a change, where one alone is most of it.
func (s *series) cause(w *Window, c change, ranks, ops []named) Cause {
	out := Cause{Kind: c.kind, Seconds: c.seconds}
	switch c.kind {
	case breakdown.Wait:
		if who, ok := s.one(ranks, func(p *past) []named { return p.ranks }, c.seconds); ok {
			out.Who = who
			of, total := breakdown.Part{}, 0.0
			for _, p := range w.Breakdown.Waits {
				if worker, _ := p.Who.Worker(); worker == who {
					if of.Seconds == 0 {
						of = p
					}
					total += p.Seconds
				}
			}
			if of.Seconds > majority*total {
				out.Who = of.Who
			}
			out.Note = s.note(w, c.seconds, func(n *Note) bool { return n.is(who) })
		}
	case breakdown.Collective:
		out.Who, _ = s.one(ops, func(p *past) []named { return p.ops }, c.seconds)
	case breakdown.Compute:
		out.Note = s.note(w, c.seconds, anyone)
	}
	return out
}

// one is who took so much longer than itself usually that it alone is most of the seconds.
func (s *series) one(now []named, then func(p *past) []named, seconds float64) (breakdown.Who, bool) {
	var best breakdown.Who
	found, bestMore, second := false, 0.0, 0.0
	for _, n := range now[:min(len(now), 2*few)] { // the longest first: who is not among them cannot have grown by most of it, unless these all did
		usual, spread := s.of(func(p *past) float64 { return at(then(p), n) })
		more := n.seconds - usual
		if more > bestMore {
			second = bestMore
			best, bestMore, found = n.who, more, more > max(majority*seconds, deviations*spread)
		} else {
			second = max(second, more)
		}
	}
	if !found || second > bestMore/2 {
		return breakdown.Who{}, false
	}
	return best, true
}

// note is what else went on, longer than usual, for a good part of the seconds, and longest.
func (s *series) note(w *Window, seconds float64, about func(n *Note) bool) (best Note) {
	longest := noted * seconds
	for i := range w.Notes {
		n := &w.Notes[i]
		if !about(n) {
			continue
		}
		usual, _ := s.of(func(p *past) float64 { return at(p.notes, named{n.Who, n.Text, 0}) })
		if more := n.Seconds - usual; more > longest {
			best, longest = *n, more
		}
	}
	return best
}
