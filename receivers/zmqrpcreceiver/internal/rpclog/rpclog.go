package rpclog

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// Kind is the kind of a line.
type Kind uint8

// The kinds.
const (
	Blank     Kind = iota
	Rule           // of = or -
	Title          // says the transport, begins a log
	Header         // names the columns
	Call           // Parser.Row
	Summary        // begins the summary; Parser.Statistic.Detail is its subject
	Statistic      // of the summary: Parser.Statistic
	Section        // a heading within the summary
	Unknown        // anything else
	Bad            // a bad call: see Parser.Reason
)

// The reasons of Bad.
const (
	ReasonNoHeader    = "no_header"
	reasonColumnCount = "column_count" // a row truncated by a crash
	reasonNumber      = "number"       // no number, not finite or absurdly large
	reasonNegative    = "negative"
	reasonNoMethod    = "no_method"
)

// Parser reads the lines of one log. The zero value is ready. Not safe for concurrent use.
type Parser struct {
	Row       Row  // valid after Call, until the next line
	Statistic Stat // valid after Statistic and Summary

	layout    layout // the current header
	below     layout // the header at the place of Duration, which looks ahead of the current line …
	ahead     Row    // … and its room for a row
	transport string
	reason    string
	summary   summary
}

// Transport is the transport in the title.
func (p *Parser) Transport() string { return p.transport }

// Header is the current header; empty: none.
func (p *Parser) Header() string { return p.layout.header }

// Reason says why the line is Bad.
func (p *Parser) Reason() string { return p.reason }

// Line reads a line, with its indentation and without its end, and returns its kind. A row of a table begins with a digit, and ends a summary; within a summary
// a line that begins with a digit and is no row may be one of the summary's.
func (p *Parser) Line(text []byte) Kind {
	p.reason = ""
	i := skip(text, 0)
	if i == len(text) {
		return Blank
	}
	if ascii.IsDigit(text[i]) {
		switch reason := p.layout.row(text[i:], &p.Row); {
		case reason == "":
			p.summary = summary{}
			return Call
		case reason == notRow || p.summary.In && (reason == reasonColumnCount || reason == ReasonNoHeader): // looked at further below
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

// LookAhead begins to look ahead: the next lines for Duration are those below the current one.
func (p *Parser) LookAhead() { p.below, p.ahead = p.layout, Row{} }

// Duration looks at a next line ahead of the current one (see LookAhead). If the line is a call, the result is its duration with its offline work, ns. A header
// holds for the lines below. What Line has read stays unchanged.
func (p *Parser) Duration(text []byte) (ns int64, ok bool) {
	i := skip(text, 0)
	if i == len(text) {
		return 0, false
	}
	if !ascii.IsDigit(text[i]) { // no row: perhaps another header
		t := trimRight(text[i:])
		if mayBeHeader(t) && string(t) != p.below.header {
			if l, ok := newLayout(string(t)); ok {
				p.below, p.ahead = l, Row{}
			}
		}
		return 0, false
	}
	if ns, known := p.below.took(text[i:]); known {
		return ns, true
	}
	if p.below.row(text[i:], &p.ahead) != "" {
		return 0, false
	}
	return p.ahead.NS[Total] + p.ahead.NS[Offline], true
}

// mayBeHeader says whether a line is worth a try as a header, which begins with ID: most lines that are none are told apart without an allocation. The bit of a
// blank makes a letter small.
func mayBeHeader(t []byte) bool { return len(t) <= maxHeader && t[0]|' ' == 'i' }

// isRule says whether t is a line drawn with one of the characters = - ─, at least three times.
func isRule(t []byte) bool {
	for _, c := range []string{"=", "-", "─"} {
		if bytes.HasPrefix(t, []byte(c)) {
			return len(t) >= 3*len(c) && bytes.Count(t, []byte(c))*len(c) == len(t)
		}
	}
	return false
}

// header reads a header, which names the columns of the rows below, and ends a summary. false: t is none.
func (p *Parser) header(t []byte) bool {
	if !mayBeHeader(t) {
		return false
	}
	if string(t) != p.layout.header {
		l, ok := newLayout(string(t))
		if !ok {
			return false
		}
		p.layout, p.Row = l, Row{}
	}
	p.summary = summary{}
	return true
}

var transport = []byte("Transport:")

const maxTransport = 128

// title reads the transport in a title, "ZeroMQ Performance Log (OTP) - Transport: IPC+SHM+OTP". false: t is none.
func (p *Parser) title(t []byte) bool {
	i := bytes.Index(t, transport)
	if i < 0 || i == 0 && p.summary.In { // a line of the summary may have the prefix too
		return false
	}
	rest := t[i+len(transport):]
	rest = rest[skip(rest, 0):]
	if len(rest) > maxTransport {
		return false
	}
	p.transport, p.summary = strings.ToValidUTF8(string(rest), "\ufffd"), summary{} // Save's JSON holds only valid UTF-8
	return true
}

// saved is the state needed to read the next lines.
type saved struct {
	Transport string  `json:"transport,omitempty"`
	Header    string  `json:"header,omitempty"`
	Summary   summary `json:"summary,omitzero"`
}

// Save returns the state needed to read the next lines. nil: none.
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

// Restore reads the result of Save.
func (p *Parser) Restore(b []byte) {
	var s saved
	if json.Unmarshal(b, &s) != nil {
		return
	}
	*p = Parser{transport: s.Transport, summary: s.Summary}
	p.layout, _ = newLayout(s.Header)
}
