package bridge

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trainbridge/trainbridge/spans"
)

// costs has each helper beside equivalent code with the SDK alone: the same span, with the same attributes.
var costs = []struct {
	name        string
	spans       float64
	sdk, bridge func(*Bridge, context.Context)
}{
	{"StartFunction", 1, func(b *Bridge, ctx context.Context) {
		_, span := b.tracer.Start(ctx, "generate_sequences", trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrTQFunction, "generate_sequences"),
			attribute.String(spans.AttrTQStage, spans.StageFunction), attribute.Int(spans.AttrProcessPID, b.pid),
		))
		defer span.End()
	}, func(b *Bridge, ctx context.Context) {
		_, s := b.StartFunction(ctx, "generate_sequences")
		defer s.End()
	}},
	// The shares are measured by hand in the SDK's variant.
	{"StartFunctionWithStages", 4, func(b *Bridge, ctx context.Context) {
		start := time.Now()
		ctx, span := b.tracer.Start(ctx, "generate_sequences", trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrTQFunction, "generate_sequences"),
			attribute.String(spans.AttrTQStage, spans.StageFunction), attribute.Int(spans.AttrProcessPID, b.pid),
		))
		var took [3]time.Duration
		for i, stage := range [...]string{spans.StageGet, spans.StageCompute, spans.StagePut} {
			func() {
				start := time.Now()
				_, span := b.tracer.Start(ctx, [...]string{spans.SpanTQGet, spans.SpanTQCompute, spans.SpanTQPut}[i], trace.WithAttributes(
					attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrTQStage, stage),
					attribute.String(spans.AttrTQFunction, "generate_sequences"),
				))
				defer func() {
					span.End()
					took[i] = time.Since(start)
				}()
			}()
		}
		total := float64(time.Since(start))
		span.SetAttributes(
			attribute.Float64(spans.AttrTQGetUtilization, float64(took[0])/total), attribute.Float64(spans.AttrTQComputeUtilization, float64(took[1])/total),
			attribute.Float64(spans.AttrTQPutUtilization, float64(took[2])/total), attribute.Float64(spans.AttrTQOverheadUtilization, float64(took[0]+took[2])/total),
			attribute.Float64(spans.AttrTQUnattributedUtilization, 1-float64(took[0]+took[1]+took[2])/total),
		)
		span.End()
	}, func(b *Bridge, ctx context.Context) {
		ctx, s := b.StartFunction(ctx, "generate_sequences")
		defer s.End()
		for _, stage := range [...]func(*Bridge, context.Context){
			func(b *Bridge, ctx context.Context) {
				_, s := b.StartGet(ctx)
				defer s.End()
			},
			func(b *Bridge, ctx context.Context) {
				_, s := b.StartCompute(ctx)
				defer s.End()
			},
			func(b *Bridge, ctx context.Context) {
				_, s := b.StartPut(ctx)
				defer s.End()
			},
		} {
			stage(b, ctx)
		}
	}},
	{"StartGet", 1, func(b *Bridge, ctx context.Context) {
		_, span := b.tracer.Start(ctx, spans.SpanTQGet, trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrTQStage, spans.StageGet),
		))
		defer span.End()
	}, func(b *Bridge, ctx context.Context) {
		_, s := b.StartGet(ctx)
		defer s.End()
	}},
	{"StartClientGet", 1, func(b *Bridge, ctx context.Context) {
		start := time.Now()
		_, span := b.tracer.Start(ctx, spans.SpanTQClientGet, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrTQStage, spans.StageClientGet),
		))
		n := int64(4096)
		span.SetAttributes(attribute.Int64(spans.AttrTQDataSize, n), attribute.Float64(spans.AttrTQThroughput, float64(n)/time.Since(start).Seconds()))
		span.End()
	}, func(b *Bridge, ctx context.Context) {
		n := int64(-1)
		_, s := b.StartClientGet(ctx)
		defer s.DataSize(&n).End()
		n = 4096
	}},
	{"StartStep", 1, func(b *Bridge, ctx context.Context) {
		_, span := b.tracer.Start(ctx, spans.SpanStep, trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrSource, "go"), attribute.Int64(spans.AttrIteration, 7),
		))
		span.End()
	}, func(b *Bridge, ctx context.Context) {
		_, s := b.StartStep(ctx, 7)
		defer s.End()
	}},
	{"StartRPC", 1, func(b *Bridge, ctx context.Context) {
		_, span := b.tracer.Start(ctx, "Matmul", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String(spans.AttrTimeSource, string(spans.TimeLogged)), attribute.String(spans.AttrRPCSystem, spans.RPCSystemZeroMQ),
			attribute.String(spans.AttrRPCMethod, "Matmul"),
		))
		defer span.End()
	}, func(b *Bridge, ctx context.Context) {
		_, s := b.StartRPC(ctx, spans.RPCSystemZeroMQ, "Matmul")
		defer s.End()
	}},
	{"StartRPCSend", 1, func(b *Bridge, ctx context.Context) {
		_, span := b.tracer.Start(ctx, spans.SpanRPCSend, trace.WithAttributes(attribute.String(spans.AttrTimeSource, string(spans.TimeLogged))))
		defer span.End()
	}, func(b *Bridge, ctx context.Context) {
		_, s := b.StartRPCSend(ctx)
		defer s.End()
	}},
}

// The providers have the same configuration. Their queue is full, which excludes the exporter, running at its own pace, from both figures.
func BenchmarkSpan(b *testing.B) {
	b.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
	for _, it := range costs {
		inTrace := func(b *Bridge, ctx context.Context) { it.bridge(b, WithTraceID(ctx, batchID)) }
		for name, run := range map[string]func(*Bridge, context.Context){"sdk": it.sdk, "bridge": it.bridge, "bridge in a trace": inTrace} {
			b.Run(it.name+"/"+name, func(b *testing.B) {
				quietErrors(b)
				bridge, err := New(b.Context(), WithEndpoint(refusing(b)), WithRunID("run"), WithServiceName("bench"))
				require.NoError(b, err)
				ctx, cancel := context.WithCancel(b.Context())
				b.ReportAllocs()
				for b.Loop() {
					run(bridge, ctx)
				}
				cancel()
				_ = bridge.Shutdown(ctx)
			})
		}
	}
}

// discard drops spans. The SDK makes the same span for it as for a queue.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }

// A helper takes at most 3 allocations more than the SDK, also with a named trace, for which the SDK has no means.
func TestAllocations(t *testing.T) {
	within := map[string]func(context.Context) context.Context{
		"no trace": func(ctx context.Context) context.Context { return ctx },
		"UUID":     func(ctx context.Context) context.Context { return WithTraceID(ctx, batchID) },
		"text": func(ctx context.Context) context.Context {
			return WithTraceID(ctx, "a text of more than the thirty-two bytes that Go keeps on a stack")
		},
		"step": func(ctx context.Context) context.Context { return WithStep(ctx, 7) },
	}
	for _, it := range costs {
		for name, in := range within {
			provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(ids{"run"}), sdktrace.WithSpanProcessor(discard{}))
			b := &Bridge{tracer: provider.Tracer(scopeName)}
			sdk := testing.AllocsPerRun(200, func() { it.sdk(b, t.Context()) })
			helper := testing.AllocsPerRun(200, func() { it.bridge(b, in(t.Context())) })
			assert.LessOrEqual(t, helper-sdk, 3*it.spans, "%s, %s", it.name, name)
			assert.NoError(t, provider.Shutdown(t.Context()))
		}
	}
}

// Nor does a helper cost much where nothing is recorded.
func TestAllocationsOfSpansNotRecorded(t *testing.T) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithSpanProcessor(discard{}))
	b := &Bridge{tracer: provider.Tracer(scopeName)}
	for _, it := range costs {
		sdk := testing.AllocsPerRun(200, func() { it.sdk(b, t.Context()) })
		helper := testing.AllocsPerRun(200, func() { it.bridge(b, t.Context()) })
		assert.LessOrEqual(t, helper-sdk, 3*it.spans, it.name)
	}
	assert.NoError(t, provider.Shutdown(t.Context()))
}
