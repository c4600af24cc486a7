package bridge

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor"
	"github.com/trainbridge/trainbridge/spans"
)

// ofLogs is the receivers' spans of a function and its stages, of steps of two ranks, and of calls: their golden files.
func ofLogs(t *testing.T) ptrace.Traces {
	t.Helper()
	all := ptrace.NewTraces()
	for _, file := range []string{"tqtracereceiver/testdata/seed", "trainlogreceiver/testdata/ranks", "zmqrpcreceiver/testdata/v1"} {
		td, err := golden.ReadTraces(filepath.Join("..", "receivers", filepath.FromSlash(file)+".traces.yaml"))
		require.NoError(t, err)
		td.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
	}
	for _, rs := range all.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool {
				_, incomplete := s.Attributes().Get(spans.AttrIncomplete)
				_, several := s.Attributes().Get(spans.AttrStepsCovered)
				return incomplete || several
			})
		}
	}
	return all
}

// ofService is the spans of the same work in a Go service.
func ofService(t *testing.T) ptrace.Traces {
	t.Helper()
	r := newRig(t)
	function := func(ctx context.Context) {
		ctx, s := r.StartFunction(ctx, "rollout")
		defer s.End()
		n := int64(10485760)
		func(ctx context.Context) {
			ctx, s := r.StartGet(ctx)
			defer s.End()
			_, s = r.StartClientGet(ctx)
			defer s.DataSize(&n).End()
		}(ctx)
		ctx, s = r.StartCompute(ctx)
		s.End()
		func(ctx context.Context) {
			ctx, s := r.StartPut(ctx)
			defer s.End()
			_, s = r.StartClientPut(ctx)
			defer s.DataSize(&n).End()
		}(ctx)
	}
	function(WithTraceID(t.Context(), "a1b2c3d4"))
	ctx := t.Context()
	for rank := range 2 {
		_, s := r.StartStep(ctx, 1, attribute.Int(spans.AttrRank, rank), attribute.Float64(spans.AttrLoss, 2.5))
		s.End()
	}
	for _, method := range []string{"Init", "Embedding", "BatchLinear", "LMHead"} {
		request, response := int64(8), int64(4096)
		ctx, call := r.StartRPC(ctx, spans.RPCSystemZeroMQ, method, attribute.String(spans.AttrNetworkTransport, "unix"))
		call.MessageSizes(&request, &response)
		ctx, s := r.StartRPCSerialize(ctx)
		s.End()
		ctx, s = r.StartRPCSend(ctx)
		s.End()
		ctx, s = r.StartRPCReceive(ctx)
		s.End()
		_, s = r.StartRPCDeserialize(ctx)
		s.End()
		call.End()
	}
	require.NoError(t, r.Shutdown(t.Context()))
	return r.collector.traces
}

// kinds returns by span name the span's kind, and the types of its attributes, with those of its resource if resource is set. All calls count under one name.
func kinds(td ptrace.Traces, resource bool) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				name := s.Name()
				if spans.AttrText(s.Attributes(), spans.AttrKind) == spans.KindCall {
					name = "a call"
				}
				if all[name] == nil {
					all[name] = map[string]string{}
				}
				all[name]["the span"] = s.Kind().String()
				for key, v := range s.Attributes().All() {
					all[name][key] = v.Type().String()
				}
				for key, v := range rs.Resource().Attributes().All() {
					if resource {
						all[name][key] = v.Type().String()
					}
				}
			}
		}
	}
	return all
}

func TestSpansAreAsOfLogs(t *testing.T) {
	// By train_perf, which adds the shares. Constants of a log are on the resource.
	service, logs := kinds(ofService(t), false), kinds(judge(t, ofLogs(t)), true)
	logs["rollout"][spans.AttrProcessPID] = "Int" // missing in these lines
	var said [][2]string
	for name, attrs := range service {
		require.Contains(t, logs, name)
		for key, want := range attrs {
			if got, ok := logs[name][key]; ok {
				assert.Equal(t, want, got, "%s of %s", key, name)
			} else {
				said = append(said, [2]string{name, key})
			}
		}
	}
	// Implied by the name of a log's span. A service's span, for any reader, has the attribute too.
	assert.ElementsMatch(t, [][2]string{
		{"rollout", spans.AttrTQStage},
		{"tq.get", spans.AttrTQStage},
		{"tq.compute", spans.AttrTQStage},
		{"tq.put", spans.AttrTQStage},
		{"tq.client.get", spans.AttrTQStage},
		{"tq.client.put", spans.AttrTQStage},
		{"train.step", spans.AttrKind},
		{"a call", spans.AttrRPCMethod},
		{"rpc.serialize", spans.AttrKind},
		{"rpc.send", spans.AttrKind},
		{"rpc.receive", spans.AttrKind},
		{"rpc.deserialize", spans.AttrKind},
	}, said)
}

func judge(t *testing.T, td ptrace.Traces) ptrace.Traces {
	t.Helper()
	factory, sink := trainperfprocessor.NewFactory(), new(consumertest.TracesSink)
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(t.Context(), td))
	require.NoError(t, p.Shutdown(t.Context()))
	return sink.AllTraces()[0]
}

// series lists the metrics that train_perf and train_metrics derive from spans: with type and unit, and the labels of the series.
func series(t *testing.T, td ptrace.Traces) map[string][]string {
	t.Helper()
	factory, sink := trainmetricsconnector.NewFactory(), new(consumertest.MetricsSink)
	c, err := factory.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.ConsumeTraces(t.Context(), judge(t, td)))
	require.NoError(t, c.Shutdown(t.Context())) // which flushes

	all := map[string][]string{}
	for _, md := range sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			assert.ElementsMatch(
				t, []string{spans.AttrServiceName, spans.AttrRunID, spans.AttrServiceInstanceID}, slices.Collect(maps.Keys(rm.Resource().Attributes().AsRaw())),
			)
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				name := fmt.Sprintf("%s (%s, %s)", m.Name(), m.Type(), m.Unit())
				for _, labels := range labelsOf(m) {
					all[name] = append(all[name], fmt.Sprint(labels.AsRaw()))
				}
				slices.Sort(all[name])
			}
		}
	}
	return all
}

func labelsOf(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}

// The spans of the helpers are counted like the spans of the receivers.
func TestTrainMetricsCountsTheSpans(t *testing.T) {
	logs := ofLogs(t)
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, rs := range logs.ResourceSpans().All() {
		rs.Resource().Attributes().PutStr(spans.AttrHostName, host) // missing in the logs here
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			for _, attrs := range []pcommon.Map{rs.Resource().Attributes(), s.Attributes()} {
				if _, ok := attrs.Get(spans.AttrSource); ok {
					attrs.PutStr(spans.AttrSource, "go")
				}
			}
		}
	}
	want, got := series(t, logs), series(t, ofService(t))
	for _, name := range []string{ // metrics of groups of calls, and of values only in logs
		"zeromq.pass.duration (ExponentialHistogram, s)", "zeromq.pass.calls (ExponentialHistogram, {call})", "zeromq.stage.utilization (Gauge, 1)", "zeromq.stage.time (Sum, s)",
		"zeromq.throughput.disagreement (ExponentialHistogram, 1)",
		"tq.utilization.reported.disagreement (ExponentialHistogram, 1)",
	} {
		assert.Contains(t, want, name)
		delete(want, name)
	}
	for _, name := range []string{"trainbridge.verdicts (Sum, {verdict})", "ml.run.time (Sum, s)"} { // the series depend on the time taken
		assert.Contains(t, want, name)
		delete(want, name)
		delete(got, name)
	}
	assert.Equal(t, want, got)
	assert.Len(t, got, 13)
}
