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
	Column int      `json:"column"`          // where the message begins in its first line
	Lines  int      `json:"lines"`           // lines of the message so far; 0: no message
	Text   []byte   `json:"text"`            // the lines so far, joined by blanks
	Has    bool     `json:"has,omitempty"`   // a step or an evaluation was emitted of the lines so far
	Known  [][]byte `json:"known,omitempty"` // names of the extra fields emitted so far: the joined text has them again
}

const (
	mostWrapped = 3       // lines
	mostText    = 4 << 10 // bytes
)

// beginWrapped reads a line of rich's (logger.Rich), whose message begins at a column: possibly the first of several. The place in the source at the end is cut
// off, and a name at the end without a value ("lr:") is left for the next line. mine is false for a line without a record.
func (p *parser) beginWrapped(text []byte, column int, out step.Out) (v tail.Verdict, reason string, mine bool) {
	p.wrap = wrap{}
	p.prefix.Reset()
	rest, ok := text, true
	for pieces := 0; pieces < 2 && !richMessage(text, rest, column); pieces++ { // the time and the level
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
	return p.readMessage(whole, wrapped{prefixed{out, p}})
}

// richMessage reports whether rest, the end of text, begins at or after the message's column: then the pieces before the message were removed.
func richMessage(text, rest []byte, column int) bool {
	return bytes.Index(text, bytes.TrimSpace(rest)) >= column
}

// continueWrapped reads a line that continues a message: indented to the message's column. All lines so far are read again as one text, since a number may be
// in the next line of its name; wrapped adds the values to the first record of the message. mine is false for a line that does not continue the message, or
// adds no record.
func (p *parser) continueWrapped(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	w := &p.wrap
	rest := bytes.TrimLeft(text, " ")
	indent := len(text) - len(rest)
	column := w.Column
	if column == logger.RichLevel {
		// A time before the level was taken off the first line, so the message's true column is unknown: any from timedColumn on.
		column = max(indent, timedColumn)
	}
	full := w.Lines == mostWrapped || len(w.Text)+len(text) > mostText
	if w.Lines == 0 || indent != column || full || logger.Rich(text) > 0 {
		return tail.Ignored, "", false
	}
	w.Lines++
	w.Text = append(append(w.Text, ' '), bytes.TrimSpace(rest)...)
	return p.readMessage(w.Text, wrapped{prefixed{out, p}})
}

const timedColumn = 20 // the least column of a message after a time and a level

// wrapped is the output of a parser for the lines of a broken message: the first record waits for further lines, and later records add their values to the
// first.
type wrapped struct{ prefixed }

// Emit implements step.Out. The first step or evaluation of a message is made Open, so that no duration is made from the stamps: the step's time may be in a
// further line. A later record, unless a summary, is made a Side, with values for the record before, without the extra fields already emitted.
func (o wrapped) Emit(rec *record.Record) {
	w := &o.p.wrap
	if w.Has && rec.Kind != record.Summary {
		fresh := rec.Extra[:0]
		for _, e := range rec.Extra {
			if !w.knows(e.Name) {
				fresh = append(fresh, e)
			}
		}
		rec.Extra, rec.Kind = fresh, record.Side
	} else if rec.Kind == record.Step || rec.Kind == record.Evaluation {
		rec.Open, w.Has = true, true
	}
	for _, e := range rec.Extra {
		w.Known = append(w.Known, bytes.Clone(e.Name))
	}
	o.prefixed.Emit(rec)
}

// knows reports whether an extra field was emitted of an earlier line of the message.
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

// save adds the state of an unfinished message to states. A message with mostWrapped lines is finished.
func (w *wrap) save(states map[string]json.RawMessage) {
	if w.Lines == 0 || w.Lines == mostWrapped {
		return
	}
	if b, err := json.Marshal(w); err == nil {
		states[wrapKey] = b
	}
}
