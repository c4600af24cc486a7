package perfetto

import (
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// The bounds of a span's output.
const (
	maxAttributes = 24
	maxElements   = 16 // of a list
	maxLinks      = 8
)

// Writer writes a trace. Its methods may be called by several goroutines.
type Writer struct {
	mu sync.Mutex
	packets
	tracks tracks
	// Of the message at hand; kept for their memory.
	sources []source // of each resource
	items   []item   // of each span
	label   []byte   // of a counter
}

// item is a span and its track.
type item struct {
	span       ptrace.Span
	source     int32 // the index of its resource in Writer.sources
	kind       view.Kind
	start, end int64 // ns since the Unix epoch; end is not before start
	track      *track
}

// New begins a trace, written to out in blocks of some ten KB. Close ends the trace.
func New(out io.Writer) *Writer {
	w := new(Writer)
	w.begins(out)
	w.tracks.init(&w.packets)
	return w
}

// Close writes the rest. It returns the first error of New's writer, and does not close the writer.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	return w.err
}

// ConsumeTraces writes spans: each is a slice, its verdicts and other events are instants.
func (w *Writer) ConsumeTraces(_ context.Context, td ptrace.Traces) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collect(td)
	// By start, the longer first: a lane takes slices in the order of their begin, a parent before its children (track.place). Of spans with the same start and
	// end, the first in the message is the parent.
	slices.SortStableFunc(w.items, func(a, b item) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	for i := range w.items {
		w.write(&w.items[i])
	}
	clear(w.items) // the spans are not ours any more
	w.items = w.items[:0]
	return w.err
}

// collect makes the items of all spans of a message, and finds their tracks. Within a message a parent comes before its children, whose track may be that of
// the parent.
func (w *Writer) collect(td ptrace.Traces) {
	w.sources = w.sources[:0]
	for _, rs := range td.ResourceSpans().All() {
		w.sources = append(w.sources, source{})
		s := &w.sources[len(w.sources)-1]
		s.read(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				start, end := nanos(span.StartTimestamp()), nanos(span.EndTimestamp())
				kind := view.KindOf(span)
				w.items = append(w.items, item{span, int32(len(w.sources) - 1), kind, start, max(start, end), w.tracks.of(span, kind, s)})
			}
		}
	}
}

// write writes a span: the begin and end of a slice on a lane of its track, an instant if it tells news of a clock, and its events.
func (w *Writer) write(it *item) {
	span, s := it.span, &w.sources[it.source]
	uuid := w.tracks.lane(it.track, span.SpanID(), span.ParentSpanID(), it.start, it.end)
	w.beginAt(it.start)
	at := w.event(typeBegin, uuid)
	w.name(span.Name())
	w.category(cmp.Or(it.kind.String(), "span"))
	w.flows(it)
	clock := w.describe(it, s)
	w.raw = shut(w.raw, at)
	w.end()
	w.beginAt(it.end)
	w.raw = shut(w.raw, w.event(typeEnd, uuid))
	w.end()
	if clock.known {
		w.clock(it, s, clock)
	}
	for _, e := range span.Events().All() {
		w.instant(it, s, e)
	}
}

// flows gives the slice the ids of its flows, which Perfetto draws as arrows between the slices with the same id: the ranks to their collective, the server's
// work to the client's wait, a span to its links. The id of a flow is the hash of the span that the arrow leads from (flowOf).
func (w *Writer) flows(it *item) {
	span := it.span
	if leads(it) {
		w.flow(flowOf(span.TraceID(), span.SpanID()))
	}
	if it.kind == view.KindRank || it.kind == view.KindCallPart && span.Name() == spans.SpanRPCServer {
		w.flow(flowOf(span.TraceID(), span.ParentSpanID()))
	}
	links := span.Links()
	for i := range min(links.Len(), maxLinks) {
		w.flow(flowOf(links.At(i).TraceID(), links.At(i).SpanID()))
	}
}

// leads says whether the slice of a span gets a flow of its own, to which other slices or the span's events may refer. A flow id costs 9 bytes that cannot be
// deflated: most spans below calls and ranks have none.
func leads(it *item) bool {
	switch it.kind {
	case view.KindCollective, view.KindFunction, view.KindStep, view.KindPass, view.KindSession, view.KindCalls, view.KindCall, view.KindRoot:
		return true
	case view.KindStage:
		return it.span.ParentSpanID().IsEmpty() || it.span.Events().Len() > 0
	case view.KindCallPart:
		return it.span.Name() == spans.SpanRPCReceive
	}
	return it.span.Events().Len() > 0
}

// flowOf is the id of the flow from a span. Ids of traces and spans are hashes already, so that XOR is enough.
func flowOf(trace pcommon.TraceID, id pcommon.SpanID) uint64 {
	return binary.LittleEndian.Uint64(trace[:8]) ^ binary.LittleEndian.Uint64(trace[8:]) ^ binary.LittleEndian.Uint64(id[:])
}

// describe writes the attributes of a span, and its trace id at the beginning of a trace or for a search. Beyond maxAttributes, attributes are only counted.
// The result is the span's statement about a clock, known only if the span is a rank's with a finite offset.
func (w *Writer) describe(it *item, s *source) (c clock) {
	switch it.kind {
	case view.KindCollective, view.KindFunction, view.KindStep, view.KindPass, view.KindSession, view.KindCalls, view.KindRoot:
		w.traceID(it.span)
	default:
		if it.span.ParentSpanID().IsEmpty() {
			w.traceID(it.span)
		}
	}
	source, n := s.time, 0 // where times come from: of the span, else of its resource; attributes so far
	for name, v := range it.span.Attributes().All() {
		switch name {
		case spans.AttrKind, spans.AttrSummary: // the category; the other attributes
			continue
		case spans.AttrTimeSource:
			source = spans.ValueText(v)
			continue
		case spans.AttrNCCLClockOffset:
			if x := spans.ValueNumber(v); it.kind == view.KindRank && spans.Finite(x) {
				c.offset, c.known = x, true
			}
		case spans.AttrNCCLClockUncertainty:
			c.uncertainty = spans.ValueNumber(v)
		default:
			// Verdicts are instants of their own.
			if strings.HasPrefix(name, spans.AttrVerdictPrefix) && name != spans.AttrVerdictSeverity {
				continue
			}
		}
		if n++; n <= maxAttributes {
			w.value(name, v)
		}
	}
	if source != "" {
		w.textAnnotation(spans.AttrTimeSource, source)
	}
	if message := it.span.Status().Message(); message != "" {
		w.textAnnotation("status", message)
	}
	if n > maxAttributes {
		at := w.annotation("attributes_left_out")
		w.raw = shut(appendUint(w.raw, annotationInt, uint64(n-maxAttributes)), at)
	}
	return c
}

// traceID writes the trace id of a span as an annotation. Ids seldom come twice, and are not interned.
func (w *Writer) traceID(span ptrace.Span) {
	at := w.annotation("trace_id")
	w.raw = shut(appendText(w.raw, annotationString, span.TraceID().String(), maxText), at)
}

// values writes attributes as annotations, maxAttributes at most.
func (w *Writer) values(attrs pcommon.Map) {
	n := 0
	for name, v := range attrs.All() {
		if n++; n <= maxAttributes {
			w.value(name, v)
		}
	}
}

// value writes an attribute as an annotation. Of a list maxElements are written.
func (w *Writer) value(name string, v pcommon.Value) {
	at := w.annotation(name)
	if v.Type() == pcommon.ValueTypeSlice {
		list := v.Slice()
		for i := range min(list.Len(), maxElements) {
			var inner int
			w.raw, inner = open(w.raw, annotationArray)
			w.scalar(list.At(i))
			w.raw = shut(w.raw, inner)
		}
	} else {
		w.scalar(v)
	}
	w.raw = shut(w.raw, at)
}

// scalar writes the value of an annotation.
func (w *Writer) scalar(v pcommon.Value) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		w.text(v.Str())
	case pcommon.ValueTypeInt:
		w.raw = appendUint(w.raw, annotationInt, uint64(v.Int()))
	case pcommon.ValueTypeDouble:
		w.raw = appendDouble(w.raw, annotationDouble, v.Double())
	case pcommon.ValueTypeBool:
		w.raw = appendUint(w.raw, annotationBool, protowire.EncodeBool(v.Bool()))
	default:
		w.text(v.AsString())
	}
}

// instant writes an event of a span: a verdict on the track of verdicts, others on the track of events. An arrow leads from the span to the event.
func (w *Writer) instant(it *item, s *source, e ptrace.SpanEvent) {
	kind, name := events, e.Name()
	if name == spans.EventVerdict {
		kind = verdicts
		name = cmp.Or(spans.AttrText(e.Attributes(), spans.AttrVerdictName), name)
	}
	var at where
	at.read(it.span.Attributes(), s)
	o := s.owner
	o.host = at.host
	uuid := w.tracks.single(who{process: w.tracks.process(o), what: kind, number: -1})
	w.beginAt(nanos(e.Timestamp()))
	event := w.event(typeInstant, uuid)
	w.name(name)
	w.category(kind.category())
	w.flow(flowOf(it.span.TraceID(), it.span.SpanID()))
	w.values(e.Attributes())
	w.textAnnotation("span", it.span.Name())
	w.traceID(it.span)
	w.raw = shut(w.raw, event)
	w.end()
}

// category is the category of events on a track of verdicts or events.
func (w what) category() string {
	if w == verdicts {
		return "verdict"
	}
	return "event"
}
