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
)

const notRecord = "not_a_record"

// parser reads the lines of one stream, of one format or of any.
type parser struct {
	formats []format
	readers []reader // of formats
	last    int      // the format of the record before
	prefix  logger.Prefix
	clock   prefixClock
	rows    int             // the format of objects; -1: none
	objects envelope.Peeler // of messages in objects
	depth   int             // objects around the text at hand
	since   int             // lines in a row that began with the seconds since the line before
}

// newParser makes a parser of the format of a name, or of all for formatAuto.
func newParser(name string, mapped fields) *parser {
	p := &parser{rows: -1}
	for _, f := range formats {
		open := f.open
		switch {
		case name == formatAuto:
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

// Line reads one line, without what a logger may have put before.
func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
		for i := range p.readers {
			if blank := p.readers[i].blank; blank != nil && len(text) > 0 {
				blank()
			}
		}
		return tail.Ignored, "empty"
	}
	bare := text[0] == '{'
	if !bare {
		p.prefix.Reset()
		if rest, ok := p.stamped(text); ok { // a format that takes any text would take the time with it
			text, out = rest, prefixed{out, p}
		}
	}
	if text[0] == '{' && p.depth < envelope.MaxDepth {
		if v, reason, mine := p.object(text, out); mine {
			return v, reason
		}
	}
	if bare {
		p.prefix.Reset()
	}
	v, reason, mine := p.message(text, out)
	if mine {
		return v, reason
	}
	for rest, pieces := text, 0; pieces < maxPieces; pieces++ {
		var ok bool
		if rest, ok = logger.Next(rest, &p.prefix); !ok {
			break
		}
		if message := bytes.TrimLeft(rest, " \t"); p.prefix.Sure && len(message) > 0 {
			if v, why, mine := p.message(message, prefixed{out, p}); mine {
				return v, why
			}
		}
	}
	if reason == "" {
		reason = notRecord
	}
	return tail.Ignored, reason
}

// stamped takes the time of moreutils' ts off. The seconds since the line before (ts -i) are no value where the line before began so, too.
func (p *parser) stamped(text []byte) (rest []byte, ok bool) {
	if rest, ok = logger.Stamp(text, &p.prefix); ok {
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
		if v, reason, mine = p.readers[p.rows].line(text, out); mine {
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

// maxPieces bounds what a logger puts before a message.
const maxPieces = 8

// message reads a line of a trainer. The format of the record before comes first.
func (p *parser) message(text []byte, out step.Out) (v tail.Verdict, reason string, mine bool) {
	if v, reason, mine = p.readers[p.last].line(text, out); mine {
		return v, reason, true
	}
	for i := range p.readers {
		if i == p.last {
			continue
		}
		v, why, mine := p.readers[i].line(text, out)
		if mine {
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

// prefixed gives a record what its logger says: the rank, and by the time before, how long the step took.
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
	if rec.Kind == record.Step && rec.Stamp == nil && rec.Unix == 0 && !rec.Open { // lines that belong to an open record may tell its time
		o.p.clock.note(pre, rec)
	}
	o.Out.Emit(rec)
}

// prefixClock makes times of steps of a logger's stamps that are no place in time: they lack the year, or the day.
type prefixClock struct {
	clock count.Clock
	last  float64
	days  float64
	rank  int64 // whose lines it reads
	has   bool
}

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

// Save is as in tail.Handler. The state of each format stands under its name.
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
