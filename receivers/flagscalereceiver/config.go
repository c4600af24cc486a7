package flagscalereceiver

import (
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of flagscale.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	// Redact says what of the texts is not passed on.
	Redact redact.Config `mapstructure:"redact"`
}

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate says what is wrong, naming the keys.
func (c *Config) Validate() error {
	_, err := c.Location()
	return errors.Join(c.Check(), err)
}

const (
	summaryPrefix = "perf_summary_"
	summaryGlob   = summaryPrefix + "*.json"
	tablePrefix   = "perf_metrics_"
	realtimeName  = "perf_realtime.log"
)

// withSummaries adds to the documents what the include globs reach of the summaries, so that `include: [dir/*]` is all there is to say.
func (c *Config) withSummaries() tail.Config {
	out := c.Config
	out.Document = slices.Clone(c.Document)
	for _, g := range slices.Concat(c.Include, c.IncludeByContent) {
		dir, last := path.Split(filepath.ToSlash(filepath.Clean(g)))
		doc := dir + summaryGlob
		switch reached, err := doublestar.Match(last, summaryPrefix+"20260612_103000.json"); {
		case strings.HasPrefix(last, summaryPrefix):
			doc = g
		case err != nil || !reached:
			continue
		case last == "**":
			doc = g + "/" + summaryGlob
		}
		if doublestar.ValidatePattern(doc) { // a glob may have a slash in braces
			out.Document = append(out.Document, doc)
		}
	}
	return out
}
