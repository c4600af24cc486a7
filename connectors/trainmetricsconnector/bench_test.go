package trainmetricsconnector

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// benchBatch is 100 functions of six spans, as train_perf emits them.
func benchBatch() ptrace.Traces {
	b := spans.NewBatch("bench", "")
	for i := range 100 {
		id := 10 * i
		f := add(b, resourceA, id+1, "rollout", spans.StageFunction, 914_024_000)
		f.Attributes().PutStr("tq.trace_id", "0b9ab442-aaaa-bbbb-cccc-00000000beef")
		f.Attributes().PutInt(spans.AttrTQBatchSize, 32)
		for name, v := range map[string]float64{
			spans.AttrTQGetUtilization: 0.05, spans.AttrTQComputeUtilization: 0.88, spans.AttrTQPutUtilization: 0.07,
			spans.AttrTQOverheadUtilization: 0.12, spans.AttrTQUtilizationDisagreement: 0.0002, spans.AttrTQUnattributedUtilization: 0,
			spans.AttrTQGetUtilizationReported: 0.05, spans.AttrTQComputeUtilizationReported: 0.88, spans.AttrTQPutUtilizationReported: 0.07,
		} {
			f.Attributes().PutDouble(name, v)
		}
		judged(f, spans.VerdictTQOverhead)
		add(b, resourceA, id+2, "rollout", spans.StageGet, 52_000_000)
		add(b, resourceA, id+3, "rollout", spans.StageClientGet, 51_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 300*mib)
		add(b, resourceA, id+4, "rollout", spans.StageCompute, 800_000_000)
		add(b, resourceA, id+5, "rollout", spans.StagePut, 62_024_000)
		add(b, resourceA, id+6, "rollout", spans.StageClientPut, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 253*mib)
	}
	return b.Traces()
}

// bench sends the batch again and again. Every time the spans get a new trace id, or we would only measure duplicates;
// the cost of the new ids is in the peer's figures too.
func bench(b *testing.B, c connector.Traces, td ptrace.Traces) {
	b.Helper()
	var n uint64
	b.ReportAllocs()
	for b.Loop() {
		n++
		for i := range td.ResourceSpans().Len() {
			list := td.ResourceSpans().At(i).ScopeSpans().At(0).Spans()
			for j := range list.Len() {
				var trace pcommon.TraceID
				binary.BigEndian.PutUint64(trace[8:], n*0x9e3779b97f4a7c15)
				list.At(j).SetTraceID(trace)
			}
		}
		if err := c.ConsumeTraces(context.Background(), td); err != nil {
			b.Fatal(err)
		}
	}
	spans := float64(n) * float64(td.SpanCount())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/spans, "ns/span")
}

func BenchmarkTrainMetrics(b *testing.B) {
	c, err := NewFactory().CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(NewFactory().Type()), createDefaultConfig(),
		consumertest.NewNop())
	require.NoError(b, err)
	bench(b, c, withKinds(benchBatch()))
	require.NoError(b, c.Shutdown(context.Background()))
}

// BenchmarkSpanMetrics runs contrib's connector on the same spans, with the same dimensions, resource, buckets and exemplars. span_metrics makes one histogram
// and one counter of them, train_metrics makes eight metrics.
func BenchmarkSpanMetrics(b *testing.B) {
	benchPeer(b, benchBatch(), spans.AttrTQFunction, spans.AttrTQStage)
}

func benchPeer(b *testing.B, td ptrace.Traces, dimensions ...string) {
	b.Helper()
	factory := spanmetricsconnector.NewFactory()
	cfg := factory.CreateDefaultConfig().(*spanmetricsconnector.Config)
	for _, d := range dimensions {
		cfg.Dimensions = append(cfg.Dimensions, spanmetricsconnector.Dimension{Name: d})
	}
	cfg.ExcludeDimensions = []string{"span.name", "span.kind", "status.code"}
	cfg.ResourceMetricsKeyAttributes = []string{spans.AttrServiceName, spans.AttrRunID}
	cfg.Histogram.Exponential = configoptional.Some(spanmetricsconnector.ExponentialHistogramConfig{MaxSize: mostBuckets})
	cfg.Exemplars.Enabled = true
	cfg.AggregationCardinalityLimit = 2000
	cfg.MetricsFlushInterval = 15 * time.Second
	require.NoError(b, cfg.Validate())
	c, err := factory.CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(factory.Type()), cfg, consumertest.NewNop())
	require.NoError(b, err)
	bench(b, c, td)
	require.NoError(b, c.Shutdown(context.Background()))
}

// benchSteps is 100 steps, as train_perf emits them, and eight parts of each.
func benchSteps() ptrace.Traces {
	b := spans.NewBatch("bench", "")
	for i := range 100 {
		s := addStepSpan(b, resourceA, 10*i+1, "verl", 0, int64(i), map[string]float64{
			spans.AttrStepDuration: 12.5, spans.AttrLoss: 2.5, spans.AttrLearningRate: 1e-4, spans.AttrGradientNorm: 0.5, spans.AttrDeviceFlopThroughputReported: 4e14,
			spans.AttrFlopThroughput: 3.2e15, spans.AttrDeviceFlopThroughput: 4e14, spans.AttrMFU: 0.41, spans.AttrHFU: 0.41, spans.AttrFlopDisagreement: 0.01,
			spans.AttrSamples: 1024, spans.AttrTokens: 4_194_304, spans.AttrFlopCount: 1e18, spans.AttrFlopPeak: 989.4e12,
		})
		s.Attributes().PutInt(spans.AttrStepsCovered, 1)
		judged(s, spans.VerdictMFULow)
		for p, name := range []string{"gen", "reward", "old_log_prob", "ref", "values", "adv", "update_critic", "update_actor"} {
			addPart(b, resourceA, 10*i+2+p, "verl", name, 0, 1e9)
		}
	}
	return b.Traces()
}

func BenchmarkTrainMetricsSteps(b *testing.B) {
	c, err := NewFactory().CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(NewFactory().Type()), createDefaultConfig(),
		consumertest.NewNop())
	require.NoError(b, err)
	bench(b, c, withKinds(benchSteps()))
	require.NoError(b, c.Shutdown(context.Background()))
}

func BenchmarkSpanMetricsSteps(b *testing.B) {
	benchPeer(b, benchSteps(), spans.AttrSource, spans.AttrRank, spans.AttrStage)
}

// benchRPC is ten passes of a hundred calls, as train_perf emits them: with five spans below each call, unless callsOnly.
func benchRPC(callsOnly bool) ptrace.Traces {
	b := spans.NewBatch("bench", "")
	for i := range 1000 {
		if i%100 == 0 && !callsOnly {
			pass := addGroup(b, resourceA, 10*i+9, spans.SpanRPCPass, 450e6, map[string]float64{
				spans.AttrZMQPassCalls: 100, spans.AttrZMQCallDuration: 0.45, spans.AttrZMQThroughput: 3e9, spans.AttrZMQThroughputDisagreement: 0,
				spans.AttrZMQSerializeDuration: 0.18, spans.AttrZMQSendDuration: 0.02, spans.AttrZMQReceiveDuration: 0.2, spans.AttrZMQDeserializeDuration: 0.05,
				spans.AttrZMQSerializeUtilization: 0.41, spans.AttrZMQSendUtilization: 0.05, spans.AttrZMQReceiveUtilization: 0.44,
				spans.AttrZMQDeserializeUtilization: 0.1, spans.AttrZMQUnattributedUtilization: 0.001, spans.AttrZMQTransportUtilization: 0.49,
			})
			judged(pass, spans.VerdictZMQSerializeHigh, spans.VerdictZMQCallsHigh)
		}
		method := [...]string{"BatchLinear", "BatchLinear", "Matmul", "BatchLinear", "Matmul", "LMHead"}[i%6]
		call := addCall(b, resourceA, 10*i+1, method, "unix", 4_450_000, 8_388_608, 25_165_824)
		call.Attributes().PutDouble(spans.AttrZMQThroughput, 7.5e9)
		call.Attributes().PutDouble(spans.AttrZMQThroughputReported, 7.5e9)
		for j, name := range []string{spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize, spans.SpanRPCUnattributed} {
			if !callsOnly {
				addRPC(b, resourceA, 10*i+2+j, ptrace.SpanKindInternal, name, 1e6, 1e6)
			}
		}
	}
	return b.Traces()
}

func BenchmarkTrainMetricsRPC(b *testing.B) {
	for name, callsOnly := range map[string]bool{"passes": false, "calls": true} {
		b.Run(name, func(b *testing.B) {
			c, err := NewFactory().CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(NewFactory().Type()), createDefaultConfig(),
				consumertest.NewNop())
			require.NoError(b, err)
			bench(b, c, withKinds(benchRPC(callsOnly)))
			require.NoError(b, c.Shutdown(context.Background()))
		})
	}
}

// BenchmarkSpanMetricsRPC makes one histogram and one counter of every span, the spans below the calls included.
func BenchmarkSpanMetricsRPC(b *testing.B) {
	for name, callsOnly := range map[string]bool{"passes": false, "calls": true} {
		b.Run(name, func(b *testing.B) {
			benchPeer(b, benchRPC(callsOnly), spans.AttrRPCMethod, spans.AttrRPCSystem, spans.AttrNetworkTransport)
		})
	}
}

// benchCollectives is 32 collectives of 64 ranks, as train_perf emits them: a span per rank below each, with a resource per rank. roots and ranks are 0 to
// leave out the roots' or the ranks' spans.
func benchCollectives(roots, ranks int) ptrace.Traces {
	b := spans.NewBatch("bench", "")
	for i := range 32 * roots {
		root := addCollective(b, resourceA, i+1, [...]string{"AllReduce", "AllGather", "ReduceScatter"}[i%3], "RING", 3e6, map[string]float64{
			spans.AttrNCCLMessageSize: 1 << 28, spans.AttrNCCLDataSize: 1 << 28, spans.AttrNCCLDuration: 0.0029, spans.AttrNCCLTransferDuration: 0.002,
			spans.AttrNCCLBandwidthAlgorithm: 134.2e9, spans.AttrNCCLBandwidthBus: 264.2e9, spans.AttrNCCLLateMax: 0.0009, spans.AttrNCCLLateCost: 0.05,
			spans.AttrNCCLErrors: 0, spans.AttrNCCLRetries: 0,
		})
		root.Attributes().PutInt(spans.AttrNCCLLateRank, 5)
		root.Attributes().PutStr(spans.AttrNCCLLateHost, "node-0")
		root.Attributes().PutStr(spans.AttrNCCLProtocol, "SIMPLE")
	}
	for i := range ranks {
		res := resourceA
		res.PID += int64(i)
		for j := range 32 {
			addBelow(b, res, 1000+32*i+j, spans.SpanNCCLRank)
		}
	}
	return b.Traces()
}

var collectiveBenches = map[string]struct{ roots, ranks int }{"collectives": {1, 64}, "roots": {1, 0}, "ranks": {0, 64}}

func BenchmarkTrainMetricsCollectives(b *testing.B) {
	for name, n := range collectiveBenches {
		b.Run(name, func(b *testing.B) {
			c, err := NewFactory().CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(NewFactory().Type()), createDefaultConfig(),
				consumertest.NewNop())
			require.NoError(b, err)
			bench(b, c, withKinds(benchCollectives(n.roots, n.ranks)))
			require.NoError(b, c.Shutdown(context.Background()))
		})
	}
}

// BenchmarkSpanMetricsCollectives makes one histogram and one counter of every span, the ranks' spans included.
func BenchmarkSpanMetricsCollectives(b *testing.B) {
	for name, n := range collectiveBenches {
		b.Run(name, func(b *testing.B) {
			benchPeer(b, benchCollectives(n.roots, n.ranks), spans.AttrNCCLOperation, spans.AttrNCCLAlgorithm, spans.AttrNCCLCommID, spans.AttrNCCLCommName,
				spans.AttrNCCLCommSize)
		})
	}
}

// BenchmarkFlush writes 2,000 histograms.
func BenchmarkFlush(b *testing.B) {
	c := newBed(b, func(c *Config) { c.MetricsExpiration, c.CardinalityLimit = 0, 100_000 })
	batch := spans.NewBatch("bench", "")
	for i := range 2000 {
		add(batch, resourceA, i+1, string(rune('a'+i%26))+string(rune('a'+i/26)), spans.StageFunction, 1e6)
	}
	c.consume(batch.Traces())
	b.ReportAllocs()
	for b.Loop() {
		c.store.build(c.clock)
	}
}
