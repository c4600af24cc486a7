package perfetto

import (
	"context"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

// Attributes of semconv's hardware metrics that name the GPU.
const (
	attrHardwareID   = "hw.id"
	attrHardwareName = "hw.name"
	attrHardwareType = "hw.type"
)

// ConsumeMetrics writes the points of gauges and sums as counters, unchanged. Histograms have no place on a time axis, and are left out.
func (w *Writer) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		var s source
		s.read(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				w.points(&s, m)
			}
		}
	}
	return w.err
}

// points writes the points of a metric, each as a value of the counter of its series. NaN and infinite values are instants (noNumber); points without a value
// are left out.
func (w *Writer) points(s *source, m pmetric.Metric) {
	for _, dp := range spans.Points(m).All() {
		whole := dp.ValueType() == pmetric.NumberDataPointValueTypeInt
		if dp.Flags().NoRecordedValue() || dp.ValueType() == pmetric.NumberDataPointValueTypeEmpty {
			continue
		}
		if !whole && !spans.Finite(dp.DoubleValue()) {
			w.noNumber(s, m, dp)
			continue
		}
		uuid := w.counter(s, m, dp.Attributes())
		w.beginAt(nanos(dp.Timestamp()))
		at := w.event(typeCounter, uuid)
		if whole {
			w.raw = appendUint(w.raw, eventCounterInt, uint64(dp.IntValue()))
		} else {
			w.raw = appendDouble(w.raw, eventCounterDouble, dp.DoubleValue())
		}
		w.raw = shut(w.raw, at)
		w.end()
	}
}

// noNumber writes an instant for a value without a place on an axis, such as a NaN loss, for people who look for the value.
func (w *Writer) noNumber(s *source, m pmetric.Metric, dp pmetric.NumberDataPoint) {
	var at where
	at.read(dp.Attributes(), s)
	o := s.owner
	o.host = at.host
	uuid := w.tracks.single(who{process: w.tracks.process(o), what: events, number: -1})
	w.beginAt(nanos(dp.Timestamp()))
	event := w.event(typeInstant, uuid)
	w.name(m.Name() + " is " + strconv.FormatFloat(dp.DoubleValue(), 'g', -1, 64))
	w.category(events.category())
	w.values(dp.Attributes())
	w.raw = shut(w.raw, event)
	w.end()
}

// counter is the uuid of the counter track of a series, which is described if new. The name of the track is the metric's with the attributes of the point in
// braces, such as "ml.loss{stage=train}". Left out are host and GPU (hw.name, hw.id), which decide the track above, and type and model of the hardware, the
// same for all points of a GPU. Any point with hw.name or hw.id is taken for a GPU's.
func (w *Writer) counter(s *source, m pmetric.Metric, attrs pcommon.Map) uint64 {
	o := s.owner
	device, id := "", ""
	label := w.label[:0]
	label = append(label, m.Name()...)
	braces := byte('{')
	for name, v := range attrs.All() {
		switch name {
		case spans.AttrHostName:
			o.host = spans.ValueText(v)
		case attrHardwareID:
			id = spans.ValueText(v)
		case attrHardwareName:
			device = spans.ValueText(v)
		case attrHardwareType, spans.AttrDeviceModel:
		default:
			label = append(label, braces)
			label = append(label, name...)
			label = append(label, '=')
			label = append(label, v.AsString()...)
			braces = ','
		}
	}
	if braces == ',' {
		label = append(label, '}')
	}
	if device == "" && id != "" {
		device = id
		if _, err := strconv.ParseUint(id, 10, 32); err == nil {
			device = "GPU " + id
		}
	}
	// The key of the series: the name, and behind it, not shown, what decides the track above, then the unit, of which each track has one.
	shown := len(label)
	for _, text := range [...]string{o.service, o.run, o.host, device, m.Unit()} {
		label = append(append(label, 0), text...)
	}
	w.label = label
	if uuid, ok := w.tracks.counters[string(label)]; ok {
		return uuid
	}
	at := who{process: w.tracks.process(o), what: values, number: -1}
	if device != "" {
		at.what, at.text = gpu, device
	}
	parent := w.tracks.single(at)
	w.tracks.grow()
	uuid := w.tracks.describe(parent, string(label[:shown]), m.Unit(), true)
	w.tracks.counters[string(label)] = uuid
	return uuid
}
