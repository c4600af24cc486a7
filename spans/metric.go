package spans

import "go.opentelemetry.io/collector/pdata/pmetric"

// Metric is how the registry declares a metric.
type Metric struct {
	Name        string
	Unit        string // UCUM
	Description string
	Instrument  Instrument
}

// Instrument is the kind of a metric's points.
type Instrument uint8

// The instruments. Sums and histograms are cumulative; of the sums only a Counter is monotonic.
const (
	Gauge Instrument = iota
	Counter
	UpDownCounter
	Histogram
)

// MetricNamed returns the registry's metric of a name. It panics on an unknown name: names are constants, and tables of metrics are filled at program start.
func MetricNamed(name string) Metric {
	m, ok := metrics[name]
	if !ok {
		panic("spans/registry has no metric " + name)
	}
	return m
}

// Declare gives an empty metric its name, unit, description and instrument.
func (d *Metric) Declare(m pmetric.Metric) {
	m.SetName(d.Name)
	m.SetUnit(d.Unit)
	m.SetDescription(d.Description)
	switch d.Instrument {
	case Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case Counter, UpDownCounter:
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(d.Instrument == Counter)
	default:
		m.SetEmptyGauge()
	}
}
