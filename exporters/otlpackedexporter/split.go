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
	count() int
	part(from, to int) M // a copy
	join(M) M            // the receiver followed by the next message
	trim() (M, bool)     // a copy of a one-item message with its longest texts cut; false: nothing left to cut
}

// sendAll sends a request and, if it is too large for the server, its parts: limits differ (4 MiB by default), and only the server knows its own limit. rest is
// the unaccepted data when an error ends sendAll.
func sendAll[M message[M]](ctx context.Context, m M, send func(M) (int64, string, error), trimmed func()) (rest M, partial *refusal.Partial, err error) {
	todo := []M{m}
	again := false // the first was trimmed, and not by enough
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
		case !refusal.TooLarge(err) || ctx.Err() != nil:
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

type spans struct{ ptrace.Traces }

func spansOf(td ptrace.Traces) spans { return spans{td} }

func (s spans) count() int { return s.SpanCount() }

func (s spans) part(from, to int) spans {
	out := ptrace.NewTraces()
	at := 0
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

// Each attempt cuts texts to a quarter, but not below shortest.
const shortest = 64

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

func longestText(m pcommon.Map) (n int) {
	for _, v := range m.All() {
		n = max(n, len(text(v)))
	}
	return n
}

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

func cutTexts(m pcommon.Map, most int) {
	for _, v := range m.All() {
		if t := text(v); len(t) > most {
			v.SetStr(strings.ToValidUTF8(t[:most], "")) // a rune may be cut in two
		}
	}
}

type points struct{ pmetric.Metrics }

func pointsOf(md pmetric.Metrics) points { return points{md} }

// Metrics are not cut.
func (p points) count() int { return p.MetricCount() }

func (p points) part(from, to int) points {
	out := pmetric.NewMetrics()
	at := 0
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

func (p points) trim() (points, bool) { return p, false }
