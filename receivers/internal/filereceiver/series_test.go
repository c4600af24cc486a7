package filereceiver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/spans"
)

// gauges is a batch of one point of each rank from first on, of each metric.
type gauges struct {
	run          string
	metrics      []string
	first, ranks int
	host         string
	counter      bool
}

func (gauges) Traces(*spans.Batch, From) {}
func (gauges) Done()                     {}

func (g gauges) Metrics() pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr(spans.AttrServiceName, "train")
	rm.Resource().Attributes().PutStr(spans.AttrServiceInstanceID, g.run)
	list := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range g.metrics {
		m := list.AppendEmpty()
		m.SetName(name)
		var points pmetric.NumberDataPointSlice
		if g.counter {
			points = m.SetEmptySum().DataPoints()
		} else {
			points = m.SetEmptyGauge().DataPoints()
		}
		for i := range g.ranks {
			p := points.AppendEmpty()
			p.SetIntValue(1)
			p.Attributes().PutStr(spans.AttrHostName, "node"+g.host)
			p.Attributes().PutInt(spans.AttrRank, int64(g.first+i))
		}
	}
	return md
}

type bench struct {
	*Receiver
	clock time.Time
	err   error
	sent  []pmetric.Metrics
	logs  *observer.ObservedLogs
	tel   *componenttest.Telemetry
}

func newBench(tb testing.TB, limit int) *bench {
	tb.Helper()
	b := &bench{clock: time.Unix(1_780_000_000, 0), tel: componenttest.NewTelemetry()}
	tb.Cleanup(func() { require.NoError(tb, b.tel.Shutdown(context.WithoutCancel(tb.Context()))) })
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	set.TelemetrySettings = b.tel.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	set.Logger, b.logs = zap.New(core), logs
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if b.err == nil {
			b.sent = append(b.sent, md)
		}
		return b.err
	})
	require.NoError(tb, err)
	b.Receiver, err = Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return Parts{Series: limit}, nil }, nil, next)
	require.NoError(tb, err)
	b.series.now = func() time.Time { return b.clock }
	return b
}

// points sends a batch and returns the number of points that arrived.
func (b *bench) points(tb testing.TB, batch gauges) int {
	tb.Helper()
	b.sent = nil
	require.NoError(tb, b.Deliver(batch).Send(tb.Context()))
	n := 0
	for _, md := range b.sent {
		n += md.DataPointCount()
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			assert.Positive(tb, spans.Points(m).Len(), "no metric without points")
		}
	}
	return n
}

func (b *bench) dropped(tb testing.TB) int64 {
	tb.Helper()
	m, err := b.tel.GetMetric("trainbridge.metrics.overflow")
	if err != nil {
		return 0
	}
	return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
}

func TestSeriesLimit(t *testing.T) {
	b := newBench(t, 10)
	batch := gauges{run: "run-1", metrics: []string{"loss", "speed"}, ranks: 4}
	assert.Equal(t, 8, b.points(t, batch))
	assert.Equal(t, 8, b.points(t, batch), "those that are known pass")
	assert.Zero(t, b.logs.Len())
	batch.first = 2
	assert.Equal(t, 4+2, b.points(t, batch), "two ranks are new, and there is room for two series")
	assert.Equal(t, int64(2), b.dropped(t))
	assert.Equal(t, 0, b.points(t, gauges{run: "run-2", metrics: []string{"loss"}, ranks: 4, counter: true}), "another run's are other series")
	assert.Empty(t, b.sent, "nothing is sent of a batch without points")
	assert.Equal(t, int64(6), b.dropped(t))
	require.Equal(t, 1, b.logs.Len(), "said once")
	assert.Equal(t, map[string]any{"cardinality_limit": int64(10), "metric": "speed"}, b.logs.All()[0].ContextMap())
}

// TestSeriesAreForgotten: series of finished ranks, hosts and processes free their places.
func TestSeriesAreForgotten(t *testing.T) {
	b := newBench(t, 4)
	old, kept := gauges{metrics: []string{"loss"}, ranks: 2}, gauges{metrics: []string{"loss"}, first: 2, ranks: 2}
	assert.Equal(t, 2, b.points(t, old))
	other := gauges{metrics: []string{"loss"}, first: 4, ranks: 2}
	for range 100 {
		assert.Equal(t, 2, b.points(t, kept))
		b.clock = b.clock.Add(forgetSeries / 2)
	}
	assert.Equal(t, 2, b.points(t, other))
	assert.Equal(t, 2, b.points(t, kept))
	assert.Equal(t, 0, b.points(t, old), "which have lost theirs")
	assert.LessOrEqual(t, len(b.series.current)+len(b.series.previous), 8)
	b.clock = b.clock.Add(forgetSeries)
	assert.Equal(t, 2, b.points(t, kept))
	b.clock = b.clock.Add(forgetSeries)
	assert.Equal(t, 2, b.points(t, old))
	assert.Equal(t, 2, b.points(t, kept))
}

// TestRetryCountsDroppedOnce: a batch that waits for hours for its backend counts its dropped points once.
func TestRetryCountsDroppedOnce(t *testing.T) {
	b := newBench(t, 1)
	b.err = errors.New("away")
	deliver := b.Deliver(gauges{metrics: []string{"loss"}, ranks: 3})
	for range 100 {
		require.Error(t, deliver.Send(t.Context()))
	}
	assert.Zero(t, b.dropped(t))
	b.err = nil
	require.NoError(t, deliver.Send(t.Context()))
	assert.Equal(t, int64(2), b.dropped(t))
	b.err = consumererror.NewPermanent(errors.New("no"))
	require.Error(t, b.Deliver(gauges{metrics: []string{"loss"}, ranks: 3}).Send(t.Context()))
	assert.Equal(t, int64(4), b.dropped(t))
}

func TestLongLabelsAreCut(t *testing.T) {
	b := newBench(t, 10)
	long := strings.Repeat("x", 1<<20)
	assert.Equal(t, 1, b.points(t, gauges{metrics: []string{"loss"}, ranks: 1, host: long}))
	host, _ := spans.Points(b.sent[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)).At(0).Attributes().Get(spans.AttrHostName)
	assert.Len(t, host.Str(), spans.MaxLabelBytes)
}

func TestSeriesConfig(t *testing.T) {
	require.NoError(t, confmap.Validate(&SeriesConfig{CardinalityLimit: 1}))
	require.ErrorIs(t, confmap.Validate(&SeriesConfig{}), errCardinality)
}

// BenchmarkSeries trims what a batch of 64 ranks has, or of one, in ns a point.
func BenchmarkSeries(b *testing.B) {
	metrics := make([]string, 10)
	for i := range metrics {
		metrics[i] = fmt.Sprint("ml.train.metric", i)
	}
	for name, limit := range map[string]int{"known": 1000, "one rank": 1000, "overflow": 1} {
		b.Run(name, func(b *testing.B) {
			r := newBench(b, limit)
			md := gauges{run: "run-1", metrics: metrics, ranks: 64}.Metrics()
			if name == "one rank" {
				for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
					for _, p := range m.Gauge().DataPoints().All() {
						p.Attributes().PutInt(spans.AttrRank, 0)
					}
				}
			}
			again := pmetric.NewMetrics()
			b.ReportAllocs()
			for b.Loop() {
				if limit == 1 {
					b.StopTimer()
					md.CopyTo(again)
					b.StartTimer()
					r.series.trim(again)
				} else {
					r.series.trim(md)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/640, "ns/point")
		})
	}
}
