package zmqrpcreceiver

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/rpclog"
	"github.com/trainbridge/trainbridge/spans"
)

// final is the summary at the end of a log.
type final struct {
	since    int64 // time of reading the first line, ns
	at       int64 // time of the last row, ns
	observed bool  // at is by the arrival of the row
	group    ref   // the last group before; none: the summary has a trace of its own
	id       ref   // of the summary's span
	held     []tail.Held
	place    tail.Place
	stats    []rpclog.Stat
	rows     totals // since the last restart of the ids
	compared []comparison
}

// comparison is the result for one statistic of a summary: how far the printed value is from the value by the rows.
type comparison struct {
	key string
	off float64 // |recomputed − reported| / recomputed; 0: print rounding explains it
}

// maxSummaryLines bounds a summary. Real ones have up to 20 lines.
const maxSummaryLines = 200

// beginSummary opens a summary with the current line.
func (h *handler) beginSummary(l *tail.Line) {
	h.snapshot()
	f := &final{since: l.Observed.UnixNano(), at: h.state.End, observed: h.state.Live, group: h.state.Last, rows: h.state.Block}
	if f.at == 0 { // no row came before
		f.at, f.observed = l.Written().UnixNano(), false
	}
	if h.state.Summed { // a trace has room for one
		f.group = ref{}
	}
	h.state.Summed = true
	h.final = f
}

// keep holds a line of the summary, headings too: a restart needs the headings to read the rest. A summary that is too long is ended, and another begun.
func (h *handler) keep(l *tail.Line) {
	if h.final == nil || len(h.final.held) >= maxSummaryLines {
		h.endSummary()
		h.beginSummary(l)
	}
	h.final.held = append(h.final.held, h.stream.Hold())
}

// statistic takes a value of the summary. The first one makes the ids of the summary's span: the trace is the last group's, if any.
func (h *handler) statistic(l *tail.Line) {
	h.keep(l)
	f := h.final
	if len(f.stats) == 0 {
		f.id.Trace = f.group.Trace
		if f.group.none() {
			f.id.Trace = spans.KeyTraceID(h.run, "zeromq.summary", spans.ShortKey(l.Text))
		}
		key := spans.ShortKey(l.Text)
		if f.group.ByID { // the trace has more groups
			key = append(key, f.group.Span[:]...)
		}
		f.id.Span = spans.SpanID(f.id.Trace, spans.SpanRPCSummary, key)
	}
	f.stats = append(f.stats, h.parser.Statistic)
}

// endSummary ends the open summary, if any: its values are compared with the rows, and it goes into the batch with its lines acknowledged. Headings alone are
// dropped.
func (h *handler) endSummary() {
	f := h.final
	if f == nil {
		return
	}
	h.final = nil
	for _, held := range f.held {
		h.stream.Release(held)
	}
	if len(f.stats) == 0 {
		return
	}
	for _, s := range f.stats {
		if off, ok := f.rows.compare(&s); ok {
			f.compared = append(f.compared, comparison{s.Key, off})
		}
	}
	f.place = h.stream.Place()
	h.batch.finals = append(h.batch.finals, f)
}

// compare recomputes a statistic from the rows: off is |recomputed − reported| / recomputed, 0 if rounding of printed digits explains the difference, 1 if
// only the recomputed value is 0. ok is false for statistics that do not follow from rows: GPU compute, for example, is measured differently in each version.
func (t *totals) compare(s *rpclog.Stat) (off float64, ok bool) {
	if t.Calls == 0 {
		return 0, false
	}
	calls := float64(t.Calls)
	// How far the rounding of the rows' last digits may have moved a sum, at most: half of 0.001 ms (in s) and half of 0.01 KB (in By) for each row.
	nsSlack, bySlack := calls*0.5e-6, calls*5.12
	sum := func(c rpclog.Column) (float64, float64, bool) { return seconds(t.NS[c]), nsSlack, t.Has.Has(c) }
	average := func(c rpclog.Column) (float64, float64, bool) {
		return seconds(t.NS[c]) / calls, nsSlack / calls, t.Has.Has(c)
	}
	var own, slack float64 // the value by the rows, and how far their rounding may have moved it
	switch s.Key {
	case "total_rpc_calls":
		own, ok = calls, true
	case "average_serialize_time":
		own, slack, ok = average(rpclog.Serialize)
	case "average_send_time":
		own, slack, ok = average(rpclog.Send)
	case "average_receive_time":
		own, slack, ok = average(rpclog.Receive)
	case "average_deserialize_time":
		own, slack, ok = average(rpclog.Deserialize)
	case "average_total_time":
		own, slack, ok = average(rpclog.Total)
	case "communication_overhead.serialize":
		own, slack, ok = sum(rpclog.Serialize)
	case "communication_overhead.send":
		own, slack, ok = sum(rpclog.Send)
	case "communication_overhead.receive":
		own, slack, ok = sum(rpclog.Receive)
	case "communication_overhead.deserialize":
		own, slack, ok = sum(rpclog.Deserialize)
	case "communication_overhead.total": // the four stages; the Comm column is timed as a whole, a little longer
		stages, n := explained(&t.NS, t.Has)
		own, slack, ok = seconds(stages), float64(n)*nsSlack, n > 0
	case "offline_precomputation.total":
		own, slack, ok = sum(rpclog.Offline)
	case "total_data_sent":
		own, slack, ok = float64(t.Sent), bySlack, t.Has.Has(rpclog.Sent)
	case "total_data_received":
		own, slack, ok = float64(t.Received), bySlack, t.Has.Has(rpclog.Received)
	case "average_throughput":
		own, ok = (float64(t.Sent)+float64(t.Received))/seconds(t.NS[rpclog.Total]), t.NS[rpclog.Total] > 0
		if ok { // by the relative errors of the sizes and of the time
			slack = own * (2*bySlack/max(1, float64(t.Sent)+float64(t.Received)) + nsSlack/seconds(t.NS[rpclog.Total]))
		}
	}
	if !ok {
		return 0, false
	}
	diff := math.Abs(own - s.Value)
	switch {
	case diff <= slack+s.Step/2+1e-9*math.Abs(own): // the rows' rounding, the statistic's own, and float64's
		return 0, true
	case own == 0:
		return 1, true
	}
	return diff / math.Abs(own), true
}

// final adds the span of a summary, with its values and the largest disagreement: below the last group's root, or, without a group, linked to the run.
func (bd *builder) final(f *final) {
	source := bd.begin("", f.group.ByID, f.observed)
	s := bd.Add(bd.res, spans.Span{
		Trace: f.id.Trace, ID: f.id.Span, Parent: f.group.Span, Name: spans.SpanRPCSummary, Is: spans.KindRPCSummary, Kind: ptrace.SpanKindInternal,
		Start: f.at, End: f.at, Source: source, Attributes: 2*len(f.stats) + 1,
	})
	m := s.Attributes()
	worst := 0.0
	for _, c := range f.compared {
		worst = max(worst, c.off)
	}
	if len(f.compared) > 0 {
		m.PutDouble(spans.AttrZMQFinalDisagreement, worst)
	}
	for i := range f.stats {
		st := &f.stats[i]
		m.PutDouble(spans.AttrZMQFinalPrefix+st.Key, st.Value)
		if st.Detail != "" {
			m.PutStr(spans.AttrZMQFinalPrefix+st.Key+".detail", spans.Text(st.Detail))
		}
	}
	if f.group.none() {
		bd.link(s, bd.run)
	}
}
