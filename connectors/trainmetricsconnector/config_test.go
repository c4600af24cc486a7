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
			Histogram:            HistogramConfig{Buckets: []time.Duration{10 * time.Millisecond, 100 * time.Millisecond, time.Second}},
			MetricsFlushInterval: 5 * time.Second, MetricsExpiration: time.Minute, CardinalityLimit: 1000, DedupWindow: time.Hour,
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
		"no buckets":                      {func(c *Config) { c.Histogram.Buckets = nil }, errBuckets},
		"bucket zero":                     {func(c *Config) { c.Histogram.Buckets = []time.Duration{0, 1} }, errBuckets},
		"buckets not ascending":           {func(c *Config) { c.Histogram.Buckets = []time.Duration{1, 2, 2} }, errBuckets},
		"too many buckets":                {func(c *Config) { c.Histogram.Buckets = make([]time.Duration, maxBuckets+1) }, errBuckets},
		"no flush":                        {func(c *Config) { c.MetricsFlushInterval = 0 }, errFlush},
		"negative expiration":             {func(c *Config) { c.MetricsExpiration = -1 }, errExpiration},
		"expiration before the flush":     {func(c *Config) { c.MetricsExpiration = time.Second }, errExpiration},
		"no series":                       {func(c *Config) { c.CardinalityLimit = 0 }, errCardinality},
		"two series of each metric":       {func(c *Config) { tight(c); c.CardinalityLimit-- }, errCardinality},
		"more buckets, more series":       {func(c *Config) { tight(c); c.Histogram.Buckets = append(c.Histogram.Buckets, time.Hour) }, errCardinality},
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
