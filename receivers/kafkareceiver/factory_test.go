package kafkareceiver

import (
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/kafkareceiver"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/internal/health/healthtest"
)

// A right to read that was taken away and given back is a failure until the next message.
func TestHealth(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "otlp_spans"))
	require.NoError(t, err)
	defer cluster.Close()
	f, host, sink := NewFactory(), healthtest.NewHost(), new(consumertest.TracesSink)
	cfg := f.CreateDefaultConfig().(*kafkareceiver.Config)
	cfg.ClientConfig.Brokers, cfg.ConsumerConfig.InitialOffset = cluster.ListenAddrs(), "earliest"
	r, err := f.CreateTraces(t.Context(), receivertest.NewNopSettings(f.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), host))
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("otlp_spans"))
	require.NoError(t, err)
	defer client.Close()
	send := func() {
		t.Helper()
		td := ptrace.NewTraces()
		td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("a")
		b, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
		require.NoError(t, err)
		require.NoError(t, client.ProduceSync(t.Context(), &kgo.Record{Value: b}).FirstErr())
	}
	send()
	require.Eventually(t, func() bool { return sink.SpanCount() == 1 }, time.Minute, time.Millisecond)
	assert.Empty(t, host.Seen())

	cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) { // once
		in, out := req.(*kmsg.FetchRequest), req.ResponseKind().(*kmsg.FetchResponse)
		for _, topic := range in.Topics {
			denied := kmsg.NewFetchResponseTopic()
			denied.Topic, denied.TopicID = topic.Topic, topic.TopicID
			for _, p := range topic.Partitions {
				answer := kmsg.NewFetchResponseTopicPartition()
				answer.Partition, answer.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				denied.Partitions = append(denied.Partitions, answer)
			}
			out.Topics = append(out.Topics, denied)
		}
		return out, nil, len(in.Topics) > 0
	})
	failed := []componentstatus.Status{componentstatus.StatusRecoverableError}
	require.Eventually(t, func() bool { return assert.ObjectsAreEqual(failed, host.Seen()) }, time.Minute, time.Millisecond)
	send()
	require.Eventually(t, func() bool { return sink.SpanCount() == 2 }, time.Minute, time.Millisecond)
	assert.Equal(t, append(failed, componentstatus.StatusOK), host.Seen())
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Len(t, host.Seen(), 2)
}
