package verdictlogsconnector

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"train_verdicts":     defaultConfig(),
		"train_verdicts/all": {RateLimit: 0.5, DedupWindow: time.Hour},
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
		"no record":    {func(c *Config) { c.RateLimit = 0 }, errRate},
		"no number":    {func(c *Config) { c.RateLimit = math.NaN() }, errRate},
		"no limit":     {func(c *Config) { c.RateLimit = math.Inf(1) }, errRate},
		"no window":    {func(c *Config) { c.DedupWindow = 0 }, errDedup},
		"both: a rate": {func(c *Config) { c.DedupWindow, c.RateLimit = 0, 0 }, errRate},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaultConfig()
			tt.change(cfg)
			assert.ErrorIs(t, cfg.Validate(), tt.want)
		})
	}
}
