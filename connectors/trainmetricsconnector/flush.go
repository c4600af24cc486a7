package trainmetricsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// attrOverflow marks the series that takes what is above a limit (OpenTelemetry metrics SDK specification).
const attrOverflow = "otel.metric.overflow"

// metrics describes what is sent, by metricID.
var metrics = [numMetrics]struct {
	name, unit, description string
	kind                    pmetric.MetricType
}{
	functionDuration:    {spans.MetricTQFunctionDuration, spans.UnitSeconds, "Duration of complete TransferQueue functions.", pmetric.MetricTypeHistogram},
	stageDuration:       {spans.MetricTQStageDuration, spans.UnitSeconds, "Duration of complete stages and client operations.", pmetric.MetricTypeHistogram},
	stageUtilization:    {spans.MetricTQStageUtilization, spans.UnitOne, "Share of the last function's time, by stage.", pmetric.MetricTypeGauge},
	overheadUtilization: {spans.MetricTQOverheadUtilization, spans.UnitOne, "Share of the last function's time in GET and PUT.", pmetric.MetricTypeGauge},
	clientThroughput:    {spans.MetricTQClientThroughput, spans.UnitBytesPerSecond, "Throughput of client operations.", pmetric.MetricTypeHistogram},
	disagreement:        {spans.MetricTQUtilizationDisagreement, spans.UnitOne, "Largest difference between a reported and a recomputed share.", pmetric.MetricTypeHistogram},
	verdictCount:        {spans.MetricTQVerdicts, spans.UnitVerdict, "Verdicts about spans.", pmetric.MetricTypeSum},
	incompleteCount:     {spans.MetricIncompleteSpans, spans.UnitSpan, "Spans whose end, start or stages were never seen; they are in no duration histogram.", pmetric.MetricTypeSum},
}

// labels are the attributes of a series.
type labels struct {
	function string
	stage    stage // stageNone for none
	verdict  string
	overflow bool
}

func (l labels) put(m pcommon.Map) {
	if l.overflow {
		m.PutBool(attrOverflow, true)
		return
	}
	m.EnsureCapacity(2)
	if l.verdict != "" {
		m.PutStr(spans.AttrVerdictName, l.verdict)
	}
	if l.function != "" {
		m.PutStr(spans.AttrTQFunction, l.function)
	}
	if l.stage != stageNone {
		m.PutStr(spans.AttrTQStage, stageText[l.stage])
	}
}

// emitter writes the series of one resource.
type emitter struct {
	s      *store
	list   pmetric.MetricSlice
	metric [numMetrics]pmetric.Metric
	begun  [numMetrics]bool
	now    pcommon.Timestamp
	kept   int // series of the function at hand that live on
}

// build makes the metrics of all series and forgets the expired ones.
func (s *store) build(now time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	at := max(now.UnixNano(), s.lastFlush) // a clock set back must not make a point end before it starts
	s.now = at
	scope := func(key resourceKey) *emitter {
		rm := out.ResourceMetrics().AppendEmpty()
		key.put(rm.Resource().Attributes())
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(metadata.ScopeName)
		return &emitter{s: s, list: sm.Metrics(), now: pcommon.Timestamp(at)}
	}
	s.resources = slices.DeleteFunc(s.resources, func(r *resource) bool {
		e := scope(r.key)
		r.functions = slices.DeleteFunc(r.functions, func(fs *functionSeries) bool {
			if e.function(fs); e.kept > 0 {
				return false
			}
			delete(r.byName, fs.name)
			s.functions--
			return true
		})
		if len(r.functions) == 0 {
			delete(s.byKey, r.key)
		}
		return len(r.functions) == 0
	})
	// The overflow mixes resources and so has none.
	scope(resourceKey{}).function(&s.overflow)
	out.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().At(0).Metrics().Len() == 0 })
	s.lastFlush = at
	return out
}

// put writes the resource. The run is the instance of the service: Prometheus makes its instance label of it, without
// which two runs of a job would be the same series.
func (k resourceKey) put(m pcommon.Map) {
	if k.service != "" {
		m.PutStr(spans.AttrServiceName, k.service)
	}
	if k.run != "" {
		m.PutStr(spans.AttrRunID, k.run)
		m.PutStr(spans.AttrServiceInstanceID, k.run)
	}
}

// function writes the series of one function.
func (e *emitter) function(fs *functionSeries) {
	e.kept = 0
	label := func(st stage) labels { return labels{function: fs.name, stage: st, overflow: fs.resource == nil} }
	for st := range stages {
		if st == stageFunction {
			emit(e, functionDuration, label(stageNone), &fs.duration[st], durationPoint)
		} else {
			emit(e, stageDuration, label(st), &fs.duration[st], durationPoint)
		}
		emit(e, clientThroughput, label(st), &fs.throughput[st], throughputPoint)
		emit(e, incompleteCount, label(st), &fs.incomplete[st], counterPoint)
	}
	for st := range fs.share {
		emit(e, stageUtilization, label(stage(st)), &fs.share[st], gaugePoint)
	}
	emit(e, overheadUtilization, label(stageNone), &fs.overhead, gaugePoint)
	emit(e, disagreement, label(stageNone), &fs.disagreement, disagreementPoint)
	fs.verdicts = slices.DeleteFunc(fs.verdicts, func(v verdictCounter) bool {
		l := label(stageNone)
		l.verdict = v.name
		emit(e, verdictCount, l, &v.counter, counterPoint)
		return v.counter == nil
	})
}

// emit writes the series in a slot, if there is one, or the mark that it ended, and then empties the slot.
func emit[S any, P interface {
	*S
	age() *life
}](e *emitter, m metricID, l labels, at *P, point func(*emitter, pmetric.Metric, P, labels)) {
	series := *at
	if series == nil {
		return
	}
	if life := series.age(); e.s.expiration > 0 && e.s.now-life.updated >= e.s.expiration {
		e.end(m, l, life)
		*at = nil
		if !l.overflow {
			e.s.live[m]--
		}
		return
	}
	e.kept++
	if !e.begun[m] {
		e.metric[m], e.begun[m] = e.begin(m), true
	}
	point(e, e.metric[m], series, l)
}

func (e *emitter) begin(m metricID) pmetric.Metric {
	out, d := e.list.AppendEmpty(), &metrics[m]
	out.SetName(d.name)
	out.SetUnit(d.unit)
	out.SetDescription(d.description)
	switch d.kind {
	case pmetric.MetricTypeHistogram:
		out.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case pmetric.MetricTypeSum:
		out.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		out.Sum().SetIsMonotonic(true)
	default:
		out.SetEmptyGauge()
	}
	return out
}

// end writes the point without a value that tells the next component to forget the series. It has a metric of its
// own: the prometheus exporter of v0.158.0 passes over the rest of a metric after such a point.
func (e *emitter) end(m metricID, l labels, life *life) {
	metric := e.begin(m)
	none := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	switch metric.Type() {
	case pmetric.MetricTypeHistogram:
		p := metric.Histogram().DataPoints().AppendEmpty()
		l.put(p.Attributes())
		p.SetStartTimestamp(pcommon.Timestamp(life.start))
		p.SetTimestamp(e.now)
		p.SetFlags(none)
	case pmetric.MetricTypeSum:
		p := metric.Sum().DataPoints().AppendEmpty()
		l.put(p.Attributes())
		p.SetStartTimestamp(pcommon.Timestamp(life.start))
		p.SetTimestamp(e.now)
		p.SetFlags(none)
	default:
		p := metric.Gauge().DataPoints().AppendEmpty()
		l.put(p.Attributes())
		p.SetTimestamp(e.now)
		p.SetFlags(none)
	}
}

func durationPoint(e *emitter, m pmetric.Metric, h *histogram[uint64], l labels) {
	histogramPoint(e, m, h, l, e.s.bounds, 1e9)
}

func throughputPoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, throughputBounds, 1)
}

func disagreementPoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, disagreementBounds, 1)
}

// histogramPoint writes a histogram whose values are in 1/scale of the metric's unit.
func histogramPoint[T uint64 | float64](e *emitter, m pmetric.Metric, h *histogram[T], l labels, bounds []T, scale float64) {
	p := m.Histogram().DataPoints().AppendEmpty()
	l.put(p.Attributes())
	p.SetStartTimestamp(pcommon.Timestamp(h.start))
	p.SetTimestamp(e.now)
	p.SetCount(h.count)
	p.SetSum(float64(h.sum) / scale)
	p.SetMin(float64(h.min) / scale)
	p.SetMax(float64(h.max) / scale)
	p.BucketCounts().FromRaw(h.counts)
	p.ExplicitBounds().EnsureCapacity(len(bounds))
	for _, b := range bounds {
		p.ExplicitBounds().Append(float64(b) / scale)
	}
	h.write(p.Exemplars())
}

func counterPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	p := m.Sum().DataPoints().AppendEmpty()
	l.put(p.Attributes())
	p.SetStartTimestamp(pcommon.Timestamp(c.start))
	p.SetTimestamp(e.now)
	p.SetIntValue(c.n)
	c.write(p.Exemplars())
}

func gaugePoint(e *emitter, m pmetric.Metric, g *gauge, l labels) {
	p := m.Gauge().DataPoints().AppendEmpty()
	l.put(p.Attributes())
	p.SetTimestamp(e.now)
	p.SetDoubleValue(g.value)
}

func (e *exemplars) write(out pmetric.ExemplarSlice) {
	if !e.any {
		return
	}
	e.sent = true
	e.largest.write(out.AppendEmpty())
	if e.latest != e.largest {
		e.latest.write(out.AppendEmpty())
	}
}

func (x *exemplar) write(out pmetric.Exemplar) {
	out.SetTimestamp(x.at)
	out.SetTraceID(x.trace)
	out.SetSpanID(x.span)
	out.SetDoubleValue(x.value)
}
