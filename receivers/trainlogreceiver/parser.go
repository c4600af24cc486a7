package trainlogreceiver

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/jsonl"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/logger"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/pattern"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

const notRecord = "not_a_record"

// parser reads the lines of one stream, of one format or of any.
type parser struct {
	formats []format
	readers []reader // of formats
	last    int      // the format of the record before
	found   []bool   // formats with a record so far
	prefix  logger.Prefix
	clock   prefixClock
	wrap    wrap
	rows    int             // the format of objects; -1: none
	objects envelope.Peeler // of messages in objects
	depth   int             // objects around the current text
	since   int             // lines in a row that began with the seconds since the line before
	// inPasted: the current text is part of a line.
	inPasted bool
}

// newParser makes a parser of the format of a name, or of all for formatAuto. The patterns of the configuration come first.
func newParser(name string, mapped fields, patterns []*pattern.Pattern) *parser {
	p := &parser{rows: -1}
	if len(patterns) > 0 {
		p.formats, p.readers = []format{{name: "patterns"}}, []reader{openPatterns(patterns)(mapped)}
	}
	for _, f := range formats {
		open := f.open
		switch {
		case name == formatAuto && !f.within:
		case name != f.name:
			continue
		case f.alone != nil:
			open = f.alone
		}
		if f.name == jsonl.Source {
			p.rows = len(p.formats)
		}
		p.formats, p.readers = append(p.formats, f), append(p.readers, open(mapped))
	}
	return p
}

// Line reads one line, without a possible logger's prefix.
func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
		for i := range p.readers {
			if blank := p.readers[i].blank; blank != nil && len(text) > 0 {
				blank()
			}
		}
		return tail.Ignored, "empty"
	}
	if n := glued(text); n > 0 { // printed past a bar, drawn without a line's end
		v, reason := p.Line(text[:n], out)
		if of, why := p.Line(text[n:], out); of != tail.Ignored {
			v, reason = of, why
		}
		return v, reason
	}
	p.prefix.Reset()
	if bare := text[0] == '{'; !bare {
		if rest, ok := p.stamped(text); ok && len(rest) > 0 { // a format that takes any text would take the time too
			text, out = rest, prefixed{out, p}
		}
	}
	stamp := p.prefix
	if text[0] == '{' && p.depth < envelope.MaxDepth {
		if v, reason, mine := p.object(text, out); mine {
			return v, reason
		}
		p.prefix = stamp
	}
	v, reason, mine := p.broken(text, out)
	if mine {
		return v, reason
	}
	v, reason, mine = p.message(text, out)
	if mine {
		return v, reason
	}
	p.prefix = stamp
	var rests [maxPieces][]byte // possible messages: most likely the text behind all pieces
	n := p.strip(text, rests[:])
	for i := n - 1; i >= 0; i-- {
		if v, why, mine := p.message(rests[i], prefixed{out, p}); mine {
			return v, why
		}
	}
	if p.pasted(text, out) {
		return tail.Record, ""
	}
	if reason == "" {
		reason = notRecord
	}
	return tail.Ignored, reason
}

var lossMark = []byte("loss")

const mostPasted = 4 << 10 // bytes

// pasted reads records printed without a line's end between them, as two threads do: "step 1 loss 2.31step 2 loss 2.29". Their first words are the same.
func (p *parser) pasted(text []byte, out step.Out) bool {
	if p.inPasted || len(text) > mostPasted {
		return false
	}
	n := 0
	for n < len(text) && (text[n]|0x20 >= 'a' && text[n]|0x20 <= 'z' || text[n] == '[' || text[n] == '_') {
		n++
	}
	if n < 3 || !bytes.Contains(text[n:], text[:n]) || !bytes.Contains(text, lossMark) && !bytes.Contains(text, []byte("Loss")) {
		return false
	}
	p.inPasted = true
	defer func() { p.inPasted = false }()
	is := false
	for len(text) > 0 {
		end := bytes.Index(text[n:], text[:n]) + n
		if end < n || text[end-1] == ' ' {
			end = len(text)
		}
		if v, _ := p.Line(text[:end], out); v != tail.Record {
			return is
		}
		is, text = true, text[end:]
	}
	return is
}

// broken reads a line of a message that rich broke into several lines.
func (p *parser) broken(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	v, reason, mine = p.more(text, out)
	if mine {
		return v, reason, true
	}
	if column := logger.Rich(text); column > 0 {
		return p.first(text, column, out)
	}
	if text[0] != ' ' {
		p.wrap.Lines = 0
	}
	return v, reason, false
}

// strip removes a logger's pieces one by one, and keeps each remaining text from the first certain logger on. The result is the number of texts.
func (p *parser) strip(text []byte, rests [][]byte) (n int) {
	for range rests {
		var ok bool
		text, ok = logger.Next(text, &p.prefix)
		if !ok {
			break
		}
		if message := bytes.TrimLeft(text, " \t"); p.prefix.Sure && len(message) > 0 {
			rests[n] = message
			n++
		}
	}
	return n
}

// glued returns the end of a bar with other text behind; 0: none. Dicts behind bars are the Trainer's (hf), and its parser reads both.
func glued(text []byte) int {
	if !bytes.Contains(text, percentMark) {
		return 0
	}
	_, n := tqdm.Parse(text)
	if n == 0 || len(bytes.TrimSpace(text[n:])) == 0 || bytes.Contains(text[n:], dictMark) {
		return 0
	}
	return n
}

var percentMark, dictMark = []byte("%|"), []byte("{'")

// stamped removes the time of moreutils' ts. The seconds since the line before (ts -i) are no value if the line before also began with seconds.
func (p *parser) stamped(text []byte) (rest []byte, ok bool) {
	rest, ok = logger.Stamp(text, &p.prefix)
	if ok {
		return rest, true
	}
	rest, words, ok := logger.Since(text)
	switch {
	case !ok:
		p.since = 0
	case words:
		p.since++
	}
	return rest, words && p.since > 1
}

// object reads an object: a record, or else the message in the object of a logger.
func (p *parser) object(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	if p.rows >= 0 {
		v, reason, mine = p.readers[p.rows].line(text, out)
		if mine {
			if v == tail.Record {
				p.last = p.rows
			}
			return v, reason, true
		}
	}
	message, ok := p.objects.Logger(text, out.Prefix(), p.depth)
	if !ok {
		return tail.Ignored, "", false
	}
	p.depth++
	v, reason = tail.Ignored, notRecord
	for len(message) > 0 {
		one := message
		if end := bytes.IndexAny(message, "\r\n"); end >= 0 {
			one, message = message[:end], message[end+1:]
		} else {
			message = nil
		}
		if is, why := p.Line(one, out); v != tail.Record && is != tail.Ignored {
			v, reason = is, why
		}
	}
	p.depth--
	return v, reason, p.rows >= 0 || v != tail.Ignored
}

// maxPieces bounds a logger's pieces before a message.
const maxPieces = 8

// message reads a line of a trainer. The format of the record before comes first.
func (p *parser) message(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	v, reason, mine = p.readers[p.last].line(text, out)
	if mine {
		p.note(p.last, v)
		return v, reason, true
	}
	for i := range p.readers {
		if i == p.last {
			continue
		}
		v, why, mine := p.readers[i].line(text, out)
		if mine {
			p.note(i, v)
			if v == tail.Record && !p.formats[i].common {
				p.last = i
			}
			return v, why, true
		}
		if why != "" {
			reason = why
		}
	}
	return v, reason, false
}

// note tells the other formats that one format has found a record.
func (p *parser) note(format int, v tail.Verdict) {
	if v != tail.Record || p.found != nil && p.found[format] {
		return
	}
	if p.found == nil {
		p.found = make([]bool, len(p.readers))
	}
	p.found[format] = true
	for i := range p.readers {
		if others := p.readers[i].others; others != nil && i != format {
			others()
		}
	}
}

// prefixed gives a record the values of its logger: the rank, and the step's duration from the time before.
type prefixed struct {
	step.Out
	p *parser
}

// Emit is as in step.Out.
func (o prefixed) Emit(rec *record.Record) {
	pre := &o.p.prefix
	if pre.HasRank && !rec.HasRank {
		rec.Rank, rec.HasRank = pre.Rank, true
	}
	if rec.Kind == record.Step && rec.Stamp == nil && rec.Unix == 0 && !rec.Open { // further lines of an open record may have its time
		o.p.clock.note(pre, rec)
	}
	o.Out.Emit(rec)
}

// prefixClock makes times of steps from a logger's stamps without the year, or the day.
type prefixClock struct {
	clock count.Clock
	last  float64
	days  float64
	rank  int64 // of the clock's lines
	has   bool
}

// note sets the duration of a step from the stamps of its line and the line before. A stamp that falls by more than half a day belongs to the next day.
func (c *prefixClock) note(pre *logger.Prefix, rec *record.Record) {
	if math.IsNaN(pre.Seconds) || !rec.Has(record.Iteration) || c.has && pre.HasRank && pre.Rank != c.rank {
		return
	}
	if c.has && pre.Seconds < c.last-halfDay {
		c.days++
	}
	c.last, c.rank, c.has = pre.Seconds, pre.Rank, true
	seconds, of := c.clock.Step(pre.Seconds+2*halfDay*c.days, rec.Get(record.Iteration))
	if rec.Has(record.Duration) || !(seconds > 0) {
		return
	}
	rec.Set(record.Duration, seconds)
	if of > 1 {
		rec.Of = record.Mean
	}
}

const halfDay = 12 * 3600 // s

// Save is as in tail.Handler, with the state of each format under its name.
func (p *parser) Save() []byte {
	states := make(map[string]json.RawMessage)
	for i, r := range p.readers {
		if r.memory == nil {
			continue
		}
		if state := r.memory.Save(); state != nil {
			states[p.formats[i].name] = state
		}
	}
	p.wrap.save(states)
	if len(states) == 0 {
		return nil
	}
	b, err := json.Marshal(states)
	if err != nil {
		return nil // cannot be: each is JSON
	}
	return b
}

// Restore is as in tail.Handler.
func (p *parser) Restore(saved []byte) {
	var states map[string]json.RawMessage
	if json.Unmarshal(saved, &states) != nil {
		return
	}
	if state, ok := states[wrapKey]; ok {
		var w wrap
		if json.Unmarshal(state, &w) == nil {
			p.wrap = w
		}
	}
	for i, r := range p.readers {
		if state, ok := states[p.formats[i].name]; ok && r.memory != nil {
			r.memory.Restore(state)
		}
	}
}

// documentParser reads files that are rewritten whole.
type documentParser []reader

func newDocumentParser(mapped fields) documentParser {
	var p documentParser
	for _, f := range documents {
		p = append(p, f.open(mapped))
	}
	return p
}

// Line reads one document: a trainer_state.json, or a JSON object or array of objects.
func (p documentParser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	for _, r := range p {
		if v, reason, mine := r.line(text, out); mine {
			return v, reason
		}
	}
	return tail.Ignored, notRecord
}

// Save is as in tail.Handler.
func (documentParser) Save() []byte { return nil }

// Restore is as in tail.Handler.
func (documentParser) Restore([]byte) {}
