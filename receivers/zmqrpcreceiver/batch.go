package zmqrpcreceiver

import (
	"encoding/binary"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
	"github.com/trainbridge/trainbridge/spans"
)

// passBatch is the passes and totals of a file that are sent together.
type passBatch struct {
	r      *zmqReceiver
	run    string
	groups []*group
	finals []*final
}

// Done returns the batch and its groups to their pools once the batch is delivered. Groups with many calls are left to the garbage collector: their memory is
// rarely needed.
func (b *passBatch) Done() {
	r := b.r
	for _, g := range b.groups {
		if cap(g.calls) <= usualCalls {
			g.reset()
			r.groups.Put(g, maxFree)
		}
	}
	clear(b.groups)
	clear(b.finals)
	*b = passBatch{groups: b.groups[:0], finals: b.finals[:0]}
	r.batches.Put(b, maxFree)
}

// builder turns groups into spans.
type builder struct {
	*spans.Batch
	res    spans.Resource // of the next spans
	server spans.Resource // of the called server
	run    ref            // the run's span
	whole  bool           // calls have all columns of their rows
}

// begin sets the transport of the next calls and whether an id decided their trace, and returns the source of their times.
func (bd *builder) begin(transport string, byID, observed bool) spans.TimeSource {
	r := &bd.res
	r.JoinBy = ""
	if byID {
		r.JoinBy = spans.JoinByID
	}
	r.Time, r.System, r.Transport = timeSource(observed), spans.RPCSystemZeroMQ, transport
	r.Network, r.SharedMemory = networkTransport(transport), sharedMemory(transport)
	bd.server = bd.res
	bd.server.Service += spans.ServerSuffix
	return r.Time
}

// Traces writes the spans of the batch: those of each group of calls, and the summaries. from is called before the spans of each row or summary, with its place
// in the log.
func (b *passBatch) Traces(out *spans.Batch, from filereceiver.From) {
	bd := builder{Batch: out, whole: b.r.Locates(), res: spans.Resource{Service: b.r.cfg.ServiceName, RunID: b.run}}
	bd.run.Trace, bd.run.Span = spans.RunIDs(b.run)
	for _, g := range b.groups {
		bd.group(g, from)
	}
	for _, f := range b.finals {
		from(f.place)
		bd.final(f)
	}
}

// timeSource is the source of a call's time: its arrival while tailing, else made of the file's time and the durations.
func timeSource(observed bool) spans.TimeSource {
	if observed {
		return spans.TimeObserved
	}
	return spans.TimeSynthetic
}

// link links a span to another one, if there is one.
func (bd *builder) link(s ptrace.Span, to ref) {
	if to.none() {
		return
	}
	bd.Link(s, to.Trace, to.Span)
}

// group adds the spans of a group: its root, linked to the run, the session and the group before; the calls with their stages; and aggregates for the stages
// without room.
func (bd *builder) group(g *group, from filereceiver.From) {
	from(g.calls[0].place)
	// The calls are in order, unless the clock was set back. The root includes the offline work before a call.
	start, end, observed := int64(math.MaxInt64), int64(0), true
	for i := range g.calls {
		c := &g.calls[i]
		start, end, observed = min(start, c.start-c.ns[rpclog.Offline]), max(end, c.end()), observed && c.observed
	}
	source := bd.begin(g.transport, g.root.ByID, observed)
	s := bd.Add(bd.res, spans.Span{
		Trace: g.root.Trace, ID: g.root.Span, Parent: g.parent, Name: rootNames[g.kind], Is: rootKinds[g.kind], Kind: ptrace.SpanKindInternal,
		Start: start, End: end, Source: source, Attributes: 20 + spans.AddedToCalls,
	})
	g.describe(s.Attributes())
	bd.link(s, bd.run)
	if g.session != g.before { // for the group right behind the session's, one link says both
		bd.link(s, g.session)
	}
	bd.link(s, g.before)

	var key [4]byte
	bare := 0 // calls whose stages are no spans
	for i := range g.calls {
		c := &g.calls[i]
		from(c.place)
		binary.BigEndian.PutUint32(key[:], uint32(i))
		id := g.id("call", key[:])
		if i == 0 || c.observed != g.calls[i-1].observed { // the resource says where the times are from
			source = bd.begin(g.transport, g.root.ByID, c.observed)
		}
		cs := bd.Add(bd.res, spans.Span{
			Trace: g.root.Trace, ID: id, Parent: g.root.Span, Name: c.method, Is: spans.KindCall, Kind: ptrace.SpanKindClient,
			Start: c.start, End: c.end(), Source: source, Attributes: c.attributes(),
		})
		c.describe(cs.Attributes(), g, bd.whole)
		if c.bare {
			bare++
			continue
		}
		bd.stages(g, c, id)
	}
	if bare > 0 {
		bd.aggregates(g, bare)
	}
}

// describe writes the attributes of the root: why the group ended, the sums of its calls by stage, sizes and throughput, and the slowest call.
func (g *group) describe(m pcommon.Map) {
	if g.kind == passGroup {
		m.PutInt(spans.AttrZMQPass, g.ordinal)
		if g.end == spans.PassEndRestart || g.end == spans.PassEndTimeout {
			spans.PutIncomplete(m, g.end)
		}
	}
	if g.block > 0 {
		m.PutInt(spans.AttrZMQPassBlock, g.block)
	}
	m.PutInt(spans.AttrZMQPassCalls, g.sums.Calls)
	if g.left > 0 {
		m.PutInt(spans.AttrZMQPassLeft, g.left)
	}
	m.PutStr(spans.AttrZMQPassEnd, g.end)
	t := &g.sums
	m.PutDouble(spans.AttrZMQCallDuration, seconds(t.NS[rpclog.Total]))
	for i := range stageSpans {
		// For server and offline time a column of zeros means that the log has no measurement.
		if st := &stageSpans[i]; t.Has.Has(st.column) && (i < callStages || t.NS[st.column] > 0) {
			m.PutDouble(st.duration, seconds(t.NS[st.column]))
		}
	}
	if sum, n := explained(&t.NS, t.Has); n > 0 {
		m.PutDouble(spans.AttrZMQUnattributedDuration, seconds(max(0, t.NS[rpclog.Total]-sum)))
	}
	putSizes(m, t.Has, t.Sent, t.Received)
	if !sharedMemory(g.transport) { // there the sizes are not those of the data
		whole := call{has: t.Has, sent: t.Sent, received: t.Received, ns: t.NS}
		if own := whole.recomputed(); !math.IsNaN(own) {
			m.PutDouble(spans.AttrZMQThroughput, own)
		}
	}
	if g.compared {
		m.PutDouble(spans.AttrZMQThroughputDisagreement, g.disagreement)
	}
	slowest := &g.calls[g.slowest]
	m.PutStr(spans.AttrZMQSlowestMethod, slowest.method)
	m.PutDouble(spans.AttrZMQSlowestDuration, seconds(slowest.ns[rpclog.Total]))
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// putSizes writes the sizes that the log has columns of.
func putSizes(m pcommon.Map, has rpclog.Columns, sent, received int64) {
	if has.Has(rpclog.Sent) {
		m.PutInt(spans.AttrZMQRequestSize, sent)
	}
	if has.Has(rpclog.Received) {
		m.PutInt(spans.AttrZMQResponseSize, received)
	}
}

func (c *call) end() int64 { return c.start + c.ns[rpclog.Total] }

// attributes is the number of attributes that describe will write, about.
func (c *call) attributes() int {
	n := 5 + c.fieldsTo - c.fieldsFrom
	if c.bare {
		n += len(stageSpans)
	}
	return n
}

// describe writes the attributes of a call. The span's name is the method. whole: all columns of the row, also those that spans of stages have; otherwise the
// stages are attributes only where they are no spans (bare).
func (c *call) describe(m pcommon.Map, g *group, whole bool) {
	m.PutInt(spans.AttrZMQCallID, c.id)
	putSizes(m, c.has, c.sent, c.received)
	if !sharedMemory(g.transport) {
		if own := c.recomputed(); !math.IsNaN(own) {
			m.PutDouble(spans.AttrZMQThroughput, own)
		}
		if c.has.Has(rpclog.Throughput) {
			m.PutDouble(spans.AttrZMQThroughputReported, c.throughput)
		}
		if c.disagreement > 0 {
			m.PutDouble(spans.AttrZMQThroughputDisagreement, c.disagreement)
		}
	}
	if c.slowest > 0 {
		m.PutInt(spans.AttrZMQCallSlowest, int64(c.slowest))
	}
	if c.largest > 0 {
		m.PutInt(spans.AttrZMQCallLargest, int64(c.largest))
	}
	if whole {
		m.PutDouble(spans.AttrZMQCallDuration, seconds(c.ns[rpclog.Total]))
	}
	for i := range stageSpans {
		if st := &stageSpans[i]; whole && c.has.Has(st.column) || c.bare && c.ns[st.column] > 0 {
			m.PutDouble(st.duration, seconds(c.ns[st.column]))
		}
	}
	for _, f := range g.fields[c.fieldsFrom:c.fieldsTo] {
		m.PutStr(spans.AttrZMQFieldPrefix+f.name, f.text)
	}
}

// Metrics makes a gauge of how far each statistic in the summaries is from the value by the rows above, 0.02 for 2 %: one point per statistic. No metrics
// without a compared statistic.
func (b *passBatch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	if len(b.finals) == 0 {
		return md
	}
	rm := md.ResourceMetrics().AppendEmpty()
	spans.Resource{Service: b.r.cfg.ServiceName, RunID: b.run}.PutInstance(rm.Resource().Attributes())
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(metadata.ScopeName)
	sm.Scope().SetVersion(b.r.Set.BuildInfo.Version)
	m := sm.Metrics().AppendEmpty()
	d := spans.MetricNamed(spans.MetricZMQFinalDisagreement)
	d.Declare(m)
	points := m.Gauge().DataPoints()
	for _, f := range b.finals {
		for _, c := range f.compared {
			dp := points.AppendEmpty()
			dp.SetTimestamp(spans.Timestamp(f.at))
			dp.SetDoubleValue(c.off)
			dp.Attributes().PutStr(spans.AttrZMQStatistic, c.key)
		}
	}
	if points.Len() == 0 {
		return pmetric.NewMetrics()
	}
	return md
}
