package kafkaexporter

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/kafkaexporter"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/internal/health/healthtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An exporter whose rights come late loses nothing and continues on its own; it is not replaced more often than once a second.
func TestRightsComeLate(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "otlp_spans"))
	require.NoError(t, err)
	defer cluster.Close()
	denied, asked := true, 0
	cluster.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked++
		if !denied {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp, nil, true
	})

	f := NewFactory()
	cfg := f.CreateDefaultConfig().(*kafkaexporter.Config)
	cfg.ClientConfig.Brokers = cluster.ListenAddrs()
	cfg.Producer.RequiredAcks = -1
	cfg.QueueBatchConfig = configoptional.None[exporterhelper.QueueBatchConfig]()
	cfg.BackOffConfig.Enabled = false
	e, err := f.CreateTraces(t.Context(), exportertest.NewNopSettings(f.Type()), cfg)
	require.NoError(t, err)
	of := e.(traces).renewing
	clock := time.Unix(1000, 0)
	of.now = func() time.Time { return clock }
	host := healthtest.NewHost()
	require.NoError(t, e.Start(t.Context(), host))
	td := ptrace.NewTraces()
	td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("a")
	send := func() error { return e.ConsumeTraces(t.Context(), td) }
	refused := func() {
		t.Helper()
		err := send()
		require.ErrorContains(t, err, "CLUSTER_AUTHORIZATION_FAILED")
		require.False(t, consumererror.IsPermanent(err), "the spans are not wrong")
	}
	refused()
	denied = false
	refused() // the client keeps the answer
	assert.Equal(t, 1, asked)
	clock = clock.Add(renewEvery)
	refused()
	require.NoError(t, send())
	assert.Equal(t, 1, of.made)
	assert.Equal(t, []componentstatus.Status{componentstatus.StatusRecoverableError, componentstatus.StatusOK}, host.Seen())
	require.NoError(t, e.Shutdown(t.Context()))
}

// idle is an exporter that does nothing.
type idle struct {
	component.StartFunc
	component.ShutdownFunc
}

func (idle) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// An exporter of a topic that was deleted and created again is replaced: its client knows the topic by the first id.
func TestTopicMadeAnew(t *testing.T) {
	n := 0
	r, err := newRenewing(func() (*idle, error) { n++; return &idle{}, nil }, exportertest.NewNopSettings(NewFactory().Type()))
	require.NoError(t, err)
	clock := time.Unix(1000, 0)
	r.now = func() time.Time { return clock }
	require.NoError(t, r.Start(t.Context(), healthtest.NewHost()))
	clock = clock.Add(renewEvery)
	require.Error(t, r.send(t.Context(), func(*idle) error { return fmt.Errorf("error exporting: %w", kerr.UnknownTopicID) }))
	assert.Equal(t, 2, n)
	require.NoError(t, r.Shutdown(t.Context()))
}

// Only errors about the data are permanent.
func TestJudged(t *testing.T) {
	of := func(err error) error {
		return errors.Join(consumererror.NewPermanent(fmt.Errorf("error exporting: %w", err)))
	}
	for _, tt := range []struct {
		err       error
		permanent bool
	}{
		{nil, false},
		{errors.New("away"), false},
		{consumererror.NewPermanent(errors.New("cannot be marshaled")), true},
		{of(kerr.MessageTooLarge), true},
		{of(kerr.TopicAuthorizationFailed), false},
		{of(kerr.ClusterAuthorizationFailed), false},
		{of(kerr.SaslAuthenticationFailed), false},
		{of(kerr.InvalidRecord), true},
		{of(kerr.PolicyViolation), false},
	} {
		got := judged(tt.err)
		assert.Equal(t, tt.permanent, consumererror.IsPermanent(got), tt.err)
		if tt.err != nil {
			require.EqualError(t, got, tt.err.Error())
		}
	}
}
