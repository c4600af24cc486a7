package zmqrpcreceiver

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
	"github.com/trainbridge/trainbridge/spans"
)

// stageSpan is a column that becomes a span. A value of 0 does not: the duration was below the last digit, and Jaeger marks spans without duration as invalid.
type stageSpan struct {
	column         rpclog.Column
	name, duration string
}

// stageSpans begin with the stages of a call, one after the other in the client (tee_runner_optimized.py, _send_request).
var stageSpans = [...]stageSpan{
	{rpclog.Serialize, spans.SpanRPCSerialize, spans.AttrZMQSerializeDuration},
	{rpclog.Send, spans.SpanRPCSend, spans.AttrZMQSendDuration},
	{rpclog.Receive, spans.SpanRPCReceive, spans.AttrZMQReceiveDuration},
	{rpclog.Deserialize, spans.SpanRPCDeserialize, spans.AttrZMQDeserializeDuration},
	{rpclog.Server, spans.SpanRPCServer, spans.AttrZMQServerDuration},
	{rpclog.Offline, spans.SpanRPCOffline, spans.AttrZMQOfflineDuration},
}

// callStages is the number of stageSpans that are parts of a call's time. Server compute is within receive, offline work outside of the call.
const callStages = 4

// tick is Jaeger's unit of time, ns.
const tick = 1000

// maxAround is the number of spans of a trace besides calls and stages: the root, the summary and the aggregates of stages.
const maxAround = 2 + len(stageSpans)

// stages is the number of spans below the call and, for offline work, beside it.
func (c *call) stages() (n int) {
	for i := range stageSpans {
		if c.ns[stageSpans[i].column] > 0 {
			n++
		}
	}
	if c.left() > 0 {
		n++
	}
	return n
}

// left is the part of a call's time drawn as rpc.unattributed: less than 1 % would only be one row more. The sums have all unattributed time.
func (c *call) left() int64 {
	if rest := c.unattributed(); rest >= c.ns[rpclog.Total]/100 {
		return rest
	}
	return 0
}

// stages adds the spans of a call's stages, one after the other from the call's start. Stages have no attributes: their names say enough. Unattributed time is
// drawn at the end, because its position is not in the log; if long enough, a tick of it follows each stage, because Jaeger's critical path leaves out a span
// that ends as the next begins. The time of the server's computing within rpc.receive is not in the log either: it is drawn at the end of rpc.receive.
//
// Offline work came before the call, and is a span beside it.
func (bd *builder) stages(g *group, c *call, id pcommon.SpanID) {
	at := c.start
	within, until := id, c.end() // parent and end of server compute, where the log does not have the receive time
	gap := int64(0)              // between two stages
	if c.unattributed() >= (callStages+1)*tick {
		gap = tick
	}
	add := func(name string, parent pcommon.SpanID, start, ns int64) pcommon.SpanID {
		sid := spans.SpanID(g.root.Trace, name, id[:])
		bd.AddPart(&spans.Span{Trace: g.root.Trace, ID: sid, Parent: parent, Name: name, Kind: ptrace.SpanKindInternal, Start: start, End: start + ns})
		return sid
	}
	for i := range stageSpans[:callStages] {
		st := &stageSpans[i]
		ns := c.ns[st.column]
		if ns == 0 {
			continue
		}
		sid := add(st.name, id, at, ns)
		if st.column == rpclog.Receive {
			within, until = sid, at+ns
		}
		at += ns + gap
	}
	if rest := c.left(); rest > 0 {
		add(spans.SpanRPCUnattributed, id, at, c.end()-at)
	}
	if offline := c.ns[rpclog.Offline]; offline > 0 {
		add(spans.SpanRPCOffline, g.root.Span, c.start-offline, offline)
	}
	if server := c.ns[rpclog.Server]; server > 0 { // last, because of its different resource
		res, kind := bd.of(spans.SpanRPCServer)
		bd.Add(res, spans.Span{
			Trace: g.root.Trace, ID: spans.SpanID(g.root.Trace, spans.SpanRPCServer, id[:]), Parent: within, Name: spans.SpanRPCServer, Kind: kind,
			Start: until - server, End: until, Source: res.Time,
		})
	}
}

// of returns the service that does the work of a stage. The server is a separate service, so that Jaeger draws the dependency.
func (bd *builder) of(stage string) (spans.Resource, ptrace.SpanKind) {
	if stage == spans.SpanRPCServer {
		return bd.server, ptrace.SpanKindServer
	}
	return bd.res, ptrace.SpanKindInternal
}

// aggregates adds one span per stage, for all calls whose stages have no spans: the number of calls, and sum, median and maximum of their durations. The span
// reaches from the start of the first such call to the end of the last. bare is the number of such calls.
func (bd *builder) aggregates(g *group, bare int) {
	all := make([]int64, 0, bare)
	for i := range stageSpans {
		st := &stageSpans[i]
		all = all[:0]
		var sum, from, to int64
		for j := range g.calls {
			c := &g.calls[j]
			if !c.bare || c.ns[st.column] == 0 {
				continue
			}
			if len(all) == 0 {
				from = c.start
			}
			from, to = min(from, c.start), max(to, c.end())
			all = append(all, c.ns[st.column])
			sum = addSaturated(sum, c.ns[st.column])
		}
		if len(all) == 0 {
			continue
		}
		slices.Sort(all)
		bd.begin(g.transport, g.root.ByID, g.calls[0].observed)
		res, kind := bd.of(st.name)
		s := bd.Add(res, spans.Span{
			Trace: g.root.Trace, ID: g.id("aggregate", []byte(st.name)), Parent: g.root.Span, Name: st.name, Is: spans.KindAggregate, Kind: kind,
			Start: from, End: to, Source: res.Time, Attributes: 4,
		})
		m := s.Attributes()
		m.PutInt(spans.AttrAggregateCount, int64(len(all)))
		m.PutDouble(spans.AttrAggregateSum, seconds(sum))
		m.PutDouble(spans.AttrAggregateP50, stat.Median(all)/1e9)
		m.PutDouble(spans.AttrAggregateMax, seconds(all[len(all)-1]))
	}
}
