// Package jsonl reads logs with one JSON object a line.
package jsonl

import (
	"bytes"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is record.Record's Source.
const Source = "jsonl"

// BadJSON is the reason for a line that begins as JSON and is broken or truncated.
const BadJSON = "bad_json"

// Parser reads the lines of one stream. Not safe for concurrent use.
type Parser struct{ objects *object.Parser }

// New returns a parser; mapped is as in object.New.
func New(mapped map[string]object.Target) *Parser { return &Parser{objects: object.New(mapped)} }

var bom = []byte("\xef\xbb\xbf")

// Line reads one line, or one document. found: at least one record was handed to out. Otherwise a reason means a broken line, and no reason a line of another
// format.
func (p *Parser) Line(b []byte, out object.Out) (found bool, reason string) {
	b = bytes.TrimSpace(bytes.TrimPrefix(b, bom))
	switch {
	case len(b) < 2:
		return false, ""
	case b[0] == '{' && b[1] == '\'':
		return false, "" // Python's
	case b[0] == '{' || b[0] == '[':
	default:
		// Standard output shared with a progress bar. A broken object after other text may be the other text's own.
		i := bytes.Index(b, []byte(`{"`))
		if i < 0 {
			return false, ""
		}
		found, _ = p.Line(b[i:], out)
		return found, ""
	}
	if b[0] == '{' {
		rec := out.Record()
		n, ok := p.objects.Parse(b, rec)
		if n == len(b) { // one whole object, as nearly all lines are
			if ok {
				rec.Source, rec.Key = Source, b
				out.Emit(rec)
			}
			return ok, ""
		}
	}
	return p.several(b, out)
}

// several reads an array of objects, or objects of several processes in one line. The results are as in Line.
func (p *Parser) several(b []byte, out object.Out) (found bool, reason string) {
	if !looksLike(b) {
		return false, ""
	}
	if b[0] == '[' {
		if b[len(b)-1] != ']' {
			return false, BadJSON
		}
		b = b[1 : len(b)-1]
	}
	found, ok := p.objects.Each(b, out, func(rec *record.Record, raw []byte) { rec.Source, rec.Key = Source, raw })
	if !ok {
		reason = BadJSON
	}
	return found, reason
}

// looksLike distinguishes JSON, if broken, from other text in brackets: an object, or an array of objects, begins with a name in double quotes.
func looksLike(b []byte) bool {
	if b[0] == '[' {
		b = bytes.TrimLeft(b[1:], " \t\r\n")
		if len(b) == 0 || b[0] != '{' {
			return false
		}
	}
	b = bytes.TrimLeft(b[1:], " \t\r\n")
	return len(b) > 0 && b[0] == '"'
}
