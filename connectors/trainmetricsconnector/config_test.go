package trainmetricsconnector

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	alone, forEver := defaultConfig(), defaultConfig()
	require.NotEmpty(t, alone.Collector)
	alone.Collector = ""
	state := component.MustNewID("state_storage")
	forEver.MetricsExpiration = 0
	for id, want := range map[string]*Config{
		"train_metrics": defaultConfig(),
		"train_metrics/all": {
			Collector:            "gateway-0",
			Histogram:            HistogramConfig{Type: Explicit},
			MetricsFlushInterval: 5 * time.Second, MetricsExpiration: time.Minute, CardinalityLimit: 5000, DedupWindow: time.Hour,
			Storage: &state,
		},
		"train_metrics/alone":    alone,
		"train_metrics/for_ever": forEver,
	} {
		t.Run(id, func(t *testing.T) {
			sub, err := file.Sub(id)
			require.NoError(t, err)
			cfg := createDefaultConfig()
			require.NoError(t, sub.Unmarshal(cfg))
			require.NoError(t, cfg.(*Config).Validate())
			assert.Equal(t, want, cfg)
		})
	}
}

func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"no type":                         {func(c *Config) { c.Histogram.Type = "" }, errHistogram},
		"another type":                    {func(c *Config) { c.Histogram.Type = "native" }, errHistogram},
		"no flush":                        {func(c *Config) { c.MetricsFlushInterval = 0 }, errFlush},
		"negative expiration":             {func(c *Config) { c.MetricsExpiration = -1 }, errExpiration},
		"expiration before the flush":     {func(c *Config) { c.MetricsExpiration = time.Second }, errExpiration},
		"no series":                       {func(c *Config) { c.CardinalityLimit = 0 }, errCardinality},
		"two series of each metric":       {func(c *Config) { tight(c); c.CardinalityLimit-- }, errCardinality},
		"more buckets, more series":       {func(c *Config) { tight(c); c.Histogram.Type = Explicit }, errCardinality},
		"no window":                       {func(c *Config) { c.DedupWindow = 0 }, errDedup},
		"the first of several is not all": {func(c *Config) { c.DedupWindow, c.CardinalityLimit = 0, -1 }, errCardinality},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaultConfig()
			tt.change(cfg)
			assert.ErrorIs(t, cfg.Validate(), tt.want)
		})
	}
}
