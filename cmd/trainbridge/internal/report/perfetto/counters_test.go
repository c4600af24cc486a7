package perfetto

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/trainbridge/trainbridge/spans"
)

type point struct {
	path, unit string
	at         int64
	value      float64
}

func TestCounters(t *testing.T) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(spans.AttrServiceName, "job")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	gauge := func(name, unit string) pmetric.NumberDataPointSlice {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		return m.SetEmptyGauge().DataPoints()
	}
	add := func(points pmetric.NumberDataPointSlice, at int, v float64, attrs ...string) {
		dp := points.AppendEmpty()
		dp.SetTimestamp(pcommon.Timestamp(epoch + at))
		dp.SetDoubleValue(v)
		for i := 0; i < len(attrs); i += 2 {
			dp.Attributes().PutStr(attrs[i], attrs[i+1])
		}
	}
	loss := gauge("ml.train.loss", "1")
	add(loss, 10, 2.5)
	add(loss, 20, math.NaN(), "source", "hf") // has no place on an axis
	add(loss, 21, math.Inf(-1))
	add(loss, 5, 2.75) // late
	used := gauge("hw.gpu.utilization", "1")
	add(used, 7, 0.5, "hw.id", "GPU-1", "hw.name", "GPU 0", spans.AttrHostName, "n0", "hw.gpu.task", "general")
	add(used, 7, 0.75, "hw.id", "GPU-2", spans.AttrHostName, "n0")
	add(used, 7, 0.25, "hw.id", "3", spans.AttrHostName, "n0")
	sum := metrics.AppendEmpty()
	sum.SetName("hw.errors")
	dp := sum.SetEmptySum().DataPoints().AppendEmpty()
	dp.SetTimestamp(epoch + 8)
	dp.SetIntValue(math.MinInt64)
	none := sum.Sum().DataPoints().AppendEmpty()
	none.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	metrics.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty()

	var file bytes.Buffer
	w := New(&file)
	require.NoError(t, w.ConsumeMetrics(t.Context(), md))
	require.NoError(t, w.Close())
	tr := decode(t, file.Bytes())
	var got []point
	for _, c := range tr.counters {
		got = append(got, point{tr.path(c.track), c.track.unit, c.at - epoch, c.value})
	}
	assert.Equal(t, []point{
		{"job / values / ml.train.loss", "1", 5, 2.75},
		{"job on n0 / GPU 0 / hw.gpu.utilization{hw.gpu.task=general}", "1", 7, 0.5},
		{"job on n0 / GPU-2 / hw.gpu.utilization", "1", 7, 0.75},
		{"job on n0 / GPU 3 / hw.gpu.utilization", "1", 7, 0.25},
		{"job / values / hw.errors", "", 8, math.MinInt64},
		{"job / values / ml.train.loss", "1", 10, 2.5},
	}, got)
	require.Len(t, tr.instants, 2)
	for i, want := range []string{"job / events: ml.train.loss is NaN at 20 map[source:hf]", "job / events: ml.train.loss is -Inf at 21 map[]"} {
		in := tr.instants[i]
		assert.Equal(t, want, fmt.Sprintf("%s: %s at %d %v", tr.path(in.track), in.name, in.start-epoch, in.annotated))
	}
}
