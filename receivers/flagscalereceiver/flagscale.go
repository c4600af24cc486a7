package flagscalereceiver

import (
	"bytes"
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
	"github.com/trainbridge/trainbridge/receivers/internal/record"
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
	summary := perfmonitor.Summary{Zone: zone, Metric: spans.MetricFinalDisagreement, Unit: spans.UnitOne}
	handlers := step.NewHandlers(step.Settings{
		Receiver: r, Run: cfg.RunConfig, Zone: zone,
		Duplicate: func() { tel.TrainbridgeFlagscaleDuplicates.Add(context.Background(), 1) },
		NewParser: func(path string, whole bool) step.Parser {
			if whole {
				return &document{path: path, files: &cfg.Config, summary: summary}
			}
			return &parser{path: path, files: &cfg.Config}
		},
	})
	return filereceiver.Parts{
		Tail: cfg.Config, IsDocument: isSummary, Detect: detect, Redact: cfg.Redact, NewHandler: handlers, HoldTimeout: step.HoldTimeout,
		Scope: metadata.ScopeName, Series: cfg.CardinalityLimit, SpanLinks: cfg.SpanLinks, Shutdown: tel.Shutdown,
	}, nil
}

// detect makes what knows perf_monitor's lines. Megatron's are train_log's first, which reads them from any trainer.
func detect(string) tail.Detect {
	p := &parser{}
	return step.Detect(func(text []byte, out step.Out) tail.Reads {
		switch result, _ := p.table.Line(text, out.Prefix().Stamp != nil, out); result {
		case perfmonitor.Records, perfmonitor.Session:
			return tail.ReadsOwn
		case perfmonitor.Ignored, perfmonitor.Malformed:
			return tail.ReadsNot
		}
		if verdict, _, mine := p.megatron.Line(text, out); mine && verdict == tail.Record {
			return tail.ReadsToo
		}
		return tail.ReadsNot
	})
}

// parser reads logs.
type parser struct {
	path     string
	files    *tail.Config
	table    perfmonitor.Parser
	megatron megatronstep.Parser
	copied   bool // the rows of the session stand in a table that is read
	nothing  discard
}

// discard takes records that are not wanted.
type discard struct{ rec record.Record }

func (d *discard) Record() *record.Record {
	d.rec.Reset()
	return &d.rec
}

func (*discard) Emit(*record.Record) {}

func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	var rows perfmonitor.Out = out
	if p.copied {
		rows = &p.nothing
	}
	switch result, reason := p.table.Line(text, out.Prefix().Stamp != nil, rows); result {
	case perfmonitor.Records:
		if p.copied {
			return tail.Ignored, "realtime_copy"
		}
		return tail.Record, ""
	case perfmonitor.Ignored:
		return tail.Ignored, reason
	case perfmonitor.Malformed:
		return tail.Rejected, reason
	case perfmonitor.Session:
		p.session(text)
		out.Restarted()
		return tail.Ignored, "session"
	}
	if verdict, reason, mine := p.megatron.Line(text, out); mine {
		return verdict, reason
	}
	return tail.Ignored, "not_flagscale"
}

// session finds out whether perf_realtime.log only repeats the rows of the table that the session writes too. The table has the breakdown as well, and rows that
// come from one file only are not counted again after a restart of the collector.
func (p *parser) session(header []byte) {
	started, ok := bytes.CutPrefix(bytes.TrimSpace(header), perfmonitor.Started)
	if dir, name := filepath.Split(p.path); ok && name == realtimeName {
		// 2026-06-12 10:30:00 → 20260612_103000
		stamp := strings.NewReplacer("-", "", ":", "", " ", "_").Replace(string(bytes.TrimSpace(started)))
		p.copied = tableIsRead(p.files, dir, stamp)
	}
}

// state of both parsers.
type state struct {
	Copied   bool   `json:"copied,omitempty"`
	Table    []byte `json:"table,omitempty"`
	Megatron []byte `json:"megatron,omitempty"`
}

func (p *parser) Save() []byte {
	s := state{p.copied, p.table.Save(), p.megatron.Save()}
	if s.Table == nil && s.Megatron == nil && !s.Copied {
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
	p.copied = s.Copied
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
	dir, name := filepath.Split(d.path)
	stamp, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), summaryPrefix)
	// Where the rows stand in a table too, nothing else would tell after a restart of the collector that they were counted before.
	d.summary.Rows = !ok || !tableIsRead(d.files, dir, stamp)
	if !d.summary.Read(text, out) {
		return tail.Rejected, "bad_summary"
	}
	return tail.Record, ""
}

// tableIsRead says whether the table of the session that began at a time (20260612_103000) is there and read, too.
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
