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

// clockless says whether a resource is of a table of RPCs, with ids and without a clock, and reads the resource then.
func (r *reader) clockless(attrs pcommon.Map) bool {
	if _, ok := attrs.Get(spans.AttrRPCSystem); !ok {
		return false
	}
	r.res.Read(attrs)
	return r.res.RPCSystem == spans.RPCSystemZeroMQ && r.res.JoinBy == spans.JoinByID &&
		(r.res.TimeSource == spans.TimeSynthetic || r.res.TimeSource == spans.TimeObserved)
}

// move gives a span the trace of its own.
func (r *reader) move(span ptrace.Span) {
	if r.trace != r.of {
		r.of, r.own = r.trace, spans.ClocklessTraceID(r.trace)
	}
	span.SetTraceID(r.own)
}

// lead makes the first span of a pass the root of its trace, with a link to the id's trace, and returns the copy for the latter.
func (r *reader) lead(span ptrace.Span, f *fact) facts.Unplaced {
	parent := span.ParentSpanID()
	link := span.Links().AppendEmpty()
	link.SetTraceID(r.trace)
	if link.SetSpanID(parent); parent.IsEmpty() {
		link.SetSpanID(spans.RootID(r.trace))
	}
	span.SetParentSpanID(pcommon.SpanID{})
	l, number := &f.leaf, int64(-1)
	if f.isWindow {
		number = f.window.Number
	}
	return facts.Unplaced{
		Span: span.SpanID(), Parent: parent, Start: l.Start, End: l.End, Number: number, Name: l.Name, Observed: l.Flags.Has(facts.Observed),
	}
}

// slowest keeps a call ranked by its receiver among the slowest of the pass.
func (r *reader) slowest(span ptrace.Span) {
	rank, ok := span.Attributes().Get(spans.AttrZMQCallSlowest)
	g := r.run.Groups[r.trace]
	if !ok || rank.Int() > int64(r.p.cfg.Slowest) || g == nil || g.Closed && !g.Waits(span.ParentSpanID()) || len(g.Unplaced) >= mostKept {
		return
	}
	u := facts.Unplaced{
		Span: span.SpanID(), Parent: span.ParentSpanID(), Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), Number: -1,
		Name: r.run.Number(span.Name()), Call: true,
	}
	r.run.AddUnplaced(g, u)
	r.write(factCall, 0, func(b []byte) []byte { return r.run.AppendUnplaced(append(b, r.trace[:]...), &u) })
}

// mostKept bounds the calls kept: with more passes in a trace no call is drawn.
const mostKept = 4 * facts.MostUnplaced

// rooted says whether the trace of a group has a root of ours.
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

// head adds the root of a group, and copies of passes below the root. placed: something of the group has a clock.
func (d *deriver) head(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, ok, placed bool) {
	if rooted(g) && !d.p.told.has(g.ID, pcommon.SpanID{}) {
		d.root(out, res, g, w, ok)
		d.p.told.note(g.ID, pcommon.SpanID{})
	}
	if len(g.Unplaced) > 0 {
		d.unplaced(out, res, r, g, w, ok, placed)
	}
}

// late adds copies of passes read after the group was closed.
func (d *deriver) late(out *spans.Batch, r *facts.Run, g *facts.Group) {
	w, ok := g.Main()
	d.head(out, spans.Resource{Service: g.Service, RunID: r.ID}, r, g, &w, ok, g.End != 0)
}

// unplaced draws passes within the window of their group, each by itself, or many as one aggregate.
func (d *deriver) unplaced(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, ok, placed bool) {
	top, own := d.top(g, w, ok), spans.ClocklessTraceID(g.ID)
	start, end := g.Start, g.End
	if ok {
		start, end = w.Start, w.End
	}
	d.joined = d.joined[:0]
	many := g.Passes() > facts.MostUnplaced
	g.Lay(start, end, func(u *facts.Unplaced, at int64) {
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
		if d.p.told.has(g.ID, id) {
			return
		}
		d.p.told.note(g.ID, id)
		parent := top
		if !u.Parent.IsEmpty() {
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
	if id := copyID(g.ID, own, pcommon.SpanID{}); many && !d.p.told.has(g.ID, id) {
		d.p.told.note(g.ID, id)
		d.aggregates(out, res, r, w, g, top)
	}
}
