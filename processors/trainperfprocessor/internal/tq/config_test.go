package tq

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	nan := math.NaN()
	for name, tt := range map[string]struct {
		change func(*Config)
		want   error
	}{
		"percent instead of share": {func(c *Config) { c.OverheadHigh = 30 }, errOverhead},
		"overhead zero":            {func(c *Config) { c.OverheadHigh = 0 }, errOverhead},
		"elevated NaN":             {func(c *Config) { c.OverheadElevated = nan }, errOverhead},
		"elevated above high":      {func(c *Config) { c.OverheadElevated = 0.5 }, errOverheadOrder},
		"throughput negative":      {func(c *Config) { c.ThroughputLow = -1 }, errThroughput},
		"throughput NaN":           {func(c *Config) { c.ThroughputLow = nan }, errThroughput},
		"fluctuation NaN":          {func(c *Config) { c.Fluctuation.Threshold = nan }, errFluctuation},
		"window too large":         {func(c *Config) { c.Fluctuation.Window = maxWindow + 1 }, errFluctuationCount},
		"more samples than window": {func(c *Config) { c.Fluctuation.MinSamples = 101 }, errFluctuationCount},
		"one sample":               {func(c *Config) { c.Fluctuation.MinSamples = 1 }, errFluctuationCount},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			assert.ErrorIs(t, errors.Join(cfg.Errors()...), tt.want)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		err := errors.Join((&Config{}).Errors()...)
		for _, want := range []error{errOverhead, errThroughput, errFluctuation, errFluctuationCount} {
			require.ErrorIs(t, err, want)
		}
	})
}
