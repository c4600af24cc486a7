package steps

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
)

func TestValidate(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for name, tt := range map[string]struct {
		change func(*Config)
		want   error
		key    string
	}{
		"formula":              {func(c *Config) { c.Formula = "palm" }, errFormula, "'train::formula'"},
		"attention":            {func(c *Config) { c.Attention = "half" }, errAttention, "'train::attention'"},
		"recompute":            {func(c *Config) { c.Recompute = "some" }, errRecompute, "'train::recompute'"},
		"peak in TFLOP/s":      {func(c *Config) { c.PeakFlops = 989 }, errPeakFlops, "'train::peak_flops'"},
		"peak negative":        {func(c *Config) { c.PeakFlops = -1 }, errPeakFlops, "'train::peak_flops'"},
		"peak NaN":             {func(c *Config) { c.PeakFlops = nan }, errPeakFlops, "'train::peak_flops'"},
		"peak infinite":        {func(c *Config) { c.PeakFlops = inf }, errPeakFlops, "'train::peak_flops'"},
		"world size":           {func(c *Config) { c.WorldSize = -8 }, errWorldSize, "'train::world_size'"},
		"disagreement":         {func(c *Config) { c.FlopsDisagreement = nan }, errDisagreement, "'train::flops_disagreement'"},
		"MFU in percent":       {func(c *Config) { c.MFULow = 30 }, errMFULow, "'train::mfu_low'"},
		"MFU NaN":              {func(c *Config) { c.MFULow = nan }, errMFULow, "'train::mfu_low'"},
		"window too large":     {func(c *Config) { c.Window = maxWindow + 1 }, errWindow, "'train::window'"},
		"window too small":     {func(c *Config) { c.Window = 9 }, errWindow, "'train::window'"},
		"more samples":         {func(c *Config) { c.MinSamples = 101 }, errWindow, "'train::min_samples'"},
		"drop":                 {func(c *Config) { c.ThroughputDrop = 1 }, errDrop, "'train::throughput_drop'"},
		"slowdown":             {func(c *Config) { c.Slowdown = 0 }, errSlowdown, "'train::slowdown'"},
		"loss":                 {func(c *Config) { c.LossSpike = inf }, errLossSpike, "'train::loss_spike'"},
		"model negative":       {func(c *Config) { c.Model.RouterTopK = -1 }, errModelNegative, "'train::model::moe_router_topk'"},
		"model without layers": {func(c *Config) { c.Model.HiddenSize = 4096 }, errModelMissing, "'train::model::num_layers'"},
		"model not counted": {
			func(c *Config) { c.Model.Model = perftest.Aquila; c.Model.HybridPattern = "MD" }, errModelUncounted,
			"(hybrid_layer_pattern MD)",
		},
		"model recompute": {func(c *Config) { c.Model.Recompute = "all" }, errModelRecompute, "'train::model::recompute_granularity'"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			tt.change(&cfg)
			err := errors.Join(cfg.Errors()...)
			require.ErrorIs(t, err, tt.want)
			assert.ErrorContains(t, err, tt.key)
		})
	}
	// Facts of the run alone describe no model: the log may.
	cfg := DefaultConfig()
	cfg.Model.GlobalBatchSize, cfg.Model.Type = 512, "aquila"
	require.NoError(t, errors.Join(cfg.Errors()...))
	// With a config.json, missing keys are known at the start only.
	cfg.Model.HiddenSize, cfg.Model.HFConfig = 4096, "config.json"
	assert.NoError(t, errors.Join(cfg.Errors()...))

	err := errors.Join((&Config{}).Errors()...)
	for _, want := range []error{errFormula, errAttention, errDisagreement, errWindow, errDrop, errSlowdown, errLossSpike} {
		require.ErrorIs(t, err, want)
	}
}
