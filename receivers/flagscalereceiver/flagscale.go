package flagscalereceiver

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/perfmonitor"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/spans"
)

// newParts makes the parts of the receiver: summaries are read as documents, all other files line by line.
func newParts(r *filereceiver.Receiver, config component.Config) (filereceiver.Parts, error) {
	cfg := config.(*Config)
	zone, err := cfg.Location()
	if err != nil {
		return filereceiver.Parts{}, err
	}
	tel, err := metadata.NewTelemetryBuilder(r.Set.TelemetrySettings)
	if err != nil {
		return filereceiver.Parts{}, err
	}
	summary := perfmonitor.Summary{Zone: zone, Metric: spans.MetricFinalDisagreement, Unit: spans.UnitOne}
	handlers := step.NewHandlers(step.Settings{
		Receiver: r, Run: cfg.RunConfig, Points: cfg.PointsConfig, Zone: zone,
		Duplicate: func() { tel.TrainbridgeFlagscaleDuplicates.Add(context.Background(), 1) },
		NewParser: func(path string, whole bool) step.Parser {
			if whole {
				return &document{path: path, files: &cfg.Config, summary: summary}
			}
			return newParser(path, &cfg.Config)
		},
	})
	return filereceiver.Parts{
		Tail: cfg.Config, IsDocument: isSummary, Detect: detect, Redact: cfg.Redact, NewHandler: handlers, HoldTimeout: step.HoldTimeout,
		Scope: metadata.ScopeName, Series: cfg.CardinalityLimit, SpanLinks: cfg.SpanLinks, Shutdown: tel.Shutdown, Run: cfg.RunConfig, Zone: zone,
	}, nil
}

// detect recognizes a file by a line that is a record of one of the formats, or of perf_monitor's lines around a table (reasonSession). Another line without a
// record decides nothing.
func detect(string) tail.Detect {
	p := newParser("", nil)
	return step.Detect(func(text []byte, out step.Out) tail.Reads {
		for i, r := range p.readers {
			v, reason, mine := r.Line(text, out)
			switch {
			case mine && (v == tail.Record || reason == reasonSession):
				return formats[i].reads
			case mine:
				return tail.ReadsNot
			}
		}
		return tail.ReadsNot
	})
}

// parser reads logs: each line is of the first format that knows the line.
type parser struct{ readers []reader } // of formats

// newParser makes the parser of the file at path, one of files.
func newParser(path string, files *tail.Config) *parser {
	p := &parser{}
	for _, f := range formats {
		p.readers = append(p.readers, f.open(path, files))
	}
	return p
}

func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	for _, r := range p.readers {
		if v, reason, mine := r.Line(text, out); mine {
			return v, reason
		}
	}
	return tail.Ignored, "not_flagscale"
}

// Save keeps the state of each format under its name.
func (p *parser) Save() []byte {
	states := make(map[string][]byte)
	for i, r := range p.readers {
		if state := r.Save(); state != nil {
			states[formats[i].name] = state
		}
	}
	if len(states) == 0 {
		return nil
	}
	b, err := json.Marshal(states)
	if err != nil {
		return nil // cannot be: bytes
	}
	return b
}

// Restore gives each format its part of the result of Save.
func (p *parser) Restore(saved []byte) {
	var states map[string]json.RawMessage
	if json.Unmarshal(saved, &states) != nil {
		return
	}
	for i, r := range p.readers {
		var state []byte
		if raw, ok := states[formats[i].name]; ok && json.Unmarshal(raw, &state) == nil {
			r.Restore(state)
		} else if formats[i].name == perfMonitor {
			r.Restore(saved) // an older state has the members of tableState beside megatron
		}
	}
}

// document reads a summary, perf_summary_*.json: one line to the receiver.
type document struct {
	path    string
	files   *tail.Config
	summary perfmonitor.Summary
}

// Line reads the whole summary: a record about the session, and its rows where no table with them is read.
func (d *document) Line(text []byte, out step.Out) (tail.Verdict, string) {
	dir, name := filepath.Split(d.path)
	// perf_summary_20260612_103000.json is of the session whose table is perf_metrics_20260612_103000.log.
	stamp := strings.TrimPrefix(strings.TrimSuffix(name, ".json"), summaryPrefix)
	// Where the rows are also in a table, only this check finds, after a restart of the collector, that they were counted before.
	d.summary.Rows = !tableIsRead(d.files, dir, stamp)
	if !d.summary.Read(text, out) {
		return tail.Rejected, "bad_summary"
	}
	return tail.Record, ""
}

// tableIsRead says whether the table of the session that began at stamp (20260612_103000) exists and is read, too.
func tableIsRead(files *tail.Config, dir, stamp string) bool {
	table := dir + tablePrefix + stamp + ".log"
	if !files.Includes(table) {
		return false
	}
	_, err := os.Stat(table)
	return err == nil
}

func (*document) Save() []byte   { return nil }
func (*document) Restore([]byte) {}
