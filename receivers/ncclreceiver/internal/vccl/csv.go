package vccl

import (
	"bytes"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/parse"
)

// CSVParser reads the documented schema (see messages) as CSV; the header names the columns by the keys, in any order, and other columns are ignored. Cells may
// be quoted as in RFC 4180, but hold no line ends. No layout of the CSV is specified anywhere. Not safe for concurrent use.
type CSVParser struct {
	m messages
	v values // of the current row
	// The headers seen, for rows that are read again, and the index of the current header.
	headers []header
	at      int
}

// header is a header line.
type header struct {
	text    string // the line
	columns []key  // by column; noKey: ignored
}

// The bounds of a header.
const (
	maxHeader  = 8 << 10
	maxColumns = 256
)

// NewCSV returns a parser of the file at a path.
func NewCSV(file string) *CSVParser { return &CSVParser{m: newMessages(file)} }

// NewFile is messages.NewFile. The header stays until the next one.
func (p *CSVParser) NewFile() { p.m.NewFile() }

// Line implements parse.Parser: the first line must be a header; later lines are rows, or further headers. A row that is read again is read by the header of
// its first reading, whose number is in the tag.
func (p *CSVParser) Line(text []byte, again bool, tag uint64, out *parse.Out) (parse.Verdict, string) {
	b := trim(text)
	if len(b) == 0 {
		return parse.Ignored, ignoredBlank
	}
	if len(p.headers) == 0 {
		if p.header(b) {
			return parse.Ignored, ignoredHeader
		}
		return parse.Rejected, reasonNoHeader
	}
	p.m.begin(again, tag)
	h := &p.headers[p.at]
	if i := int(tag >> tagHeader & (maxHeaders - 1)); p.m.again && i < len(p.headers) {
		h = &p.headers[i]
	}
	if string(b) == h.text { // the same header again
		return parse.Ignored, ignoredHeader
	}
	reason := reasonColumnCount
	isHeader := func() bool { return keyOf(p.v.of[keyOperation]) != noKey } // in place of an operation stands a column's name
	if p.row(b, h.columns) && !isHeader() {
		reason = p.m.add(&p.v, out)
		if reason == "" {
			if !p.m.again {
				out.Tag |= uint64(p.at) << tagHeader
			}
			return parse.Record, ""
		}
	}
	if p.header(b) { // no row, but another header
		return parse.Ignored, ignoredHeader
	}
	return parse.Rejected, reason
}

// header makes a line the current header, and returns false if the line is none. Beyond maxHeaders all others are forgotten.
func (p *CSVParser) header(b []byte) bool {
	h, ok := readHeader(b)
	if !ok {
		return false
	}
	p.at = slices.IndexFunc(p.headers, func(o header) bool { return o.text == h.text })
	switch {
	case p.at >= 0:
	case len(p.headers) < maxHeaders:
		p.at = len(p.headers)
		p.headers = append(p.headers, h)
	default:
		p.at = 0
		p.headers = append(p.headers[:0], h)
	}
	return true
}

// readHeader reads a header line. ok is false for a line without a column for the operation, and one for its time or its duration.
func readHeader(b []byte) (h header, ok bool) {
	if len(b) > maxHeader {
		return h, false
	}
	has := 0 // bit by bit: the keys with a column
	for i, more := 0, true; more; {
		var c []byte
		c, i, more = cell(b, i)
		if i < 0 || len(h.columns) == maxColumns {
			return h, false
		}
		k := keyOf([]byte(strings.ToLower(strings.TrimSpace(string(c)))))
		h.columns = append(h.columns, k)
		has |= 1 << k
	}
	if has&(1<<keyOperation) == 0 || has&(1<<keyTimestamp|1<<keyDuration) == 0 {
		return h, false
	}
	h.text = string(b)
	return h, true
}

// row splits a row into p.v by the columns; false: the row has fewer or more cells, or a quote is wrong.
func (p *CSVParser) row(b []byte, columns []key) bool {
	p.v = values{}
	i, more := 0, true
	for _, k := range columns {
		if !more {
			return false
		}
		var c []byte
		c, i, more = cell(b, i)
		if i < 0 {
			return false
		}
		p.v.set(k, trim(c))
	}
	return !more
}

// cell returns the cell at b[i:] without its quotes, the start of the next cell, and whether there is a next cell. next is −1 if the closing quote is missing,
// or is not the end of the cell.
func cell(b []byte, i int) (c []byte, next int, more bool) {
	for i < len(b) && b[i] == ' ' {
		i++
	}
	if i == len(b) || b[i] != '"' {
		n := bytes.IndexByte(b[i:], ',')
		if n < 0 {
			return b[i:], len(b), false
		}
		return b[i : i+n], i + n + 1, true
	}
	// In quotes, where two quotes stand for one.
	i++
	from, doubled := i, false
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return nil, -1, false
		}
		i += n + 1
		if i == len(b) || b[i] != '"' {
			break
		}
		i++
		doubled = true
	}
	c = b[from : i-1]
	if doubled {
		c = bytes.ReplaceAll(c, []byte(`""`), []byte(`"`))
	}
	for i < len(b) && b[i] == ' ' {
		i++
	}
	switch {
	case i == len(b):
		return c, i, false
	case b[i] == ',':
		return c, i + 1, true
	}
	return nil, -1, false
}

// End implements parse.Parser: each row is complete, so there is nothing to output.
func (p *CSVParser) End(*parse.Out) {}

// Save implements parse.Parser: it returns the headers and the ordinals.
func (p *CSVParser) Save() []byte {
	s := saved{Header: p.at}
	for _, h := range p.headers {
		s.Headers = append(s.Headers, h.text)
	}
	return p.m.save(s)
}

// Restore implements parse.Parser.
func (p *CSVParser) Restore(state []byte) {
	s := p.m.restore(state)
	for _, text := range s.Headers[:min(len(s.Headers), maxHeaders)] {
		p.header([]byte(text))
	}
	if s.Header >= 0 && s.Header < len(p.headers) {
		p.at = s.Header
	}
}
