package trainmetricsconnector

import (
	"cmp"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/book"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// steps is the training steps and their parts.
var steps = family{
	kinds:  []view.Kind{view.KindStep, view.KindPart},
	reader: func(family int8) reader { return &stepReader{family: family} },
	adder:  func(family int8) adder { return &stepAdder{groups[sourceKey, stepSeries]{family: family}} },
}

var (
	stepDuration = newMetric(spans.MetricStepDuration)
	partDuration = newMetric(spans.MetricStageDuration)
	// stepCounts and stepGauges are in the order of stepValues.
	stepCounts = [...]metricID{
		newMetric(spans.MetricSteps),
		newMetric(spans.MetricSamples),
		newMetric(spans.MetricTokens),
	}
	stepGauges = [...]metricID{
		newMetric(spans.AttrFlopThroughput),
		newMetric(spans.AttrDeviceFlopThroughput),
		newMetric(spans.AttrMFU),
		newMetric(spans.AttrHFU),
	}
	flopDisagreement = newMetric(spans.MetricFlopDisagreement)
)

// sourceKey are the labels of training steps: the format of the log, and the rank of the writer with its host. The zero value is a step without any.
type sourceKey struct {
	name string // trainbridge.source
	host string
	rank view.Int
}

// bare reports that the step has no label.
func (k sourceKey) bare() bool { return k == sourceKey{} }

// code implements key.
func (k sourceKey) code(c *codec) sourceKey {
	return sourceKey{c.text(k.name), c.text(k.host), view.Int{N: c.num(k.rank.N), OK: c.flag(k.rank.OK)}}
}

// labels implements key.
func (k sourceKey) labels(m pcommon.Map, own label) {
	own.put(m)
	if k.name != "" {
		m.PutStr(spans.AttrSource, k.name)
	}
	if k.host != "" {
		m.PutStr(spans.AttrHostName, k.host)
	}
	if k.rank.OK {
		m.PutInt(spans.AttrRank, k.rank.N)
	}
}

// sourceOf returns the labels of a step, or of a part of a step.
func sourceOf(s *view.Source, res *view.Resource) sourceKey {
	return sourceKey{spans.Label(s.Format), spans.Label(cmp.Or(s.Host, res.Host)), s.Rank}
}

// stepValues are the values of a step, or of a part of a step. Unknown numbers are NaN.
type stepValues struct {
	source       sourceKey
	part         string     // name of the part; "": a step
	timed        bool       // the log states a time: observation.ns is the duration of one step
	covers       int64      // ns, of the whole span
	number       int64      // of the step; below 0: not known
	planned      int64      // steps of the run; 0: not known
	counts       [3]float64 // stepCounts
	gauges       [4]float64 // stepGauges
	disagreement float64
}

// stepReader reads steps and parts of steps.
type stepReader struct {
	family int8
	values []stepValues
	step   view.Step
	part   view.Part
}

// reset implements reader.
func (r *stepReader) reset() {
	clear(r.values)
	r.values, r.step, r.part = r.values[:0], view.Step{}, view.Part{}
}

// read implements reader.
func (r *stepReader) read(span ptrace.Span, kind view.Kind, s *scratch) {
	if kind == view.KindPart {
		r.readPart(span, s)
	} else {
		r.readStep(span, s)
	}
}

// readPart records the time of a part of a step, for the metric and for the account of the run. A part without a name, or with an impossible time, is left out.
func (r *stepReader) readPart(span ptrace.Span, s *scratch) {
	ns, possible := durationOf(span)
	if !possible {
		s.invalid++
		return
	}
	p := &r.part
	p.Read(span, &s.resource)
	if p.Name == "" {
		return
	}
	s.note(span, r.family, &p.Head, len(r.values), ns)
	if e, ok := book.Part(span, p.Name, &s.resource); ok {
		s.attachEntry(&e)
	}
	r.values = append(r.values, stepValues{source: sourceOf(&p.Source, &s.resource), part: spans.Label(p.Name)})
}

// readStep records a step, or a record about several steps, with its possible values: an impossible value is unknown, and the span counts as invalid. A span
// without a possible length is valid, since a log may state when a step ended and not how long it took; the account of the run is without such a step.
func (r *stepReader) readStep(span ptrace.Span, s *scratch) {
	ns, possible := durationOf(span)
	st, bad := &r.step, false
	st.Read(span, &s.resource)
	v := stepValues{
		source: sourceOf(&st.Source, &s.resource), counts: [...]float64{1, countOf(st.Samples, &bad), countOf(st.Tokens, &bad)},
		gauges: [...]float64{st.FlopThroughput, st.DeviceFlopThroughput, st.MFU, st.HFU}, disagreement: st.FlopDisagreement,
	}
	if n := countOf(st.StepsCovered, &bad); !math.IsNaN(n) {
		v.counts[0] = n
	}
	v.number = st.Step().Or(-1)
	if possible {
		v.covers = int64(ns)
	}
	if took, ok := nanoseconds(st.Duration, &bad); ok {
		ns, v.timed = took, true
	}
	if n := countOf(st.Iterations, &bad); n > 0 {
		v.planned = int64(n)
	}
	if bad { // the record's remaining values still count
		s.invalid++
	}
	s.note(span, r.family, &st.Head, len(r.values), ns)
	if possible {
		e := book.Step(span, st, &s.resource, spans.AttrText(span.Attributes(), spans.AttrLogFile), -1)
		s.attachEntry(&e)
	}
	r.values = append(r.values, v)
}

// stepSeries are the series of the steps of a source.
type stepSeries struct {
	duration     *histogram[uint64]
	parts        []named[histogram[uint64]]
	disagreement *histogram[float64]
	counts       [len(stepCounts)]*counter
	gauges       [len(stepGauges)]*gauge
}

type stepAdder struct{ groups[sourceKey, stepSeries] }

// add adds a step, or a part of a step, to the series of its source. Of an incomplete span only the verdicts and the span itself count.
func (a *stepAdder) add(s *store, o *observation, from reader, in *scratch) {
	v := &from.(*stepReader).values[o.values]
	first := stepCounts[0]
	if v.part != "" {
		first = partDuration
	}
	g, ss, over := a.find(s, o, in, v.source, firstMetric(o, first))
	g.noteDuration(v.covers)
	s.countVerdicts(g, o)
	switch {
	case o.incomplete:
		s.countIncomplete(g, o)
		return
	case v.part != "":
		s.observe(byName(s, partDuration, g, &ss.parts, &over.parts, seriesName{Name: v.part}), o)
		return
	}
	s.accounts.noteStep(s, o, v, in)
	if v.timed {
		s.observe(slot(s, stepDuration, g, &ss.duration, &over.duration), o)
	}
	for i, n := range v.counts {
		if !math.IsNaN(n) {
			s.count(slot(s, stepCounts[i], g, &ss.counts[i], &over.counts[i]), n, o)
		}
	}
	for i, x := range v.gauges {
		if !math.IsNaN(x) {
			s.set(slot(s, stepGauges[i], g, &ss.gauges[i], &over.gauges[i]), x, o)
		}
	}
	if x := v.disagreement; !math.IsNaN(x) {
		s.record(slot(s, flopDisagreement, g, &ss.disagreement, &over.disagreement), x, o)
	}
}

// emit implements adder.
func (a *stepAdder) emit(e *emitter, g *group) {
	ss, l := seriesOf[stepSeries](g, a.family), labels{of: g}
	emit(e, stepDuration, l, &ss.duration, durationPoint)
	emitNamed(e, partDuration, &ss.parts, func(name seriesName) labels { return labels{of: g, own: label{spans.AttrStage, name.Name}} }, durationPoint)
	for i := range ss.counts {
		emit(e, stepCounts[i], l, &ss.counts[i], sumPoint)
	}
	for i := range ss.gauges {
		emit(e, stepGauges[i], l, &ss.gauges[i], gaugePoint)
	}
	emit(e, flopDisagreement, l, &ss.disagreement, numberPoint)
}
