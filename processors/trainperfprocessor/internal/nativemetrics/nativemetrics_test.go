package nativemetrics

import (
	"math"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rename has all metrics renamed.
func rename(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				Rename(m)
			}
		}
	}
}

func newMetrics() (pmetric.Metrics, pmetric.MetricSlice) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "pretrain")
	return md, rm.ScopeMetrics().AppendEmpty().Metrics()
}

func TestGauges(t *testing.T) {
	for from, want := range map[string]struct {
		to, unit string
		x        float64 // of 12.5
	}{
		"megatron.training.step_duration_ms":    {"ml.train.step.duration.reported", "s", 0.0125},
		"megatron.training.loss":                {"ml.train.loss", "{loss}", 12.5},
		"megatron.training.throughput_tflops":   {"ml.train.device.flop.throughput.reported", "{flop}/s", 12.5e12},
		"megatron.training.grad_norm":           {"ml.train.gradient.norm", "{norm}", 12.5},
		"megatron.training.skipped_iters":       {"ml.train.iterations.skipped", "{iteration}", 12.5},
		"megatron.training.learning_rate":       {"ml.train.learning_rate", "{learning_rate}", 12.5},
		"megatron.training.tokens_per_sec":      {"ml.train.token.throughput", "{token}/s", 12.5},
		"megatron.training.memory_allocated_gb": {"ml.train.device.memory.peak", "By", 13421772800},
		"megatron.training.other":               {"megatron.training.other", "", 12.5},
		"megatron.inference.loss":               {"megatron.inference.loss", "", 12.5},
		"ml.train.loss":                         {"ml.train.loss", "", 12.5},
	} {
		md, ms := newMetrics()
		m := perftest.Gauge(ms, from, 12.5)
		rename(md)
		assert.Equal(t, want.to, m.Name())
		assert.Equal(t, want.unit, m.Unit(), from)
		assert.InDelta(t, want.x, m.Gauge().DataPoints().At(0).DoubleValue(), 0, from)
		assert.Zero(t, m.Gauge().DataPoints().At(0).Attributes().Len(), "no new label")
		if from != want.to {
			source, _ := m.Metadata().Get(spans.AttrSource)
			assert.Equal(t, from, source.Str())
			assert.NotEmpty(t, m.Description())
			assert.NotContains(t, m.Description(), "megatron", "that of the metric whose name it takes")
		}
		once := pmetric.NewMetrics()
		md.CopyTo(once)
		rename(md)
		require.NoError(t, pmetrictest.CompareMetrics(once, md), "the second pass changed something")
	}
}

// NCCL Inspector's names already contain the unit.
func TestInspectorUnit(t *testing.T) {
	md, ms := newMetrics()
	for name, want := range map[string]string{"nccl_bus_bandwidth_gbs": "", "nccl_p2p_bus_bandwidth_gbs": "", "other_bandwidth_gbs": "GB/s"} {
		m := perftest.Gauge(ms, name, 148.4)
		m.SetUnit("GB/s")
		exec := perftest.Gauge(ms, "nccl_collective_exec_time_microseconds", 53)
		exec.SetUnit("us")
		rename(md)
		assert.Equal(t, name, m.Name())
		assert.Equal(t, want, m.Unit(), name)
		assert.InDelta(t, 148.4, m.Gauge().DataPoints().At(0).DoubleValue(), 0)
		assert.Equal(t, "us", exec.Unit())
	}
}

func TestTypes(t *testing.T) {
	md, ms := newMetrics()
	m := ms.AppendEmpty()
	m.SetName("megatron.training.step_duration_ms")
	m.SetUnit("ms")
	m.SetDescription("Duration of one training step in milliseconds.")
	dp := m.SetEmptyHistogram().DataPoints().AppendEmpty()
	dp.ExplicitBounds().FromRaw([]float64{0, 5, 10, 250, 10_000})
	dp.BucketCounts().FromRaw([]uint64{0, 1, 2, 3, 4, 5})
	dp.SetCount(15)
	dp.SetSum(123_457)
	dp.SetMin(3)
	dp.SetMax(20_001)
	e := dp.Exemplars().AppendEmpty()
	e.SetIntValue(7)
	bare := m.Histogram().DataPoints().AppendEmpty() // min, max and sum are optional
	bare.SetCount(1)

	memory := ms.AppendEmpty()
	memory.SetName("megatron.training.memory_allocated_gb")
	memory.SetEmptyGauge().DataPoints().AppendEmpty().SetIntValue(3)
	memory.Gauge().DataPoints().AppendEmpty() // no value
	nan := perftest.Gauge(ms, "megatron.training.loss", math.NaN())
	skipped := ms.AppendEmpty()
	skipped.SetName("megatron.training.skipped_iters")
	skipped.SetEmptySum().SetIsMonotonic(true)
	skipped.Sum().DataPoints().AppendEmpty().SetIntValue(4)
	rename(md)

	assert.Equal(t, "ml.train.step.duration", m.Name())
	assert.Equal(t, "s", m.Unit())
	assert.Equal(t, "Time of one training step, one value per record of the log.", m.Description(), "it says no other unit")
	assert.Equal(t, []float64{0, 0.005, 0.01, 0.25, 10}, dp.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{0, 1, 2, 3, 4, 5}, dp.BucketCounts().AsRaw())
	assert.Equal(t, [3]float64{123.457, 0.003, 20.001}, [3]float64{dp.Sum(), dp.Min(), dp.Max()})
	assert.InDelta(t, 0.007, e.DoubleValue(), 0)
	assert.False(t, bare.HasSum() || bare.HasMin() || bare.HasMax())
	assert.InDelta(t, 3*(1<<30), memory.Gauge().DataPoints().At(0).DoubleValue(), 0)
	assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, memory.Gauge().DataPoints().At(1).ValueType())
	assert.True(t, math.IsNaN(nan.Gauge().DataPoints().At(0).DoubleValue()), "a NaN loss is news")
	assert.Equal(t, "ml.train.iterations.skipped", skipped.Name())
	assert.True(t, skipped.Sum().IsMonotonic())
	assert.Equal(t, int64(4), skipped.Sum().DataPoints().At(0).IntValue())
}

func BenchmarkRename(b *testing.B) {
	names := make([]string, 0, len(natives))
	for name := range natives {
		names = append(names, name)
	}
	md, ms := newMetrics()
	for _, name := range names {
		perftest.Gauge(ms, name, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, name := range names {
			ms.At(i).SetName(name)
		}
		rename(md)
	}
}

// FuzzRename: whatever OTLP holds, nothing panics and no data point is lost or made.
func FuzzRename(f *testing.F) {
	md, ms := newMetrics()
	for name := range natives {
		perftest.Gauge(ms, name, 1)
	}
	raw, err := new(pmetric.ProtoMarshaler).MarshalMetrics(md)
	require.NoError(f, err)
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(raw)
		if err != nil {
			return
		}
		n, points := md.MetricCount(), md.DataPointCount()
		rename(md)
		assert.Equal(t, n, md.MetricCount())
		assert.Equal(t, points, md.DataPointCount())
	})
}
