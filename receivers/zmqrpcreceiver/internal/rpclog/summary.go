package rpclog

import (
	"bytes"
	"cmp"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Stat is a line of the summary. Its key is in snake_case, with the headings above it: "average_serialize_time",
// "operation_statistics.linear.avg_comm", "effective_time".
type Stat struct {
	Key    string
	Value  float64 // in Unit, to the nearest
	Unit   string  // s, By, By/s; empty: a plain number; else as printed
	Step   float64 // the value of the last printed digit, in Unit
	Detail string  // the text in parentheses behind the value, or else behind the name: "3.590 ms/call", "excl. offline & comm"
}

// summary is the parser's place in the summary.
type summary struct {
	In      bool   `json:"in"`
	Section string `json:"section,omitempty"`
	// Below is a section within Section, Indent the indentation of Below.
	Below  string `json:"below,omitempty"`
	Indent int    `json:"indent,omitempty"`
}

var summaryWord = []byte("SUMMARY")

const maxStatistic = 256 // bytes of a line

// beginSummary reads the first line of a summary, "SUMMARY" or "SUMMARY (OTP Encryption)". false: t is none.
func (p *Parser) beginSummary(t []byte) bool {
	rest, ok := bytes.CutPrefix(t, summaryWord)
	if !ok || len(t) > maxStatistic || len(rest) > 0 && rest[0] != ' ' && rest[0] != '(' {
		return false
	}
	p.summary = summary{In: true}
	p.Statistic = Stat{Key: "summary", Detail: strings.Trim(string(rest), " ()")}
	return true
}

var (
	statisticLine  = regexp.MustCompile(`^([^:()]+)(?:\(([^()]*)\))?\s*:\s*(.*)$`)
	statisticValue = regexp.MustCompile(`^([-+]?\d+(?:\.(\d+))?)\s*([\pL%][\pL%/ ]*?)?\s*(?:\(\s*([^()]*?)\s*\))?$`)
)

// statistic reads a line of the summary, with its indentation:
//
//	Key: value unit (detail)    a Statistic, below the headings that are open at its indentation
//	Key:                        a Section: a heading for the lines below
//	Key (count=3):              a heading with a Statistic of its own
//
// Any other line is Unknown.
func (p *Parser) statistic(t string, indent int) Kind {
	if len(t) > maxStatistic {
		return Unknown
	}
	m := statisticLine.FindStringSubmatch(t)
	if m == nil {
		return Unknown
	}
	name, inside, value := snake(m[1]), m[2], m[3]
	if name == "" {
		return Unknown
	}
	s := &p.summary
	if value == "" { // a heading
		if indent <= 1 {
			s.Section, s.Below = name, ""
		} else {
			s.Below, s.Indent = name, indent
		}
		if key, count, ok := strings.Cut(inside, "="); ok && p.Statistic.read(count) {
			p.Statistic.Key = s.path(snake(key))
			return Statistic
		}
		return Section
	}
	if !p.Statistic.read(value) {
		return Unknown
	}
	switch { // headings that end above the line
	case indent <= 1:
		s.Section, s.Below = "", ""
	case indent <= s.Indent:
		s.Below = ""
	}
	p.Statistic.Key, p.Statistic.Detail = s.path(name), cmp.Or(p.Statistic.Detail, inside)
	return Statistic
}

// path is the key of a name: the open headings and the name, with points between.
func (s *summary) path(name string) string {
	for _, above := range []string{s.Below, s.Section} {
		if above != "" {
			name = above + "." + name
		}
	}
	return name
}

// read reads the value, the unit and the detail of a statistic, "3.590 ms (per call)", into s; times become s, sizes By, rates By/s,
// other units stay as printed. false: no value.
func (s *Stat) read(text string) bool {
	m := statisticValue.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	u, exp, by := unitOf(m[3]), 0, 1.0
	read := Stat{Unit: m[3], Detail: m[4]}
	switch u.of {
	case duration:
		read.Unit, exp = "s", u.digits-9
	case size:
		read.Unit, by = "By", float64(u.bytes)
	case rate:
		read.Unit, by = "By/s", float64(u.bytes)
	}
	// The power of ten in the text makes the result the closest float.
	v, err := strconv.ParseFloat(m[1]+"e"+strconv.Itoa(exp), 64)
	if err != nil {
		return false // impossible: a line has no room for a number that large
	}
	read.Value, read.Step = v*by, math.Pow10(exp-len(m[2]))*by
	*s = read
	return true
}

// indentation is the indentation of a line. A tab counts as four.
func indentation(blanks []byte) int {
	return len(blanks) + 3*bytes.Count(blanks, []byte{'\t'})
}
