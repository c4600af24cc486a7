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
	before, after []byte   // the bytes before and after the digits of the time
	context       *context // what reading them gives
	stateless     bool     // line.stateless
}

// prefixes are the beginnings of earlier lines. The zero value is ready.
type prefixes struct {
	all    []prefix
	used   int // index of the prefix that fitted last
	missed int // lines without a known prefix since the last line with one; counted only while all is full
}

const (
	// fewPrefixes are tried after manyMissed lines without a known prefix: then the communicators outnumber the prefixes, and trying all costs more than it saves.
	fewPrefixes = 2
	manyMissed  = 8
)

// dumpKey is the text before the time of the dump.
const dumpKey = `"dump_timestamp_us":`

// begun compares the beginning of a line with the known prefixes. If one fits, p.line gets the context and the time of the dump, and the result is the start of
// the next member; 0: no prefix fits, and the line must be read from its beginning. The prefix of the line before is tried first, then the next ones: records
// of a communicator come together, and the communicators in one order.
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

// learn remembers the beginning of a line that was read, up to the end of its metadata at b[end]. When the table is full, only every maxPrefixes-th line
// without a known prefix replaces another, so that lines of too many communicators cost no more than reading them.
func (p *Parser) learn(b []byte, end int) {
	s, l := &p.prefixes, &p.line
	at := len(s.all)
	if at == maxPrefixes {
		s.missed++
		if s.missed%maxPrefixes != 0 {
			return
		}
		at = (s.used + maxPrefixes - 1) % maxPrefixes // the prefix that would be tried last
	}
	// Only the usual form: members follow, and the time stands once.
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
