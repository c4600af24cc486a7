package flagscalereceiver

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/perfmonitor"
	"github.com/trainbridge/trainbridge/receivers/internal/megatron/megatronstep"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
)

// format is a format of FlagScale's jobs.
type format struct {
	name string
	// reads is the answer for a record of the format, for include_by_content.
	reads tail.Reads
	// open makes the reader of the file at path, one of files.
	open func(path string, files *tail.Config) reader
}

// perfMonitor is the format of the tables of FlagScale's perf_monitor.
const perfMonitor = "perf_monitor"

// formats are tried in order. Megatron's lines belong to train_log first (ReadsToo), the receiver of any trainer's log. To add a format, add its line.
var formats = []format{
	{name: perfMonitor, reads: tail.ReadsOwn, open: openTable},
	{name: "megatron", reads: tail.ReadsToo, open: func(string, *tail.Config) reader { return new(megatronstep.Parser) }},
}

// Formats are the formats of flagscale, in order, and the summaries, which are documents.
func Formats() []string {
	names := make([]string, len(formats), len(formats)+1)
	for i := range formats {
		names[i] = formats[i].name
	}
	return append(names, "perf_summary")
}

// reader reads the lines of one file in one format.
type reader interface {
	// Line reads a line. mine is false for a line of another format.
	Line(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool)
	// Save and Restore are as in tail.Handler.
	Save() []byte
	Restore(state []byte)
}

// tableReader reads the tables of perf_monitor: perf_metrics_*.log, and perf_realtime.log, which repeats the rows.
type tableReader struct {
	path    string
	files   *tail.Config // all files that are read
	table   perfmonitor.Parser
	copied  bool    // the rows of the session are in a table that is read, too: dropped here
	nothing discard // takes dropped rows
}

// openTable makes the reader of the file at path, one of files.
func openTable(path string, files *tail.Config) reader { return &tableReader{path: path, files: files} }

// discard takes unwanted records.
type discard struct{ rec record.Record }

func (d *discard) Record() *record.Record {
	d.rec.Reset()
	return &d.rec
}

func (*discard) Emit(*record.Record) {}

// reasonSession is the reason of the lines around the table of a session, and of the header.
const reasonSession = "session"

// Line reads a line of a table. The start of a session means that the job was started again. Rows are read also where they are dropped, so that lines after a
// row are understood.
func (t *tableReader) Line(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	var rows perfmonitor.Out = out
	if t.copied {
		rows = &t.nothing
	}
	switch result, reason := t.table.Line(text, out.Prefix().Stamp != nil, rows); result {
	case perfmonitor.Records:
		if t.copied {
			return tail.Ignored, "realtime_copy", true
		}
		return tail.Record, "", true
	case perfmonitor.Ignored:
		return tail.Ignored, reason, true
	case perfmonitor.Malformed:
		return tail.Rejected, reason, true
	case perfmonitor.Session:
		t.session(text)
		out.Restarted()
		return tail.Ignored, reasonSession, true
	}
	return tail.Ignored, "", false
}

// session is called for the first line of a session, "Performance Monitor Session Started: 2026-06-12 10:30:00" (and for a header, which says nothing about the
// session), and finds out whether perf_realtime.log only repeats the rows of a table that is read, too (t.copied). The table is preferred: it has the breakdown
// as well. Rows that are read from a single file are not counted again after a restart of the collector.
func (t *tableReader) session(header []byte) {
	started, ok := bytes.CutPrefix(bytes.TrimSpace(header), perfmonitor.Started)
	if dir, name := filepath.Split(t.path); ok && name == realtimeName {
		// 2026-06-12 10:30:00 → 20260612_103000
		stamp := strings.NewReplacer("-", "", ":", "", " ", "_").Replace(string(bytes.TrimSpace(started)))
		t.copied = tableIsRead(t.files, dir, stamp)
	}
}

// tableState is the part that survives a restart.
type tableState struct {
	Copied bool   `json:"copied,omitempty"`
	Table  []byte `json:"table,omitempty"`
}

// Save returns the state of the session and of the table; nil: none.
func (t *tableReader) Save() []byte {
	s := tableState{t.copied, t.table.Save()}
	if s.Table == nil && !s.Copied {
		return nil
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil // cannot be: bytes
	}
	return b
}

// Restore reads the result of Save. A state that cannot be read is none.
func (t *tableReader) Restore(saved []byte) {
	var s tableState
	if json.Unmarshal(saved, &s) != nil {
		return
	}
	t.copied = s.Copied
	if s.Table != nil {
		t.table.Restore(s.Table)
	}
}
