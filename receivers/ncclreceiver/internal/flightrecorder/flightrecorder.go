package flightrecorder

import (
	"bytes"
	"errors"

	fr "github.com/trainbridge/trainbridge/internal/flightrecorder"
	"github.com/trainbridge/trainbridge/internal/pickle"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// Why a line is no record.
const (
	reasonBlank     = "blank"
	reasonNoEntries = "no_entries"
	reasonPickle    = "pickle" // one with code: never executed
	reasonNotPickle = "not_pickle"
	reasonTruncated = "truncated"
	reasonNotJSON   = "not_json"
	reasonNotDump   = "not_flight_recorder"
)

// Parser reads dumps; each is one line. Not safe for concurrent use.
type Parser struct {
	rank int32 // global, of the file; op.Unknown
}

// New returns a parser of the dump in file, whose name ends in the rank: nccl_trace_rank_3, …_3.json.
func New(file string) *Parser { return &Parser{rank: fr.RankOf(file)} }

// Sniff reports whether a document is a dump of the Flight Recorder, a pickle or JSON.
func Sniff(text []byte) bool {
	if fr.IsPickle(text) {
		return bytes.Contains(text, []byte("pg_config")) || bytes.Contains(text, []byte("entries"))
	}
	text = bytes.TrimSpace(text)
	return bytes.HasPrefix(text, []byte("{")) && (has(text, "pg_config") && has(text, "pg_status") || has(text, "entries") && has(text, "profiling_name"))
}

// has reports whether a JSON text has a key, at any depth.
func has(text []byte, key string) bool { return bytes.Contains(text, []byte(`"`+key+`"`)) }

// Line implements parse.Parser. A line is a whole document, a dump, with an operation for each entry. A dump without entries is ignored; other documents are
// rejected.
func (p *Parser) Line(text []byte, _ bool, _ uint64, out *parse.Out) (parse.Verdict, string) {
	if !fr.IsPickle(text) {
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			return parse.Ignored, reasonBlank
		}
	}
	var d fr.Dump
	if err := new(fr.Reader).Read(text, &d); err != nil {
		return parse.Rejected, reasonOf(err)
	}
	if len(d.Entries) == 0 {
		if d.PGConfig == nil && d.PGStatus == nil {
			return parse.Rejected, reasonNotDump
		}
		return parse.Ignored, reasonNoEntries
	}
	p.entries(&d, out)
	if len(out.Ops) == 0 {
		return parse.Rejected, reasonNotDump
	}
	return parse.Record, ""
}

// reasonOf returns the reason for rejecting a document, by the error of reading.
func reasonOf(err error) string {
	if _, ok := errors.AsType[*pickle.CodeError](err); ok {
		return reasonPickle
	}
	switch {
	case errors.Is(err, fr.ErrNotDump):
		return reasonNotDump
	case errors.Is(err, pickle.ErrTruncated):
		return reasonTruncated
	case errors.Is(err, pickle.ErrDense), errors.Is(err, pickle.ErrMalformed):
		return reasonNotPickle
	}
	return reasonNotJSON
}

// End implements parse.Parser: a dump is never open.
func (p *Parser) End(*parse.Out) {}

// Save implements parse.Parser.
func (p *Parser) Save() []byte { return nil }

// Restore implements parse.Parser.
func (p *Parser) Restore([]byte) {}
