package trainmetricsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// attrOverflow marks the series that sums what found no room under a limit (OpenTelemetry metrics SDK specification).
const attrOverflow = "otel.metric.overflow"

// labels are the attributes of a series.
type labels struct {
	of      *group
	verdict seriesName
	own     label
}

func (l labels) overflow() bool { return l.of.resource == nil }

// put writes the labels of a series. No other collector writes a series with the same ones: two would be one counter that goes up and down.
func (e *emitter) put(l labels, m pcommon.Map) {
	m.EnsureCapacity(4)
	if e.s.collector != "" {
		m.PutStr(spans.AttrCollector, e.s.collector)
	}
	if l.overflow() {
		m.PutBool(attrOverflow, true)
		return
	}
	l.verdict.put(m)
	l.of.labels(m, l.own)
}

// emitter writes the series of one resource.
type emitter struct {
	s      *store
	list   pmetric.MetricSlice
	metric []pmetric.Metric // by metricID
	begun  []bool           // as above
	now    pcommon.Timestamp
	codec  *codec // what is to be done in place of writing points
	kept   int    // series of the group at hand that live on
	lives  int64  // ns that a series lives without a new span
	id     metricID
	survey bool // nothing is written: bounds of explicit histograms are looked for
}

// day is how long is known that a run has ended, or no longer comes on, and the longest that a series waits for its next span.
const day = int64(24 * time.Hour)

func (e *emitter) lifetime(m metricID) int64 {
	if m == runEnded || m == stepLastTime {
		return max(e.lives, day)
	}
	return e.lives
}

// takes notes how long a step, or a pass, took.
func (g *group) takes(ns int64) {
	if g.resource != nil {
		g.resource.longest = max(g.resource.longest, ns)
	}
}

// patience is for how many of its longest steps a run may be silent before its series end: logs may tell of every hundredth step, and jobs are paused.
const patience = 4

func newEmitter(s *store, list pmetric.MetricSlice, now int64) *emitter {
	return &emitter{
		s: s, list: list, metric: make([]pmetric.Metric, len(metrics)), begun: make([]bool, len(metrics)), now: pcommon.Timestamp(now), lives: s.expiration,
	}
}

// build makes the metrics of all series and forgets the expired ones.
func (s *store) build(now time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	s.now = now.UnixNano()
	s.accounts.tell(s)
	at := max(s.now, s.lastFlush) // a clock set back must not make a point end before it starts
	longest := s.longest()
	if s.bounds != nil {
		e := newEmitter(s, pmetric.NewMetricSlice(), at)
		e.survey = true
		e.all()
	}
	scope := func(key resourceKey, job []label) *emitter {
		rm := out.ResourceMetrics().AppendEmpty()
		key.put(rm.Resource().Attributes())
		for _, l := range job { // of another host, in a gateway; else the same
			l.put(rm.Resource().Attributes())
		}
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(metadata.ScopeName)
		e := newEmitter(s, sm.Metrics(), at)
		e.lives = max(s.expiration, min(patience*longest[key.home()], day))
		return e
	}
	s.resources = slices.DeleteFunc(s.resources, func(r *resource) bool {
		e := scope(r.key, r.job)
		r.groups = slices.DeleteFunc(r.groups, func(g *group) bool {
			if e.group(g); e.kept > 0 {
				return false
			}
			g.forget()
			g.gone = true
			s.change(g)
			return true
		})
		if len(r.groups) == 0 {
			delete(s.byKey, r.key)
			s.room.give(targetInfo(), r)
			return true
		}
		if r.key.run != "" {
			e.place()
		}
		return false
	})
	// The overflow mixes resources and so has none.
	scope(resourceKey{}, nil).group(&s.overflow)
	out.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().At(0).Metrics().Len() == 0 })
	s.lastFlush = at
	return out
}

// all goes through the series of all groups.
func (e *emitter) all() {
	for _, r := range e.s.resources {
		for _, g := range r.groups {
			e.group(g)
		}
	}
	e.group(&e.s.overflow)
}

// home is the run of a resource, whatever service tells of it; without a run it is the resource itself.
func (k resourceKey) home() resourceKey {
	if k.run == "" {
		return k
	}
	return resourceKey{run: k.run}
}

// longest is how long the longest step, or pass, of each run took, ns.
func (s *store) longest() map[resourceKey]int64 {
	of := make(map[resourceKey]int64, len(s.resources))
	for _, r := range s.resources {
		home := r.key.home()
		of[home] = max(of[home], r.longest)
	}
	return of
}

// put writes the resource.
func (k resourceKey) put(m pcommon.Map) {
	spans.Resource{Service: k.service, RunID: k.run}.PutInstance(m)
}

// place writes where this collector runs, beside all limits: one series of a run, where the environment says it.
func (e *emitter) place() {
	if !spans.PutPlace(pcommon.NewMap()) {
		return
	}
	m := e.list.AppendEmpty()
	d := spans.MetricNamed(spans.MetricRunCollectorInfo)
	d.Declare(m)
	p := m.Gauge().DataPoints().AppendEmpty()
	p.SetTimestamp(e.now)
	p.SetIntValue(1)
	spans.PutPlace(p.Attributes())
	if e.s.collector != "" {
		p.Attributes().PutStr(spans.AttrCollector, e.s.collector)
	}
}

// group writes the series of one group.
func (e *emitter) group(g *group) {
	e.kept = 0
	for i, a := range e.s.adders {
		if e.codec.flag(g.series[i] != nil) {
			a.emit(e, g)
		}
	}
	emit(e, incompleteCount, labels{of: g}, &g.incomplete, counterPoint)
	emitNamed(e, verdictCount, &g.verdicts, func(name seriesName) labels { return labels{of: g, verdict: name} }, counterPoint)
}

// series is a pointer to a series.
type series[S any] interface {
	*S
	age() *life
	cover(e *emitter)
	code(c *codec, s *store, m metricID)
}

// emit writes the series in a slot, if there is one, or the mark that it ended, and then empties the slot.
func emit[S any, P series[S]](e *emitter, m metricID, l labels, at *P, point func(*emitter, pmetric.Metric, P, labels)) {
	if e.codec != nil {
		if c := e.codec; c.flag(*at != nil) {
			if c.reads {
				*at = new(S)
				if !l.overflow() {
					e.s.room.take(m, l.of.resource)
				}
			}
			(*at).code(c, e.s, m)
		}
		return
	}
	series := *at
	if series == nil {
		return
	}
	if life := series.age(); !e.survey && e.s.expiration > 0 && e.s.now-life.updated >= e.lifetime(m) {
		e.end(m, l, life)
		*at = nil
		e.s.change(l.of)
		if !l.overflow() {
			e.s.room.give(m, l.of.resource)
		}
		return
	}
	e.kept++
	if e.id = m; e.survey {
		series.cover(e)
		return
	}
	if !e.begun[m] {
		e.metric[m], e.begun[m] = e.begin(m), true
	}
	point(e, e.metric[m], series, l)
}

// emitNamed writes the series of a list, of which each has its labels of its name.
func emitNamed[S any, P series[S]](e *emitter, m metricID, list *[]named[S], of func(name seriesName) labels, point func(*emitter, pmetric.Metric, P, labels)) {
	if n := e.codec.length(len(*list)); e.codec.reading() {
		*list = make([]named[S], n)
	}
	for i := range *list {
		v := &(*list)[i]
		if e.codec != nil {
			v.name = v.name.code(e.codec)
		}
		at := P(v.series)
		emit(e, m, of(v.name), &at, point)
		v.series = at
	}
	*list = slices.DeleteFunc(*list, func(v named[S]) bool { return v.series == nil })
}

func (e *emitter) begin(m metricID) pmetric.Metric {
	out := e.list.AppendEmpty()
	metrics[m].Declare(out)
	if e.s.bounds == nil && out.Type() == pmetric.MetricTypeHistogram {
		out.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return out
}

// end writes the point without a value that tells the next component to forget the series. It has a metric of its
// own: the prometheus exporter of v0.158.0 passes over the rest of a metric after such a point.
func (e *emitter) end(m metricID, l labels, life *life) {
	metric := e.begin(m)
	switch metric.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		ended(e, metric.ExponentialHistogram().DataPoints().AppendEmpty(), l, life.start)
	case pmetric.MetricTypeHistogram:
		ended(e, metric.Histogram().DataPoints().AppendEmpty(), l, life.start)
	case pmetric.MetricTypeSum:
		ended(e, metric.Sum().DataPoints().AppendEmpty(), l, life.start)
	default:
		ended(e, metric.Gauge().DataPoints().AppendEmpty(), l, 0)
	}
}

// dataPoint is what points of all types have.
type dataPoint interface {
	Attributes() pcommon.Map
	SetStartTimestamp(at pcommon.Timestamp)
	SetTimestamp(at pcommon.Timestamp)
	SetFlags(flags pmetric.DataPointFlags)
}

// head writes the labels and the times of a point. start 0: a gauge, which has none.
func head[P dataPoint](e *emitter, p P, l labels, start int64) {
	e.put(l, p.Attributes())
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetTimestamp(e.now)
}

func ended[P dataPoint](e *emitter, p P, l labels, start int64) {
	head(e, p, l, start)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

func durationPoint(e *emitter, m pmetric.Metric, h *histogram[uint64], l labels) {
	histogramPoint(e, m, h, l, 1e9)
}

func numberPoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, 1)
}

// histogramPoint writes a histogram whose values are in 1/scale of the metric's unit.
func histogramPoint[T uint64 | float64](e *emitter, m pmetric.Metric, h *histogram[T], l labels, scale float64) {
	if m.Type() == pmetric.MetricTypeHistogram {
		explicitPoint(e, m, h, l, scale)
		return
	}
	p := m.ExponentialHistogram().DataPoints().AppendEmpty()
	p.SetScale(int32(h.scale()))
	if told(e, p, h, l, scale) {
		p.SetZeroCount(h.zeros)
		p.Positive().SetOffset(int32(h.offset))
		p.Positive().BucketCounts().FromRaw(h.counts)
	}
}

// explicitPoint writes the buckets with the bounds that all series of the metric have.
func explicitPoint[T uint64 | float64](e *emitter, m pmetric.Metric, h *histogram[T], l labels, scale float64) {
	p := m.Histogram().DataPoints().AppendEmpty()
	of := &e.s.bounds[e.id]
	p.ExplicitBounds().FromRaw(of.Values())
	if told(e, p, h, l, scale) {
		p.BucketCounts().FromRaw(h.between(of))
	} else {
		p.BucketCounts().FromRaw(make([]uint64, len(of.Values())+1))
	}
}

// distribution is what points of histograms of both types have.
type distribution interface {
	dataPoint
	SetCount(n uint64)
	SetSum(x float64)
	SetMin(x float64)
	SetMax(x float64)
	Exemplars() pmetric.ExemplarSlice
}

// told writes what a histogram has beside its buckets. It says false of one that is told of as 0.
func told[T uint64 | float64, P distribution](e *emitter, p P, h *histogram[T], l labels, scale float64) bool {
	head(e, p, l, h.start)
	if e.born(&h.life) {
		p.SetSum(0)
		return false
	}
	p.SetCount(h.count)
	p.SetSum(float64(h.sum) / scale)
	p.SetMin(float64(h.min) / scale)
	p.SetMax(float64(h.max) / scale)
	h.write(p.Exemplars())
	return true
}

// zeroFlushes is for how many flushes a counter or a histogram is 0 at first. Rates and increase() of Prometheus do not see what a series begins with, and a
// scrape may come between two flushes.
const zeroFlushes = 2

// born says whether a series is to be told of as 0, as it was when it began.
func (e *emitter) born(l *life) bool {
	if l.newborn >= e.s.zeros || e.s.accounts.final {
		return false
	}
	l.newborn++
	return true
}

// counterPoint writes a counter of whole numbers.
func counterPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	p := countPoint(e, m, c, l)
	if e.born(&c.life) {
		p.SetIntValue(0)
		return
	}
	p.SetIntValue(int64(c.n))
	c.write(p.Exemplars())
}

// sumPoint writes a counter whose value need not be a whole number.
func sumPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	p := countPoint(e, m, c, l)
	if e.born(&c.life) {
		p.SetDoubleValue(0)
		return
	}
	p.SetDoubleValue(c.n)
	c.write(p.Exemplars())
}

func countPoint(e *emitter, m pmetric.Metric, c *counter, l labels) pmetric.NumberDataPoint {
	p := m.Sum().DataPoints().AppendEmpty()
	head(e, p, l, c.start)
	return p
}

// upDownPoint writes a sum that may go down.
func upDownPoint(e *emitter, m pmetric.Metric, g *gauge, l labels) {
	p := m.Sum().DataPoints().AppendEmpty()
	head(e, p, l, g.start)
	p.SetDoubleValue(g.value)
}

func gaugePoint(e *emitter, m pmetric.Metric, g *gauge, l labels) {
	p := m.Gauge().DataPoints().AppendEmpty()
	head(e, p, l, 0)
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
