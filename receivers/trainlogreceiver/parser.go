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
	readers []reader      // of formats
	last    int           // the index of the format of the record before, tried first
	found   []bool        // formats with a record so far; nil: none
	prefix  logger.Prefix // of the current line
	clock   prefixClock
	wrap    wrap
	rows    int             // the index of the format of JSON objects; -1: not read
	objects envelope.Peeler // takes a logger's message out of a JSON object
	depth   int             // JSON objects around the current text
	since   int             // lines in a row that began with the seconds since the line before (ts -i)
	// inPasted: the current text is one of several records of a line (pasted).
	inPasted bool
}

// newParser returns the parser of the format with a name, or of all formats for formatAuto. The patterns of the configuration come first, with any format.
func newParser(name string, mapped fields, patterns []*pattern.Pattern) *parser {
	p := &parser{rows: -1}
	if len(patterns) > 0 {
		p.formats, p.readers = []format{{name: "patterns"}}, []reader{openPatterns(patterns)(mapped)}
	}
	for _, f := range formats {
		open := f.open
		switch {
		case name == formatAuto && !f.within: // any format, by f.open
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

// Line reads one line, whose launcher's prefix was taken off (bridge/line). What may stand around a trainer's record is tried from the outside to the inside: a
// bar before a text, a time of ts, a JSON object, rich's broken lines; then the whole text is tried as a record, then what stays without a logger's prefix,
// and at last several records without a line's end between them.
func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
		p.passBlank(text)
		return tail.Ignored, "empty"
	}
	if n := barLen(text); n > 0 { // the verdict is that of the text after the bar, unless the text is ignored
		v, reason := p.Line(text[:n], out)
		if textV, textReason := p.Line(text[n:], out); textV != tail.Ignored {
			v, reason = textV, textReason
		}
		return v, reason
	}
	p.prefix.Reset()
	p.prefix.Sure = out.Prefix().Level != nil // bridge/line has taken off a logger's level, and the logger's name may follow
	if text[0] != '{' {
		if rest, ok := p.cutStamp(text); ok && len(rest) > 0 { // first of all: a format that takes any text would take the time for a value
			text, out = rest, prefixed{out, p}
		}
	}
	if logger.Rank(text, &p.prefix) {
		out = prefixed{out, p}
	}
	stamp := p.prefix // put back after the tries that change the prefix
	if text[0] == '{' && p.depth < envelope.MaxDepth {
		if v, reason, mine := p.readObject(text, out); mine {
			return v, reason
		}
		p.prefix = stamp
	}
	v, reason, mine := p.readWrapped(text, out)
	if mine {
		return v, reason
	}
	p.prefix = stamp
	v, reason, mine = p.readMessage(text, out)
	if mine {
		return v, reason
	}
	var rests [maxPieces][]byte // possible messages: most likely the text after all pieces, so the last is tried first
	n := p.strip(text, rests[:])
	for i := n - 1; i >= 0; i-- {
		if v, why, mine := p.readMessage(rests[i], prefixed{out, p}); mine {
			return v, why
		}
	}
	if p.readPasted(text, out) {
		return tail.Record, ""
	}
	if reason == "" {
		reason = notRecord
	}
	return tail.Ignored, reason
}

// passBlank passes a line of blanks to the readers that ask for such lines. An empty line is not passed.
func (p *parser) passBlank(text []byte) {
	if len(text) == 0 {
		return
	}
	for i := range p.readers {
		if blank := p.readers[i].blank; blank != nil {
			blank()
		}
	}
}

var lossMark = []byte("loss")

const mostPasted = 4 << 10 // bytes of a line that readPasted tries: longer lines are seldom records, and each try is costly

// readPasted reads records printed without a line's end between them, as two threads do: "step 1 loss 2.31step 2 loss 2.29". The first word of the line
// ("step") begins each record. Reading stops at the first text without a record. It returns whether a record was found. Only a line with a loss is tried:
// reading costs a try of all formats for each record.
func (p *parser) readPasted(text []byte, out step.Out) bool {
	if p.inPasted || len(text) > mostPasted {
		return false
	}
	n := 0 // bytes of the first word
	for n < len(text) && isWordByte(text[n]) {
		n++
	}
	hasLoss := bytes.Contains(text, lossMark) || bytes.Contains(text, []byte("Loss"))
	if n < 3 || !bytes.Contains(text[n:], text[:n]) || !hasLoss {
		return false
	}
	p.inPasted = true // the records are read by Line, which would try them as pasted again
	defer func() { p.inPasted = false }()
	found := false
	for len(text) > 0 {
		end := bytes.Index(text[n:], text[:n]) + n // of this record: where the word comes again
		if end < n || text[end-1] == ' ' {         // the word does not come again, or is a word of this record
			end = len(text)
		}
		if v, _ := p.Line(text[:end], out); v != tail.Record {
			return found
		}
		found, text = true, text[end:]
	}
	return found
}

// isWordByte reports whether a byte may be of a record's first word: a letter, "_", or the "[" before one.
func isWordByte(c byte) bool {
	lower := c | 0x20 // of a letter
	return lower >= 'a' && lower <= 'z' || c == '[' || c == '_'
}

// readWrapped reads a line of a message that rich broke into several lines (wrap): a further line of the message, or else the first line of one. mine is false
// for other lines, and for such a line without a record; a line that is not indented ends the message.
func (p *parser) readWrapped(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	v, reason, mine = p.continueWrapped(text, out)
	if mine {
		return v, reason, true
	}
	if column := logger.Rich(text); column > 0 {
		return p.beginWrapped(text, column, out)
	}
	if text[0] != ' ' {
		p.wrap.Lines = 0
	}
	return v, reason, false
}

// strip removes a logger's pieces one by one. It puts into rests the text that remains after each piece, from the first certain sign of a logger on, and
// returns the number of these texts. Of "INFO trainer: loss 2.1", the texts are "trainer: loss 2.1" and "loss 2.1".
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

// barLen returns the length of a tqdm bar at the beginning of a line with another text after, printed before the bar's line ended: "50%|##| 1/2 [00:01<00:01,
// 1.00it/s]step 1 loss 2.3". 0: no bar, or no other text; and 0 with a dict after, since the parser of Hugging Face's dicts reads both together.
func barLen(text []byte) int {
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

// cutStamp removes the time that moreutils' ts puts before a line, and returns the rest of the line and whether a time was removed. A number of seconds (ts -i,
// since the line before) may also be a trainer's own value: a number is removed only if words follow, from the second such line in a row on. A number without
// words after it does not end the row.
func (p *parser) cutStamp(text []byte) (rest []byte, ok bool) {
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

// readObject reads a JSON object: a record, or else the message in the object of a logger ({"level": "info", "message": "step 1 loss 2.3"}), of one or more
// lines. A record or a rejected line among these lines gives the verdict. mine is false for an object that is neither, and for an object of a logger without a
// record or a rejected line, if objects are not read as records.
func (p *parser) readObject(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
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

// readMessage reads a line of a trainer with the first format that takes the line. The format of the record before comes first, since a log mostly has one
// format; a format whose lines many programs print (format.common) is not preferred. mine is false if no format takes the line; reason may then name the kind
// of line.
func (p *parser) readMessage(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	v, reason, mine = p.readers[p.last].line(text, out)
	if mine {
		p.noteFound(p.last, v)
		return v, reason, true
	}
	for i := range p.readers {
		if i == p.last {
			continue
		}
		v, why, mine := p.readers[i].line(text, out)
		if mine {
			p.noteFound(i, v)
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

// noteFound informs the other formats, once, that the format with an index has found its first record. v is the verdict on the line.
func (p *parser) noteFound(format int, v tail.Verdict) {
	known := p.found != nil && p.found[format]
	if v != tail.Record || known {
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

// prefixed is the output of a parser for the text after a logger's prefix. A record gets the values of the prefix: the rank, and the step's duration from the
// stamps.
type prefixed struct {
	step.Out
	p *parser
}

// Emit implements step.Out. A record with a time of its own needs no duration from the prefix; a record that waits for further lines may get a time from these.
func (o prefixed) Emit(rec *record.Record) {
	pre := &o.p.prefix
	if pre.HasRank && !rec.HasRank {
		rec.Rank, rec.HasRank = pre.Rank, true
	}
	timed := rec.Stamp != nil || rec.Unix != 0
	if rec.Kind == record.Step && !timed && !rec.Open {
		o.p.clock.setDuration(pre, rec)
	}
	o.Out.Emit(rec)
}

// prefixClock makes durations of steps from a logger's stamps without the year, or the day ("12:14:31"): no date can be made of them, but differences can.
type prefixClock struct {
	clock count.Clock
	last  float64 // the stamp before, s
	days  float64 // midnights passed
	rank  int64   // of the clock's lines; lines of other ranks are passed over
	has   bool    // there was a stamp
}

// setDuration sets the duration of a step from the stamps of the record's line and of the record before: the mean, if several steps lie between. A stamp that
// falls by more than half a day belongs to the next day; a smaller fall is no new day, only lines out of order. A duration in the log is kept.
func (c *prefixClock) setDuration(pre *logger.Prefix, rec *record.Record) {
	otherRank := c.has && pre.HasRank && pre.Rank != c.rank
	if math.IsNaN(pre.Seconds) || !rec.Has(record.Iteration) || otherRank {
		return
	}
	if c.has && pre.Seconds < c.last-halfDay {
		c.days++
	}
	c.last, c.rank, c.has = pre.Seconds, pre.Rank, true
	seconds, steps := c.clock.Step(pre.Seconds+2*halfDay*c.days, rec.Get(record.Iteration))
	if rec.Has(record.Duration) || !(seconds > 0) {
		return
	}
	rec.Set(record.Duration, seconds)
	if steps > 1 {
		rec.Of = record.Mean
	}
}

const halfDay = 12 * 3600 // s

// Save implements tail.Handler: a JSON object with the state of each format under the format's name, and of a broken message under wrapKey. nil: no state.
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

// Restore implements tail.Handler. State of formats that are not read, as after a change of the configuration, is passed over.
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

// newDocumentParser opens the formats of documents.
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

// Save implements tail.Handler.
func (documentParser) Save() []byte { return nil }

// Restore implements tail.Handler.
func (documentParser) Restore([]byte) {}
