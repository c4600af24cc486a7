package trainmetricsconnector

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// rpc reads ZeroMQ calls, with the parts behind each, and groups of calls.
var rpc = family{
	kinds:  []view.Kind{view.KindCall, view.KindPass, view.KindSession, view.KindCalls},
	reader: func(family int8) reader { return &rpcReader{family: family} },
	adder:  func(family int8) adder { return &rpcAdder{groups[callKey, rpcSeries]{family: family}} },
}

var (
	callDuration    = newMetric(spans.MetricRPCCallDuration)
	requestSize     = newMetric(spans.MetricRPCRequestSize)
	responseSize    = newMetric(spans.MetricRPCResponseSize)
	passDuration    = newMetric(spans.MetricZMQPassDuration)
	passCalls       = newMetric(spans.MetricZMQPassCalls)
	rpcUtilization  = newMetric(spans.MetricZMQStageUtilization)
	rpcStageTime    = newMetric(spans.MetricZMQStageTime)
	rpcDisagreement = newMetric(spans.MetricZMQThroughputDisagreement)
)

// callKey are the labels of a ZeroMQ call, beside the system. The zero value is a call with neither, and the groups of calls.
type callKey struct{ method, transport string }

// bare implements key.
func (callKey) bare() bool              { return false }
func (k callKey) code(c *codec) callKey { return callKey{c.text(k.method), c.text(k.transport)} }

// labels implements key.
func (k callKey) labels(m pcommon.Map, own label) {
	m.PutStr(spans.AttrRPCSystem, spans.RPCSystemZeroMQ)
	if k.method != "" {
		m.PutStr(spans.AttrRPCMethod, k.method)
	}
	if k.transport != "" {
		m.PutStr(spans.AttrNetworkTransport, k.transport)
	}
	own.put(m)
}

// callValues are the values of a call. Unknown sizes are NaN.
type callValues struct {
	key               callKey
	request, response float64                // By
	parts             [view.RPCStages]uint64 // ns
}

// groupValues are the values of the root of a group of calls. Unknown numbers are NaN.
type groupValues struct {
	pass                bool // neither a session's set-up nor calls of no pass
	calls, disagreement float64
	share               [view.RPCStages]float64
}

// rpcReader reads calls, their parts, and groups of calls. An observation's values is the index of a call, or the complement (^) of the index of a group.
type rpcReader struct {
	family int8
	last   pcommon.SpanID // of the latest call, followed by its parts; empty: none
	calls  []callValues
	groups []groupValues
	call   view.Call
	group  view.Group
}

// reset implements reader.
func (r *rpcReader) reset() {
	clear(r.calls)
	r.last = pcommon.SpanID{}
	r.calls, r.groups, r.call, r.group = r.calls[:0], r.groups[:0], view.Call{}, view.Group{}
}

// read implements reader.
func (r *rpcReader) read(span ptrace.Span, kind view.Kind, s *scratch) {
	if kind == view.KindCall {
		r.readCall(span, s)
	} else {
		r.readGroup(span, kind, s)
	}
}

// readPart adds the time of a part to the call before: zmq_rpc writes a call, then its parts. Skipped if the call states its parts itself (readCall).
func (r *rpcReader) readPart(span ptrace.Span) {
	if r.last.IsEmpty() || span.ParentSpanID() != r.last {
		return
	}
	if stage, ok := view.RPCStageOf(span.Name()); ok {
		if ns, possible := durationOf(span); possible {
			r.calls[len(r.calls)-1].parts[stage] += ns
		}
	}
}

// readCall records the client's span of a ZeroMQ call, with its sizes and the times of its parts. The part of the server is within the time of receiving, and
// is not added. An impossible value is unknown, and the span counts as invalid.
func (r *rpcReader) readCall(span ptrace.Span, s *scratch) {
	r.last = pcommon.SpanID{}
	c := &r.call
	c.Read(span, &s.resource)
	if c.System != spans.RPCSystemZeroMQ || span.Kind() != ptrace.SpanKindClient {
		return
	}
	bad := false
	v := callValues{key: callKey{spans.Label(c.Method), spans.Label(c.Network)}, request: countOf(c.RequestSize, &bad), response: countOf(c.ResponseSize, &bad)}
	stated := false // the call has the times of its parts
	for i, took := range c.Duration {
		if ns, ok := nanoseconds(took, &bad); ok && view.RPCStage(i) != view.RPCServer {
			v.parts[i], stated = ns, true
		}
	}
	ns, possible := durationOf(span)
	if bad || !possible {
		s.invalid++
	}
	if possible {
		s.note(span, r.family, &c.Head, len(r.calls), ns)
		if !stated { // if stated, the spans of the parts would count twice
			r.last = span.SpanID()
		}
		r.calls = append(r.calls, v)
	}
}

// readGroup records the root of a group of calls: a pass, a session, or calls of no pass.
func (r *rpcReader) readGroup(span ptrace.Span, kind view.Kind, s *scratch) {
	g, bad := &r.group, false
	g.Read(span, &s.resource)
	v := groupValues{pass: kind == view.KindPass, calls: countOf(g.Calls, &bad), disagreement: g.Disagreement, share: g.Share}
	if kind == view.KindSession { // a session has a single Init, whose shares would set the gauges
		for i := range v.share {
			v.share[i] = math.NaN()
		}
	}
	ns, possible := durationOf(span)
	if bad || !possible {
		s.invalid++
	}
	if possible {
		s.note(span, r.family, &g.Head, ^len(r.groups), ns)
		r.groups = append(r.groups, v)
	}
}

// rpcSeries are the series of a method, or of the groups of calls.
type rpcSeries struct {
	duration          *histogram[uint64]
	request, response *histogram[float64]
	pass              *histogram[uint64]
	calls             *histogram[float64]
	disagreement      *histogram[float64]
	share             [view.RPCStages]*gauge
	parts             [view.RPCStages]*counter
}

type rpcAdder struct{ groups[callKey, rpcSeries] }

// add adds a call or a group of calls to the series of its labels.
func (a *rpcAdder) add(s *store, o *observation, from reader, in *scratch) {
	r := from.(*rpcReader)
	if o.values < 0 {
		a.addGroup(s, o, &r.groups[^o.values], in)
	} else {
		a.addCall(s, o, &r.calls[o.values], in)
	}
}

// addCall adds a call to the series of its method and transport.
func (a *rpcAdder) addCall(s *store, o *observation, v *callValues, in *scratch) {
	g, rs, over := a.find(s, o, in, v.key, firstMetric(o, callDuration))
	s.countVerdicts(g, o)
	if o.incomplete {
		s.countIncomplete(g, o)
		return
	}
	s.observe(slot(s, callDuration, g, &rs.duration, &over.duration), o)
	if !math.IsNaN(v.request) {
		s.record(slot(s, requestSize, g, &rs.request, &over.request), v.request, o)
	}
	if !math.IsNaN(v.response) {
		s.record(slot(s, responseSize, g, &rs.response, &over.response), v.response, o)
	}
	addParts(s, o, g, rs, over, v)
}

// addParts adds the times of the parts of a call to the counters by stage. In the overflow group, slot 0 stands for every stage.
func addParts(s *store, o *observation, g *group, rs, over *rpcSeries, v *callValues) {
	for i, ns := range v.parts {
		if ns > 0 {
			s.count(slot(s, rpcStageTime, g, &rs.parts[i], &over.parts[0]), float64(ns)/1e9, o)
		}
	}
}

// addGroup adds a group of calls to the series common to groups: durations and numbers of calls for passes only, shares of stages except for sessions, and how
// far the throughput differs from the logged one. In the overflow group, slot 0 stands for the shares of every stage.
func (a *rpcAdder) addGroup(s *store, o *observation, v *groupValues, in *scratch) {
	g, rs, over := a.find(s, o, in, callKey{}, firstMetric(o, passDuration))
	g.noteDuration(int64(o.ns))
	s.countVerdicts(g, o)
	if o.incomplete {
		s.countIncomplete(g, o)
		return
	}
	if v.pass {
		s.observe(slot(s, passDuration, g, &rs.pass, &over.pass), o)
		if !math.IsNaN(v.calls) {
			s.record(slot(s, passCalls, g, &rs.calls, &over.calls), v.calls, o)
		}
	}
	for i, share := range v.share {
		if !math.IsNaN(share) {
			s.set(slot(s, rpcUtilization, g, &rs.share[i], &over.share[0]), share, o)
		}
	}
	if !math.IsNaN(v.disagreement) {
		s.record(slot(s, rpcDisagreement, g, &rs.disagreement, &over.disagreement), v.disagreement, o)
	}
}

// emit writes the series of a method, or of the groups of calls.
func (a *rpcAdder) emit(e *emitter, g *group) {
	rs, l := seriesOf[rpcSeries](g, a.family), labels{of: g}
	emit(e, callDuration, l, &rs.duration, durationPoint)
	emit(e, requestSize, l, &rs.request, numberPoint)
	emit(e, responseSize, l, &rs.response, numberPoint)
	emit(e, passDuration, l, &rs.pass, durationPoint)
	emit(e, passCalls, l, &rs.calls, numberPoint)
	for i := range rs.share {
		emit(e, rpcUtilization, labels{of: g, own: label{spans.AttrZMQStage, view.RPCStage(i).String()}}, &rs.share[i], gaugePoint)
	}
	for i := range rs.parts {
		emit(e, rpcStageTime, labels{of: g, own: label{spans.AttrZMQStage, view.RPCStage(i).String()}}, &rs.parts[i], sumPoint)
	}
	emit(e, rpcDisagreement, l, &rs.disagreement, numberPoint)
}
