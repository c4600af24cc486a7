package spans

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// ValueText returns the text of an attribute, empty for another type: spans may come from anyone.
func ValueText(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return v.Str()
}

// AttrText returns the text of a named attribute, empty if absent.
func AttrText(attrs pcommon.Map, name string) string {
	if v, ok := attrs.Get(name); ok {
		return ValueText(v)
	}
	return ""
}

// ValueNumber returns the finite number in an attribute; NaN for another type, or an infinite one.
func ValueNumber(v pcommon.Value) float64 {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		if x := v.Double(); !math.IsInf(x, 0) {
			return x
		}
	case pcommon.ValueTypeInt:
		return float64(v.Int())
	}
	return math.NaN()
}

// Points returns the data points of a gauge or a sum, and an empty slice for other metrics.
func Points(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// PointNumber returns the number in a point, 0 if none.
func PointNumber(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// Finite reports whether a number is neither NaN nor infinite.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// PutFinite writes a finite number. NaN and infinities, unknown to JSON, break backends that store JSON: they are left out like absent numbers.
func PutFinite(m pcommon.Map, name string, x float64) {
	if Finite(x) {
		m.PutDouble(name, x)
	}
}
