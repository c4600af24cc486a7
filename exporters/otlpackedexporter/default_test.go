package otlpackedexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
)

// An exporter that changes data makes the fan-out copy all of it for the others, and a queue that batches is one.
func TestDefaultNeedsNoCopies(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	queue := cfg.QueueConfig.Get()
	require.NotNil(t, queue)
	assert.Equal(t, exporterhelper.RequestSizerTypeBytes, queue.Sizer)
	assert.EqualValues(t, 64<<20, queue.QueueSize)
	assert.True(t, queue.WaitForResult)
	assert.True(t, queue.BlockOnOverflow)
	assert.False(t, queue.Batch.HasValue())

	set := exportertest.NewNopSettings(metadata.Type)
	traces, err := NewFactory().CreateTraces(t.Context(), set, cfg)
	require.NoError(t, err)
	assert.False(t, traces.Capabilities().MutatesData)
	metrics, err := NewFactory().CreateMetrics(t.Context(), set, cfg)
	require.NoError(t, err)
	assert.False(t, metrics.Capabilities().MutatesData)
}
