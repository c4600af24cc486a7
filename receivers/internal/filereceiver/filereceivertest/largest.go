package filereceivertest

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/spans"
)

// maxMessage is the limit of a default OTLP/gRPC receiver.
const maxMessage = 4 << 20

// next returns the next components. Every message is accepted and checked against the limit of a default receiver.
func (r *Result) next(tb testing.TB, arrived func()) (consumer.Traces, consumer.Metrics) {
	tb.Helper()
	traces, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		assert.LessOrEqual(tb, (&ptrace.ProtoMarshaler{}).TracesSize(td), maxMessage, "bytes of a message of %d spans", td.SpanCount())
		assert.LessOrEqual(tb, td.SpanCount(), spans.MaxMessageSpans)
		defer arrived()
		return r.Traces.ConsumeTraces(ctx, td)
	})
	require.NoError(tb, err)
	metrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		assert.LessOrEqual(tb, (&pmetric.ProtoMarshaler{}).MetricsSize(md), maxMessage, "bytes of a message of %d points", md.DataPointCount())
		assert.LessOrEqual(tb, md.DataPointCount(), spans.MaxMessageSpans)
		defer arrived()
		return r.Metrics.ConsumeMetrics(ctx, md)
	})
	require.NoError(tb, err)
	return traces, metrics
}

// Run starts the receiver of a factory and reads its files until enough has come.
func Run(tb testing.TB, f receiver.Factory, cfg component.Config, enough func(*Result) bool) *Result {
	tb.Helper()
	require.NoError(tb, confmap.Validate(cfg))
	r, more := &Result{}, make(chan struct{}, 1)
	traces, metrics := r.next(tb, func() {
		select {
		case more <- struct{}{}:
		default:
		}
	})
	set, ctx := receivertest.NewNopSettings(f.Type()), context.WithoutCancel(tb.Context())
	ofTraces, err := f.CreateTraces(ctx, set, cfg, traces)
	require.NoError(tb, err)
	ofMetrics, err := f.CreateMetrics(ctx, set, cfg, metrics)
	require.NoError(tb, err)
	both := []component.Component{ofTraces, ofMetrics}
	for _, c := range both {
		require.NoError(tb, c.Start(ctx, componenttest.NewNopHost()))
	}
	for late := time.After(time.Minute); !enough(r); {
		select {
		case <-more:
			continue
		case <-late:
			assert.Fail(tb, "not all has come", "%d spans, %d points", r.Traces.SpanCount(), r.Metrics.DataPointCount())
		}
		break
	}
	for _, c := range both {
		require.NoError(tb, c.Shutdown(ctx))
	}
	r.readable(tb)
	return r
}

// Numbered checks that an attribute of the spans has each number from 1 to n once, and that all ids differ.
func Numbered(tb testing.TB, list []ptrace.Span, name string, n int) {
	tb.Helper()
	type id struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	ids, numbers := make(map[id]bool, n), make(map[int]bool, n)
	for _, s := range list {
		i, err := strconv.Atoi(Attr(s, name))
		if err != nil || i < 1 || i > n {
			assert.Fail(tb, "not one of the numbers", Attr(s, name))
		}
		ids[id{s.TraceID(), s.SpanID()}], numbers[i] = true, true
	}
	assert.Len(tb, list, n)
	assert.Len(tb, ids, n)
	assert.Len(tb, numbers, n)
}
