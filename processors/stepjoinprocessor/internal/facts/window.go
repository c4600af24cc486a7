package facts

import (
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// WindowKind is the kind of a window.
type WindowKind uint8

// The kinds of windows.
const (
	Step WindowKind = iota
	Pass
	Function // of TransferQueue
	Other    // a window by the configuration
)

// Window is a span whose time may contain others.
type Window struct {
	Kind       WindowKind
	Flags      Flags
	Span       pcommon.SpanID
	Start, End int64
	Number     int64   // iteration or ordinal; −1: none
	Steps      float64 // covered by the record, at least 1
	Batch      float64 // samples; NaN: not known
	World      int64   // ranks of the job, by the log of the training; 0: not known
	Host       uint32
	PID        int32
	Name       uint32
}

// AddWindow adds a window to its group. It returns false if the window is already known: of two windows with one id and without a clock the longer stays, as in
// keepLonger.
func (r *Run) AddWindow(g *Group, w Window, now time.Time) bool {
	if g.Has(w.Span) {
		for i := range g.Windows {
			o := &g.Windows[i]
			bothTimeless := o.Flags.Has(Timeless) && w.Flags.Has(Timeless)
			if o.Span == w.Span && bothTimeless && w.End-w.Start > o.End-o.Start {
				*o = w
			}
		}
		return false
	}
	g.noteSpan(w.Span)
	if g.Windows == nil {
		g.Windows = g.one[:0]
		if g.expected() > 1 {
			g.Windows = make([]Window, 0, g.expected())
		}
	}
	g.Windows = append(g.Windows, w)
	if w.Kind == Function {
		g.functions++
	}
	g.extendBounds(w.Start, w.End, w.Flags)
	r.noteTime(w.Name, w.End, w.Flags)
	r.bytes += windowBytes
	r.touch(g, now)
	return true
}

// Main returns the window that the breakdown of the group is about; false: no window has a length. In this order: the longest training step, steps with times
// of their own and with parts first; the longest pass; the longest other window; all functions together, as one window; without functions, a Timeless training
// step.
func (g *Group) Main() (w Window, ok bool) {
	withParts := g.windowsWithParts()
	for i := range g.Windows {
		c := &g.Windows[i]
		if c.Flags.Has(Timeless|Point) || c.Kind == Function || c.End <= c.Start { // functions: below
			continue
		}
		if !ok || hasPrecedence(c, &w, withParts) {
			w, ok = *c, true
		}
	}
	if !ok && g.functions == 0 {
		return g.longestTimeless()
	}
	if ok || g.functions == 0 || g.End <= g.Start {
		return w, ok
	}
	w = Window{Kind: Function, Start: math.MaxInt64, Number: -1, Steps: 1, Batch: math.NaN()}
	for i := range g.Windows {
		if c := &g.Windows[i]; c.Kind == Function && !c.Flags.Has(Timeless) {
			w.Start, w.End, ok = min(w.Start, c.Start), max(w.End, c.End), true
			if !(w.Batch >= c.Batch) { // the largest, from NaN on
				w.Batch = c.Batch
			}
			if !g.Promised { // a call alone in a trace: its span is the window
				w.Span = c.Span
			}
		}
	}
	return w, ok
}

// longestTimeless returns the longest training step of a group whose steps have durations but no place in time; false: none.
func (g *Group) longestTimeless() (w Window, ok bool) {
	parted := g.windowsWithParts()
	for i := range g.Windows {
		c := &g.Windows[i]
		if c.Kind == Step && !c.Flags.Has(Point) && c.End-c.Start > 1 && (!ok || hasPrecedence(c, &w, parted)) { // 1 ns represents no length
			w, ok = *c, true
		}
	}
	return w, ok
}

// windowsWithParts returns the spans of the windows that have parts; nil: the group has fewer than two windows, so there is no choice.
func (g *Group) windowsWithParts() map[pcommon.SpanID]struct{} {
	if len(g.Windows) < 2 || len(g.Own) == 0 {
		return nil
	}
	of := map[pcommon.SpanID]struct{}{}
	for i := range g.Own {
		if parent := g.Own[i].Parent; !parent.IsEmpty() {
			of[parent] = struct{}{}
		}
	}
	return of
}

// hasPrecedence orders the windows of a group for Main: by kind, steps first; within a kind, windows with times of their own (not Typical) first, then windows
// with parts, then the longest.
func hasPrecedence(a, b *Window, parted map[pcommon.SpanID]struct{}) bool {
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	if typical := a.Flags.Has(Typical); typical != b.Flags.Has(Typical) {
		return !typical
	}
	_, aParted := parted[a.Span]
	if _, bParted := parted[b.Span]; aParted != bParted {
		return aParted
	}
	if a.End-a.Start != b.End-b.Start {
		return a.End-a.Start > b.End-b.Start
	}
	return slices.Compare(a.Span[:], b.Span[:]) < 0
}
