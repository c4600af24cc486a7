// Package hf reads what the Trainer of Hugging Face Transformers prints: dicts in Python's notation (ProgressCallback.on_log, which
// writes past the progress bar), with numbers up to version 4 and with texts since 5; ms-swift's, which are like them; and
// the log_history of trainer_state.json.
package hf

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is record.Record's Source.
const Source = "hf"

// Reasons of lines that are not records.
const (
	BadDict     = "bad_dict"     // broken
	ProgressBar = "progress_bar" // not for us
)

// Parser reads the lines of one stream. It is not safe for concurrent use.
type Parser struct{ objects *object.Parser }

// New returns a parser; mapped is that of object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

// maxTries bounds how often a dict is looked for in one line.
const maxTries = 16

var open = []byte("{'")

// Line reads one line, in which dicts may stand anywhere. found: at least one record was handed to out. Else BadDict means
// that the line is broken, and any other reason that it is not for us.
func (p *Parser) Line(b []byte, out object.Out) (found bool, reason string) {
	rest := b
	for range maxTries {
		i := bytes.Index(rest, open)
		if i < 0 {
			break
		}
		rest = rest[i:]
		rec := out.Record()
		n, ok := p.objects.Parse(rest, rec)
		switch {
		case n < 0:
			// A comma at the end is that of settings which pprint spreads over lines.
			if ok && !found && !bytes.HasSuffix(bytes.TrimSpace(rest), []byte(",")) {
				reason = BadDict
			}
			n = len(open)
		case ok:
			rec.Source, rec.Key = Source, rest[:n]
			out.Emit(rec)
			found = true
		}
		rest = rest[n:]
	}
	switch {
	case found:
		return true, ""
	case reason == "" && bar(b):
		return false, ProgressBar
	}
	return false, reason
}

// bar knows tqdm's progress bars: "10%|█  | 10/100 [00:12<01:48,  1.20s/it]".
func bar(b []byte) bool {
	i := bytes.Index(b, []byte("%|"))
	return i >= 0 && bytes.IndexByte(b[i:], '[') > 0 || bytes.HasSuffix(bytes.TrimSpace(b), []byte("it/s]")) || bytes.HasSuffix(bytes.TrimSpace(b), []byte("s/it]"))
}

// State reads a trainer_state.json: one object, rewritten at each checkpoint, of which log_history has the rows logged so far.
// Results as those of Line.
func (p *Parser) State(b []byte, out object.Out) (found bool, reason string) {
	rows, ok := object.Member(b, "log_history")
	if !ok {
		return false, ""
	}
	found, ok = p.objects.Each(rows, out, func(rec *record.Record, raw []byte) {
		// The row stands in every later state too.
		rec.Source, rec.Dedup, rec.Key = Source, true, raw
	})
	if !ok {
		reason = BadDict
	}
	return found, reason
}
