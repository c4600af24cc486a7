package tqtracereceiver

import (
	"fmt"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of tq_trace.
type Config struct {
	tail.Config     `mapstructure:",squash"`
	spans.RunConfig `mapstructure:",squash"`
	// Timezone is the IANA name of the zone in which the job's logger prints its stamps. Default: the collector's local zone.
	Timezone string `mapstructure:"timezone"`
}

// Validate says what is wrong, naming the keys.
func (c *Config) Validate() error {
	if err := c.Config.Validate(); err != nil {
		return err
	}
	_, err := c.location()
	return err
}

func (c *Config) location() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("'timezone': %w: use an IANA name such as Asia/Shanghai, or leave it out for the local zone", err)
	}
	return loc, nil
}
