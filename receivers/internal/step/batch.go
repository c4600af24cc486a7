package step

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// stepBatch is the records that are sent together, packed: a record has few of the fields.
type stepBatch struct {
	pool   *filereceiver.Pool[stepBatch]
	set    *Settings
	run    string
	opens  *spans.RunSpan // nil: the run is open already
	steps  int
	items  []item
	shared []shared
	values []value
	stages []stage
	ranks  []rankTime
	laid   []part // by Traces
	sums   []rankTime
	extras []extra
	gpus   []float64
	texts  bool // some model is known
	hosts  bool // some host is

	samples []sample // without spans
}

type key struct {
	Trace pcommon.TraceID `json:"trace"`
	ID    pcommon.SpanID  `json:"id"`
}

// item is one record with its time and trace. Times are ns since the epoch.
type item struct {
	kind         record.Kind
	hasIteration bool
	point        bool // the duration is unknown
	local        bool // the rank is the local one
	ownUnits     bool // units differ from those of the log's other records
	oneGPU       bool // a GPU of unknown number
	trace        pcommon.TraceID
	id, parent   pcommon.SpanID
	start, end   int64
	iteration    int64
	ordinal      int64 // without an iteration
	covered      int64 // 0: unknown
	rank         int64
	shared       uint32 // index in stepBatch.shared
	dropped      uint32 // fields
	place        tail.Place
	units        string // if ownUnits

	slow  *rankSlow // nil: unknown
	parts int       // drawn with their ranks

	valuesFrom, valuesTo, stagesFrom, stagesTo, extrasFrom, extrasTo, gpusFrom, gpusTo uint32
}

// placed is an item before packing, with the properties shared with its neighbours.
type placed struct {
	item
	about
}

// about is the source of a record's times, and its logger.
type about struct {
	source         string
	time           spans.TimeSource
	kindOfDuration string
	host           string
	pid            int64
	attempt        int64 // 0: the first
	byID           bool  // an id in the log decided the trace
	model          *spans.Model
}

// shared is the common part of records, written on their resource.
type shared struct {
	about
	units  string
	stated spans.Stated
}

// exact says whether the length of the span is the time of a step, to the nanosecond.
func (it *item) exact(seconds float64) bool {
	steps := max(it.covered, 1)
	length := it.end - it.start
	return !it.point && it.start >= 0 && length > 1 && math.Abs(float64(length)-seconds*1e9*float64(steps)) <= float64(steps)
}

func (it *item) key() key { return key{it.trace, it.id} }

type value struct {
	field record.Field
	v     float64
}

// stands says whether the value goes to the resource, not to the span.
func (v value) stands(on *spans.Resource) bool {
	number := fieldInfos[v.field].stated
	return number > 0 && on.Stated.Is(number-1, v.v)
}

type stage struct {
	name         string
	seconds, min float64
	hasMin       bool
	place        *record.Place

	ranksFrom, ranksTo uint32 // where the log has the time of each rank; then seconds is the slowest rank's, and min the fastest rank's
}

type extra struct {
	name, text              string
	isText                  bool
	value                   float64
	metric, unit, statistic string
}

// maxFree bounds the batches kept, some 200 KB each.
const maxFree = 16

func (h *handler) newBatch() *stepBatch {
	b := h.pool.Get()
	b.pool, b.set, b.run = h.pool, h.set, h.run
	return b
}

// Done lets the batch be used again.
func (b *stepBatch) Done() {
	clear(b.items)
	clear(b.shared)
	clear(b.stages)
	clear(b.extras)
	*b = stepBatch{
		pool: b.pool, items: b.items[:0], shared: b.shared[:0], values: b.values[:0], stages: b.stages[:0], ranks: b.ranks[:0], laid: b.laid, sums: b.sums,
		extras: b.extras[:0], gpus: b.gpus[:0], samples: b.samples[:0],
	}
	if cap(b.items) <= maxKept && cap(b.samples) <= maxSamples {
		b.pool.Put(b, maxFree)
	}
}

// maxKept bounds the records of a batch kept for reuse, and maxSamples the values of GPUs.
const (
	maxKept    = 1 << 13
	maxSamples = 1 << 13
)

// Texts is as in filereceiver.Texter: a record of known numbers has no text of the log but its host.
func (b *stepBatch) Texts() (onSpans, onPoints bool) {
	return b.texts || b.hosts || len(b.stages)+len(b.extras) > 0, b.hosts
}

// add packs a record.
func (b *stepBatch) add(h *handler, it *placed, rec *record.Record) {
	if it.kind == record.Step {
		b.steps++
	}
	b.texts, b.hosts = b.texts || it.model != nil, b.hosts || it.host != ""
	it.valuesFrom, it.stagesFrom, it.extrasFrom, it.gpusFrom = b.ends()
	for f, v := range rec.All() {
		if f == record.Duration && (it.kind != record.Step || it.exact(v)) { // the duration of other kinds is no step's
			continue
		}
		b.values = append(b.values, value{f, v})
	}
	for i := range rec.Stages {
		b.addStage(h, &it.item, &rec.Stages[i])
	}
	for i := range rec.Extra {
		e := &rec.Extra[i]
		x := extra{name: h.names.Text(e.Name), isText: e.Text != nil, value: e.Value, metric: e.Metric, unit: e.Unit, statistic: e.Statistic}
		if x.isText {
			x.text = spans.Text(e.Text)
		}
		b.extras = append(b.extras, x)
	}
	b.gpus, it.oneGPU = append(b.gpus, rec.GPUs...), rec.OneGPU
	it.valuesTo, it.stagesTo, it.extrasTo, it.gpusTo = b.ends()
	it.dropped = uint32(rec.Dropped)
	b.addFacts(h, it, rec)
	it.place = h.stream.Place()
	b.items = append(b.items, it.item)
}

func (b *stepBatch) ends() (values, stages, extras, gpus uint32) {
	return uint32(len(b.values)), uint32(len(b.stages)), uint32(len(b.extras)), uint32(len(b.gpus))
}

// addFacts notes the values that the log repeats. A step without one of the numbers has a resource without it; all other spans have the resource of the steps.
func (b *stepBatch) addFacts(h *handler, it *placed, rec *record.Record) {
	t := h.track(who{it.source, it.rank})
	t.Units.add(rec)
	it.units, it.ownUnits = t.Units.own, t.Units.other
	if it.kind == record.Step {
		t.Stated = spans.Stated{}
		for _, v := range b.values[it.valuesFrom:] {
			if i := fieldInfos[v.field].stated - 1; i >= 0 && spans.Finite(v.v) {
				t.Stated.Set(i, t.Steady[i].Next(v.v))
			}
		}
		if it.covered > 1 {
			t.Stated.Set(spans.StatedStepsCovered, t.Steady[spans.StatedStepsCovered].Next(float64(it.covered)))
		}
	}
	of := shared{it.about, t.Units.text, t.Stated}
	if it.kind != record.Step || of.kindOfDuration == spans.DurationStep {
		of.kindOfDuration = "" // the default
	}
	last := len(b.shared) - 1
	for i := last; i >= 0 && i > last-maxMixed; i-- {
		if b.shared[i] == of {
			it.shared = uint32(i)
			return
		}
	}
	it.shared = uint32(last + 1)
	b.shared = append(b.shared, of)
}

// maxMixed is the number of ranks or workers of a log that may alternate line by line.
const maxMixed = 8

// unitTexts makes AttrSourceUnit of all fields in the log so far.
type unitTexts struct {
	layout record.Layout                 // of the record before: mostly also the next record's
	Units  [record.NumFields]record.Unit `json:"units"`
	text   string
	// The units of the record, if a field has another one than before.
	own   string
	other bool
}

// add notes the units of a record, and sets own and other where they contradict earlier units.
func (u *unitTexts) add(rec *record.Record) {
	layout := rec.Layout()
	if layout == u.layout {
		return
	}
	u.layout, u.own, u.other = layout, "", false
	news := false
	for f := range rec.All() {
		switch unit := rec.UnitOf(f); {
		case unit == u.Units[f]:
		case u.Units[f] == record.Base:
			u.Units[f], news = unit, true
		default:
			u.other = true
		}
	}
	if u.other {
		own := [record.NumFields]record.Unit{}
		for f := range rec.All() {
			own[f] = rec.UnitOf(f)
		}
		u.own = textOf(&own)
	}
	if news {
		u.text = textOf(&u.Units)
	}
}

func textOf(units *[record.NumFields]record.Unit) string {
	var text strings.Builder
	for f, unit := range units {
		if unit == record.Base {
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(fieldInfos[f].name + "=" + unit.String())
	}
	return text.String()
}

// Traces builds the spans.
func (b *stepBatch) Traces(out *spans.Batch, from filereceiver.From) {
	if b.opens != nil {
		out.AddRun(*b.opens)
	}
	out.Grow(len(b.items) + len(b.stages) + 1)
	runTrace, runSpan := spans.RunIDs(b.run)
	for i := range b.items {
		it := &b.items[i]
		from(it.place)
		b.compare(it)
		if it.kind == record.Ranks && it.start == it.end { // a report is as long as its content
			it.point = false
			for _, st := range b.stages[it.stagesFrom:it.stagesTo] {
				it.start -= max(nanos(st.seconds), tick)
			}
		}
		if it.kind != record.Side {
			s := b.span(out, it)
			if it.kind != record.Summary {
				out.Link(s, runTrace, runSpan)
			}
		}
		b.parts(out, it)
	}
}

// first is the earliest record.
func (b *stepBatch) first() *item {
	first := &b.items[0]
	for i := range b.items {
		if it := &b.items[i]; it.start < first.start {
			first = it
		}
	}
	return first
}

func (b *stepBatch) resource(it *item) spans.Resource {
	of, joinBy := &b.shared[it.shared], ""
	if of.byID {
		joinBy = spans.JoinByID
	}
	return spans.Resource{
		Service: b.set.Run.ServiceName, RunID: b.run, Attempt: of.attempt, Host: of.host, PID: of.pid, Model: of.model, JoinBy: joinBy,
		Time: of.time, Source: of.source, Units: of.units,
		DurationKind: of.kindOfDuration, Stated: of.stated,
	}
}

// ofParts is the resource of the parts of a record: the log has their durations, not their times.
func (b *stepBatch) ofParts(it *item) spans.Resource {
	r := b.resource(it)
	r.Time = spans.TimeSynthetic
	return r
}

// addedWithoutModel is the number of attributes that train_perf adds to most steps of an unknown model: samples, tokens and a rate.
const addedWithoutModel = 3

func (b *stepBatch) span(out *spans.Batch, it *item) ptrace.Span {
	res := b.resource(it)
	n := int(it.extrasTo - it.extrasFrom)
	for _, v := range b.values[it.valuesFrom:it.valuesTo] {
		if !v.stands(&res) {
			n++
		}
	}
	ownCovered := it.covered > 1 && !res.Stated.Is(spans.StatedStepsCovered, float64(it.covered))
	for _, has := range [...]bool{it.ordinal > 0, it.rank != noRank, ownCovered, it.point, it.ownUnits} {
		if has {
			n++
		}
	}
	if it.gpusTo > it.gpusFrom {
		n += 2
	}
	if it.kind == record.Step {
		if n += addedWithoutModel; res.Model != nil {
			n += spans.AddedToStep/2 - addedWithoutModel // the other half goes to the resource
		}
	}
	s := out.Add(res, spans.Span{
		Trace: it.trace, ID: it.id, Parent: it.parent, Name: roles[it.kind], Is: kinds[it.kind], Kind: ptrace.SpanKindInternal, Start: it.start, End: it.end,
		Source: res.Time, Attributes: n,
	})
	m := s.Attributes()
	if it.ordinal > 0 {
		m.PutInt(spans.AttrRecord, it.ordinal)
	}
	putRank(m, it.rank, it.local)
	if it.point {
		m.PutBool(spans.AttrTimePoint, true)
	}
	if ownCovered {
		m.PutInt(spans.AttrStepsCovered, it.covered)
	}
	for _, v := range b.values[it.valuesFrom:it.valuesTo] {
		if v.stands(&res) {
			continue
		}
		info := &fieldInfos[v.field]
		if n := int64(v.v); info.integer && float64(n) == v.v && n < 1<<53 && n > -1<<53 {
			m.PutInt(info.name, n)
		} else {
			putNumber(m, info.name, v.v)
		}
	}
	if gpus := b.gpus[it.gpusFrom:it.gpusTo]; len(gpus) > 0 {
		sum := 0.0
		for _, g := range gpus {
			sum += g
		}
		putNumber(m, spans.AttrGPUUtilization, sum/float64(len(gpus)))
		putNumber(m, spans.AttrGPUUtilizationMin, slices.Min(gpus))
	}
	for i := it.extrasFrom; i < it.extrasTo; i++ {
		e := &b.extras[i]
		if e.isText {
			m.PutStr(spans.AttrTrainFieldPrefix+e.name, e.text)
		} else {
			putNumber(m, spans.AttrTrainFieldPrefix+e.name, e.value)
		}
	}
	if it.kind == record.Ranks {
		m.PutStr(spans.AttrSummary, b.about(it))
	}
	if it.slow != nil {
		it.slow.put(m)
	}
	if it.ownUnits {
		m.PutStr(spans.AttrSourceUnit, it.units)
	}
	if it.dropped > 0 {
		s.SetDroppedAttributesCount(it.dropped)
	}
	return s
}

func putRank(m pcommon.Map, rank int64, local bool) {
	switch {
	case rank == noRank:
	case local:
		m.PutInt(spans.AttrLocalRank, rank)
	default:
		m.PutInt(spans.AttrRank, rank)
	}
}

// putNumber writes numbers that JSON lacks as text: otherwise Jaeger's API fails for the whole trace.
func putNumber(m pcommon.Map, name string, v float64) {
	switch {
	case math.IsNaN(v):
		m.PutStr(name, "NaN")
	case math.IsInf(v, 1):
		m.PutStr(name, "+Inf")
	case math.IsInf(v, -1):
		m.PutStr(name, "-Inf")
	default:
		m.PutDouble(name, v)
	}
}

// gauges groups points by metric.
type gauges struct {
	b      *stepBatch
	scope  pmetric.MetricSlice
	fields [record.NumFields]pmetric.NumberDataPointSlice
	have   [record.NumFields]bool
	others map[string]pmetric.NumberDataPointSlice
	latest map[labels]*latest // nil: all points are made
	// The labels of the item before; mostly also the next item's.
	lastOf labels
	last   *latest
}

// labels distinguish the series of one metric, except for labels of some metrics only.
type labels struct {
	source, host string
	rank         int64
	local        bool
}

// latest is the series of some labels that have their last point.
type latest struct {
	fields [record.NumFields]bool
	gpus   int
	extras map[[2]string]bool // by metric and statistic
	sample map[series]bool
}

// labels are the labels of an item.
func (b *stepBatch) labels(it *item) labels {
	of := &b.shared[it.shared]
	return labels{of.source, of.host, it.rank, it.local}
}

// of returns the points made for the labels. nil: all points are made.
func (g *gauges) of(l labels) *latest {
	if g.latest == nil {
		return nil
	}
	if g.last != nil && l == g.lastOf {
		return g.last
	}
	seen := g.latest[l]
	if seen == nil {
		seen = &latest{extras: make(map[[2]string]bool), sample: make(map[series]bool)}
		g.latest[l] = seen
	}
	g.lastOf, g.last = l, seen
	return seen
}

// passed says whether a later point of the series has been made already. Points are made from the last to the first then.
func (l *latest) passed(field record.Field) bool {
	if l == nil {
		return false
	}
	was := l.fields[field]
	l.fields[field] = true
	return was
}

func (l *latest) passedExtra(e *extra) bool {
	if l == nil {
		return false
	}
	key := [2]string{e.metric, e.statistic}
	was := l.extras[key]
	if !was {
		l.extras[key] = true
	}
	return was
}

// firstGPU is the number of the first device without a later point.
func (l *latest) firstGPU(n int) (first int) {
	if l == nil {
		return 0
	}
	first, l.gpus = l.gpus, max(l.gpus, n)
	return min(first, n)
}

// Metrics builds the gauges of the log's values.
func (b *stepBatch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	g := gauges{b: b}
	if b.set.Points.LatestPoints {
		g.latest = make(map[labels]*latest)
	}
	for i := range b.items {
		if g.latest != nil {
			i = len(b.items) - 1 - i
		}
		it := &b.items[i]
		l := b.labels(it)
		seen := g.of(l)
		for _, v := range b.values[it.valuesFrom:it.valuesTo] {
			if info := &fieldInfos[v.field]; info.gauge != nil && it.kind != record.Summary && (v.field != record.Iteration || it.kind == record.Step) &&
				!seen.passed(v.field) {
				if !g.have[v.field] {
					g.have[v.field] = true
					g.fields[v.field] = g.metric(md, info.gauge)
					if g.latest == nil {
						g.fields[v.field].EnsureCapacity(len(b.items) - i)
					}
				}
				g.point(g.fields[v.field], l, it.end).SetDoubleValue(v.v)
			}
		}
		gpus := b.gpus[it.gpusFrom:it.gpusTo]
		for j := seen.firstGPU(len(gpus)); j < len(gpus); j++ {
			dp := g.point(g.other(md, &gpuUtilization), l, it.end)
			dp.SetDoubleValue(gpus[j])
			putDevice(dp.Attributes(), &gpuMetrics[record.GPUUtilization], j, it.oneGPU)
		}
		for j := it.extrasFrom; j < it.extrasTo; j++ {
			e := &b.extras[j]
			if e.metric == "" || e.isText || seen.passedExtra(e) {
				continue
			}
			dp := g.point(g.other(md, &spans.Metric{Name: e.metric, Unit: e.unit, Description: "As the log states it."}), l, it.end)
			dp.SetDoubleValue(e.value)
			if e.statistic != "" {
				dp.Attributes().PutStr(spans.AttrStatistic, e.statistic)
			}
		}
	}
	b.samplePoints(&g, md)
	return md
}

// gpuUtilization is the metric of the semantic conventions, with nvml's description.
var gpuUtilization = spans.Metric{Name: spans.AttrGPUUtilization, Unit: spans.UnitOne, Description: "Share of the time in which the device was busy."}

func (g *gauges) other(md pmetric.Metrics, d *spans.Metric) pmetric.NumberDataPointSlice {
	s, ok := g.others[d.Name]
	if !ok {
		s = g.metric(md, d)
		if g.others == nil {
			g.others = make(map[string]pmetric.NumberDataPointSlice)
		}
		g.others[d.Name] = s
	}
	return s
}

func (g *gauges) metric(md pmetric.Metrics, d *spans.Metric) pmetric.NumberDataPointSlice {
	if md.ResourceMetrics().Len() == 0 {
		rm := md.ResourceMetrics().AppendEmpty()
		spans.Resource{Service: g.b.set.Run.ServiceName, RunID: g.b.run}.PutInstance(rm.Resource().Attributes())
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(g.b.set.Receiver.Scope())
		sm.Scope().SetVersion(g.b.set.Receiver.Set.BuildInfo.Version)
		g.scope = sm.Metrics()
	}
	m := g.scope.AppendEmpty()
	d.Declare(m)
	return spans.Points(m)
}

// point is a point without a value.
func (g *gauges) point(points pmetric.NumberDataPointSlice, l labels, at int64) pmetric.NumberDataPoint {
	dp := points.AppendEmpty()
	dp.SetTimestamp(spans.Timestamp(at))
	m := dp.Attributes()
	n := 1
	for _, has := range [...]bool{l.rank != noRank, l.host != ""} {
		if has {
			n++
		}
	}
	m.EnsureCapacity(n)
	m.PutStr(spans.AttrSource, l.source)
	if l.host != "" {
		m.PutStr(spans.AttrHostName, l.host)
	}
	putRank(m, l.rank, l.local)
	return dp
}

// index is the decimal text of a device's index, without allocating for the usual ones.
func index(i int) string {
	const digits = "0123456789101112131415"
	switch {
	case i < 10:
		return digits[i : i+1]
	case i < 16:
		return digits[2*i-10 : 2*i-8]
	}
	return strconv.Itoa(i)
}
