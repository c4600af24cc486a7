package rpclog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/logids"
)

// notRow is the reason of layout.row for a line that does not begin with an integer.
const notRow = "not_a_row"

// Row is a call. Method and the Text of Fields are parts of the line.
type Row struct {
	ID     int64
	Method []byte
	Has    Columns
	// NS are the durations, exact, 0 without the column. Without Total in the log, Total is Comm, or else the sum of the stages.
	NS             [Durations]int64
	Sent, Received int64   // By, to the nearest
	Throughput     float64 // By/s, as printed
	// The value of the last printed digit: of the coarsest duration (ns), of the sizes (By), of the throughput (By/s).
	Step                     int64
	SizeStep, ThroughputStep float64
	Fields                   []Field // of unknown columns, and of ids
	IDs                      logids.IDs
}

// Field is a cell of an unknown column. The name is in snake_case, without its unit.
type Field struct {
	Name string
	Text []byte
	ID   logids.Field
}

// row reads a row, beginning with a digit, into r, and returns "" or the reason for the rejection. Cells are split at commas or at blanks, whatever separates
// the header: exports to CSV put a header with commas above rows with blanks. A row with a bad cell is read on: a wrong number of cells is the stronger reason.
//
//	12  Linear  0.123  0.045  1.234  0.067  1.469  4.00  8.00  7.98
func (l *layout) row(t []byte, r *Row) (reason string) {
	id, i := int64(0), 0 // i is the place in t
	for i < len(t) && ascii.IsDigit(t[i]) {
		id = id*10 + int64(t[i]-'0')
		i++
	}
	switch {
	case i < len(t) && t[i] > ' ' && t[i] != ',':
		return notRow
	case l.cells == nil:
		return ReasonNoHeader
	case i > 18:
		reason = reasonNumber
	}
	i = skip(t, i)
	comma := i < len(t) && t[i] == ','
	r.ID, r.Has, r.Fields = id, l.has, r.Fields[:0]
	r.Step, r.SizeStep, r.ThroughputStep = 0, 0, 0
	if l.ids {
		r.IDs = logids.IDs{}
	}
	for n := range l.cells {
		if i == len(t) {
			return reasonColumnCount
		}
		if comma {
			i = skip(t, i+1)
		}
		c := &l.cells[n]
		if c.of >= method { // a text
			end := cellEnd(t, i, comma)
			cellText := trimRight(t[i:end])
			i = skip(t, end)
			if c.of == other {
				r.Fields = append(r.Fields, Field{c.name, cellText, c.id})
				r.IDs.Set(c.id, cellText)
			} else if r.Method = cellText; len(cellText) == 0 {
				reason = reasonNoMethod
			}
			continue
		}
		v, decimals, end := c.decimal(t, i)
		next := skip(t, end)
		cellEnds := next == len(t) || comma && t[next] == ',' || !comma && next > end
		if plain := end > 0 && cellEnds; !plain {
			end = cellEnd(t, i, comma)
			var why string
			v, decimals, why = c.odd(trimRight(t[i:end]))
			reason = cmp.Or(reason, why)
			next = skip(t, end)
		}
		i = next
		r.set(c, v, pow10[c.digits-decimals])
	}
	if i < len(t) {
		return reasonColumnCount
	}
	switch {
	case l.has.Has(Total):
	case l.has.Has(Comm):
		r.NS[Total] = r.NS[Comm]
	default:
		r.NS[Total] = r.NS[Serialize] + r.NS[Send] + r.NS[Receive] + r.NS[Deserialize]
	}
	return reason
}

// set sets the value of a cell, v and the value of its last digit, step, in 10^-c.digits of the unit.
func (r *Row) set(c *cell, v, step uint64) {
	switch c.of {
	case duration:
		r.NS[c.column] = int64(v)
		r.Step = max(r.Step, int64(step))
	case size:
		bytes := int64((v*c.bytes + sizeParts/2) / sizeParts) // to the nearest
		if c.column == Sent {
			r.Sent = bytes
		} else {
			r.Received = bytes
		}
		r.SizeStep = max(r.SizeStep, float64(step)/sizeParts*float64(c.bytes))
	default:
		r.Throughput = float64(v) / sizeParts * float64(c.bytes)
		r.ThroughputStep = float64(step) / sizeParts * float64(c.bytes)
	}
}

// took returns a call's duration, with its offline work, ns, from a row of plain numbers between blanks. took only checks the form of the other cells: most
// rows of a backlog are seen ahead before they are read. known is false where only row can decide, or where the line may be no row at all.
func (l *layout) took(t []byte) (ns int64, known bool) {
	i, ok := plain(t, 0, 18, false) // the id
	if !ok {
		return 0, false
	}
	i = skip(t, i)
	if i < len(t) && t[i] == ',' {
		return 0, false
	}
	for n := range l.cells {
		if i == len(t) {
			return 0, false
		}
		c := &l.cells[n]
		switch {
		case c.of >= method:
			i = cellEnd(t, i, false)
		case c.timed:
			v, _, end := c.decimal(t, i)
			if end == 0 || end < len(t) && t[end] > ' ' {
				return 0, false
			}
			ns, i = ns+int64(v), end
		default:
			i, ok = plain(t, i, c.safe, true)
			if !ok {
				return 0, false
			}
		}
		i = skip(t, i)
	}
	return ns, i == len(t) && l.cells != nil
}

// plain finds the end of the plain number at the beginning of t[i:], with up to digits digits before the point, and decimals only if point is set. ok is false
// for another number, or if its cell, between blanks, goes on behind.
func plain(t []byte, i, digits int, point bool) (end int, ok bool) {
	from := i
	for i < len(t) && ascii.IsDigit(t[i]) {
		i++
	}
	if i == from || i-from > digits {
		return 0, false
	}
	if point && i < len(t) && t[i] == '.' {
		i++
		for from = i; i < len(t) && ascii.IsDigit(t[i]); {
			i++
		}
		if i == from {
			return 0, false
		}
	}
	return i, i == len(t) || t[i] <= ' '
}

// cellEnd is the end of the cell at the beginning of t[i:]: the next comma, or the next blank.
func cellEnd(t []byte, i int, comma bool) int {
	if comma {
		if n := bytes.IndexByte(t[i:], ','); n >= 0 {
			return i + n
		}
		return len(t)
	}
	for i < len(t) && t[i] > ' ' {
		i++
	}
	return i
}

// skip returns where the blanks and control characters at t[i:] end. Columns are far apart: eight blanks at a time are cheaper.
func skip(t []byte, i int) int {
	for len(t)-i >= 8 {
		x := binary.LittleEndian.Uint64(t[i:]) ^ blanks
		if x != 0 {
			i += bits.TrailingZeros64(x) / 8
			break
		}
		i += 8
	}
	for i < len(t) && t[i] <= ' ' {
		i++
	}
	return i
}

const blanks = ' ' * 0x0101010101010101

// trimRight cuts blanks and control characters off the end.
func trimRight(t []byte) []byte {
	for len(t) > 0 && t[len(t)-1] <= ' ' {
		t = t[:len(t)-1]
	}
	return t
}
