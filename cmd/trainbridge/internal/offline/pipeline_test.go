package offline

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Of gauges and of sums, the points between the bounds are left.
func TestMetricsBetween(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	md := pmetric.NewMetrics()
	list := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	gauge, sum, old := list.AppendEmpty(), list.AppendEmpty(), list.AppendEmpty()
	for _, points := range []pmetric.NumberDataPointSlice{gauge.SetEmptyGauge().DataPoints(), sum.SetEmptySum().DataPoints()} {
		for hour := range 4 {
			points.AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(at(hour)))
		}
	}
	old.SetEmptySum().DataPoints().AppendEmpty().SetTimestamp(pcommon.NewTimestampFromTime(at(0)))

	sink := new(consumertest.MetricsSink)
	require.NoError(t, metricsBetween(Options{Since: at(1), Until: at(3)}, sink).ConsumeMetrics(context.Background(), md))
	assert.Equal(t, 2, list.Len())
	assert.Equal(t, 4, sink.DataPointCount())
	assert.Equal(t, pcommon.NewTimestampFromTime(at(1)), sum.Sum().DataPoints().At(0).Timestamp())
}
