package trainperfprocessor

import (
	"cmp"
	"encoding/binary"
	"math"
	"strconv"
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
	cfg      ZMQConfig
	episodes *allEpisodes
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
		attrs.EnsureCapacity(attrs.Len() + int(zmqStages) + 4) // one more share, the summary and the verdicts
		for i, x := range share {
			if isFinite(x) {
				attrs.PutDouble(zmqShareAttr[i], x)
				outcome = groupMeasured
			}
		}
		spans.PutFinite(attrs, spans.AttrZMQTransportUtilization, transport)
	}
	g.summarize(span, &share, s)
	if name == spans.SpanRPCSession { // setting up is no workload
		return outcome
	}
	z.episodes.mu.Lock()
	defer z.episodes.mu.Unlock()
	id := span.SpanID()
	e, _ := z.episodes.of(episodeKey{service: s.service, run: s.run, of: name})
	e.record(binary.BigEndian.Uint64(id[:]))
	s.verdicts = s.verdicts[:0]
	if exceeds(share[zmqSerialize], z.cfg.SerializeHigh) {
		z.judgeSerialize(&g, share[zmqSerialize], e.mostly(spans.VerdictZMQSerializeHigh), s)
	}
	if exceeds(transport, z.cfg.TransportHigh) && (g.tcp || exceeds(g.moved(), z.cfg.TransportHigh)) {
		z.judgeTransport(&g, &share, transport, e.mostly(spans.VerdictZMQTransportHigh), s)
	}
	// How often a client calls, and over what, is how it is written: it is said once, not on each pass.
	if name == spans.SpanRPCPass && z.cfg.CallsHigh > 0 && g.calls > int64(z.cfg.CallsHigh) {
		z.judgeCalls(&g, e.holds(spans.VerdictZMQCallsHigh), s)
	}
	if g.tcp && z.cfg.ExpectedTransport == expectIPC {
		z.judgeTCP(&g, e.holds(spans.VerdictZMQTransportTCP), s)
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
	bytes        float64            // of the messages; 0: not known
	throughput   float64            // By/s
}

func readGroup(attrs pcommon.Map) zmqGroup {
	nan := math.NaN()
	g := zmqGroup{total: nan, slowestTime: nan, throughput: nan, stages: [zmqStages]float64{nan, nan, nan, nan, nan, nan}}
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrVerdict, spans.AttrSummary, spans.AttrZMQTransportUtilization, spans.AttrZMQSerializeUtilization, spans.AttrZMQSendUtilization, spans.AttrZMQReceiveUtilization,
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
		case spans.AttrZMQRequestSize, spans.AttrZMQResponseSize:
			if x := spans.ValueNumber(v); x > 0 {
				g.bytes += x
			}
		case spans.AttrZMQThroughput:
			g.throughput = spans.ValueNumber(v)
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

// ipcRate is what ZeroMQ moves through a Unix socket at least, By/s: the public log of 43 s spent 2.5 s on sending 3.3 GiB.
const ipcRate = 1 << 30

// moved is the share of the calls' time in which their bytes could have been moved, NaN where the bytes are elsewhere. Receive has the server's queue and
// compute in it, and a column for the server is of its kernels at best; the bytes say whether the transport can be the cause.
func (g *zmqGroup) moved() float64 {
	if g.sharedMemory {
		return math.NaN()
	}
	return g.share(g.bytes / ipcRate)
}

// summarize writes what the group is in one line: "serialize 12.9 % · send 5.9 % · receive 74.5 % · deserialize 6.8 %; 98 calls in 42.9996 s; 162.4 MiB/s; IPC".
func (g *zmqGroup) summarize(span ptrace.Span, share *[zmqStages]float64, s *scratch) {
	l := line{s.text[:0]}
	for i, name := range [...]string{zmqSerialize: "serialize", zmqSend: "send", zmqReceive: "receive", zmqDeserialize: "deserialize"} {
		l.share(name, share[i])
		if zmqStage(i) == zmqReceive && g.serverKnown() && !math.IsNaN(share[i]) {
			l.text = append(l.text, " (server"...)
			l.text = append(strconv.AppendFloat(append(l.text, ' '), 100*share[zmqServer], 'f', 1, 64), " %)"...)
		}
	}
	if g.incomplete {
		l.part("incomplete")
	}
	if g.calls > 0 {
		l.part("")
		l.text = append(strconv.AppendInt(l.text, g.calls, 10), " call"...)
		if g.calls > 1 {
			l.text = append(l.text, 's')
		}
		if positive(g.total) {
			l.text = append(appendShort(append(l.text, " in "...), g.total), " s"...)
		}
	}
	if positive(g.throughput) {
		l.part("")
		l.text = append(strconv.AppendFloat(l.text, g.throughput/mib, 'f', 1, 64), " MiB/s"...)
	}
	if g.transport != "" {
		l.part(g.transport)
	}
	s.text = l.put(span)
}

func (z *zmq) judgeSerialize(g *zmqGroup, share float64, said told, s *scratch) {
	limit := z.cfg.SerializeHigh
	s.tell(said, verdict{name: spans.VerdictZMQSerializeHigh, severity: warning, value: share, threshold: limit}, func(b []byte) []byte {
		b = append(b, "Serialization took "...)
		b = g.appendOfCalls(b, share)
		b = append(b, ", above the limit of "...)
		b = appendPercent(b, limit)
		if g.sharedMemory {
			b = append(b, ": shared memory is in use, see what still goes through msgpack; use a leaner encoding (protobuf), or send fewer bytes (bfloat16)."...)
		} else {
			b = append(b, ": use shared memory instead of msgpack, or a leaner encoding (protobuf), or send fewer bytes (bfloat16)."...)
		}
		return said.appendShare(g.appendSlowest(b), "passes")
	})
}

func (z *zmq) judgeTransport(g *zmqGroup, share *[zmqStages]float64, transport float64, said told, s *scratch) {
	limit := z.cfg.TransportHigh
	s.tell(said, verdict{name: spans.VerdictZMQTransportHigh, severity: warning, value: transport, threshold: limit}, func(b []byte) []byte {
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
		if g.tcp {
			b = append(b, ", over "...)
			b = append(b, cmp.Or(g.transport, "TCP")...)
			b = append(b, ": use IPC where client and server share a host, else check the network; "...)
		} else {
			b = append(b, ", and moving "...)
			b = appendDecimal(b, g.bytes/(1<<30), 1)
			b = append(b, " GiB takes "...)
			b = appendPercent(b, g.moved())
			b = append(b, " of it at 1 GiB/s: use shared memory for tensors, or send fewer bytes (bfloat16); "...)
		}
		b = append(b, "enlarge ZeroMQ's buffers (ZMQ_SNDBUF, ZMQ_RCVBUF) and high-water marks (ZMQ_SNDHWM, ZMQ_RCVHWM), send several tensors in one message."...)
		if g.serverKnown() {
			b = append(b, " The server's queue is in it."...)
		} else {
			b = append(b, " How long the server computed is not in the log, and so in receive."...)
		}
		return said.appendShare(g.appendSlowest(b), "passes")
	})
}

func (z *zmq) judgeCalls(g *zmqGroup, said told, s *scratch) {
	limit := z.cfg.CallsHigh
	s.tell(said, verdict{name: spans.VerdictZMQCallsHigh, severity: warning, value: float64(g.calls), threshold: float64(limit)}, func(b []byte) []byte {
		b = append(b, "The pass made "...)
		if g.incomplete {
			b = append(b, "at least "...)
		}
		b = appendInt(b, int(g.calls))
		b = append(b, " calls, above the limit of "...)
		b = appendInt(b, limit)
		b = append(b, ": fuse operators so that fewer calls are needed, batch several operations into one call, cache results that are computed again."...)
		return said.appendShare(b, "passes")
	})
}

func (z *zmq) judgeTCP(g *zmqGroup, said told, s *scratch) {
	none := math.NaN()
	s.tell(said, verdict{name: spans.VerdictZMQTransportTCP, severity: warning, value: none, threshold: none}, func(b []byte) []byte {
		b = append(b, "The transport is "...)
		b = append(b, cmp.Or(g.transport, "TCP")...)
		b = append(b, " where IPC is expected: if client and server share a host, set the address of both to ipc:///… in place of tcp://…; "+
			"if they do not, set 'zmq::expected_transport' to tcp."...)
		return said.appendShare(b, "passes")
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
