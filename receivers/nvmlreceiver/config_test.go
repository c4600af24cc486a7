package nvmlreceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestConfig(t *testing.T) {
	for name, tt := range map[string]struct {
		yaml    map[string]any
		check   func(*Config) bool
		message string
	}{
		"nothing": {nil, func(c *Config) bool {
			return c.CollectionInterval == 10*time.Second && c.Timeout == 5*time.Second && c.ErrorMode == "ignore" && c.Devices == nil && c.Metrics.HwPower.Enabled
		}, ""},
		"devices": {map[string]any{"devices": []any{"GPU-8f3c", "H100", "0"}}, func(c *Config) bool { return len(c.Devices) == 3 }, ""},
		"indices": {map[string]any{"devices": []any{0, 3}}, func(c *Config) bool { return c.Devices[1] == "3" }, ""},
		"a metric off": {
			map[string]any{"metrics": map[string]any{"trainbridge.gpu.pcie.throughput": map[string]any{"enabled": false}}},
			func(c *Config) bool {
				return !c.Metrics.TrainbridgeGpuPcieThroughput.Enabled && c.Metrics.HwPower.Enabled
			}, "",
		},
		"error mode": {
			map[string]any{"error_mode": "silent"}, nil, `'error_mode' must be ignore (idle without a driver) or propagate (do not start without one), not "silent"`,
		},
		"empty device": {map[string]any{"devices": []any{"0", " "}}, nil, "'devices::1' is empty: write an index (0)"},
		"interval":     {map[string]any{"collection_interval": "-1s"}, nil, "collection_interval"},
		"no metric":    {map[string]any{"metrics": map[string]any{"hw.gpu.power": map[string]any{"enabled": true}}}, nil, "hw.gpu.power"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			err := confmap.NewFromStringMap(tt.yaml).Unmarshal(cfg)
			if err == nil {
				err = confmap.Validate(cfg)
			}
			if tt.message != "" {
				require.ErrorContains(t, err, tt.message)
				return
			}
			require.NoError(t, err)
			assert.True(t, tt.check(cfg), "%+v", cfg)
		})
	}
}

func TestMatches(t *testing.T) {
	for _, tt := range []struct {
		device Device
		want   bool
	}{
		{"3", true},
		{" 3 ", true},
		{"0", false},
		{"GPU-8F3C", true},
		{"gpu-8f3c01", true},
		{"GPU-9", false},
		{"MIG-8f3c", false},
		{"H100", true},
		{"nvidia h100 80gb hbm3", true},
		{"A100", false},
	} {
		assert.Equal(t, tt.want, tt.device.matches(3, "GPU-8f3c01", "NVIDIA H100 80GB HBM3"), string(tt.device))
	}
	// A name of digits and letters is no index.
	assert.True(t, Device("4090").matches(4090, "", ""))
	assert.True(t, Device("RTX 4090").matches(0, "", "NVIDIA GeForce RTX 4090"))
}
