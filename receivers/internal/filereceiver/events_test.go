package filereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// valued is a batch of points that also has GPU values.
type valued struct{ gauges }

func (valued) GPUs(to func(*spans.GPUValues)) { to(&spans.GPUValues{Host: "node-7"}) }

// beside is a batch with an event between its records.
func beside(b Batch) Batch { return &eventBatch{Batch: b, found: make([]event, 1)} }

// The labels of points are redacted, whether an event stands in the same batch or not.
func TestEventLeavesLabelsRedacted(t *testing.T) {
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	parts := Parts{Redact: redact.Config{Enabled: true, HashHosts: true, HashKey: "0123456789abcdef"}}
	sink := &consumertest.MetricsSink{}
	r, err := Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return parts, nil }, nil, sink)
	require.NoError(t, err)
	points := gauges{metrics: []string{"train.loss"}, ranks: 1, host: "-7"}
	for _, b := range []Batch{points, beside(points)} {
		sink.Reset()
		require.NoError(t, r.Deliver(b).Send(t.Context()))
		require.Equal(t, 1, sink.DataPointCount())
		m := sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		host := spans.AttrText(m.Gauge().DataPoints().At(0).Attributes(), spans.AttrHostName)
		assert.NotEmpty(t, host)
		assert.NotContains(t, host, "node-7")
	}
	assert.False(t, hasLabels(beside(nil)), "an event alone has no points")
}

// The GPU values of records reach a reader of GPU values, whether an event stands in the same batch or not.
func TestEventLeavesGPUs(t *testing.T) {
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	r, err := Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return Parts{}, nil }, nil, consumertest.NewNop())
	require.NoError(t, err)
	got := 0
	r.gpus = func(*spans.GPUValues) { got++ }
	for _, b := range []Batch{valued{}, beside(valued{}), beside(nil)} {
		require.NoError(t, r.Deliver(b).Send(t.Context()))
	}
	assert.Equal(t, 2, got)
}
