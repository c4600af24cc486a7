package zmqrpcreceiver

import (
	"errors"
	"slices"

	"go.opentelemetry.io/collector/confmap"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/duration"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// Config is the configuration of zmq_rpc.
type Config struct {
	tail.Config               `mapstructure:",squash"`
	spans.RunConfig           `mapstructure:",squash"`
	filereceiver.SeriesConfig `mapstructure:",squash"`
	// Redact configures the redaction of texts.
	Redact redact.Config `mapstructure:"redact"`
	// SessionStart lists the first methods of a client. The calls before the first pass have a trace of their own. Default [Init].
	SessionStart []string `mapstructure:"session_start"`
	// PassStart lists the methods that begin a forward pass, and with it a trace. Default [Embedding].
	PassStart []string `mapstructure:"pass_start"`
	// PassEnd lists the methods that end a forward pass. If empty, the next pass ends it. Default [LMHead].
	PassEnd []string `mapstructure:"pass_end"`
	// MaxCalls ends a pass, or a trace of calls outside of passes, after that many calls. 1..1900 (a trace holds 2,000 spans), default 1000.
	MaxCalls int `mapstructure:"max_calls"`
}

// maxSpans bounds a trace: Jaeger's page and Tempo take 2,000 spans well.
const maxSpans = 2_000

// maxCallSpans leaves room for the root, the summary and the aggregate spans of stages.
const maxCallSpans = maxSpans - 100

var (
	errMaxCalls = errors.New("'max_calls' must be 1 to 1900: a trace holds 2,000 spans, 1000 by default")
	errMethod   = errors.New("'session_start', 'pass_start' and 'pass_end' must not have empty names: list methods as the log has them, such as [Embedding]")
	errBoth     = errors.New("'session_start' and 'pass_start' must not have the same method: one of them would never be looked at")
)

// Unmarshal refuses durations without a unit.
func (c *Config) Unmarshal(conf *confmap.Conf) error { return duration.Unmarshal(conf, c) }

// Validate names the wrong keys.
func (c *Config) Validate() error {
	errs := []error{c.Check()}
	if c.MaxCalls < 1 || c.MaxCalls > maxCallSpans {
		errs = append(errs, errMaxCalls)
	}
	if slices.Contains(slices.Concat(c.SessionStart, c.PassStart, c.PassEnd), "") {
		errs = append(errs, errMethod)
	}
	if slices.ContainsFunc(c.PassStart, func(m string) bool { return slices.Contains(c.SessionStart, m) }) {
		errs = append(errs, errBoth)
	}
	return errors.Join(errs...)
}
