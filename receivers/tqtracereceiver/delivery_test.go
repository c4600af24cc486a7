package tqtracereceiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// robber empties its argument, as a batching consumer may, and then fails n times.
type robber struct {
	consumertest.TracesSink
	fail []error
	seen []int
}

func (*robber) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (r *robber) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	r.seen = append(r.seen, td.SpanCount())
	if len(r.fail) > 0 {
		err := r.fail[0]
		r.fail = r.fail[1:]
		td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
		return err
	}
	return r.TracesSink.ConsumeTraces(ctx, td)
}

type metricsRobber struct {
	consumertest.MetricsSink
	fail []error
}

func (r *metricsRobber) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	if len(r.fail) > 0 {
		err := r.fail[0]
		r.fail = r.fail[1:]
		return err
	}
	return r.MetricsSink.ConsumeMetrics(ctx, md)
}

// oneBatch reads lines into a batch and returns its delivery.
func oneBatch(t *testing.T, r *tqReceiver, lines ...string) tail.Delivery {
	t.Helper()
	h := r.handle(&noLines{})
	for _, text := range lines {
		v, reason := h.Line(&tail.Line{Text: []byte(text), Observed: observed, ModTime: observed})
		require.Equal(t, tail.Record, v, reason)
	}
	h.Expire(observed.Add(time.Hour))
	return h.Cut()
}

func prepared(tb testing.TB, traces consumer.Traces, metrics consumer.Metrics) *tqReceiver {
	tb.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.RunID = "run"
	var r *tqReceiver
	_, err := filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), cfg, func(
		base *filereceiver.Receiver, cfg component.Config,
	) (parts filereceiver.Parts, err error) {
		r, parts, err = newReceiver(base, cfg)
		return parts, err
	}, traces, metrics)
	require.NoError(tb, err)
	tb.Cleanup(r.tel.Shutdown)
	return r
}

const (
	aFunction = "[TQ-TRACE] trace_id=x | func=f | stage=FUNCTION_END | total_duration=1.0s | get_ratio=0.00% | compute_ratio=0.00% | put_ratio=0.00% | timestamp=5.0"
	aCost     = "Task f (pid=1) is writing to TransferQueue, cost time: 0.5)"
)

func TestRetrySendsTheSameAgain(t *testing.T) {
	down := errors.New("down")
	traces, metrics := &robber{fail: []error{down, down}}, &metricsRobber{fail: []error{down}}
	r := prepared(t, traces, metrics)
	d := oneBatch(t, r, aFunction, aCost)
	ctx := context.Background()
	require.ErrorIs(t, d.Send(ctx), down)
	require.ErrorIs(t, d.Send(ctx), down)
	require.ErrorIs(t, d.Send(ctx), down, "the metrics now")
	require.NoError(t, d.Send(ctx))
	assert.Equal(t, []int{2, 2, 2}, traces.seen, "every try has all spans, and the traces that were accepted are not sent again")
	assert.Equal(t, 1, metrics.DataPointCount())
	assert.Nil(t, oneBatch(t, r), "nothing to send, no batch")
}

func TestRefusedForGood(t *testing.T) {
	bad := consumererror.NewPermanent(errors.New("bad"))
	traces, metrics := &robber{fail: []error{bad, nil, bad}}, &metricsRobber{}
	var refused *tail.Refused
	require.ErrorAs(t, oneBatch(t, prepared(t, traces, metrics), aFunction, aCost).Send(context.Background()), &refused)
	assert.Len(t, refused.Places[0], 1, "the root, which is no record, was accepted")
	assert.Equal(t, 1, metrics.DataPointCount(), "the other signal still gets its part")
}

func TestWithoutPipeline(t *testing.T) {
	h := prepared(t, nil, consumertest.NewNop()).handle(&noLines{})
	v, reason := h.Line(&tail.Line{Text: []byte(aFunction), Observed: observed})
	assert.Equal(t, tail.Ignored, v)
	assert.Equal(t, "no_traces_pipeline", reason)
	h = prepared(t, consumertest.NewNop(), nil).handle(&noLines{})
	for _, text := range []string{aCost, "U: [Performance] Total success requests: 1, Total req/min: 1, Total avg process time: 1s"} {
		v, reason = h.Line(&tail.Line{Text: []byte(text), Observed: observed})
		assert.Equal(t, tail.Ignored, v)
		assert.Equal(t, "no_metrics_pipeline", reason)
	}
}

// After a restart the clock continues, and records without any clock get unique keys.
func TestSaveRestore(t *testing.T) {
	b := &filereceivertest.Result{}
	r := prepared(t, &b.Traces, nil)
	ctx := context.Background()
	h := r.handle(&noLines{})
	put := func(h *handler, text string) {
		v, reason := h.Line(&tail.Line{Text: []byte(text), Observed: observed, ModTime: observed})
		require.Equal(t, tail.Record, v, reason)
	}
	put(h, "INFO:2026-03-05 09:30:10,000:[TQ-TRACE] trace_id=x | func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=15.0")
	put(h, "[TQ-LOG] op=TQ_PUT | func=f | stage=END | duration=1s")
	require.NoError(t, h.Cut().Send(ctx))
	state := h.Save()
	require.NotEmpty(t, state)

	next := r.handle(&noLines{})
	next.Restore(state)
	put(next, "[TQ-TRACE] trace_id=y | func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=16.0")
	put(next, "[TQ-LOG] op=TQ_PUT | func=f | stage=END | duration=1s")
	require.NoError(t, next.Cut().Send(ctx))
	require.NotNil(t, r.handle(&noLines{}))

	f := b.All("f")
	require.Len(t, f, 2)
	assert.Equal(t, f[0].EndTimestamp()+1e9, f[1].EndTimestamp(), "anchored by the line before the restart")
	v, _ := f[1].Attributes().Get(spans.AttrTimeSource)
	assert.Equal(t, string(spans.TimeAnchoredSecond), v.Str())
	puts := b.All(spans.SpanTQClientPut)
	require.Len(t, puts, 2)
	assert.NotEqual(t, puts[0].TraceID(), puts[1].TraceID())
	assert.Len(t, b.All(spans.SpanRun), 1, "once per process and run")

	for n := range state { // damaged
		r.handle(&noLines{}).Restore(state[:n])
	}
	assert.Nil(t, r.handle(&noLines{}).Save())
}

// The process that prints most lines is of those used last, whatever it has in common with the last lines: its anchor is stored.
func TestSaveKeepsTheBusiest(t *testing.T) {
	r := prepared(t, consumertest.NewNop(), nil)
	h := r.handle(&noLines{})
	put := func(pid int) {
		text := fmt.Sprintf("(Worker pid=%d) 2026-03-05 09:30:10,000:[TQ-TRACE] trace_id=x | func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=15.0", pid)
		v, reason := h.Line(&tail.Line{Text: []byte(text), Observed: observed, ModTime: observed})
		require.Equal(t, tail.Record, v, reason)
	}
	const busiest = 16 // its place in recent is its own
	put(busiest)
	for pid := busiest + 1; pid < 500; pid++ {
		if pid%len(h.recent) != 0 {
			put(pid)
			put(busiest)
		}
	}
	next := r.handle(&noLines{})
	next.Restore(h.Save())
	_, known := next.anchors.Get("", busiest).Offset()
	assert.True(t, known)
}

// A reboot in the middle of a file: open calls are given up, and the new counter gets its own anchor.
func TestCounterStartsAnew(t *testing.T) {
	b := read(t, nil, write(t, "x.log",
		"INFO:2026-03-05 09:30:00,000:[TQ-TRACE] trace_id=a | func=f | pid=1 | stage=FUNCTION_START | timestamp=90000.0",
		"INFO:2026-03-05 10:30:00,000:[TQ-TRACE] trace_id=b | func=f | pid=1 | stage=FUNCTION_START | timestamp=12.0",
		"INFO:2026-03-05 10:30:01,000:[TQ-TRACE] trace_id=b | func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=13.0",
	))
	f := b.All("f")
	require.Len(t, f, 2)
	assert.Equal(t, "2026-03-05T09:30:00Z", f[0].StartTimestamp().AsTime().Format(time.RFC3339Nano))
	_, open := f[0].Attributes().Get(spans.AttrIncomplete)
	assert.True(t, open)
	assert.Equal(t, "2026-03-05T10:30:00Z", f[1].StartTimestamp().AsTime().Format(time.RFC3339Nano))
	assert.Equal(t, "2026-03-05T10:30:01Z", f[1].EndTimestamp().AsTime().Format(time.RFC3339Nano))
}

func TestTimeSources(t *testing.T) {
	for name, tt := range map[string]struct{ line, source string }{
		"perf_counter and stamp":    {"INFO:2026-03-05 09:30:00,000:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=13.0", "anchored_second"},
		"perf_counter and ms":       {"INFO:2026-03-05 09:30:00,001:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=13.001", "anchored"},
		"perf_counter and docker":   {"2026-03-05T09:30:00.001Z [TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=13.001", "anchored"},
		"perf_counter alone":        {"[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=13.0", "synthetic"},
		"Unix time":                 {"[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s | timestamp=1772703000.0", "derived"},
		"stamp alone":               {"INFO:2026-03-05 09:30:00,000:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s", "derived"},
		"nothing":                   {"[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s", "synthetic"},
		"stamp behind progress bar": {"10%|# | 1/10INFO:2026-03-05 09:30:00,000:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s", "derived"},
		"Ray behind progress bar":   {"10%|# | 1/10 (W pid=3) INFO:2026-03-05 09:30:00,000:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s", "derived"},
	} {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, write(t, "x.log", tt.line))
			f := b.All("f")
			require.Len(t, f, 1)
			v, _ := f[0].Attributes().Get(spans.AttrTimeSource)
			assert.Equal(t, tt.source, v.Str())
			if tt.source == "synthetic" {
				return
			}
			assert.Equal(t, "2026-03-05T09:30:00Z", f[0].EndTimestamp().AsTime().Format(time.RFC3339))
		})
	}
	b := &filereceivertest.Result{}
	h := prepared(t, &b.Traces, nil).handle(&noLines{})
	h.Line(&tail.Line{Text: []byte("[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s"), Observed: observed, Live: true})
	require.NoError(t, h.Cut().Send(context.Background()))
	v, _ := b.All("f")[0].Attributes().Get(spans.AttrTimeSource)
	assert.Equal(t, "observed", v.Str())
	assert.Equal(t, observed, b.All("f")[0].EndTimestamp().AsTime())
}

func TestZone(t *testing.T) {
	b := read(
		t, func(c *Config) { c.Timezone = "Asia/Shanghai" },
		write(t, "x.log", "INFO:2026-03-05 17:30:00,000:[TQ-TRACE] func=f | stage=FUNCTION_END | total_duration=1.0s"),
	)
	assert.Equal(t, "2026-03-05T09:30:00Z", b.All("f")[0].EndTimestamp().AsTime().Format(time.RFC3339Nano))
}

func TestPidOfFileName(t *testing.T) {
	for path, want := range map[string]int64{
		"/tmp/ray/session_1/logs/worker-0a1b2c3d4e5f-01000000-2642022.err":   2642022,
		"/tmp/ray/session_1/logs/worker-0a1b2c3d4e5f-01000000-2642022.out.1": 2642022,
		"/logs/driver.log": 0, "/logs/worker-1.log": 0, "/logs/worker-a-b-c.err": 0, "/logs/other-a-b-12.err": 0,
	} {
		assert.Equal(t, want, pidOfFile(path), path)
	}
	b := read(t, nil, write(t, "worker-0a1b-01000000-2642022.err", aFunction))
	pid, ok := resource(b, b.All("f")[0]).Get(spans.AttrProcessPID)
	require.True(t, ok)
	assert.Equal(t, int64(2642022), pid.Int())
}

// The receiver logs once, with the remedy, that no record has an id; a single id prevents the message.
func TestNoIDs(t *testing.T) {
	line := "[TQ-TRACE] trace_id=%s | func=f | stage=COMPUTE_END | duration=0.4s | timestamp=%d.0\n"
	var all strings.Builder
	for i := range enoughIDs {
		fmt.Fprintf(&all, line, "N/A", 100+i)
	}
	text := all.String()
	for name, tt := range map[string]struct {
		text string
		said int
	}{
		"all":   {text, 1},
		"few":   {fmt.Sprintf(line, "N/A", 1), 0},
		"mixed": {text + fmt.Sprintf(line, "batch-7", 200), 0},
	} {
		core, logs := observer.New(zap.InfoLevel)
		set := receivertest.NewNopSettings(metadata.Type)
		set.Logger = zap.New(core)
		readWith(t, set, nil, write(t, "a.log", tt.text), write(t, "b.log", tt.text))
		assert.Equal(t, tt.said, logs.FilterMessageSnippet(`trace_id is N/A in all 8 records of `).FilterMessageSnippet(`integrations/verl/trainbridge_trace.py`).Len(), name)
	}
}

func TestTelemetry(t *testing.T) {
	tt := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tt.Shutdown(context.Background())) }()
	set := metadatatest.NewSettings(tt)
	core, logs := observer.New(zap.WarnLevel)
	set.Logger = zap.New(core)
	readWith(t, set, nil, fixture(t, "dedup.log"), fixture(t, "broken.log"))
	metadatatest.AssertEqualTrainbridgeTqRepeatedLines(t, tt, []metricdata.DataPoint[int64]{{Value: 1 + 3}}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualTrainbridgeTqUnusedLines(t, tt, []metricdata.DataPoint[int64]{
		{Value: 3, Attributes: attribute.NewSet(attribute.String("reason", "duplicate"))},
		{Value: 1, Attributes: attribute.NewSet(attribute.String("reason", "late"))},
	}, metricdatatest.IgnoreTimestamp())
	assert.Equal(t, 1, logs.FilterMessageSnippet("RAY_DEDUP_LOGS=0").Len(), "said once, with the fix")
	spansMetric, err := tt.GetMetric("otelcol_receiver_accepted_spans")
	require.NoError(t, err)
	assert.NotEmpty(t, spansMetric.Data)
}

func TestConfig(t *testing.T) {
	cfg := filereceivertest.Configs(t, NewFactory(), map[string]string{
		"tq_trace":          "",
		"tq_trace/all":      "",
		"tq_trace/zone":     "'timezone': unknown time zone Mars/Olympus: use an IANA name",
		"tq_trace/include":  "'include'",
		"tq_trace/start_at": "'start_at' must be beginning or end",
	})["tq_trace/all"].(*Config)
	assert.Equal(t, "verl-ppo", cfg.ServiceName)
	assert.Equal(t, "ppo-17", cfg.RunID)
	assert.Equal(t, "Asia/Shanghai", cfg.Timezone)
	assert.Equal(t, time.Hour, cfg.PendingTimeout)
}

// Both signals come from one instance: each file is read once, while it grows.
func TestOneInstanceForBothSignals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	cfg := createDefaultConfig().(*Config)
	cfg.Include = []string{path}
	cfg.PollInterval = 10 * time.Millisecond
	traces, metrics := make(chan ptrace.Traces, 10), make(chan pmetric.Metrics, 10)
	tc, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error { traces <- td; return nil })
	require.NoError(t, err)
	mc, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error { metrics <- md; return nil })
	require.NoError(t, err)
	set := receivertest.NewNopSettings(metadata.Type)
	ctx := context.Background()
	f := NewFactory()
	tr, err := f.CreateTraces(ctx, set, cfg, tc)
	require.NoError(t, err)
	mr, err := f.CreateMetrics(ctx, set, cfg, mc)
	require.NoError(t, err)
	require.Same(t, tr, mr)
	for _, r := range []component.Component{tr, mr} {
		require.NoError(t, r.Start(ctx, componenttest.NewNopHost()))
	}
	require.NoError(t, os.WriteFile(path, []byte(aFunction+"\n"+aCost+"\n"), 0o600))
	assert.Equal(t, 2, (<-traces).SpanCount())
	assert.Equal(t, 1, (<-metrics).DataPointCount())
	for _, r := range []component.Component{tr, mr} {
		require.NoError(t, r.Shutdown(ctx))
	}
	assert.Empty(t, traces)
	again, err := f.CreateTraces(ctx, set, cfg, tc)
	require.NoError(t, err)
	assert.NotSame(t, tr, again, "a shut down instance is not used again")
	require.NoError(t, again.Shutdown(ctx))
}
