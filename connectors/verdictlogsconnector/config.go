package verdictlogsconnector

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
)

// Config of the train_verdicts connector.
type Config struct {
	// RateLimit is the number of records per second, on average, with a burst of ten seconds. Records over the limit are counted. Default 100.
	RateLimit float64 `mapstructure:"rate_limit"`
	// DedupWindow is how long a verdict about a span is remembered: a batch sent again makes no second record. Default 10m.
	DedupWindow time.Duration `mapstructure:"dedup_window"`
}

func defaultConfig() *Config {
	return &Config{RateLimit: 100, DedupWindow: 10 * time.Minute}
}

const maxRate = 1e6

var (
	errRate  = errors.New("'rate_limit' must be 0.1 to 1000000 records a second, 100 by default")
	errDedup = errors.New("'dedup_window' must be above 0, 10m by default: without it a retried batch is recorded twice")
)

var _ component.Config = (*Config)(nil)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	if !(c.RateLimit >= 0.1 && c.RateLimit <= maxRate) { // also NaN
		errs = append(errs, errRate)
	}
	if c.DedupWindow <= 0 {
		errs = append(errs, errDedup)
	}
	return errors.Join(errs...)
}
