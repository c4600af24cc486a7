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

// stepBatch is the records that are sent together, packed: a record has few of the possible fields, so the values of all records are in common lists, one
// record after the other, and each item has its range of each list.
type stepBatch struct {
	pool   *filereceiver.Pool[stepBatch]
	set    *Settings
	run    string // id of the run
	steps  int    // items that are steps
	items  []item
	shared []shared
	values []value
	stages []stage
	ranks  []rankTime
	extras []extra
	gpus   []float64 // utilization of each GPU, 0..1
	texts  bool      // some record has a model, whose attributes may be texts of the log
	hosts  bool      // some record has a host

	samples []sample // values of GPUs that belong to no span

	laid []part     // memory of parts, reused for each item
	sums []rankTime // memory of compare
}

// key names a span.
type key struct {
	Trace pcommon.TraceID `json:"trace"`
	ID    pcommon.SpanID  `json:"id"`
}

// item is one record with its time and trace. Times are ns since the epoch.
type item struct {
	kind         record.Kind
	hasIteration bool
	point        bool // the duration is unknown: the span is a point in time
	local        bool // rank is the rank on the node, not among all
	ownUnits     bool // units differ from those of the log's other records
	oneGPU       bool // gpus has a single value, of a GPU of unknown number
	trace        pcommon.TraceID
	id, parent   pcommon.SpanID
	start, end   int64
	iteration    int64  // if hasIteration
	ordinal      int64  // number of a record without an iteration, from 1; else 0
	covered      int64  // number of steps that the record is about; 0: unknown
	rank         int64  // noRank: unknown
	shared       uint32 // index in stepBatch.shared
	dropped      uint32 // number of fields left out (record.Dropped)
	place        tail.Place
	units        string // AttrSourceUnit, if ownUnits

	slow  *rankSlow // found by compare; nil: unknown
	parts int       // number of parts drawn with their ranks so far

	// Ranges of the record in the lists of stepBatch.
	valuesFrom, valuesTo, stagesFrom, stagesTo, extrasFrom, extrasTo, gpusFrom, gpusTo uint32
}

// placed is an item before packing, with the properties shared with its neighbours.
type placed struct {
	item
	about
}

// about is what a record has in common with most of its neighbours: the format, where its times come from, and the process that logged it.
type about struct {
	source         string           // the format (record.Source)
	time           spans.TimeSource // where end comes from
	kindOfDuration string           // spans.DurationStep and the like; "": the duration is unknown, or follows from a stated start
	host           string
	pid            int64
	attempt        int64 // 0: the first
	byID           bool  // a trace id in the log decided the trace
	model          *spans.Model
}

// shared is what several records of a batch have in common: the attributes of their resource.
type shared struct {
	about
	units  string // AttrSourceUnit
	stated spans.Stated
}

// exact reports whether the span's length equals the stated seconds of a step, times the steps covered, to the nanosecond per step: then an attribute for the
// duration is not needed.
func (it *item) exact(seconds float64) bool {
	steps := max(it.covered, 1)
	length := it.end - it.start
	// A span of 1 ns may be one without a length: spans.Batch makes none shorter. A start before 1970 is moved to 1970 (spans.Timestamp).
	return !it.point && it.start >= 0 && length > 1 && math.Abs(float64(length)-seconds*1e9*float64(steps)) <= float64(steps)
}

func (it *item) key() key { return key{it.trace, it.id} }

// value is a field of a record, in its base unit.
type value struct {
	field record.Field
	v     float64
}

// isOnResource reports whether a resource has the value already, so that the span need not repeat it.
func (v value) isOnResource(on *spans.Resource) bool {
	number := fieldInfos[v.field].stated
	return number > 0 && on.Stated.Is(number-1, v.v)
}

// stage is a part of a record's step, as record.Stage.
type stage struct {
	name         string
	seconds, min float64
	hasMin       bool
	place        *record.Place // nil: unknown

	// Range in stepBatch.ranks, where the log has the time of each rank; then seconds is the slowest rank's, and min the fastest rank's.
	ranksFrom, ranksTo uint32
}

// extra is a value without a Field, as record.Extra.
type extra struct {
	name, text              string
	isText                  bool
	value                   float64
	metric, unit, statistic string
}

// maxFree bounds the batches kept, some 200 KB each.
const maxFree = 16

// newBatch returns an empty batch, with the memory of an earlier one.
func (h *handler) newBatch() *stepBatch {
	b := h.pool.Get()
	b.pool, b.set, b.run = h.pool, h.set, h.run
	return b
}

// Done implements filereceiver.Batch: the batch's memory is used again, unless the batch was large.
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

// Texts implements filereceiver.Texter: a record of known numbers has no text of the log but its host.
func (b *stepBatch) Texts() (onSpans, onPoints bool) {
	return b.texts || b.hosts || len(b.stages)+len(b.extras) > 0, b.hosts
}

// add packs a placed record into the batch: its values, stages, extras and GPU values are appended to the batch's lists, and an item with their ranges is
// added.
func (b *stepBatch) add(h *handler, it *placed, rec *record.Record) {
	if it.kind == record.Step {
		b.steps++
	}
	b.texts, b.hosts = b.texts || it.model != nil, b.hosts || it.host != ""
	it.valuesFrom, it.stagesFrom, it.extrasFrom, it.gpusFrom = b.ends()
	for f, v := range rec.All() {
		if f == record.Duration && (it.kind != record.Step || it.exact(v)) { // the span's length says as much, and the duration of other kinds is no step's
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

// ends returns the lengths of the lists: where the ranges of the next record begin, or of the last one end.
func (b *stepBatch) ends() (values, stages, extras, gpus uint32) {
	return uint32(len(b.values)), uint32(len(b.stages)), uint32(len(b.extras)), uint32(len(b.gpus))
}

// addFacts sets the shared part of a record: the values that the log repeats in each record, such as the global batch size, go to the resource. The resource of
// a step has only numbers that the step itself states. Other records have the resource of the step before. A shared part equal to one of the batch's last
// maxMixed is not added again.
func (b *stepBatch) addFacts(h *handler, it *placed, rec *record.Record) {
	t := h.track(who{it.source, it.rank})
	t.Units.add(rec)
	it.units, it.ownUnits = t.Units.own, t.Units.other
	if it.kind == record.Step {
		t.Stated = spans.Stated{}
		for _, v := range b.values[it.valuesFrom:] { // Steady: a value on the resource changes only once a new one has come several times in a row
			if number := fieldInfos[v.field].stated - 1; number >= 0 && spans.Finite(v.v) {
				t.Stated.Set(number, t.Steady[number].Next(v.v))
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
	// Mostly the last one.
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

// unitTexts makes the text of AttrSourceUnit ("ml.train.step.duration=ms …"): the units in which a writer's log states the fields. One text serves all records,
// so that their resource stays the same.
type unitTexts struct {
	layout record.Layout                 // of the record before: mostly also the next record's
	Units  [record.NumFields]record.Unit `json:"units"` // the first unit of each field other than Base; Base: none so far
	text   string                        // of Units
	other  bool                          // a field of the last record has another unit than before
	own    string                        // the text of the last record alone, if other
}

// add records the units of a record: a field's first unit other than the base unit goes into the common text. A record that contradicts earlier units gets a
// text of its own (other, own).
func (u *unitTexts) add(rec *record.Record) {
	layout := rec.Layout()
	if layout == u.layout {
		return
	}
	u.layout, u.own, u.other = layout, "", false
	added := false
	for f := range rec.All() {
		switch unit := rec.UnitOf(f); {
		case unit == u.Units[f]:
		case u.Units[f] == record.Base:
			u.Units[f], added = unit, true
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
	if added {
		u.text = textOf(&u.Units)
	}
}

// textOf returns the text of units: the attribute of each field with a unit other than the base unit, "name=ms name=TFLOP/s".
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

// Traces implements filereceiver.Batch: each record becomes a span, with its parts below. A Side becomes only parts, below the step before.
func (b *stepBatch) Traces(out *spans.Batch, from filereceiver.From) {
	runTrace, runSpan := spans.RunIDs(b.run)
	for i := range b.items {
		it := &b.items[i]
		from(it.place)
		b.compare(it)
		// A report on ranks has no duration of its own: its span is as long as its parts, end to end.
		if it.kind == record.Ranks && it.start == it.end {
			it.point = false
			for _, st := range b.stages[it.stagesFrom:it.stagesTo] {
				it.start -= max(nanos(st.seconds), tick)
			}
		}
		if it.kind != record.Side {
			s := b.span(out, it)
			if it.kind != record.Summary { // a summary stands in the run's own trace
				out.Link(s, runTrace, runSpan)
			}
		}
		b.parts(out, it)
	}
}

// first returns the earliest record of a batch; the batch has one.
func (b *stepBatch) first() *item {
	first := &b.items[0]
	for i := range b.items {
		if it := &b.items[i]; it.start < first.start {
			first = it
		}
	}
	return first
}

// resource returns the resource of a record's span.
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

// partResource returns the resource of the parts of a record: the log has their durations, not their times.
func (b *stepBatch) partResource(it *item) spans.Resource {
	r := b.resource(it)
	r.Time = spans.TimeSynthetic
	return r
}

// attributeCount returns how many attributes a span will have, those of train_perf included, without the few about its ranks: growing the list later would cost
// a copy. ownCovered: the number of steps covered is an attribute of the span.
func (b *stepBatch) attributeCount(it *item, res *spans.Resource, ownCovered bool) int {
	n := int(it.extrasTo - it.extrasFrom)
	for _, v := range b.values[it.valuesFrom:it.valuesTo] {
		if !v.isOnResource(res) {
			n++
		}
	}
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
	return n
}

// addedWithoutModel is the number of attributes that train_perf adds to most steps of an unknown model: samples, tokens and a rate.
const addedWithoutModel = 3

// span adds the span of a record, and returns it. The record's values become attributes, except those on the resource.
func (b *stepBatch) span(out *spans.Batch, it *item) ptrace.Span {
	res := b.resource(it)
	ownCovered := it.covered > 1 && !res.Stated.Is(spans.StatedStepsCovered, float64(it.covered)) // not on the resource
	n := b.attributeCount(it, &res, ownCovered)
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
		if !v.isOnResource(&res) {
			v.put(m)
		}
	}
	if gpus := b.gpus[it.gpusFrom:it.gpusTo]; len(gpus) > 0 { // the mean, and the idlest
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
		m.PutStr(spans.AttrSummary, b.rankSummary(it))
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

// put writes the value as an attribute: as an integer, if the field is an integer and a float64 holds the value exactly.
func (v value) put(m pcommon.Map) {
	info := &fieldInfos[v.field]
	if n := int64(v.v); info.integer && float64(n) == v.v && n < 1<<53 && n > -1<<53 {
		m.PutInt(info.name, n)
	} else {
		putNumber(m, info.name, v.v)
	}
}

// putRank writes a rank, or the local rank; nothing for noRank.
func putRank(m pcommon.Map, rank int64, local bool) {
	switch {
	case rank == noRank:
	case local:
		m.PutInt(spans.AttrLocalRank, rank)
	default:
		m.PutInt(spans.AttrRank, rank)
	}
}

// putNumber writes a number as an attribute. Numbers that JSON lacks, such as NaN, become texts: otherwise Jaeger's API fails for the whole trace.
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

// gauges builds the metrics of a batch, with the points of each metric together.
type gauges struct {
	b      *stepBatch
	scope  pmetric.MetricSlice                            // all metrics
	fields [record.NumFields]pmetric.NumberDataPointSlice // the points of each field's gauge
	have   [record.NumFields]bool                         // which of fields exist
	others map[string]pmetric.NumberDataPointSlice        // the points of other gauges, by name
	latest map[labels]*latest                             // with PointsConfig.LatestPoints; nil: all points are made
	// The labels of the item before, and their latest; mostly also the next item's.
	lastOf labels
	last   *latest
}

// labels distinguish the series of one metric, except for labels of some metrics only.
type labels struct {
	source, host string
	rank         int64
	local        bool
}

// latest says which series of some labels have their last point already. Points are then made from the last record to the first, so a later point of the same
// series is an older one, and left out.
type latest struct {
	fields [record.NumFields]bool
	gpus   int                // the GPUs below this number have a point
	extras map[[2]string]bool // by metric and statistic
	sample map[series]bool
}

// labels returns the labels of an item.
func (b *stepBatch) labels(it *item) labels {
	of := &b.shared[it.shared]
	return labels{of.source, of.host, it.rank, it.local}
}

// latestOf returns which series with these labels have their last point already. nil: all points are made, and nothing need be known.
func (g *gauges) latestOf(l labels) *latest {
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

// seenField reports whether the field's series has its last point already, and records that it has one now. On nil it returns false.
func (l *latest) seenField(field record.Field) bool {
	if l == nil {
		return false
	}
	was := l.fields[field]
	l.fields[field] = true
	return was
}

// seenExtra is seenField for the gauge of an extra.
func (l *latest) seenExtra(e *extra) bool {
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

// firstGPU is seenField for the utilization of a record's n GPUs: it returns the number of the first GPU whose series has no point yet, or n.
func (l *latest) firstGPU(n int) (first int) {
	if l == nil {
		return 0
	}
	first, l.gpus = l.gpus, max(l.gpus, n)
	return min(first, n)
}

// Metrics implements filereceiver.Batch: the gauges of the values that the log states, a point for each record (with LatestPoints only the last point of each
// series), and of the samples of GPUs.
func (b *stepBatch) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	g := gauges{b: b}
	if b.set.Points.LatestPoints {
		g.latest = make(map[labels]*latest)
	}
	for i := range b.items {
		if g.latest != nil {
			i = len(b.items) - 1 - i // from the last on
		}
		it := &b.items[i]
		l := b.labels(it)
		seen := g.latestOf(l)
		for _, v := range b.values[it.valuesFrom:it.valuesTo] {
			info := &fieldInfos[v.field]
			// A summary is about the whole run, and the iteration of other records is that of a step before.
			hasPoint := info.gauge != nil && it.kind != record.Summary && (v.field != record.Iteration || it.kind == record.Step)
			if !hasPoint || seen.seenField(v.field) {
				continue
			}
			if !g.have[v.field] {
				g.have[v.field] = true
				g.fields[v.field] = g.metric(md, info.gauge)
				if g.latest == nil {
					g.fields[v.field].EnsureCapacity(len(b.items) - i)
				}
			}
			g.point(g.fields[v.field], l, it.end).SetDoubleValue(v.v)
		}
		gpus := b.gpus[it.gpusFrom:it.gpusTo]
		for j := seen.firstGPU(len(gpus)); j < len(gpus); j++ {
			dp := g.point(g.other(md, &gpuUtilization), l, it.end)
			dp.SetDoubleValue(gpus[j])
			putDevice(dp.Attributes(), &gpuMetrics[record.GPUUtilization], j, it.oneGPU)
		}
		for j := it.extrasFrom; j < it.extrasTo; j++ {
			e := &b.extras[j]
			if e.metric == "" || e.isText || seen.seenExtra(e) {
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

// other returns the points of the gauge d, which belongs to no field; the gauge is declared at the first call.
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

// metric declares a metric, and returns its points. The first metric also makes the resource and the scope.
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

// point adds a point with labels and time (Unix ns), for the caller to set the value.
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

// index returns the decimal text of a device's index, without an allocation below 16.
func index(i int) string {
	const digits = "0123456789101112131415" // all indexes below 16 in a row, of one digit, then of two
	switch {
	case i < 10:
		return digits[i : i+1]
	case i < 16:
		return digits[10+2*(i-10) : 10+2*(i-10)+2]
	}
	return strconv.Itoa(i)
}
