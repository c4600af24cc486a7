package replay

import (
	"math"
	"slices"
	"strings"

	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// label is a label of a series.
type label struct{ name, value string }

// metricName is the label of the metric's name.
const metricName = "__name__"

// sample is a value at a time, Unix ms.
type sample struct {
	at    int64
	value float64
}

// series are the samples of some labels, in order of arrival.
type series struct {
	labels  []label // sorted by name
	adds    bool    // a counter: values of one time add up. Else the later value counts
	samples []sample
	of      *histogram // of the count of a histogram: the buckets; else nil
}

// table holds series by their labels, equal to the labels of the shipped configuration's prometheus exporter: a graph of history is the graph of a live job.
type table struct {
	all     []*series          // in order of arrival
	by      map[string]*series // by names and values of their labels (put)
	samples int                // in all series

	metricNamer otlptranslator.MetricNamer
	labelNamer  otlptranslator.LabelNamer
	metricNames map[otlptranslator.Metric]string // names made so far
	labelNames  map[string]string                // likewise

	job, instance label   // of the current resource; without a value: none
	labels        []label // of the current point, sorted by name; the metric's name is filled in by put
	key           []byte  // of the current series in by
}

// newTable is an empty table.
func newTable() *table {
	return &table{
		by: map[string]*series{}, metricNamer: otlptranslator.MetricNamer{WithMetricSuffixes: true},
		labelNamer:  otlptranslator.LabelNamer{PreserveMultipleUnderscores: true},
		metricNames: map[otlptranslator.Metric]string{}, labelNames: map[string]string{},
	}
}

// add puts all points into their series. at is the time of a point's sample. Metrics of a type that no component of ours makes are skipped.
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
				case pmetric.MetricTypeExponentialHistogram:
					name := t.name(m, otlptranslator.MetricTypeExponentialHistogram)
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						t.histogram(name, p, at(p.Timestamp()))
					}
				default:
				}
			}
		}
	}
}

// name is the metric's name in Prometheus, with the unit and _total: "ml.train.loss" is "ml_train_loss".
func (t *table) name(m pmetric.Metric, kind otlptranslator.MetricType) string {
	of := otlptranslator.Metric{Name: m.Name(), Unit: m.Unit(), Type: kind}
	name, ok := t.metricNames[of]
	if !ok {
		name, _ = t.metricNamer.Build(of) // only an empty name is an error
		t.metricNames[of] = name
	}
	return name
}

// labelName is the name of an attribute in Prometheus.
func (t *table) labelName(name string) string {
	out, ok := t.labelNames[name]
	if !ok {
		out, _ = t.labelNamer.Build(name) // as above
		t.labelNames[name] = out
	}
	return out
}

// numbers adds the points of a gauge (adds is false) or a counter (true).
func (t *table) numbers(name string, adds bool, points pmetric.NumberDataPointSlice, at func(pcommon.Timestamp) int64) {
	for _, p := range points.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		t.begin(p.Attributes())
		t.put(name, adds, sample{at(p.Timestamp()), spans.PointNumber(p)})
	}
}

// begin sets the labels of the current point: its attributes, job and instance, and room for the metric's name.
func (t *table) begin(attrs pcommon.Map) {
	t.labels = append(t.labels[:0], label{metricName, ""}, t.job, t.instance)
	for name, v := range attrs.All() {
		t.labels = append(t.labels, label{t.labelName(name), v.AsString()})
	}
	slices.SortStableFunc(t.labels, func(a, b label) int { return strings.Compare(a.name, b.name) })
}

// put adds a sample to the series of a metric with the labels of the current point (begin). A label without a value is left out, as Prometheus does.
func (t *table) put(name string, adds bool, s sample) *series {
	t.key = t.key[:0]
	for i := range t.labels {
		l := &t.labels[i]
		if l.name == metricName {
			l.value = name
		}
		t.key = append(append(append(append(t.key, l.name...), 0xff), l.value...), 0xff)
	}
	x := t.by[string(t.key)]
	if x == nil {
		x = &series{adds: adds}
		for _, l := range t.labels {
			if l.value != "" {
				x.labels = append(x.labels, label{strings.Clone(l.name), strings.Clone(l.value)})
			}
		}
		t.by[string(t.key)] = x
		t.all = append(t.all, x)
	}
	x.samples = append(x.samples, s)
	t.samples++
	return x
}

// take returns all series and empties the table.
func (t *table) take() []*series {
	all := t.all
	t.all, t.samples = nil, 0
	clear(t.by)
	return all
}

// sort orders the samples by time, with a single sample for each time: of a counter the sum (train_metrics counted the interval in several goes), else the one
// that came last.
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

// staleNaN is Prometheus' mark for the end of a series.
var staleNaN = math.Float64frombits(0x7ff0000000000002)
