package trainlogreceiver

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/logger"
)

// wrap joins the lines of a message that rich.logging.RichHandler broke at the width of its terminal, 80 columns in a file:
//
//	[12:14:31] INFO     Epoch [1/2] Step [1/12] loss: 2.3641 lr:        frames.py:15
//	                    5.00e-02 step_time: 27.7ms tokens/s: 147749
//
// The first line's record waits for the lines below: no line is known to be the last.
type wrap struct {
	Column int      `json:"column"`          // of the message
	Lines  int      `json:"lines"`           // lines of the message so far; 0: no message
	Text   []byte   `json:"text"`            // of the lines
	Has    bool     `json:"has,omitempty"`   // the lines hold a record
	Known  [][]byte `json:"known,omitempty"` // names of fields unknown to objects
}

const (
	mostWrapped = 3       // lines
	mostText    = 4 << 10 // bytes
)

// first reads a line of rich's.
func (p *parser) first(text []byte, column int, out step.Out) (v tail.Verdict, reason string, mine bool) {
	before := p.wrap.Lines > 1
	p.wrap = wrap{}
	p.prefix.Reset()
	rest, ok := text, true
	for pieces := 0; pieces < 2 && !richMessage(text, rest, column); pieces++ {
		rest, ok = logger.Next(rest, &p.prefix)
		if !ok {
			return tail.Ignored, "", false
		}
	}
	message := bytes.TrimLeft(logger.CutPath(rest), " ")
	if len(message) == 0 || len(message) > mostText {
		return tail.Ignored, "", false
	}
	p.wrap.Column, p.wrap.Lines, p.wrap.Text = column, 1, append(p.wrap.Text[:0], message...)
	whole := message
	if last := whole[len(whole)-1]; last == ':' || last == '=' { // the value is on the next line
		whole = bytes.TrimRight(whole[:bytes.LastIndexByte(whole, ' ')+1], " ")
	}
	return p.message(whole, wrapped{prefixed{out, p}, p, len(whole) < len(message) || before})
}

// richMessage says whether rest is the message: the pieces up to its column were removed.
func richMessage(text, rest []byte, column int) bool {
	return bytes.Index(text, bytes.TrimSpace(rest)) >= column
}

// more reads a line that continues a message.
func (p *parser) more(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	w := &p.wrap
	rest := bytes.TrimLeft(text, " ")
	indent := len(text) - len(rest)
	column := w.Column
	if column == logger.RichLevel { // behind a removed time
		column = max(indent, timedColumn)
	}
	if w.Lines == 0 || indent != column || w.Lines == mostWrapped || len(w.Text)+len(text) > mostText || logger.Rich(text) > 0 {
		return tail.Ignored, "", false
	}
	w.Lines++
	w.Text = append(append(w.Text, ' '), bytes.TrimSpace(rest)...)
	return p.message(w.Text, wrapped{prefixed{out, p}, p, true})
}

const timedColumn = 20 // the least of a message behind a time

// wrapped adds records of wrapped lines to the record of the first.
type wrapped struct {
	prefixed
	p       *parser
	certain bool // a line follows, or is the current one: the time may be on it
}

// Emit is as in step.Out.
func (o wrapped) Emit(rec *record.Record) {
	w := &o.p.wrap
	if w.Has && rec.Kind != record.Summary {
		kept := rec.Extra[:0]
		for _, e := range rec.Extra {
			if !w.knows(e.Name) {
				kept = append(kept, e)
			}
		}
		rec.Extra, rec.Kind = kept, record.Side
	} else if rec.Kind == record.Step || rec.Kind == record.Evaluation {
		rec.Open, w.Has = true, true
	}
	for _, e := range rec.Extra {
		w.Known = append(w.Known, bytes.Clone(e.Name))
	}
	if o.certain {
		o.Out.Emit(rec)
		return
	}
	o.prefixed.Emit(rec)
}

func (w *wrap) knows(name []byte) bool {
	for _, n := range w.Known {
		if bytes.Equal(n, name) {
			return true
		}
	}
	return false
}

// wrapKey is the key of the state of wrapped lines, among those of the formats.
const wrapKey = "wrap"

func (w *wrap) save(states map[string]json.RawMessage) {
	if w.Lines == 0 || w.Lines == mostWrapped {
		return
	}
	if b, err := json.Marshal(w); err == nil {
		states[wrapKey] = b
	}
}
