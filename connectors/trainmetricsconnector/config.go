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
	// Collector is the name of this collector among all that write metrics of the same runs: the label trainbridge_collector of all series. The name must survive
	// a restart. Default: TRAINBRIDGE_COLLECTOR, else the host's name. Empty: no label, for a single collector.
	Collector string `mapstructure:"collector"`
	// Histogram is the form of histograms.
	Histogram HistogramConfig `mapstructure:"histogram"`
	// MetricsFlushInterval is how often the values are sent on. Default 15s.
	MetricsFlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// MetricsExpiration: a series without a new span for this long, or for four times the longest step of its run if longer (24 hours at most), is reported as
	// ended and forgotten. 0 keeps all. Default 30m.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`
	// CardinalityLimit bounds the series of all metrics together, as Prometheus counts them: each bucket of an explicit histogram is a series. Series beyond are
	// summed in a point per metric with otel.metric.overflow=true, within the limit. Default 7000.
	CardinalityLimit int `mapstructure:"cardinality_limit"`
	// DedupWindow is how long a span id is remembered, to count a batch that is sent again only once. Default 10m.
	DedupWindow time.Duration `mapstructure:"dedup_window"`
	// Storage is the id of a storage extension for the counts and the ids of counted spans: after a crash or a restart counters continue, and spans sent again are
	// not counted again. Default: none, and counters restart at 0.
	Storage *component.ID `mapstructure:"storage"`
}

// HistogramConfig is the form of histograms.
type HistogramConfig struct {
	// Type is exponential or explicit. Exponential ones are Prometheus' native histograms, one series each, with quantiles within 5 %. Explicit ones, within 10 %,
	// are for servers without native histograms: each bucket is a series. Default exponential.
	Type HistogramType `mapstructure:"type"`
}

// HistogramType is the form of histograms, in the words of contrib's span_metrics.
type HistogramType string

// The types of histograms.
const (
	Exponential HistogramType = "exponential"
	Explicit    HistogramType = "explicit"
)

// defaultConfig returns a Config with the defaults.
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
	if c.MetricsExpiration != 0 && c.MetricsExpiration < max(c.MetricsFlushInterval, 1) { // 1: not below 0, whatever the interval
		errs = append(errs, errExpiration)
	}
	if _, point := seriesPerPoint(c.Histogram.Type); c.CardinalityLimit < minKept*point {
		errs = append(errs, fmt.Errorf(
			"%w: with %s histograms it must be at least %d, for two series of each metric", errCardinality, c.Histogram.Type, minKept*point))
	}
	if c.DedupWindow <= 0 {
		errs = append(errs, errDedup)
	}
	return errors.Join(errs...)
}
