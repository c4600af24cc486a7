package runlakeexporter

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/internal/writable"
)

// Config of the run_lake exporter.
type Config struct {
	// Directory is the lake, an existing directory. Gateways with parts of the same runs need the same directory. Required.
	Directory string `mapstructure:"directory"`
	// Silence is how long no span of a run comes before the run is written. Default 10m.
	Silence time.Duration `mapstructure:"silence"`
	// Keep is how long the spans of a silent run are kept: a run that goes on within this time is written anew, as a whole. Default 168h, a week.
	Keep time.Duration `mapstructure:"keep"`
	// MaxBytes bounds the spans of all runs on disk. A run without room is left out of the lake, and its spans are counted. Default 10 GiB.
	MaxBytes int64 `mapstructure:"max_bytes"`
	// Labels are the attributes of resources that become labels of the run, beside those of Slurm and Kubernetes. Default none.
	Labels []string `mapstructure:"labels"`
}

func defaultConfig() *Config {
	return &Config{Silence: 10 * time.Minute, Keep: 7 * 24 * time.Hour, MaxBytes: 10 << 30}
}

const minBytes = 1 << 20

var (
	errDirectory = errors.New("'directory' is missing: name an existing directory for the lake, such as /lake")
	errSilence   = errors.New("'silence' must be 1s or more, 10m by default")
	errKeep      = errors.New("'keep' must not be shorter than 'silence', 168h by default")
	errBytes     = errors.New("'max_bytes' must be at least 1048576, 10737418240 by default")
)

var _ component.Config = (*Config)(nil)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	if c.Directory == "" {
		errs = append(errs, errDirectory)
	} else if err := writable.Dir(c.Directory); err != nil {
		errs = append(errs, fmt.Errorf("'directory' %s: %w: make the directory, and give the collector the right to write there", c.Directory, err))
	}
	if c.Silence < time.Second {
		errs = append(errs, errSilence)
	}
	if c.Keep < c.Silence {
		errs = append(errs, errKeep)
	}
	if c.MaxBytes < minBytes {
		errs = append(errs, errBytes)
	}
	return errors.Join(errs...)
}
