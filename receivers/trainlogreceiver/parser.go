package trainlogreceiver

import (
	"bytes"
	"encoding/json"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/step"
)

const notRecord = "not_a_record"

// parser reads the lines of one stream, of one format or of any.
type parser struct {
	formats []format
	readers []reader // of formats
	last    int      // the format of the record before
}

// newParser makes a parser of the format of a name, or of all for formatAuto.
func newParser(name string, mapped fields) *parser {
	p := &parser{}
	for _, f := range formats {
		open := f.open
		switch {
		case name == formatAuto:
		case name != f.name:
			continue
		case f.alone != nil:
			open = f.alone
		}
		p.formats, p.readers = append(p.formats, f), append(p.readers, open(mapped))
	}
	return p
}

// Line reads one line. The format of the record before comes first.
func (p *parser) Line(text []byte, out step.Out) (tail.Verdict, string) {
	if len(text) == 0 || text[0] <= ' ' && len(bytes.TrimSpace(text)) == 0 {
		for i := range p.readers {
			if blank := p.readers[i].blank; blank != nil && len(text) > 0 {
				blank()
			}
		}
		return tail.Ignored, "empty"
	}
	v, reason, mine := p.readers[p.last].line(text, out)
	if mine {
		return v, reason
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
			return v, why
		}
		if why != "" {
			reason = why
		}
	}
	if reason == "" {
		reason = notRecord
	}
	return tail.Ignored, reason
}

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
