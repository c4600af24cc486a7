package trainmetricsconnector

import (
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/spans"
)

// Config of the train_metrics connector.
type Config struct {
	// Collector is the name of this collector among those that write metrics of the same runs: the label trainbridge_collector of all series. It must stay the
	// same when the collector starts again. Default: TRAINBRIDGE_COLLECTOR, else the host's name. Empty: no such label, where there is no other collector.
	Collector string `mapstructure:"collector"`
	// Histogram says what histograms are sent as.
	Histogram HistogramConfig `mapstructure:"histogram"`
	// MetricsFlushInterval is how often the values are sent on. Default 15s.
	MetricsFlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// MetricsExpiration: a series without a new span for this long is reported as ended and forgotten, or for four times the longest step of its run, at most 24
	// hours, where that is longer. 0 keeps all. Default 30m.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`
	// CardinalityLimit is how many series all metrics together may have, as Prometheus counts them: each bucket of an explicit histogram is one. Series that
	// find no room are summed in one point per metric with otel.metric.overflow=true, which is within the limit. Default 7000.
	CardinalityLimit int `mapstructure:"cardinality_limit"`
	// DedupWindow is how long a span id is remembered, so that a batch sent again is not counted again. Default 10m.
	DedupWindow time.Duration `mapstructure:"dedup_window"`
	// Storage is the id of a storage extension that keeps what was counted, and of which spans: after a crash or a restart counters go on, and what comes again
	// is not counted again. Default: none, and they begin anew.
	Storage *component.ID `mapstructure:"storage"`
}

// HistogramConfig says what histograms are sent as.
type HistogramConfig struct {
	// Type is exponential or explicit. Exponential ones are Prometheus' native histograms, one series each, whose quantiles are within 5 %. Explicit ones, within
	// 10 %, are for servers that have none: each bucket is a series. Default exponential.
	Type HistogramType `mapstructure:"type"`
}

// HistogramType is what histograms are sent as: the words of contrib's span_metrics.
type HistogramType string

// The types of histograms.
const (
	Exponential HistogramType = "exponential"
	Explicit    HistogramType = "explicit"
)

func defaultConfig() *Config {
	return &Config{
		Collector:            spans.Collector(),
		Histogram:            HistogramConfig{Type: Exponential},
		MetricsFlushInterval: 15 * time.Second,
		MetricsExpiration:    30 * time.Minute,
		CardinalityLimit:     7000,
		DedupWindow:          10 * time.Minute,
	}
}

var (
	errHistogram   = errors.New("'histogram::type' must be exponential, or explicit for a server without native histograms")
	errFlush       = errors.New("'metrics_flush_interval' must be above 0, 15s by default")
	errExpiration  = errors.New("'metrics_expiration' must be 0 (never) or at least 'metrics_flush_interval': a series would end before it was sent")
	errCardinality = errors.New("'cardinality_limit' is too small, 7000 by default")
	errDedup       = errors.New("'dedup_window' must be above 0, 10m by default: without it a retried batch counts twice")
)

var _ component.Config = (*Config)(nil)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate returns every error of the config, joined.
func (c *Config) Validate() error {
	var errs []error
	if t := c.Histogram.Type; t != Exponential && t != Explicit {
		errs = append(errs, fmt.Errorf("%w, not %q", errHistogram, t))
	}
	if c.MetricsFlushInterval <= 0 {
		errs = append(errs, errFlush)
	}
	if c.MetricsExpiration != 0 && c.MetricsExpiration < max(c.MetricsFlushInterval, 1) {
		errs = append(errs, errExpiration)
	}
	if _, point := costs(c.Histogram.Type); c.CardinalityLimit < minKept*point {
		errs = append(errs, fmt.Errorf(
			"%w: with %s histograms it must be at least %d, for two series of each metric", errCardinality, c.Histogram.Type, minKept*point))
	}
	if c.DedupWindow <= 0 {
		errs = append(errs, errDedup)
	}
	return errors.Join(errs...)
}
