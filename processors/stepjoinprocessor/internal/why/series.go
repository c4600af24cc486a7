package why

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// series are the windows of a key: the last, live, and those that wait for later windows.
type series struct {
	seen    int    // live: the warm-up windows so far; finished logs: all windows so far
	windows []past // live: the last, a ring once full
	next    int    // index in windows
	rare    [breakdown.Evaluation + 1]rare

	held    []*window        // finished logs: in order of time
	judged  int              // how many of held are already judged, and kept for comparison
	periods []regimes.Period // finished logs: of the steps so far, the latest last
}

// past has the kept values of a window.
type past struct {
	duration          float64
	base              float64 // its duration without checkpoint and evaluation
	time              [breakdown.Kinds]float64
	known             [breakdown.Kinds]bool
	ranks, ops, notes []named // the longest few; of a held window up to 2*few ranks and ops, as take has kept them
	timers            []Timer
}

// overhead returns the time of waiting and input, s, which does not depend on the amount of work in the window.
func (p *past) overhead() float64 {
	return p.time[breakdown.Wait] + p.time[breakdown.Collective] + p.time[breakdown.DataLoading] + p.time[breakdown.Get] + p.time[breakdown.Put]
}

// timer returns the time of a timer, s; 0: it did not run.
func (p *past) timer(name string) float64 {
	for i := range p.timers {
		if p.timers[i].Name == name {
			return p.timers[i].Seconds
		}
	}
	return 0
}

// one is 1 for true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// few is how many ranks, collectives and notes are kept of a window.
const few = 4

// named is the time of a rank, or of a collective.
type named struct {
	who     breakdown.Who
	at      breakdown.Who // the same with the dominant collective
	text    string        // of a note
	seconds float64
}

// rare are the last durations of kinds that only some windows have.
type rare struct {
	last [32]float64
	n    int
}

func (r *rare) add(seconds float64) {
	if seconds > 0 {
		r.last[r.n%len(r.last)] = seconds
		r.n++
	}
}

// values returns the last durations.
func (r *rare) values() []float64 { return r.last[:min(r.n, len(r.last))] }

// peers are the windows that a window is compared with.
type peers struct {
	windows []*past
	rare    [breakdown.Evaluation + 1][]float64 // s: the checkpoints and evaluations of others
	values  []float64                           // scratch
}

// rareOf returns the median of the durations of others, and their robust standard deviation. With too few others, the given duration counts as usual.
func (o *peers) rareOf(k breakdown.Kind, seconds float64) (middle, spread float64) {
	if seconds == 0 || len(o.rare[k]) < leastRare {
		return seconds, 0
	}
	o.values = append(o.values[:0], o.rare[k]...)
	middle, spread = robust(o.values)
	return middle, max(spread, steadiest*middle)
}

// of returns the median of a value of the windows, and its robust standard deviation.
func (o *peers) of(value func(p *past) float64) (middle, spread float64) {
	o.values = o.values[:0]
	for _, p := range o.windows {
		o.values = append(o.values, value(p))
	}
	return robust(o.values)
}

// before compares a window with the windows before, live: the verdict without causes. o.rare is set for explain.
func (s *series) before(o *peers, w *window) Verdict {
	for k := range s.rare {
		o.rare[k] = append(o.rare[k][:0], s.rare[k].values()...)
	}
	o.values = o.values[:0]
	for i := range s.windows {
		o.values = append(o.values, s.windows[i].base)
	}
	slices.Sort(o.values)
	return o.limit(w, regimes.Of(o.values))
}

// robust returns the median, and the standard deviation estimated by the median absolute deviation. The values are sorted.
func robust(of []float64) (middle, spread float64) {
	slices.Sort(of)
	middle = stat.Median(of)
	return middle, stat.Sigma(of, middle)
}

// at returns the time of the origin n in a past window, of which of has the longest few, or 2*few of a held window. An origin that is not among so many took at
// most the time of the last, and that counts; a shorter list has all.
func at(of []named, n named) float64 {
	for i := range of {
		if of[i].who == n.who && of[i].text == n.text {
			return of[i].seconds
		}
	}
	if len(of) == few || len(of) == 2*few {
		return of[len(of)-1].seconds
	}
	return 0
}

// add adds a window to the peers of later windows, live; the oldest makes room.
func (s *series) add(w *window) {
	for k := range s.rare {
		s.rare[k].add(w.time[k])
	}
	if len(s.windows) < kept {
		s.windows = append(s.windows, past{})
		s.next = len(s.windows) - 1
	}
	p := &s.windows[s.next]
	s.next = (s.next + 1) % kept
	p.duration, p.base, p.time, p.known = w.duration, w.base, w.time, w.known
	p.ranks = append(p.ranks[:0], w.ranks[:min(len(w.ranks), few)]...)
	p.ops = append(p.ops[:0], w.ops[:min(len(w.ops), few)]...)
	p.timers = append(p.timers[:0], w.timers...)
	p.notes = longest(p.notes[:0], w.Notes)
}

// longest appends the longest few notes.
func longest(to []named, notes []Note) []named {
	for _, n := range notes {
		to = append(to, named{who: n.Who, text: n.Text, seconds: n.Seconds})
	}
	if len(to) > few {
		slices.SortStableFunc(to, func(x, y named) int { return cmp.Compare(y.seconds, x.seconds) })
		to = slices.Clone(to[:few])
	}
	return to
}

// grouped adds parts up by origin.
type grouped struct {
	sums   map[breakdown.Who]named
	first  map[breakdown.Who]float64 // the longest part of each
	sorted []named
}

// by adds up parts, the longest of which come first, by the key of their origin, and sorts the sums, the longest first. Parts whose key returns false are left
// out. named.at is the full origin of the longest part, if that part is most of the sum, else only the key.
func (g *grouped) by(parts []breakdown.Part, key func(who breakdown.Who) (breakdown.Who, bool)) []named {
	g.sorted = g.sorted[:0]
	if len(parts) == 0 {
		return g.sorted
	}
	if g.sums == nil {
		g.sums, g.first = map[breakdown.Who]named{}, map[breakdown.Who]float64{}
	}
	clear(g.sums)
	clear(g.first)
	for _, p := range parts {
		who, ok := key(p.Who)
		if !ok {
			continue
		}
		n, again := g.sums[who]
		if !again {
			n, g.first[who] = named{who: who, at: p.Who}, p.Seconds
		}
		n.seconds += p.Seconds
		g.sums[who] = n
	}
	for who, n := range g.sums {
		if g.first[who] <= majority*n.seconds { // no single part dominates
			n.at = who
		}
		g.sorted = append(g.sorted, n)
	}
	slices.SortFunc(g.sorted, func(x, y named) int { return cmp.Or(cmp.Compare(y.seconds, x.seconds), x.who.Compare(y.who)) })
	return g.sorted
}
