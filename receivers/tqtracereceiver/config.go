package tqtracereceiver

import (
	"errors"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of tq_trace.
type Config struct {
	tail.Config      `mapstructure:",squash"`
	spans.RunConfig  `mapstructure:",squash"`
	clock.ZoneConfig `mapstructure:",squash"`
	// Redact says what of the texts is not passed on.
	Redact redact.Config `mapstructure:"redact"`
}

// Validate says what is wrong, naming the keys.
func (c *Config) Validate() error {
	_, err := c.Location()
	return errors.Join(c.Config.Validate(), err)
}
