package stepjoinprocessor

import (
	"errors"
	"fmt"
	"path"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// Config of the step_join processor.
type Config struct {
	// Wait is the time that a step waits, after the last span, for spans of other logs. Default 10s.
	Wait time.Duration `mapstructure:"wait"`
	// WaitLimit is the longest time after the last span that a window waits for collectives still to be sent, as announced by gateways. Afterwards the window
	// is partial. Default 2m.
	WaitLimit time.Duration `mapstructure:"wait_limit"`
	// Keep is the time for which past spans are remembered, for later steps: longer than the longest step. Default 15m.
	Keep time.Duration `mapstructure:"keep"`
	// Tolerance is by how much the clocks of two logs may differ. Default 1ms.
	Tolerance time.Duration `mapstructure:"tolerance"`
	// MaxBytes bounds the memory, approximately: a collective takes 136 bytes, a call of TransferQueue 800. Beyond the bound, closed windows are
	// forgotten, those idle for the longest time are closed early, and the oldest of the rest is dropped. Default 16 MiB.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// Slowest is the number of a step's slowest collectives and passes copied as spans of their own into the step's trace. Default 3.
	Slowest int `mapstructure:"slowest"`
	// Windows are further names of services' spans (with * for any text) that may contain other spans. Default: none.
	Windows []string `mapstructure:"windows"`
	// Leaves maps names of services' spans to the kind of their time in a breakdown, such as data_loading. Default: none.
	Leaves map[string]string `mapstructure:"leaves"`
	// Storage is the id of a storage extension for the facts of steps, and for the spans still to be sent. Default: none, and a crash leaves roots unsent, and
	// steps without the facts before the crash.
	Storage *component.ID `mapstructure:"storage"`
}

// createDefaultConfig returns a Config with the defaults.
func createDefaultConfig() component.Config {
	return &Config{Wait: 10 * time.Second, WaitLimit: 2 * time.Minute, Keep: 15 * time.Minute, Tolerance: time.Millisecond, MaxBytes: 16 << 20, Slowest: 3}
}

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Wait <= 0 {
		errs = append(errs, fmt.Errorf("'wait' is %s: set a time above 0, such as 10s", c.Wait))
	}
	if c.WaitLimit < c.Wait {
		errs = append(errs, fmt.Errorf("'wait_limit' is %s, below 'wait' (%s): set a longer time, such as 2m", c.WaitLimit, c.Wait))
	}
	if c.Keep < c.Wait {
		errs = append(errs, fmt.Errorf("'keep' is %s, below 'wait' (%s): set a time that is longer than the longest step, such as 15m", c.Keep, c.Wait))
	}
	if c.Tolerance < 0 {
		errs = append(errs, fmt.Errorf("'tolerance' is %s: set 0 or more, such as 1ms", c.Tolerance))
	}
	if c.MaxBytes < 1<<20 {
		errs = append(errs, fmt.Errorf("'max_bytes' is %d: set at least 1048576 (1 MiB)", c.MaxBytes))
	}
	if c.Slowest < 0 || c.Slowest > 100 {
		errs = append(errs, fmt.Errorf("'slowest' is %d: set 0 to 100", c.Slowest))
	}
	for _, name := range c.Windows {
		if _, err := path.Match(name, ""); err != nil || name == "" {
			errs = append(errs, fmt.Errorf("'windows' has %q: name spans, with * for any text", name))
		}
	}
	for name, kind := range c.Leaves {
		if _, err := path.Match(name, ""); err != nil || name == "" {
			errs = append(errs, fmt.Errorf("'leaves' has %q: name spans, with * for any text", name))
		}
		if _, ok := leafKindNamed(kind); !ok {
			errs = append(errs, fmt.Errorf("'leaves' says that %q is %q: take one of %s", name, kind, leafKinds()))
		}
	}
	return errors.Join(errs...)
}

// leafKindNamed returns the kind with a name of Config.Leaves, such as data_loading; false: no kind has the name.
func leafKindNamed(name string) (breakdown.Kind, bool) {
	for k := range breakdown.Unattributed {
		if k.String() == name {
			return k, true
		}
	}
	return breakdown.Unattributed, false
}

// leafKinds returns the names allowed in Config.Leaves.
func leafKinds() (names []string) {
	for k := range breakdown.Unattributed {
		names = append(names, k.String())
	}
	return names
}
