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
	"github.com/trainbridge/trainbridge/receivers/internal/megatron/megatronstep"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/spans"
)

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
	files := cfg.withSummaries()
	summary := perfmonitor.Summary{Zone: zone, Metric: spans.MetricSummaryDisagreement, Unit: spans.UnitOne}
	handlers := step.NewHandlers(step.Settings{
		Receiver: r, Run: cfg.RunConfig, Zone: zone, Scope: metadata.ScopeName,
		Duplicate: func() { tel.TrainbridgeFlagscaleDuplicates.Add(context.Background(), 1) },
		Document:  func(path string) bool { return matches(files.Document, path) },
		NewParser: func(path string) step.Parser {
			if matches(files.Document, path) {
				return &document{path: path, files: &files, summary: summary}
			}
			return &parser{}
		},
	})
	return filereceiver.Parts{Tail: files, NewHandler: handlers, HoldTimeout: step.HoldTimeout, Shutdown: tel.Shutdown}, nil
}

// parser reads logs.
type parser struct {
	table    perfmonitor.Parser
	megatron megatronstep.Parser
}

func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	switch result, reason := p.table.Line(text, out.Prefix().Stamp != nil, out); result {
	case perfmonitor.Records:
		return tail.Record, ""
	case perfmonitor.Ignored:
		return tail.Ignored, reason
	case perfmonitor.Malformed:
		return tail.Rejected, reason
	case perfmonitor.Session:
		out.Restarted()
		return tail.Ignored, "session"
	}
	if verdict, reason, mine := p.megatron.Line(text, out); mine {
		return verdict, reason
	}
	return tail.Ignored, "not_flagscale"
}

// state of both parsers.
type state struct {
	Table    []byte `json:"table,omitempty"`
	Megatron []byte `json:"megatron,omitempty"`
}

func (p *parser) Save() []byte {
	s := state{p.table.Save(), p.megatron.Save()}
	if s.Table == nil && s.Megatron == nil {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot be: bytes
	}
	return b
}

func (p *parser) Restore(saved []byte) {
	var s state
	if json.Unmarshal(saved, &s) != nil {
		return
	}
	if s.Table != nil {
		p.table.Restore(s.Table)
	}
	if s.Megatron != nil {
		p.megatron.Restore(s.Megatron)
	}
}

// document reads a summary.
type document struct {
	path    string
	files   *tail.Config
	summary perfmonitor.Summary
}

func (d *document) Line(text []byte, out step.Out) (tail.Verdict, string) {
	d.summary.Rows = !d.tableIsRead()
	if !d.summary.Read(text, out) {
		return tail.Rejected, "bad_summary"
	}
	return tail.Record, ""
}

// tableIsRead says whether the session's table is there and read, too. The rows of a summary are those of the table, and after a restart of
// the collector nothing else would tell that they were counted before.
func (d *document) tableIsRead() bool {
	dir, name := filepath.Split(d.path)
	stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), summaryPrefix)
	table := dir + tablePrefix + stamp + ".log"
	if !ok || !reads(d.files, table) {
		return false
	}
	_, err := os.Stat(table)
	return err == nil
}

func (*document) Save() []byte   { return nil }
func (*document) Restore([]byte) {}
