package view

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// attr is an attribute of a test's span, in order.
type attr struct {
	name  string
	value any
}

func spanOf(tb testing.TB, name string, kind ptrace.SpanKind, attrs ...attr) ptrace.Span {
	tb.Helper()
	span := ptrace.NewSpan()
	span.SetName(name)
	span.SetKind(kind)
	for _, a := range attrs {
		require.NoError(tb, span.Attributes().PutEmpty(a.name).FromRaw(a.value))
	}
	return span
}

const internal, client, server = ptrace.SpanKindInternal, ptrace.SpanKindClient, ptrace.SpanKindServer

func TestKindOf(t *testing.T) {
	at := func(name string, value any) attr { return attr{name, value} }
	for name, c := range map[string]struct {
		span string
		kind ptrace.SpanKind
		has  []attr
		want Kind
	}{
		"first attribute":                 {"anything", internal, []attr{at(spans.AttrKind, "pass"), at(spans.AttrNCCLRanks, 2)}, KindPass},
		"not the first":                   {"f", internal, []attr{at(spans.AttrTimeSource, "logged"), at(spans.AttrKind, "function")}, KindFunction},
		"unknown to this version":         {"f", internal, []attr{at(spans.AttrKind, "tomorrow"), at(spans.AttrTQStage, "get")}, KindStage},
		"not text":                        {"train.step", internal, []attr{at(spans.AttrKind, 1)}, KindStep},
		"nothing":                         {"GET /", server, nil, KindOther},
		"step":                            {"train.step", internal, nil, KindStep},
		"step with a part's attribute":    {"train.step", internal, []attr{at(spans.AttrStage, "gen")}, KindStep},
		"ranks":                           {"train.ranks", internal, nil, KindRanks},
		"evaluation":                      {"train.evaluation", internal, nil, KindEvaluation},
		"run":                             {"train.run", internal, nil, KindRun},
		"summary":                         {"train.summary", internal, nil, KindSummary},
		"part":                            {"generate", internal, []attr{at(spans.AttrStage, "generate")}, KindPart},
		"part's rank":                     {"rank 3", internal, []attr{at(spans.AttrSource, "megatron"), at(spans.AttrRank, 3)}, KindPartRank},
		"rank":                            {"rank 3 gpu-1", internal, []attr{at(spans.AttrNCCLCommRank, 3)}, KindRank},
		"rank without a number":           {"nccl.rank", internal, nil, KindRank},
		"aggregate of ranks":              {"nccl.rank", internal, []attr{at(spans.AttrAggregateCount, 8)}, KindAggregate},
		"phase":                           {"nccl.wait", internal, nil, KindPhase},
		"channel":                         {"nccl.channel", internal, nil, KindChannel},
		"proxy":                           {"nccl.proxy.op", internal, nil, KindProxyOp},
		"proxy's step":                    {"nccl.proxy.step", internal, nil, KindProxyStep},
		"collective":                      {"AllReduce", internal, []attr{at(spans.AttrNCCLRanks, 8)}, KindCollective},
		"collective, of doubles":          {"AllReduce", internal, []attr{at(spans.AttrNCCLRanks, 8.0)}, KindCollective},
		"ranks that are no number":        {"AllReduce", internal, []attr{at(spans.AttrNCCLRanks, "8")}, KindOther},
		"collective within a function":    {"f", internal, []attr{at(spans.AttrTQStage, "function"), at(spans.AttrNCCLRanks, 8)}, KindCollective},
		"function of any name":            {"train.run", internal, []attr{at(spans.AttrTQStage, "function")}, KindFunction},
		"collective of any name":          {"train.summary", internal, []attr{at(spans.AttrNCCLRanks, 8)}, KindCollective},
		"function":                        {"f", internal, []attr{at(spans.AttrTQStage, "function")}, KindFunction},
		"stage":                           {"tq.get", internal, []attr{at(spans.AttrTQStage, "get")}, KindStage},
		"client operation":                {"tq.client.put", client, []attr{at(spans.AttrTQStage, "client_put")}, KindStage},
		"stage that nobody knows":         {"tq.x", internal, []attr{at(spans.AttrTQStage, "x")}, KindOther},
		"pass":                            {"rpc.pass", internal, nil, KindPass},
		"session":                         {"rpc.session", internal, nil, KindSession},
		"calls":                           {"rpc.calls", internal, nil, KindCalls},
		"summary of calls":                {"rpc.summary", internal, nil, KindRPCSummary},
		"call's part":                     {"rpc.server.compute", server, nil, KindCallPart},
		"aggregate of parts":              {"rpc.send", internal, []attr{at(spans.AttrAggregateCount, 8)}, KindAggregate},
		"call":                            {"Matmul", client, []attr{at(spans.AttrRPCSystem, "zeromq")}, KindCall},
		"call of another system":          {"Matmul", client, []attr{at(spans.AttrRPCMethod, "Matmul")}, KindCall},
		"call that is served":             {"Matmul", server, []attr{at(spans.AttrRPCMethod, "Matmul")}, KindOther},
		"call named like a pass":          {"rpc.pass", client, []attr{at(spans.AttrRPCSystem, "zeromq")}, KindCall},
		"calls in one":                    {"Matmul", client, []attr{at(spans.AttrRPCSystem, "zeromq"), at(spans.AttrAggregateCount, 2)}, KindAggregate},
		"rpc. that is no name of ours":    {"rpc.mine", internal, nil, KindOther},
		"TransferQueue over a named part": {"tq.put", internal, []attr{at(spans.AttrStage, "put"), at(spans.AttrTQStage, "put")}, KindStage},
	} {
		assert.Equal(t, c.want.String(), KindOf(spanOf(t, c.span, c.kind, c.has...)).String(), name)
	}
	for k := KindOther + 1; k < kinds; k++ {
		require.NotEmpty(t, k.String())
		assert.Equal(t, k, kindNamed(k.String()))
	}
	assert.Empty(t, KindOther.String()+kinds.String())
}

func TestIsDetail(t *testing.T) {
	for _, c := range []struct {
		name string
		kind ptrace.SpanKind
		want bool
	}{
		{spans.SpanRPCServer, server, true},
		{spans.SpanRPCSend, internal, true},
		{spans.SpanRPCOffline, internal, true},
		{spans.SpanRPCSend, client, false},
		{spans.SpanRPCPass, internal, false},
		{"rpc.mine", internal, false},
		{"Matmul", client, false},
		{spans.SpanNCCLWait, internal, true},
		{spans.SpanNCCLChannel, internal, true},
		{"rank 3", internal, true},
		{spans.SpanNCCLRank, internal, true},
		{"AllReduce", internal, false},
		{"ranking", internal, false},
		{"", internal, false},
	} {
		span := spanOf(t, c.name, c.kind)
		if c.kind == client {
			span.Attributes().PutInt(spans.AttrZMQCallID, 1)
		}
		assert.Equal(t, c.want, IsDetail(span), c.name)
	}
}

// none is an empty resource.
var none Resource

// read has a view read a span.
func read(v any, span ptrace.Span) {
	switch v := v.(type) {
	case interface{ Read(ptrace.Span) }:
		v.Read(span)
	case interface{ Read(ptrace.Span, *Resource) }:
		v.Read(span, &none)
	}
}

func views() map[string]any {
	return map[string]any{
		"head": new(Head), "aggregate": new(Aggregate), "function": new(Function), "stage": new(Stage), "step": new(Step), "part": new(Part), "ranks": new(Ranks),
		"evaluation": new(Evaluation), "group": new(Group), "call": new(Call), "collective": new(Collective), "rank": new(Rank), "link": new(Link),
		"mark": new(Mark),
	}
}

// everything has all attributes of all views, with values different from the absent ones.
func everything(tb testing.TB) ptrace.Span {
	tb.Helper()
	span := spanOf(tb, "name", internal)
	m := span.Attributes()
	for _, name := range []string{
		spans.AttrIncomplete, spans.AttrZMQSharedMemory, spans.AttrTimePoint, spans.AttrNCCLHang, spans.AttrNCCLMismatch, spans.AttrNCCLLast, spans.AttrFlopFormula,
		spans.AttrSummary,
	} {
		m.PutBool(name, true)
	}
	for _, name := range []string{
		spans.AttrIncompleteReason, spans.AttrVerdictSeverity, spans.AttrTQFunction, spans.AttrTQTraceID, spans.AttrHostName, spans.AttrSource,
		spans.AttrStepDurationKind, spans.AttrDeviceModel, spans.AttrStage, spans.AttrStageOrder, spans.AttrRankSlowestStage, spans.AttrZMQPassEnd,
		spans.AttrNetworkTransport, spans.AttrZMQTransport, spans.AttrZMQSlowestMethod, spans.AttrRPCSystem, spans.AttrRPCMethod, spans.AttrNCCLOperation,
		spans.AttrNCCLAlgorithm, spans.AttrNCCLCommID, spans.AttrNCCLCommName, spans.AttrNCCLSequenceKind, spans.AttrNCCLBandwidthUnit, spans.AttrNCCLLateHost,
		spans.AttrNCCLStragglerHost, spans.AttrNCCLState, spans.AttrNCCLDirection, spans.AttrNCCLProxyState, spans.AttrJoinBy, spans.AttrTimeSource,
	} {
		m.PutStr(name, name)
	}
	m.PutStr(spans.AttrTQStage, "put")
	for _, name := range []string{
		spans.AttrVerdict, spans.AttrRanksBehind, spans.AttrNCCLRanksMissing, spans.AttrNCCLRanksStuck, spans.AttrNCCLStragglers, spans.AttrNCCLStragglersOver,
		spans.AttrNCCLLinkSlow, spans.AttrNCCLLinkHot,
	} {
		m.PutEmptySlice(name).AppendEmpty().SetStr(name)
	}
	for i, name := range []string{
		spans.AttrTQBatchSize, spans.AttrProcessPID, spans.AttrRank, spans.AttrLocalRank, spans.AttrIteration, spans.AttrRecord, spans.AttrWorldSize,
		spans.AttrRankSlowest, spans.AttrRankSlowestPeers, spans.AttrStageRanks, spans.AttrStageRankSlowest, spans.AttrStageRankFastest, spans.AttrZMQPass,
		spans.AttrZMQPassBlock, spans.AttrZMQCallID, spans.AttrNCCLCommSize, spans.AttrNCCLSequence, spans.AttrNCCLRanks, spans.AttrNCCLCommRank,
		spans.AttrNCCLPeerRank, spans.AttrNCCLLateRank, spans.AttrNCCLStragglerRank, spans.AttrNCCLChannelID, spans.AttrNCCLStep, spans.AttrAggregateCount,
	} {
		m.PutInt(name, int64(i)+1)
	}
	for i, name := range []string{
		spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization, spans.AttrTQOverheadUtilization,
		spans.AttrTQUnattributedUtilization, spans.AttrTQGetUtilizationReported, spans.AttrTQComputeUtilizationReported, spans.AttrTQPutUtilizationReported,
		spans.AttrTQUtilizationDisagreement, spans.AttrTQDataSize, spans.AttrTQThroughput, spans.AttrTQThroughputReported,
		spans.AttrStepsCovered, spans.AttrStepDuration, spans.AttrLoss, spans.AttrBatchSize, spans.AttrSamples, spans.AttrTokens, spans.AttrSampleThroughput,
		spans.AttrTokenThroughput, spans.AttrDeviceTokenThroughput, spans.AttrFlopThroughput, spans.AttrFlopThroughputReported, spans.AttrDeviceFlopThroughput,
		spans.AttrDeviceFlopThroughputReported, spans.AttrFlopCountReported, spans.AttrFlopDisagreement, spans.AttrMFU, spans.AttrHFU,
		spans.AttrRankSlowestDuration, spans.AttrRankSlowestPeersDuration, spans.AttrStageDurationMin, spans.AttrStageDurationMedian, spans.AttrValidationLoss,
		spans.AttrPerplexity, spans.AttrZMQPassCalls, spans.AttrZMQCallDuration, spans.AttrZMQSerializeDuration, spans.AttrZMQSendDuration,
		spans.AttrZMQReceiveDuration, spans.AttrZMQDeserializeDuration, spans.AttrZMQServerDuration, spans.AttrZMQUnattributedDuration,
		spans.AttrZMQOfflineDuration, spans.AttrZMQSerializeUtilization, spans.AttrZMQSendUtilization, spans.AttrZMQReceiveUtilization,
		spans.AttrZMQDeserializeUtilization, spans.AttrZMQServerUtilization, spans.AttrZMQUnattributedUtilization, spans.AttrZMQTransportUtilization,
		spans.AttrZMQRequestSize, spans.AttrZMQResponseSize, spans.AttrZMQThroughput, spans.AttrZMQThroughputDisagreement, spans.AttrZMQSlowestDuration,
		spans.AttrNCCLDuration, spans.AttrNCCLTransferDuration, spans.AttrNCCLMessageSize, spans.AttrNCCLDataSize, spans.AttrNCCLBandwidthAlgorithm,
		spans.AttrNCCLBandwidthBus, spans.AttrNCCLBandwidthBusMean, spans.AttrNCCLBandwidthBaseline, spans.AttrNCCLBandwidthDeviation,
		spans.AttrNCCLBandwidthDisagreement, spans.AttrNCCLLateMax, spans.AttrNCCLLateCost, spans.AttrNCCLStragglerLate, spans.AttrNCCLStragglerCost,
		spans.AttrNCCLStragglerScore, spans.AttrNCCLErrors, spans.AttrNCCLRetries, spans.AttrNCCLRanksMissingCount, spans.AttrNCCLWaited, spans.AttrNCCLLate,
		spans.AttrNCCLClockOffset, spans.AttrAggregateSum, spans.AttrAggregateP50, spans.AttrAggregateMax, spans.AttrAggregateWait,
		spans.AttrEpoch, spans.AttrLearningRate, spans.AttrGradientNorm, spans.AttrMemoryUsage, spans.AttrMemoryPeak, spans.AttrMFUReported, spans.AttrGPUUtilization,
		spans.AttrNCCLBandwidthBusReported, spans.AttrIterations,
	} {
		m.PutDouble(name, float64(i)+0.5)
	}
	return span
}

// walk calls f with each leaf of a struct.
func walk(path string, v reflect.Value, f func(path string, v reflect.Value)) {
	switch {
	case v.Type() == reflect.TypeFor[List](), v.Type() == reflect.TypeFor[Int](), v.Kind() != reflect.Struct && v.Kind() != reflect.Array:
		f(path, v)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			walk(path, v.Index(i), f)
		}
	default:
		for i := range v.NumField() {
			walk(path+"."+v.Type().Field(i).Name, v.Field(i), f)
		}
	}
}

// Each field of each view is read from an attribute, and is absent without the attribute: a 0 would be taken for a measurement.
func TestReadWholeAndEmpty(t *testing.T) {
	full := everything(t)
	empty := spanOf(t, "", internal)
	for name, v := range views() {
		read(v, full)
		walk(name, reflect.ValueOf(v).Elem(), func(path string, f reflect.Value) {
			switch {
			case f.Kind() == reflect.Float64:
				if name == "group" && path == "group.Duration" { // transport has none
					return
				}
				assert.False(t, math.IsNaN(f.Float()), path)
			case path == "step.Loss.Text", path == "evaluation.Loss.Text": // the text of a loss that is no number
			case f.Type() == reflect.TypeFor[List]():
				assert.Equal(t, 1, f.Interface().(List).Len(), path)
			default:
				assert.False(t, f.IsZero(), path)
			}
		})
		read(v, empty)
		walk(name, reflect.ValueOf(v).Elem(), func(path string, f reflect.Value) {
			switch {
			case f.Kind() == reflect.Float64:
				assert.True(t, math.IsNaN(f.Float()), path)
			case path == "stage.Stage":
				assert.Equal(t, spans.TQNone, f.Interface())
			default:
				assert.True(t, f.IsZero(), path)
			}
		})
	}
}

// A value of another type is absent.
func TestReadOtherTypes(t *testing.T) {
	full := everything(t)
	for _, raw := range []any{map[string]any{"a": 1}, math.Inf(1)} {
		span := spanOf(t, "", internal)
		for name := range full.Attributes().All() {
			require.NoError(t, span.Attributes().PutEmpty(name).FromRaw(raw))
		}
		for name, v := range views() {
			read(v, span)
			walk(name, reflect.ValueOf(v).Elem(), func(path string, f reflect.Value) {
				switch {
				case f.Kind() == reflect.Float64:
					assert.True(t, math.IsNaN(f.Float()), path)
				case f.Kind() == reflect.Bool, path == "stage.Stage", path == "step.Loss.Text", path == "evaluation.Loss.Text": // set by presence
				default:
					assert.True(t, f.IsZero(), path)
				}
			})
		}
	}
}

func TestIntOf(t *testing.T) {
	for _, c := range []struct {
		raw  any
		want Int
	}{
		{int64(7), Int{7, true}},
		{int64(0), Int{0, true}},
		{int64(-7), Int{-7, true}},
		{7.0, Int{7, true}},
		{0.0, Int{0, true}},
		{7.5, Int{}},
		{math.NaN(), Int{}},
		{math.Inf(1), Int{}},
		{float64(1 << 53), Int{}},
		{"7", Int{}},
		{true, Int{}},
	} {
		v := pcommon.NewValueEmpty()
		require.NoError(t, v.FromRaw(c.raw))
		assert.Equal(t, c.want, IntOf(v), "%v", c.raw)
	}
	assert.Equal(t, int64(3), Int{}.Or(3))
	assert.Equal(t, int64(0), Int{0, true}.Or(3))
}

func TestStep(t *testing.T) {
	var s Step
	for raw, want := range map[any][2]string{
		1.5: {"", ""}, "NaN": {"NaN", "NaN"}, math.Inf(1): {"Infinity", "+Inf"}, math.Inf(-1): {"-Infinity", "-Inf"}, "-inf": {"-inf", "-Inf"}, "none": {"none", ""},
	} {
		s.Read(spanOf(t, spans.SpanStep, internal, attr{spans.AttrLoss, raw}), &none)
		assert.Equal(t, want, [2]string{s.Loss.Text, s.Loss.NotFinite()}, raw)
	}
	s.Read(spanOf(t, spans.SpanStep, internal, attr{spans.AttrRecord, 4}, attr{spans.AttrStepsCovered, 0}), &none)
	assert.Equal(t, Int{4, true}, s.Step())
	assert.InDelta(t, 1, s.Covered(), 0)
	assert.InDelta(t, 0, s.StepsCovered, 0)
	s.Read(spanOf(t, spans.SpanStep, internal, attr{spans.AttrRecord, 4}, attr{spans.AttrIteration, 9.0}, attr{spans.AttrStepsCovered, 100}), &none)
	assert.Equal(t, Int{9, true}, s.Step())
	assert.InDelta(t, 100, s.Covered(), 0)
}

// TestTimeOfAStep: the span's length says how long a step took, where no attribute does.
func TestTimeOfAStep(t *testing.T) {
	const second = 1_000_000_000
	for name, tt := range map[string]struct {
		length int64 // ns
		attrs  []attr
		want   float64
	}{
		"one step":           {2682700000, nil, 2.6827},
		"several":            {30 * second, []attr{{spans.AttrStepsCovered, 10}}, 3},
		"said":               {30 * second, []attr{{spans.AttrStepDuration, 2.5}}, 2.5},
		"said, no number":    {30 * second, []attr{{spans.AttrStepDuration, "NaN"}}, math.NaN()},
		"end known only":     {30 * second, []attr{{spans.AttrTimePoint, true}}, math.NaN()},
		"end not seen":       {30 * second, []attr{{spans.AttrIncomplete, true}}, math.NaN()},
		"no time":            {1, nil, math.NaN()}, // as spans.Batch writes it
		"end before start":   {-second, nil, math.NaN()},
		"the shortest known": {2, nil, 2e-9},
	} {
		t.Run(name, func(t *testing.T) {
			span := spanOf(t, spans.SpanStep, internal, tt.attrs...)
			span.SetStartTimestamp(100 * second)
			span.SetEndTimestamp(pcommon.Timestamp(100*second + tt.length))
			var s Step
			s.Read(span, &none)
			assert.InDelta(t, tt.want, s.Duration, 0)
		})
	}
}

func TestJudged(t *testing.T) {
	for _, c := range []struct {
		read func(ptrace.Span) bool
		by   []string
	}{
		{func(s ptrace.Span) bool { var v Function; v.Read(s); return v.Judged }, nil},
		{func(s ptrace.Span) bool { var v Step; v.Read(s, &none); return v.Judged }, []string{spans.AttrSamples, spans.AttrFlopFormula, spans.AttrFlopUnsupported}},
		{
			func(s ptrace.Span) bool { var v Group; v.Read(s, &none); return v.Judged },
			[]string{spans.AttrSummary, spans.AttrZMQSendUtilization, spans.AttrZMQTransportUtilization},
		},
		{func(s ptrace.Span) bool { var v Collective; v.Read(s); return v.Judged }, nil},
	} {
		assert.False(t, c.read(spanOf(t, "", internal, attr{spans.AttrSource, "a"})))
		for _, name := range append(c.by, spans.AttrVerdict) {
			assert.True(t, c.read(spanOf(t, "", internal, attr{name, 1})), name)
		}
	}
}

func TestCollective(t *testing.T) {
	var c Collective
	c.Read(spanOf(t, "AllReduce", internal, attr{spans.AttrNCCLRanksMissing, []any{3, "4"}}, attr{spans.AttrNCCLCommSize, -1}))
	assert.Equal(t, "AllReduce", c.Operation)
	assert.Equal(t, int64(2), c.MissingRanks())
	assert.Equal(t, Int{}, c.CommSize)
	assert.Equal(t, []Int{{3, true}, {}}, []Int{c.Missing.Int(0), c.Missing.Int(1)})
	assert.Equal(t, []string{"", "4"}, []string{c.Missing.Text(0), c.Missing.Text(1)})
	assert.Equal(t, "4", c.Missing.At(1).Str())
	c.Read(spanOf(t, "AllReduce", internal, attr{spans.AttrNCCLRanksMissing, []any{3}}, attr{spans.AttrNCCLRanksMissingCount, 40}))
	assert.Equal(t, int64(40), c.MissingRanks())
}

func TestVerdicts(t *testing.T) {
	span := spanOf(t, "s", internal)
	span.Events().AppendEmpty().SetName("exception")
	e := span.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.SetTimestamp(9)
	e.Attributes().PutStr(spans.AttrVerdictName, "a")
	e.Attributes().PutStr(spans.AttrVerdictReason, "because")
	e.Attributes().PutDouble(spans.AttrVerdictValue, 0.5)
	e.Attributes().PutInt(spans.AttrVerdictThreshold, 1)
	span.Events().AppendEmpty().SetName(spans.EventVerdict)
	got := slices.Collect(Verdicts(span))
	require.Len(t, got, 2)
	assert.Equal(t, Verdict{Said{Name: "a"}, "because", 0.5, 1, 9}, got[0])
	assert.True(t, got[1].Name == "" && math.IsNaN(got[1].Value) && math.IsNaN(got[1].Threshold))
	for range Verdicts(span) { // the loop can be left early
		break
	}
}

func TestResource(t *testing.T) {
	m := pcommon.NewMap()
	spans.Resource{Service: "job", RunID: "r", Host: "h", PID: 7}.Put(m)
	m.PutStr(spans.AttrDeviceModel, "H100")
	m.PutInt(spans.AttrRank, 3)
	m.PutDouble(spans.AttrWorldSize, 8)
	var r Resource
	r.Read(m)
	for _, x := range []*float64{&r.StepsCovered, &r.BatchSize, &r.Samples, &r.Tokens} {
		assert.True(t, math.IsNaN(*x))
		*x = 0 // NaN is not equal to itself
	}
	want := Resource{Job: Job{"job", "r"}, Host: "h", PID: Int{7, true}, DeviceModel: "H100", Rank: Int{3, true}, WorldSize: Int{8, true}, read: true}
	assert.Equal(t, want, r)
}

// A resource's values hold for each of its spans without own values, but only for attributes that our writers put on resources: its host is no span's own host.
func TestResourceOfSpans(t *testing.T) {
	full := everything(t).Attributes()
	var r Resource
	r.Read(full)
	empty := spanOf(t, "", internal)
	var s Step
	s.Read(empty, &r)
	assert.Equal(t, spans.AttrSource, s.Format)
	assert.Equal(t, spans.AttrStepDurationKind, s.DurationKind)
	for _, x := range []float64{s.StepsCovered, s.BatchSize, s.Samples, s.Tokens} {
		assert.False(t, math.IsNaN(x))
	}
	assert.True(t, s.Judged)
	assert.Equal(t, Source{Format: spans.AttrSource}, s.Source)
	assert.Equal(t, Place{}, s.Place)
	assert.True(t, math.IsNaN(s.Duration))
	var p Part
	p.Read(empty, &r)
	var k Ranks
	k.Read(empty, &r)
	var e Evaluation
	e.Read(empty, &r)
	for _, of := range []Source{p.Source, k.Source, e.Source} {
		assert.Equal(t, Source{Format: spans.AttrSource}, of)
	}
	var g Group
	g.Read(empty, &r)
	assert.Equal(t, []any{spans.AttrNetworkTransport, spans.AttrZMQTransport, true}, []any{g.Network, g.Transport, g.SharedMemory})
	var c Call
	c.Read(empty, &r)
	assert.Equal(t, []string{spans.AttrRPCSystem, spans.AttrNetworkTransport, ""}, []string{c.System, c.Network, c.Method})

	own := spanOf(t, "", internal, attr{spans.AttrSource, "hf"}, attr{spans.AttrBatchSize, 7}, attr{spans.AttrStepsCovered, 100})
	s.Read(own, &r)
	assert.Equal(t, "hf", s.Format)
	assert.InDelta(t, 7, s.BatchSize, 0)
	assert.InDelta(t, 100, s.Covered(), 0)
}

func TestRPCStages(t *testing.T) {
	for s := range RPCStages {
		assert.NotEmpty(t, s.String())
	}
	assert.Empty(t, RPCStages.String())
}

func TestReadAllocatesNothing(t *testing.T) {
	full := everything(t)
	for name, v := range views() {
		assert.Zero(t, testing.AllocsPerRun(10, func() { read(v, full) }), name)
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() { KindOf(full) }))
}

func TestBreakdown(t *testing.T) {
	span := spanOf(t, "breakdown", internal, attr{spans.AttrKind, "breakdown"}, attr{spans.AttrStepWindow, "step"}, attr{"ml.step.time.rpc.send", 0.5},
		attr{"ml.step.sum.rpc.send", 9.0}, attr{"ml.step.time.unattributed", 1}, attr{"ml.step.union.rpc.send", 0.75}, attr{spans.AttrIteration, 7},
		attr{spans.AttrJoinPartial, true}, attr{spans.AttrJoinPartialReason, "clocks"}, attr{spans.AttrStepUsual, 1.0}, attr{spans.AttrStepExcess, 0.5}, attr{spans.AttrWorldSize, 16},
		attr{spans.AttrVerdictSeverity, "warning"}, attr{spans.AttrGPUCount, 8}, attr{spans.AttrGPUSampleCount, 24},
		attr{spans.AttrGPUUtilization, 0.9}, attr{spans.AttrGPUUtilizationMin, 0.5}, attr{spans.AttrGPUPower, 600.5}, attr{spans.AttrGPUTemperature, 70},
		attr{spans.AttrGPUTemperatureMax, 88}, attr{spans.AttrGPUClock, 1.9e9}, attr{spans.AttrGPUClockMin, 1.2e9},
		attr{spans.GPUThrottleTimePrefix + "thermal", 1.7})
	assert.Equal(t, KindBreakdown, KindOf(span))
	var b Breakdown
	for range 2 {
		b.Read(span)
		require.Len(t, b.Times, 2)
		assert.Equal(t, PartTime{"rpc.send", 0.5, 9, 0.75}, b.Times[0])
		assert.Equal(t, "unattributed", b.Times[1].Part)
		assert.True(t, math.IsNaN(b.Times[1].Sum) && math.IsNaN(b.Times[1].Union))
		b.Times = b.Times[:0]
		assert.Equal(t, Breakdown{
			Head{Severity: "warning"},
			"step",
			Int{7, true},
			true, "clocks", 1, 0.5,
			Int{16, true},
			b.Times,
			GPUs{Int{8, true}, Int{24, true}, 0.9, 0.5, 600.5, 70, 88, 1.9e9, 1.2e9, []Throttled{{"thermal", 1.7}}},
		}, b)
	}
	b.Read(spanOf(t, "breakdown", internal))
	assert.True(t, math.IsNaN(b.GPUs.Power))
	assert.Empty(t, b.GPUs.Throttled)
}

func TestCauses(t *testing.T) {
	span := spanOf(t, spans.SpanBreakdown, internal)
	for _, attrs := range []map[string]any{
		{
			spans.AttrStepPart: spans.PartWait, spans.AttrCauseTime: 1.5, spans.AttrCauseCost: 24.0, spans.AttrNCCLLateRank: 3, spans.AttrNCCLLateHost: "node-1",
			spans.AttrNCCLCommName: "DP Group 0", spans.AttrNCCLOperation: "AllReduce", spans.AttrCauseNote: "GPU 3 was held down by heat",
		},
		{
			spans.AttrStepPart: spans.PartUnattributed, spans.AttrCauseTime: 0.5, spans.AttrCauseReason: spans.ReasonClocksApart, spans.AttrNCCLClockOffset: 0.05,
		},
	} {
		e := span.Events().AppendEmpty()
		e.SetName(spans.EventCause)
		require.NoError(t, e.Attributes().FromRaw(attrs))
	}
	span.Events().AppendEmpty().SetName(spans.EventVerdict)
	got := slices.Collect(Causes(span))
	require.Len(t, got, 2)
	assert.True(t, math.IsNaN(got[0].ClocksApart))
	got[0].ClocksApart = 0
	assert.Equal(t, Cause{spans.PartWait, 1.5, 24, Int{3, true}, "node-1", "DP Group 0", "AllReduce", "GPU 3 was held down by heat", "", 0}, got[0])
	assert.True(t, math.IsNaN(got[1].Cost))
	assert.Equal(t, Cause{Part: spans.PartUnattributed, Seconds: 0.5, Reason: spans.ReasonClocksApart, ClocksApart: 0.05},
		Cause{Part: got[1].Part, Seconds: got[1].Seconds, Reason: got[1].Reason, ClocksApart: got[1].ClocksApart})
	for range Causes(span) {
		break
	}
}
