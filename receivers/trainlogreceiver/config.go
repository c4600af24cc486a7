package trainlogreceiver

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of train_log.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	clock.ZoneConfig          `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	step.PointsConfig         `mapstructure:",squash"`
	// Redact configures the redaction of texts.
	Redact redact.Config `mapstructure:"redact"`
	// Format is the format of the log; auto, the default, detects the format line by line.
	Format string `mapstructure:"format"`
	// Patterns are lines of the log with placeholders in place of the numbers: "iter {iteration}: loss {loss}, time {step_time:ms}ms". Patterns come before the
	// formats.
	Patterns []string `mapstructure:"patterns"`
	// Fields gives names of the log a meaning, before the receiver's own names.
	Fields map[string]FieldConfig `mapstructure:"fields"`
	// TraceIDField is the name of the field with a record's trace, without regard to case. Default trace_id, which includes traceId. The names of W3C Trace
	// Context (traceparent) and of parents (span_id, parent_id) are known too.
	TraceIDField string `mapstructure:"trace_id_field"`
}

// FieldConfig is the meaning of a name in the log.
type FieldConfig struct {
	// Metric is the gauge of the value: a new name, or the name of a metric known to the receiver (ml.train.loss).
	Metric string `mapstructure:"metric"`
	// Unit is the UCUM unit of a gauge with a new name.
	Unit string `mapstructure:"unit"`
	// Scale is the factor from the log's unit to the metric's. Default 1.
	Scale float64 `mapstructure:"scale"`
}

// formatAuto is the value of Config.Format for any format.
const formatAuto = "auto"

var (
	errFormat = errors.New("'format' must be auto, " + strings.Join(Formats(), ", "))
	errMetric = errors.New(
		"must be the name of a metric: a letter, then up to 254 letters, digits and _ . - /, such as rl.reward.mean, or one that the receiver knows, such as " +
			"ml.train.loss",
	)
	errUnit  = errors.New("must be left out: the metric's unit is given. Use scale to convert the log's")
	errScale = errors.New("must be a finite number")
	errID    = errors.New("'trace_id_field' must be the name of a field, and not one of 'fields'")
)

// metricName is OpenTelemetry's rule for names (API specification, instrument name syntax).
var metricName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.\-/]{0,254}$`)

// Unmarshal returns an error for durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate checks the keys of the configuration. The error names all wrong keys at once, not only the first.
func (c *Config) Validate() error {
	_, err := c.Location()
	errs := []error{c.Check(), err}
	if c.Format != formatAuto && !slices.Contains(Formats(), c.Format) {
		errs = append(errs, errFormat)
	}
	for _, text := range c.Patterns {
		if err := PatternError(text); err != nil {
			errs = append(errs, fmt.Errorf("'patterns' has %q: %w", text, err))
		}
	}
	if _, taken := c.Fields[c.TraceIDField]; taken || strings.TrimSpace(c.TraceIDField) == "" {
		errs = append(errs, errID)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Fields)) {
		f := c.Fields[name]
		if !metricName.MatchString(f.Metric) {
			errs = append(errs, fmt.Errorf("'fields::%s::metric' %w", name, errMetric))
		} else if _, known := f.known(); known && f.Unit != "" {
			errs = append(errs, fmt.Errorf("'fields::%s::unit' %w", name, errUnit))
		}
		if !spans.Finite(f.Scale) {
			errs = append(errs, fmt.Errorf("'fields::%s::scale' %w", name, errScale))
		}
	}
	return errors.Join(errs...)
}

// PatternError returns the error of a pattern of Config.Patterns, with the position of the wrong character; nil: the pattern is correct.
func PatternError(text string) error {
	_, err := pattern.Compile(text)
	return err
}

// patterns returns the patterns of a validated configuration.
func (c *Config) patterns() (out []*pattern.Pattern) {
	for _, text := range c.Patterns {
		if p, err := pattern.Compile(text); err == nil {
			out = append(out, p)
		}
	}
	return out
}

// known returns the target of a value whose Metric is a name of the receiver's own, such as ml.train.loss. It returns false if Metric is a new name, a gauge of
// the user's.
func (f FieldConfig) known() (object.Target, bool) {
	if f.Metric == spans.AttrGPUUtilization {
		return object.MappedGPU(f.scale()), true
	}
	if field, ok := step.FieldNamed(f.Metric); ok {
		return object.Mapped(field, f.scale()), true
	}
	return object.Target{}, false
}

// scale returns Scale, or the default 1 for 0: a key left out is 0, so Validate accepts 0.
func (f FieldConfig) scale() float64 {
	if f.Scale == 0 {
		return 1
	}
	return f.Scale
}

// mapped returns, by a field's name in the log, the target of the field's value, as far as Fields and TraceIDField define it. Names without an entry keep the
// receiver's own meaning. With a TraceIDField of the user's own, the usual names of a trace id (trace_id, traceid) get the zero Target: their values stay plain
// fields, and a record has one trace id.
func (c *Config) mapped() map[string]object.Target {
	out := make(map[string]object.Target, len(c.Fields))
	for name, f := range c.Fields {
		t, ok := f.known()
		if !ok {
			t = object.Gauge(f.Metric, f.Unit, f.scale())
		}
		out[name] = t
	}
	if c.TraceIDField != logids.DefaultTrace {
		for _, name := range logids.Names {
			if logids.Named(name) == logids.Trace {
				out[name] = object.Target{} // any field
			}
		}
		out[c.TraceIDField] = object.TraceID()
	}
	return out
}

const stateFile = "trainer_state.json"

// isState reports whether a file is the Trainer's state, by its name. The state is one object, rewritten whole each time.
func isState(path string) bool { return filepath.Base(path) == stateFile }
