package bridge

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// Span is an OpenTelemetry span started by a helper, which adds attributes at its end. It must be ended once, by End or EndErr, in any goroutine; later calls
// do nothing.
type Span struct {
	trace.Span
	kind  kind
	up    *Span // the enclosing helper's span; nil: none
	ended atomic.Bool
	// The contexts before the span and inside of the span.
	outer, inner context.Context
	start        time.Time              // zero: not recorded
	endAt        [1]trace.SpanEndOption // saves End the allocation of a slice

	stages *stages // the stages of this function, or of the enclosing function of this stage
	stage  int     // the index of this stage in stages
	name   string  // the name of this function

	// The variables of DataSize and MessageSizes, whose values are read at the end.
	sizes             uint8 // 0: none; 1: request, by DataSize; 2: both, by MessageSizes
	request, response *int64
}

// kind is the kind of a helper's span.
type kind uint8

const (
	kindFunction kind = iota
	kindStage
	kindClient
	kindStep
	kindRPC
	kindPhase
)

type spanKey struct{}

// helperIn returns the innermost helper's span of a context, nil if none.
func helperIn(ctx context.Context) *Span {
	s, _ := ctx.Value(spanKey{}).(*Span)
	return s
}

var (
	clientSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	timeLogged = attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)) // both ends are measured
)

// is has the first attribute of each kind of span, which names the kind.
var is = [...]attribute.KeyValue{
	kindFunction: attribute.String(spans.AttrKind, spans.KindFunction),
	kindStage:    attribute.String(spans.AttrKind, spans.KindStage),
	kindClient:   attribute.String(spans.AttrKind, spans.KindStage),
	kindStep:     attribute.String(spans.AttrKind, spans.KindStep),
	kindRPC:      attribute.String(spans.AttrKind, spans.KindCall),
	kindPhase:    attribute.String(spans.AttrKind, spans.KindCallPart),
}

// begin starts a span of a kind and returns the context inside it. j, if any, is the trace that a root joins.
//
// The parent is the current span, as everywhere in OpenTelemetry, but an ended helper's span takes no more children. A stage is always directly below its
// function, even an ended function, and a phase below its call.
func (b *Bridge) begin(ctx context.Context, k kind, name string, j *join, options ...trace.SpanStartOption) (context.Context, *Span) {
	b = b.orOff()
	outer := withoutEnded(ctx)
	s := &Span{kind: k, up: helperIn(outer), outer: outer}
	inner := outer
	if owner := ownerIn(ctx, k); owner != nil { // in ctx, not outer: a stage may begin after the end of its function
		s.up = owner
		if !owner.isCurrent(outer) {
			inner = trace.ContextWithSpan(outer, owner.Span)
		}
	}
	if j != nil {
		inner = context.WithValue(inner, joinKey{}, j)
	}
	inner, s.Span = b.tracer.Start(inner, name, options...)
	if recorded, ok := s.Span.(sdktrace.ReadOnlySpan); ok {
		s.start = recorded.StartTime()
	}
	s.inner = context.WithValue(inner, spanKey{}, s)
	return s.inner, s
}

// withoutEnded removes ended helpers' spans from a context: successive helpers in one scope (ctx, s = …) are siblings. Values added by the caller since then
// stay, and so does the caller's own span.
func withoutEnded(ctx context.Context) context.Context {
	for s := helperIn(ctx); s != nil && s.ended.Load() && s.isCurrent(ctx); s = helperIn(s.outer) {
		if ctx == s.inner { // the caller added nothing
			ctx = s.outer //nolint:fatcontext // which keeps the contexts of a long loop from growing by every turn
			continue
		}
		ctx = context.WithValue(trace.ContextWithSpan(ctx, trace.SpanFromContext(s.outer)), spanKey{}, helperIn(s.outer))
	}
	return ctx
}

// isCurrent reports whether s is the current span of a context.
func (s *Span) isCurrent(ctx context.Context) bool {
	return trace.SpanContextFromContext(ctx).SpanID() == s.SpanContext().SpanID()
}

// ownerIn returns the required direct parent of a span of kind k, nil for the current span.
func ownerIn(ctx context.Context, k kind) *Span {
	switch k {
	case kindStage:
		return helperIn(ctx).innermost(kindFunction, trace.SpanContextFromContext(ctx).TraceID())
	case kindPhase:
		return helperIn(ctx).innermost(kindRPC, trace.SpanContextFromContext(ctx).TraceID())
	}
	return nil
}

// innermost returns the innermost running span of a kind among s and its enclosing spans, else the innermost ended one, because a stage may begin in a
// goroutine after the end of its function; nil: none. Only spans of trace id count: the caller may have put a span of another trace into the context since.
func (s *Span) innermost(k kind, id trace.TraceID) (found *Span) {
	for ; s != nil; s = s.up {
		if s.kind != k || s.SpanContext().TraceID() != id {
			continue
		}
		if !s.ended.Load() {
			return s
		}
		if found == nil {
			found = s
		}
	}
	return found
}

// set adds the attributes of a helper, then the caller's, which take precedence.
func (s *Span) set(callers []attribute.KeyValue, own ...attribute.KeyValue) {
	if s.start.IsZero() {
		return
	}
	s.SetAttributes(own...)
	if len(callers) > 0 {
		s.SetAttributes(callers...)
	}
}

// DataSize sets the variable for the number of bytes that a TransferQueue client operation moves: at its end the span gets tq.data.size and, with the duration,
// tq.throughput. A negative number is unknown.
//
//	ctx, s := b.StartClientGet(ctx)
//	defer s.DataSize(&n).End()
func (s *Span) DataSize(n *int64) *Span {
	s.sizes, s.request = 1, n
	return s
}

// MessageSizes sets the variables for the sizes of an RPC's request and response, in bytes: at its end the span gets zeromq.request.size, zeromq.response.size
// and, with the duration, zeromq.throughput. A negative number is unknown: a failed call then has no throughput.
func (s *Span) MessageSizes(request, response *int64) *Span {
	s.sizes, s.request, s.response = 2, request, response
	return s
}

// End ends the span. Deferred in a function that panics, it records the panic (event exception, status Error) and lets it continue.
func (s *Span) End(options ...trace.SpanEndOption) {
	if r := recover(); r != nil {
		defer panic(r)
		s.panicked(r, options)
	}
	s.end(options)
}

// EndErr ends the span like End. If *err is not nil then, the span's status is Error and the error is recorded.
//
//	ctx, s := b.StartRPC(ctx, "zeromq", "Matmul")
//	defer s.EndErr(&err)
func (s *Span) EndErr(err *error) {
	if r := recover(); r != nil {
		defer panic(r)
		s.panicked(r, nil)
	} else if err != nil && *err != nil && s.IsRecording() {
		text := spans.Text(fmt.Sprint(*err)) // which survives an Error method that panics, as of a nil pointer
		s.exception(*err, text)
		s.SetStatus(codes.Error, text)
	}
	s.end(nil)
}

// panicked records a recovered panic as an exception and an error, with the stack where the caller's options ask for one.
func (s *Span) panicked(r any, options []trace.SpanEndOption) {
	if !s.IsRecording() {
		return
	}
	text, stack := spans.Text(fmt.Sprint(r)), []attribute.KeyValue(nil)
	if cfg := trace.NewSpanEndConfig(options...); cfg.StackTrace() {
		stack = append(stack, attribute.String("exception.stacktrace", spans.Text(debug.Stack())))
	}
	s.exception(r, text, stack...)
	s.SetStatus(codes.Error, "panic: "+text)
}

// exception adds semconv's event for errors. RecordError would keep the whole text.
func (s *Span) exception(of any, text string, attrs ...attribute.KeyValue) {
	attrs = append(attrs, attribute.String("exception.type", fmt.Sprintf("%T", of)), attribute.String("exception.message", text))
	s.AddEvent("exception", trace.WithAttributes(attrs...))
}

// end adds the attributes that are known at the end (the shares of a function, sizes, throughput) and ends the SDK's span, at the time of the options if they
// have one. A stage tells its function when it ended.
func (s *Span) end(options []trace.SpanEndOption) {
	if s.ended.Swap(true) {
		return
	}
	if s.start.IsZero() {
		s.Span.End(options...)
		return
	}
	end := s.start.Add(time.Since(s.start)) // the monotonic clock, as the SDK's End
	if len(options) > 0 {
		if cfg := trace.NewSpanEndConfig(options...); !cfg.Timestamp().IsZero() {
			end = cfg.Timestamp()
		}
	}
	ns := end.UnixNano() - s.start.UnixNano() // as exported
	switch {
	case s.kind == kindFunction:
		if shares, ok := s.stages.shares(s.start.UnixNano(), end.UnixNano()); ok {
			attrs := make([]attribute.KeyValue, len(shares))
			for i, x := range shares {
				attrs[i] = attribute.Float64(shareNames[i], x)
			}
			s.SetAttributes(attrs...)
		}
	case s.kind == kindStage && s.stages != nil:
		s.stages.end(s.stage, end.UnixNano())
	}
	if s.sizes > 0 {
		s.putSizes(ns)
	}
	s.endAt[0] = trace.WithTimestamp(end)
	if len(options) == 0 {
		s.Span.End(s.endAt[:]...)
		return
	}
	s.Span.End(slices.Concat(options, s.endAt[:])...)
}

// putSizes writes the known sizes of the data that a client operation or an RPC moved and, if all are known, the throughput over the span's duration, in bytes
// a second.
func (s *Span) putSizes(ns int64) {
	var attrs [3]attribute.KeyValue
	put, sum, all := attrs[:0], 0.0, true
	add := func(key string, n *int64) {
		switch {
		case n == nil: // a call may have no response, or no variable for its size
		case *n < 0:
			all = false
		default:
			put = append(put, attribute.Int64(key, *n))
			sum += float64(*n)
		}
	}
	throughput := spans.AttrTQThroughput
	if s.sizes == 1 {
		add(spans.AttrTQDataSize, s.request)
	} else {
		throughput = spans.AttrZMQThroughput
		add(spans.AttrZMQRequestSize, s.request)
		add(spans.AttrZMQResponseSize, s.response)
	}
	if len(put) > 0 && all && ns > 0 {
		put = append(put, attribute.Float64(throughput, sum/(float64(ns)/1e9)))
	}
	s.SetAttributes(put...)
}
