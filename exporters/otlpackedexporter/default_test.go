package otlpackedexporter

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/trainbridge/trainbridge/exporters/otlpackedexporter/internal/metadata"
)

// For an exporter that changes data the fan-out copies all of it for the other exporters, and a queue that batches makes an exporter change data.
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
