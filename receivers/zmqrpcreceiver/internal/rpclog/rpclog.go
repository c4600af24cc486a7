package rpclog

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strings"
)

// Kind is what a line is.
type Kind uint8

// The kinds.
const (
	Blank     Kind = iota
	Rule           // of = or -
	Title          // says the transport, begins a log
	Header         // names the columns
	Call           // Parser.Row
	Summary        // begins the summary; Parser.Statistic.Detail is what it is of
	Statistic      // of the summary: Parser.Statistic
	Section        // a heading within the summary
	Unknown        // anything else
	Bad            // should have been a call: Parser.Reason says why it is none
)

// The reasons of Bad.
const (
	ReasonNoHeader    = "no_header"
	reasonColumnCount = "column_count" // a row that was cut by a crash
	reasonNumber      = "number"       // not one, not finite or absurdly large
	reasonNegative    = "negative"
	reasonNoMethod    = "no_method"
)

// notRow is what layout.row says of a line that does not begin with an integer.
const notRow = "not_a_row"

// Row is a call. Method and the Text of Fields are parts of the line.
type Row struct {
	ID     int64
	Method []byte
	Has    Columns
	// NS are the durations, exact, 0 where there is no such column. But the Total that a log does not have is its Comm, or else the stages.
	NS             [Durations]int64
	Sent, Received int64   // By, to the nearest
	Throughput     float64 // By/s, as printed
	// What the last digit of a printed number is worth: of the coarsest of the durations (ns), of the sizes (By), of the throughput (By/s).
	Step                     int64
	SizeStep, ThroughputStep float64
	Fields                   []Field // of the columns that are not known
}

// Field is a cell of a column that is not known. The name is in snake_case, without its unit.
type Field struct {
	Name string
	Text []byte
}

// Parser reads the lines of one log. The zero value is ready. It is not safe for concurrent use.
type Parser struct {
	Row       Row  // valid after Call, until the next line
	Statistic Stat // valid after Statistic and Summary

	layout    layout
	ahead     Row // of Duration
	transport string
	reason    string
	summary   summary
}

// Transport is what the title says.
func (p *Parser) Transport() string { return p.transport }

// Reason says why the line is Bad.
func (p *Parser) Reason() string { return p.reason }

// Line reads a line, with its indentation and without its end.
func (p *Parser) Line(text []byte) Kind {
	p.reason = ""
	i := skip(text, 0)
	if i == len(text) {
		return Blank
	}
	if text[i]-'0' <= 9 {
		switch reason := p.layout.row(text[i:], &p.Row); {
		case reason == "":
			p.summary = summary{}
			return Call
		case reason == notRow || p.summary.In && (reason == reasonColumnCount || reason == ReasonNoHeader):
		default:
			p.reason = reason
			return Bad
		}
	}
	t := trimRight(text[i:])
	switch {
	case isRule(t):
		return Rule
	case p.header(t):
		return Header
	case p.title(t):
		return Title
	case p.beginSummary(t):
		return Summary
	case p.summary.In:
		return p.statistic(string(t), indentation(text[:i]))
	}
	return Unknown
}

// Duration looks ahead: it returns how long a call took, with its offline work, if the line is one by the header at hand. It leaves Row and
// everything else as it is.
func (p *Parser) Duration(text []byte) (ns int64, ok bool) {
	i := skip(text, 0)
	if i == len(text) || text[i]-'0' > 9 || p.layout.row(text[i:], &p.ahead) != "" {
		return 0, false
	}
	return p.ahead.NS[Total] + p.ahead.NS[Offline], true
}

// row reads a row, of which t begins with a digit, and returns "" or why it is none. Cells are split at commas or at blanks, whatever those
// of the header are: the export of seed 002 puts a header with commas above rows with blanks.
func (l *layout) row(t []byte, r *Row) (reason string) {
	id, i := int64(0), 0
	for i < len(t) && t[i]-'0' <= 9 {
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
	for n := range l.cells {
		if i == len(t) {
			return reasonColumnCount
		}
		if comma {
			i = skip(t, i+1)
		}
		c := &l.cells[n]
		if c.of >= method {
			end := cellEnd(t, i, comma)
			cellText := trimRight(t[i:end])
			i = skip(t, end)
			if c.of == other {
				r.Fields = append(r.Fields, Field{c.name, cellText})
			} else if r.Method = cellText; len(cellText) == 0 {
				reason = reasonNoMethod
			}
			continue
		}
		v, decimals, end := c.decimal(t, i)
		next := skip(t, end)
		if plain := end > 0 && (next == len(t) || comma && t[next] == ',' || !comma && next > end); !plain {
			end = cellEnd(t, i, comma)
			var why string
			v, decimals, why = c.odd(trimRight(t[i:end]))
			reason = cmp.Or(reason, why)
			next = skip(t, end)
		}
		i = next
		step := pow10[c.digits-decimals]
		switch c.of {
		case duration:
			r.NS[c.column] = int64(v)
			r.Step = max(r.Step, int64(step))
		case size:
			n := int64((v*c.bytes + sizeParts/2) / sizeParts)
			if c.column == Sent {
				r.Sent = n
			} else {
				r.Received = n
			}
			r.SizeStep = max(r.SizeStep, float64(step)/sizeParts*float64(c.bytes))
		default:
			r.Throughput = float64(v) / sizeParts * float64(c.bytes)
			r.ThroughputStep = float64(step) / sizeParts * float64(c.bytes)
		}
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

// cellEnd is where the cell that t[i:] begins with ends.
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

// skip returns where the blanks at t[i:] end. Columns are far apart: eight blanks at a time are cheaper.
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

func trimRight(t []byte) []byte {
	for len(t) > 0 && t[len(t)-1] <= ' ' {
		t = t[:len(t)-1]
	}
	return t
}

// isRule says whether t is three or more of one of = - ─.
func isRule(t []byte) bool {
	for _, c := range []string{"=", "-", "─"} {
		if bytes.HasPrefix(t, []byte(c)) {
			return len(t) >= 3*len(c) && bytes.Count(t, []byte(c))*len(c) == len(t)
		}
	}
	return false
}

// header reads the names of the columns.
func (p *Parser) header(t []byte) bool {
	if len(t) > maxHeader || t[0]|' ' != 'i' {
		return false
	}
	if string(t) != p.layout.header {
		l, ok := newLayout(string(t))
		if !ok {
			return false
		}
		p.layout, p.Row, p.ahead = l, Row{}, Row{}
	}
	p.summary = summary{}
	return true
}

var transport = []byte("Transport:")

const maxTransport = 128

// title reads "ZeroMQ Performance Log (OTP) - Transport: IPC+SHM+OTP".
func (p *Parser) title(t []byte) bool {
	i := bytes.Index(t, transport)
	if i < 0 {
		return false
	}
	rest := t[i+len(transport):]
	rest = rest[skip(rest, 0):]
	if len(rest) > maxTransport {
		return false
	}
	p.transport, p.summary = strings.ToValidUTF8(string(rest), "\ufffd"), summary{} // Save can keep no other text
	return true
}

// saved is what the lines that follow are read by.
type saved struct {
	Transport string  `json:"transport,omitempty"`
	Header    string  `json:"header,omitempty"`
	Summary   summary `json:"summary,omitzero"`
}

// Save returns what the lines that follow are read by. nil: nothing.
func (p *Parser) Save() []byte {
	s := saved{p.transport, p.layout.header, p.summary}
	if s == (saved{}) {
		return nil
	}
	b, err := json.Marshal(&s)
	if err != nil {
		return nil // cannot be: texts and numbers
	}
	return b
}

// Restore takes what Save returned.
func (p *Parser) Restore(b []byte) {
	var s saved
	if json.Unmarshal(b, &s) != nil {
		return
	}
	*p = Parser{transport: s.Transport, summary: s.Summary}
	p.layout, _ = newLayout(s.Header)
}
