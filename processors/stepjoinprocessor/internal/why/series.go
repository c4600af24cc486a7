package why

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// series are the windows of a key: the last, live, and those that wait for what comes after them.
type series struct {
	seen    int    // of those that do not count
	windows []past // a ring once it is full
	next    int
	rare    [breakdown.Evaluation + 1]rare

	held []*window // in order of time
	told int       // of held: what others are still held against
}

// past is what is kept of a window.
type past struct {
	duration          float64
	base              float64 // its duration without checkpoint and evaluation
	time              [breakdown.Kinds]float64
	known             [breakdown.Kinds]bool
	ranks, ops, notes []named // the longest few
	timers            []Timer
}

// overhead is the time of the parts that are no work, s: they are waited for, and differ from no window to the next by what the window has to do.
func (p *past) overhead() float64 {
	return p.time[breakdown.Wait] + p.time[breakdown.Collective] + p.time[breakdown.DataLoading] + p.time[breakdown.Get] + p.time[breakdown.Put]
}

// timer is how long a timer took, s; 0: it did not run.
func (p *past) timer(name string) float64 {
	for i := range p.timers {
		if p.timers[i].Name == name {
			return p.timers[i].Seconds
		}
	}
	return 0
}

// one is 1 for what is true.
func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// few is how many ranks, collectives and notes are kept of a window.
const few = 4

// named is what one rank, or one collective, took.
type named struct {
	who     breakdown.Who
	at      breakdown.Who // the same with the collective in which most of it was
	text    string        // of a note
	seconds float64
}

// rare are the last durations of what only some windows have.
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

// values are the last durations.
func (r *rare) values() []float64 { return r.last[:min(r.n, len(r.last))] }

// peers are the windows that one is held against.
type peers struct {
	windows []*past
	rare    [breakdown.Evaluation + 1][]float64 // s: the checkpoints and evaluations of others
	values  []float64                           // scratch
}

// rareOf are the median of the durations of others, and their robust standard deviation. Where too few were seen this one is as usual as any.
func (o *peers) rareOf(k breakdown.Kind, seconds float64) (middle, spread float64) {
	if seconds == 0 || len(o.rare[k]) < leastRare {
		return seconds, 0
	}
	o.values = append(o.values[:0], o.rare[k]...)
	middle, spread = robust(o.values)
	return middle, max(spread, steadiest*middle)
}

// of are the median of a figure of the windows, and its robust standard deviation.
func (o *peers) of(value func(p *past) float64) (middle, spread float64) {
	o.values = o.values[:0]
	for _, p := range o.windows {
		o.values = append(o.values, value(p))
	}
	return robust(o.values)
}

// before is what the windows before say of one.
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

// robust are the median, and the standard deviation as the median distance from it tells it. It sorts the values.
func robust(of []float64) (middle, spread float64) {
	slices.Sort(of)
	middle = stat.Median(of)
	return middle, stat.Sigma(of, middle)
}

// at is what one took in a window. Who is not kept took at most what the last of the few took.
func at(of []named, n named) float64 {
	for i := range of {
		if of[i].who == n.who && of[i].text == n.text {
			return of[i].seconds
		}
	}
	if len(of) == few {
		return of[few-1].seconds
	}
	return 0
}

// add makes a window one of those that others are held against, live.
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

// grouped adds parts up by who is behind them.
type grouped struct {
	sums   map[breakdown.Who]named
	first  map[breakdown.Who]float64 // the longest part of each
	sorted []named
}

// by groups parts, the longest of which come first, by what key makes of who is behind them, the longest first. It leaves out those of which key says false.
func (g *grouped) by(parts []breakdown.Part, key func(who breakdown.Who) (breakdown.Who, bool)) []named {
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
	g.sorted = g.sorted[:0]
	for who, n := range g.sums {
		if g.first[who] <= majority*n.seconds {
			n.at = who
		}
		g.sorted = append(g.sorted, n)
	}
	slices.SortFunc(g.sorted, func(x, y named) int { return cmp.Or(cmp.Compare(y.seconds, x.seconds), x.who.Compare(y.who)) })
	return g.sorted
}
