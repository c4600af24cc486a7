package facts

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Group is a trace with windows.
type Group struct {
	ID       pcommon.TraceID
	Service  string
	ByID     bool   // its trace is the one that an id names
	Promised bool   // its tops were given a parent: a root has to be sent
	Partial  string // why not all may be here, as spans.AttrJoinPartialReason has it; empty: all is
	Restored bool   // after a crash, of which only a promise is known
	Closed   bool
	Windows  []Window
	one      [1]Window // of Windows, while there are no more: mostly there is one
	Own      []Leaf    // of its own trace
	Stages   []Stage   // likewise, of its calls of TransferQueue
	Unplaced []Unplaced

	// Start and End are the ends of what has a place in time; End is 0 where nothing has.
	Start, End int64
	Last       time.Time // when the last of it came
	Chunk      int64     // of the promise that is stored; −1: none
	Entry      int64     // of the journal, that has the first of it
	told       uint8     // what Service is of
	functions  int
	staged     int64 // stages that were added
	settled    bool
	flags      Flags                       // Observed, where a time of it is
	made       int64                       // where its first Timeless window or leaf begins: they are in order all the same
	gone       bool                        // forgotten, and still in a list
	seen       map[pcommon.SpanID]struct{} // nil while small
}

// Group is the group of a trace, made where there is none.
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

// Of says of which service a window or a leaf of the group is. What the group is told by does not depend on what came first: it is the service of the calls of
// TransferQueue, else that of the steps, else the first by name.
func (g *Group) Of(service string, kind WindowKind) {
	order := [...]uint8{Function: 1, Step: 2, Pass: 3, Other: 4}[kind]
	if g.told == 0 || order < g.told || order == g.told && service < g.Service {
		g.Service, g.told = service, order
	}
}

// Lacks notes why not all of the group may be here. The first reason stays.
func (g *Group) Lacks(why string) {
	if g.Partial == "" {
		g.Partial = why
	}
}

// Functions is how many functions of TransferQueue it has.
func (g *Group) Functions() int { return g.functions }

// HasStep says whether a training step is in its trace.
func (g *Group) HasStep() bool {
	return slices.ContainsFunc(g.Windows, func(w Window) bool { return w.Kind == Step })
}

// Has says whether a span is known already: what a source sends again after a crash counts once.
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

const smallGroup = 48 // below, looking through all is as fast as a map

func (g *Group) note(id pcommon.SpanID) {
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

func (g *Group) widen(start, end int64, flags Flags) {
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

// Observed says that its times are known to a second only.
func (g *Group) Observed() bool { return g.flags.Has(Observed) }

// Place is when all of it was.
func (g *Group) Place() Place {
	return Place{Start: g.Start, End: g.End, Name: g.Name(), Observed: g.Observed(), Not: g}
}

// Name is the number of the name of one of the group's windows; 0: it has none.
func (g *Group) Name() uint32 {
	if len(g.Windows) == 0 {
		return 0
	}
	return g.Windows[0].Name
}

// expected is how many calls a group mostly has: growing costs as much again.
func (g *Group) expected() int {
	if g.Promised {
		return 16
	}
	return 1
}

func (r *Run) touch(g *Group, now time.Time) {
	g.Last, r.sorted, g.settled = now, false, false
}

// Close closes a group.
func (r *Run) Close(g *Group, now time.Time) {
	g.Closed, g.Last, g.seen = true, now, nil
	g.Windows, g.Stages = fitted(g.Windows), fitted(g.Stages)
	r.done = append(r.done, g)
}

// fitted is a list without the room for more that a group was expected to have.
func fitted[T any](list []T) []T {
	if cap(list) < 2*len(list) {
		return list
	}
	return append([]T(nil), list...)
}

// Restore sets what is known of a group after a crash: a window, or only a time where it has no span.
func (r *Run) Restore(g *Group, w Window, functions bool, now time.Time) {
	g.Restored = true
	if functions {
		g.functions = max(g.functions, 1)
	}
	if functions || w.Span.IsEmpty() || w.Kind > Other {
		g.widen(w.Start, w.End, 0)
		return
	}
	w.Steps, w.Batch = 1, math.NaN()
	r.AddWindow(g, w, now)
}
