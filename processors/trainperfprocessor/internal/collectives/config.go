package collectives

import (
	"errors"
	"math"
	"time"
)

// Config holds the thresholds of the verdicts about collectives. Verdicts that need a window are the nccl receiver's.
type Config struct {
	// LateTransfers: a collective whose last rank came later than the transfer took, times this, gets a warning. Default 1; 0: never.
	LateTransfers float64 `mapstructure:"late_transfers"`
	// LateMin: no rank is late that came at most this long after the first. Default 1ms.
	LateMin time.Duration `mapstructure:"late_min"`
	// BandwidthDisagreement is how far the log's bandwidth may be from the recomputed one before a verdict says so. Relative, default 0.05; 0: never.
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

// Errors are what is wrong with the config.
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
