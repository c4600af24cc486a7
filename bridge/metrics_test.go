package bridge

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/spans"
)

// What the helpers send is counted like what the receivers send.
func TestTrainMetricsCountsTheSpans(t *testing.T) {
	r := newRig(t)
	func(ctx context.Context) {
		defer r.TrainStep(&ctx, 1).End()
		defer r.TQFunction(&ctx, "generate_sequences").End()
		func(ctx context.Context) {
			defer r.TQGet(&ctx).End()
			n := int64(1 << 20)
			defer r.TQClientGet(&ctx).DataSize(&n).End()
		}(ctx)
		request, response := int64(8), int64(4096)
		defer r.RPC(&ctx, spans.RPCSystemZeroMQ, "Matmul").MessageSizes(&request, &response).End()
		defer r.RPCSend(&ctx).End()
	}(t.Context())
	require.NoError(t, r.Shutdown(t.Context()))

	factory := trainmetricsconnector.NewFactory()
	sink := new(consumertest.MetricsSink)
	c, err := factory.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, c.ConsumeTraces(t.Context(), r.collector.traces))
	require.NoError(t, c.Shutdown(t.Context())) // which flushes

	var names []string
	for _, md := range sink.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			assert.Equal(t, map[string]any{"service.name": "data-server", "ml.run.id": "run-1", "service.instance.id": "run-1"}, rm.Resource().Attributes().AsRaw())
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				names = append(names, m.Name())
			}
		}
	}
	assert.ElementsMatch(t, []string{
		"tq.function.duration", "tq.stage.duration", "tq.stage.utilization", "tq.overhead.utilization", "tq.client.throughput",
		"ml.train.step.duration", "ml.train.steps", "rpc.client.call.duration", "rpc.client.request.size", "rpc.client.response.size",
	}, names)
}
