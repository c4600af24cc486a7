package bridge

import (
	"context"
	"encoding/binary"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// WithTraceID puts an id text into the context: a span without a parent, started with the returned context by any tracer of a [Bridge], joins the trace that
// the receivers build of the text. A UUID is the trace id, likewise the trace of a W3C traceparent; any other text is hashed together with the run id
// (spans.TraceID). "", "N/A" and other texts for no id start a new trace.
//
// The next span has no parent, unless the current span is already of that trace: then the current span stays the parent. This is decided for spans recorded in
// this process, and for UUIDs. In a loop, begin each turn with the context from outside: ctx := bridge.WithTraceID(ctx, id).
func WithTraceID(ctx context.Context, text string) context.Context {
	return (&join{text: text, fresh: spans.NoTraceID(text)}).in(ctx)
}

// WithStep does the same for the trace of a training iteration, shared by all logs and ranks of a run (spans.StepTraceID).
func WithStep(ctx context.Context, iteration int64) context.Context {
	return (&join{iteration: iteration, step: true}).in(ctx)
}

// join names the trace of a root span.
type join struct {
	text      string
	iteration int64
	step      bool // iteration, not text
	fresh     bool // text names no trace: a new trace
}

type joinKey struct{}

// joinOf returns the trace that a context names for its next root span, nil if none.
func joinOf(ctx context.Context) *join {
	j, _ := ctx.Value(joinKey{}).(*join)
	return j
}

// traceID returns the id of the trace, by the rule of the receivers.
func (j *join) traceID(runID string) trace.TraceID {
	if j.step {
		return trace.TraceID(spans.StepTraceID(runID, j.iteration))
	}
	return trace.TraceID(spans.TraceID(runID, []byte(j.text)))
}

// in puts the join into a context, and removes a current span of another trace.
func (j *join) in(ctx context.Context) context.Context {
	if current := trace.SpanFromContext(ctx); current.SpanContext().IsValid() && !j.joined(current) {
		ctx = trace.ContextWithSpan(ctx, nil)
	}
	return context.WithValue(ctx, joinKey{}, j)
}

// joined reports whether the span is of this trace. The run id is that of the span's provider; an unrecorded span has none, which does not matter to a UUID.
func (j *join) joined(span trace.Span) bool {
	runID := ""
	if s, ok := span.(sdktrace.ReadOnlySpan); ok {
		run, _ := s.Resource().Set().Value(spans.AttrRunID)
		runID = run.AsString()
	}
	return j.traceID(runID) == span.SpanContext().TraceID()
}

// joined is a span processor that marks a span without a parent that joined its trace by an id text (WithTraceID): step_join makes a root for such a trace.
type joined struct{}

var (
	_    sdktrace.SpanProcessor = joined{}
	byID                        = attribute.String(spans.AttrJoinBy, spans.JoinByID)
)

// OnStart is called with the context in which a span starts.
func (joined) OnStart(ctx context.Context, span sdktrace.ReadWriteSpan) {
	if span.Parent().IsValid() {
		return
	}
	if j := joinOf(ctx); j != nil && !j.step && !j.fresh {
		span.SetAttributes(byID)
	}
}

// OnEnd does nothing.
func (joined) OnEnd(sdktrace.ReadOnlySpan) {}

// Shutdown does nothing.
func (joined) Shutdown(context.Context) error { return nil }

// ForceFlush does nothing.
func (joined) ForceFlush(context.Context) error { return nil }

// ids makes trace ids by the rule of the receivers where the context names a trace, and random ids otherwise. Span ids are random, because a service does the
// same thing more than once.
type ids struct{ runID string }

var _ sdktrace.IDGenerator = ids{}

// NewIDs is called for spans without a parent.
func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	var id trace.TraceID
	if j := joinOf(ctx); j != nil && !j.fresh {
		id = j.traceID(g.runID)
	}
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:8], rand.Uint64()) //nolint:gosec // ids are no secrets; the SDK does the same
		binary.NativeEndian.PutUint64(id[8:], rand.Uint64()) //nolint:gosec // ids are no secrets; the SDK does the same
	}
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID is called for spans with a parent.
func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID {
	var id trace.SpanID
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64()) //nolint:gosec // ids are no secrets; the SDK does the same
	}
	return id
}
