package inspector

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

const (
	maxPrefixes = 64 // communicators × ranks of one process
	maxPrefix   = 4096
)

// prefix is the common beginning of lines that differ only in the time of the dump: `{"header":{…},"metadata":{…,"dump_timestamp_us":`, the digits, and the
// rest of the metadata with a comma. The prefix is half of a line, and comparing is much faster than reading.
type prefix struct {
	before, after []byte
	context       *context
	stateless     bool
}

// prefixes are the beginnings of earlier lines. The zero value is ready.
type prefixes struct {
	all    []prefix
	used   int
	missed int // learnable lines since the last line with a known prefix
}

const (
	// fewPrefixes are tried after manyMissed lines: then the communicators outnumber the prefixes.
	fewPrefixes = 2
	manyMissed  = 8
)

// dumpKey is the text before the time of the dump.
const dumpKey = `"dump_timestamp_us":`

// begun compares the beginning of a line with the known prefixes. The result is the start of the next member, 0 if no prefix fits and the line must be read.
// Records of a communicator come together, and the communicators in one order.
func (p *Parser) begun(b []byte) int {
	s := &p.prefixes
	tries := len(s.all)
	if s.missed >= manyMissed {
		tries = min(tries, fewPrefixes)
	}
	for n := range tries {
		at := s.used + n
		if at >= len(s.all) {
			at -= len(s.all)
		}
		e := &s.all[at]
		if !bytes.HasPrefix(b, e.before) {
			continue
		}
		dump, i := p.stamp(b, len(e.before))
		if i < 0 || !bytes.HasPrefix(b[i:], e.after) {
			continue // of another process
		}
		l := &p.line
		l.context, l.hasContext, l.dump, l.stateless = *e.context, true, dump, e.stateless
		s.used, s.missed = at, 0
		return jsonlike.Blanks(b, i+len(e.after))
	}
	return 0
}

// learn remembers the beginning of a line, up to the end of its metadata. When the table is full, only some new prefixes replace others, so that lines of too
// many communicators cost no more than reading them.
func (p *Parser) learn(b []byte, end int) {
	s, l := &p.prefixes, &p.line
	at := len(s.all)
	if at == maxPrefixes {
		if s.missed++; s.missed%maxPrefixes != 0 {
			return
		}
		at = (s.used + maxPrefixes - 1) % maxPrefixes // the prefix that would be tried last
	}
	if end > maxPrefix || end >= len(b) || b[end] != ',' || bytes.Count(b[:end], []byte(dumpKey)) != 1 {
		return
	}
	from := bytes.Index(b[:end], []byte(dumpKey)) + len(dumpKey)
	_, to := decimal.Digits(b[:end], from)
	// A text may contain a fake time key. Then the time differs from the one read.
	if dump, _ := p.stamp(b[:to], from); dump == 0 || dump != l.dump {
		return
	}
	if at == len(s.all) {
		s.all = append(s.all, prefix{})
	}
	s.all[at] = prefix{bytes.Clone(b[:from]), bytes.Clone(b[to : end+1]), l.clone(), l.stateless}
	s.used = at
}
