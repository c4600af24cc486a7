package tqtracereceiver

import (
	"cmp"
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/assemble"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/tqtracereceiver/internal/tqline"
	"github.com/trainbridge/trainbridge/spans"
)

// functionBatch is the functions, operations and samples of a file, sent together.
type functionBatch struct {
	r      *tqReceiver
	run    string
	out    assemble.Out
	points []point
}

// empty reports whether there is nothing to send.
func (b *functionBatch) empty() bool {
	return len(b.out.Functions) == 0 && len(b.out.Lone) == 0 && len(b.points) == 0
}

// reset empties the batch and keeps its memory.
func (b *functionBatch) reset() {
	b.out.Reset()
	*b = functionBatch{r: b.r, out: b.out, points: b.points[:0]}
}

// Done implements filereceiver.Batch: the batch's memory is used again.
func (b *functionBatch) Done() {
	b.reset()
	b.r.batches.Put(b, maxFree)
}

// maxFree bounds the batches kept for reuse, some 100 KB each.
const maxFree = 16

// newBatch returns an empty batch, with the memory of an earlier one.
func (r *tqReceiver) newBatch() *functionBatch {
	b := r.batches.Get()
	b.r = r
	return b
}

// builder turns the records of a batch into spans.
type builder struct {
	*spans.Batch
	r   *tqReceiver
	b   *functionBatch
	buf [3][]byte // for keys
	// The ids of the run's span; every root links to the run.
	runTrace pcommon.TraceID
	runSpan  pcommon.SpanID
}

// Traces writes the spans of the batch: those of the functions, and the lone operations. from is called before each record's spans, with its place in the log.
func (b *functionBatch) Traces(out *spans.Batch, from filereceiver.From) {
	bd := builder{Batch: out, r: b.r, b: b}
	bd.runTrace, bd.runSpan = spans.RunIDs(b.run)
	for i := range b.out.Functions {
		from(b.out.Functions[i].Place)
		bd.function(&b.out.Functions[i])
	}
	for i := range b.out.Lone {
		from(b.out.Lone[i].Place)
		bd.lone(&b.out.Lone[i])
	}
}

// began returns the earliest start of a call or operation in the batch, Unix ns, and the clock of this time; math.MaxInt64 without any.
func (b *functionBatch) began() (int64, spans.TimeSource) {
	at, source := int64(math.MaxInt64), spans.TimeSynthetic
	for i := range b.out.Functions {
		if f := &b.out.Functions[i]; f.Start < at {
			at, source = f.Start, f.Source
		}
	}
	for i := range b.out.Lone {
		if o := &b.out.Lone[i]; o.Start < at {
			at, source = o.Start, o.Source
		}
	}
	return at, source
}

// resource returns the resource of a process's spans.
func (bd *builder) resource(who assemble.Who) spans.Resource {
	return spans.Resource{Service: bd.r.cfg.ServiceName, RunID: bd.b.run, Host: who.Host, PID: who.PID}
}

// identify returns the ids of a span with pid, function (name) and raw time (key) as natural key, and role for the kind of span. text is the trace_id of the
// log: a text that names no trace ("N/A") gives each record its own trace; otherwise JoinBy of the resource is set, as the record joined its trace by id.
func (bd *builder) identify(res *spans.Resource, who assemble.Who, text, role, name string, key *assemble.Key) (pcommon.TraceID, pcommon.SpanID) {
	bd.buf[0] = strconv.AppendInt(bd.buf[0][:0], who.PID, 10)
	bd.buf[1] = append(bd.buf[1][:0], name...)
	pid, fn := bd.buf[0], bd.buf[1]
	var trace pcommon.TraceID
	if spans.NoTraceID(text) {
		trace = spans.KeyTraceID(bd.b.run, "tq", pid, fn, key.Bytes())
	} else {
		bd.buf[2] = append(bd.buf[2][:0], text...)
		res.JoinBy = spans.JoinByID
		trace = spans.TraceID(bd.b.run, bd.buf[2])
	}
	return trace, spans.SpanID(trace, role, fn, pid, key.Bytes())
}

// The span names say the stage: no need for spans.AttrTQStage.
var (
	stageNames = [3]string{spans.SpanTQGet, spans.SpanTQCompute, spans.SpanTQPut}
	opNames    = [4]string{
		tqline.OpGet: spans.SpanTQClientGet, tqline.OpPut: spans.SpanTQClientPut, tqline.OpGetMeta: spans.SpanTQClientGetMeta,
		tqline.OpClear: spans.SpanTQClientClear,
	}
)

// putTraceID writes the log's id text where the trace id differs from the text: a text without a trace, and a hashed one.
func putTraceID(m pcommon.Map, trace pcommon.TraceID, text string) {
	if !spans.IsUUID(text, trace) {
		m.PutStr(spans.AttrTQTraceID, cmp.Or(text, "N/A"))
	}
}

// function adds the spans of a call: the function, below it its known stages (get, compute, put), and below the get and put stages their client operations.
func (bd *builder) function(f *assemble.Function) {
	res := bd.resource(f.Who)
	res.Time = f.Source
	trace, id := bd.identify(&res, f.Who, f.Trace, spans.StageFunction, f.Name, &f.Key)
	s := bd.Add(res, spans.Span{
		Trace: trace, ID: id, Name: f.Name, Is: spans.KindFunction, Kind: ptrace.SpanKindInternal, Start: f.Start, End: f.End, Source: f.Source,
		Attributes: 6 + spans.AddedToFunction + f.FieldsTo - f.FieldsFrom,
	})
	m := s.Attributes()
	m.PutStr(spans.AttrTQFunction, f.Name)
	putTraceID(m, trace, f.Trace)
	if f.BatchSize >= 0 {
		m.PutInt(spans.AttrTQBatchSize, f.BatchSize)
	}
	for i, name := range [3]string{spans.AttrTQGetUtilizationReported, spans.AttrTQComputeUtilizationReported, spans.AttrTQPutUtilizationReported} {
		if f.Ratios[i] >= 0 {
			m.PutDouble(name, f.Ratios[i])
		}
	}
	putIncomplete(s, f.Incomplete)
	bd.fields(m, f.FieldsFrom, f.FieldsTo)
	bd.Link(s, bd.runTrace, bd.runSpan)

	var parents [3]pcommon.SpanID
	for i := range f.Stages {
		st := &f.Stages[i]
		if !st.Known {
			continue
		}
		parents[i] = spans.SpanID(trace, stageNames[i], id[:])
		c := bd.Add(res, spans.Span{
			Trace: trace, ID: parents[i], Parent: id, Name: stageNames[i], Is: spans.KindStage, Kind: ptrace.SpanKindInternal, Start: st.Start, End: st.End,
			Source: f.Source, Attributes: 1,
		})
		m := c.Attributes()
		m.PutStr(spans.AttrTQFunction, f.Name)
		putIncomplete(c, st.Incomplete)
	}
	for i := f.OpsFrom; i < f.OpsTo; i++ {
		o := &bd.b.out.Ops[i]
		parent := parents[0]
		if o.Kind == tqline.OpPut {
			parent = parents[2]
		}
		if parent.IsEmpty() { // the lines of the stage were lost
			parent = id
		}
		bd.op(res, o, trace, spans.SpanID(trace, opNames[o.Kind], id[:], o.Key.Bytes()), parent, f.Name)
	}
}

// lone adds an operation outside of any function: the root of its trace.
func (bd *builder) lone(o *assemble.Op) {
	res := bd.resource(o.Who)
	res.Time = o.Source
	trace, id := bd.identify(&res, o.Who, o.Trace, opNames[o.Kind], o.Name, &o.Key)
	s := bd.op(res, o, trace, id, pcommon.SpanID{}, o.Name)
	putTraceID(s.Attributes(), trace, o.Trace)
	bd.Link(s, bd.runTrace, bd.runSpan)
}

// op adds the span of a client operation, a root if parent is empty, and returns it. Throughput is bytes a second of the span's duration; none
// if the operation is incomplete. function "": not known.
func (bd *builder) op(res spans.Resource, o *assemble.Op, trace pcommon.TraceID, id, parent pcommon.SpanID, function string) ptrace.Span {
	s := bd.Add(res, spans.Span{
		Trace: trace, ID: id, Parent: parent, Name: opNames[o.Kind], Is: spans.KindStage, Kind: ptrace.SpanKindClient, Start: o.Start, End: o.End, Source: o.Source,
		Attributes: 6 + spans.AddedVerdicts + o.FieldsTo - o.FieldsFrom,
	})
	m := s.Attributes()
	m.PutStr(spans.AttrPeerService, spans.PeerTransferQueue)
	if function != "" {
		m.PutStr(spans.AttrTQFunction, function)
	}
	if o.BatchSize >= 0 {
		m.PutInt(spans.AttrTQBatchSize, o.BatchSize)
	}
	if o.Size >= 0 {
		m.PutInt(spans.AttrTQDataSize, o.Size)
		if d := o.End - o.Start; d > 0 && o.Incomplete == "" {
			m.PutDouble(spans.AttrTQThroughput, float64(o.Size)/(float64(d)/1e9))
		}
	}
	if o.Reported >= 0 {
		m.PutDouble(spans.AttrTQThroughputReported, o.Reported)
	}
	putIncomplete(s, o.Incomplete)
	bd.fields(m, o.FieldsFrom, o.FieldsTo)
	return s
}

// lost are the sentences about spans that began and did not end. A function without FUNCTION_END has none, because verl prints FUNCTION_END only where data is
// put back; nor has a function that ended without the lines of a stage.
var lost = map[string]string{
	assemble.ReasonNoGetEnd:     "GET began and never ended: the process died in it, or its line was lost",
	assemble.ReasonNoComputeEnd: "COMPUTE began and never ended: the process died in it, or its line was lost",
	assemble.ReasonNoPutEnd:     "PUT began and never ended: the process died in it, or its line was lost",
	assemble.ReasonNoClientEnd:  "the client operation began and never ended: the process died in it, or its line was lost",
}

// putIncomplete marks a span as incomplete for a reason, and as failed if something began and did not end; "": complete.
func putIncomplete(s ptrace.Span, reason string) {
	spans.PutIncomplete(s.Attributes(), reason)
	if message := lost[reason]; message != "" {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(message)
	}
}

// fields writes the unknown fields of a record, a range of Out.Fields, as attributes.
func (bd *builder) fields(m pcommon.Map, from, to int) {
	for _, f := range bd.b.out.Fields[from:to] {
		m.PutStr(spans.AttrTQFieldPrefix+f.Name, f.Value)
	}
}

// Metrics implements filereceiver.Batch: gauges of the points, one metric per name. The host is a label: as a resource attribute it would make a target_info
// for each process in Prometheus.
func (b *functionBatch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	var list pmetric.MetricSlice                         // of the only resource
	known := map[metricID]pmetric.NumberDataPointSlice{} // the points of the metrics in list
	for i := range b.points {
		p := &b.points[i]
		if i == 0 {
			rm := md.ResourceMetrics().AppendEmpty()
			spans.Resource{Service: b.r.cfg.ServiceName, RunID: b.run}.PutInstance(rm.Resource().Attributes())
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			sm.Scope().SetVersion(b.r.Set.BuildInfo.Version)
			list = sm.Metrics()
		}
		points, ok := known[p.metric]
		if !ok {
			m := list.AppendEmpty()
			metricInfo[p.metric].Declare(m)
			points = m.Gauge().DataPoints()
			known[p.metric] = points
		}
		dp := points.AppendEmpty()
		dp.SetTimestamp(spans.Timestamp(p.at))
		dp.SetStartTimestamp(spans.Timestamp(p.start))
		dp.SetDoubleValue(p.value)
		for _, a := range [...]struct{ name, value string }{
			{spans.AttrHostName, p.who.Host},
			{spans.AttrTQFunction, p.function},
			{spans.AttrTQDirection, p.direction},
			{spans.AttrTQStorageUnit, p.unit},
			{spans.AttrTQOperation, p.operation},
		} {
			if a.value != "" {
				dp.Attributes().PutStr(a.name, a.value)
			}
		}
	}
	return md
}
