package otlpackedexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
)

// A queue measures each request twice and hands it to another goroutine, while the caller waits anyway, so the queue is off by default.
func TestQueueIsOnRequest(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.False(t, cfg.QueueConfig.HasValue())
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"endpoint": "tempo:4317", "sending_queue": map[string]any{"num_consumers": 3}}).Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	queue := cfg.QueueConfig.Get()
	require.NotNil(t, queue)
	assert.Equal(t, 3, queue.NumConsumers)
	assert.Equal(t, exporterhelper.RequestSizerTypeBytes, queue.Sizer)
	assert.EqualValues(t, 64<<20, queue.QueueSize)
	assert.True(t, queue.WaitForResult)
	assert.True(t, queue.BlockOnOverflow)
	assert.False(t, queue.Batch.HasValue())
}

// For an exporter that mutates data, the fan-out copies everything for the other exporters.
func TestDefaultNeedsNoCopies(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	set := exportertest.NewNopSettings(metadata.Type)
	traces, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	assert.False(t, traces.Capabilities().MutatesData)
	metrics, err := NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	assert.False(t, metrics.Capabilities().MutatesData)
}
