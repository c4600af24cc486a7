package rpc

import (
	"cmp"
	"math"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/processors/internal/verdict"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/episode"
	"github.com/trainbridge/trainbridge/spans"
)

// A sentence says the fact first, then the advice.
const (
	// ofCalls is "12.9% of the 43 s of 98 calls".
	ofCalls = "{value:percent} of the {total:seconds} of [{calls} call[one call?|s]|the calls]"
	slowest = "[ The slowest call was {slowest}: {slowest time:seconds}.]"
)

var (
	serializeHigh = verdict.New(spans.VerdictZMQSerializeHigh, "Serialization took "+ofCalls+" (limit {threshold:percent}). "+
		"[shared memory?Shared memory is in use: see what still goes through msgpack; use|Use shared memory instead of msgpack, or]"+
		" a leaner encoding (protobuf), or send fewer bytes (bfloat16)."+slowest+episode.Share("passes"), &places)

	transportHigh = verdict.New(spans.VerdictZMQTransportHigh, "Send and receive took "+ofCalls+
		" (send {send:percent}, receive {receive:percent}[server?, the server's {server:percent} left out]; limit {threshold:percent}). "+
		"[tcp?The transport is {transport}: use IPC where client and server share a host, else check the network; "+
		"|Moving {bytes:bytes} takes {moved:percent} of it at 1 GiB/s: use shared memory for tensors, or send fewer bytes (bfloat16); ]"+
		"enlarge ZeroMQ's buffers (ZMQ_SNDBUF, ZMQ_RCVBUF) and high-water marks (ZMQ_SNDHWM, ZMQ_RCVHWM), send several tensors per message."+
		"[server? The server's queue is included.| The server's time is not logged, and so included.]"+slowest+episode.Share("passes"), &places)

	callsHigh = verdict.New(spans.VerdictZMQCallsHigh,
		"The pass made [incomplete?at least ]{calls} calls (limit {calls' limit}). "+
			"Fuse operators, batch several operations into one call, cache repeated results."+
			episode.Share("passes"), &places)

	transportTCP = verdict.New(spans.VerdictZMQTransportTCP, "The transport is {transport}; IPC is expected. "+
		"If client and server share a host, set the address of both to ipc:///…; if not, set 'zmq::expected_transport' to tcp."+
		episode.Share("passes"), &places)
)

var places = verdict.Places[judge]{
	Numbers: map[string]func(*judge) float64{
		"total":        func(j *judge) float64 { return j.group.CallDuration },
		"send":         func(j *judge) float64 { return j.share[view.RPCSend] },
		"receive":      func(j *judge) float64 { return j.share[view.RPCReceive] },
		"server":       func(j *judge) float64 { return j.share[view.RPCServer] },
		"bytes":        (*judge).bytes,
		"moved":        (*judge).minTransportShare,
		"slowest time": func(j *judge) float64 { return positiveOrNaN(j.group.SlowestDuration) },
	},
	Counts: map[string]func(*judge) int64{
		"calls":        (*judge).calls,
		"calls' limit": func(j *judge) int64 { return int64(j.cfg.CallsHigh) },
		"held":         func(j *judge) int64 { return j.answer.HeldAgain() },
		"of":           func(j *judge) int64 { return int64(j.answer.Of) },
	},
	Texts: map[string]func([]byte, *judge) []byte{
		"slowest":   func(b []byte, j *judge) []byte { return append(b, j.group.SlowestMethod...) },
		"transport": func(b []byte, j *judge) []byte { return append(b, cmp.Or(j.group.Transport, "TCP")...) },
	},
	When: map[string]func(*judge) bool{
		"one call":      func(j *judge) bool { return j.calls() == 1 },
		"shared memory": func(j *judge) bool { return j.group.SharedMemory },
		"server":        (*judge).serverKnown,
		"tcp":           func(j *judge) bool { return j.tcp },
		"incomplete":    func(j *judge) bool { return j.group.Incomplete },
	},
}

// calls returns the number of calls; −1: not logged.
func (j *judge) calls() int64 {
	if j.group.Calls >= 1 {
		return int64(j.group.Calls)
	}
	return -1
}

// positiveOrNaN returns x if above 0, else NaN.
func positiveOrNaN(x float64) float64 {
	if x > 0 {
		return x
	}
	return math.NaN()
}
