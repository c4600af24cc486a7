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

// AddUnplaced adds a pass or a call without a time to its group. With FindRepeats a repeated call is not added.
func (r *Run) AddUnplaced(g *Group, u Unplaced) {
	if r.known != nil && u.Call && g.hasUnplaced(u.Span) { // a repeated pass is known as a window or a leaf
		return
	}
	g.Unplaced = append(g.Unplaced, u)
	r.bytes += unplacedBytes
}

// AddLate adds a pass to a closed group and the group to r.Late: the next sweep draws the pass. A known pass adds nothing. Beyond MostUnplaced passes and
// calls, a pass stays in its own trace only.
func (r *Run) AddLate(g *Group, u Unplaced) {
	if len(g.Unplaced) >= MostUnplaced || g.hasUnplaced(u.Span) {
		return
	}
	r.AddUnplaced(g, u)
	if !slices.Contains(r.Late, g) {
		r.Late = append(r.Late, g)
	}
}

// AwaitsDrawing reports whether the pass with a span id is known and not drawn yet.
func (g *Group) AwaitsDrawing(id pcommon.SpanID) bool {
	return slices.ContainsFunc(g.Unplaced, func(u Unplaced) bool { return u.Span == id && !u.Drawn })
}

// hasUnplaced reports whether a pass or a call is known by its span id.
func (g *Group) hasUnplaced(id pcommon.SpanID) bool {
	return slices.ContainsFunc(g.Unplaced, func(u Unplaced) bool { return u.Span == id })
}

// Drop removes a group without any placed part, for lack of memory. Later spans of the trace make a new group.
func (r *Run) Drop(g *Group) {
	g.gone, r.sorted = true, false
	r.forgetShares(g.Own)
	delete(r.Groups, g.ID)
	r.bytes -= g.Bytes()
}

// UseArrivalTimes gives a group without any clock the arrival times of the lines, if known: its windows and leaves with these times (Observed) are not Timeless
// any more.
func (r *Run) UseArrivalTimes(g *Group) {
	if g.End != 0 || !g.Promised && !g.ByID && len(g.Unplaced) == 0 { // without an id only the group's own trace is tied to it
		return
	}
	for i := range g.Windows {
		if w := &g.Windows[i]; w.Flags.Has(Timeless) && w.Flags.Has(Observed) {
			w.Flags &^= Timeless
			g.extendBounds(w.Start, w.End, w.Flags)
			r.sorted = false
		}
	}
	for i := range g.Own {
		if l := &g.Own[i]; l.Flags.Has(Timeless) && l.Flags.Has(Observed) {
			l.Flags &^= Timeless
			g.extendBounds(l.Start, l.End, l.Flags)
			r.sorted = false
		}
	}
}

// compareUnplaced orders passes and calls as in the log.
func compareUnplaced(a, b Unplaced) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.Span[:], b.Span[:]))
}

// Passes returns the number of passes without a time, drawn or not.
func (g *Group) Passes() (n int) {
	for i := range g.Unplaced {
		if !g.Unplaced[i].Call {
			n++
		}
	}
	return n
}

// passGap is the gap between two passes, ns: Jaeger's critical path leaves out a span ending as the next begins.
const passGap = 1000

// LayOut calls f for each pass not drawn yet, with the start at which to draw the pass, ns. The passes are placed one after another from the start of the
// window, in the order of the log, after those drawn before.
//
// If the window is too short, the starts are scaled closer together, so that each pass ends within the window, unless longer than the window. Durations stay
// exact.
func (g *Group) LayOut(start, end int64, f func(u *Unplaced, at int64)) {
	slices.SortStableFunc(g.Unplaced, compareUnplaced)
	room, before, scale := end-start, int64(0), 1.0
	for i := range g.Unplaced {
		if u := &g.Unplaced[i]; !u.Call && u.Drawn {
			before += u.End - u.Start + passGap
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
		at += length + passGap
	}
	at = before
	for i := range g.Unplaced {
		u := &g.Unplaced[i]
		if u.Call || u.Drawn {
			continue
		}
		place := start + int64(scale*float64(at))
		at += u.End - u.Start + passGap
		f(u, place)
	}
}
