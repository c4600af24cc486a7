package trainperfprocessor

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// carry gives a function the shares that package bridge measures itself.
func carry(f ptrace.Span, get, compute, put any) ptrace.Span {
	for name, v := range map[string]any{
		spans.AttrTQGetUtilization: get, spans.AttrTQComputeUtilization: compute, spans.AttrTQPutUtilization: put,
	} {
		if v == nil {
			continue
		}
		value := f.Attributes().PutEmpty(name)
		if err := value.FromRaw(v); err != nil {
			panic(err)
		}
	}
	return f
}

func carryAll(f ptrace.Span, get, compute, put float64) ptrace.Span {
	carry(f, get, compute, put)
	f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, get+put)
	f.Attributes().PutDouble(spans.AttrTQUnattributedUtilization, 1-get-compute-put)
	return f
}

func TestCarriedShares(t *testing.T) {
	stages := []stageSpan{{"get", 0, 900}, {"compute", 900, 950}, {"put", 950, 1000}} // they say something else
	for name, tt := range map[string]struct {
		get, compute, put any
		overhead          any
		children          []stageSpan
		change            func(ptrace.Span)
		want              []string
		reason            string
	}{
		"good":                  {get: 0.05, compute: 0.85, put: 0.05, want: []string{spans.VerdictTQComputeShareGood}},
		"nothing to say":        {get: 0.05, compute: 0.70, put: 0.05},
		"elevated":              {get: 0.15, compute: 0.7, put: 0.10, want: []string{spans.VerdictTQOverheadElevated}, reason: "TransferQueue took 25% of the 0.000001 s of rollout (GET 15%, PUT 10%), not below the target of 20%: "},
		"high":                  {get: 0.25, compute: 0.5, put: 0.15, want: []string{spans.VerdictTQOverheadHigh}, reason: "TransferQueue took 40% of the 0.000001 s of rollout (GET 25%, PUT 15%), above the limit of 30%: "},
		"stages here":           {get: 0.05, compute: 0.85, put: 0.05, children: stages, want: []string{spans.VerdictTQComputeShareGood}},
		"some of them here":     {get: 0.05, compute: 0.70, put: 0.05, children: stages[:1]},
		"overhead is theirs":    {get: 0.05, compute: 0.70, put: 0.05, overhead: 0.35, want: []string{spans.VerdictTQOverheadHigh}, reason: "(GET 5%, PUT 5%), above"},
		"overhead only":         {overhead: 0.35, want: []string{spans.VerdictTQOverheadHigh}, reason: "TransferQueue took 35% of the 0.000001 s of rollout, above the limit of 30%: "},
		"compute only":          {compute: 0.85, want: []string{spans.VerdictTQComputeShareGood}},
		"get only":              {get: 0.85},
		"whole numbers":         {get: int64(1), compute: int64(0), put: int64(0), want: []string{spans.VerdictTQOverheadHigh}, reason: "(GET 100%, PUT 0%)"},
		"no numbers":            {get: "0.9", compute: true, put: []any{0.9}, children: stages},
		"overlapping stages":    {get: 0.9, compute: 0.9, put: 0.9, want: []string{spans.VerdictTQOverheadHigh}, reason: "took 180% of"},
		"incomplete":            {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.Attributes().PutBool(spans.AttrIncomplete, true) }},
		"no duration":           {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.SetEndTimestamp(f.StartTimestamp()) }},
		"ends before its start": {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) { f.SetEndTimestamp(f.StartTimestamp() - 1) }},
		"judged before": {get: 0.9, compute: 0.0, put: 0.0, change: func(f ptrace.Span) {
			f.Attributes().PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr("mine")
		}, want: []string{"mine"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := carry(addFunction(b, 1, "rollout", base, 1000, tt.children...), tt.get, tt.compute, tt.put)
			if tt.overhead != nil {
				f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, tt.overhead.(float64))
			}
			if tt.change != nil {
				tt.change(f)
			}
			before := f.Attributes().AsRaw()
			process(t, newTest(t), b.Traces())
			after := f.Attributes().AsRaw()
			assert.Equal(t, tt.want, verdicts(f))
			if _, judged := before[spans.AttrVerdict]; !judged {
				delete(after, spans.AttrVerdict)
				delete(after, spans.AttrVerdictSeverity)
				for _, name := range verdicts(f) {
					delete(after, spans.AttrVerdictPrefix+name)
				}
				delete(after, spans.AttrSummary)
			}
			assert.Equal(t, before, after, "what the service measured stays, and nothing else is added")
			if tt.reason == "" {
				assert.Empty(t, reasons(f))
			} else if assert.Len(t, reasons(f), 1) {
				assert.Contains(t, reasons(f)[0], tt.reason)
			}
		})
	}
}

// service is what a Go service sends in the order in which its spans end: 60 functions of 500 ms, of which GET takes 20 and 200 ms in turn.
func service() ptrace.Traces {
	b := spans.NewBatch("github.com/trainbridge/trainbridge/bridge", "")
	for i := range 60 {
		get := int64(1+i%2*9) * 20_000_000
		f := addFunction(b, 10*i+10, "rollout", base+int64(i)*1e9, 500_000_000,
			stageSpan{"get", 0, get}, stageSpan{"compute", get, 400_000_000}, stageSpan{"put", 400_000_000, 500_000_000})
		carryAll(f, float64(get)/5e8, float64(400_000_000-get)/5e8, 0.2)
	}
	td := b.Traces()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().Sort(func(a, b ptrace.Span) bool {
		return cmp.Or(cmp.Compare(a.EndTimestamp(), b.EndTimestamp()), cmp.Compare(b.StartTimestamp(), a.StartTimestamp())) < 0
	})
	return td
}

// split cuts a batch into several; cut says in which a span goes.
func split(td ptrace.Traces, cut func(i int, s ptrace.Span) int) []ptrace.Traces {
	var out []ptrace.Traces
	rs := td.ResourceSpans().At(0)
	for i, s := range rs.ScopeSpans().At(0).Spans().All() {
		n := cut(i, s)
		for len(out) <= n {
			one := ptrace.NewTraces()
			to := one.ResourceSpans().AppendEmpty()
			rs.Resource().CopyTo(to.Resource())
			rs.ScopeSpans().At(0).Scope().CopyTo(to.ScopeSpans().AppendEmpty().Scope())
			out = append(out, one)
		}
		s.CopyTo(out[n].ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty())
	}
	return out
}

// cuts are ways in which an SDK may cut what a service sends.
var cuts = map[string]func(i int, s ptrace.Span) int{
	"one batch":               func(int, ptrace.Span) int { return 0 },
	"a batch per span":        func(i int, _ ptrace.Span) int { return i },
	"seven spans":             func(i int, _ ptrace.Span) int { return i / 7 },
	"stages before functions": func(_ int, s ptrace.Span) int { return btoi(stageOf(s) == spans.TQFunction) },
	"functions before stages": func(_ int, s ptrace.Span) int { return btoi(stageOf(s) != spans.TQFunction) },
	"GET apart":               func(_ int, s ptrace.Span) int { return btoi(stageOf(s) != spans.TQGet) },
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func stageOf(s ptrace.Span) spans.TQStage {
	v, ok := s.Attributes().Get(spans.AttrTQStage)
	if !ok {
		return spans.TQNone
	}
	return spans.TQStageOf(v)
}

// TestSplitBatches: however the batches are cut, functions get the same verdicts, windows the same times, and times that fluctuate are told of once.
func TestSplitBatches(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			p := newTest(t)
			fluctuating, told := 0, ""
			for _, td := range split(service(), cut) {
				process(t, p, td)
				for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					names := verdicts(s)
					if i := slices.Index(names, spans.VerdictTQGetFluctuating); i >= 0 {
						names = slices.Delete(names, i, i+1)
						fluctuating++
						told = reasons(s)[len(reasons(s))-1]
					}
					if stageOf(s) != spans.TQFunction {
						assert.Empty(t, names)
						continue
					}
					// PUT takes a fifth, GET 4 % or 40 %.
					want := spans.VerdictTQOverheadElevated
					if i := int(binary.BigEndian.Uint64(sid(s))) / 10; i%2 == 0 { // ids begin with 10
						want = spans.VerdictTQOverheadHigh
					}
					assert.Equal(t, []string{want}, names)
				}
			}
			assert.Equal(t, 1, fluctuating, "once per window")
			// The 20th GET: ten of 20 ms and ten of 200 ms have the mean 110 ms and the deviation 90 ms.
			assert.Contains(t, told, "The GET times of rollout fluctuate: over the last 20 the standard deviation was 81.8% of the mean of 0.11 s")
			for st, want := range map[spans.TQStage]uint64{spans.TQGet: 30 * 220_000_000, spans.TQPut: 60 * 100_000_000} {
				w, ok := p.tq.windows.byKey.Peek(windowKey{service: "verl", run: "run-1", function: "rollout", stage: st})
				require.True(t, ok)
				assert.Len(t, w.ns, 60)
				assert.Equal(t, want, w.sum)
			}
			assert.Equal(t, 2, p.tq.windows.byKey.Len())
		})
	}
}

func sid(s ptrace.Span) []byte {
	id := s.SpanID()
	return id[:]
}

// TestReplayedBatches: what passes again comes out the same, and a copy of what came in (an SDK that had no answer sends it again) gets no verdict about
// fluctuation a second time.
func TestReplayedBatches(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			p := newTest(t)
			for _, td := range split(service(), cut) {
				again := ptrace.NewTraces()
				td.CopyTo(again)
				process(t, p, td)
				once := ptrace.NewTraces()
				td.CopyTo(once)
				process(t, p, td)
				require.NoError(t, ptracetest.CompareTraces(once, td), "the second pass changed something")
				process(t, p, again)
				for i, s := range again.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
					first := verdicts(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i))
					first = slices.DeleteFunc(first, func(name string) bool { return name == spans.VerdictTQGetFluctuating })
					assert.ElementsMatch(t, first, verdicts(s))
				}
			}
			for _, k := range p.tq.windows.byKey.Keys() {
				w, _ := p.tq.windows.byKey.Peek(k)
				assert.Len(t, w.ns, 60)
			}
		})
	}
}

// TestGatewayBehindAnAgent: a gateway with other limits, that gets batches cut anew, changes nothing of what an agent has seen: verdicts, and that there are none.
func TestGatewayBehindAnAgent(t *testing.T) {
	logs := func() ptrace.Traces { // of tq_trace
		b := spans.NewBatch("tq_trace", "")
		for i := range 60 {
			get := int64(1+i%2*9) * 20_000_000
			addFunction(b, 10*i+10, "rollout", base+int64(i)*1e9, 500_000_000, stageSpan{"get", 0, get}, stageSpan{"compute", get, 499_000_000}, stageSpan{"put", 499_000_000, 500_000_000})
			addFunction(b, 10*i+15, "short", base+int64(i)*1e9, 1000, stageSpan{"get", 0, 10}, stageSpan{"compute", 10, 500})
			addClient(b, 10*i+19, 0, spans.StageClientPut, base, get).Attributes().PutDouble(spans.AttrTQThroughput, 300*mib)
		}
		return b.Traces()
	}
	for from, build := range map[string]func() ptrace.Traces{"service": service, "log": logs} {
		for name, cut := range cuts {
			t.Run(from+" "+name, func(t *testing.T) {
				agent := newTest(t)
				gateway := newTest(t, func(c *TQConfig) {
					c.ComputeShareGood, c.OverheadElevated, c.OverheadHigh, c.ThroughputLow, c.ThroughputGood = 0.01, 0.001, 0.001, 400, 400
					c.Fluctuation = FluctuationConfig{Threshold: 0.01, Window: 10, MinSamples: 2}
				})
				td := build()
				process(t, agent, td)
				for _, part := range split(td, cut) {
					raw, err := new(ptrace.ProtoMarshaler).MarshalTraces(part)
					require.NoError(t, err)
					got, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(raw)
					require.NoError(t, err)
					process(t, gateway, got)
					require.NoError(t, ptracetest.CompareTraces(part, got))
				}
				assert.Zero(t, gateway.tq.windows.byKey.Len(), "the agent has these times")
			})
		}
	}
}

// TestStageWithoutFunction: a stage that stands in a span of another kind has a window too, but for one that nothing names and one that did not end.
func TestStageWithoutFunction(t *testing.T) {
	p := newTest(t)
	add := func(b *spans.Batch, id int, stage string, ns int64) ptrace.Span {
		s := addClient(b, id, 9999, stage, base+int64(id)*1e9, ns)
		s.SetKind(ptrace.SpanKindInternal)
		return s
	}
	b := spans.NewBatch("test", "")
	for i := range 40 {
		add(b, 10*i+1, "get", int64(1+i%2*9)*1e6)
		add(b, 10*i+2, "compute", int64(1+i%2*9)*1e6)
		add(b, 10*i+3, "put", int64(1+i%2*9)*1e6).Attributes().Remove(spans.AttrTQFunction)
		add(b, 10*i+4, "put", int64(1+i%2*9)*1e6).Attributes().PutBool(spans.AttrIncomplete, true)
		add(b, 10*i+5, "put", -int64(1+i%2*9)*1e6)
	}
	process(t, p, b.Traces())
	assert.Equal(t, 1, p.tq.windows.byKey.Len())
	told := 0
	for _, s := range b.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		if names := verdicts(s); names != nil {
			told++
			assert.Equal(t, []string{spans.VerdictTQGetFluctuating}, names)
			assert.Equal(t, spanID(191), s.SpanID(), "the 20th")
		}
	}
	assert.Equal(t, 1, told)
}

// TestCarriedWithOpenStage: a stage that was not seen to its end is in no window.
func TestCarriedWithOpenStage(t *testing.T) {
	p := newTest(t)
	b := spans.NewBatch("test", "")
	carryAll(addFunction(b, 10, "rollout", base, 1000, stageSpan{"get", 0, 100}, stageSpan{"get", 100, 50}), 0.1, 0.7, 0)
	process(t, p, b.Traces())
	w, ok := p.tq.windows.byKey.Peek(windowKey{service: "verl", run: "run-1", function: "rollout", stage: spans.TQGet})
	require.True(t, ok)
	assert.Equal(t, []uint64{100}, w.ns)
}

func TestScopesAreMarked(t *testing.T) {
	p := newTest(t)
	b := spans.NewBatch("test", "")
	addFunction(b, 1, "rollout", base, 1000)
	addStep(b, job, 7, 0.5, nil)
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
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings())
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	zeromq := attrs{"rpc.system.name": "zeromq", "rpc.method": "GetBatch", "zeromq.call.duration": 1.0, "zeromq.serialize.duration": 0.9, "zeromq.transport": "TCP", "zeromq.pass.calls": int64(99)}
	for i, name := range []string{"GetBatch", "rpc.GetBatch", spans.SpanRPCPass, spans.SpanRPCCalls, spans.SpanRPCSession, spans.SpanRPCSerialize, "rpc."} {
		addRPC(b, 10*i+1, 0, name, ptrace.SpanKindClient, zeromq)
		addRPC(b, 10*i+2, 10*i+1, spans.SpanRPCSerialize, ptrace.SpanKindInternal, nil)
		addRPC(b, 10*i+3, 10*i+1, spans.SpanRPCServer, ptrace.SpanKindInternal, nil)
	}
	for i, kind := range []ptrace.SpanKind{ptrace.SpanKindClient, ptrace.SpanKindServer} {
		addRPC(b, 100+i, 0, "rpc.data.v1.Data/Get", kind, attrs{
			"rpc.system.name": "grpc", "rpc.method": "rpc.data.v1.Data/Get", "rpc.response.status_code": "OK", "server.address": "10.4.1.33", "server.port": int64(50051),
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
	f := carryAll(addFunction(b, 1, "rpc.generate", base, 1000), 0.5, 0.2, 0.1)
	process(t, p, b.Traces())
	assert.Equal(t, []string{spans.VerdictTQOverheadHigh}, verdicts(f))
	metadatatest.AssertEqualProcessorTrainPerfFunctions(t, tel, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("outcome", "self_measured"))},
	}, metricdatatest.IgnoreTimestamp())
}

// TestStepsOfServices: an SDK's user may set a whole number where a share is expected, and a double where a count is.
func TestStepsOfServices(t *testing.T) {
	const seconds, batch = 2, 32
	want := map[string]float64{
		spans.AttrFlopCount: aquilaMegatron, spans.AttrDeviceFlopThroughput: aquilaMegatron / seconds / 8, spans.AttrSamples: 10 * batch, spans.AttrTokens: 10 * batch * 2048,
	}
	whole := attrs{
		spans.AttrSource: "go", spans.AttrStepDuration: int64(seconds), spans.AttrBatchSize: int64(batch), spans.AttrLoss: int64(3), spans.AttrRank: int64(3), spans.AttrWorldSize: int64(8),
		spans.AttrIteration: int64(7), spans.AttrStepsCovered: int64(10), spans.AttrStepDurationKind: nil,
	}
	double := attrs{
		spans.AttrSource: "go", spans.AttrStepDuration: float64(seconds), spans.AttrBatchSize: float64(batch), spans.AttrLoss: 3.0, spans.AttrRank: 3.0, spans.AttrWorldSize: 8.0,
		spans.AttrIteration: 7.0, spans.AttrStepsCovered: 10.0, spans.AttrStepDurationKind: nil,
	}
	m := aquila
	m.GlobalBatchSize, m.WorldSize = 0, 0
	for name, a := range map[string]attrs{"whole": whole, "double": double} {
		p, _ := newTrainTest(t, onH100, withModel(m))
		numbers(t, oneStep(t, p, job, seconds, a), want)
		require.Equal(t, 2, p.train.series.byKey.Len(), name) // of samples/s and of the loss
		for _, k := range p.train.series.byKey.Keys() {
			assert.Equal(t, int64(3), k.rank, name)
		}
	}
	// What is no number says nothing, and neither does a number that cannot be.
	for _, odd := range []any{"7", true, []any{int64(1)}, map[string]any{"a": 1.5}, 1.5, 1e300, -1e300} {
		a := attrs{}
		for name := range whole {
			a[name] = odd
		}
		p, _ := newTrainTest(t, onH100, withModel(m))
		s := oneStep(t, p, job, seconds, a)
		for _, name := range []string{spans.AttrSamples, spans.AttrFlopCount} {
			if v, ok := s.Attributes().Get(name); ok {
				assert.GreaterOrEqual(t, spans.ValueNumber(v), 0.0, fmt.Sprint(odd))
			}
		}
		assert.NotContains(t, verdicts(s), spans.VerdictSlowdown)
	}
}

func TestIntegerOf(t *testing.T) {
	for _, tt := range []struct {
		v    any
		want int64
		ok   bool
	}{
		{int64(-5), -5, true},
		{8.0, 8, true},
		{-8.0, -8, true},
		{8.5, 0, false},
		{1e300, 0, false},
		{"8", 0, false},
		{nil, 0, false},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(tt.v))
		got, ok := integerOf(v)
		assert.Equal(t, tt.want, got, tt.v)
		assert.Equal(t, tt.ok, ok, tt.v)
	}
}
