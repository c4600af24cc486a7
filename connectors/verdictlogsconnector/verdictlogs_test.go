package verdictlogsconnector

import (
	"context"
	"errors"
	"flag"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/connectors/verdictlogsconnector/internal/metadatatest"
	"github.com/trainbridge/trainbridge/internal/seen"
	"github.com/trainbridge/trainbridge/spans"
)

var update = flag.Bool("update", false, "write the golden files anew")

// bed is a connector with a test clock, and the records sent.
type bed struct {
	*verdictLogs
	t     testing.TB
	clock time.Time
	err   error // answer of the next component
	tel   *componenttest.Telemetry
	said  *observer.ObservedLogs

	mu   sync.Mutex
	sent []plog.Logs
}

func newBed(tb testing.TB, change ...func(*Config)) *bed {
	tb.Helper()
	cfg := defaultConfig()
	for _, f := range change {
		f(cfg)
	}
	require.NoError(tb, cfg.Validate())
	b := &bed{t: tb, clock: time.Date(2026, 2, 11, 9, 0, 0, 0, time.UTC), tel: componenttest.NewTelemetry()}
	tb.Cleanup(func() { require.NoError(tb, b.tel.Shutdown(context.Background())) })
	next, err := consumer.NewLogs(func(_ context.Context, ld plog.Logs) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.err == nil {
			b.sent = append(b.sent, ld)
		}
		return b.err
	})
	require.NoError(tb, err)
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = b.tel.NewTelemetrySettings()
	core, said := observer.New(zap.WarnLevel)
	set.Logger, b.said = zap.New(core), said
	b.verdictLogs, err = newVerdictLogs(cfg, set, next)
	require.NoError(tb, err)
	b.now = func() time.Time { return b.clock }
	b.seen = seen.New(cfg.DedupWindow, b.clock)
	b.rate.last = b.clock
	require.NoError(tb, b.Start(context.Background(), componenttest.NewNopHost()))
	tb.Cleanup(func() {
		require.NoError(tb, b.Shutdown(context.Background()))
		require.NoError(tb, b.Shutdown(context.Background()))
	})
	return b
}

func (b *bed) records() (all []plog.LogRecord) {
	for _, ld := range b.sent {
		for _, rl := range ld.ResourceLogs().All() {
			for _, r := range rl.ScopeLogs().At(0).LogRecords().All() {
				all = append(all, r)
			}
		}
	}
	return all
}

// counted checks the connector's own counters.
func (b *bed) counted(records, known, overLimit int64) {
	b.t.Helper()
	t, ok := b.t.(*testing.T)
	require.True(b.t, ok)
	for _, c := range []struct {
		n      int64
		equals func(*testing.T, *componenttest.Telemetry, []metricdata.DataPoint[int64], ...metricdatatest.Option)
	}{
		{records, metadatatest.AssertEqualConnectorTrainVerdictsRecords},
		{known, metadatatest.AssertEqualConnectorTrainVerdictsDuplicates},
		{overLimit, metadatatest.AssertEqualConnectorTrainVerdictsOverLimit},
	} {
		if c.n > 0 {
			c.equals(t, b.tel, []metricdata.DataPoint[int64]{{Value: c.n}}, metricdatatest.IgnoreTimestamp())
		}
	}
}

// withVerdicts is a batch of n spans from first on, each with verdicts of the given names.
func withVerdicts(first, n int, names ...string) ptrace.Traces {
	b := spans.NewBatch("test", "")
	for i := first; i < first+n; i++ {
		s := b.Add(spans.Resource{Service: "job", RunID: "r"}, spans.Span{
			Name: "op", Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{byte(i >> 8), byte(i), 1}, End: 1e18,
		})
		for _, name := range names {
			addVerdict(s, name)
		}
	}
	return b.Traces()
}

func addVerdict(s ptrace.Span, name string) {
	e := s.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.Attributes().PutStr(spans.AttrVerdictName, name)
	e.Attributes().PutStr(spans.AttrVerdictReason, name+" because")
}

// TestGolden: the records from the output of train_perf and step_join for every kind of log.
func TestGolden(t *testing.T) {
	for want, from := range map[string]string{
		"tq.yaml":    "trainperfprocessor/testdata/want.yaml",
		"train.yaml": "trainperfprocessor/testdata/train_want.yaml",
		"rpc.yaml":   "trainperfprocessor/testdata/zmq_want.yaml",
		"nccl.yaml":  "trainperfprocessor/testdata/nccl_want.yaml",
		"step.yaml":  "stepjoinprocessor/testdata/slow_step.yaml",
		"batch.yaml": "stepjoinprocessor/testdata/slow_batch.yaml",
		"pass.yaml":  "stepjoinprocessor/testdata/slow_pass.yaml",
	} {
		t.Run(want, func(t *testing.T) {
			td, err := golden.ReadTraces(filepath.Join("..", "..", "processors", filepath.FromSlash(from)))
			require.NoError(t, err)
			before := ptrace.NewTraces()
			td.CopyTo(before)
			b := newBed(t)
			require.NoError(t, b.ConsumeTraces(t.Context(), td))
			assert.Equal(t, before, td, "the spans are only read")
			require.Len(t, b.sent, 1)
			want := filepath.Join("testdata", want)
			if *update {
				require.NoError(t, golden.WriteLogs(t, want, b.sent[0]))
			}
			ld, err := golden.ReadLogs(want)
			require.NoError(t, err)
			require.NoError(t, plogtest.CompareLogs(ld, b.sent[0]))
			for _, r := range b.records() {
				assert.False(t, r.TraceID().IsEmpty() || r.SpanID().IsEmpty() || r.Body().Str() == "")
			}
		})
	}
}

// A batch whose spans have no verdict makes no call. A line about the end of a run is a record, once; an event of a run that succeeded is none.
func TestEvents(t *testing.T) {
	c := newBed(t)
	of := func() ptrace.Traces {
		b := spans.NewBatch("test", "")
		for i, class := range []string{"cuda_error", "ended"} {
			s := b.Add(spans.Resource{Service: "train", RunID: "r"}, spans.Span{
				Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{byte(i + 1)}, Name: spans.SpanEvent, Is: spans.KindEvent, Start: 1e18, End: 1e18 + 1e6,
			})
			s.Attributes().PutStr(spans.AttrEventClass, class)
			s.Attributes().PutStr(spans.AttrEventText, "CUDA error: x")
			if i == 0 {
				s.Status().SetCode(ptrace.StatusCodeError)
				s.Status().SetMessage("CUDA error: x")
			}
		}
		return b.Traces()
	}
	require.NoError(t, c.ConsumeTraces(t.Context(), of()))
	require.NoError(t, c.ConsumeTraces(t.Context(), of()))
	require.Len(t, c.sent, 1)
	records := c.sent[0].ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	require.Equal(t, 1, records.Len())
	r := records.At(0)
	assert.Equal(t, []any{"run.event", "CUDA error: x", "ERROR", int64(1e18)}, []any{r.EventName(), r.Body().Str(), r.SeverityText(), int64(r.Timestamp())})
	assert.Equal(t, "cuda_error", spans.AttrText(r.Attributes(), spans.AttrEventClass))
}

// A verdict about a span that is not exported is a record as usual, but without a trace id.
func TestRecordOnly(t *testing.T) {
	b := newBed(t)
	td := withVerdicts(0, 1, spans.VerdictNCCLLate)
	withVerdicts(1, 1, spans.VerdictNCCLLate).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	td.ResourceSpans().At(0).Resource().Attributes().PutBool(spans.AttrRecordOnly, true)
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	require.Len(t, b.records(), 2)
	assert.True(t, b.records()[0].TraceID().IsEmpty())
	assert.True(t, b.records()[0].SpanID().IsEmpty())
	assert.False(t, b.records()[1].TraceID().IsEmpty())
	_, ok := b.sent[0].ResourceLogs().At(0).Resource().Attributes().Get(spans.AttrRecordOnly)
	assert.False(t, ok)
}

func TestNothingToSay(t *testing.T) {
	b := newBed(t)
	require.NoError(t, b.ConsumeTraces(t.Context(), ptrace.NewTraces()))
	require.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(0, 10)))
	assert.Empty(t, b.sent)
}

// A verdict sent again within the window makes no second record, in the same batch or a later one.
func TestSentTwice(t *testing.T) {
	b := newBed(t)
	send := func(td ptrace.Traces) { require.NoError(t, b.ConsumeTraces(t.Context(), td)) }
	send(withVerdicts(0, 3, "a", "b", "a"))
	assert.Len(t, b.records(), 9, "two verdicts of one name about one span are two")
	send(withVerdicts(0, 3, "a", "b", "a"))
	send(withVerdicts(0, 4, "a"))
	assert.Len(t, b.records(), 10)
	b.clock = b.clock.Add(b.cfg.DedupWindow - 1)
	send(withVerdicts(3, 1, "a"))
	assert.Len(t, b.records(), 10)
	b.clock = b.clock.Add(2 * b.cfg.DedupWindow)
	send(withVerdicts(3, 1, "a"))
	assert.Len(t, b.records(), 11, "the window is over")

	twice := withVerdicts(7, 1, "a")
	withVerdicts(7, 1, "a").ResourceSpans().MoveAndAppendTo(twice.ResourceSpans())
	send(twice)
	assert.Len(t, b.records(), 12)
	b.counted(12, 9+3+1+1, 0)

	nameless := withVerdicts(0, 1, "a")
	nameless.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetSpanID(pcommon.SpanID{})
	send(nameless)
	send(nameless)
	assert.Len(t, b.records(), 14, "spans without an id cannot be told apart")
}

// Refused records are not known and use up no rate: the batch is sent again.
func TestRefused(t *testing.T) {
	b := newBed(t, func(c *Config) { c.RateLimit = 1 })
	b.err = errors.New("disk full")
	for range 20 {
		require.ErrorIs(t, b.ConsumeTraces(t.Context(), withVerdicts(0, 12, "a")), b.err)
	}
	b.err = nil
	require.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(0, 12, "a")))
	assert.Len(t, b.records(), 10)
	b.counted(10, 0, 2)
}

// A permanent refusal is not the spans' fault: the records are counted, a warning is logged once, and no spans are sent again.
func TestRefusedForGood(t *testing.T) {
	b := newBed(t)
	b.err = consumererror.NewPermanent(errors.New("entry too far behind"))
	for range 2 {
		require.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(0, 3, "a")))
	}
	metadatatest.AssertEqualConnectorTrainVerdictsRefused(t, b.tel, []metricdata.DataPoint[int64]{{Value: 3}}, metricdatatest.IgnoreTimestamp())
	require.Equal(t, 1, b.said.Len())
	assert.Contains(t, b.said.All()[0].ContextMap()["error"], "entry too far behind")
	b.err = nil
	require.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(3, 1, "a")))
	b.counted(1, 3, 0)
}

// The rate is bounded, excess verdicts are counted once each, and a warning is logged once.
func TestRate(t *testing.T) {
	b := newBed(t, func(c *Config) { c.RateLimit = 2 })
	send := func(first, n int) { require.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(first, n, "a"))) }
	send(0, 30)
	assert.Len(t, b.records(), 20, "ten seconds' records at once")
	send(0, 30) // again
	b.counted(20, 30, 10)
	b.clock = b.clock.Add(1500 * time.Millisecond)
	send(30, 10)
	assert.Len(t, b.records(), 23)
	b.clock = b.clock.Add(-time.Hour) // set back
	send(40, 1)
	assert.Len(t, b.records(), 23)
	b.clock = b.clock.Add(time.Hour + time.Minute)
	send(50, 100)
	assert.Len(t, b.records(), 43, "a long pause does not add up")
	b.counted(43, 30, 10+7+1+80)
	assert.Equal(t, 1, b.said.Len())
}

// A record has the severity of its verdict: as its event says, else the registry's, else the span's.
func TestSeverity(t *testing.T) {
	const bad = spans.VerdictNCCLStraggler
	for name, tt := range map[string]struct {
		verdict, own, worst string
		want                plog.SeverityNumber
		text                string
	}{
		"as the registry says": {bad, "", spans.SeverityBad, plog.SeverityNumberError, "ERROR"},
		"beside a bad one":     {spans.VerdictStepSlow, "", spans.SeverityBad, plog.SeverityNumberWarn, "WARN"},
		"milder than usual":    {bad, spans.SeverityWarning, spans.SeverityBad, plog.SeverityNumberWarn, "WARN"},
		"the span says none":   {bad, "", "", plog.SeverityNumberError, "ERROR"},
		"of another writer":    {"lunar_eclipse", "", spans.SeverityBad, plog.SeverityNumberError, "ERROR"},
		"of an unknown kind":   {"lunar_eclipse", "", "dire", plog.SeverityNumberUnspecified, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b, td := newBed(t), withVerdicts(0, 1, tt.verdict)
			span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			span.Attributes().PutStr(spans.AttrVerdictSeverity, tt.worst)
			if tt.own != "" {
				span.Events().At(0).Attributes().PutStr(spans.AttrVerdictSeverity, tt.own)
			}
			require.NoError(t, b.ConsumeTraces(t.Context(), td))
			r := b.records()[0]
			assert.Equal(t, tt.want, r.SeverityNumber())
			assert.Equal(t, tt.text, r.SeverityText())
		})
	}
}

// Events of foreign writers may lack any attribute, or have attributes of any type.
func TestStrangeEvents(t *testing.T) {
	b, td := newBed(t), withVerdicts(0, 1)
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	s.Events().AppendEmpty().SetName("exception")
	s.Events().AppendEmpty().SetName(spans.EventVerdict)
	e := s.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(5)
	e.Attributes().PutInt(spans.AttrVerdictName, 7)
	e.Attributes().PutDouble(spans.AttrVerdictValue, math.NaN())
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	records := b.records()
	require.Len(t, records, 2)
	assert.Equal(t, s.EndTimestamp(), records[0].Timestamp(), "the event has no time")
	assert.Equal(t, pcommon.Timestamp(5), records[1].Timestamp())
	assert.Equal(t, map[string]any{spans.AttrVerdictName: ""}, records[1].Attributes().AsRaw())
}

// Calls come from many goroutines.
func TestConcurrent(t *testing.T) {
	b := newBed(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 3 {
				assert.NoError(t, b.ConsumeTraces(t.Context(), withVerdicts(100*i, 100, "a")))
			}
		})
	}
	wg.Wait()
	assert.Len(t, b.records(), 800)
	b.counted(800, 1600, 0)
}

// BenchmarkHealthy: most batches have no verdict.
func BenchmarkHealthy(b *testing.B) { bench(b, 8192) }

// BenchmarkSick: one span in a hundred has a verdict.
func BenchmarkSick(b *testing.B) { bench(b, 8110, spans.VerdictTQOverhead) }

func bench(b *testing.B, healthy int, names ...string) {
	b.Helper()
	c := newBed(b, func(c *Config) { c.RateLimit = maxRate })
	td := withVerdicts(0, healthy)
	withVerdicts(healthy, 8192-healthy, names...).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	b.ReportAllocs()
	for b.Loop() {
		c.clock = c.clock.Add(2 * c.cfg.DedupWindow)
		c.sent = nil
		if c.ConsumeTraces(b.Context(), td) != nil {
			b.Fatal("refused")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8192, "ns/span")
}
