package ncclreceiver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
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
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trainbridge/trainbridge/internal/ncclras"
	"github.com/trainbridge/trainbridge/internal/ncclras/rastest"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// asked is a job and a receiver asking once a minute, by a clock of the test's own.
type asked struct {
	*rasPoller
	tel    *componenttest.Telemetry
	logs   *observer.ObservedLogs
	out    filereceivertest.Result
	refuse func(ptrace.Traces) error // the answer of the next component; nil: none
	at     time.Time
	job    *ncclras.Answer
}

func rasConfig(addr string) *Config {
	cfg := config()
	cfg.Collector = "node-1"
	ras := cfg.RAS.GetOrInsertDefault()
	ras.Endpoint = addr
	return cfg
}

func newAsked(t *testing.T, version string, change func(*Config)) *asked {
	t.Helper()
	l := &asked{job: rastest.Job(4), at: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), tel: componenttest.NewTelemetry()}
	t.Cleanup(func() { _ = l.tel.Shutdown(context.WithoutCancel(t.Context())) })
	cfg := rasConfig(rastest.Serve(t, version, func() *ncclras.Answer { return l.job }).Addr)
	if change != nil {
		change(cfg)
	}
	set := receivertest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = l.tel.NewTelemetrySettings()
	core, logs := observer.New(zapcore.DebugLevel)
	set.Logger, l.logs = zap.New(core), logs
	traces, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if l.refuse != nil {
			if err := l.refuse(td); err != nil {
				return err
			}
		}
		return l.out.Traces.ConsumeTraces(ctx, td)
	})
	require.NoError(t, err)
	metrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error { return l.out.Metrics.ConsumeMetrics(ctx, md) })
	require.NoError(t, err)
	_, err = filereceiver.Prepare(set, cfg, func(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
		parts, err := newParts(r, cfg)
		l.rasPoller = parts.Source.(*rasPoller)
		return parts, err
	}, traces, metrics)
	require.NoError(t, err)
	l.now = func() time.Time { return l.at }
	return l
}

// minutes asks n times.
func (l *asked) minutes(t *testing.T, n int) {
	t.Helper()
	for range n {
		l.at = l.at.Add(time.Minute)
		l.poll(t.Context())
	}
}

// forms are the forms of all spans until now.
func (l *asked) forms() (all []string) {
	for _, s := range l.out.All("") {
		all = append(all, strings.TrimPrefix(attr(s, spans.AttrEventForm), "ras."))
	}
	return all
}

func (l *asked) launch(but int, n uint64) {
	for i := range l.job.Communicators[0].Ranks {
		if i != but {
			l.job.Communicators[0].Ranks[i].Counts[4] += n
		}
	}
}

func (l *asked) counted(t *testing.T, name string) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	m, err := l.tel.GetMetric("otelcol_" + name)
	if err != nil {
		return all
	}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		v, _ := p.Attributes.Value("poll")
		all[v.AsString()] = p.Value
	}
	return all
}

// A job runs, hangs on a rank, and continues: the spans with every attribute.
func TestRASHang(t *testing.T) {
	l := newAsked(t, rastest.V2307, nil)
	for range 10 {
		l.launch(-1, 100)
		l.minutes(t, 1)
	}
	require.Empty(t, l.out.All(""), "a healthy job")
	l.launch(2, 1)
	l.minutes(t, 12)
	assert.Equal(t, []string{"behind", "behind"}, l.forms())
	l.launch(-1, 1)
	l.minutes(t, 1)
	all := l.out.All("")
	require.Len(t, all, 3)
	behind, hang, moved := all[0], all[1], all[2]
	trace, _ := spans.RunIDs("run")
	const text = "communicator 0xfa93daea854b060b of 4 ranks: rank 2 is behind ranks 0, 1, 3, and nobody of them has launched anything for %s " +
		"(AllReduce: 1 rank at 1000, 3 ranks at 1001). RAS counts launches: who is behind need not be the cause"
	want := map[string]any{
		spans.AttrKind: "event", spans.AttrEventClass: "nccl_ras", spans.AttrEventForm: "ras.behind", spans.AttrEventText: fmt.Sprintf(text, "2m0s"),
		spans.AttrNCCLCommID: "0xfa93daea854b060b", spans.AttrNCCLCommSize: int64(4), spans.AttrNCCLRASHeard: int64(4),
		spans.AttrNCCLRASCommunicators: int64(1), spans.AttrNCCLRASVersion: "2.30.7", spans.AttrNCCLRASStill: 120.0,
		spans.AttrNCCLRanksBehind: []any{int64(2)}, spans.AttrNCCLRanksBehindCount: int64(1),
		spans.AttrNCCLRanksAhead: []any{int64(0), int64(1), int64(3)}, spans.AttrNCCLRanksAheadCount: int64(3),
		spans.AttrNCCLRASCounts: []any{
			"Broadcast: 4 ranks at 0", "Reduce: 4 ranks at 0", "AllGather: 4 ranks at 0", "ReduceScatter: 4 ranks at 0", "AllReduce: 1 rank at 1000, 3 ranks at 1001",
		},
		spans.AttrNCCLRASProcesses: []any{"rank 2: 10.137.0.1, pid 323002, GPU 2"},
	}
	assert.Equal(t, want, own(behind))
	want[spans.AttrNCCLHang], want[spans.AttrNCCLRASStill], want[spans.AttrEventText] = true, 300.0, fmt.Sprintf(text, "5m0s")
	assert.Equal(t, want, own(hang))
	assert.Equal(t, ptrace.StatusCodeUnset, behind.Status().Code())
	assert.Equal(t, ptrace.StatusCodeError, hang.Status().Code())
	assert.Equal(t, fmt.Sprintf(text, "5m0s"), hang.Status().Message())
	for _, s := range all {
		assert.Equal(t, "run.event", s.Name())
		assert.Equal(t, trace, s.TraceID())
		assert.Equal(t, "observed", attr(s, spans.AttrTimeSource))
		assert.Equal(t, time.Millisecond, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()))
	}
	assert.Equal(t, "2026-11-26 12:13:00", behind.StartTimestamp().AsTime().Format(time.DateTime))
	assert.Equal(t, "communicator 0xfa93daea854b060b of 4 ranks goes on: collectives are launched again after 12m0s", attr(moved, spans.AttrEventText))
	assert.Equal(t, map[string]int64{"answered": 23}, l.counted(t, "trainbridge.nccl.ras.polls"))
	assert.Equal(t, 1, l.logs.FilterMessageSnippet("NCCL 2.30.7 answers for 1 communicators").Len())
	l.readGauges(t)
}

// own are the attributes of a span without its resource.
func own(s ptrace.Span) map[string]any {
	all := s.Attributes().AsRaw()
	for _, name := range []string{spans.AttrServiceName, spans.AttrRunID, spans.AttrTimeSource} {
		delete(all, name)
	}
	return all
}

// readGauges checks the gauges of TestRASHang: a value a minute in each of seven series.
func (l *asked) readGauges(t *testing.T) {
	t.Helper()
	series := make(map[string][]float64)
	for _, md := range l.out.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			assert.Equal(t, "run", spans.AttrText(rm.Resource().Attributes(), spans.AttrServiceInstanceID))
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					assert.Equal(t, "node-1", spans.AttrText(p.Attributes(), spans.AttrCollector))
					key := m.Name() + " " + spans.AttrText(p.Attributes(), spans.AttrNCCLRASState)
					series[key] = append(series[key], p.DoubleValue())
				}
			}
		}
	}
	require.Len(t, series, 7)
	assert.Len(t, series["nccl.ras.ranks heard"], 23)
	assert.InDelta(t, 3, series["nccl.ras.ranks heard"][20], 0)
	assert.InDelta(t, 1, series["nccl.ras.ranks behind"][20], 0)
	assert.InDelta(t, 0, series["nccl.ras.ranks behind"][22], 0)
	assert.InDelta(t, 600, series["nccl.ras.still "][20], 0)
	assert.InDelta(t, 0, series["nccl.ras.still "][22], 0)
}

// nccl#1730: no rank is named. A missing process is, with host and GPU; an error is reported at once.
func TestRASFindings(t *testing.T) {
	l := newAsked(t, rastest.V2307, nil)
	l.minutes(t, 1)
	l.launch(-1, 1)
	l.minutes(t, 10)
	require.Equal(t, []string{"still"}, l.forms())
	s := l.out.All("")[0]
	assert.Equal(t, ptrace.StatusCodeUnset, s.Status().Code())
	assert.Contains(t, attr(s, spans.AttrEventText), "nobody advanced for 5m0s: none of 4 GPUs")
	for _, name := range []string{spans.AttrNCCLCommID, spans.AttrNCCLRASProcesses, spans.AttrNCCLRanksBehind, spans.AttrNCCLHang} {
		assert.Empty(t, attr(s, name))
	}
	c := &l.job.Communicators[0]
	c.Ranks[0].AsyncError = 6
	c.Missing = []ncclras.Missing{{Rank: 3, Process: c.Ranks[3].Process, Unresponsive: true, Dead: true}}
	c.Ranks = c.Ranks[:3]
	l.minutes(t, 10)
	assert.Equal(t, []string{"still", "missing", "failed"}, l.forms())
	missing, failed := l.out.All("")[1], l.out.All("")[2]
	assert.Equal(t, []any{int64(3)}, own(missing)[spans.AttrNCCLRanksMissing])
	assert.Equal(t, []any{"rank 3: 10.137.0.1, pid 323003, GPU 3"}, own(missing)[spans.AttrNCCLRASProcesses])
	assert.Equal(t, ptrace.StatusCodeUnset, missing.Status().Code())
	assert.Equal(t, []any{"ncclRemoteError: rank 0"}, own(failed)[spans.AttrNCCLRASErrors])
	assert.Equal(t, ptrace.StatusCodeError, failed.Status().Code())
}

// With hash_hosts no host leaves.
func TestRASHosts(t *testing.T) {
	l := newAsked(t, rastest.V2307, func(cfg *Config) { cfg.Redact.HashHosts, cfg.Redact.HashKey = true, "a key of 16 bytes" })
	l.launch(2, 1)
	l.minutes(t, 3)
	require.Equal(t, []string{"behind"}, l.forms())
	assert.NotContains(t, l.out.Text(t), "10.137")
	assert.Regexp(t, `^rank 2: host-[0-9a-f]{16}, pid 323002, GPU 2$`, own(l.out.All("")[0])[spans.AttrNCCLRASProcesses].([]any)[0])
}

// Findings wait for an absent backend, bounded; refused findings are counted.
func TestRASBackend(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	l := newAsked(t, rastest.V2307, nil)
	away := func(ptrace.Traces) error { return errors.New("away") }
	l.refuse = away
	l.launch(2, 1)
	l.minutes(t, 10)
	require.Empty(t, l.forms())
	l.job.Communicators[0].Ranks[0].AsyncError = 6
	l.refuse = func(td ptrace.Traces) error {
		for _, s := range filereceivertest.Spans([]ptrace.Traces{td}, "") {
			if attr(s, spans.AttrEventForm) == "ras.failed" {
				return consumererror.NewPermanent(status.Error(codes.InvalidArgument, "no"))
			}
		}
		return nil
	}
	l.minutes(t, 1)
	assert.Equal(t, []string{"behind", "behind"}, l.forms())
	assert.Equal(t, map[string]int64{"": 1}, l.counted(t, "trainbridge.nccl.ras.lost"))

	l.refuse = away
	for range 2 * (maxWaiting + 10) {
		l.job.Communicators[0].Ranks[0].AsyncError ^= 6
		l.minutes(t, 1)
	}
	assert.Len(t, l.waiting, maxWaiting)
	assert.Equal(t, map[string]int64{"": 11}, l.counted(t, "trainbridge.nccl.ras.lost"))
}

// The reason for no answer is logged once, or at a change; without a job there are no warnings.
func TestRASOutcomes(t *testing.T) {
	for version, c := range map[string]struct {
		outcome, says string
		allow         bool
	}{
		rastest.V2283: {"old", "older than 2.28.7", true},
		rastest.V2289: {"risky", "'ras::allow_nccl_2_28: true' takes the risk", false},
	} {
		l := newAsked(t, version, func(cfg *Config) { cfg.RAS.Get().AllowNCCL228 = c.allow })
		l.minutes(t, 3)
		assert.Equal(t, map[string]int64{c.outcome: 3}, l.counted(t, "trainbridge.nccl.ras.polls"))
		assert.Equal(t, 1, l.logs.FilterMessageSnippet(c.says).Len())
		assert.Zero(t, l.out.Metrics.DataPointCount())
	}
	l := newAsked(t, rastest.V2289, func(cfg *Config) { cfg.RAS.Get().AllowNCCL228 = true })
	l.minutes(t, 1)
	answers := []error{
		ncclras.ErrAbsent, ncclras.ErrAbsent, ncclras.ErrTimeout, fmt.Errorf("%w: x", ncclras.ErrInvalid), fmt.Errorf("%w: x", ncclras.ErrInvalid),
	}
	for _, err := range answers {
		l.ask = func(context.Context) (*ncclras.Answer, error) { return nil, err }
		l.minutes(t, 1)
	}
	assert.Equal(t, map[string]int64{"answered": 1, "absent": 2, "timeout": 1, "invalid": 2}, l.counted(t, "trainbridge.nccl.ras.polls"))
	assert.Equal(t, 2, l.logs.FilterLevelExact(zapcore.WarnLevel).Len())
	assert.Equal(t, 2, l.logs.FilterLevelExact(zapcore.DebugLevel).Len())
}

// The receiver as the collector runs it: without files, beside files, and stopped while a question waits.
func TestRASRuns(t *testing.T) {
	answer := func() *ncclras.Answer {
		a := rastest.Job(2)
		a.Communicators[0].Ranks[1].AsyncError = 2
		return a
	}
	came := func(r *filereceivertest.Result) bool {
		return len(r.All("run.event")) > 0 && r.Metrics.DataPointCount() > 0
	}
	r := filereceivertest.Run(t, NewFactory(), rasConfig(rastest.Serve(t, rastest.V2307, answer).Addr), came)
	assert.Equal(t, "ras.failed", attr(r.All("run.event")[0], spans.AttrEventForm))

	cfg := rasConfig(rastest.Serve(t, rastest.V2307, answer).Addr)
	cfg.Include = []string{filereceivertest.Write(t, "inspector.log", inspectorLines("node-17", "TP")...)}
	r = filereceivertest.Run(t, NewFactory(), cfg, func(r *filereceivertest.Result) bool { return came(r) && len(r.All("AllReduce")) > 0 })
	assert.Len(t, r.All("run.event"), 1)

	var waits atomic.Bool
	cfg = rasConfig(rastest.Listen(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "SERVER PROTOCOL 2\n")
		waits.Store(true)
		_, _ = io.Copy(io.Discard, conn)
	}))
	f := NewFactory()
	c, err := f.CreateTraces(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, new(consumertest.TracesSink))
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, waits.Load, time.Minute, time.Millisecond)
	begun := time.Now()
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Less(t, time.Since(begun), 10*time.Second)
}
