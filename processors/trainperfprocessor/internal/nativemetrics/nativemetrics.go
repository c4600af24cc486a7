// Package nativemetrics gives the native metrics of Megatron-LM and NCCL our names and base units. It judges nothing.
package nativemetrics

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// native is a metric that Megatron-LM sends (--otel-enabled, megatron/core/telemetry/training_metrics.py @68f64227), and its conversion: name, unit, and value
// × mul / div, exact for powers of ten.
type native struct {
	name       string
	sourceUnit string
	mul, div   float64
}

const nativePrefix = "megatron.training."

// NCCL Inspector's metrics (plugins/profiler/inspector/inspector_otel.cc @88980683) have the unit in their names, and NVIDIA's dashboards query these names:
// the prometheus exporter would append the unit once more.
const (
	inspectorPrefix = "nccl_"
	inspectorUnit   = "GB/s"
)

var natives = map[string]native{
	"megatron.training.step_duration_ms":  {spans.MetricStepDuration, "ms", 1, 1000},
	"megatron.training.loss":              {spans.AttrLoss, "", 1, 1},
	"megatron.training.throughput_tflops": {spans.AttrDeviceFlopThroughputReported, "TFLOP/s/GPU", 1e12, 1},
	"megatron.training.grad_norm":         {spans.AttrGradientNorm, "", 1, 1},
	"megatron.training.skipped_iters":     {spans.AttrSkippedIterations, "", 1, 1},
	"megatron.training.learning_rate":     {spans.AttrLearningRate, "", 1, 1},
	"megatron.training.tokens_per_sec":    {spans.AttrTokenThroughput, "tokens/s", 1, 1},
	// "Peak GPU memory allocated in GB", where PyTorch's habit is 2³⁰.
	"megatron.training.memory_allocated_gb": {spans.AttrMemoryPeak, "GB", 1 << 30, 1},
}

// Outcome is the outcome of a metric.
type Outcome uint8

// A metric of Megatron's is left unchanged where its name is unknown, or its values cannot be converted exactly.
const (
	Other Outcome = iota // none of Megatron's
	Renamed
	Left
)

// Rename converts a metric of Megatron's, and removes the unit of a metric of NCCL Inspector's that has the unit in its name. Other metrics stay unchanged.
func Rename(m pmetric.Metric) Outcome {
	switch name := m.Name(); {
	case strings.HasPrefix(name, inspectorPrefix):
		if m.Unit() == inspectorUnit {
			m.SetUnit("")
		}
		return Other
	case !strings.HasPrefix(name, nativePrefix):
		return Other
	}
	if n, ok := natives[m.Name()]; ok && n.rename(m) {
		return Renamed
	}
	return Left
}

// rename converts one metric. It returns false for metrics left unchanged: empty metrics, summaries, which no SDK sends, and exponential histograms of another
// unit, whose buckets cannot be scaled exactly.
func (n *native) rename(m pmetric.Metric) bool {
	scaled := n.mul != n.div
	name := n.name
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		n.numbers(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		n.numbers(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		for _, dp := range m.Histogram().DataPoints().All() {
			n.histogram(dp)
		}
	case pmetric.MetricTypeExponentialHistogram:
		if scaled {
			return false
		}
	default:
		return false
	}
	if name == spans.MetricStepDuration && m.Type() != pmetric.MetricTypeHistogram {
		// The usual name is a histogram's: a name with two types fails a Prometheus scrape.
		name = spans.MetricStepDurationReported
	}
	source := m.Name()
	// The registry's description, as from every other writer: the prometheus exporter logs every difference at every scrape.
	d := spans.MetricNamed(name)
	m.SetName(name)
	m.SetUnit(d.Unit)
	m.SetDescription(d.Description)
	// Metadata, not labels: no series changes.
	meta := m.Metadata()
	meta.PutStr(spans.AttrSource, source)
	if n.sourceUnit != "" {
		meta.PutStr(spans.AttrSourceUnit, n.sourceUnit)
	}
	return true
}

// scale converts a value to the base unit.
func (n *native) scale(x float64) float64 { return x * n.mul / n.div }

// numbers scales the points of a gauge or a sum with their exemplars. Scaled numbers are doubles: a whole number of ms is no whole number of s.
func (n *native) numbers(dps pmetric.NumberDataPointSlice) {
	if n.mul == n.div {
		return
	}
	for _, dp := range dps.All() {
		switch dp.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			dp.SetDoubleValue(n.scale(float64(dp.IntValue())))
		case pmetric.NumberDataPointValueTypeDouble:
			dp.SetDoubleValue(n.scale(dp.DoubleValue()))
		}
		n.exemplars(dp.Exemplars())
	}
}

// histogram scales a point of a histogram: bounds, sum, extremes and exemplars. Counts stay.
func (n *native) histogram(dp pmetric.HistogramDataPoint) {
	if n.mul == n.div {
		return
	}
	bounds := dp.ExplicitBounds()
	for i := range bounds.Len() {
		bounds.SetAt(i, n.scale(bounds.At(i)))
	}
	if dp.HasSum() {
		dp.SetSum(n.scale(dp.Sum()))
	}
	if dp.HasMin() {
		dp.SetMin(n.scale(dp.Min()))
	}
	if dp.HasMax() {
		dp.SetMax(n.scale(dp.Max()))
	}
	n.exemplars(dp.Exemplars())
}

// exemplars scales the exemplars of a point.
func (n *native) exemplars(list pmetric.ExemplarSlice) {
	for _, e := range list.All() {
		switch e.ValueType() {
		case pmetric.ExemplarValueTypeInt:
			e.SetDoubleValue(n.scale(float64(e.IntValue())))
		case pmetric.ExemplarValueTypeDouble:
			e.SetDoubleValue(n.scale(e.DoubleValue()))
		}
	}
}
