package trainmetricsconnector

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

var (
	// sizeBounds are By: 64 B to 16 GiB, each four times the one before.
	sizeBounds = []float64{1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30, 1 << 32, 1 << 34}
	// callBounds are calls per pass. More than 50 is what the mission warns of, so 50 is an edge.
	callBounds = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}
)

// rpcStages are the shares that train_perf puts on the root of a group of calls, and the values of zeromq.stage.
var rpcStages = [...]struct{ attr, name string }{
	{spans.AttrZMQSerializeUtilization, "serialize"},
	{spans.AttrZMQSendUtilization, "send"},
	{spans.AttrZMQReceiveUtilization, "receive"},
	{spans.AttrZMQDeserializeUtilization, "deserialize"},
	{spans.AttrZMQServerUtilization, "server"},
	{spans.AttrZMQUnattributedUtilization, "unattributed"},
	{spans.AttrZMQTransportUtilization, "transport"},
}

// rpcKey are the labels of a ZeroMQ call. The zero value is a call with neither, and the groups of calls.
type rpcKey struct{ method, transport string }

func (k rpcKey) put(m pcommon.Map) {
	m.PutStr(spans.AttrRPCSystem, spans.RPCSystemZeroMQ)
	if k.method != "" {
		m.PutStr(spans.AttrRPCMethod, k.method)
	}
	if k.transport != "" {
		m.PutStr(spans.AttrNetworkTransport, k.transport)
	}
}

// callValues are the values that only calls have. Sizes that are not there are NaN.
type callValues struct {
	key               rpcKey
	request, response float64 // By
}

// passValues are the values that only the root of a group of calls has. Numbers that are not there are NaN.
type passValues struct {
	pass                bool // rpc.pass: neither a session's set-up nor calls of no pass
	calls, disagreement float64
	share               [len(rpcStages)]float64
}

// readCall takes what readSpan found in the attributes of a call.
func (s *scratch) readCall(span ptrace.Span, o *observation, v *callValues, bad bool) {
	possible := o.locate(span)
	if bad || !possible {
		s.invalid++
	}
	if !possible {
		return
	}
	o.kind, o.values = callSpan, int32(len(s.calls))
	s.calls = append(s.calls, *v)
	s.observations = append(s.observations, *o)
}

// readRPC reads the root of a group of calls, and passes over what stands below the calls without a look at its attributes:
// that is five of six spans. It says false for a span of another kind.
func (s *scratch) readRPC(span ptrace.Span, name string) bool {
	if !strings.HasPrefix(name, "rpc.") || span.Kind() == ptrace.SpanKindClient { // a method may have any name
		return false
	}
	switch name {
	case spans.SpanRPCPass, spans.SpanRPCSession, spans.SpanRPCCalls:
		s.readGroup(span, name)
	case spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize, spans.SpanRPCServer, spans.SpanRPCUnattributed,
		spans.SpanRPCOffline, spans.SpanRPCSummary:
	default:
		return false
	}
	return true
}

func (s *scratch) readGroup(span ptrace.Span, name string) {
	nan := math.NaN()
	o := observation{resource: int32(len(s.resources) - 1), kind: passSpan, values: int32(len(s.passes)), stage: spans.TQNone, throughput: nan}
	v := passValues{pass: name == spans.SpanRPCPass, calls: nan, disagreement: nan}
	for i := range v.share {
		v.share[i] = nan
	}
	bad := false
	for attr, a := range span.Attributes().All() {
		switch attr {
		case spans.AttrIncomplete:
			o.incomplete = a.Type() == pcommon.ValueTypeBool && a.Bool()
		case spans.AttrVerdict:
			if a.Type() == pcommon.ValueTypeSlice {
				o.verdicts, o.judged = a.Slice(), true
			}
		case spans.AttrZMQPassCalls:
			v.calls = countOf(a, &bad)
		case spans.AttrZMQThroughputDisagreement:
			v.disagreement = spans.ValueNumber(a)
		default:
			for i := range rpcStages {
				// Those of a session would set the gauges to what one Init is.
				if attr == rpcStages[i].attr && name != spans.SpanRPCSession {
					v.share[i] = spans.ValueNumber(a)
				}
			}
		}
	}
	possible := o.locate(span)
	if bad || !possible {
		s.invalid++
	}
	if !possible {
		return
	}
	s.passes = append(s.passes, v)
	s.observations = append(s.observations, o)
}

// rpcSeries are the series of a group that only calls, or only groups of them, have.
type rpcSeries struct {
	duration          *histogram[uint64]
	request, response *histogram[float64]
	pass              *histogram[uint64]
	calls             *histogram[float64]
	disagreement      *histogram[float64]
	share             [len(rpcStages)]*gauge
	incomplete        *counter
}

func (g *group) rpcSeries() *rpcSeries {
	if g.rpc == nil {
		g.rpc = new(rpcSeries)
	}
	return g.rpc
}

// calls finds or makes the series of a method, or of the groups of calls. Without room for their first metric it is the overflow.
func (s *store) calls(key resourceKey, call rpcKey, first metricID) *group {
	r := s.byKey[key]
	if r != nil {
		if g := r.byCall[call]; g != nil {
			return g
		}
	}
	g := s.newGroup(r, key, first)
	if g == &s.overflow {
		return g
	}
	g.call = rpcKey{method: strings.Clone(call.method), transport: strings.Clone(call.transport)}
	g.rpcSeries()
	g.resource.byCall[g.call] = g
	return g
}

// addCall puts a call into the series of its method.
func (s *store) addCall(g *group, o *observation, v *callValues) {
	rs, over := g.rpcSeries(), s.overflow.rpcSeries()
	s.judge(g, o)
	if o.incomplete {
		s.count(slot(s, incompleteCount, g, &rs.incomplete, &s.overflow.incomplete[spans.TQFunction]), 1, o)
		return
	}
	s.observe(slot(s, callDuration, g, &rs.duration, &over.duration), o)
	if !math.IsNaN(v.request) {
		s.record(slot(s, requestSize, g, &rs.request, &over.request), v.request, sizeBounds, o)
	}
	if !math.IsNaN(v.response) {
		s.record(slot(s, responseSize, g, &rs.response, &over.response), v.response, sizeBounds, o)
	}
}

// addPass puts the root of a group of calls into the series of its resource.
func (s *store) addPass(g *group, o *observation, v *passValues) {
	rs, over := g.rpcSeries(), s.overflow.rpcSeries()
	// As with steps: while the next pass takes as long as this one, the series are not at their end.
	s.grace = 2 * int64(o.ns)
	s.judge(g, o)
	if o.incomplete {
		s.count(slot(s, incompleteCount, g, &rs.incomplete, &s.overflow.incomplete[spans.TQFunction]), 1, o)
		return
	}
	if v.pass {
		s.observe(slot(s, passDuration, g, &rs.pass, &over.pass), o)
		if !math.IsNaN(v.calls) {
			s.record(slot(s, passCalls, g, &rs.calls, &over.calls), v.calls, callBounds, o)
		}
	}
	for i, share := range v.share {
		if !math.IsNaN(share) {
			s.set(slot(s, rpcUtilization, g, &rs.share[i], &over.share[0]), share, o)
		}
	}
	if !math.IsNaN(v.disagreement) {
		s.record(slot(s, rpcDisagreement, g, &rs.disagreement, &over.disagreement), v.disagreement, disagreementBounds, o)
	}
}

// rpc writes the series of calls of one group.
func (e *emitter) rpc(g *group) {
	rs, l := g.rpc, labels{of: g, stage: spans.TQNone}
	emit(e, callDuration, l, &rs.duration, durationPoint)
	emit(e, requestSize, l, &rs.request, sizePoint)
	emit(e, responseSize, l, &rs.response, sizePoint)
	emit(e, passDuration, l, &rs.pass, durationPoint)
	emit(e, passCalls, l, &rs.calls, callsPoint)
	for i := range rs.share {
		l := l
		l.rpcStage = rpcStages[i].name
		emit(e, rpcUtilization, l, &rs.share[i], gaugePoint)
	}
	emit(e, rpcDisagreement, l, &rs.disagreement, disagreementPoint)
	emit(e, incompleteCount, l, &rs.incomplete, counterPoint)
}
