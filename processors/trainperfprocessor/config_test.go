package trainperfprocessor

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

func TestLoadConfig(t *testing.T) {
	file, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	for id, want := range map[string]*Config{
		"train_perf": createDefaultConfig().(*Config),
		"train_perf/all": {TQ: TQConfig{
			ComputeShareGood: 0.9, OverheadElevated: 0.1, OverheadHigh: 0.2, ThroughputGood: 1000, ThroughputLow: 50,
			Fluctuation: FluctuationConfig{Threshold: 0.3, Window: 50, MinSamples: 10},
		}},
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
	nan := math.NaN()
	for name, tt := range map[string]struct {
		change func(*TQConfig)
		want   error
	}{
		"percent instead of share": {func(c *TQConfig) { c.ComputeShareGood = 80 }, errComputeShare},
		"share NaN":                {func(c *TQConfig) { c.ComputeShareGood = nan }, errComputeShare},
		"overhead zero":            {func(c *TQConfig) { c.OverheadHigh = 0 }, errOverhead},
		"elevated NaN":             {func(c *TQConfig) { c.OverheadElevated = nan }, errOverhead},
		"elevated above high":      {func(c *TQConfig) { c.OverheadElevated = 0.5 }, errOverheadOrder},
		"throughput negative":      {func(c *TQConfig) { c.ThroughputLow = -1 }, errThroughput},
		"throughput swapped":       {func(c *TQConfig) { c.ThroughputLow = 600 }, errThroughput},
		"throughput NaN":           {func(c *TQConfig) { c.ThroughputGood = nan }, errThroughput},
		"fluctuation NaN":          {func(c *TQConfig) { c.Fluctuation.Threshold = nan }, errFluctuation},
		"window too large":         {func(c *TQConfig) { c.Fluctuation.Window = maxWindow + 1 }, errFluctuationCount},
		"more samples than window": {func(c *TQConfig) { c.Fluctuation.MinSamples = 101 }, errFluctuationCount},
		"one sample":               {func(c *TQConfig) { c.Fluctuation.MinSamples = 1 }, errFluctuationCount},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			tt.change(&cfg.TQ)
			assert.ErrorIs(t, cfg.Validate(), tt.want)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		err := (&Config{}).Validate()
		for _, want := range []error{errComputeShare, errOverhead, errThroughput, errFluctuation, errFluctuationCount} {
			require.ErrorIs(t, err, want)
		}
	})
}
