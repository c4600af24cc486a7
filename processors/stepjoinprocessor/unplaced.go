package stepjoinprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// Tables of RPCs have no clock. An id ties a pass to a step, and nothing ties the pass to a time. In the step's trace a pass would be at the time of the file,
// and the step's page would be mostly blank. Spans pass at once, before the step's time is known: a pass goes to a trace of its own, by a rule on the resource
// alone. Once the step is complete, a copy of the pass is drawn within the step. See docs/reference/adr/0018.

// clockless reports whether a resource is a table of RPCs with ids and without a clock. For any resource of RPCs, r.res is read.
func (r *reader) clockless(attrs pcommon.Map) bool {
	if _, ok := attrs.Get(spans.AttrRPCSystem); !ok {
		return false
	}
	r.res.Read(attrs)
	return r.res.RPCSystem == spans.RPCSystemZeroMQ && r.res.JoinBy == spans.JoinByID &&
		(r.res.TimeSource == spans.TimeSynthetic || r.res.TimeSource == spans.TimeObserved)
}

// moveToOwnTrace moves a span of a pass from the trace of the id to the own trace of the pass. Consecutive spans mostly share a trace, so the last pair of ids
// is cached.
func (r *reader) moveToOwnTrace(span ptrace.Span) {
	if r.trace != r.unplacedTrace {
		r.unplacedTrace, r.ownTrace = r.trace, spans.ClocklessTraceID(r.trace)
	}
	span.SetTraceID(r.ownTrace)
}

// makeRoot makes the first span of a pass the root of the own trace of the pass, with a link to the trace of the id. It returns the fact for the copy that will
// be drawn in the trace of the id.
func (r *reader) makeRoot(span ptrace.Span, f *fact) facts.Unplaced {
	parent := span.ParentSpanID()
	link := span.Links().AppendEmpty()
	link.SetTraceID(r.trace)
	link.SetSpanID(parent)
	if parent.IsEmpty() { // the trace of the id will have a root of ours
		link.SetSpanID(spans.RootID(r.trace))
	}
	span.SetParentSpanID(pcommon.SpanID{})
	l, number := &f.leaf, int64(-1) // no pass number
	if f.isWindow {
		number = f.window.Number
	}
	return facts.Unplaced{
		Span: span.SpanID(), Parent: parent, Start: l.Start, End: l.End, Number: number, Name: l.Name, Observed: l.Flags.Has(facts.Observed),
	}
}

// keepSlowCall records a call of a pass without a clock for drawing, if the receiver ranked the call among the Config.Slowest slowest of the pass (1 is the
// slowest) and the pass is not drawn yet.
func (r *reader) keepSlowCall(span ptrace.Span) {
	rank, ok := span.Attributes().Get(spans.AttrZMQCallSlowest)
	if !ok || rank.Int() > int64(r.p.cfg.Slowest) {
		return
	}
	g := r.run.Groups[r.trace]
	if g == nil || len(g.Unplaced) >= mostKept {
		return
	}
	if g.Closed && !g.AwaitsDrawing(span.ParentSpanID()) { // the pass was drawn without the call
		return
	}
	u := facts.Unplaced{
		Span: span.SpanID(), Parent: span.ParentSpanID(), Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), Number: -1,
		Name: r.run.Number(span.Name()), Call: true,
	}
	r.run.AddUnplaced(g, u)
	r.write(factCall, 0, func(b []byte) []byte { return r.run.AppendUnplaced(append(b, r.trace[:]...), &u) })
}

// mostKept bounds the passes and calls kept of a trace. With more than MostUnplaced passes no call is drawn.
const mostKept = 4 * facts.MostUnplaced

// rooted reports whether the trace of a group has, or gets, a root of ours: promised to spans of the trace, or needed as the parent of a pass without a parent.
func rooted(g *facts.Group) bool {
	if g.Promised {
		return true
	}
	for i := range g.Unplaced {
		if u := &g.Unplaced[i]; !u.Call && u.Parent.IsEmpty() {
			return true
		}
	}
	return false
}

// addRootAndUnplaced adds the root of a group, if not made before, and copies of the passes without a clock. w is the main window of the group, if hasWindow;
// placed: some part of the group has a clock.
func (d *deriver) addRootAndUnplaced(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, hasWindow, placed bool) {
	if rooted(g) && !d.p.ledger.has(g.ID, pcommon.SpanID{}) {
		d.addRoot(out, res, g, w, hasWindow)
		d.p.ledger.note(g.ID, pcommon.SpanID{})
	}
	if len(g.Unplaced) > 0 {
		d.addUnplaced(out, res, r, g, w, hasWindow, placed)
	}
}

// deriveLate adds copies of passes that were read after the group was closed.
func (d *deriver) deriveLate(out *spans.Batch, r *facts.Run, g *facts.Group) {
	w, hasWindow := g.Main()
	d.addRootAndUnplaced(out, spans.Resource{Service: g.Service, RunID: r.ID}, r, g, &w, hasWindow, g.End != 0)
}

// addUnplaced draws the passes without a clock within the main window of their group, or within the group: each with its slowest calls, or, for more than
// MostUnplaced passes, one aggregate span per name. If no part of the group has a clock (not placed), the passes keep their own times. Copies that the ledger
// knows are not made again.
func (d *deriver) addUnplaced(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, hasWindow, placed bool) {
	top, own := d.topSpan(g, w, hasWindow), spans.ClocklessTraceID(g.ID)
	start, end := g.Start, g.End
	if hasWindow {
		start, end = w.Start, w.End
	}
	d.joined = d.joined[:0]
	many := g.Passes() > facts.MostUnplaced
	g.LayOut(start, end, func(u *facts.Unplaced, at int64) {
		source := spans.TimeSynthetic
		if !placed {
			at = u.Start
			if u.Observed {
				source = spans.TimeObserved
			}
		}
		u.Drawn = true
		if many {
			d.joined = append(d.joined, joined{&facts.Leaf{
				Trace: own, Span: u.Span, Start: u.Start, End: u.End, Name: u.Name, LateRank: -1, Kind: breakdown.RPCUnattributed,
			}, spans.JoinByID, at})
			return
		}
		id := copyID(g.ID, own, u.Span)
		if d.p.ledger.has(g.ID, id) {
			return
		}
		d.p.ledger.note(g.ID, id)
		parent := top
		if !u.Parent.IsEmpty() { // the log names it
			parent = u.Parent
		}
		s := d.addCopy(out, res, g.ID, parent, r.Text(u.Name), at, at+u.End-u.Start, own, u.Span, spans.JoinByID, source)
		if u.Number >= 0 {
			s.Attributes().PutInt(spans.AttrZMQPass, u.Number)
		}
		for i := range g.Unplaced {
			if c := &g.Unplaced[i]; c.Call && c.Parent == u.Span {
				from := at + c.Start - u.Start
				d.addCopy(out, res, g.ID, id, r.Text(c.Name), from, from+c.End-c.Start, own, c.Span, spans.JoinByID, source)
			}
		}
	})
	if id := copyID(g.ID, own, pcommon.SpanID{}); many && !d.p.ledger.has(g.ID, id) {
		d.p.ledger.note(g.ID, id)
		d.addAggregates(out, res, r, w, g, top)
	}
}
