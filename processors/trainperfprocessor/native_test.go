package trainperfprocessor

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

func gauge(ms pmetric.MetricSlice, name string, x float64) pmetric.Metric {
	m := ms.AppendEmpty()
	m.SetName(name)
	m.SetEmptyGauge().DataPoints().AppendEmpty().SetDoubleValue(x)
	return m
}

func newMetrics() (pmetric.Metrics, pmetric.MetricSlice) {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "pretrain")
	return md, rm.ScopeMetrics().AppendEmpty().Metrics()
}

func processMetrics(tb testing.TB, p *trainPerf, md pmetric.Metrics) {
	tb.Helper()
	_, err := p.processMetrics(context.Background(), md)
	require.NoError(tb, err)
}

func TestNativeGauges(t *testing.T) {
	p := newTest(t)
	for from, want := range map[string]struct {
		to, unit string
		x        float64 // of 12.5
	}{
		"megatron.training.step_duration_ms":    {"ml.train.step.duration.reported", "s", 0.0125},
		"megatron.training.loss":                {"ml.train.loss", spans.UnitLoss, 12.5},
		"megatron.training.throughput_tflops":   {"ml.train.device.flop.throughput.reported", "{flop}/s", 12.5e12},
		"megatron.training.grad_norm":           {"ml.train.gradient.norm", spans.UnitNorm, 12.5},
		"megatron.training.skipped_iters":       {"ml.train.iterations.skipped", spans.UnitIteration, 12.5},
		"megatron.training.learning_rate":       {"ml.train.learning_rate", spans.UnitLearningRate, 12.5},
		"megatron.training.tokens_per_sec":      {"ml.train.token.throughput", "{token}/s", 12.5},
		"megatron.training.memory_allocated_gb": {"ml.train.device.memory.peak", "By", 13421772800},
		"megatron.training.other":               {"megatron.training.other", "", 12.5},
		"megatron.inference.loss":               {"megatron.inference.loss", "", 12.5},
		"ml.train.loss":                         {"ml.train.loss", "", 12.5},
	} {
		md, ms := newMetrics()
		m := gauge(ms, from, 12.5)
		processMetrics(t, p, md)
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
		processMetrics(t, p, md)
		require.NoError(t, pmetrictest.CompareMetrics(once, md), "the second pass changed something")
	}
}

// NCCL Inspector's unit stands in its names already.
func TestInspectorUnit(t *testing.T) {
	p := newTest(t)
	md, ms := newMetrics()
	for name, want := range map[string]string{"nccl_bus_bandwidth_gbs": "", "nccl_p2p_bus_bandwidth_gbs": "", "other_bandwidth_gbs": "GB/s"} {
		m := gauge(ms, name, 148.4)
		m.SetUnit("GB/s")
		exec := gauge(ms, "nccl_collective_exec_time_microseconds", 53)
		exec.SetUnit("us")
		processMetrics(t, p, md)
		assert.Equal(t, name, m.Name())
		assert.Equal(t, want, m.Unit(), name)
		assert.InDelta(t, 148.4, m.Gauge().DataPoints().At(0).DoubleValue(), 0)
		assert.Equal(t, "us", exec.Unit())
	}
}

func TestNativeTypes(t *testing.T) {
	p := newTest(t)
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
	nan := gauge(ms, "megatron.training.loss", math.NaN())
	skipped := ms.AppendEmpty()
	skipped.SetName("megatron.training.skipped_iters")
	skipped.SetEmptySum().SetIsMonotonic(true)
	skipped.Sum().DataPoints().AppendEmpty().SetIntValue(4)
	processMetrics(t, p, md)

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

func TestNativeLeft(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings())
	require.NoError(t, err)
	md, ms := newMetrics()
	exponential := ms.AppendEmpty()
	exponential.SetName("megatron.training.step_duration_ms")
	exponential.SetUnit("ms")
	exponential.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetSum(5)
	empty := ms.AppendEmpty()
	empty.SetName("megatron.training.loss")
	gauge(ms, "megatron.training.new_one", 1)
	gauge(ms, "megatron.training.loss", 1)
	same := ms.AppendEmpty() // without a change of unit, its buckets stay what they are
	same.SetName("megatron.training.grad_norm")
	same.SetEmptyExponentialHistogram()
	processMetrics(t, p, md)
	assert.Equal(t, "megatron.training.step_duration_ms", exponential.Name())
	assert.Equal(t, "ms", exponential.Unit())
	assert.Equal(t, "megatron.training.loss", empty.Name())
	assert.Equal(t, "ml.train.gradient.norm", same.Name())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfNativeMetrics(t, tel, []metricdata.DataPoint[int64]{point("renamed", 2), point("left", 3)}, metricdatatest.IgnoreTimestamp())
}

func TestNativeGolden(t *testing.T) {
	in, err := golden.ReadMetrics(filepath.Join("testdata", "native_in.yaml"))
	require.NoError(t, err)
	sink := new(consumertest.MetricsSink)
	p, err := NewFactory().CreateMetrics(context.Background(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
	require.NoError(t, err)
	assert.True(t, p.Capabilities().MutatesData)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeMetrics(context.Background(), in))
	require.NoError(t, p.Shutdown(context.Background()))
	require.Len(t, sink.AllMetrics(), 1)
	want, err := golden.ReadMetrics(filepath.Join("testdata", "native_want.yaml"))
	require.NoError(t, err)
	require.NoError(t, pmetrictest.CompareMetrics(want, sink.AllMetrics()[0]))
}

// FuzzNative: whatever OTLP holds, nothing panics and no metric is lost or made.
func FuzzNative(f *testing.F) {
	md, ms := newMetrics()
	for name := range natives {
		gauge(ms, name, 1)
	}
	scrape(gpu{host: "a", model: h200}, gpu{parent: "GPU-0"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	raw, err := new(pmetric.ProtoMarshaler).MarshalMetrics(md)
	require.NoError(f, err)
	f.Add(raw)
	p := newTest(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		md, err := new(pmetric.ProtoUnmarshaler).UnmarshalMetrics(raw)
		if err != nil {
			return
		}
		n, points := md.MetricCount(), md.DataPointCount()
		processMetrics(t, p, md)
		assert.Equal(t, n, md.MetricCount())
		assert.Equal(t, points, md.DataPointCount())
	})
}

func BenchmarkNative(b *testing.B) {
	p := newTest(b)
	names := make([]string, 0, len(natives))
	for name := range natives {
		names = append(names, name)
	}
	md, ms := newMetrics()
	for _, name := range names {
		gauge(ms, name, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, name := range names {
			ms.At(i).SetName(name)
		}
		processMetrics(b, p, md)
	}
}
