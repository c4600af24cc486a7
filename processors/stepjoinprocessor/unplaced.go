package stepjoinprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
	"github.com/trainbridge/trainbridge/spans"
)

// Tables of RPCs have no clock. A pass whose rows carry an id is known to belong to a step, and not known to have a time: in the step's trace it would lie where
// its file was read or written, and the page of a step would be blank for the most part. Spans pass at once, when the step's time is not known yet. So these go to
// a trace of their own, by a rule that needs nothing but the span; when the step is over, a copy is drawn within it. See docs/adr/0018.

// clockless says whether spans of a resource are of such a table, and carry an id. It reads the resource then.
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

// lead makes the first span of a pass the root of its trace, with a link to where the id belongs, and returns what is drawn there.
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

// slowest keeps a call that its receiver ranked among the slowest of its pass.
func (r *reader) slowest(span ptrace.Span) {
	rank, ok := span.Attributes().Get(spans.AttrZMQCallSlowest)
	g := r.run.Groups[r.trace]
	if !ok || rank.Int() > int64(r.p.cfg.Slowest) || g == nil || g.Closed || len(g.Unplaced) >= mostKept {
		return
	}
	r.run.AddUnplaced(g, facts.Unplaced{
		Span: span.SpanID(), Parent: span.ParentSpanID(), Start: int64(span.StartTimestamp()), End: int64(span.EndTimestamp()), Number: -1,
		Name: r.run.Number(span.Name()), Call: true,
	})
}

// mostKept bounds what is kept of calls. With more passes in a trace they are not drawn.
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

// head adds the root of a group, and what is drawn below it without a clock. placed: something of the group has one.
func (d *deriver) head(out *spans.Batch, res spans.Resource, r *facts.Run, g *facts.Group, w *facts.Window, ok, placed bool) {
	if rooted(g) && !d.p.told.has(g.ID, pcommon.SpanID{}) {
		d.root(out, res, g, w, ok)
		d.p.told.note(g.ID, pcommon.SpanID{})
	}
	if len(g.Unplaced) > 0 {
		d.unplaced(out, res, r, g, w, ok, placed)
	}
}

// late adds what came without a clock since the group was closed.
func (d *deriver) late(out *spans.Batch, r *facts.Run, g *facts.Group) {
	w, ok := g.Main()
	d.head(out, spans.Resource{Service: g.Service, RunID: r.ID}, r, g, &w, ok, g.End != 0)
}

// unplaced draws passes within the window of their group, each by itself, or as one where they are many.
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
			if at = u.Start; u.Observed {
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
		s := d.tell(out, res, g.ID, parent, r.Text(u.Name), at, at+u.End-u.Start, own, u.Span, spans.JoinByID, source)
		if u.Number >= 0 {
			s.Attributes().PutInt(spans.AttrZMQPass, u.Number)
		}
		for i := range g.Unplaced {
			if c := &g.Unplaced[i]; c.Call && c.Parent == u.Span {
				from := at + c.Start - u.Start
				d.tell(out, res, g.ID, id, r.Text(c.Name), from, from+c.End-c.Start, own, c.Span, spans.JoinByID, source)
			}
		}
	})
	if id := copyID(g.ID, own, pcommon.SpanID{}); many && !d.p.told.has(g.ID, id) {
		d.p.told.note(g.ID, id)
		d.aggregates(out, res, r, w, g, top)
	}
}
