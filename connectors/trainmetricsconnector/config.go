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
	// Histogram holds the buckets of the duration histograms.
	Histogram HistogramConfig `mapstructure:"histogram"`
	// MetricsFlushInterval is how often the values are sent on. Default 15s.
	MetricsFlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// MetricsExpiration: a series without a new span for this long is reported as ended and forgotten. 0 keeps all. Default 5m.
	MetricsExpiration time.Duration `mapstructure:"metrics_expiration"`
	// CardinalityLimit is how many series all metrics together may have, as Prometheus counts them: each bucket of a histogram is one. Series that
	// find no room are summed in one point per metric with otel.metric.overflow=true, which is within the limit. Default 7000.
	CardinalityLimit int `mapstructure:"cardinality_limit"`
	// DedupWindow is how long a span id is remembered, so that a batch sent again is not counted again. Default 10m.
	DedupWindow time.Duration `mapstructure:"dedup_window"`
	// Storage is the id of a storage extension that keeps what was counted, and of which spans: after a crash or a restart counters go on, and what comes again
	// is not counted again. Default: none, and they begin anew.
	Storage *component.ID `mapstructure:"storage"`
}

// HistogramConfig holds the buckets of the duration histograms.
type HistogramConfig struct {
	// Buckets are the upper bounds (inclusive), ascending. Default 20 µs to 30 min in 26 steps.
	Buckets []time.Duration `mapstructure:"buckets"`
}

const maxBuckets = 200

func defaultConfig() *Config {
	const us, ms, s, m = time.Microsecond, time.Millisecond, time.Second, time.Minute
	return &Config{
		Collector: spans.Collector(),
		Histogram: HistogramConfig{Buckets: []time.Duration{
			20 * us, 50 * us, 100 * us, 200 * us, 500 * us, // a call over IPC takes 20 µs to a few ms
			1 * ms, 2 * ms, 5 * ms, 10 * ms, 20 * ms, 50 * ms, 100 * ms, 200 * ms, 500 * ms,
			1 * s, 2 * s, 5 * s, 10 * s, 20 * s, 30 * s, 1 * m, 2 * m, 5 * m, 10 * m, 20 * m, 30 * m,
		}},
		MetricsFlushInterval: 15 * s,
		MetricsExpiration:    5 * m,
		CardinalityLimit:     7000,
		DedupWindow:          10 * m,
	}
}

var (
	errBuckets     = errors.New("'histogram::buckets' must be 1 to 200 durations above 0 in ascending order, such as [10ms, 100ms, 1s, 10s]")
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
	buckets := c.Histogram.Buckets
	ascending := len(buckets) > 0 && len(buckets) <= maxBuckets && buckets[0] > 0
	for i := 1; i < len(buckets); i++ {
		ascending = ascending && buckets[i] > buckets[i-1]
	}
	if !ascending {
		errs = append(errs, errBuckets)
	}
	if c.MetricsFlushInterval <= 0 {
		errs = append(errs, errFlush)
	}
	if c.MetricsExpiration != 0 && c.MetricsExpiration < max(c.MetricsFlushInterval, 1) {
		errs = append(errs, errExpiration)
	}
	if _, point := costs(buckets); c.CardinalityLimit < minKept*point {
		errs = append(errs, fmt.Errorf("%w: with %d buckets it must be at least %d, for two series of each metric", errCardinality, len(buckets), minKept*point))
	}
	if c.DedupWindow <= 0 {
		errs = append(errs, errDedup)
	}
	return errors.Join(errs...)
}
