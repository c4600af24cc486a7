package collectives

import (
	"errors"
	"math"
	"time"
)

// Config holds the thresholds of the verdicts about collectives. Verdicts over a window are the nccl receiver's.
type Config struct {
	// LateTransfers is the limit of the last rank's lateness, in transfer times: above it, the collective gets a warning. Default 1; 0: never.
	LateTransfers float64 `mapstructure:"late_transfers"`
	// LateMin: lateness up to LateMin is ignored. Default 1ms.
	LateMin time.Duration `mapstructure:"late_min"`
	// BandwidthDisagreement is the relative difference between the logged and the recomputed bandwidth above which a verdict is given. Default 0.05; 0: never.
	BandwidthDisagreement float64 `mapstructure:"bandwidth_disagreement"`
}

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{LateTransfers: 1, LateMin: time.Millisecond, BandwidthDisagreement: 0.05}
}

var (
	errTransfers    = errors.New("'nccl::late_transfers' must be 0 (never) or above: it is relative to the time of the transfer, 1 by default")
	errLateMin      = errors.New("'nccl::late_min' must not be below 0: it is a duration, 1ms by default")
	errDisagreement = errors.New("'nccl::bandwidth_disagreement' must be 0 (never) or above: it is relative, write 0.05 for 5 %")
)

// Errors returns all errors of the config.
func (c *Config) Errors() []error {
	var errs []error
	limit := func(x float64) bool { return x >= 0 && !math.IsInf(x, 1) } // NaN is no limit
	if !limit(c.LateTransfers) {
		errs = append(errs, errTransfers)
	}
	if c.LateMin < 0 {
		errs = append(errs, errLateMin)
	}
	if !limit(c.BandwidthDisagreement) {
		errs = append(errs, errDisagreement)
	}
	return errs
}
