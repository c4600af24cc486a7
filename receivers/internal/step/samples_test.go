package step

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/trainbridge/trainbridge/spans"
)

// GPU metrics of logs are nvml's: a different unit, type or description would make another metric in Prometheus.
func TestGPUMetricsAreThoseOfNVML(t *testing.T) {
	text, err := os.ReadFile("../../nvmlreceiver/metadata.yaml")
	require.NoError(t, err)
	var nvml struct {
		Metrics map[string]struct {
			Description, Unit string
			Gauge, Sum        *struct {
				Type      string `yaml:"value_type"`
				Monotonic bool
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &nvml))
	for i := range gpuMetrics {
		m := &gpuMetrics[i]
		want, ok := nvml.Metrics[m.Name]
		require.True(t, ok, m.Name)
		assert.Equal(t, want.Unit, m.Unit, m.Name)
		assert.Equal(t, want.Description, m.Description, m.Name)
		values := want.Gauge
		if values == nil {
			values = want.Sum
		}
		assert.Equal(t, values.Type == "int", m.integer, m.Name)
		instrument := spans.Gauge
		switch {
		case want.Sum != nil && want.Sum.Monotonic:
			instrument = spans.Counter
		case want.Sum != nil:
			instrument = spans.UpDownCounter
		}
		assert.Equal(t, instrument, m.Instrument, m.Name)
	}
}
