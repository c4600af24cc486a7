package show

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// tabled is how many passes the table has a row for.
const tabled = 10

func (s *span) isPass() bool { return s.Name() == spans.SpanRPCPass }

// isCalls says whether a span is the root of a group of RPCs.
func (s *span) isCalls() bool {
	return s.isPass() || s.Name() == spans.SpanRPCSession || s.Name() == spans.SpanRPCCalls
}

// isCall says whether a span is one RPC.
func (s *span) isCall() bool {
	return s.parent != nil && s.parent.isCalls() && s.attr(spans.AttrRPCMethod) != ""
}

// aggregate says whether a span stands for others.
func (s *span) aggregate() bool {
	_, ok := s.number(spans.AttrAggregateCount)
	return ok
}

// what says which group of RPCs it is.
func (s *span) what() string {
	var parts []string
	if n, ok := s.number(spans.AttrZMQPass); ok {
		parts = append(parts, fmt.Sprintf("pass %.0f", n))
	}
	if n, ok := s.number(spans.AttrZMQPassCalls); ok {
		parts = append(parts, plural(int(n), "call"))
	}
	return strings.Join(parts, ", ")
}

// pass is the pass of a trace, nil if it is about something else.
func (t *trace) pass() *span {
	for _, s := range t.all {
		if s.isPass() {
			return s
		}
	}
	return nil
}

// compare orders passes by how many verdicts were passed on them, then by time.
func (s *span) compare(o *span) int {
	if s == nil || o == nil {
		return 0
	}
	a, _ := s.number(spans.AttrZMQCallDuration)
	b, _ := o.number(spans.AttrZMQCallDuration)
	return cmp.Or(cmp.Compare(len(s.verdictNames()), len(o.verdictNames())), cmp.Compare(a, b))
}

// zmqShare is a share of the time of a group's calls.
type zmqShare struct {
	attr        string   // train_perf's
	plus, minus []string // if it did not run: durations that must be there, and one that may be
}

var (
	serializeShare = zmqShare{spans.AttrZMQSerializeUtilization, []string{spans.AttrZMQSerializeDuration}, nil}
	serverShare    = zmqShare{spans.AttrZMQServerUtilization, []string{spans.AttrZMQServerDuration}, nil}
	transportShare = zmqShare{spans.AttrZMQTransportUtilization, []string{spans.AttrZMQSendDuration, spans.AttrZMQReceiveDuration}, []string{spans.AttrZMQServerDuration}}
)

func (z *zmqShare) of(s *span) (float64, bool) {
	if v, ok := s.number(z.attr); ok {
		return v, true
	}
	whole, ok := s.number(spans.AttrZMQCallDuration)
	if !ok || whole <= 0 {
		return 0, false
	}
	sum := 0.0
	for _, attr := range z.plus {
		v, ok := s.number(attr)
		if !ok {
			return 0, false
		}
		sum += v
	}
	for _, attr := range z.minus {
		v, _ := s.number(attr)
		sum -= v
	}
	return sum / whole, true
}

// passColumn is a column of the table of passes.
type passColumn struct {
	name, key string // of the table, and of --json
	of        func(*span) (float64, bool)
	text      func(float64) string
	limited   bool // above 30 % is bad
}

// in reads an attribute.
func in(attr string) func(*span) (float64, bool) {
	return func(s *span) (float64, bool) { return s.number(attr) }
}

func decimals(n int) func(float64) string {
	return func(v float64) string { return fmt.Sprintf("%.*f", n, v) }
}

var passColumns = []passColumn{
	{"pass", "pass", in(spans.AttrZMQPass), decimals(0), false},
	{"calls", "calls", in(spans.AttrZMQPassCalls), decimals(0), false},
	{"duration", "duration_seconds", in(spans.AttrZMQCallDuration), func(s float64) string { return duration(int64(s * 1e9)) }, false},
	{"serialize", "serialize_ratio", serializeShare.of, percent, true},
	{"transport", "transport_ratio", transportShare.of, percent, true},
	{"server", "server_ratio", serverShare.of, percent, false},
	{"MiB/s", "bytes_per_second", in(spans.AttrZMQThroughput), func(v float64) string { return fmt.Sprintf("%.1f", v/(1<<20)) }, false},
}

func (c *passColumn) cell(v float64, ok bool) cell {
	switch {
	case !ok || math.IsNaN(v):
		return cell{text: "-"}
	case c.limited:
		return cell{c.text(v), overheadColour(int64(v*1e9), 1e9)}
	}
	return cell{text: c.text(v)}
}

// allPasses are the passes of RPCs by start, with the values of those that were seen to their end by column, and the verdicts on all.
func allPasses(traces []*trace) (all []*span, values [][]float64, whole int, verdicts *tallies) {
	values, verdicts = make([][]float64, len(passColumns)), newTallies()
	for _, t := range traces { // by start
		s := t.pass()
		if s == nil {
			continue
		}
		all = append(all, s)
		verdicts.count(s)
		if s.incomplete() {
			continue
		}
		whole++
		for i := range passColumns {
			if v, ok := passColumns[i].of(s); ok {
				values[i] = append(values[i], v)
			}
		}
	}
	return all, values, whole, verdicts
}

// passes prints a row for each of the last passes of RPCs, and the medians of all that were seen to their end.
func passes(w *strings.Builder, traces []*trace, width int, loc *time.Location, p palette) {
	all, values, whole, verdicts := allPasses(traces)
	if len(all) == 0 {
		return
	}
	g := grid{head: []string{"RPC passes"}, left: map[int]bool{len(passColumns) + 1: true}}
	for _, c := range passColumns {
		g.head = append(g.head, c.name)
	}
	g.head = append(g.head, "verdicts")
	for _, s := range all[max(0, len(all)-tabled):] {
		row := texts(time.Unix(0, s.start()).In(loc).Format("01-02 15:04:05"))
		for i := range passColumns {
			v, ok := passColumns[i].of(s)
			row = append(row, passColumns[i].cell(v, ok))
		}
		var notes []string
		if s.incomplete() {
			notes = append(notes, "INCOMPLETE")
		}
		for _, v := range s.verdicts() {
			notes = append(notes, strings.TrimPrefix(v.name, "zeromq_"))
		}
		g.add(append(row, cell{text: strings.Join(notes, " ")})...)
	}
	row := texts(fmt.Sprintf("median of %d", whole))
	for i := range passColumns {
		row = append(row, passColumns[i].cell(quantile(values[i], 0.5), i > 0)) // none of the ordinal
	}
	g.add(append(row, cell{})...)
	if s := wholeLog(traces); s != nil {
		n, _ := s.number(spans.AttrZMQPassCalls)
		row := texts("all " + plural(int(n), "call"))
		for i := range passColumns {
			v, ok := passColumns[i].of(s)
			row = append(row, passColumns[i].cell(v, ok))
		}
		g.add(append(row, cell{})...)
	}
	g.print(w, width, p)
	if n := len(all); n > tabled {
		paragraph(w, thousands(n-tabled)+" before these are in the median too", width, "2", p)
	}
	verdicts.print(w, "passes", width, p)
}

// wholeLog is what the passes, the set-up and the calls of no pass add up to: the figures that TSQP's analyze_zmq_performance.py prints of a file. Nil: it is no
// more than one pass.
func wholeLog(traces []*trace) *span {
	sums, groups, bytesKnown := map[string]float64{}, 0, true
	have := map[string]int{}
	for _, t := range traces {
		for _, s := range t.all {
			if !s.isCalls() {
				continue
			}
			groups++
			for _, attr := range [...]string{
				spans.AttrZMQPassCalls, spans.AttrZMQCallDuration, spans.AttrZMQSerializeDuration, spans.AttrZMQSendDuration, spans.AttrZMQReceiveDuration,
				spans.AttrZMQServerDuration, spans.AttrZMQRequestSize, spans.AttrZMQResponseSize,
			} {
				if v, ok := s.number(attr); ok {
					sums[attr] += v
					have[attr]++
				}
			}
			_, ok := s.number(spans.AttrZMQThroughput)
			bytesKnown = bytesKnown && ok // else they are in shared memory
		}
	}
	if groups < 2 {
		return nil
	}
	whole := &span{Span: ptrace.NewSpan(), resource: pcommon.NewMap()}
	m := whole.Attributes()
	for attr, v := range sums {
		switch {
		case attr == spans.AttrZMQPassCalls:
			m.PutInt(attr, int64(v))
		case have[attr] == groups, attr == spans.AttrZMQServerDuration: // that is not there where the server said nothing
			m.PutDouble(attr, v)
		}
	}
	bytesKnown = bytesKnown && have[spans.AttrZMQRequestSize] == groups && have[spans.AttrZMQResponseSize] == groups
	if total := sums[spans.AttrZMQCallDuration]; bytesKnown && total > 0 {
		m.PutDouble(spans.AttrZMQThroughput, (sums[spans.AttrZMQRequestSize]+sums[spans.AttrZMQResponseSize])/total)
	}
	return whole
}

// callDetails are the numbers of a group of RPCs, of one of them or of a stage.
func callDetails(s *span) (d []string) {
	ofParent := func() {
		if whole := s.parent.ns(); whole > 0 {
			d = append(d, percent(float64(s.ns())/float64(whole)))
		}
	}
	switch {
	case s.isCalls():
		if v, ok := serializeShare.of(s); ok {
			d = append(d, "serialize "+percent(v))
		}
		if v, ok := transportShare.of(s); ok {
			d = append(d, "transport "+percent(v))
		}
	case s.aggregate():
		n, _ := s.number(spans.AttrAggregateCount)
		d = append(d, plural(int(n), "span"))
		if v, ok := s.number(spans.AttrAggregateSum); ok {
			d = append(d, "together "+duration(int64(v*1e9)))
		}
		if v, ok := s.number(spans.AttrAggregateMax); ok {
			d = append(d, "longest "+duration(int64(v*1e9)))
		}
	case s.isCall():
		ofParent()
		if id := s.attr(spans.AttrZMQCallID); id != "" {
			d = append(d, "#"+clean(id))
		}
		if rate, ok := s.number(spans.AttrZMQThroughput); ok { // not through shared memory
			sent, _ := s.number(spans.AttrZMQRequestSize)
			received, _ := s.number(spans.AttrZMQResponseSize)
			d = append(d, fmt.Sprintf("%.2f MiB", (sent+received)/(1<<20)), fmt.Sprintf("%.1f MiB/s", rate/(1<<20)))
		}
	case s.parent != nil && (s.parent.isCall() || s.Name() == spans.SpanRPCServer):
		ofParent()
	}
	return d
}
