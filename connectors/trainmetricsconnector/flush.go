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

// metrics is what is sent, by metricID.
var metrics = [numMetrics]spans.Metric{
	functionDuration:     spans.MetricNamed(spans.MetricTQFunctionDuration),
	stageDuration:        spans.MetricNamed(spans.MetricTQStageDuration),
	functionTime:         spans.MetricNamed(spans.MetricTQFunctionTime),
	stageTime:            spans.MetricNamed(spans.MetricTQStageTime),
	stageUtilization:     spans.MetricNamed(spans.MetricTQStageUtilization),
	overheadUtilization:  spans.MetricNamed(spans.MetricTQOverheadUtilization),
	clientThroughput:     spans.MetricNamed(spans.MetricTQClientThroughput),
	disagreement:         spans.MetricNamed(spans.MetricTQUtilizationDisagreement),
	verdictCount:         spans.MetricNamed(spans.MetricTQVerdicts),
	stepDuration:         spans.MetricNamed(spans.MetricStepDuration),
	partDuration:         spans.MetricNamed(spans.MetricStageDuration),
	flopDisagreement:     spans.MetricNamed(spans.MetricFlopDisagreement),
	stepCounts:           spans.MetricNamed(spans.MetricSteps),
	sampleCount:          spans.MetricNamed(spans.MetricSamples),
	tokenCount:           spans.MetricNamed(spans.MetricTokens),
	stepGauges:           spans.MetricNamed(spans.AttrFlopThroughput),
	deviceFlopThroughput: spans.MetricNamed(spans.AttrDeviceFlopThroughput),
	mfu:                  spans.MetricNamed(spans.AttrMFU),
	hfu:                  spans.MetricNamed(spans.AttrHFU),
	callDuration:         spans.MetricNamed(spans.MetricRPCCallDuration),
	requestSize:          spans.MetricNamed(spans.MetricRPCRequestSize),
	responseSize:         spans.MetricNamed(spans.MetricRPCResponseSize),
	passDuration:         spans.MetricNamed(spans.MetricZMQPassDuration),
	passCalls:            spans.MetricNamed(spans.MetricZMQPassCalls),
	rpcUtilization:       spans.MetricNamed(spans.MetricZMQStageUtilization),
	rpcDisagreement:      spans.MetricNamed(spans.MetricZMQThroughputDisagreement),
	collectiveDuration:   spans.MetricNamed(spans.MetricNCCLDuration),
	collectiveLate:       spans.MetricNamed(spans.MetricNCCLLate),
	collectiveLateCost:   spans.MetricNamed(spans.MetricNCCLLateCost),
	collectiveIO:         spans.MetricNamed(spans.MetricNCCLIO),
	collectiveBandwidth:  spans.MetricNamed(spans.MetricNCCLBandwidth),
	collectiveErrors:     spans.MetricNamed(spans.MetricNCCLErrors),
	collectiveRetries:    spans.MetricNamed(spans.MetricNCCLRetries),
	collectiveMissing:    spans.MetricNamed(spans.MetricNCCLMissing),
	incompleteCount:      spans.MetricNamed(spans.MetricIncompleteSpans),
}

// labels are the attributes of a series.
type labels struct {
	of      *group
	stage   spans.TQStage // spans.TQNone for none
	verdict string
	part    string // of a training step
	// rpcStage is a value of zeromq.stage.
	rpcStage string
	// bandwidth is a value of nccl.bandwidth.kind.
	bandwidth string
}

func (l labels) overflow() bool { return l.of.resource == nil }

func (l labels) put(m pcommon.Map) {
	if l.overflow() {
		m.PutBool(attrOverflow, true)
		return
	}
	m.EnsureCapacity(3)
	if l.verdict != "" {
		m.PutStr(spans.AttrVerdictName, l.verdict)
	}
	if l.of.name != "" {
		m.PutStr(spans.AttrTQFunction, l.of.name)
	}
	if l.stage != spans.TQNone {
		m.PutStr(spans.AttrTQStage, l.stage.String())
	}
	if l.part != "" {
		m.PutStr(spans.AttrStage, l.part)
	}
	l.of.source.put(m)
	if l.of.rpc != nil {
		l.of.call.put(m)
	}
	if l.rpcStage != "" {
		m.PutStr(spans.AttrZMQStage, l.rpcStage)
	}
	if l.of.nccl != nil {
		l.of.collective.put(m)
	}
	if l.bandwidth != "" {
		m.PutStr(spans.AttrNCCLBandwidthKind, l.bandwidth)
	}
}

// emitter writes the series of one resource.
type emitter struct {
	s      *store
	list   pmetric.MetricSlice
	metric [numMetrics]pmetric.Metric
	begun  [numMetrics]bool
	now    pcommon.Timestamp
	kept   int // series of the group at hand that live on
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
		r.groups = slices.DeleteFunc(r.groups, func(g *group) bool {
			if e.group(g); e.kept > 0 {
				return false
			}
			switch {
			case g.rpc != nil:
				delete(r.byCall, g.call)
			case g.nccl != nil:
				delete(r.byCollective, g.collective)
			case g.source != (sourceKey{}):
				delete(r.bySource, g.source)
			default:
				delete(r.byName, g.name)
			}
			return true
		})
		if len(r.groups) == 0 {
			delete(s.byKey, r.key)
			s.room.give(targetInfo, r)
		}
		return len(r.groups) == 0
	})
	// The overflow mixes resources and so has none.
	scope(resourceKey{}).group(&s.overflow)
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

// group writes the series of one group.
func (e *emitter) group(fs *group) {
	e.kept = 0
	if fs.steps != nil {
		e.steps(fs)
	}
	if fs.rpc != nil {
		e.rpc(fs)
	}
	if fs.nccl != nil {
		e.collectives(fs)
	}
	label := func(st spans.TQStage) labels { return labels{of: fs, stage: st} }
	for st := range spans.TQStages {
		if st == spans.TQFunction {
			emit(e, functionDuration, label(spans.TQNone), &fs.duration[st], durationPoint)
		} else {
			emit(e, stageDuration, label(st), &fs.duration[st], durationPoint)
		}
		emit(e, clientThroughput, label(st), &fs.throughput[st], throughputPoint)
		emit(e, incompleteCount, label(st), &fs.incomplete[st], counterPoint)
	}
	emit(e, functionTime, label(spans.TQNone), &fs.time, sumPoint)
	for st := range fs.stageTime {
		emit(e, stageTime, label(spans.TQStage(st)), &fs.stageTime[st], sumPoint)
	}
	for st := range fs.share {
		emit(e, stageUtilization, label(spans.TQStage(st)), &fs.share[st], gaugePoint)
	}
	emit(e, overheadUtilization, label(spans.TQNone), &fs.overhead, gaugePoint)
	emit(e, disagreement, label(spans.TQNone), &fs.disagreement, disagreementPoint)
	fs.verdicts = slices.DeleteFunc(fs.verdicts, func(v named[counter]) bool {
		emit(e, verdictCount, labels{of: fs, stage: spans.TQNone, verdict: v.name}, &v.series, counterPoint)
		return v.series == nil
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
		if !l.overflow() {
			e.s.room.give(m, l.of.resource)
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
	out := e.list.AppendEmpty()
	metrics[m].Declare(out)
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

func sizePoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, sizeBounds, 1)
}

func callsPoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, callBounds, 1)
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
	writeCounter(e, m, c, l).SetIntValue(int64(c.n))
}

// sumPoint is for what need not be whole.
func sumPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	writeCounter(e, m, c, l).SetDoubleValue(c.n)
}

func writeCounter(e *emitter, m pmetric.Metric, c *counter, l labels) pmetric.NumberDataPoint {
	p := m.Sum().DataPoints().AppendEmpty()
	l.put(p.Attributes())
	p.SetStartTimestamp(pcommon.Timestamp(c.start))
	p.SetTimestamp(e.now)
	c.write(p.Exemplars())
	return p
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
	out.SetTimestamp(x.end)
	out.SetTraceID(x.trace)
	out.SetSpanID(x.span)
	out.SetDoubleValue(x.value)
}
