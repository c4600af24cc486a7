package clock

import (
	"fmt"
	"time"
)

// ZoneConfig says how to read stamps without a zone. It is squashed into the config of every file receiver.
type ZoneConfig struct {
	// Timezone is the IANA name of the zone in which the job's logger prints its stamps. Default: the collector's local zone.
	Timezone string `mapstructure:"timezone"`
}

// Location returns the zone.
func (c ZoneConfig) Location() (*time.Location, error) {
	if c.Timezone == "" {
		return time.Local, nil
	}
	loc, err := time.LoadLocation(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("'timezone': %w: use an IANA name such as Asia/Shanghai, or leave it out for the local zone", err)
	}
	return loc, nil
}
