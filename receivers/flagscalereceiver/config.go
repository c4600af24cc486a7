package flagscalereceiver

import (
	"errors"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of flagscale.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	step.PointsConfig         `mapstructure:",squash"`
	// Redact configures the redaction of texts.
	Redact redact.Config `mapstructure:"redact"`
}

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate names the wrong keys.
func (c *Config) Validate() error {
	_, err := c.Location()
	return errors.Join(c.Check(), err)
}

const (
	summaryPrefix = "perf_summary_"
	tablePrefix   = "perf_metrics_"
	realtimeName  = "perf_realtime.log"
)

// isSummary says whether a file is the summary of a session, by its name. A summary is one object, written whole.
func isSummary(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, summaryPrefix) && strings.HasSuffix(name, ".json")
}
