package trainperfprocessor

import (
	"context"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// newTest starts a processor; warnings go to the returned log.
func newTest(tb testing.TB, change ...func(*Config)) (*trainPerf, *observer.ObservedLogs) {
	tb.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, f := range change {
		f(cfg)
	}
	require.NoError(tb, cfg.Validate())
	core, logs := observer.New(zapcore.WarnLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	p, err := newTrainPerf(cfg, set, devices.New(), func() {})
	require.NoError(tb, err)
	require.NoError(tb, p.start(context.Background(), nil))
	return p, logs
}

func oneStep(tb testing.TB, p *trainPerf, res spans.Resource, seconds float64, a perftest.Attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	s := perftest.AddStep(b, res, 7, seconds, a)
	process(tb, p, b.Traces())
	return s
}

func onH100(c *Config) { c.Train.Device = "NVIDIA H100 80GB HBM3" }

func withAquila(c *Config) { c.Train.Model.Model = perftest.Aquila }

func process(tb testing.TB, p *trainPerf, td ptrace.Traces) {
	tb.Helper()
	_, err := p.processTraces(context.Background(), td)
	require.NoError(tb, err)
	if _, bench := tb.(*testing.B); !bench {
		perftest.Spread(td)
	}
}

func TestOwnTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	perftest.AddFunction(b, 10, "a", perftest.Base, 1000, perftest.Stage{Name: "get", To: 10})
	perftest.AddFunction(b, 20, "a", perftest.Base, 1000)
	perftest.AddFunction(b, 30, "a", perftest.Base, 0)
	perftest.AddFunction(b, 40, "a", perftest.Base, 1000).Attributes().PutBool(spans.AttrIncomplete, true)
	perftest.Carry(perftest.AddFunction(b, 50, "a", perftest.Base, 1000), 0.1, 0.5, 0.1)
	lost := perftest.AddFunction(b, 60, "a", perftest.Base, 1000).Attributes()
	part := perftest.AddFunction(b, 70, "a", perftest.Base, 1000, perftest.Stage{Name: "get", To: 10}).Attributes()
	for _, m := range []pcommon.Map{lost, part} {
		spans.PutIncomplete(m, "stage_missing")
		for _, name := range []string{spans.AttrTQGetUtilizationReported, spans.AttrTQComputeUtilizationReported, spans.AttrTQPutUtilizationReported} {
			m.PutDouble(name, 0.01)
		}
	}
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfFunctions(t, tel, []metricdata.DataPoint[int64]{
		point("measured", 1), point("already_measured", 7), point("no_stages", 2), point("partly_reported", 1), point("no_duration", 1), point("incomplete",
			1), point("self_measured", 1),
	}, metricdatatest.IgnoreTimestamp())
}

func TestStepTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	cfg := createDefaultConfig().(*Config)
	onH100(cfg)
	p, err := newTrainPerf(cfg, tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	known, noBatch := perftest.Job, perftest.Job
	known.Model = &perftest.Aquila
	m := perftest.Aquila
	m.GlobalBatchSize = 0
	noBatch.Model = &m
	b := spans.NewBatch("test", "")
	perftest.AddStep(b, known, 1, 1, nil)
	perftest.AddStep(b, known, 2, 1, perftest.Attrs{spans.AttrStepDuration: nil, spans.AttrTimePoint: true})
	perftest.AddStep(b, noBatch, 3, 1, nil)
	perftest.AddStep(b, perftest.Job, 4, 1, nil)
	perftest.AddStep(b, perftest.Job, 5, 1, perftest.Attrs{spans.AttrDeviceFlopThroughputReported: 400e12})
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfSteps(t, tel, []metricdata.DataPoint[int64]{
		point("measured", 1), point("no_time", 3), point("no_model", 1), point("reported", 1), point("already_measured", 4),
	}, metricdatatest.IgnoreTimestamp())
}

func TestZMQOwnTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	// measured, then already
	perftest.AddPass(b, 1, 2, perftest.RealPass)
	// measured, then already
	perftest.AddGroup(b, 100, spans.SpanRPCCalls, perftest.FastPass)
	perftest.AddGroup(b, 200, spans.SpanRPCSession, perftest.Attrs{spans.AttrZMQCallDuration: 1.0}) // no stages, twice
	// no duration, twice
	perftest.AddGroup(b, 300, spans.SpanRPCPass, perftest.Attrs{spans.AttrZMQSendDuration: 1.0})
	// no duration, then the verdict about the calls
	perftest.AddGroup(b, 400, spans.SpanRPCPass, perftest.Attrs{spans.AttrZMQCallDuration: math.NaN(), spans.AttrZMQPassCalls: int64(999)})
	perftest.AddGroup(b, 500, spans.SpanRPCSummary, perftest.RealPass)
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfRPCGroups(t, tel, []metricdata.DataPoint[int64]{
		point("measured", 2), point("no_stages", 2), point("no_duration", 3), point("already_measured", 3),
	}, metricdatatest.IgnoreTimestamp())
}

func TestNCCLOwnTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	for i := range 3 {
		perftest.AddCollective(b, 100+i, "AllReduce", perftest.AllReduce) // no verdict, twice
		perftest.AddRank(b, 200+i, 100+i, i)
	}
	for i := range 2 {
		perftest.AddCollective(b, 300+i, "Send", perftest.Attrs{spans.AttrNCCLRanks: int64(1), spans.AttrNCCLErrors: int64(1)}) // judged, then already
	}
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfCollectives(t, tel, []metricdata.DataPoint[int64]{
		point("judged", 2), point("no_verdict", 6), point("already_judged", 2),
	}, metricdatatest.IgnoreTimestamp())
	_, err = tel.GetMetric("otelcol_processor_train_perf_functions")
	require.Error(t, err, "none was taken for a function")
}

// TestGolden runs the whole component on a batch of each domain.
func TestGolden(t *testing.T) {
	for name, tt := range map[string]struct {
		in, want string
		change   func(*Config)
	}{
		"a function of every kind": {in: "in.yaml", want: "want.yaml"},
		"steps of several sources": {in: "train_in.yaml", want: "train_want.yaml", change: func(cfg *Config) {
			onH100(cfg)
			cfg.Train.Recompute = "full"
		}},
		"a session, a pass, a pass that ended early, and calls of no pass":                    {in: "zmq_in.yaml", want: "zmq_want.yaml"},
		"a healthy collective, one that hangs, one with a late rank, and a Send with retries": {in: "nccl_in.yaml", want: "nccl_want.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := golden.ReadTraces(filepath.Join("testdata", tt.in))
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			if tt.change != nil {
				tt.change(cfg)
			}
			sink := new(consumertest.TracesSink)
			p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), cfg, sink)
			require.NoError(t, err)
			assert.True(t, p.Capabilities().MutatesData)
			require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
			require.NoError(t, p.ConsumeTraces(context.Background(), in))
			require.NoError(t, p.Shutdown(context.Background()))
			require.Len(t, sink.AllTraces(), 1)
			compare(t, tt.want, sink.AllTraces()[0])
		})
	}
}

var update = flag.Bool("update", false, "write the golden files anew")

// compare compares with a golden file.
func compare(t *testing.T, file string, got ptrace.Traces) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, golden.WriteTracesToFile(path, got))
	}
	want, err := golden.ReadTraces(path)
	require.NoError(t, err)
	require.NoError(t, ptracetest.CompareTraces(want, got, ptracetest.IgnoreSpansOrder()))
}

// TestZMQBesideTheOtherDomains: one batch with a TransferQueue function, a step and a pass; RPC attributes do not disturb TransferQueue.
func TestZMQBesideTheOtherDomains(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := perftest.AddFunction(b, 1, "rollout", perftest.Base, 1000, perftest.Stage{Name: "get", To: 400}, perftest.Stage{Name: "compute", From: 400, To: 1000})
	f.Attributes().PutStr(spans.AttrRPCSystem, spans.RPCSystemZeroMQ) // an attribute set by someone else
	c := perftest.AddRPC(b, 10, 0, "tq.client_get", ptrace.SpanKindClient, perftest.Attrs{spans.AttrRPCSystem: "grpc"})
	c.Attributes().PutStr(spans.AttrTQStage, spans.StageClientGet)
	c.Attributes().PutDouble(spans.AttrTQThroughput, perftest.MiB)
	g := perftest.AddGroup(b, 20, spans.SpanRPCPass, perftest.RealPass)
	s := perftest.AddStep(b, perftest.Job, 7, 0.5, perftest.Attrs{spans.AttrBatchSize: int64(32)})
	p, _ := newTest(t)
	process(t, p, b.Traces())
	assert.Equal(t, []string{spans.VerdictTQOverhead}, perftest.Verdicts(f))
	assert.Equal(t, []string{spans.VerdictTQThroughputLow}, perftest.Verdicts(c))
	assert.Equal(t, []string{spans.VerdictZMQCallsHigh}, perftest.Verdicts(g))
	perftest.Numbers(t, s, map[string]float64{spans.AttrSamples: 32})
}

// TestNCCLBesideTheOtherDomains: one batch with a TransferQueue function, a step, a pass and a collective, with the ranks of the collective in between.
func TestNCCLBesideTheOtherDomains(t *testing.T) {
	b := spans.NewBatch("test", "")
	failed := perftest.AllReduce.With(perftest.Attrs{spans.AttrNCCLErrors: int64(3)})
	c1 := perftest.AddCollective(b, 1000, "AllReduce", failed)
	f := perftest.AddFunction(b, 1, "AllReduce", perftest.Base, 1000, perftest.Stage{Name: "get", To: 400},
		perftest.Stage{Name: "compute", From: 400, To: 1000}) // a collective's name, not a function's
	for i := range 10 {
		perftest.AddRank(b, 1001+i, 1000, i)
	}
	g := perftest.AddGroup(b, 20, spans.SpanRPCPass, perftest.RealPass)
	// Attributes of TransferQueue do not turn a collective into a function.
	c2 := perftest.AddCollective(b, 2000, "AllGather", failed.With(perftest.Attrs{spans.AttrTQStage: spans.StageFunction, spans.AttrTQFunction: "rollout"}))
	s := perftest.AddStep(b, perftest.Job, 7, 0.5, perftest.Attrs{spans.AttrBatchSize: int64(32)})
	p, _ := newTest(t)
	process(t, p, b.Traces())
	assert.Equal(t, []string{spans.VerdictTQOverhead}, perftest.Verdicts(f))
	assert.Equal(t, []string{spans.VerdictZMQCallsHigh}, perftest.Verdicts(g))
	perftest.Numbers(t, s, map[string]float64{spans.AttrSamples: 32})
	for _, c := range []ptrace.Span{c1, c2} {
		assert.Equal(t, []string{spans.VerdictNCCLErrors}, perftest.Verdicts(c))
		assert.False(t, perftest.Has(c, spans.AttrTQComputeUtilization))
	}
}

func TestScopesAreMarked(t *testing.T) {
	p, _ := newTest(t)
	b := spans.NewBatch("test", "")
	perftest.AddFunction(b, 1, "rollout", perftest.Base, 1000)
	perftest.AddStep(b, perftest.Job, 7, 0.5, nil)
	td := b.Traces()
	process(t, p, td)
	for _, rs := range td.ResourceSpans().All() {
		_, marked := rs.ScopeSpans().At(0).Scope().Attributes().Get("trainbridge.tq.judged")
		assert.Equal(t, rs.ScopeSpans().At(0).Spans().At(0).Name() == "rollout", marked)
	}
}

// TestCallsOfServices: calls of a service stand in no pass and may have any name; otelgrpc's are not ours.
func TestCallsOfServices(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	zeromq := perftest.Attrs{
		"rpc.system.name": "zeromq", "rpc.method": "GetBatch", "zeromq.call.duration": 1.0, "zeromq.serialize.duration": 0.9,
		"zeromq.transport": "TCP", "zeromq.pass.calls": int64(99),
	}
	for i, name := range []string{"GetBatch", "rpc.GetBatch", spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession, spans.SpanRPCSerialize, "rpc."} {
		perftest.AddRPC(b, 10*i+1, 0, name, ptrace.SpanKindClient, zeromq)
		perftest.AddRPC(b, 10*i+2, 10*i+1, spans.SpanRPCSerialize, ptrace.SpanKindInternal, nil)
		perftest.AddRPC(b, 10*i+3, 10*i+1, spans.SpanRPCServer, ptrace.SpanKindInternal, nil)
	}
	for i, kind := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
		perftest.AddRPC(b, 100+i, 0, "rpc.data.v1.Data/Get", kind, perftest.Attrs{
			"rpc.system.name": "grpc", "rpc.method": "rpc.data.v1.Data/Get", "rpc.response.status_code": "OK", "server.address": "10.4.1.33",
			"server.port": int64(50051),
		})
	}
	before := ptrace.NewTraces()
	b.Traces().CopyTo(before)
	process(t, p, b.Traces())
	require.NoError(t, ptracetest.CompareTraces(before, b.Traces()), "nothing of theirs is judged")
	_, err = tel.GetMetric("otelcol_processor_train_perf_rpc_groups")
	require.Error(t, err, "none is a group")

	// A function may be called like a call.
	b = spans.NewBatch("test", "")
	f := perftest.CarryAll(perftest.AddFunction(b, 1, "rpc.generate", perftest.Base, 1000), 0.5, 0.2, 0.1)
	process(t, p, b.Traces())
	assert.Equal(t, []string{spans.VerdictTQOverhead}, perftest.Verdicts(f))
	metadatatest.AssertEqualProcessorTrainPerfFunctions(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("outcome", "self_measured"))},
	}, metricdatatest.IgnoreTimestamp())
}

func TestStepsConcurrently(t *testing.T) {
	p, _ := newTest(t, onH100, withAquila)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				b := spans.NewBatch("test", "")
				s := perftest.AddStep(b, perftest.Job, int64(1000*g+i), 0.5,
					perftest.Attrs{spans.AttrLoss: 2.0, spans.AttrDeviceModel: fmt.Sprint("Abacus ", i%3)})
				process(t, p, b.Traces())
				assert.InDelta(t, perftest.AquilaMegatron, perftest.Double(t, s, spans.AttrFlopCount), 1)
			}
		})
	}
	wg.Wait()
}

// TestVerdictStatus: a bad verdict is red in Jaeger, with its sentence, unless the span has an error of its own, or the config disables this; each verdict is a
// tag.
func TestVerdictStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		put    int64 // ns of 1000
		own    string
		status bool
		code   ptrace.StatusCode
		tags   []string
	}{
		"bad":             {450, "", true, ptrace.StatusCodeError, []string{spans.VerdictTQOverhead}},
		"warning":         {150, "", true, ptrace.StatusCodeUnset, []string{spans.VerdictTQOverhead}},
		"good":            {50, "", true, ptrace.StatusCodeUnset, nil},
		"never":           {450, "", false, ptrace.StatusCodeUnset, []string{spans.VerdictTQOverhead}},
		"an error before": {450, "CUDA out of memory", true, ptrace.StatusCodeError, []string{spans.VerdictTQOverhead}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.VerdictStatus = tt.status
			p, err := newTrainPerf(cfg, componenttest.NewNopTelemetrySettings(), devices.New(), func() {})
			require.NoError(t, err)
			b := spans.NewBatch("test", "")
			f := perftest.AddFunction(b, 1, "rollout", perftest.Base, 1000, perftest.Stage{Name: "get", To: 50},
				perftest.Stage{Name: "compute", From: 50, To: 1000 - tt.put}, perftest.Stage{Name: "put", From: 1000 - tt.put, To: 1000})
			want := ""
			if tt.own != "" {
				f.Status().SetCode(ptrace.StatusCodeError)
				f.Status().SetMessage(tt.own)
				want = tt.own
			}
			process(t, p, b.Traces())
			if tt.code == ptrace.StatusCodeError && want == "" {
				want = perftest.Reasons(f)[0]
			}
			assert.Equal(t, tt.code, f.Status().Code())
			assert.Equal(t, want, f.Status().Message())
			for _, name := range tt.tags {
				v, ok := f.Attributes().Get(spans.AttrVerdictPrefix + name)
				assert.True(t, ok && v.Bool(), name)
			}
		})
	}
}

// FuzzProcess: whatever OTLP holds, nothing panics and no span is lost or made.
func FuzzProcess(f *testing.F) {
	b := spans.NewBatch("test", "")
	perftest.AddFunction(b, 100, "rollout", perftest.Base, 914_024_000, perftest.Stage{Name: "get", To: 52_000_000},
		perftest.Stage{Name: "compute", From: 52_000_000, To: 852_000_000}, perftest.Stage{Name: "put", From: 852_000_000, To: 914_024_000}).
		Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.0569)
	perftest.AddClient(b, 200, 101, spans.StageClientGet, perftest.Base, 1e6).Attributes().PutDouble(spans.AttrTQThroughput, 1)
	odd := perftest.AddFunction(b, 300, "odd", math.MinInt64, 1, perftest.Stage{Name: "get", From: math.MinInt64, To: 0}, perftest.Stage{Name: "put", To: -1},
		perftest.Stage{Name: "get", To: math.MaxInt64})
	odd.Attributes().PutEmptyMap(spans.AttrIncomplete)
	odd.Attributes().PutEmptySlice(spans.AttrTQGetUtilizationReported)
	perftest.Carry(perftest.AddFunction(b, 350, "own", perftest.Base, 1000, perftest.Stage{Name: "get", To: 10}), int64(1), "0.5", 0.5)
	perftest.AddClient(b, 360, 9999, spans.StageGet, perftest.Base, 10)
	perftest.AddPass(b, 400, 2, perftest.RealPass)
	perftest.AddGroup(b, 500, spans.SpanRPCCalls, perftest.Attrs{spans.AttrZMQCallDuration: []any{1.0}, spans.AttrZMQTransport: map[string]any{"tcp": true}})
	perftest.AddCollective(b, 600, "AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteGap, int64(5))).With(perftest.Late(1, 0.5)))
	perftest.AddRank(b, 601, 600, 3)
	perftest.AddCollective(b, 700, "rpc.pass", perftest.Attrs{
		spans.AttrNCCLRanks: int64(2), spans.AttrNCCLHang: true,
		spans.AttrNCCLRanksMissing: []any{1.0, map[string]any{"a": true}},
	})
	raw, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
	require.NoError(f, err)
	f.Add(raw)
	p, _ := newTest(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(raw)
		if err != nil {
			return
		}
		n := td.SpanCount()
		process(t, p, td)
		once := ptrace.NewTraces()
		td.CopyTo(once)
		process(t, p, td)
		assert.Equal(t, n, td.SpanCount())
		a, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		b, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
		require.NoError(t, err)
		assert.Equal(t, a, b, "processing twice differs from processing once")
	})
}
