package why

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// series has the windows of a key: live, the last windows; of finished logs, windows that wait for later windows, and those judged before.
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
	ranks, ops, notes []originTime // the longest few; of a held window up to 2*few ranks and ops, as take has kept them
	timers            []Timer
}

// overhead returns the time of waiting and input, s, which does not depend on the amount of work in the window.
func (p *past) overhead() float64 {
	return p.time[breakdown.Wait] + p.time[breakdown.Collective] + p.time[breakdown.DataLoading] + p.time[breakdown.Get] + p.time[breakdown.Put]
}

// timer returns the time of a trainer's timer in the window, s; 0: the timer did not run.
func (p *past) timer(name string) float64 {
	for i := range p.timers {
		if p.timers[i].Name == name {
			return p.timers[i].Seconds
		}
	}
	return 0
}

// boolNumber returns 1 for true and 0 for false, to take the median of a property.
func boolNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// few is how many ranks, collectives and notes are kept of a window.
const few = 4

// originTime is the time of an origin (a rank or a collective), or of a note.
type originTime struct {
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

// add records a duration; 0: the window does not have the kind.
func (r *rare) add(seconds float64) {
	if seconds > 0 {
		r.last[r.n%len(r.last)] = seconds
		r.n++
	}
}

// values returns the recorded durations, s, in no order.
func (r *rare) values() []float64 { return r.last[:min(r.n, len(r.last))] }

// peers are the windows that a window is compared with.
type peers struct {
	windows []*past
	rare    [breakdown.Evaluation + 1][]float64 // s: the checkpoints and evaluations of others
	values  []float64                           // scratch
}

// rareOf returns the usual duration of kind k (checkpoint or evaluation), s: the median of the other windows with the kind, and the robust standard deviation.
// With fewer than leastRare others the given duration itself is usual. seconds 0: the window does not have the kind, and the result is 0.
func (o *peers) rareOf(k breakdown.Kind, seconds float64) (middle, spread float64) {
	if seconds == 0 || len(o.rare[k]) < leastRare {
		return seconds, 0
	}
	o.values = append(o.values[:0], o.rare[k]...)
	middle, spread = robust(o.values)
	return middle, max(spread, steadiest*middle)
}

// usualOf returns the median of a value over the windows to compare with, and its robust standard deviation.
func (o *peers) usualOf(value func(p *past) float64) (middle, spread float64) {
	o.values = o.values[:0]
	for _, p := range o.windows {
		o.values = append(o.values, value(p))
	}
	return robust(o.values)
}

// judgeLive compares a window with the windows before it, live, and returns the verdict without causes. It sets o.rare for explain.
func (s *series) judgeLive(o *peers, w *window) Verdict {
	for k := range s.rare {
		o.rare[k] = append(o.rare[k][:0], s.rare[k].values()...)
	}
	o.values = o.values[:0]
	for i := range s.windows {
		o.values = append(o.values, s.windows[i].base)
	}
	slices.Sort(o.values)
	return o.verdictOf(w, regimes.Of(o.values))
}

// robust returns the median, and the standard deviation estimated from the median absolute deviation. It sorts the values.
func robust(values []float64) (middle, spread float64) {
	slices.Sort(values)
	middle = stat.Median(values)
	return middle, stat.Sigma(values, middle)
}

// usualTime returns the time of the origin n in a past window, s. list has the longest origins of that window: few, or 2*few of a held window. If the list is
// full without n, n took at most the time of the last entry, which is returned; if the list is shorter, n took no time.
func usualTime(list []originTime, n originTime) float64 {
	for i := range list {
		if list[i].who == n.who && list[i].text == n.text {
			return list[i].seconds
		}
	}
	if len(list) == few || len(list) == 2*few {
		return list[len(list)-1].seconds
	}
	return 0
}

// addPeer adds a window to the series, live, for comparison with later windows. The oldest window makes room.
func (s *series) addPeer(w *window) {
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
	p.notes = longestNotes(p.notes[:0], w.Notes)
}

// longestNotes appends the notes as origins; beyond few, only the longest.
func longestNotes(to []originTime, notes []Note) []originTime {
	for _, n := range notes {
		to = append(to, originTime{who: n.Who, text: n.Text, seconds: n.Seconds})
	}
	if len(to) > few {
		slices.SortStableFunc(to, func(x, y originTime) int { return cmp.Compare(y.seconds, x.seconds) })
		to = slices.Clone(to[:few])
	}
	return to
}

// grouped adds parts up by origin.
type grouped struct {
	sums   map[breakdown.Who]originTime
	first  map[breakdown.Who]float64 // the longest part of each
	sorted []originTime
}

// sumBy adds up the seconds of parts by the key of their origin, and returns the sums, the longest first. parts must be sorted, the longest first. Parts for
// which key returns false are left out.
//
// originTime.at is the full origin of the longest part, if that part is most of the sum; else only the key.
func (g *grouped) sumBy(parts []breakdown.Part, key func(who breakdown.Who) (breakdown.Who, bool)) []originTime {
	g.sorted = g.sorted[:0]
	if len(parts) == 0 {
		return g.sorted
	}
	if g.sums == nil {
		g.sums, g.first = map[breakdown.Who]originTime{}, map[breakdown.Who]float64{}
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
			n, g.first[who] = originTime{who: who, at: p.Who}, p.Seconds
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
	slices.SortFunc(g.sorted, func(x, y originTime) int { return cmp.Or(cmp.Compare(y.seconds, x.seconds), x.who.Compare(y.who)) })
	return g.sorted
}
