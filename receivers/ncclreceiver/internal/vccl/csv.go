package vccl

import (
	"bytes"
	"strings"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/op"
)

// CSVParser reads the mission's schema (see messages) as CSV, the header of which names the columns by the keys, in any order; others are ignored. Cells may be
// quoted as in RFC 4180, but hold no line ends. No layout of the CSV is specified anywhere. It is not safe for concurrent use.
type CSVParser struct {
	m       messages
	header  string
	columns []key
	v       values
}

// The bounds of a header.
const (
	maxHeader  = 8 << 10
	maxColumns = 256
)

// NewCSV reads the file of this path.
func NewCSV(file string) *CSVParser { return &CSVParser{m: newMessages(file)} }

// NewFile is that of messages. The header stays, as long as there is no other.
func (p *CSVParser) NewFile() { p.m.NewFile() }

// Line reads a line.
func (p *CSVParser) Line(text []byte, again bool, tag uint64, out *op.Out) (op.Verdict, string) {
	b := trim(text)
	if len(b) == 0 {
		return op.Ignored, ignoredBlank
	}
	if string(b) == p.header { // said again
		return op.Ignored, ignoredHeader
	}
	if p.columns == nil {
		if p.readHeader(b) {
			return op.Ignored, ignoredHeader
		}
		return op.Rejected, reasonNoHeader
	}
	p.m.begin(again, tag)
	// Before a row is counted, it must not be a header with other columns.
	reason := reasonColumnCount
	if p.row(b) {
		if name := p.v[keyOperation]; keyOf(name) == noKey {
			reason = p.m.add(&p.v, out)
			if reason == "" {
				return op.Record, ""
			}
			return op.Rejected, reason
		}
	}
	if p.readHeader(b) {
		return op.Ignored, ignoredHeader
	}
	return op.Rejected, reason
}

// readHeader reads a header: its columns have an operation, and when or how long.
func (p *CSVParser) readHeader(b []byte) bool {
	if len(b) > maxHeader {
		return false
	}
	var columns []key
	has := 0
	for i, more := 0, true; more; {
		var c []byte
		if c, i, more = cell(b, i); i < 0 || len(columns) == maxColumns {
			return false
		}
		k := keyOf([]byte(strings.ToLower(strings.TrimSpace(string(c)))))
		columns = append(columns, k)
		has |= 1 << k
	}
	if has&(1<<keyOperation) == 0 || has&(1<<keyTimestamp|1<<keyDuration) == 0 {
		return false
	}
	p.header, p.columns = string(b), columns
	return true
}

// row splits a row.
func (p *CSVParser) row(b []byte) bool {
	p.v = values{}
	i, more := 0, true
	for _, k := range p.columns {
		if !more {
			return false
		}
		var c []byte
		if c, i, more = cell(b, i); i < 0 {
			return false
		}
		if k != noKey {
			p.v[k] = trim(c)
		}
	}
	return !more
}

// cell returns the cell that b[i:] begins with, where the next one begins, and whether there is one; −1: its quotation has no end, or goes on behind it.
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

// End has nothing to give: a row is a line.
func (p *CSVParser) End(*op.Out) {}

// Save returns the header and the ordinals.
func (p *CSVParser) Save() []byte { return p.m.save(saved{Header: p.header}) }

// Restore takes what Save returned.
func (p *CSVParser) Restore(state []byte) {
	if header := p.m.restore(state).Header; header != "" {
		p.readHeader([]byte(header))
	}
}
