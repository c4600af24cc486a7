package collectives

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tt := range map[string]struct {
		change func(*Config)
		want   error
		key    string
	}{
		"transfers negative":    {func(c *Config) { c.LateTransfers = -1 }, errTransfers, "'nccl::late_transfers'"},
		"transfers NaN":         {func(c *Config) { c.LateTransfers = nan }, errTransfers, "'nccl::late_transfers'"},
		"transfers infinite":    {func(c *Config) { c.LateTransfers = inf }, errTransfers, "'nccl::late_transfers'"},
		"minimum negative":      {func(c *Config) { c.LateMin = -1 }, errLateMin, "'nccl::late_min'"},
		"disagreement negative": {func(c *Config) { c.BandwidthDisagreement = -0.1 }, errDisagreement, "'nccl::bandwidth_disagreement'"},
		"disagreement NaN":      {func(c *Config) { c.BandwidthDisagreement = nan }, errDisagreement, "'nccl::bandwidth_disagreement'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := errors.Join(cfg.Errors()...)
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	cfg := DefaultConfig()
	cfg = Config{}
	assert.NoError(t, errors.Join(cfg.Errors()...))
}
