package facts

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Group is a trace with windows.
type Group struct { // pointers first: the garbage collector scans no further than the last
	Service  string
	Partial  string // why the group may be incomplete, as in spans.AttrJoinPartialReason; empty: complete
	Windows  []Window
	Own      []Leaf  // of the group's own trace
	Stages   []Stage // the same for TransferQueue calls
	Unplaced []Unplaced
	Last     time.Time                   // arrival of the last part; of a closed group, when it was closed
	seen     map[pcommon.SpanID]struct{} // nil while small

	ID       pcommon.TraceID
	ByID     bool // the trace is that of an id
	Promised bool // the roots were given a parent: a root must be sent
	Restored bool // after a crash, known only by a promise
	Closed   bool

	// Start and End are the bounds of the parts with a time; End is 0 without any.
	Start, End int64
	Chunk      int64     // of the stored promise; −1: none
	Entry      int64     // of the journal, with the group's first fact
	origin     uint8     // where Service is from, by precedence: 1 TransferQueue, 2 a step, 3 a pass, 4 another window; 0: none of them yet
	functions  int       // number of TransferQueue functions
	staged     int64     // number of stages added, for Bytes
	settled    bool      // Stages are sorted, and each is in once
	flags      Flags     // Observed, if any time is
	made       int64     // the beginning of the first Timeless window or leaf, for ordering
	gone       bool      // forgotten, and still in a list
	one        [1]Window // memory of Windows for a single window, the usual case
}

// Group returns the group of a trace, made if absent.
func (r *Run) Group(id pcommon.TraceID, service string) *Group {
	g := r.Groups[id]
	if g == nil {
		g = &Group{ID: id, Service: service, Chunk: -1, Entry: r.Entry}
		r.Groups[id] = g
		r.fresh, r.sorted = append(r.fresh, g), false
		r.bytes += groupBytes
	}
	return g
}

// SetService sets the service of the group from a window or a leaf. The order of calls does not matter: the service of TransferQueue calls wins over that of
// steps, then of passes, then of others; among several of one kind the first by name.
func (g *Group) SetService(service string, kind WindowKind) {
	order := [...]uint8{Function: 1, Step: 2, Pass: 3, Other: 4}[kind] // of precedence
	if g.origin == 0 || order < g.origin || order == g.origin && service < g.Service {
		g.Service, g.origin = service, order
	}
}

// SetPartial records why the group may be incomplete. The first reason stays.
func (g *Group) SetPartial(why string) {
	if g.Partial == "" {
		g.Partial = why
	}
}

// Functions returns the number of TransferQueue functions in the group.
func (g *Group) Functions() int { return g.functions }

// HasStep reports whether the group has a training step.
func (g *Group) HasStep() bool {
	return slices.ContainsFunc(g.Windows, func(w Window) bool { return w.Kind == Step })
}

// Has reports whether a span is already in the group as a window or a leaf: repeats after a crash count once.
func (g *Group) Has(id pcommon.SpanID) bool {
	if g.seen != nil {
		_, ok := g.seen[id]
		return ok
	}
	for i := range g.Own {
		if g.Own[i].Span == id {
			return true
		}
	}
	for i := range g.Windows {
		if g.Windows[i].Span == id {
			return true
		}
	}
	return false
}

const smallGroup = 48 // for fewer spans a search is as fast as a map

// noteSpan prepares Has for a span that the caller is about to add to Own or Windows: the spans of a large group are in the map seen.
func (g *Group) noteSpan(id pcommon.SpanID) {
	if g.seen == nil && len(g.Own)+len(g.Windows) >= smallGroup {
		g.seen = make(map[pcommon.SpanID]struct{}, 2*smallGroup)
		for i := range g.Own {
			g.seen[g.Own[i].Span] = struct{}{}
		}
		for i := range g.Windows {
			g.seen[g.Windows[i].Span] = struct{}{}
		}
	}
	if g.seen != nil {
		g.seen[id] = struct{}{}
	}
}

// extendBounds extends Start and End by the times of a window, a leaf or a stage; of a Point only the end counts. Made-up times (Timeless) do not count, and
// only order groups without other times (made).
func (g *Group) extendBounds(start, end int64, flags Flags) {
	if flags.Has(Timeless) {
		if g.made == 0 || start < g.made {
			g.made = start
		}
		return
	}
	if flags.Has(Point) {
		start = end
	}
	g.flags |= flags & Observed
	if g.End == 0 {
		g.Start, g.End = start, end
		return
	}
	g.Start, g.End = min(g.Start, start), max(g.End, end)
}

// Observed reports whether some time of the group is a time of arrival, or known to a second only.
func (g *Group) Observed() bool { return g.flags.Has(Observed) }

// Place returns the time range of the group.
func (g *Group) Place() Place {
	return Place{Start: g.Start, End: g.End, Name: g.Name(), Observed: g.Observed(), Not: g}
}

// Name returns the text number of the name of one of the group's windows; 0: the group has no window.
func (g *Group) Name() uint32 {
	if len(g.Windows) == 0 {
		return 0
	}
	return g.Windows[0].Name
}

// expected returns how many TransferQueue calls the group mostly has, for one allocation of the right size: a promised trace is that of a whole batch.
func (g *Group) expected() int {
	if g.Promised {
		return 16
	}
	return 1
}

// touch records that the group has a new part: lists must be sorted again, and the wait for further parts begins anew.
func (r *Run) touch(g *Group, now time.Time) {
	g.Last, r.sorted, g.settled = now, false, false
}

// Close marks a group as closed, and frees memory that only open groups need.
func (r *Run) Close(g *Group, now time.Time) {
	g.Closed, g.Last, g.seen = true, now, nil
	g.Windows, g.Stages = fitted(g.Windows), fitted(g.Stages)
	r.done = append(r.done, g)
}

// fitted returns list, copied if half of its capacity or more is unused.
func fitted[T any](list []T) []T {
	if cap(list) < 2*len(list) {
		return list
	}
	return append([]T(nil), list...)
}

// Restore sets what a promise says about a group after a crash: its window; or, if the window has no span or the group has functions, only its time range.
func (r *Run) Restore(g *Group, w Window, functions bool, now time.Time) {
	r.Mix()
	g.Restored = true
	if functions {
		g.functions = max(g.functions, 1)
	}
	if functions || w.Span.IsEmpty() || w.Kind > Other { // > Other: written by a later version
		g.extendBounds(w.Start, w.End, 0)
		return
	}
	w.Steps, w.Batch = 1, math.NaN()
	r.AddWindow(g, w, now)
}
