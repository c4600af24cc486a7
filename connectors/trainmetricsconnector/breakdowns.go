package trainmetricsconnector

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// breakdowns is where the time of steps, batches and passes went.
var breakdowns = family{
	kinds:  []view.Kind{view.KindBreakdown},
	reader: func(family int8) reader { return &breakdownReader{family: family} },
	adder:  func(family int8) adder { return &breakdownAdder{groups[breakdownKey, breakdownSeries]{family: family}} },
}

var stepTime = newMetric(spans.MetricStepTime)

// breakdownKey is the label of a breakdown: the kind of its window.
type breakdownKey struct{ window string }

// bare implements key.
func (k breakdownKey) bare() bool                 { return k.window == "" }
func (k breakdownKey) code(c *codec) breakdownKey { return breakdownKey{c.text(k.window)} }

// labels implements key.
func (k breakdownKey) labels(m pcommon.Map, own label) {
	own.put(m)
	if k.window != "" {
		m.PutStr(spans.AttrStepWindow, k.window)
	}
}

// breakdownValues are the values of one breakdown: its times are reader.times[from:to].
type breakdownValues struct {
	key      breakdownKey
	from, to int
}

// breakdownReader reads breakdowns.
type breakdownReader struct {
	family    int8
	values    []breakdownValues
	times     []view.PartTime
	breakdown view.Breakdown
}

// reset implements reader.
func (r *breakdownReader) reset() {
	clear(r.values)
	clear(r.times)
	r.values, r.times, r.breakdown = r.values[:0], r.times[:0], view.Breakdown{}
}

// read records a breakdown with its possible times, for the metric and, of a step, for the account of the run. An impossible time or length makes the span
// invalid; without a possible length, or without any possible time, nothing is recorded.
func (r *breakdownReader) read(span ptrace.Span, _ view.Kind, s *scratch) {
	b := &r.breakdown
	if b.Read(span); b.Lacks() { // the missing time would be counted as unattributed
		return
	}
	v := breakdownValues{key: breakdownKey{spans.Label(b.Window)}, from: len(r.times)}
	bad := false
	for _, part := range b.Times {
		if _, ok := nanoseconds(part.Seconds, &bad); ok {
			r.times = append(r.times, view.PartTime{Part: spans.Label(part.Part), Seconds: part.Seconds})
		}
	}
	ns, possible := durationOf(span)
	if bad || !possible {
		s.invalid++
	}
	v.to = len(r.times)
	if possible && v.to > v.from {
		s.note(span, r.family, &b.Head, len(r.values), ns)
		r.values = append(r.values, v)
		if e, ok := book.Breakdown(span, b); ok {
			s.attachEntry(&e)
		}
	}
}

// breakdownSeries are the series of a kind of window: a counter per part.
type breakdownSeries struct{ times []named[counter] }

type breakdownAdder struct {
	groups[breakdownKey, breakdownSeries]
}

// add adds the times of a breakdown to the counters of its parts.
func (a *breakdownAdder) add(s *store, o *observation, from reader, in *scratch) {
	r := from.(*breakdownReader)
	v := &r.values[o.values]
	g, bs, over := a.find(s, o, in, v.key, firstMetric(o, stepTime))
	s.countVerdicts(g, o)
	if o.incomplete {
		s.countIncomplete(g, o)
		return
	}
	for _, part := range r.times[v.from:v.to] {
		s.count(byName(s, stepTime, g, &bs.times, &over.times, seriesName{Name: part.Part}), part.Seconds, o)
	}
}

// emit implements adder.
func (a *breakdownAdder) emit(e *emitter, g *group) {
	bs := seriesOf[breakdownSeries](g, a.family)
	emitNamed(e, stepTime, &bs.times, func(name seriesName) labels { return labels{of: g, own: label{spans.AttrStepPart, name.Name}} }, sumPoint)
}
