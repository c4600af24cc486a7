package why

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// series are the last windows of a key.
type series struct {
	seen    int    // of those that do not count
	windows []past // a ring once it is full
	next    int
	rare    [breakdown.Evaluation + 1]rare
	values  []float64 // scratch
}

// past is what is kept of a window.
type past struct {
	base              float64 // its duration without checkpoint and evaluation
	time              [breakdown.Kinds]float64
	known             [breakdown.Kinds]float64 // 1: it was
	ranks, ops, notes []named                  // the longest few
}

// few is how many ranks, collectives and notes are kept of a window.
const few = 4

// named is what one rank, or one collective, took.
type named struct {
	who     breakdown.Who
	text    string // of a note
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

// of are the median of the durations, and their robust standard deviation. Where too few were seen this one is as usual as any.
func (r *rare) of(seconds float64) (middle, spread float64) {
	if seconds == 0 || r.n < leastRare {
		return seconds, 0
	}
	last := r.last
	middle, spread = robust(last[:min(r.n, len(last))])
	return middle, max(spread, steadiest*middle)
}

// of are the median of the last windows, and their robust standard deviation.
func (s *series) of(value func(p *past) float64) (middle, spread float64) {
	s.values = s.values[:0]
	for i := range s.windows {
		s.values = append(s.values, value(&s.windows[i]))
	}
	return robust(s.values)
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

func (s *series) add(w *Window, ranks, ops []named) {
	b := w.Breakdown
	for k := range s.rare {
		s.rare[k].add(b.Time[k])
	}
	if len(s.windows) < kept {
		s.windows = append(s.windows, past{})
		s.next = len(s.windows) - 1
	}
	p := &s.windows[s.next]
	s.next = (s.next + 1) % kept
	p.base, p.time = b.Duration-b.Time[breakdown.Checkpoint]-b.Time[breakdown.Evaluation], b.Time
	for k, known := range b.Known {
		p.known[k] = 0
		if known {
			p.known[k] = 1
		}
	}
	p.ranks = append(p.ranks[:0], ranks[:min(len(ranks), few)]...)
	p.ops = append(p.ops[:0], ops[:min(len(ops), few)]...)
	p.notes = p.notes[:0]
	for _, n := range w.Notes {
		p.notes = append(p.notes, named{n.Who, n.Text, n.Seconds})
	}
	if len(p.notes) > few {
		slices.SortStableFunc(p.notes, func(x, y named) int { return cmp.Compare(y.seconds, x.seconds) })
		p.notes = slices.Clone(p.notes[:few])
	}
}

// grouped adds parts up by who is behind them.
type grouped struct {
	seconds map[breakdown.Who]float64
	sorted  []named
}

// by groups parts by what key makes of who is behind them, the longest first. It leaves out those of which key says false.
func (g *grouped) by(parts []breakdown.Part, key func(who breakdown.Who) (breakdown.Who, bool)) []named {
	if g.seconds == nil {
		g.seconds = map[breakdown.Who]float64{}
	}
	clear(g.seconds)
	for _, p := range parts {
		if who, ok := key(p.Who); ok {
			g.seconds[who] += p.Seconds
		}
	}
	g.sorted = g.sorted[:0]
	for who, seconds := range g.seconds {
		g.sorted = append(g.sorted, named{who: who, seconds: seconds})
	}
	slices.SortFunc(g.sorted, func(x, y named) int { return cmp.Or(cmp.Compare(y.seconds, x.seconds), x.who.Compare(y.who)) })
	return g.sorted
}
