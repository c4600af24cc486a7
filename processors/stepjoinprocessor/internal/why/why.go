// Package why says why a window (a step, a batch, a pass) was slow: what each part of its breakdown took more than is usual in its run.
//
// Of finished logs all windows are there ([History.Hold]): one is held against its neighbours on both sides, in its own regime (package regimes). Live
// ([History.Judge]) it is held against those before, by the same limits. The windows of a run are expected in the order of their event time, and each once. In
// another order each verdict is held against others, and may differ; nothing else breaks.
package why

import (
	"cmp"
	"math"
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/traces/cause"
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
	Subject   string // begins the sentence, such as "Step 4012"; "": its key and its number say it
	Start     int64  // ns since the epoch
	Number    int64  // of a step; −1: none
	Ranks     int64  // that took part; 0: not known
	World     int64  // ranks of the job, by its training log; 0: not known
	Trainer   string // whose log tells the steps, as spans.AttrSource; "": not known
	Breakdown *breakdown.Breakdown
	Apart     float64 // s, by which the clocks of its hosts differ, where that is too much to say when something went on
	Notes     []Note
	Timers    []Timer // of the trainer, in the window; those within others too
}

// Timer is how long a part of a step took that the trainer times by a name of its own, and that is time of computing.
type Timer struct {
	Name    string
	Seconds float64 // of the slowest rank, where the log has the time of each
	Rank    int64   // that rank; below 0: not known
	Late    float64 // s, by which it took longer than the median of the ranks
}

// Note is what else is known of a rank or host in a window, and explains why it was slow.
type Note struct {
	Who     breakdown.Who
	Text    string // such as "GPU 3 was held down by heat"
	Seconds float64
}

// Verdict is what is said of a window. Sentence, Excess and causes are of one that was slow.
type Verdict struct {
	Judged    bool // else too few like it are known, and nothing is
	Sentence  string
	Value     float64 // s, the window's duration
	Threshold float64 // s, the longest that is not slow
	Usual     float64 // s
	Excess    float64 // s, Value - Usual
	// Causes explain the excess, the largest first. There are none where the logs do not explain most of it: the sentence says which log would.
	Causes      []Cause
	Unexplained float64      // s
	Reason      cause.Reason // why that is not explained
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
	kept   = 64 // windows of a key that are compared, live
	warmUp = 3  // first windows of a key that do not count: they compile, allocate and connect
	least  = 10 // windows before one can be slow

	leastRare = 5    // checkpoints, or evaluations, before one can be slow
	steadiest = 0.04 // of a checkpoint or evaluation: its standard deviation is taken for no less, as so few tell little of it

	held   = 4096 // windows that wait for those after them
	around = 192  // windows on both sides of those that are judged together: more than the longest burst, and those that one is compared with

	slower     = 0.1  // of what is usual: less is not slow
	deviations = 6    // robust standard deviations
	part       = 0.05 // of the excess: less is no cause
	nothing    = 0.01 // of the excess: less is not said
	most       = 0.5  // of the excess must be explained, else nothing is named
	majority   = 2.0 / 3
	noted      = 0.25 // of a cause that a note must last as well
	causes     = 4    // that are named
	mostTimers = 64   // of a window
	keys       = 256  // of all runs
	runs       = 64
)

// History holds what is usual, per run. It is of one goroutine.
type History struct {
	series *simplelru.LRU[Key, *series]
	runs   *simplelru.LRU[string, *run]
	ranks  grouped
	ops    grouped
	now    window
	peers  peers
	held   int       // windows that wait
	free   []*window // that waited, for use again
}

// New is a History that has seen nothing. At its fullest, 256 keys and 64 runs of 4,096 ranks, it takes some 60 MB; mostly 20 to 100 kB a key. What Hold keeps
// takes 0.5 to 4 kB a window.
func New() *History {
	h := &History{runs: lru.New[string, *run](runs)}
	h.series, _ = simplelru.NewLRU(keys, func(_ Key, s *series) { h.settle(s, true) }) // the error is that of a size below one
	return h
}

// of is the series of a key, made where there is none.
func (h *History) of(k Key) *series {
	s, ok := h.series.Get(k)
	if !ok {
		s = &series{}
		h.series.Add(k, s)
	}
	return s
}

// window is a window with what a verdict needs of its breakdown, which others use by then.
type window struct {
	Window
	past
	unheard bool // most of its collectives lack a rank
	tell    func(v *Verdict, slow bool)
}

// take reads a window. What it returns is valid until the next call: Hold copies it.
func (h *History) take(w *Window) (now *window, ranks []named) {
	b := w.Breakdown
	ranks = h.ranks.by(b.Waits, breakdown.Who.Worker)
	ops := h.ops.by(b.Collectives, func(who breakdown.Who) (breakdown.Who, bool) {
		return breakdown.Who{Comm: who.Comm, Operation: who.Operation}, who.Comm != "" || who.Operation != ""
	})
	for i := range ops[:min(len(ops), 2*few)] {
		ops[i].at = ops[i].who
		ops[i].at.Unheard = b.LacksRanks(ops[i].who)
	}
	now = &h.now
	now.Window, now.unheard = *w, b.LacksRanks(breakdown.Who{})
	now.past = past{
		duration: b.Duration, base: b.Duration - b.Time[breakdown.Checkpoint] - b.Time[breakdown.Evaluation], time: b.Time, known: b.Known,
		timers: w.Timers[:min(len(w.Timers), mostTimers)],
		ranks:  ranks[:min(len(ranks), 2*few)], ops: ops[:min(len(ops), 2*few)], // the longest first: who is not among them cannot have grown by most of a change
	}
	return now, ranks
}

// Judge holds a window against those before, and then is one of them. It says false for a window that is not slow, or that cannot be judged yet.
func (h *History) Judge(w *Window) (Verdict, bool) {
	s := h.of(w.Key)
	if s.seen < warmUp {
		s.seen++
		h.run(w.Run).unjudged++
		return Verdict{}, false
	}
	now, ranks := h.take(w)
	h.count(w, ranks)
	var v Verdict
	slow := false
	if len(s.windows) >= least {
		v = s.before(&h.peers, now)
		if slow = v.Value > v.Threshold; slow {
			h.peers.windows = h.peers.windows[:0]
			for i := range s.windows {
				h.peers.windows = append(h.peers.windows, &s.windows[i])
			}
			h.peers.explain(now, &v)
		}
	}
	s.add(now)
	h.blame(now, &v)
	return v, slow
}

// change is what a kind took more than usual.
type change struct {
	kind     breakdown.Kind
	seconds  float64
	detailed bool
}

// limit is what is said of every window: what is usual for it, and from when on it is slow. A checkpoint and an evaluation are each held against their kind.
func (o *peers) limit(w *window, l regimes.Level) Verdict {
	usual, over, spread := l.Usual, l.Limit-l.Usual, 0.0
	for k := range o.rare {
		middle, of := o.rareOf(breakdown.Kind(k), w.time[k])
		usual, spread = usual+middle, math.Hypot(spread, of)
	}
	return Verdict{Judged: true, Value: w.duration, Usual: usual, Threshold: usual + max(math.Hypot(over, deviations*spread), slower*usual)}
}

// explain says why a window was slow.
func (o *peers) explain(w *window, v *Verdict) {
	v.Excess = v.Value - v.Usual
	more, less := o.changes(w, v.Excess)
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
				v.Causes = append(v.Causes, o.cause(w, c))
				v.Unexplained -= c.seconds
			}
		}
		less -= min(v.Unexplained, 0)
		v.Unexplained = max(v.Unexplained, 0)
	}
	v.Reason = missing(w, more)
	v.Sentence = sentence(w, v, less, more)
}

// changes are the kinds that took longer than usual and than noise explains, the one that grew most first; and how much shorter all others were.
func (o *peers) changes(w *window, excess float64) (more []change, less float64) {
	for k := range breakdown.Kind(breakdown.Kinds) {
		usual, spread := 0.0, 0.0
		switch k {
		case breakdown.Checkpoint, breakdown.Evaluation:
			usual, spread = o.rareOf(k, w.time[k])
		default:
			usual, spread = o.of(func(p *past) float64 { return p.time[k] })
		}
		switch d := w.time[k] - usual; {
		case d < 0:
			less -= d
		case d > max(deviations*spread, part*excess):
			more = append(more, change{k, d, o.detailed(w, k, d, more)})
		}
	}
	slices.SortStableFunc(more, func(x, y change) int { return cmp.Compare(y.seconds, x.seconds) })
	return more, less
}

// detailed says whether the logs tell enough for the kind to be a cause. What no log takes apart may be anything that goes on within. Of computing only a
// note says why it took longer; where a rank is waited for as well, the note is that rank's affair.
func (o *peers) detailed(w *window, k breakdown.Kind, seconds float64, before []change) bool {
	known := &w.known
	switch k {
	case breakdown.Checkpoint, breakdown.Evaluation:
		return true
	}
	if always, _ := o.of(func(p *past) float64 { return one(p.known[k]) }); always < 1 {
		return false // a log that was not read before takes from what was counted elsewhere
	}
	switch k {
	case breakdown.Unattributed, breakdown.RPCUnattributed:
		return false
	case breakdown.Compute:
		if _, ok := o.timer(w, seconds); ok {
			return true
		}
		waited := slices.ContainsFunc(before, func(c change) bool { return c.kind == breakdown.Wait })
		return !waited && o.note(w, seconds, anyone).Text != ""
	case breakdown.Collective:
		if !known[breakdown.Wait] { // timers of others wait for the rank that computes for longer
			who, ok := o.timer(w, seconds)
			return ok && who.HasRank
		}
		return true
	case breakdown.Wait:
		return len(w.ranks) > 0
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
func (o *peers) cause(w *window, c change) Cause {
	out := Cause{Kind: c.kind, Seconds: c.seconds}
	switch c.kind {
	case breakdown.Wait:
		if n, ok := o.alone(w.ranks, func(p *past) []named { return p.ranks }, c.seconds); ok {
			out.Who = n.at
			out.Note = o.note(w, c.seconds, func(note *Note) bool { return note.is(n.who) })
		}
	case breakdown.Collective:
		n, ok := o.alone(w.ops, func(p *past) []named { return p.ops }, c.seconds)
		if out.Who = n.at; !ok {
			out.Who.Unheard = w.unheard
		}
		if !w.known[breakdown.Wait] {
			out.Who, _ = o.timer(w, c.seconds)
		}
	case breakdown.Compute:
		out.Note = o.note(w, c.seconds, anyone)
		out.Who, _ = o.timer(w, c.seconds)
	}
	return out
}

// timer is the timer that took so much longer than usual that its part alone is most of the seconds: of timers within one another the innermost. The rank is
// named where the others were not as slow.
func (o *peers) timer(w *window, seconds float64) (who breakdown.Who, ok bool) {
	least := math.Inf(1)
	for i := range w.Timers {
		t := &w.Timers[i]
		usual, spread := o.of(func(p *past) float64 { return p.timer(t.Name) })
		more := t.Seconds - usual
		if more <= max(majority*seconds, deviations*spread) || usual >= least {
			continue
		}
		least, ok = usual, true
		if who = (breakdown.Who{Timer: t.Name}); t.Rank >= 0 && t.Late > majority*more {
			who.Rank, who.HasRank = t.Rank, true
		}
	}
	return who, ok
}

// alone is who took so much longer than itself usually that it alone is most of the seconds.
func (o *peers) alone(now []named, then func(p *past) []named, seconds float64) (best named, ok bool) {
	bestMore, second := 0.0, 0.0
	for _, n := range now {
		usual, spread := o.of(func(p *past) float64 { return at(then(p), n) })
		more := n.seconds - usual
		if more > bestMore {
			second = bestMore
			best, bestMore, ok = n, more, more > max(majority*seconds, deviations*spread)
		} else {
			second = max(second, more)
		}
	}
	if !ok || second > bestMore/2 {
		return named{}, false
	}
	return best, true
}

// note is what else went on, longer than usual, for a good part of the seconds, and longest.
func (o *peers) note(w *window, seconds float64, about func(n *Note) bool) (best Note) {
	longest := noted * seconds
	for i := range w.Notes {
		n := &w.Notes[i]
		if !about(n) {
			continue
		}
		usual, _ := o.of(func(p *past) float64 { return at(p.notes, named{who: n.Who, text: n.Text}) })
		if more := n.Seconds - usual; more > longest {
			best, longest = *n, more
		}
	}
	return best
}
