package perfetto

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
)

// heard notes the data of a sink, and passes the data on.
type heard struct {
	mu     sync.Mutex
	slices []string
	points []string
}

func (h *heard) between(tb testing.TB, to offline.Sink) offline.Sink {
	tb.Helper()
	traces, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		h.mu.Lock()
		h.slices = append(h.slices, all(td)...)
		h.mu.Unlock()
		return to.Traces.ConsumeTraces(ctx, td)
	})
	require.NoError(tb, err)
	metrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		h.mu.Lock()
		h.points = append(h.points, pointsOf(md)...)
		h.mu.Unlock()
		return to.Metrics.ConsumeMetrics(ctx, md)
	})
	require.NoError(tb, err)
	return offline.Sink{Traces: traces, Metrics: metrics}
}

// pointsOf are the points of gauges and sums: time and value.
func pointsOf(md pmetric.Metrics) (out []string) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points := pmetric.NewNumberDataPointSlice()
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				}
				for _, dp := range points.All() {
					v := dp.DoubleValue()
					if dp.ValueType() == pmetric.NumberDataPointValueTypeInt {
						v = float64(dp.IntValue())
					}
					out = append(out, fmt.Sprint(uint64(dp.Timestamp()), " ", v))
				}
			}
		}
	}
	return out
}

// The fixtures of all receivers, read and joined, are in the trace: each span and each value.
func TestReport(t *testing.T) {
	paths, err := filepath.Glob("../../../../../receivers/*/testdata")
	require.NoError(t, err)
	in, err := offline.Open(paths, nil)
	require.NoError(t, err)
	defer in.Close()
	var file bytes.Buffer
	var h heard
	w := Open(format.Request{Out: &file, In: in})
	read, err := offline.Read(t.Context(), in, offline.Options{Positions: true, Run: "run"}, h.between(t, w.Sink()))
	require.NoError(t, err)
	require.NoError(t, w.Finish(t.Context(), read))
	tr := decode(t, file.Bytes())
	slices.Sort(h.slices)
	assert.Greater(t, len(h.slices), 1000)
	assert.Equal(t, h.slices, tr.all())
	var points []string
	for _, c := range tr.counters {
		points = append(points, fmt.Sprint(c.at, " ", c.value))
	}
	for _, in := range tr.instants {
		if _, v, ok := strings.Cut(in.name, " is "); ok && in.category == "event" {
			points = append(points, fmt.Sprint(in.start, " ", v))
		}
	}
	slices.Sort(points)
	slices.Sort(h.points)
	assert.Greater(t, len(points), 500)
	assert.Equal(t, h.points, points)
	said := 0
	for _, in := range tr.instants {
		if in.category == "verdict" {
			assert.NotEmpty(t, in.annotated["trainbridge.verdict.reason"])
			said++
		}
	}
	assert.Positive(t, said)
}
