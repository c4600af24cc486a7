package collectives

import (
	"errors"
	"fmt"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// JoinConfig is the configuration of joining and judging collectives, squashed into the config of every component that joins collectives. SampleRate to
// AnomalyThreshold have the meaning of VCCL's NCCL_TELEMETRY_… variables.
type JoinConfig struct {
	// Collector is the name of this collector among all that join collectives of the same runs: a label of metrics learned from collectives. Default:
	// TRAINBRIDGE_COLLECTOR, else the host's name. Empty: no label, for a single collector.
	Collector string `mapstructure:"collector"`
	// SampleRate is the share of collectives to draw, 0..1, with all ranks or none: of the rest only the root is sent, for components that join and count.
	// Collectives with errors, retries or anything unusual are always drawn. Default 1.
	SampleRate float64 `mapstructure:"sample_rate"`
	// WindowSize is how many collectives of a communicator scores and baselines look back on. 10..512, default 50.
	WindowSize int `mapstructure:"window_size"`
	// AnomalyDetection looks for slow ranks and low bandwidth. Default true.
	AnomalyDetection bool `mapstructure:"anomaly_detection"`
	// AnomalyThreshold is the deviation of an anomaly in (robust) standard deviations below the baseline, for each of three bandwidths in a row. Default 3.5.
	AnomalyThreshold float64 `mapstructure:"anomaly_threshold"`
	// HangTimeout is how long a collective waits for missing ranks before it leaves without them. Default 5m.
	HangTimeout time.Duration `mapstructure:"hang_timeout"`
	// CorrectClock corrects the times of hosts by the estimated offsets. Default false: offsets are attributes.
	CorrectClock bool `mapstructure:"correct_clock"`
	// MaxStateBytes bounds the memory of waiting collectives; beyond, the oldest leave incomplete. Default 64 MiB.
	MaxStateBytes int64 `mapstructure:"max_state_bytes"`
}

// DefaultJoinConfig returns the default JoinConfig.
func DefaultJoinConfig() JoinConfig {
	return JoinConfig{
		Collector: spans.Collector(), SampleRate: 1, WindowSize: 50, AnomalyDetection: true, AnomalyThreshold: 3.5, HangTimeout: 5 * time.Minute,
		MaxStateBytes: 64 << 20,
	}
}

// MinWindow is the smallest JoinConfig.WindowSize, and the number of collectives of a communicator before ranks have scores. MinState is the smallest
// JoinConfig.MaxStateBytes.
const (
	MinWindow = 10
	maxWindow = 512
	MinState  = 1 << 20
)

var (
	errSampleRate    = errors.New("'sample_rate' must be 0 to 1, such as 0.1")
	errWindow        = fmt.Errorf("'window_size' must be %d to %d, 50 by default", MinWindow, maxWindow)
	errThreshold     = errors.New("'anomaly_threshold' must be greater than zero: standard deviations, 3.5 by default")
	errHangTimeout   = errors.New("'hang_timeout' must be greater than zero, such as 5m")
	errMaxStateBytes = fmt.Errorf("'max_state_bytes' must be at least %d", MinState)
)

// Check calls check for each key, with whether its value is allowed and the error for a value that is not; the error names the key.
func (c *JoinConfig) Check(check func(ok bool, err error)) {
	check(c.SampleRate >= 0 && c.SampleRate <= 1, errSampleRate)
	check(c.WindowSize >= MinWindow && c.WindowSize <= maxWindow, errWindow)
	check(c.AnomalyThreshold > 0, errThreshold)
	check(c.HangTimeout > 0, errHangTimeout)
	check(c.MaxStateBytes >= MinState, errMaxStateBytes)
}
