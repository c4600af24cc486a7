package ncclreceiver

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/health/healthtest"
)

// An unreadable topic is a failure until the next message.
func TestGatewayHealth(t *testing.T) {
	c, host := newCluster(t, 1), healthtest.NewHost()
	g := c.startOn(host, func(context.Context, ptrace.Traces) error { return nil }, nil)
	require.Eventually(t, func() bool { return len(g.partitionsNow()) == 1 }, time.Minute, time.Millisecond)
	c.fake.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) { // once
		in, out := req.(*kmsg.FetchRequest), req.ResponseKind().(*kmsg.FetchResponse)
		for i := range in.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = in.Topics[i].Topic, in.Topics[i].TopicID
			for _, p := range in.Topics[i].Partitions {
				denied := kmsg.NewFetchResponseTopicPartition()
				denied.Partition, denied.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions, denied)
			}
			out.Topics = append(out.Topics, topic)
		}
		return out, nil, true
	})
	failed := []componentstatus.Status{componentstatus.StatusRecoverableError}
	seen := func(want []componentstatus.Status) {
		t.Helper()
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, host.Seen()) }, time.Minute, time.Millisecond, "%v", host.Seen())
	}
	seen(failed)
	c.message(0, []byte("no record"))
	seen(append(failed, componentstatus.StatusOK))
	g.stop()
}
