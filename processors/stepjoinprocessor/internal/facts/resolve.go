package facts

import (
	"cmp"
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// maxArrivalDelay is how long after an event its line arrives at most, ns.
const maxArrivalDelay = int64(time.Second)

// resolution returns the precision of a time of a span, ns. A log of whole seconds prints 12:00:01 for everything within a second. One time in a thousand of a
// log of milliseconds is a whole second as well, so all times of spans with this name count (r.fine).
func (r *Run) resolution(name uint32, ns int64) int64 {
	switch {
	case ns%int64(time.Second) == 0 && (int(name) >= len(r.fine) || !r.fine[name]): // no time of the name was finer
		return int64(time.Second)
	case ns%int64(time.Millisecond) == 0:
		return int64(time.Millisecond)
	}
	return 0
}

// noteTime records in r.fine the names of spans with a time that is not a whole second. Timeless and Observed times are ignored: the log did not print them.
func (r *Run) noteTime(name uint32, end int64, flags Flags) {
	if end%int64(time.Second) == 0 || flags.Has(Timeless|Observed) {
		return
	}
	for int(name) >= len(r.fine) {
		r.fine = append(r.fine, false)
	}
	r.fine[name] = true
}

// mayContain reports whether a window may contain a time range, and whether certainly (sure): for any clock offset of the two hosts up to r.Apart. Both allow
// for the tolerance and the precision of the logs. A window without a place in time, or shorter than the tolerance, contains nothing.
func (r *Run) mayContain(w *Window, at *Place, tolerance time.Duration) (may, sure bool) {
	if w.Flags.Has(Timeless|Point) || w.End-w.Start < int64(tolerance) {
		return false, false
	}
	slack := max(int64(tolerance), r.resolution(w.Name, w.End), r.resolution(at.Name, at.End))
	if w.Flags.Has(Observed) || at.Observed {
		slack = max(slack, maxArrivalDelay)
	}
	apart := r.Apart
	if at.Host != 0 && at.Host == w.Host {
		apart = 0
	}
	// How far the range reaches out of the window at its start and its end, ns; negative: how far inside.
	early, over := w.Start-slack-at.Start, at.End-w.End-slack
	return early <= apart && over <= apart, early <= -apart && over <= -apart
}

// Holds reports whether a window may contain a place.
func (v *Resolver) Holds(r *Run, w *Window, at Place) bool {
	may, _ := r.mayContain(w, &at, v.Tolerance)
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

// Home returns the group that contains another group, by Resolve of its place: see Resolve for the results. They are cached until Forget, or until groups of
// the run change, because each of several overlapping windows asks for the homes of the others.
func (v *Resolver) Home(r *Run, g *Group) (owner *Group, by string, ambiguous bool) {
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

// Forget drops the cached homes, since the run may have new facts.
func (v *Resolver) Forget() {
	v.run = nil
	if v.homes == nil {
		v.homes = map[*Group]home{}
	}
	clear(v.homes)
}

// Place is a time range, with the known clues to the group that contains it.
type Place struct {
	Start, End int64
	Name       uint32
	Host       uint32
	PID        int32
	Observed   bool   // times of arrival
	Not        *Group // the group whose time is the place, and which does not contain itself; nil: a leaf
}

// Resolve returns the group whose window contains a place, and the clue as in spans.AttrJoinBy: the process on the host, else the host, else the run. A weaker
// clue counts only where no group fits the stronger clue. Of several groups the lowest counts (see lowest); ambiguous: a smaller group may contain the place as
// well. nil: no group, or none for certain. Call Sort first.
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
	// A window of one process contains only events of the process or the host. A pass with times of arrival contains no event with an exact time: late lines would
	// make the pass overlap two steps, and take the event from both.
	fits := func(w *Window) bool {
		inexactPass := w.Kind == Pass && w.Flags.Has(Observed) && !at.Observed
		return w.PID == 0 && !inexactPass && (at.Host == 0 || w.Host == 0 || w.Host == at.Host)
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

// collect appends to v.found the groups of a list that have a window which fits and may contain the place.
func (v *Resolver) collect(r *Run, l *list, at *Place, fits func(*Window) bool) {
	slack := max(int64(v.Tolerance), int64(time.Second)) + r.Apart // the largest of any window
	for _, g := range l.startingFrom(at.Start - l.longest - slack) {
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
			if may, sure := r.mayContain(w, at, v.Tolerance); may {
				c.start, c.end, c.number, c.sure, ok = w.Start, w.End, w.step(), sure, true
			}
		}
		if !ok && g.Promised && g.functions > 0 { // between two functions of a batch the batch itself contains the place
			batch := Window{Start: g.Start, End: g.End, Name: g.Name(), Flags: g.flags}
			if may, sure := r.mayContain(&batch, at, v.Tolerance); may && fits(&batch) {
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

// largest returns the largest candidate, if it certainly contains the place, contains all other candidates, and no other is as long; else nil.
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

// lowest returns the smallest candidate that certainly contains the place whichever of the other candidates do: it contains each smaller candidate, and lies in
// each larger one. Two candidates that overlap, or have the same times, rule each other out. nil: no candidate is certain.
//
// ambiguous: a smaller candidate exists; always true with nil.
func (v *Resolver) lowest() (g *Group, ambiguous bool) {
	if len(v.found) > mostCompared {
		return v.largest(), true
	}
	slices.SortFunc(v.found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.end-a.start, b.end-b.start), slices.Compare(a.group.ID[:], b.group.ID[:]))
	})
	// Two logs may describe the same step: only the group with precedence counts.
	v.found = slices.DeleteFunc(v.found, func(c candidate) bool {
		return c.number >= 0 && slices.ContainsFunc(v.found, func(o candidate) bool {
			overlap := min(c.end, o.end) > max(c.start, o.start)
			return o.number == c.number && o.group != c.group && overlap && o.group.hasPrecedence(c.group)
		})
	})
	slack := int64(v.Tolerance)
	for i := range v.found {
		c := &v.found[i]
		if !v.nested(i, slack) {
			continue
		}
		if !c.sure { // the place may be in c, or only in the next larger candidate
			break
		}
		return c.group, i > 0
	}
	return nil, true
}

// nested reports whether candidate i contains each smaller candidate and lies in each larger one, and no other has the same times, by slack, ns. Candidates are
// sorted by length.
func (v *Resolver) nested(i int, slack int64) bool {
	c := &v.found[i]
	for j := range v.found {
		if i == j {
			continue
		}
		o := &v.found[j]
		inside := o.start >= c.start-slack && o.end <= c.end+slack
		around := c.start >= o.start-slack && c.end <= o.end+slack
		sameTimes := inside && around
		conflict := j < i && !inside || j > i && !around
		if conflict || sameTimes {
			return false
		}
	}
	return true
}

// EachLeaf calls f for the leaves of traces without a window that begin from start to end, ns, each once. Call Sort first.
func (r *Run) EachLeaf(start, end int64, f func(*Leaf)) {
	from, _ := slices.BinarySearchFunc(r.leaves, start, func(l Leaf, t int64) int { return cmp.Compare(l.Start, t) })
	for i := from; i < len(r.leaves) && r.leaves[i].Start <= end; i++ {
		if i > from && r.leaves[i].Span == r.leaves[i-1].Span { // a repeat, as AddLeaf stores it
			continue
		}
		f(&r.leaves[i])
	}
}

// step returns the number of a training step; −1: the window is no step, or has no number.
func (w *Window) step() int64 {
	if w.Kind != Step {
		return -1
	}
	return w.Number
}

// hasPrecedence reports whether g, not other, counts of two groups of one step: the group whose trace is named by an id, else the group with the smaller trace
// id.
func (g *Group) hasPrecedence(other *Group) bool {
	if g.ByID != other.ByID {
		return g.ByID
	}
	return slices.Compare(g.ID[:], other.ID[:]) < 0
}

// Twin returns the group, in another trace, with the same step by number and overlapping time that has precedence over g: the step in another log; nil: none.
// Call Sort first.
func (r *Run) Twin(g *Group, w *Window) *Group {
	if w.step() < 0 || w.Flags.Has(Timeless) {
		return nil
	}
	for _, o := range r.wide.startingFrom(w.Start - r.wide.longest) {
		if o.Start >= w.End {
			break
		}
		if o == g || !o.hasPrecedence(g) {
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
