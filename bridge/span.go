package bridge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// Span is what the helpers start: an OpenTelemetry span that knows what to add at its end. It must be ended once, by End or EndErr; later calls do nothing.
type Span struct {
	trace.Span
	kind   kind
	up     *Span      // the helper's span around it
	parent trace.Span // the current span around it
	// The contexts around it and inside of it.
	outer, inner context.Context
	start        time.Time // zero: not recorded
	ended        atomic.Bool
	endAt        [1]trace.SpanEndOption // so that End allocates no slice

	stages *stages // of a function; of a stage: that of its function
	stage  int     // which of those
	name   string  // of a function

	sizes             uint8 // how many of the next two are there
	request, response *int64
}

// kind is what a helper's span stands for.
type kind uint8

const (
	kindFunction kind = iota
	kindStage
	kindClient
	kindStep
	kindRPC
	kindPhase
)

// owner is the kind that a span of this kind stands directly below, whatever is current.
func (k kind) owner() (owner kind, ok bool) {
	switch k {
	case kindStage:
		return kindFunction, true
	case kindPhase:
		return kindRPC, true
	}
	return 0, false
}

type spanKey struct{}

var (
	clientSpan = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	timeLogged = attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)) // both ends are measured
)

// begin starts a span of a kind and puts it into ctx. j, if any, is what a root joins.
func (b *Bridge) begin(ctx *context.Context, k kind, name string, j *join, options ...trace.SpanStartOption) *Span {
	s := &Span{kind: k, parent: trace.SpanFromContext(*ctx)}
	s.up, _ = (*ctx).Value(spanKey{}).(*Span)
	if s.up != nil && s.up.SpanContext().TraceID() != s.parent.SpanContext().TraceID() {
		s.up = nil // the context has gone on to another trace
	}
	s.outer = s.place(*ctx)
	inner := s.outer
	if j != nil {
		inner = context.WithValue(inner, joinKey{}, j)
	}
	inner, s.Span = b.tracer.Start(inner, name, options...)
	if recorded, ok := s.Span.(sdktrace.ReadOnlySpan); ok {
		s.start = recorded.StartTime()
	}
	s.inner = context.WithValue(inner, spanKey{}, s)
	*ctx = s.inner
	return s
}

// place finds the context to start in, where helpers that follow one another in one scope leave that of the one before. A stage stands below its function then,
// and a span not below one of its own kind that has ended: the steps of a loop are no children of one another.
func (s *Span) place(ctx context.Context) context.Context {
	if owner, ok := s.kind.owner(); ok {
		up := s.enclosing(owner)
		if up == nil || up.SpanContext().SpanID() == s.parent.SpanContext().SpanID() {
			return ctx
		}
		back := s.leftBy(ctx, up)
		s.up, s.parent = up, up.Span
		if back {
			return up.inner
		}
		return trace.ContextWithSpan(ctx, up.Span)
	}
	up := s.enclosing(s.kind)
	if up == nil || !up.ended.Load() {
		return ctx
	}
	back := s.leftBy(ctx, up)
	s.up, s.parent = up.up, up.parent
	if back {
		return up.outer
	}
	return trace.ContextWithSpan(ctx, up.parent)
}

// leftBy says whether ctx is what this span, or helpers inside of it, left behind, with nothing of the caller's own in it. Going back to it keeps the contexts of
// a long loop from growing by every turn.
func (s *Span) leftBy(ctx context.Context, span *Span) bool {
	up := s.up
	if up == nil || ctx != up.inner {
		return false
	}
	for up != span && up.up != nil && up.outer == up.up.inner {
		up = up.up
	}
	return up == span
}

// enclosing finds the innermost helper's span of a kind around this one.
func (s *Span) enclosing(k kind) *Span {
	up := s.up
	for up != nil && up.kind != k {
		up = up.up
	}
	return up
}

// set adds the attributes of a helper, then those of its caller.
func (s *Span) set(callers []attribute.KeyValue, own ...attribute.KeyValue) {
	if s.start.IsZero() {
		return
	}
	s.SetAttributes(own...)
	if len(callers) > 0 {
		s.SetAttributes(callers...)
	}
}

// DataSize says where the number of bytes will stand that a TransferQueue client operation moves: at its end the span gets tq.data.size and, with the duration,
// tq.throughput. A negative number is not known.
//
//	defer b.TQClientGet(&ctx).DataSize(&n).End()
func (s *Span) DataSize(n *int64) *Span {
	s.sizes, s.request = 1, n
	return s
}

// MessageSizes says where the sizes of an RPC's request and response will stand, in bytes: at its end the span gets zeromq.request.size, zeromq.response.size and, with the
// duration, zeromq.throughput. A negative number is not known.
func (s *Span) MessageSizes(request, response *int64) *Span {
	s.sizes, s.request, s.response = 2, request, response
	return s
}

// End ends the span. Called by defer in a function that panics, it notes the panic and lets it go on, as the SDK does.
func (s *Span) End(options ...trace.SpanEndOption) {
	if r := recover(); r != nil {
		defer panic(r)
		s.panicked(r)
	}
	s.end(options)
}

// EndErr ends the span like End. If *err is not nil then, the span's status is Error and the error is recorded.
//
//	defer b.RPC(&ctx, "zeromq", "Matmul").EndErr(&err)
func (s *Span) EndErr(err *error) {
	if r := recover(); r != nil {
		defer panic(r)
		s.panicked(r)
	} else if err != nil && *err != nil {
		s.RecordError(*err)
		s.SetStatus(codes.Error, (*err).Error())
	}
	s.end(nil)
}

func (s *Span) panicked(r any) {
	text := fmt.Sprint(r)
	s.AddEvent("exception", trace.WithAttributes(attribute.String("exception.type", fmt.Sprintf("%T", r)), attribute.String("exception.message", text)))
	s.SetStatus(codes.Error, "panic: "+text)
}

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
	case s.kind == kindStep:
		s.SetAttributes(attribute.Float64(spans.AttrStepDuration, float64(ns)/1e9))
	}
	if s.sizes > 0 {
		s.putSizes(ns)
	}
	s.endAt[0] = trace.WithTimestamp(end)
	if len(options) == 0 {
		s.Span.End(s.endAt[:]...)
		return
	}
	s.Span.End(append(options, s.endAt[:]...)...)
}

// putSizes writes sizes that are known, and what they are by time.
func (s *Span) putSizes(ns int64) {
	var attrs [3]attribute.KeyValue
	put, sum := attrs[:0], int64(0)
	known := func(key string, n *int64) {
		if n != nil && *n >= 0 {
			put = append(put, attribute.Int64(key, *n))
			sum += *n
		}
	}
	throughput := spans.AttrTQThroughput
	if s.sizes == 1 {
		known(spans.AttrTQDataSize, s.request)
	} else {
		throughput = spans.AttrZMQThroughput
		known(spans.AttrZMQRequestSize, s.request)
		known(spans.AttrZMQResponseSize, s.response)
	}
	if len(put) > 0 && ns > 0 {
		put = append(put, attribute.Float64(throughput, float64(sum)/(float64(ns)/1e9)))
	}
	s.SetAttributes(put...)
}
