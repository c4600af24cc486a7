package runeventsreceiver

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/receiver"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/receivers/runeventsreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// NewFactory makes the factory of run_events.
func NewFactory() receiver.Factory {
	return filereceiver.NewFactory(metadata.Type, createDefaultConfig, metadata.TracesStability, metadata.MetricsStability, newParts)
}

func createDefaultConfig() component.Config {
	return &Config{Config: tail.DefaultConfig(), Redact: redact.DefaultConfig(), RunConfig: spans.RunConfig{ServiceName: "train"}}
}

// holdTimeout bounds the wait of a traceback for its last line.
const holdTimeout = time.Second

// newParts makes the parts of the receiver. There is no parser of records: filereceiver finds the events (Events).
func newParts(_ *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	cfg := config.(*Config)
	zone, err := cfg.Location()
	if err != nil {
		return filereceiver.Parts{}, err
	}
	return filereceiver.Parts{
		Tail: cfg.Config, Detect: detect, Redact: cfg.Redact, NewHandler: newHandler, Scope: metadata.ScopeName, SpanLinks: cfg.SpanLinks,
		HoldTimeout: holdTimeout, Run: cfg.RunConfig, Zone: zone, Events: true,
	}, nil
}

// Formats are the formats of run_events: any text.
func Formats() []string { return []string{"run_events"} }

// detect takes a file in which a line tells of a failure, such as a traceback, of a wait, or of what holds steps up, after all other receivers: if none of
// these knows a line of the file.
func detect(path string) tail.Detect {
	s := events.NewScanner(path, nil, time.Time{})
	return func(text []byte) tail.Reads {
		for _, e := range s.Line(text) {
			isText := strings.HasPrefix(e.Form.Name, "loop.") && !e.Own // any text may speak of saving; a log's line has a time
			if e.Class.Fatal() || e.Class == events.ClassWaiting || e.Class == events.ClassSlowing && !isText {
				return tail.ReadsLast
			}
		}
		if s.Busy() { // a traceback, or an event of several lines, has begun
			return tail.ReadsLast
		}
		return tail.ReadsNot
	}
}
