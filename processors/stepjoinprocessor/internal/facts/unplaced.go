package facts

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Unplaced is a pass of RPCs, or one of its slowest calls, without a time: an id ties the pass to a group. The pass has a trace of its own; a copy is drawn
// within the group's window.
type Unplaced struct {
	Span       pcommon.SpanID
	Parent     pcommon.SpanID // in the group's trace, if named by the log; of a call: the pass
	Start, End int64          // ns, in the log's order
	Number     int64          // of a pass; −1: none
	Name       uint32
	Call       bool // a call of the pass Parent
	Observed   bool // times of arrival
	Drawn      bool
}

// MostUnplaced is how many passes of a group are drawn by themselves.
const MostUnplaced = 64

// AddUnplaced adds a pass or a call without a time to its group. A repeated call is found with FindRepeats.
func (r *Run) AddUnplaced(g *Group, u Unplaced) {
	if r.known != nil && u.Call && g.draws(u.Span) { // a repeated pass is known as a window or a leaf
		return
	}
	g.Unplaced = append(g.Unplaced, u)
	r.bytes += unplacedBytes
}

// AddLate adds a pass to a closed group, which then is one of r.Late: the next sweep draws the pass. A known pass adds nothing. With MostUnplaced passes and
// calls known, a further pass stays in its own trace alone.
func (r *Run) AddLate(g *Group, u Unplaced) {
	if len(g.Unplaced) >= MostUnplaced || g.draws(u.Span) {
		return
	}
	r.AddUnplaced(g, u)
	if !slices.Contains(r.Late, g) {
		r.Late = append(r.Late, g)
	}
}

// Waits reports whether a pass is still to be drawn.
func (g *Group) Waits(id pcommon.SpanID) bool {
	return slices.ContainsFunc(g.Unplaced, func(u Unplaced) bool { return u.Span == id && !u.Drawn })
}

// draws reports whether a pass or a call is known.
func (g *Group) draws(id pcommon.SpanID) bool {
	return slices.ContainsFunc(g.Unplaced, func(u Unplaced) bool { return u.Span == id })
}

// Drop drops a group without any placed part, for lack of room. Later spans of the trace are another group.
func (r *Run) Drop(g *Group) {
	g.gone, r.sorted = true, false
	r.forgetShares(g.Own)
	delete(r.Groups, g.ID)
	r.bytes -= g.Bytes()
}

// Arrived gives a group without any clock the arrival times of the lines, if known: windows and leaves that have them (Observed) are not Timeless any more.
func (r *Run) Arrived(g *Group) {
	if g.End != 0 || !g.Promised && !g.ByID && len(g.Unplaced) == 0 { // without an id only the group's own trace is tied to it
		return
	}
	for i := range g.Windows {
		if w := &g.Windows[i]; w.Flags.Has(Timeless) && w.Flags.Has(Observed) {
			w.Flags &^= Timeless
			g.widen(w.Start, w.End, w.Flags)
			r.sorted = false
		}
	}
	for i := range g.Own {
		if l := &g.Own[i]; l.Flags.Has(Timeless) && l.Flags.Has(Observed) {
			l.Flags &^= Timeless
			g.widen(l.Start, l.End, l.Flags)
			r.sorted = false
		}
	}
}

// compareUnplaced orders by the log's order.
func compareUnplaced(a, b Unplaced) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.Span[:], b.Span[:]))
}

// Passes returns the number of unplaced passes.
func (g *Group) Passes() (n int) {
	for i := range g.Unplaced {
		if !g.Unplaced[i].Call {
			n++
		}
	}
	return n
}

// between is the gap between two passes, ns: Jaeger's critical path leaves out a span ending as the next begins.
const between = 1000

// Lay calls f with each pass not drawn yet, and where the pass is to be drawn, ns: from the start of a window, in succession in the log's order, behind those
// drawn already. If the window is too short, the starts are scaled closer together, so that each pass ends within, unless longer than the window. Durations
// stay exact.
func (g *Group) Lay(start, end int64, f func(u *Unplaced, at int64)) {
	slices.SortStableFunc(g.Unplaced, compareUnplaced)
	room, before, scale := end-start, int64(0), 1.0
	for i := range g.Unplaced {
		if u := &g.Unplaced[i]; !u.Call && u.Drawn {
			before += u.End - u.Start + between
		}
	}
	// The scale by which every pass fits: a pass that begins at ns after the start, unscaled, may begin room − length ns after the start at most.
	at := before
	for i := range g.Unplaced {
		u := &g.Unplaced[i]
		if u.Call || u.Drawn {
			continue
		}
		length := u.End - u.Start
		if at > 0 && length <= room {
			scale = min(scale, float64(room-length)/float64(at))
		}
		at += length + between
	}
	at = before
	for i := range g.Unplaced {
		u := &g.Unplaced[i]
		if u.Call || u.Drawn {
			continue
		}
		place := start + int64(scale*float64(at))
		at += u.End - u.Start + between
		f(u, place)
	}
}
