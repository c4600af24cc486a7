package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// RPCStage numbers the stages of a call's time.
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

// String returns the value of spans.AttrZMQStage.
func (s RPCStage) String() string {
	if s >= RPCStages {
		return ""
	}
	return rpcStages[s]
}

// RPCStageOf returns the stage of a call's part, by the name of its span. ok is false for other spans, for example the server's.
func RPCStageOf(name string) (s RPCStage, ok bool) {
	switch name {
	case spans.SpanRPCSerialize:
		return RPCSerialize, true
	case spans.SpanRPCSend:
		return RPCSend, true
	case spans.SpanRPCReceive:
		return RPCReceive, true
	case spans.SpanRPCDeserialize:
		return RPCDeserialize, true
	case spans.SpanRPCUnattributed:
		return RPCUnattributed, true
	}
	return 0, false
}

// finish names a call of another writer, whose method is the span's name.
func (c *Call) finish(span ptrace.Span) {
	if c.Method == "" {
		c.Method = span.Name()
	}
}
