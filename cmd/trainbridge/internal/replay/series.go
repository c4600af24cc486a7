package replay

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// label is a label of a series; the metric's name is the label __name__.
type label struct{ name, value string }

// sample is a value at a time, Unix ms.
type sample struct {
	at    int64
	value float64
}

// series are the samples of some labels, in the order in which they came.
type series struct {
	labels  []label // sorted by name
	adds    bool    // a counter: its values add up. Else the later value of a time counts
	samples []sample
}

// table holds series by their labels, which are those that the prometheus exporter of the shipped configuration makes: a graph of history is the graph of a
// live job.
type table struct {
	all     []*series // in order of arrival
	by      map[string]*series
	samples int  // in all series
	sparse  bool // a counter's samples are what came in a step: most are 0

	metricNamer otlptranslator.MetricNamer
	labelNamer  otlptranslator.LabelNamer
	metricNames map[otlptranslator.Metric]string
	labelNames  map[string]string

	job, instance label // of the resource at hand; without a value: it has none
	labels        []label
	key           []byte
}

func newTable() *table {
	return &table{
		by: map[string]*series{}, metricNamer: otlptranslator.MetricNamer{WithMetricSuffixes: true},
		labelNamer:  otlptranslator.LabelNamer{PreserveMultipleUnderscores: true},
		metricNames: map[otlptranslator.Metric]string{}, labelNames: map[string]string{},
	}
}

// add puts all points into their series. at is the time of a point's sample. Metrics of a kind that none of our components makes are passed over.
func (t *table) add(md pmetric.Metrics, at func(pcommon.Timestamp) int64) {
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		t.job = label{"job", spans.AttrText(attrs, spans.AttrServiceName)}
		t.instance = label{"instance", spans.AttrText(attrs, spans.AttrServiceInstanceID)}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					t.numbers(t.name(m, otlptranslator.MetricTypeGauge), false, m.Gauge().DataPoints(), at)
				case pmetric.MetricTypeSum:
					kind := otlptranslator.MetricType(otlptranslator.MetricTypeNonMonotonicCounter)
					if m.Sum().IsMonotonic() {
						kind = otlptranslator.MetricTypeMonotonicCounter
					}
					t.numbers(t.name(m, kind), true, m.Sum().DataPoints(), at)
				case pmetric.MetricTypeHistogram:
					name := t.name(m, otlptranslator.MetricTypeHistogram)
					for _, p := range m.Histogram().DataPoints().All() {
						t.histogram(name, p, at(p.Timestamp()))
					}
				default:
				}
			}
		}
	}
}

// name is the metric's name in Prometheus.
func (t *table) name(m pmetric.Metric, kind otlptranslator.MetricType) string {
	of := otlptranslator.Metric{Name: m.Name(), Unit: m.Unit(), Type: kind}
	name, ok := t.metricNames[of]
	if !ok {
		name, _ = t.metricNamer.Build(of) // only an empty name is an error
		t.metricNames[of] = name
	}
	return name
}

func (t *table) labelName(name string) string {
	out, ok := t.labelNames[name]
	if !ok {
		out, _ = t.labelNamer.Build(name) // as above
		t.labelNames[name] = out
	}
	return out
}

func (t *table) numbers(name string, adds bool, points pmetric.NumberDataPointSlice, at func(pcommon.Timestamp) int64) {
	for _, p := range points.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		t.begin(p.Attributes())
		t.put(name, adds, "", sample{at(p.Timestamp()), spans.PointNumber(p)})
	}
}

// histogram makes the series that Prometheus has of one. A bucket's series counts what is in the buckets below it too.
func (t *table) histogram(name string, p pmetric.HistogramDataPoint, at int64) {
	t.begin(p.Attributes())
	t.put(name+"_count", true, "", sample{at, float64(p.Count())})
	t.put(name+"_sum", true, "", sample{at, p.Sum()})
	below := uint64(0)
	for i, n := range p.BucketCounts().All() {
		below += n
		le := "+Inf"
		if i < p.ExplicitBounds().Len() {
			le = bound(p.ExplicitBounds().At(i))
		}
		t.put(name+"_bucket", true, le, sample{at, float64(below)})
	}
}

// bound writes the bound of a bucket as OpenMetrics does, in which Prometheus reads those of a live collector.
func bound(x float64) string {
	text := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return text
}

// begin takes the labels of a point.
func (t *table) begin(attrs pcommon.Map) {
	t.labels = append(t.labels[:0], label{"__name__", ""}, label{"le", ""}, t.job, t.instance)
	for name, v := range attrs.All() {
		t.labels = append(t.labels, label{t.labelName(name), v.AsString()})
	}
	slices.SortStableFunc(t.labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
}

// put adds a sample to a series of the point at hand. A label without a value is none.
func (t *table) put(name string, adds bool, le string, s sample) {
	t.key = t.key[:0]
	for i := range t.labels {
		l := &t.labels[i]
		switch l.name {
		case "__name__":
			l.value = name
		case "le":
			l.value = le
		}
		t.key = append(append(append(append(t.key, l.name...), 0xff), l.value...), 0xff)
	}
	of := t.by[string(t.key)]
	if of == nil {
		of = &series{adds: adds}
		for _, l := range t.labels {
			if l.value != "" {
				of.labels = append(of.labels, label{strings.Clone(l.name), strings.Clone(l.value)})
			}
		}
		t.by[string(t.key)] = of
		t.all = append(t.all, of)
	}
	if t.sparse && adds && s.value == 0 && of.noted(s.at) {
		return
	}
	of.samples = append(of.samples, s)
	t.samples++
}

// noted says whether a counter need not keep that nothing came: only that it is still there, every half an hour of between and at the last.
func (s *series) noted(at int64) bool {
	const half = int64(between / time.Millisecond / 2)
	n := len(s.samples)
	if n == 0 {
		return false
	}
	last := &s.samples[n-1]
	if at <= last.at {
		return last.at-at < half
	}
	if n > 1 && last.value == 0 && at-s.samples[n-2].at <= half {
		last.at = at
		return true
	}
	return false
}

// take empties the table.
func (t *table) take() []*series {
	all := t.all
	t.all, t.samples = nil, 0
	clear(t.by)
	return all
}

// sort puts the samples in order of time, one for each. What was counted at one time in several goes is added up.
func (s *series) sort() {
	slices.SortStableFunc(s.samples, func(a, b sample) int { return int(min(max(a.at-b.at, -1), 1)) })
	n := 0
	for _, x := range s.samples {
		switch {
		case n == 0 || s.samples[n-1].at != x.at:
			s.samples[n] = x
			n++
		case s.adds:
			s.samples[n-1].value += x.value
		default:
			s.samples[n-1] = x
		}
	}
	s.samples = s.samples[:n]
}

// staleNaN is the value by which Prometheus knows that a series has ended.
var staleNaN = math.Float64frombits(0x7ff0000000000002)
