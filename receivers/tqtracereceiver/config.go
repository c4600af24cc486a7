package tqtracereceiver

import (
	"errors"

	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of tq_trace.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	// Redact configures the redaction of texts.
	Redact redact.Config `mapstructure:"redact"`
}

// Unmarshal returns an error for durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns an error that names the wrong keys.
func (c *Config) Validate() error {
	_, err := c.Location()
	return errors.Join(c.Check(), err)
}
