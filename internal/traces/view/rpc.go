package view

import "go.opentelemetry.io/collector/pdata/ptrace"

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

// finish names a call of another writer, whose method is the span's name.
func (c *Call) finish(span ptrace.Span) {
	if c.Method == "" {
		c.Method = span.Name()
	}
}
