package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// arriving is the largest delay of a line after the event.
const arriving = int64(time.Second)

// resolution returns the precision of a time, ns, of a span of a name: a log of whole seconds prints 12:00:01 for everything within a second. One time in a
// thousand of a log of milliseconds is a whole second as well, hence all times of a name together decide.
func (r *Run) resolution(name uint32, ns int64) int64 {
	switch {
	case ns%int64(time.Second) == 0 && (int(name) >= len(r.fine) || !r.fine[name]): // no time of the name was finer
		return int64(time.Second)
	case ns%int64(time.Millisecond) == 0:
		return int64(time.Millisecond)
	}
	return 0
}

// noteTime records names with times of more than whole seconds. Timeless and Observed times are not the log's own.
func (r *Run) noteTime(name uint32, end int64, flags Flags) {
	if end%int64(time.Second) == 0 || flags.Has(Timeless|Observed) {
		return
	}
	for int(name) >= len(r.fine) {
		r.fine = append(r.fine, false)
	}
	r.fine[name] = true
}

// holds reports whether a window may contain a time range, and whether certainly: for any offset of the two hosts' clocks up to r.Apart. Both allow for the
// tolerance and the precision of the logs. A window without a place in time, or shorter than the tolerance, contains nothing.
func (r *Run) holds(w *Window, at *Place, tolerance time.Duration) (may, sure bool) {
	if w.Flags.Has(Timeless|Point) || w.End-w.Start < int64(tolerance) {
		return false, false
	}
	slack := max(int64(tolerance), r.resolution(w.Name, w.End), r.resolution(at.Name, at.End))
	if w.Flags.Has(Observed) || at.Observed {
		slack = max(slack, arriving)
	}
	apart := r.Apart
	if at.Host != 0 && at.Host == w.Host {
		apart = 0
	}
	early, over := w.Start-slack-at.Start, at.End-w.End-slack // how far the range reaches out of the window, ns; below 0: how far inside
	return early <= apart && over <= apart, early <= -apart && over <= -apart
}

// Holds reports whether a window may hold a place.
func (v *Resolver) Holds(r *Run, w *Window, at Place) bool {
	may, _ := r.holds(w, &at, v.Tolerance)
	return may
}

// candidate is a group with a window that may contain a place, and the smallest of these windows.
type candidate struct {
	group      *Group
	start, end int64 // of the window
	number     int64 // of a step; −1: none
	sure       bool  // the window certainly contains the place
}

// Resolver finds groups. The memory is reused.
type Resolver struct {
	Tolerance time.Duration // largest difference of two logs' times for one moment
	found     []candidate   // for the place at hand

	// The cache of Home.
	run      *Run
	sortings int64           // run.sortings, when cached
	homes    map[*Group]home // of groups of the run, until a change
}

// home is the group that contains another, by Resolve.
type home struct {
	group     *Group
	by        string
	ambiguous bool
}

// Home finds the group that contains another, by Resolve of the place. The result is cached until Forget, or until groups of the run change: each of
// overlapping windows asks for the homes of all the others.
func (v *Resolver) Home(r *Run, g *Group) (of *Group, by string, ambiguous bool) {
	if v.run != r || v.sortings != r.sortings {
		v.Forget()
		v.run, v.sortings = r, r.sortings
	}
	h, ok := v.homes[g]
	if !ok {
		h.group, h.by, h.ambiguous = v.Resolve(r, g.Place())
		v.homes[g] = h
	}
	return h.group, h.by, h.ambiguous
}

// Forget drops the cached homes: the run may have new facts.
func (v *Resolver) Forget() {
	v.run = nil
	if v.homes == nil {
		v.homes = map[*Group]home{}
	}
	clear(v.homes)
}

// Place has the known clues to the group of a time range.
type Place struct {
	Start, End int64
	Name       uint32
	Host       uint32
	PID        int32
	Observed   bool   // times of arrival
	Not        *Group // the group whose own time is the place
}

// Resolve finds the group whose window contains a place, and the clue: by the process on the host, else by the host, else by the run. A weaker clue counts only
// where a stronger finds nothing. Of several groups the lowest counts (see lowest): ambiguous, if a smaller one may contain the place as well. nil: none, or
// none for certain. Call Sort before.
func (v *Resolver) Resolve(r *Run, at Place) (g *Group, by string, ambiguous bool) {
	v.found = v.found[:0]
	for _, level := range [...]struct {
		by    string
		known bool // the place has the clue
		fits  func(*Window) bool
	}{
		{spans.JoinByPID, at.Host != 0 && at.PID != 0, func(w *Window) bool { return w.PID == at.PID && w.Host == at.Host }},
		{spans.JoinByHost, at.Host != 0, func(w *Window) bool { return w.Host == at.Host }},
	} {
		if !level.known {
			continue
		}
		for _, l := range r.lists() {
			v.collect(r, l, &at, level.fits)
		}
		if len(v.found) > 0 {
			g, ambiguous = v.lowest()
			return g, level.by, ambiguous
		}
	}
	// The time of one process contains only the process's events, or at most the host's. A pass known by the arrival of its lines contains no event with a time
	// of its own: late lines would have the pass overlap two steps, and take the event from both.
	fits := func(w *Window) bool {
		arrived := w.Kind == Pass && w.Flags.Has(Observed) && !at.Observed
		return w.PID == 0 && !arrived && (at.Host == 0 || w.Host == 0 || w.Host == at.Host)
	}
	v.collect(r, &r.wide, &at, fits)
	if at.Not == nil || at.Not.functions == 0 { // no batch lies in another batch
		v.collect(r, &r.batches, &at, fits)
	}
	if len(v.found) == 0 {
		return nil, "", false
	}
	g, ambiguous = v.lowest()
	return g, spans.JoinByRun, ambiguous
}

// collect appends to v.found the groups of a list with a window that may contain the place and fits.
func (v *Resolver) collect(r *Run, l *list, at *Place, fits func(*Window) bool) {
	slack := max(int64(v.Tolerance), int64(time.Second)) + r.Apart // the largest of any window
	for _, g := range l.from(at.Start - l.longest - slack) {
		if g.Start > at.Start+slack {
			break
		}
		bothBatches := at.Not != nil && g.functions > 0 && at.Not.functions > 0 // no batch lies in another
		if g == at.Not || g.End < at.End-slack || bothBatches {
			continue
		}
		c, ok := candidate{group: g}, false
		for i := range g.Windows {
			w := &g.Windows[i]
			if !fits(w) || ok && w.End-w.Start >= c.end-c.start { // the smallest window counts
				continue
			}
			if may, sure := r.holds(w, at, v.Tolerance); may {
				c.start, c.end, c.number, c.sure, ok = w.Start, w.End, w.step(), sure, true
			}
		}
		if !ok && g.Promised && g.functions > 0 { // between the functions of a batch: the batch itself contains it
			batch := Window{Start: g.Start, End: g.End, Name: g.Name(), Flags: g.flags}
			if may, sure := r.holds(&batch, at, v.Tolerance); may && fits(&batch) {
				c.start, c.end, c.number, c.sure, ok = g.Start, g.End, -1, sure, true
			}
		}
		if ok {
			v.found = append(v.found, c)
		}
	}
}

// mostCompared is the largest number of candidates compared pairwise. Of more overlapping windows the largest is taken, if it contains all.
const mostCompared = 64

// largest returns the largest candidate, if it contains all others and certainly the place, and no other is as long; else nil.
func (v *Resolver) largest() *Group {
	c := slices.MaxFunc(v.found, func(a, b candidate) int { return cmp.Compare(a.end-a.start, b.end-b.start) })
	slack := int64(v.Tolerance)
	for i := range v.found {
		o := &v.found[i]
		outside, asLong := o.start < c.start-slack || o.end > c.end+slack, o.end-o.start == c.end-c.start
		if o.group != c.group && (outside || asLong) {
			return nil
		}
	}
	if !c.sure {
		return nil
	}
	return c.group
}

// lowest returns the lowest candidate of which is certain that the place is inside, whatever is true of the others: it contains each smaller candidate, and
// lies in each larger one. Two candidates that overlap, or have the same times, rule each other out. nil: none is certain. ambiguous: smaller candidates exist;
// always true with nil.
func (v *Resolver) lowest() (g *Group, ambiguous bool) {
	if len(v.found) > mostCompared {
		return v.largest(), true
	}
	slices.SortFunc(v.found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.end-a.start, b.end-b.start), slices.Compare(a.group.ID[:], b.group.ID[:]))
	})
	// Of two groups of one step, as two logs have it, only the one with precedence counts.
	v.found = slices.DeleteFunc(v.found, func(c candidate) bool {
		return c.number >= 0 && slices.ContainsFunc(v.found, func(o candidate) bool {
			overlap := min(c.end, o.end) > max(c.start, o.start)
			return o.number == c.number && o.group != c.group && overlap && o.group.before(c.group)
		})
	})
	slack := int64(v.Tolerance)
	for i := range v.found {
		c, all := &v.found[i], true
		for j := range v.found {
			o := &v.found[j]
			if i == j {
				continue
			}
			inside := o.start >= c.start-slack && o.end <= c.end+slack
			around := c.start >= o.start-slack && c.end <= o.end+slack
			// The candidates are sorted by length: those before c must lie inside, those behind around.
			conflict := j < i && !inside || j > i && !around
			sameTimes := inside && around
			if conflict || sameTimes {
				all = false
				break
			}
		}
		if all && !c.sure { // perhaps inside, perhaps only in the next larger one
			break
		}
		if all {
			return c.group, i > 0
		}
	}
	return nil, true
}

// Each calls f with the leaves of traces without a window that begin in a time range, each once. Call Sort before.
func (r *Run) Each(start, end int64, f func(*Leaf)) {
	from, _ := slices.BinarySearchFunc(r.leaves, start, func(l Leaf, t int64) int { return cmp.Compare(l.Start, t) })
	for i := from; i < len(r.leaves) && r.leaves[i].Start <= end; i++ {
		if i > from && r.leaves[i].Span == r.leaves[i-1].Span { // a repeat, as AddLeaf stores it
			continue
		}
		f(&r.leaves[i])
	}
}

// step returns the number of a step, −1 if none.
func (w *Window) step() int64 {
	if w.Kind != Step {
		return -1
	}
	return w.Number
}

// before decides which of two groups of one step has precedence: the group whose trace is an id's, else the smaller trace id.
func (g *Group) before(other *Group) bool {
	if g.ByID != other.ByID {
		return g.ByID
	}
	return slices.Compare(g.ID[:], other.ID[:]) < 0
}

// Twin returns the group with precedence over g that has the same step, by number and overlapping time, in another trace: another log's. nil: none. Call Sort
// before.
func (r *Run) Twin(g *Group, w *Window) *Group {
	if w.step() < 0 || w.Flags.Has(Timeless) {
		return nil
	}
	for _, o := range r.wide.from(w.Start - r.wide.longest) {
		if o.Start >= w.End {
			break
		}
		if o == g || !o.before(g) {
			continue
		}
		for i := range o.Windows {
			c := &o.Windows[i]
			overlap := min(c.End, w.End) > max(c.Start, w.Start) && !c.Flags.Has(Timeless|Point)
			if c.step() == w.Number && overlap {
				return o
			}
		}
	}
	return nil
}
