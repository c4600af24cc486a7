package bridge

import (
	"context"
	"encoding/hex"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

func TestWithTraceID(t *testing.T) {
	r := newRig(t)
	const text = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	ofUUID, err := uuid.Parse(text) // the oracle: google/uuid
	require.NoError(t, err)
	hashed := func(text string) string {
		id := spans.TraceID("run-1", []byte(text)) // the receivers' call
		return hex.EncodeToString(id[:])
	}
	for text, want := range map[string]string{
		text:                                   hex.EncodeToString(ofUUID[:]),
		"A1B2C3D4-5E6F-4A7B-8C9D-0E1F2A3B4C5D": hex.EncodeToString(ofUUID[:]),
		"a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d":     hex.EncodeToString(ofUUID[:]),
		"00-a1b2c3d45e6f4a7b8c9d0e1f2a3b4c5d-00f067aa0ba902b7-01": hex.EncodeToString(ofUUID[:]),
		"a1b2c3d4":                                      "58006445d9153ef721f5d4fd9f6deea3", // by the reference XXH3, see spans/ids_test.go
		"a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5g":          hashed("a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5g"),
		"{a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d}":        hashed("{a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d}"), // not a UUID in logs either
		"urn:uuid:a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d": hashed("urn:uuid:a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"),
		"n/a":      hashed("n/a"),
		" ":        hashed(" "),
		"\xff\x00": hashed("\xff\x00"),
	} {
		// Any tracer of the bridge, after any current span.
		for name, ctx := range map[string]context.Context{"root": t.Context(), "in a span": inSpan(t.Context(), r.Bridge)} {
			_, span := r.TracerProvider().Tracer("any").Start(WithTraceID(ctx, text), "root")
			assert.Equal(t, want, span.SpanContext().TraceID().String(), "%q, %s", text, name)
			assert.True(t, span.SpanContext().IsSampled())
			_, fn := r.StartFunction(ctx, "f") // started with the context from before
			assert.NotEqual(t, want, fn.SpanContext().TraceID().String())
		}
	}
}

func TestWithoutTraceID(t *testing.T) {
	r := newRig(t)
	seen := map[trace.TraceID]string{}
	for _, text := range []string{"", "", "N/A", "N/A", "None", "none", "null", "00000000-0000-0000-0000-000000000000", "0"} {
		outer := WithTraceID(t.Context(), "a1b2c3d4")
		outer, span := r.Tracer().Start(outer, "outer")
		seen[span.SpanContext().TraceID()] = "outer"
		_, span = r.Tracer().Start(WithTraceID(outer, text), "inner")
		id := span.SpanContext().TraceID()
		assert.NotContains(t, seen, id, text)
		assert.True(t, id.IsValid())
		seen[id] = text
	}
}

func inSpan(ctx context.Context, b *Bridge) context.Context {
	ctx, _ = b.Tracer().Start(ctx, "before")
	return ctx
}

func TestWithStep(t *testing.T) {
	r := newRig(t)
	var want []pcommon.TraceID
	for _, n := range []int64{0, 1, 7, -1, 1 << 60} {
		_, span := r.Tracer().Start(WithStep(inSpan(t.Context(), r.Bridge), n), "load")
		assert.Equal(t, trace.TraceID(spans.StepTraceID("run-1", n)), span.SpanContext().TraceID())
		span.End()
		want = append(want, spans.StepTraceID("run-1", n))
	}
	require.NoError(t, r.Shutdown(t.Context()))
	var got []pcommon.TraceID
	for _, s := range r.collector.spans() {
		assert.True(t, s.ParentSpanID().IsEmpty(), "a root of the trace")
		got = append(got, s.TraceID())
	}
	assert.ElementsMatch(t, want, got, "as exported")
}

// A span without a parent states that an id decided its trace, whoever starts the span; its descendants do not, nor do spans of an iteration. With both an id
// and an iteration, the id decides, as for a record with both.
func TestJoinByID(t *testing.T) {
	const id = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	r := newRig(t)
	ctx := WithTraceID(t.Context(), id)
	_, plain := r.TracerProvider().Tracer("any").Start(ctx, "any")
	plain.End()
	ctx, step := r.StartStep(ctx, 7)
	_, below := r.Tracer().Start(ctx, "below")
	below.End()
	step.End()
	_, other := r.StartStep(t.Context(), 8)
	other.End()
	_, fresh := r.Tracer().Start(WithTraceID(t.Context(), "N/A"), "fresh")
	fresh.End()
	require.NoError(t, r.Shutdown(t.Context()))
	got := map[string]int{}
	for _, s := range r.collector.spans() {
		if by, ok := s.Attributes().Get(spans.AttrJoinBy); ok {
			assert.Equal(t, spans.JoinByID, by.Str())
			assert.Equal(t, spans.TraceID("", []byte(id)), s.TraceID())
			got[s.Name()]++
		}
	}
	assert.Equal(t, map[string]int{"any": 1, "train.step": 1}, got)
}

// Naming the current trace again keeps the parent, for instance in a handler whose caller has sent its span along.
func TestJoinKeepsParentOfSameTrace(t *testing.T) {
	const id = "a1b2c3d4-5e6f-4a7b-8c9d-0e1f2a3b4c5d"
	remote := func(ctx context.Context, trace1 trace.TraceID) context.Context {
		return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace1, SpanID: trace.SpanID{1}, TraceFlags: 1}))
	}
	for name, it := range map[string]struct {
		before, join func(context.Context) context.Context
		kept         bool
	}{
		"UUID": {
			before: func(ctx context.Context) context.Context { return WithTraceID(ctx, id) },
			join:   func(ctx context.Context) context.Context { return WithTraceID(ctx, id) }, kept: true,
		},
		"other text": {
			before: func(ctx context.Context) context.Context { return WithTraceID(ctx, "a1") },
			join:   func(ctx context.Context) context.Context { return WithTraceID(ctx, "a1") }, kept: true,
		},
		"step": {
			before: func(ctx context.Context) context.Context { return WithStep(ctx, 3) }, join: func(ctx context.Context) context.Context { return WithStep(ctx, 3) },
			kept: true,
		},
		"remote UUID": {
			before: func(ctx context.Context) context.Context { return remote(ctx, trace.TraceID(uuid.MustParse(id))) },
			join:   func(ctx context.Context) context.Context { return WithTraceID(ctx, id) }, kept: true,
		},
		"another text": {
			before: func(ctx context.Context) context.Context { return WithTraceID(ctx, "a1") },
			join:   func(ctx context.Context) context.Context { return WithTraceID(ctx, "a2") },
		},
		"another step": {
			before: func(ctx context.Context) context.Context { return WithStep(ctx, 3) }, join: func(ctx context.Context) context.Context { return WithStep(ctx, 4) },
		},
		"another trace": {
			before: func(ctx context.Context) context.Context { return ctx }, join: func(ctx context.Context) context.Context { return WithTraceID(ctx, id) },
		},
		"no trace": {
			before: func(ctx context.Context) context.Context { return WithTraceID(ctx, "N/A") },
			join:   func(ctx context.Context) context.Context { return WithTraceID(ctx, "N/A") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ctx, handler := r.Tracer().Start(it.before(t.Context()), "handler")
			ctx, work := r.Tracer().Start(it.join(ctx), "work")
			_, again := r.StartFunction(ctx, "function")
			again.End()
			work.End()
			handler.End()
			all := r.flush()
			want := ""
			if it.kept {
				want = "handler"
			}
			assert.Equal(t, want, parents(all)["work"])
			assert.Equal(t, it.kept, all["work"].TraceID() == all["handler"].TraceID())
			assert.Equal(t, "work", parents(all)["function"])
		})
	}
}

// The run of a remote or unsampled span is unknown, so the span stays the parent for a UUID only. The trace is the same in any case.
func TestJoinBelowSpanThatIsNotRecorded(t *testing.T) {
	r := newRig(t)
	for text, want := range map[string]string{batchID: "0100000000000000", "a1": "0000000000000000"} {
		id := trace.TraceID(spans.TraceID("run-1", []byte(text)))
		ctx := trace.ContextWithRemoteSpanContext(
			t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled}),
		)
		ctx = WithTraceID(ctx, text)
		_, fn := r.StartFunction(ctx, "f")
		assert.Equal(t, id, fn.SpanContext().TraceID())
		recorded, ok := fn.Span.(sdktrace.ReadOnlySpan)
		assert.True(t, ok)
		assert.Equal(t, want, recorded.Parent().SpanID().String(), text)
	}
}
