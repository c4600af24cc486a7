package facts

import (
	"cmp"
	"slices"
)

// list is groups in order of their start.
type list struct {
	groups  []*Group
	longest int64 // ns: no group around a moment begins earlier than by this before
}

// sort drops the forgotten groups and sorts the others: by start; groups without a clock have the start 0, and are ordered by their made-up times.
func (l *list) sort() {
	l.groups = slices.DeleteFunc(l.groups, func(g *Group) bool { return g.gone })
	slices.SortFunc(l.groups, func(a, b *Group) int {
		if c := cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.made, b.made)); c != 0 {
			return c
		}
		return slices.Compare(a.ID[:], b.ID[:])
	})
	l.longest = 0
	for _, g := range l.groups {
		l.longest = max(l.longest, g.End-g.Start)
	}
}

// startingFrom returns the groups that begin at start or later.
func (l *list) startingFrom(start int64) []*Group {
	i, _ := slices.BinarySearchFunc(l.groups, start, func(g *Group, t int64) int { return cmp.Compare(g.Start, t) })
	return l.groups[i:]
}

// Sort moves groups to the lists where they belong, and orders groups and leaves by time. It must be called before the methods that read them in order.
func (r *Run) Sort() {
	if !r.sorted {
		r.sortings++
		fresh := r.fresh
		for _, l := range r.lists() {
			for i, g := range l.groups {
				if r.listOf(g) != l { // a new window or a promise moves it to another list: l.sort drops what is left in the old place
					fresh, l.groups[i] = append(fresh, g), &Group{gone: true}
				}
			}
		}
		for _, g := range fresh {
			l := r.listOf(g)
			l.groups = append(l.groups, g)
		}
		clear(fresh) // the memory is reused, and must not keep groups alive
		r.fresh = fresh[:0]
		for _, l := range r.lists() {
			l.sort()
		}
		r.sorted = true
	}
	if len(r.leaves) > r.ordered {
		r.sortLeaves()
	}
}

// sortLeaves merges the new leaves, those from index r.ordered on, into the sorted leaves. New leaves belong near the end: sorted leaves before all of them do
// not move.
func (r *Run) sortLeaves() {
	fresh := r.leaves[r.ordered:]
	slices.SortFunc(fresh, compareLeaves)
	first, _ := slices.BinarySearchFunc(r.leaves[:r.ordered], fresh[0], compareLeaves)
	if first < r.ordered {
		fresh = slices.Clone(fresh) // their place is overwritten, from the end
		// Backwards: of the last sorted leaf (a) and the last new one (b), the later goes to the last free place.
		to, a := len(r.leaves)-1, r.ordered-1
		for b := len(fresh) - 1; b >= 0; to-- {
			if a >= first && compareLeaves(r.leaves[a], fresh[b]) > 0 {
				r.leaves[to] = r.leaves[a]
				a--
			} else {
				r.leaves[to] = fresh[b]
				b--
			}
		}
	}
	r.ordered = len(r.leaves)
}

// lists returns all lists of groups; each group is in exactly one.
func (r *Run) lists() [3]*list { return [...]*list{&r.wide, &r.batches, &r.narrow} }

// listOf returns the list where a group belongs, by its windows.
func (r *Run) listOf(g *Group) *list {
	switch {
	case g.isNarrow():
		return &r.narrow
	case g.Promised && g.functions > 0 && g.functions == len(g.Windows): // windows of functions only
		return &r.batches
	}
	return &r.wide
}

// isNarrow reports whether the group consists of TransferQueue calls of single processes without an id that joins them. Such a group contains no event of
// another process.
func (g *Group) isNarrow() bool {
	// Every window is a function of a known process.
	return !g.Promised && len(g.Windows) > 0 && !slices.ContainsFunc(g.Windows, func(w Window) bool { return w.PID == 0 || w.Kind != Function })
}

// Open returns the groups not yet closed, by start. Call Sort first.
func (r *Run) Open() (open []*Group) {
	for _, l := range r.lists() {
		for _, g := range l.groups {
			if !g.Closed {
				open = append(open, g)
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *Group) int { return cmp.Compare(a.Start, b.Start) })
	return open
}

// EachGroup calls f with the groups that begin in a time range, with batches only if wanted. Call Sort before.
func (r *Run) EachGroup(start, end int64, batches bool, f func(*Group)) {
	for _, l := range r.lists() {
		if l == &r.batches && !batches {
			continue
		}
		for _, g := range l.startingFrom(start) {
			if g.Start > end {
				break
			}
			f(g)
		}
	}
}
