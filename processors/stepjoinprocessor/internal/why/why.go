// Package why explains why a window (a step, a batch, a pass) was slow: by the parts of the breakdown that took longer than usual in the run.
//
// For finished logs all windows are known ([History.Hold]): each is compared with the neighbours on both sides, in the same regime (package regimes). Live
// ([History.Judge]) the comparison is with earlier windows, by the same limits. The windows of a run are expected in the order of their event time, each once.
// In another order the comparisons differ, and the verdicts may; nothing else breaks.
//
// A key's windows pass through these states:
//
//	live (Judge)     the first warmUp windows: ignored; then, until least windows are in the series: added, not judged; then: judged, and added
//	finished (Hold)  held; once held windows are held in total: judged, if around later windows are known; on Settle, or when the key is evicted: judged
//	judged           kept for comparison until around more windows were judged, then freed
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
	"github.com/trainbridge/trainbridge/spans"
)

// Of is the kind of a window.
type Of uint8

// The kinds of windows.
const (
	Step Of = iota
	Batch
	Pass
)

// Key identifies comparable windows. Its texts must not share reused memory.
type Key struct {
	Run   string
	Of    Of
	Name  string // of the span, of a window by the configuration; "" of the others
	Steps int64  // covered; 0: not known
	Batch int64  // samples; 0: not known
}

// Window is a completed window.
type Window struct {
	Key
	Subject   string // begins the sentence, such as "Step 4012"; "": made from key and number
	Start     int64  // ns since the epoch
	Number    int64  // of a step; −1: none
	Ranks     int64  // ranks that took part; 0: unknown
	World     int64  // ranks of the job, by its training log; 0: unknown
	Trainer   string // writer of the steps' log, as in spans.AttrSource; "": unknown
	Breakdown *breakdown.Breakdown
	Apart     float64 // s, clock offset of its hosts, if too large to place events
	Notes     []Note
	Timers    []Timer // of the trainer, in the window; also those within others
	Loader    Loader
}

// Loader is the rank that loaded data for the longest, where several ranks log the time of a step's loading.
type Loader struct {
	Who  breakdown.Who
	Late float64 // s, the rank's excess over the median of the ranks
}

// Timer is the duration of a part of a step that the trainer times by a name of its own, as part of computing.
type Timer struct {
	Name    string
	Seconds float64 // of the slowest rank, where the log has the time of each
	Rank    int64   // the slowest rank; below 0: unknown
	Late    float64 // s, its excess over the median of the ranks
}

// text returns who loaded: "by rank 3 on node-0"; of an unknown rank "on" its host; "": neither is known.
func (l *Loader) text() string {
	switch {
	case l.Who.HasRank:
		return string(appendRank([]byte("by "), l.Who))
	case l.Who.Host != "":
		return "on " + l.Who.Host
	}
	return ""
}

// Note is a further fact about a rank or host in a window that explains slowness.
type Note struct {
	Who     breakdown.Who
	Text    string // such as "GPU 3 was held down by heat"
	Seconds float64
}

// Verdict is the result for a window. Sentence, Excess and causes are set if it was slow.
type Verdict struct {
	Judged    bool // else too few alike are known, and nothing is set
	Sentence  string
	Value     float64 // s, the window's duration
	Threshold float64 // s, the longest time that is not slow
	Usual     float64 // s
	Excess    float64 // s, Value - Usual
	// Causes explain the excess, the largest first. They are empty if the logs do not explain most of the excess: the sentence names the missing log.
	Causes      []Cause
	Unexplained float64      // s
	Reason      cause.Reason // why the rest is unexplained
}

// Cause is a part that took longer than usual.
type Cause struct {
	Kind breakdown.Kind
	// Who is the rank waited for, or the slower communicator and operation; empty if none alone is most of the cause.
	Who     breakdown.Who
	Seconds float64
	Note    Note // a further fact; empty text: none
}

const (
	kept   = 64 // windows of a key that are compared, live
	warmUp = 3  // first windows of a key that do not count: they compile, allocate and connect
	least  = 10 // windows before the first can be slow

	leastRare = 5    // checkpoints, or evaluations, before the first can be slow
	steadiest = 0.04 // lower bound of the relative standard deviation of checkpoints and evaluations, which few samples underestimate

	held   = 4096 // windows waiting for later windows
	around = 192  // windows on both sides of those judged together: more than the longest burst, and than the peers of a window

	slower     = 0.1     // of the usual time: less is not slow
	deviations = 6       // robust standard deviations: less is noise
	part       = 0.05    // of the excess: less is no cause
	nothing    = 0.01    // of the excess: less is not said
	most       = 0.5     // of the excess must be explained, else nothing is named
	majority   = 2.0 / 3 // of a change: an origin with less is not named alone
	noted      = 0.25    // share of a cause that a note must last
	causes     = 4       // named in a sentence
	mostTimers = 64      // of a window
	keys       = 256     // of all runs
	runs       = 64
)

// History has the windows to compare with, per run. Only one goroutine may use it.
type History struct {
	series *simplelru.LRU[Key, *series]
	runs   *simplelru.LRU[string, *run]
	ranks  grouped
	ops    grouped
	now    window
	peers  peers
	held   int       // waiting windows
	free   []*window // freed windows, for reuse
}

// New returns an empty History. At its fullest, 256 keys of 64 timers and 64 runs of 4,096 ranks, it takes some 100 MB; mostly 20 to 100 kB a key. Held windows
// take 0.5 to 4 kB each.
func New() *History {
	h := &History{runs: lru.New[string, *run](runs)}
	h.series, _ = simplelru.NewLRU(keys, func(_ Key, s *series) { h.settle(s, true) }) // the error is that of a size below one
	return h
}

// seriesOf returns the series of a key, made if absent.
func (h *History) seriesOf(k Key) *series {
	s, ok := h.series.Get(k)
	if !ok {
		s = &series{}
		h.series.Add(k, s)
	}
	return s
}

// window is a window with the needed values of its breakdown, whose memory is reused by then.
type window struct {
	Window
	past
	unrecorded bool                        // most of the time in its collectives is in such as lack a rank's record
	done       func(v *Verdict, slow bool) // of a held window: gets the verdict
}

// readWindow reads a window: the times by kind, and the longest waits and collectives by origin. ranks has the time waited for each rank, without a limit of
// number. The results are valid until the next call: Hold copies them.
func (h *History) readWindow(w *Window) (now *window, ranks []originTime) {
	b := w.Breakdown
	ranks = h.ranks.sumBy(b.Waits, breakdown.Who.RankOnly)
	ops := h.ops.sumBy(b.Collectives, func(who breakdown.Who) (breakdown.Who, bool) {
		return breakdown.Who{Comm: who.Comm, Operation: who.Operation}, who.Comm != "" || who.Operation != ""
	})
	for i := range ops[:min(len(ops), 2*few)] { // Unrecorded holds for most parts of the operation, or not at all
		ops[i].at = ops[i].who
		ops[i].at.Unrecorded = b.LacksRanks(ops[i].who)
	}
	now = &h.now
	now.Window, now.unrecorded = *w, b.LacksRanks(breakdown.Who{})
	now.past = past{
		duration: b.Duration, base: b.Duration - b.Time[breakdown.Checkpoint] - b.Time[breakdown.Evaluation], time: b.Time, known: b.Known,
		timers: w.Timers[:min(len(w.Timers), mostTimers)],
		ranks:  ranks[:min(len(ranks), 2*few)], ops: ops[:min(len(ops), 2*few)], // the longest first: any other cannot have grown by most of a change
	}
	return now, ranks
}

// Judge compares a window with earlier windows of its key, live, and adds it to the series. It reports whether the window is slow; false: not slow, or not
// comparable yet.
func (h *History) Judge(w *Window) (Verdict, bool) {
	s := h.seriesOf(w.Key)
	if s.seen < warmUp {
		s.seen++
		h.runOf(w.Run).unjudged++
		return Verdict{}, false
	}
	now, ranks := h.readWindow(w)
	h.countStep(w, ranks)
	var v Verdict
	slow := false
	if len(s.windows) >= least {
		v = s.judgeLive(&h.peers, now)
		slow = v.Value > v.Threshold
		if slow {
			h.peers.windows = h.peers.windows[:0]
			for i := range s.windows {
				h.peers.windows = append(h.peers.windows, &s.windows[i])
			}
			h.peers.explain(now, &v)
		}
	}
	s.addPeer(now)
	h.addCosts(now, &v)
	return v, slow
}

// change is the excess of a kind over its usual time.
type change struct {
	kind     breakdown.Kind
	seconds  float64
	detailed bool // may be named as a cause; see peers.detailed
}

// verdictOf returns the verdict without causes: the usual time of the window, and the threshold from which on it is slow. l is the level of comparable windows
// without checkpoint and evaluation; the usual time of each of these two, and its spread, is added where the window has one.
func (o *peers) verdictOf(w *window, l regimes.Level) Verdict {
	usual, over, spread := l.Usual, l.Limit-l.Usual, 0.0
	for k := range o.rare {
		middle, deviation := o.rareOf(breakdown.Kind(k), w.time[k])
		usual, spread = usual+middle, math.Hypot(spread, deviation)
	}
	return Verdict{Judged: true, Value: w.duration, Usual: usual, Threshold: usual + max(math.Hypot(over, deviations*spread), slower*usual)}
}

// explain completes the verdict on a slow window: its excess, the causes, the unexplained rest and the sentence. Causes are named only if changes with detail
// explain most of the excess.
func (o *peers) explain(w *window, v *Verdict) {
	v.Excess = v.Value - v.Usual
	more, less := o.changes(w, v.Excess)
	// Rare work, such as collecting garbage, has a timer that no other window has. It counts if the other kinds lost no time to it.
	for i := range more {
		if c := &more[i]; c.kind == breakdown.Compute && !c.detailed && less < part*v.Excess {
			_, c.detailed = o.longerTimer(w, c.seconds)
		}
	}
	explained := -less // the time that a shorter kind lost may only have moved to a longer kind
	for _, c := range more {
		if c.detailed {
			explained += c.seconds
		}
	}
	v.Unexplained = v.Excess
	// The longer kinds explain excess + less: they also make up for what others took less.
	if explained > most*v.Excess {
		if less < part*v.Excess { // too little to be said
			less = 0
		}
		v.Unexplained += less
		for _, c := range more {
			if len(v.Causes) == causes || v.Unexplained <= part*v.Excess {
				break
			}
			if c.detailed {
				v.Causes = append(v.Causes, o.causeOf(w, c))
				v.Unexplained -= c.seconds
			}
		}
		less -= min(v.Unexplained, 0) // the causes are more than the excess: the other kinds took as much less
		v.Unexplained = max(v.Unexplained, 0)
	}
	v.Reason = reasonOf(w, more)
	if len(v.Causes) == 0 && len(more) > 0 && more[0].kind == breakdown.Compute && o.timersGrewAlike(w, v) {
		v.Reason = cause.Reason{Of: spans.ReasonAlike}
	}
	v.Sentence = sentence(w, v, less, more)
}

// changes returns the kinds that took longer than usual beyond noise, the largest change first; and by how much, s, all other kinds together were shorter.
func (o *peers) changes(w *window, excess float64) (more []change, less float64) {
	for k := range breakdown.Kind(breakdown.Kinds) {
		usual, spread := 0.0, 0.0
		switch k {
		case breakdown.Checkpoint, breakdown.Evaluation:
			usual, spread = o.rareOf(k, w.time[k])
		default:
			usual, spread = o.usualOf(func(p *past) float64 { return p.time[k] })
		}
		switch d := w.time[k] - usual; {
		case d < 0:
			less -= d
		case d > max(deviations*spread, part*excess):
			more = append(more, change{k, d, o.detailed(w, k, d, more)}) // kinds are in order: a longer Wait is known before Compute
		}
	}
	slices.SortStableFunc(more, func(x, y change) int { return cmp.Compare(y.seconds, x.seconds) })
	return more, less
}

// detailed reports whether the logs have enough detail to name kind k, longer by seconds, as a cause: without detail, any activity within the kind may be the
// cause. Longer computing needs a timer of the trainer, or a note about a GPU. If a rank is waited for as well (a Wait among longer, the changes of kinds
// before k), the note explains that rank instead.
func (o *peers) detailed(w *window, k breakdown.Kind, seconds float64, longer []change) bool {
	known := &w.known
	switch k {
	case breakdown.Checkpoint, breakdown.Evaluation:
		return true
	}
	// The median of 0 and 1 is 1 only if most peers know the kind: a newly read log takes time from other kinds.
	if mostKnow, _ := o.usualOf(func(p *past) float64 { return boolNumber(p.known[k]) }); mostKnow < 1 {
		return false
	}
	switch k {
	case breakdown.Unattributed, breakdown.RPCUnattributed:
		return false
	case breakdown.Compute:
		if _, ok := o.longerTimer(w, seconds); ok {
			return true
		}
		waited := slices.ContainsFunc(longer, func(c change) bool { return c.kind == breakdown.Wait })
		return !waited && o.explainingNote(w, seconds, anyone).Text != ""
	case breakdown.Collective:
		if !known[breakdown.Wait] { // the time may be waiting for a rank that computes for longer: needs a timer that names the rank
			who, ok := o.longerTimer(w, seconds)
			return ok && who.HasRank
		}
		return true
	case breakdown.Wait:
		return len(w.ranks) > 0
	case breakdown.RPCReceive:
		return known[breakdown.RPCServer] // else the time may be the server's
	default:
		return true
	}
}

// isAbout reports whether the note is about a rank.
func (n *Note) isAbout(rank breakdown.Who) bool {
	noted, ok := n.Who.RankOnly()
	return ok && noted == rank
}

// anyone accepts each note.
func anyone(*Note) bool { return true }

// causeOf returns a change as a cause with its origin, if a single origin is most of the change: the rank waited for, the collective, the timer of the trainer
// or the GPU.
func (o *peers) causeOf(w *window, c change) Cause {
	out := Cause{Kind: c.kind, Seconds: c.seconds}
	switch c.kind {
	case breakdown.Wait:
		if n, ok := o.dominantOrigin(w.ranks, func(p *past) []originTime { return p.ranks }, c.seconds); ok {
			out.Who = n.at
			out.Note = o.explainingNote(w, c.seconds, func(note *Note) bool { return note.isAbout(n.who) })
		}
	case breakdown.Collective:
		n, ok := o.dominantOrigin(w.ops, func(p *past) []originTime { return p.ops }, c.seconds)
		out.Who = n.at
		if !ok { // the collectives as a whole
			out.Who.Unrecorded = w.unrecorded
		}
		if !w.known[breakdown.Wait] { // the time may be waiting: only a timer that names the late rank is evidence (detailed)
			out.Who, _ = o.longerTimer(w, c.seconds)
		}
	case breakdown.Compute:
		out.Note = o.explainingNote(w, c.seconds, anyone)
		out.Who, _ = o.longerTimer(w, c.seconds)
	case breakdown.DataLoading:
		if l := &w.Loader; l.Late > majority*c.seconds {
			out.Note = Note{Text: l.text(), Seconds: l.Late}
		}
	}
	return out
}

// longerTimer returns the trainer's timer whose excess alone is most of seconds; of several, as nested timers are, the innermost: the usually shortest. The
// slowest rank is named if most of the excess is over the other ranks. false: no such timer.
func (o *peers) longerTimer(w *window, seconds float64) (who breakdown.Who, ok bool) {
	shortest := math.Inf(1) // the usual time of the timer found
	for i := range w.Timers {
		t := &w.Timers[i]
		usual, spread := o.usualOf(func(p *past) float64 { return p.timer(t.Name) })
		more := t.Seconds - usual
		if more <= max(majority*seconds, deviations*spread) || usual >= shortest {
			continue
		}
		shortest, ok = usual, true
		who = (breakdown.Who{Timer: t.Name})
		if t.Rank >= 0 && t.Late > majority*more {
			who.Rank, who.HasRank = t.Rank, true
		}
	}
	return who, ok
}

// timersGrewAlike reports whether two or more timers took longer by about the factor of the window: none by less than half of that growth, or more than twice.
// Timers that are usually short (part) do not count.
func (o *peers) timersGrewAlike(w *window, v *Verdict) bool {
	counted := 0
	for i := range w.Timers {
		t := &w.Timers[i]
		usual, _ := o.usualOf(func(p *past) float64 { return p.timer(t.Name) })
		if usual < part*v.Usual {
			continue
		}
		growth := (t.Seconds - usual) / usual / (v.Excess / v.Usual)
		if growth < 0.5 || growth > 2 {
			return false
		}
		counted++
	}
	return counted > 1
}

// dominantOrigin returns the origin whose excess over its own usual time is most of seconds; false: none, or another origin has over half as much. origins are
// of the window; originsOf returns those of a peer.
func (o *peers) dominantOrigin(origins []originTime, originsOf func(p *past) []originTime, seconds float64) (best originTime, ok bool) {
	bestMore, second := 0.0, 0.0
	for _, n := range origins {
		usual, spread := o.usualOf(func(p *past) float64 { return usualTime(originsOf(p), n) })
		more := n.seconds - usual
		if more > bestMore {
			second = bestMore
			best, bestMore, ok = n, more, more > max(majority*seconds, deviations*spread)
		} else {
			second = max(second, more)
		}
	}
	if !ok || second > bestMore/2 {
		return originTime{}, false
	}
	return best, true
}

// explainingNote returns the note, among those that about accepts, that exceeds its usual time the most, and by at least the share noted of seconds; the zero
// Note: none.
func (o *peers) explainingNote(w *window, seconds float64, about func(n *Note) bool) (best Note) {
	longest := noted * seconds
	for i := range w.Notes {
		n := &w.Notes[i]
		if !about(n) {
			continue
		}
		usual, _ := o.usualOf(func(p *past) float64 { return usualTime(p.notes, originTime{who: n.Who, text: n.Text}) })
		if more := n.Seconds - usual; more > longest {
			best, longest = *n, more
		}
	}
	return best
}
