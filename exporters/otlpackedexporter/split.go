package otlpackedexporter

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/refusal"
	vocabulary "github.com/trainbridge/trainbridge/spans"
)

// message is a request that can be split.
type message[M any] interface {
	count() int          // items
	part(from, to int) M // a copy of the items from to to-1
	join(M) M            // a copy of the receiver followed by another message
	trim() (M, bool)     // a copy of a one-item message with less in it (events, links, the longest texts); false: nothing left to cut
}

// sendAll sends a request and, if it is too large for the server, its halves, quarters and so on: limits differ (4 MiB by default), and only the server knows
// the limit. A single item that is too large is trimmed, and trimmed is called once for the item. partial is the server's first message
// about accepted requests, and the number of items rejected of all; nil: no message. When an error ends sendAll, rest is the data not accepted yet; without an
// error, rest means nothing.
func sendAll[M message[M]](ctx context.Context, m M, send func(M) (int64, string, error), trimmed func()) (rest M, partial *refusal.Partial, err error) {
	todo := []M{m} // in order
	again := false // the first was trimmed before, and not by enough
	for len(todo) > 0 {
		first := todo[0]
		n, text, err := send(first)
		switch {
		case err == nil:
			todo, again = todo[1:], false
			if n > 0 || text != "" {
				if partial == nil {
					partial = &refusal.Partial{Message: text}
				}
				partial.Rejected += n
			}
			continue
		case !refusal.TooLarge(err) || ctx.Err() != nil: // the error ends sendAll
		case first.count() > 1:
			mid := first.count() / 2
			todo = append([]M{first.part(0, mid), first.part(mid, first.count())}, todo[1:]...)
			continue
		default:
			if cut, ok := first.trim(); ok {
				if !again {
					trimmed()
				}
				todo[0], again = cut, true
				continue
			}
		}
		rest = first
		for _, o := range todo[1:] {
			rest = rest.join(o)
		}
		return rest, partial, err
	}
	return m, partial, nil
}

// spans is a message of spans.
type spans struct{ ptrace.Traces }

func spansOf(td ptrace.Traces) spans { return spans{td} }

func (s spans) count() int { return s.SpanCount() }

// part counts spans over all resources and scopes; resources and scopes with a span in the part are copied too.
func (s spans) part(from, to int) spans {
	out := ptrace.NewTraces()
	at := 0 // spans before the current scope
	for _, rs := range s.ResourceSpans().All() {
		var ors ptrace.ResourceSpans
		begun := false
		for _, ss := range rs.ScopeSpans().All() {
			first, last := max(from-at, 0), min(to-at, ss.Spans().Len())
			at += ss.Spans().Len()
			if first >= last {
				continue
			}
			if !begun {
				begun = true
				ors = out.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(ors.Resource())
				ors.SetSchemaUrl(rs.SchemaUrl())
			}
			oss := ors.ScopeSpans().AppendEmpty()
			ss.Scope().CopyTo(oss.Scope())
			oss.SetSchemaUrl(ss.SchemaUrl())
			oss.Spans().EnsureCapacity(last - first)
			for i := first; i < last; i++ {
				ss.Spans().At(i).CopyTo(oss.Spans().AppendEmpty())
			}
		}
	}
	return spans{out}
}

func (s spans) join(o spans) spans {
	out := s.part(0, s.count()) // the original may be shared with others
	o.part(0, o.count()).ResourceSpans().MoveAndAppendTo(out.ResourceSpans())
	return out
}

// shortest is the length that texts are not cut below, in bytes.
const shortest = 64

// trim takes events and links away; without any, it cuts texts to a quarter of the longest, but not below shortest. How many bytes of texts were cut so far is
// noted on the span.
func (s spans) trim() (spans, bool) {
	out := s.part(0, 1)
	rs := out.ResourceSpans().At(0)
	span := rs.ScopeSpans().At(0).Spans().At(0)
	before := textBytes(rs.Resource().Attributes()) + textBytes(span.Attributes())
	longest := max(longestText(rs.Resource().Attributes()), longestText(span.Attributes()))
	switch {
	case span.Events().Len()+span.Links().Len() > 0:
		span.Events().RemoveIf(func(ptrace.SpanEvent) bool { return true })
		span.Links().RemoveIf(func(ptrace.SpanLink) bool { return true })
	case longest > shortest:
		cutTexts(rs.Resource().Attributes(), max(shortest, longest/4))
		cutTexts(span.Attributes(), max(shortest, longest/4))
	default:
		return s, false
	}
	cut := before - textBytes(rs.Resource().Attributes()) - textBytes(span.Attributes())
	if v, ok := span.Attributes().Get(vocabulary.AttrTrimmed); ok {
		cut += int(v.Int())
	}
	span.Attributes().PutInt(vocabulary.AttrTrimmed, int64(cut))
	return out, true
}

// longestText is the length of the longest text in attributes.
func longestText(m pcommon.Map) (n int) {
	for _, v := range m.All() {
		n = max(n, len(text(v)))
	}
	return n
}

// textBytes is the length of all texts in attributes.
func textBytes(m pcommon.Map) (n int) {
	for _, v := range m.All() {
		n += len(text(v))
	}
	return n
}

// text is the part of a value that can be cut: bytes, maps and lists become texts for the purpose.
func text(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes, pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		return v.AsString()
	}
	return ""
}

// cutTexts cuts texts in attributes to a number of bytes.
func cutTexts(m pcommon.Map, most int) {
	for _, v := range m.All() {
		if t := text(v); len(t) > most {
			v.SetStr(strings.ToValidUTF8(t[:most], "")) // a rune may be cut in two
		}
	}
}

// points is a message of metrics.
type points struct{ pmetric.Metrics }

func pointsOf(md pmetric.Metrics) points { return points{md} }

// count is the number of metrics: a metric with all its points stays whole.
func (p points) count() int { return p.MetricCount() }

// part is as part of spans, with metrics counted over all resources and scopes.
func (p points) part(from, to int) points {
	out := pmetric.NewMetrics()
	at := 0 // metrics before the current scope
	for _, rm := range p.ResourceMetrics().All() {
		var orm pmetric.ResourceMetrics
		begun := false
		for _, sm := range rm.ScopeMetrics().All() {
			first, last := max(from-at, 0), min(to-at, sm.Metrics().Len())
			at += sm.Metrics().Len()
			if first >= last {
				continue
			}
			if !begun {
				begun = true
				orm = out.ResourceMetrics().AppendEmpty()
				rm.Resource().CopyTo(orm.Resource())
				orm.SetSchemaUrl(rm.SchemaUrl())
			}
			osm := orm.ScopeMetrics().AppendEmpty()
			sm.Scope().CopyTo(osm.Scope())
			osm.SetSchemaUrl(sm.SchemaUrl())
			for i := first; i < last; i++ {
				sm.Metrics().At(i).CopyTo(osm.Metrics().AppendEmpty())
			}
		}
	}
	return points{out}
}

func (p points) join(o points) points {
	out := p.part(0, p.count())
	o.part(0, o.count()).ResourceMetrics().MoveAndAppendTo(out.ResourceMetrics())
	return out
}

// trim cuts nothing: labels without their ends would be other series.
func (p points) trim() (points, bool) { return p, false }
