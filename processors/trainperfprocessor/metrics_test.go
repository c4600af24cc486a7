package trainperfprocessor

import (
	"context"
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

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/devices"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
)

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

func TestNativeLeft(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings(), devices.New(), func() {})
	require.NoError(t, err)
	md, ms := newMetrics()
	exponential := ms.AppendEmpty()
	exponential.SetName("megatron.training.step_duration_ms")
	exponential.SetUnit("ms")
	exponential.SetEmptyExponentialHistogram().DataPoints().AppendEmpty().SetSum(5)
	empty := ms.AppendEmpty()
	empty.SetName("megatron.training.loss")
	perftest.Gauge(ms, "megatron.training.new_one", 1)
	perftest.Gauge(ms, "megatron.training.loss", 1)
	same := ms.AppendEmpty() // without a change of unit, the buckets stay
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
	metadatatest.AssertEqualProcessorTrainPerfNativeMetrics(t, tel, []metricdata.DataPoint[int64]{point("renamed", 2), point("left", 3)},
		metricdatatest.IgnoreTimestamp())
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

// FuzzMetrics: whatever OTLP holds, nothing panics and no metric is lost or made.
func FuzzMetrics(f *testing.F) {
	md, ms := newMetrics()
	perftest.Gauge(ms, "megatron.training.loss", 1)
	perftest.Gauge(ms, "nccl_bus_bandwidth_gbs", 1)
	perftest.Scrape(perftest.GPU{Host: "a", Model: perftest.H200}, perftest.GPU{Parent: "GPU-0"}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
	raw, err := new(pmetric.ProtoMarshaler).MarshalMetrics(md)
	require.NoError(f, err)
	f.Add(raw)
	p, _ := newTest(f)
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
