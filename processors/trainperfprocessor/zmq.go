package trainperfprocessor

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/trainbridge/trainbridge/spans"
)

// transportTCP is the value of spans.AttrNetworkTransport, and in capitals how spans.AttrZMQTransport begins.
const transportTCP = "tcp"

// The parts of a group's time that have a share.
type zmqStage uint8

const (
	zmqSerialize zmqStage = iota
	zmqSend
	zmqReceive
	zmqDeserialize
	zmqServer
	zmqUnattributed
	zmqStages
)

var zmqShareAttr = [zmqStages]string{
	zmqSerialize: spans.AttrZMQSerializeUtilization, zmqSend: spans.AttrZMQSendUtilization, zmqReceive: spans.AttrZMQReceiveUtilization,
	zmqDeserialize: spans.AttrZMQDeserializeUtilization, zmqServer: spans.AttrZMQServerUtilization, zmqUnattributed: spans.AttrZMQUnattributedUtilization,
}

// groupOutcome says what could be said about a group of calls.
type groupOutcome uint8

const (
	groupMeasured groupOutcome = iota
	groupNoStages
	groupNoDuration
	groupAlreadyMeasured
	groupOutcomes
)

var groupOptions = func() (options [groupOutcomes]metric.AddOption) {
	for i, name := range [groupOutcomes]string{"measured", "no_stages", "no_duration", "already_measured"} {
		options[i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", name)))
	}
	return options
}()

// zmq measures and judges groups of ZeroMQ RPCs. A group's span has the sums of its calls, so nothing else is needed.
type zmq struct {
	cfg ZMQConfig
}

// group measures one group. What ended early is judged too: its sums are those of the calls that were seen.
func (z *zmq) group(name string, span ptrace.Span, s *scratch) groupOutcome {
	attrs := span.Attributes()
	g := readGroup(attrs)
	if g.done {
		return groupAlreadyMeasured
	}
	outcome := groupNoDuration
	var share [zmqStages]float64
	for i := range share {
		share[i] = g.share(g.stages[i])
	}
	transport := g.transportShare()
	if positive(g.total) {
		outcome = groupNoStages
		attrs.EnsureCapacity(attrs.Len() + int(zmqStages) + 3) // one more share, and the verdicts
		for i, x := range share {
			if isFinite(x) {
				attrs.PutDouble(zmqShareAttr[i], x)
				outcome = groupMeasured
			}
		}
		spans.PutFinite(attrs, spans.AttrZMQTransportUtilization, transport)
	}
	if name == spans.SpanRPCSession { // setting up is no workload
		return outcome
	}
	s.verdicts = s.verdicts[:0]
	if exceeds(share[zmqSerialize], z.cfg.SerializeHigh) {
		z.judgeSerialize(&g, share[zmqSerialize], s)
	}
	if exceeds(transport, z.cfg.TransportHigh) {
		z.judgeTransport(&g, &share, transport, s)
	}
	if name == spans.SpanRPCPass && z.cfg.CallsHigh > 0 && g.calls > int64(z.cfg.CallsHigh) {
		z.judgeCalls(&g, s)
	}
	if g.tcp && z.cfg.ExpectedTransport == expectIPC {
		z.judgeTCP(&g, s)
	}
	s.put(span)
	return outcome
}

// shareResolution is far below what the log's three decimals of a millisecond can tell, and above what adding them up as floats gets wrong:
// 0.1 s + 0.2 s of 1 s is not more than 30 %.
const shareResolution = 1e-9

// exceeds says whether a share is above its limit, where 0 is none. NaN, a share that is not known, is above nothing.
func exceeds(share, limit float64) bool { return limit > 0 && share > limit+shareResolution }

// zmqGroup is what one pass over the attributes of a group finds. Numbers that are not there are NaN.
type zmqGroup struct {
	done         bool // has a share or verdict already: a retried batch
	incomplete   bool
	sharedMemory bool
	tcp          bool
	transport    string // as the log has it
	calls        int64
	total        float64            // s
	stages       [zmqStages]float64 // s
	slowest      string             // method
	slowestTime  float64            // s
}

func readGroup(attrs pcommon.Map) zmqGroup {
	nan := math.NaN()
	g := zmqGroup{total: nan, slowestTime: nan, stages: [zmqStages]float64{nan, nan, nan, nan, nan, nan}}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrVerdict, spans.AttrZMQTransportUtilization, spans.AttrZMQSerializeUtilization, spans.AttrZMQSendUtilization, spans.AttrZMQReceiveUtilization,
			spans.AttrZMQDeserializeUtilization, spans.AttrZMQServerUtilization, spans.AttrZMQUnattributedUtilization:
			g.done = true
		case spans.AttrIncomplete:
			g.incomplete = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrZMQSharedMemory:
			g.sharedMemory = v.Type() == pcommon.ValueTypeBool && v.Bool()
		case spans.AttrNetworkTransport:
			g.tcp = g.tcp || spans.ValueText(v) == transportTCP
		case spans.AttrZMQTransport:
			g.transport = spans.ValueText(v)
			g.tcp = g.tcp || len(g.transport) >= len(transportTCP) && strings.EqualFold(g.transport[:len(transportTCP)], transportTCP)
		case spans.AttrZMQPassCalls:
			if v.Type() == pcommon.ValueTypeInt {
				g.calls = v.Int()
			}
		case spans.AttrZMQCallDuration:
			g.total = spans.ValueNumber(v)
		case spans.AttrZMQSerializeDuration:
			g.stages[zmqSerialize] = spans.ValueNumber(v)
		case spans.AttrZMQSendDuration:
			g.stages[zmqSend] = spans.ValueNumber(v)
		case spans.AttrZMQReceiveDuration:
			g.stages[zmqReceive] = spans.ValueNumber(v)
		case spans.AttrZMQDeserializeDuration:
			g.stages[zmqDeserialize] = spans.ValueNumber(v)
		case spans.AttrZMQServerDuration:
			g.stages[zmqServer] = spans.ValueNumber(v)
		case spans.AttrZMQUnattributedDuration:
			g.stages[zmqUnattributed] = spans.ValueNumber(v)
		case spans.AttrZMQSlowestMethod:
			g.slowest = spans.ValueText(v)
		case spans.AttrZMQSlowestDuration:
			g.slowestTime = spans.ValueNumber(v)
		}
	}
	return g
}

// share of the calls' time, NaN where there is none.
func (g *zmqGroup) share(seconds float64) float64 {
	if x := seconds / g.total; positive(g.total) && x >= 0 && isFinite(x) {
		return x
	}
	return math.NaN()
}

// serverKnown: the log prints 0 where the server said nothing.
func (g *zmqGroup) serverKnown() bool { return g.stages[zmqServer] > 0 }

// transportShare is NaN also where the server worked for longer than the client waited: such numbers are wrong, not a share of nothing.
func (g *zmqGroup) transportShare() float64 {
	wait := g.share(g.stages[zmqSend]) + g.share(g.stages[zmqReceive])
	if g.serverKnown() {
		wait -= g.share(g.stages[zmqServer])
	}
	if wait < 0 && wait >= -shareResolution {
		return 0
	}
	if !(wait >= 0) || !isFinite(wait) {
		return math.NaN()
	}
	return wait
}

func (z *zmq) judgeSerialize(g *zmqGroup, share float64, s *scratch) {
	limit := z.cfg.SerializeHigh
	s.say(verdict{name: spans.VerdictZMQSerializeHigh, severity: warning, value: share, threshold: limit}, func(b []byte) []byte {
		b = append(b, "Serialization took "...)
		b = g.appendOfCalls(b, share)
		b = append(b, ", above the limit of "...)
		b = appendPercent(b, limit)
		if g.sharedMemory {
			b = append(b, ": shared memory is in use, see what still goes through msgpack; use a leaner encoding (protobuf), or send fewer bytes (bfloat16)."...)
		} else {
			b = append(b, ": use shared memory instead of msgpack, or a leaner encoding (protobuf), or send fewer bytes (bfloat16)."...)
		}
		return g.appendSlowest(b)
	})
}

func (z *zmq) judgeTransport(g *zmqGroup, share *[zmqStages]float64, transport float64, s *scratch) {
	limit := z.cfg.TransportHigh
	s.say(verdict{name: spans.VerdictZMQTransportHigh, severity: warning, value: transport, threshold: limit}, func(b []byte) []byte {
		b = append(b, "Sending and receiving took "...)
		b = g.appendOfCalls(b, transport)
		b = append(b, " (send "...)
		b = appendPercent(b, share[zmqSend])
		b = append(b, ", receive "...)
		b = appendPercent(b, share[zmqReceive])
		if g.serverKnown() {
			b = append(b, ", without the "...)
			b = appendPercent(b, share[zmqServer])
			b = append(b, " that the server computed"...)
		}
		b = append(b, "), above the limit of "...)
		b = appendPercent(b, limit)
		b = append(b, ": check the transport (IPC or TCP)"...)
		if g.transport != "" {
			b = append(b, ", which the log says is "...)
			b = append(b, g.transport...)
		}
		if g.serverKnown() {
			b = append(b, ". The server's queue is in it."...)
		} else {
			b = append(b, ". The log does not say how long the server computed: its queue and its compute are in receive too, so the transport may not be the cause."...)
		}
		return g.appendSlowest(b)
	})
}

func (z *zmq) judgeCalls(g *zmqGroup, s *scratch) {
	limit := z.cfg.CallsHigh
	s.say(verdict{name: spans.VerdictZMQCallsHigh, severity: warning, value: float64(g.calls), threshold: float64(limit)}, func(b []byte) []byte {
		b = append(b, "The pass made "...)
		if g.incomplete {
			b = append(b, "at least "...)
		}
		b = appendInt(b, int(g.calls))
		b = append(b, " calls, above the limit of "...)
		b = appendInt(b, limit)
		return append(b, ": fuse operators so that fewer calls are needed, batch several operations into one call, cache results that are computed again."...)
	})
}

func (z *zmq) judgeTCP(g *zmqGroup, s *scratch) {
	none := math.NaN()
	s.say(verdict{name: spans.VerdictZMQTransportTCP, severity: warning, value: none, threshold: none}, func(b []byte) []byte {
		b = append(b, "The transport is "...)
		if g.transport != "" {
			b = append(b, g.transport...)
		} else {
			b = append(b, "TCP"...)
		}
		return append(b, " where IPC is expected: if client and server share a host, set the address of both to ipc:///… in place of tcp://…; "+
			"if they do not, set 'zmq::expected_transport' to tcp."...)
	})
}

// appendOfCalls writes "12.9% of the 43 s of 98 calls".
func (g *zmqGroup) appendOfCalls(b []byte, share float64) []byte {
	b = appendPercent(b, share)
	b = append(b, " of the "...)
	b = appendShort(b, g.total)
	b = append(b, " s of "...)
	switch {
	case g.calls == 1:
		return append(b, "1 call"...)
	case g.calls > 1:
		b = appendInt(b, int(g.calls))
		return append(b, " calls"...)
	}
	return append(b, "the calls"...)
}

func (g *zmqGroup) appendSlowest(b []byte) []byte {
	if g.slowest == "" || !positive(g.slowestTime) {
		return b
	}
	b = append(b, " The slowest call was "...)
	b = append(b, g.slowest...)
	b = append(b, " with "...)
	b = appendShort(b, g.slowestTime)
	return append(b, " s."...)
}
