package trainmetricsconnector

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// attrOverflow marks the series for values beyond a limit (OpenTelemetry metrics SDK specification).
const attrOverflow = "otel.metric.overflow"

// labels are the attributes of a series.
type labels struct {
	of      *group
	verdict seriesName // of a counter of verdicts
	own     label      // of only some series of the group
}

// overflow reports whether the series is in the overflow group.
func (l labels) overflow() bool { return l.of.resource == nil }

// put writes the labels of a series, with the name of the collector: otherwise two collectors would write one counter that goes up and down.
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

// emitter goes through series, group by group, for one of three purposes: to write the points of a flush and empty the slots of expired series; with a codec,
// to store or restore the series; as a survey, to find the bounds of explicit histograms.
type emitter struct {
	s          *store
	list       pmetric.MetricSlice // output
	metric     []pmetric.Metric    // by metricID: the metric in list
	begun      []bool              // by metricID: whether metric is in list yet
	now        pcommon.Timestamp
	codec      *codec   // nil: no storing
	kept       int      // series of the current group that live on
	lifetimeNS int64    // ns from a series' last span to its end
	id         metricID // of the current series
	survey     bool
}

// day is how long the end or the silence of a run stays visible, and the longest lifetime of a series without spans.
const day = int64(24 * time.Hour)

// lifetime returns how long a series of a metric lives without a new value, ns.
func (e *emitter) lifetime(m metricID) int64 {
	if m == runEnded || m == stepLastTime {
		return max(e.lifetimeNS, day)
	}
	return e.lifetimeNS
}

// noteDuration records how long a step or a pass of the resource took, ns: the longest decides how long series live.
func (g *group) noteDuration(ns int64) {
	if g.resource != nil {
		g.resource.longest = max(g.resource.longest, ns)
	}
}

// patience is for how many of its longest steps a run may be silent before its series end: a log may have only every hundredth step, and jobs pause.
const patience = 4

// newEmitter returns an emitter that writes points with the time now, Unix ns, into a list.
func newEmitter(s *store, list pmetric.MetricSlice, now int64) *emitter {
	return &emitter{
		s: s, list: list, metric: make([]pmetric.Metric, len(metrics)), begun: make([]bool, len(metrics)), now: pcommon.Timestamp(now), lifetimeNS: s.expiration,
	}
}

// build makes the metrics of every series, with a resource in the output for each resource. It also forgets expired series, groups without series, and
// resources without groups. The bounds of explicit histograms, common to the series of a metric, are found in a survey before.
func (s *store) build(now time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	s.now = now.UnixNano()
	at := max(s.now, s.lastFlush) // a clock set back must not make a point end before its start
	longest := s.longestByRun()
	if s.bounds != nil {
		e := newEmitter(s, pmetric.NewMetricSlice(), at)
		e.survey = true
		e.all()
	}
	// scope begins the output of a resource.
	scope := func(key resourceKey, job []label) *emitter {
		rm := out.ResourceMetrics().AppendEmpty()
		key.put(rm.Resource().Attributes())
		for _, l := range job { // overwrite what key.put wrote from the environment: in a gateway the spans may be of another job
			l.put(rm.Resource().Attributes())
		}
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(metadata.ScopeName)
		e := newEmitter(s, sm.Metrics(), at)
		e.lifetimeNS = max(s.expiration, min(patience*longest[key.withoutService()], day))
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
			s.markChanged(g)
			return true
		})
		if len(r.groups) == 0 {
			delete(s.byKey, r.key)
			s.room.give(targetInfo(), r)
			return true
		}
		if r.key.run != "" {
			e.collectorInfo()
		}
		return false
	})
	// The overflow mixes resources and has none.
	scope(resourceKey{}, nil).group(&s.overflow)
	out.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool { return rm.ScopeMetrics().At(0).Metrics().Len() == 0 })
	s.lastFlush = at
	return out
}

// all goes through the series of every group.
func (e *emitter) all() {
	for _, r := range e.s.resources {
		for _, g := range r.groups {
			e.group(g)
		}
	}
	e.group(&e.s.overflow)
}

// withoutService returns the key of the run, whatever the service; without a run, the key itself.
func (k resourceKey) withoutService() resourceKey {
	if k.run == "" {
		return k
	}
	return resourceKey{run: k.run}
}

// longestByRun returns, by resourceKey.withoutService, how long the longest step or pass of the run took, ns.
func (s *store) longestByRun() map[resourceKey]int64 {
	longest := make(map[resourceKey]int64, len(s.resources))
	for _, r := range s.resources {
		run := r.key.withoutService()
		longest[run] = max(longest[run], r.longest)
	}
	return longest
}

// put writes the attributes of the resource.
func (k resourceKey) put(m pcommon.Map) {
	spans.Resource{Service: k.service, RunID: k.run}.PutInstance(m)
}

// collectorInfo writes the location of this collector, one series of a run, outside of all limits; nothing if the environment has no location.
func (e *emitter) collectorInfo() {
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

// group goes through the series of a group. Afterwards e.kept is the number of series that live on.
func (e *emitter) group(g *group) {
	e.kept = 0
	for i, a := range e.s.adders {
		if e.codec.flag(g.series[i] != nil) { // stored: which families have series in the group
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

// emit goes through the slot of a series, which may be empty. With a codec the series is stored, or restored into the slot. Without, an expired series gets its
// end point and the slot is emptied; any other series is written by point, or surveyed.
func emit[S any, P series[S]](e *emitter, m metricID, l labels, at *P, point func(*emitter, pmetric.Metric, P, labels)) {
	if e.codec != nil {
		if c := e.codec; c.flag(*at != nil) {
			if c.reads {
				*at = new(S)
				if !l.overflow() { // the overflow's room is always taken
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
		e.s.markChanged(l.of)
		if !l.overflow() {
			e.s.room.give(m, l.of.resource)
		}
		return
	}
	e.kept++
	e.id = m
	if e.survey {
		series.cover(e)
		return
	}
	if !e.begun[m] {
		e.metric[m], e.begun[m] = e.begin(m), true
	}
	point(e, e.metric[m], series, l)
}

// emitNamed is emit for a list of series with names; of returns the labels for a name. Series that have ended leave the list.
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

// begin adds a metric to the output.
func (e *emitter) begin(m metricID) pmetric.Metric {
	out := e.list.AppendEmpty()
	metrics[m].Declare(out)
	if e.s.bounds == nil && out.Type() == pmetric.MetricTypeHistogram {
		out.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return out
}

// end writes the point without a value that marks the end of a series. The point gets a metric of its own, because the prometheus exporter of v0.158.0 skips
// the rest of a metric after an end.
func (e *emitter) end(m metricID, l labels, life *life) {
	metric := e.begin(m)
	switch metric.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		endPoint(e, metric.ExponentialHistogram().DataPoints().AppendEmpty(), l, life.start)
	case pmetric.MetricTypeHistogram:
		endPoint(e, metric.Histogram().DataPoints().AppendEmpty(), l, life.start)
	case pmetric.MetricTypeSum:
		endPoint(e, metric.Sum().DataPoints().AppendEmpty(), l, life.start)
	default:
		endPoint(e, metric.Gauge().DataPoints().AppendEmpty(), l, 0)
	}
}

// dataPoint is common to points of all types.
type dataPoint interface {
	Attributes() pcommon.Map
	SetStartTimestamp(at pcommon.Timestamp)
	SetTimestamp(at pcommon.Timestamp)
	SetFlags(flags pmetric.DataPointFlags)
}

// putHead writes the labels and the times of a point. A gauge has no start: 0.
func putHead[P dataPoint](e *emitter, p P, l labels, start int64) {
	e.put(l, p.Attributes())
	p.SetStartTimestamp(pcommon.Timestamp(start))
	p.SetTimestamp(e.now)
}

// endPoint writes a point without a value, which marks the end of a series.
func endPoint[P dataPoint](e *emitter, p P, l labels, start int64) {
	putHead(e, p, l, start)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

// durationPoint writes a histogram of durations: counted in ns, reported in s.
func durationPoint(e *emitter, m pmetric.Metric, h *histogram[uint64], l labels) {
	histogramPoint(e, m, h, l, 1e9)
}

// numberPoint writes a histogram of numbers.
func numberPoint(e *emitter, m pmetric.Metric, h *histogram[float64], l labels) {
	histogramPoint(e, m, h, l, 1)
}

// histogramPoint writes a histogram whose values are in units of 1/scale of the metric's unit.
func histogramPoint[T uint64 | float64](e *emitter, m pmetric.Metric, h *histogram[T], l labels, scale float64) {
	if m.Type() == pmetric.MetricTypeHistogram {
		explicitPoint(e, m, h, l, scale)
		return
	}
	p := m.ExponentialHistogram().DataPoints().AppendEmpty()
	p.SetScale(int32(h.scale()))
	if putSummary(e, p, h, l, scale) {
		p.SetZeroCount(h.zeros)
		p.Positive().SetOffset(int32(h.offset))
		p.Positive().BucketCounts().FromRaw(h.counts)
	}
}

// explicitPoint writes an explicit histogram with the bounds common to the series of the metric.
func explicitPoint[T uint64 | float64](e *emitter, m pmetric.Metric, h *histogram[T], l labels, scale float64) {
	p := m.Histogram().DataPoints().AppendEmpty()
	set := &e.s.bounds[e.id]
	p.ExplicitBounds().FromRaw(set.Values())
	if putSummary(e, p, h, l, scale) {
		p.BucketCounts().FromRaw(h.explicitCounts(set))
	} else {
		p.BucketCounts().FromRaw(make([]uint64, len(set.Values())+1))
	}
}

// distribution is common to points of both types of histograms.
type distribution interface {
	dataPoint
	SetCount(n uint64)
	SetSum(x float64)
	SetMin(x float64)
	SetMax(x float64)
	Exemplars() pmetric.ExemplarSlice
}

// putSummary writes a histogram without its buckets. It returns false while the histogram is reported as 0 (reportsZero).
func putSummary[T uint64 | float64, P distribution](e *emitter, p P, h *histogram[T], l labels, scale float64) bool {
	putHead(e, p, l, h.start)
	if e.reportsZero(&h.life) {
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

// zeroFlushes is the number of flushes in which a new counter or histogram is 0. rate() and increase() of Prometheus do not see the first value of a series,
// and a scrape may miss one flush.
const zeroFlushes = 2

// reportsZero reports whether a new series is still to be reported as 0, and counts the flush. In the last flush, at shutdown, the value is reported.
func (e *emitter) reportsZero(l *life) bool {
	if l.newborn >= e.s.zeros || e.s.accounts.final {
		return false
	}
	l.newborn++
	return true
}

// counterPoint writes a counter of whole numbers.
func counterPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	p := countPoint(e, m, c, l)
	if e.reportsZero(&c.life) {
		p.SetIntValue(0)
		return
	}
	p.SetIntValue(int64(c.n))
	c.write(p.Exemplars())
}

// sumPoint writes a counter whose value need not be a whole number.
func sumPoint(e *emitter, m pmetric.Metric, c *counter, l labels) {
	p := countPoint(e, m, c, l)
	if e.reportsZero(&c.life) {
		p.SetDoubleValue(0)
		return
	}
	p.SetDoubleValue(c.n)
	c.write(p.Exemplars())
}

// countPoint starts the point of a counter; the caller sets the value.
func countPoint(e *emitter, m pmetric.Metric, c *counter, l labels) pmetric.NumberDataPoint {
	p := m.Sum().DataPoints().AppendEmpty()
	putHead(e, p, l, c.start)
	return p
}

// upDownPoint writes a sum that may decrease.
func upDownPoint(e *emitter, m pmetric.Metric, g *gauge, l labels) {
	p := m.Sum().DataPoints().AppendEmpty()
	putHead(e, p, l, g.start)
	p.SetDoubleValue(g.value)
}

// gaugePoint writes a gauge.
func gaugePoint(e *emitter, m pmetric.Metric, g *gauge, l labels) {
	p := m.Gauge().DataPoints().AppendEmpty()
	putHead(e, p, l, 0)
	p.SetDoubleValue(g.value)
}

// write writes the largest and the latest value as exemplars, one if they are the same, and marks them as sent.
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

// write writes an exemplar.
func (x *exemplar) write(out pmetric.Exemplar) {
	out.SetTimestamp(x.end)
	out.SetTraceID(x.trace)
	out.SetSpanID(x.span)
	out.SetDoubleValue(x.value)
}
