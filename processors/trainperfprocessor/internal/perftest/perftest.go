// Package perftest makes spans as the receivers do, for the tests of train_perf and its domains, and reads the verdicts.
package perftest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/domain"
	"github.com/trainbridge/trainbridge/spans"
)

// Base is the start of the spans, ns: 2026-02-11T08:40:00Z.
const Base = 1_770_799_200_000_000_000

// MiB in By.
const MiB = 1 << 20

// TraceID of all spans but steps.
var TraceID = pcommon.TraceID{15: 1}

// Who sends spans: a worker of TransferQueue, a training job, a client of RPCs.
var (
	Worker = spans.Resource{Service: "verl", RunID: "run-1", Host: "10.4.1.33", PID: 15930}
	Job    = spans.Resource{Service: "pretrain", RunID: "run-1"}
	Client = spans.Resource{Service: "tee_runner", RunID: "run-1"}
)

// Judge has a domain judge a batch, and returns the outcomes.
func Judge(d domain.Domain, td ptrace.Traces) domain.Tally {
	p := domain.NewPanel(nil, true, d)
	p.Judge(td)
	Spread(td)
	return *p.Judges[0].Tally()
}

// Spread copies train_perf's attributes of resources to their steps, where the steps have none, because a view reads steps.
func Spread(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, name := range []string{
			spans.AttrSamples, spans.AttrTokens, spans.AttrFlopCount, spans.AttrFlopFormula, spans.AttrFlopConvention, spans.AttrFlopRecompute,
			spans.AttrFlopUnsupported, spans.AttrFlopPeak,
		} {
			v, ok := rs.Resource().Attributes().Get(name)
			if !ok {
				continue
			}
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.Name() != spans.SpanStep {
						continue
					}
					if own, has := s.Attributes().GetOrPutEmpty(name); !has {
						v.CopyTo(own)
					}
				}
			}
		}
	}
}

// Attrs are attributes of a span; nil: left out.
type Attrs map[string]any

// With returns a copy with others in place.
func (a Attrs) With(others Attrs) Attrs {
	out := maps.Clone(a)
	if out == nil {
		out = Attrs{}
	}
	maps.Copy(out, others)
	return out
}

// put sets the attributes, and removes those of value nil.
func (a Attrs) put(m pcommon.Map) {
	for name, v := range a {
		if v == nil {
			m.Remove(name)
			continue
		}
		value, _ := m.GetOrPutEmpty(name)
		if err := value.FromRaw(v); err != nil {
			panic(err)
		}
	}
}

// SpanID numbers spans.
func SpanID(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// Stage is a child of a function: its name, start and end in ns from the start of the function.
type Stage struct {
	Name     string
	From, To int64
}

// AddFunction appends a function of total ns and its children, as tq_trace does. Ids count up from id.
func AddFunction(b *spans.Batch, id int, name string, start, total int64, children ...Stage) ptrace.Span {
	f := b.Add(Worker, spans.Span{
		Trace: TraceID, ID: SpanID(id), Name: name, Is: spans.KindFunction, Kind: ptrace.SpanKindInternal, Start: start, End: start +
			total, Source: spans.TimeAnchored,
	})
	f.SetEndTimestamp(pcommon.Timestamp(start + total))
	f.Attributes().PutStr(spans.AttrTQFunction, name)
	f.Attributes().PutStr(spans.AttrTQStage, spans.StageFunction)
	for i, c := range children {
		s := b.Add(Worker, spans.Span{
			Trace: TraceID, ID: SpanID(id + 1 + i), Parent: SpanID(id), Name: "tq." + c.Name, Is: spans.KindStage, Kind: ptrace.SpanKindInternal,
			Start: start + c.From, End: start + c.To, Source: spans.TimeAnchored,
		})
		s.SetEndTimestamp(pcommon.Timestamp(start + c.To)) // may be before the start, as the end of a service's span may be
		s.Attributes().PutStr(spans.AttrTQFunction, name)
		s.Attributes().PutStr(spans.AttrTQStage, c.Name)
	}
	return f
}

// AddClient appends a client operation of TransferQueue of ns, such as stage client_get, of the function rollout.
func AddClient(b *spans.Batch, id, parent int, stage string, start, ns int64) ptrace.Span {
	s := b.Add(Worker, spans.Span{
		Trace: TraceID, ID: SpanID(id), Parent: SpanID(parent), Name: "tq." +
			stage, Is: spans.KindStage, Kind: ptrace.SpanKindClient, Start: start, End: start + ns,
	})
	s.SetEndTimestamp(pcommon.Timestamp(start + ns))
	s.Attributes().PutStr(spans.AttrTQFunction, "rollout")
	s.Attributes().PutStr(spans.AttrTQStage, stage)
	return s
}

// Carry gives a function the shares measured by package bridge.
func Carry(f ptrace.Span, get, compute, put any) ptrace.Span {
	Attrs{spans.AttrTQGetUtilization: get, spans.AttrTQComputeUtilization: compute, spans.AttrTQPutUtilization: put}.put(f.Attributes())
	return f
}

// CarryAll gives a function all shares.
func CarryAll(f ptrace.Span, get, compute, put float64) ptrace.Span {
	Carry(f, get, compute, put)
	f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, get+put)
	f.Attributes().PutDouble(spans.AttrTQUnattributedUtilization, 1-get-compute-put)
	return f
}

// AddStep appends a step of the given seconds, as the receivers do. Step n ends n minutes after Base; a has further attributes, or others in place.
func AddStep(b *spans.Batch, res spans.Resource, iteration int64, seconds float64, a Attrs) ptrace.Span {
	trace := spans.StepTraceID(res.RunID, iteration)
	end := Base + iteration*60_000_000_000
	span := b.Add(res, spans.Span{
		Trace: trace, ID: SpanID(int(iteration) + 1_000_000), Name: spans.SpanStep, Is: spans.KindStep, Kind: ptrace.SpanKindInternal,
		Start: end - int64(seconds*1e9), End: end, Source: spans.TimeDerived,
	})
	m := span.Attributes()
	m.PutInt(spans.AttrIteration, iteration)
	m.PutInt(spans.AttrStepsCovered, 1)
	m.PutStr(spans.AttrSource, "megatron")
	m.PutDouble(spans.AttrStepDuration, seconds)
	m.PutStr(spans.AttrStepDurationKind, spans.DurationStep)
	a.put(m)
	return span
}

// Aquila is the model of FlagScale's example: AquilaMegatron FLOPs per step of 32 samples by Megatron, AquilaFlagScale by perf_monitor.
var Aquila = spans.Model{
	Type: "aquila", SwiGLU: true, NumLayers: 32, HiddenSize: 4096, AttentionHeads: 32, KVChannels: 128, FFNHiddenSize: 11008,
	PaddedVocabSize: 100008, SeqLength: 2048, GlobalBatchSize: 32, WorldSize: 8,
}

// The FLOPs of a step of Aquila.
const (
	AquilaMegatron  = 2813096204697600.0
	AquilaFlagScale = 2918718577311744.0
)

// rpcKinds are the kinds of zmq_rpc's spans.
var rpcKinds = map[string]string{
	spans.SpanRPCPass: spans.KindPass, spans.SpanRPCSession: spans.KindSession, spans.SpanRPCCalls: spans.KindCalls, spans.SpanRPCSummary: spans.KindRPCSummary,
	spans.SpanRPCSerialize: spans.KindCallPart, spans.SpanRPCSend: spans.KindCallPart, spans.SpanRPCReceive: spans.KindCallPart,
	spans.SpanRPCDeserialize: spans.KindCallPart, spans.SpanRPCServer: spans.KindCallPart, spans.SpanRPCUnattributed: spans.KindCallPart,
	spans.SpanRPCOffline: spans.KindCallPart,
}

// AddRPC appends a span as zmq_rpc does, whose kind follows from the name; or, of kind CLIENT, as a service does.
func AddRPC(b *spans.Batch, id, parent int, name string, kind ptrace.SpanKind, a Attrs) ptrace.Span {
	s := spans.Span{Trace: TraceID, ID: SpanID(id), Parent: SpanID(parent), Name: name, Kind: kind, Source: spans.TimeDerived}
	if kind != ptrace.SpanKindClient {
		s.Is = rpcKinds[name]
	}
	return add(b, Client, s, a)
}

// add appends a span of one second from Base on.
func add(b *spans.Batch, res spans.Resource, s spans.Span, a Attrs) ptrace.Span {
	s.Start, s.End = Base, Base+1e9
	span := b.Add(res, s)
	a.put(span.Attributes())
	return span
}

// AddGroup appends a group of calls.
func AddGroup(b *spans.Batch, id int, name string, a Attrs) ptrace.Span {
	return AddRPC(b, id, 0, name, ptrace.SpanKindInternal, a)
}

// AddPass appends a pass of calls, each with its stages, as zmq_rpc does.
func AddPass(b *spans.Batch, id, calls int, a Attrs) {
	AddGroup(b, id, spans.SpanRPCPass, a)
	for i := range calls {
		call := id + 1 + 10*i
		addCall(b, call, id)
		for j, stage := range []string{spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize, spans.SpanRPCUnattributed} {
			AddRPC(b, call+1+j, call, stage, ptrace.SpanKindInternal, nil)
		}
	}
}

// addCall appends a call over IPC: zmq_rpc's attributes of a call, and before them the system, the method and the transport, as a service writes them (zmq_rpc
// has the system and the transport on the resource). One by one, because Attrs, a map, has no order, and the time to find an attribute depends on the order.
func addCall(b *spans.Batch, id, parent int) {
	m := add(b, Client, spans.Span{
		Trace: TraceID, ID: SpanID(id), Parent: SpanID(parent), Name: "BatchLinear", Is: spans.KindCall, Kind: ptrace.SpanKindClient, Source: spans.TimeDerived,
	}, nil).Attributes()
	m.PutStr(spans.AttrRPCSystem, spans.RPCSystemZeroMQ)
	m.PutStr(spans.AttrRPCMethod, "BatchLinear")
	m.PutStr(spans.AttrNetworkTransport, "unix")
	m.PutInt(spans.AttrZMQCallID, 3)
	m.PutInt(spans.AttrZMQRequestSize, 8_388_721)
	m.PutInt(spans.AttrZMQResponseSize, 12_583_025)
	m.PutDouble(spans.AttrZMQThroughput, 185.26e6)
	m.PutDouble(spans.AttrZMQThroughputReported, 185.26e6)
}

// RealPass has the column sums of the second block of a real log, 98 calls over IPC.
var RealPass = Attrs{
	spans.AttrZMQTransport: "IPC", spans.AttrNetworkTransport: "unix", spans.AttrZMQPassCalls: int64(98), spans.AttrZMQCallDuration: 42.999571,
	spans.AttrZMQSerializeDuration: 5.533732, spans.AttrZMQSendDuration: 2.522379, spans.AttrZMQReceiveDuration: 32.035494,
	spans.AttrZMQDeserializeDuration: 2.904932,
	spans.AttrZMQRequestSize:         int64(3_489_680_712), spans.AttrZMQResponseSize: int64(3_834_117_734), spans.AttrZMQThroughput: 162.432 * MiB,
}

// FastPass gives no verdict: 1 s, with 0.7 s of computation by the server.
var FastPass = Attrs{
	spans.AttrZMQTransport: "IPC", spans.AttrNetworkTransport: "unix", spans.AttrZMQPassCalls: int64(50), spans.AttrZMQCallDuration: 1.0,
	spans.AttrZMQSerializeDuration: 0.0625, spans.AttrZMQSendDuration: 0.03125, spans.AttrZMQReceiveDuration: 0.8125, spans.AttrZMQDeserializeDuration: 0.0625,
	spans.AttrZMQServerDuration: 0.71875, spans.AttrZMQUnattributedDuration: 0.03125, spans.AttrZMQOfflineDuration: 0.25,
}

// Host returns where a rank runs.
func Host(rank int) spans.Resource {
	return spans.Resource{Service: "gpt", RunID: "run-1", Host: fmt.Sprint("node-", rank/8), PID: int64(1000 + rank)}
}

// AddCollective appends a span; the attributes decide whether it is the root of a collective.
func AddCollective(b *spans.Batch, id int, name string, a Attrs) ptrace.Span {
	return add(b, Host(0), spans.Span{Trace: TraceID, ID: SpanID(id), Name: name, Kind: ptrace.SpanKindInternal, Source: spans.TimeLogged}, a)
}

// AllReduce gives no verdict: 256 MiB of 64 ranks; the last rank came 0.9 ms after the first.
var AllReduce = Attrs{
	spans.AttrNCCLRanks: int64(64), spans.AttrNCCLOperation: "AllReduce", spans.AttrNCCLCommID: "0x9e3779b97f4a7c15", spans.AttrNCCLCommName: "DP Group 0",
	spans.AttrNCCLCommSize: int64(64), spans.AttrNCCLSequence: int64(4012), spans.AttrNCCLAlgorithm: "RING", spans.AttrNCCLProtocol: "SIMPLE",
	spans.AttrNCCLMessageSize: int64(1 << 28), spans.AttrNCCLDataSize: int64(1 << 28), spans.AttrNCCLDuration: 0.0029, spans.AttrNCCLTransferDuration: 0.002,
	spans.AttrNCCLBandwidthAlgorithm: 134.2e9, spans.AttrNCCLBandwidthBus: 264.2e9, spans.AttrNCCLLateMax: 0.0009, spans.AttrNCCLLateRank: int64(5),
	spans.AttrNCCLLateHost: "node-0", spans.AttrNCCLLateCost: 0.05, spans.AttrNCCLErrors: int64(0), spans.AttrNCCLRetries: int64(0),
	spans.AttrNCCLClockReference: "node-0",
}

// Missing has the attributes of a root about ranks without a record.
func Missing(reason string, ranks ...any) Attrs {
	return Attrs{
		spans.AttrIncomplete: true, spans.AttrIncompleteReason: reason, spans.AttrNCCLRanksMissing: ranks, spans.AttrNCCLRanksMissingCount: int64(len(ranks)),
		spans.AttrNCCLRanks: int64(64 - len(ranks)),
	}
}

// Late has the root's attributes about the last rank.
func Late(seconds, transfer float64) Attrs {
	return Attrs{spans.AttrNCCLLateMax: seconds, spans.AttrNCCLTransferDuration: transfer}
}

// AddRank appends the span of a rank, with the attributes in the order of a receiver.
func AddRank(b *spans.Batch, id, parent, rank int) {
	span := b.Add(Host(rank), spans.Span{
		Trace: TraceID, ID: SpanID(id), Parent: SpanID(parent), Name: spans.SpanNCCLRank, Is: spans.KindRank, Kind: ptrace.SpanKindInternal, Start: Base,
		End:    Base + 1e6,
		Source: spans.TimeLogged, Attributes: 8,
	})
	m := span.Attributes()
	m.PutInt(spans.AttrNCCLCommRank, int64(rank))
	m.PutInt(spans.AttrRank, int64(rank))
	m.PutDouble(spans.AttrNCCLLate, 0.00001)
	m.PutDouble(spans.AttrNCCLBandwidthBus, 264.2e9)
	m.PutDouble(spans.AttrNCCLBandwidthBusReported, 264.2e9)
	m.PutStr(spans.AttrNCCLTiming, "kernel_gpu")
	m.PutInt(spans.AttrNCCLChannels, 16)
}

// SpanByID finds a span in traces, in any order.
func SpanByID(tb testing.TB, td ptrace.Traces, id int) ptrace.Span {
	tb.Helper()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.SpanID() == SpanID(id) {
					return s
				}
			}
		}
	}
	require.Fail(tb, "no such span", "%d", id)
	return ptrace.Span{}
}

// Double returns a number that the span must have.
func Double(tb testing.TB, s ptrace.Span, name string) float64 {
	tb.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(tb, ok, name)
	return v.Double()
}

// Numbers checks attributes; NaN: absent.
func Numbers(tb testing.TB, s ptrace.Span, want map[string]float64) {
	tb.Helper()
	for name, x := range want {
		v, ok := s.Attributes().Get(name)
		if math.IsNaN(x) {
			assert.False(tb, ok, name)
			continue
		}
		if assert.True(tb, ok, name) {
			assert.InEpsilon(tb, x, spans.ValueNumber(v), 1e-12, name)
		}
	}
}

// Has reports whether the span has the attribute.
func Has(s ptrace.Span, name string) bool {
	_, ok := s.Attributes().Get(name)
	return ok
}

// Text of an attribute.
func Text(s ptrace.Span, name string) string { return spans.AttrText(s.Attributes(), name) }

// Verdicts returns the titles of the verdicts about the span, with the severity where it is not the usual one: "tq_overhead warning". They are in the order of
// the events, whose names the span must list. Of another writer's span, without events, they are the listed names.
func Verdicts(s ptrace.Span) []string {
	var head view.Head
	head.Read(s)
	var listed, names, titles []string
	for i := range head.Verdicts.Len() {
		listed = append(listed, head.Verdicts.Text(i))
	}
	for v := range view.Verdicts(s) {
		if !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
		title := v.Title()
		if usual, _ := spans.VerdictNamed(v.Name, v.Cause); v.Severity != usual.Severity {
			title += " " + v.Severity
		}
		titles = append(titles, title)
	}
	if len(titles) == 0 { // of another writer
		return listed
	}
	if !slices.Equal(listed, names) {
		panic(fmt.Sprintf("the span lists %v, and its events are %v", listed, names))
	}
	return titles
}

// Severity of the worst verdict.
func Severity(s ptrace.Span) string { return Text(s, spans.AttrVerdictSeverity) }

// Reasons returns the sentences of the verdicts.
func Reasons(s ptrace.Span) []string {
	var out []string
	for _, e := range s.Events().All() {
		out = append(out, spans.AttrText(e.Attributes(), spans.AttrVerdictReason))
	}
	return out
}

// HealthyLoss falls as losses do, with the noise of a batch.
func HealthyLoss(r *rand.Rand, i int) float64 {
	return (1.8 + 9*math.Pow(1+float64(i)/40, -0.7)) * math.Exp(0.03*r.NormFloat64())
}
