package tq

import "errors"

// Config holds the thresholds of the verdicts about TransferQueue functions. The defaults are from verl's guide to TQ performance monitoring.
type Config struct {
	// OverheadElevated is the share of time in GET and PUT from which on a warning is given. 0..1, default 0.20.
	OverheadElevated float64 `mapstructure:"overhead_elevated"`
	// OverheadHigh is the share of time in GET and PUT above which the verdict is bad. 0..1, default 0.30.
	OverheadHigh float64 `mapstructure:"overhead_high"`
	// ThroughputLow is the throughput of a client operation below which the verdict is bad. MiB/s (the unit of the log's throughput_mbps), default 100.
	ThroughputLow float64 `mapstructure:"throughput_low_mibps"`
	// Fluctuation says when GET or PUT times count as unstable.
	Fluctuation FluctuationConfig `mapstructure:"fluctuation"`
}

// FluctuationConfig says when GET or PUT times count as unstable.
type FluctuationConfig struct {
	// Threshold is the coefficient of variation (standard deviation / mean) above which times fluctuate. Default 0.5.
	Threshold float64 `mapstructure:"threshold"`
	// Window is the number of recent operations of one function and stage compared. 2..10000, default 100.
	Window int `mapstructure:"window"`
	// MinSamples is the least number of operations for a verdict. 2..window, default 20.
	MinSamples int `mapstructure:"min_samples"`
}

// maxWindow keeps the exact sums of window.go within 128 bits.
const maxWindow = 10_000

// DefaultConfig returns the defaults.
func DefaultConfig() Config {
	return Config{
		OverheadElevated: 0.20, OverheadHigh: 0.30, ThroughputLow: 100,
		Fluctuation: FluctuationConfig{Threshold: 0.5, Window: 100, MinSamples: 20},
	}
}

var (
	errOverhead = errors.New("'tq::overhead_elevated' and 'tq::overhead_high' must be above 0 and at most 1: they are shares of time, write 0.30 " +
		"for 30 %")
	errOverheadOrder    = errors.New("'tq::overhead_elevated' must not be above 'tq::overhead_high': the warning comes before the bad verdict")
	errThroughput       = errors.New("'tq::throughput_low_mibps' must be above 0 (MiB/s)")
	errFluctuation      = errors.New("'tq::fluctuation::threshold' must be above 0: it is standard deviation over mean, 0.5 by default")
	errFluctuationCount = errors.New("'tq::fluctuation::window' must be 2 to 10000, and 'tq::fluctuation::min_samples' from 2 up to the window")
)

// Errors returns all errors of the config.
func (c *Config) Errors() []error {
	var errs []error
	// Written to be false for NaN.
	share := func(x float64) bool { return x > 0 && x <= 1 }
	if !share(c.OverheadElevated) || !share(c.OverheadHigh) {
		errs = append(errs, errOverhead)
	} else if c.OverheadElevated > c.OverheadHigh {
		errs = append(errs, errOverheadOrder)
	}
	if !(c.ThroughputLow > 0) {
		errs = append(errs, errThroughput)
	}
	f := &c.Fluctuation
	if !(f.Threshold > 0) {
		errs = append(errs, errFluctuation)
	}
	if f.Window < 2 || f.Window > maxWindow || f.MinSamples < 2 || f.MinSamples > f.Window {
		errs = append(errs, errFluctuationCount)
	}
	return errs
}
