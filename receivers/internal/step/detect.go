package step

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/envelope"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// Detect returns the detector of a format, for tail.Settings.Detect. parse returns how far the format reads a line's text, without prefixes; its records are
// dropped. A comment proves nothing: programs quote records in their comments.
func Detect(parse func(text []byte, out Out) tail.Reads) tail.Detect {
	var peeler envelope.Peeler
	out := &sink{}
	return func(text []byte) tail.Reads {
		if t := bytes.TrimLeft(text, " \t"); bytes.HasPrefix(t, []byte("#")) || bytes.HasPrefix(t, []byte("//")) {
			return tail.ReadsNot
		}
		return parse(peeler.Peel(text, &out.prefix), out)
	}
}

// sink takes unwanted records.
type sink struct {
	rec    record.Record
	prefix line.Prefix
}

func (s *sink) Record() *record.Record {
	s.rec.Reset()
	return &s.rec
}

func (*sink) Emit(*record.Record)    {}
func (*sink) Model(*spans.Model)     {}
func (s *sink) Prefix() *line.Prefix { return &s.prefix }
func (*sink) Restarted()             {}
func (*sink) Retold()                {}
