package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// RPCStage numbers the stages that calls spend their time on.
type RPCStage uint8

// The stages. Their durations add up to the duration of the calls, but for RPCServer, which is within RPCReceive. RPCTransport has a share only: RPCSend and
// RPCReceive, without RPCServer.
const (
	RPCSerialize RPCStage = iota
	RPCSend
	RPCReceive
	RPCDeserialize
	RPCServer
	RPCUnattributed
	RPCTransport
	RPCStages
)

var rpcStages = [RPCStages]string{"serialize", "send", "receive", "deserialize", "server", "unattributed", "transport"}

// String is the value of spans.AttrZMQStage.
func (s RPCStage) String() string {
	if s >= RPCStages {
		return ""
	}
	return rpcStages[s]
}

// Group is the root of a group of calls: a forward pass, a session's set-up, or calls of no pass. It has the sums of its calls.
type Group struct {
	Head

	Ordinal Int     // of a pass in its session, from 1
	Block   Int     // how often the ids of calls had begun anew in the log; absent: never
	Calls   float64 // how many
	End     string  // why it ended: one of the PassEnd… values

	CallDuration float64            // s, of all calls
	Duration     [RPCStages]float64 // s, of the stages
	Share        [RPCStages]float64 // of CallDuration, train_perf's
	Offline      float64            // s, beside the calls

	Network      string // network.transport: unix, tcp
	Transport    string // as the log has it
	SharedMemory bool   // tensors do not go through the messages

	RequestSize, ResponseSize float64 // By, of the messages
	Throughput                float64 // By/s
	Disagreement              float64 // the largest |recomputed − reported| / recomputed of its calls
	SlowestMethod             string
	SlowestDuration           float64 // s
}

var noGroup = func() Group {
	g := Group{
		Calls: absent, CallDuration: absent, Offline: absent, RequestSize: absent, ResponseSize: absent, Throughput: absent, Disagreement: absent,
		SlowestDuration: absent,
	}
	for i := range RPCStages {
		g.Duration[i], g.Share[i] = absent, absent
	}
	return g
}()

// Read reads a span of KindPass, KindSession or KindCalls.
func (g *Group) Read(span ptrace.Span, res *Resource) {
	*g = noGroup
	g.Network, g.Transport, g.SharedMemory = res.network, res.transport, res.sharedMemory
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrZMQPass:
			g.Ordinal = IntOf(v)
		case spans.AttrZMQPassBlock:
			g.Block = IntOf(v)
		case spans.AttrZMQPassCalls:
			g.Calls = spans.ValueNumber(v)
		case spans.AttrZMQPassEnd:
			g.End = spans.ValueText(v)
		case spans.AttrZMQCallDuration:
			g.CallDuration = spans.ValueNumber(v)
		case spans.AttrZMQSerializeDuration:
			g.Duration[RPCSerialize] = spans.ValueNumber(v)
		case spans.AttrZMQSendDuration:
			g.Duration[RPCSend] = spans.ValueNumber(v)
		case spans.AttrZMQReceiveDuration:
			g.Duration[RPCReceive] = spans.ValueNumber(v)
		case spans.AttrZMQDeserializeDuration:
			g.Duration[RPCDeserialize] = spans.ValueNumber(v)
		case spans.AttrZMQServerDuration:
			g.Duration[RPCServer] = spans.ValueNumber(v)
		case spans.AttrZMQUnattributedDuration:
			g.Duration[RPCUnattributed] = spans.ValueNumber(v)
		case spans.AttrZMQOfflineDuration:
			g.Offline = spans.ValueNumber(v)
		case spans.AttrZMQSerializeUtilization:
			g.Share[RPCSerialize], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQSendUtilization:
			g.Share[RPCSend], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQReceiveUtilization:
			g.Share[RPCReceive], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQDeserializeUtilization:
			g.Share[RPCDeserialize], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQServerUtilization:
			g.Share[RPCServer], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQUnattributedUtilization:
			g.Share[RPCUnattributed], g.Judged = spans.ValueNumber(v), true
		case spans.AttrZMQTransportUtilization:
			g.Share[RPCTransport], g.Judged = spans.ValueNumber(v), true
		case spans.AttrSummary:
			g.Judged = true
		case spans.AttrNetworkTransport:
			g.Network = spans.ValueText(v)
		case spans.AttrZMQTransport:
			g.Transport = spans.ValueText(v)
		case spans.AttrZMQSharedMemory:
			g.SharedMemory = flagOf(v)
		case spans.AttrZMQRequestSize:
			g.RequestSize = spans.ValueNumber(v)
		case spans.AttrZMQResponseSize:
			g.ResponseSize = spans.ValueNumber(v)
		case spans.AttrZMQThroughput:
			g.Throughput = spans.ValueNumber(v)
		case spans.AttrZMQThroughputDisagreement:
			g.Disagreement = spans.ValueNumber(v)
		case spans.AttrZMQSlowestMethod:
			g.SlowestMethod = spans.ValueText(v)
		case spans.AttrZMQSlowestDuration:
			g.SlowestDuration = spans.ValueNumber(v)
		default:
			g.take(name, v)
		}
	}
}

// Call is one RPC.
type Call struct {
	Head

	System  string // spans.RPCSystemZeroMQ, …
	Method  string // the span's name, where it does not say another
	Network string // network.transport: unix, tcp
	ID      Int    // as the log has it

	RequestSize, ResponseSize float64 // By
	Throughput                float64 // By/s; absent where tensors do not go through the messages

	Took     float64                  // s, as the log has it; only where logs are read once
	Duration [RPCUnattributed]float64 // s, of the stages before; only of a call whose stages are no spans, or where Took is said
	Offline  float64                  // s, beside the call; likewise
}

var noCall = Call{
	RequestSize: absent, ResponseSize: absent, Throughput: absent, Took: absent,
	Duration: [RPCUnattributed]float64{absent, absent, absent, absent, absent}, Offline: absent,
}

// Read reads a span of KindCall.
func (c *Call) Read(span ptrace.Span, res *Resource) {
	*c = noCall
	c.System, c.Network = res.system, res.network
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrRPCSystem:
			c.System = spans.ValueText(v)
		case spans.AttrRPCMethod:
			c.Method = spans.ValueText(v)
		case spans.AttrNetworkTransport:
			c.Network = spans.ValueText(v)
		case spans.AttrZMQCallID:
			c.ID = IntOf(v)
		case spans.AttrZMQRequestSize:
			c.RequestSize = spans.ValueNumber(v)
		case spans.AttrZMQResponseSize:
			c.ResponseSize = spans.ValueNumber(v)
		case spans.AttrZMQThroughput:
			c.Throughput = spans.ValueNumber(v)
		case spans.AttrZMQCallDuration:
			c.Took = spans.ValueNumber(v)
		case spans.AttrZMQSerializeDuration:
			c.Duration[RPCSerialize] = spans.ValueNumber(v)
		case spans.AttrZMQSendDuration:
			c.Duration[RPCSend] = spans.ValueNumber(v)
		case spans.AttrZMQReceiveDuration:
			c.Duration[RPCReceive] = spans.ValueNumber(v)
		case spans.AttrZMQDeserializeDuration:
			c.Duration[RPCDeserialize] = spans.ValueNumber(v)
		case spans.AttrZMQServerDuration:
			c.Duration[RPCServer] = spans.ValueNumber(v)
		case spans.AttrZMQOfflineDuration:
			c.Offline = spans.ValueNumber(v)
		default:
			c.take(name, v)
		}
	}
	if c.Method == "" {
		c.Method = span.Name()
	}
}
