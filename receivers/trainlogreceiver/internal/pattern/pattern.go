// Package pattern reads lines by patterns from the configuration: a line of a log with placeholders in place of the numbers.
//
//	iter {iteration}: loss {loss}, time {step_time:ms}ms, mfu {mfu:%}%
//
// {name} takes a number, {name:unit} one in a unit, {...} names with their values, {*} any text. A blank stands for one blank or more, and before a number for
// none too. A pattern may match anywhere in a line; the text around the match is ignored. Between slashes stands a regular expression of package regexp, whose
// named groups are placeholders: /iter (?P<iteration>\d+) took (?P<step_time_ms>[\d.]+)/.
//
// Names are those of JSON rows (package object); an unknown name becomes a field. {name:field} is a field whatever the name means, and {name:result} a field of
// an evaluation. From each place where a pattern may begin, a line is matched from the left to the right, without going back.
package pattern

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/object"
)

// Source is the record's Source.
const Source = "pattern"

const (
	maxPattern = 4096 // bytes
	maxLine    = 8 << 10
)

// Pattern is a compiled pattern: parts, or a regular expression. Safe for concurrent use.
type Pattern struct {
	text   string // as written
	source string // of the pattern's records
	parts  []part // literal, placeholder, literal, …
	first  []byte // the longest word of the first literal, or re's literal beginning: nearly all lines lack it, so a search for it saves the match; nil: none
	re     *regexp.Regexp
	holes  []hole // of re, by group
	whole  bool   // the pattern matches the whole line

	shared int // of a Set's own copy: number of leading parts shared with the pattern before
}

// part is a text, or a hole.
type part struct {
	text []byte // has blanks where blanks stand
	hole hole
}

// hole is a placeholder.
type hole struct {
	name   []byte  // empty: {*}
	scale  float64 // the factor from the log's unit to the field's
	units  string  // the suffix of the names of objects in the placeholder's unit: "_ms"
	auto   bool    // the value has its unit: "874ms", "12.3s", "2m 11s", "1h 5m"
	pairs  bool    // {...}
	plain  bool    // a field, whatever the name means
	result bool    // of an evaluation

	// Of a Set's own copy.
	kind   kind
	known  object.Name
	number bool // nothing but a number is a value of the name
}

// kind is the meaning of a name for the record as a whole.
type kind uint8

const (
	field    kind = iota // none: the value is a field of the record
	epoch                // the number of the epoch
	epochs               // planned epochs
	step                 // the number of the step, in its epoch or in the run
	steps                // planned steps, of an epoch or of the run
	elapsed              // the running time of the run
	interval             // the time since the record before
)

// kinds are the names that are more than fields. elapsed is a clock of the run, whose differences are times of steps. interval is the time since the record
// before.
var kinds = map[string]kind{
	"epoch": epoch, "epochs": epochs, "iteration": step, "step": step, "iterations": steps, "steps": steps, "elapsed": elapsed, "interval": interval,
}

// units are the possible units of a number: the suffix of the names with the unit, and the factor where the name alone implies no unit.
var units = map[string]struct {
	suffix string
	scale  float64
}{
	"s": {"_s", 1}, "ms": {"_ms", 1e-3}, "us": {"", 1e-6}, "µs": {"", 1e-6}, "min": {"", 60}, "h": {"", 3600},
	"%": {"_percent", 0.01}, "GB": {"_gb", 1 << 30}, "GiB": {"_gib", 1 << 30}, "MB": {"_mb", 1 << 20}, "MiB": {"_mib", 1 << 20}, "B": {"_bytes", 1},
	"k": {"", 1e3}, "K": {"", 1e3}, "M": {"", 1e6}, "G": {"", 1e9}, "T": {"", 1e12},
}

// Compile returns the pattern of a text, or of a regular expression between slashes. The error states what is wrong, and at which character of a pattern.
func Compile(text string) (*Pattern, error) {
	p := &Pattern{text: text, source: Source}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("has %d bytes: at most %d", len(text), maxPattern)
	}
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("is empty: write a line of the log with {iteration} and {loss} where the numbers stand")
	}
	if n := len(text); n > 2 && text[0] == '/' && text[n-1] == '/' {
		return p, p.expression(text[1 : n-1])
	}
	if err := p.compile([]rune(text)); err != nil {
		return nil, err
	}
	return p, nil
}

// String returns the pattern as written.
func (p *Pattern) String() string { return p.text }

// MustWhole returns a pattern for whole lines of a known trainer; it panics if the text is wrong. source is the Source of its records.
func MustWhole(source, text string) *Pattern {
	p, err := Compile(text)
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", text, err))
	}
	p.source, p.whole = source, true
	return p
}

// expression compiles a regular expression, with its named groups as placeholders. An expression without one is an error.
func (p *Pattern) expression(text string) error {
	re, err := regexp.Compile(text)
	if err != nil {
		return fmt.Errorf("is no regular expression: %w", err)
	}
	p.re = re
	named := false
	for _, name := range re.SubexpNames() {
		named = named || name != ""
		p.holes = append(p.holes, hole{name: []byte(name), scale: 1})
	}
	if !named {
		return errors.New("names nothing: write (?P<iteration>\\d+) where the number of the step stands")
	}
	if lit, _ := re.LiteralPrefix(); len(lit) > 1 {
		p.first = []byte(lit)
	}
	return nil
}

// compile divides a pattern into literals and placeholders: "iter {iteration}: " becomes "iter ", the hole iteration, ": ". A doubled brace is a brace of the
// log. Of two placeholders side by side, the first must end by itself, as a number does, and the second must take all to the next literal.
func (p *Pattern) compile(text []rune) error {
	var literal []rune       // the characters since the last placeholder
	named, open := false, -1 // named: some placeholder has a name; open: where a placeholder without a literal after begins, -1: none
	endLiteral := func() {
		if len(literal) > 0 {
			p.parts, literal, open = append(p.parts, part{text: blanks(string(literal))}), nil, -1
		}
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '{' || c == '}') && i+1 < len(text) && text[i+1] == c:
			literal = append(literal, c)
			i++
		case c == '}':
			return fmt.Errorf("character %d: '}' without a '{' before it; a brace of the log is written twice: '}}'", i+1)
		case c == '{':
			to := slices.Index(text[i:], '}')
			if to < 0 {
				return fmt.Errorf("character %d: '{' without a '}' behind it; a brace of the log is written twice: '{{'", i+1)
			}
			endLiteral()
			h, err := holeOf(string(text[i+1 : i+to]))
			if err != nil {
				return fmt.Errorf("character %d: %w", i+1, err)
			}
			if n := len(p.parts); open >= 0 && (!h.takesAll() || p.parts[n-1].hole.takesAll()) {
				return fmt.Errorf("character %d: two placeholders with nothing between them: where does the first one end?", i+1)
			}
			named, open = named || h.name != nil, i
			p.parts = append(p.parts, part{hole: h})
			i += to
		default:
			literal = append(literal, c)
		}
	}
	endLiteral()
	if !named {
		return errors.New("has no placeholder: write {iteration} where the number of the step stands")
	}
	if p.parts[0].text != nil {
		for word := range bytes.SplitSeq(p.parts[0].text, []byte(" ")) {
			if len(word) > len(p.first) {
				p.first = word
			}
		}
	}
	return nil
}

// blanks returns a text with runs of blanks and tabs as one blank: the form of literals.
func blanks(text string) []byte {
	var out []byte
	for _, c := range []byte(text) {
		if c == '\t' {
			c = ' '
		}
		if c == ' ' && len(out) > 0 && out[len(out)-1] == ' ' {
			continue
		}
		out = append(out, c)
	}
	return out
}

// holeOf returns the placeholder of the text between its braces: "*", "...", "loss", or "step_time:ms" with a unit or a word after the colon (auto, field,
// result).
func holeOf(text string) (hole, error) {
	switch text {
	case "*":
		return hole{}, nil
	case "...":
		return hole{name: []byte(text), pairs: true, scale: 1}, nil
	}
	name, unit, has := strings.Cut(text, ":")
	if strings.TrimSpace(name) == "" {
		return hole{}, errors.New("a placeholder without a name: {*} takes any text")
	}
	if strings.Contains(name, "{") {
		return hole{}, errors.New("'{' without a '}' behind its name")
	}
	h := hole{name: []byte(name), scale: 1}
	if !has {
		return h, nil
	}
	switch unit {
	case "auto":
		h.auto = true
		return h, nil
	case "field":
		h.plain = true
		return h, nil
	case "result":
		h.plain, h.result = true, true
		return h, nil
	}
	u, ok := units[unit]
	if !ok {
		return hole{}, fmt.Errorf(
			"%q is no unit: there are B, GB, GiB, MB, MiB, %%, s, ms, us, min, h, k, M, G, T, auto (a time that has its unit), field and result", unit,
		)
	}
	h.scale, h.units = u.scale, u.suffix
	return h, nil
}

// takesAll reports whether the placeholder takes all text up to the next literal.
func (h *hole) takesAll() bool { return len(h.name) == 0 || h.pairs }

// same reports whether parts i of two patterns match the same text of any line, and keep the same value. A placeholder of any text goes to the next literal, so
// the parts after it must agree too.
func same(a, b []part, i int) bool {
	v, w := &a[i], &b[i]
	h, g := &v.hole, &w.hole
	sameUnit := h.scale == g.scale && h.units == g.units && h.auto == g.auto
	sameHole := bytes.Equal(h.name, g.name) && sameUnit && h.plain == g.plain && h.result == g.result
	if !bytes.Equal(v.text, w.text) || !sameHole {
		return false
	}
	if v.text != nil || h.number { // a literal, or a number: the part ends by itself
		return true
	}
	if i+1 == len(a) || i+1 == len(b) { // the part goes to the end of the line
		return len(a) == len(b)
	}
	return bytes.Equal(a[i+1].text, b[i+1].text)
}

// Set is patterns with the meaning of their names, indexed to try few on a line. Safe for concurrent use.
type Set struct {
	patterns []*Pattern      // those that match anywhere in a line, in order
	by       [256][]*Pattern // those of whole lines, by the first byte of the line
	parts    int             // number of parts of the longest
}

// Parser reads the lines of one stream by patterns. Not safe for concurrent use.
type Parser struct {
	set     *Set
	objects *object.Parser

	// Of the pattern tried last.
	values []value // of the placeholders, in order
	marks  []mark  // after each part, and before the first
	parts  int     // number of parts that matched

	counter count.Counter
	clock   count.Clock
	before  float64 // the iteration of the record before; NaN: none

	// Of the current record.
	rec           *record.Record
	epoch, epochs float64
	step, steps   float64
	stepped       bool    // step is known
	result        bool    // a value is an evaluation's
	elapsed       float64 // s
	interval      float64 // s
}

// mark is a position in a text that is matched: the offset, and the number of values so far.
type mark struct{ at, values int }

// value is the text at a placeholder.
type value struct {
	text   []byte
	number float64
	is     bool // the text is a number
}

// NewSet returns copies of patterns with the meanings of their names, in an index; mapped is as in object.New.
func NewSet(patterns []*Pattern, mapped map[string]object.Target) *Set {
	s, objects := new(Set), object.New(mapped)
	for _, pattern := range patterns {
		own := *pattern
		own.parts = slices.Clone(pattern.parts)
		for i := range own.parts {
			own.parts[i].hole.findMeaning(objects)
		}
		own.holes = slices.Clone(pattern.holes)
		for i := range own.holes {
			own.holes[i].findMeaning(objects)
		}
		s.index(&own)
		s.parts = max(s.parts, len(own.parts))
	}
	return s
}

// New returns a parser; mapped is as in object.New, and in NewSet.
func (s *Set) New(mapped map[string]object.Target) *Parser {
	return &Parser{set: s, objects: object.New(mapped), before: math.NaN(), values: make([]value, s.parts), marks: make([]mark, s.parts+1)}
}

// index adds a pattern to the set: a pattern of whole lines under each first byte that its lines may have, any other to the list of patterns.
func (s *Set) index(pattern *Pattern) {
	switch text := pattern.parts; {
	case !pattern.whole:
		s.patterns = append(s.patterns, pattern)
	case text[0].text != nil:
		s.by[text[0].text[0]] = appendSharing(s.by[text[0].text[0]], pattern)
	default: // a placeholder: lines of the built-in patterns have a number there
		for _, c := range []byte("0123456789") {
			s.by[c] = appendSharing(s.by[c], pattern)
		}
	}
}

// appendSharing appends a pattern to others, and counts the leading parts shared with the pattern before: these need not be matched again.
func appendSharing(others []*Pattern, p *Pattern) []*Pattern {
	own := *p
	if n := len(others); n > 0 {
		for before := others[n-1].parts; own.shared < min(len(before), len(p.parts)) && same(before, p.parts, own.shared); {
			own.shared++
		}
	}
	return append(others, &own)
}

// findMeaning sets the meaning of a placeholder: its kind, its field by the name among those of objects, and whether only a number may be its value.
func (h *hole) findMeaning(objects *object.Parser) {
	switch {
	case h.takesAll():
		return
	case h.plain:
		h.known, h.number = objects.Plain(h.name), h.result
		return
	}
	name := string(h.name)
	h.kind = kinds[name]
	if name == "duration" || name == "time" && h.scaled() { // without a unit, "time" may be a stamp
		name = "step_time"
	}
	if h.units != "" && objects.Known([]byte(name+h.units)) { // the name has the unit, and the record remembers the log's
		name, h.scale = name+h.units, 1
	}
	h.known = objects.Name([]byte(name))
	h.number = h.auto || h.scaled() || h.kind != field || h.known.Numeric()
}

// scaled reports whether the log has the value in a unit other than the base unit.
func (h *hole) scaled() bool { return h.units != "" || h.scale > 1 || h.scale < 1 }

// Parse fills rec, which must be empty, with the record in b, by the first matching pattern. found is false without a match; rec then stays empty. The patterns
// of whole lines come first; each is matched from where the shared parts of the pattern before end.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	if len(b) == 0 || len(b) > maxLine {
		return false, ""
	}
	for i, pattern := range p.set.by[b[0]] {
		from := 0
		if i > 0 {
			from = pattern.shared
			if from > p.parts { // the pattern before did not match in a shared part
				continue
			}
		}
		whole := p.matchAt(pattern, b, from) && blank(b[p.marks[p.parts].at:]) // nothing stands after the last part
		if whole && p.makeRecord(pattern, rec) {
			return true, ""
		}
	}
	for _, pattern := range p.set.patterns {
		if pattern.first != nil && !bytes.Contains(b, pattern.first) {
			continue
		}
		if pattern.re != nil {
			found = p.expression(pattern, b, rec)
		} else {
			found = p.match(pattern, b, rec)
		}
		if found {
			return true, ""
		}
	}
	return false, ""
}

// expression makes a record of the first match of a regular expression in b. It returns false without a match.
func (p *Parser) expression(pattern *Pattern, b []byte, rec *record.Record) bool {
	at := pattern.re.FindSubmatchIndex(b) // begin and end of each group
	if at == nil {
		return false
	}
	p.begin(rec)
	for i, h := range pattern.holes {
		if from := at[2*i]; len(h.name) > 0 && from >= 0 {
			v := value{text: b[from:at[2*i+1]]}
			v.number, v.is = decimal.GroupedFloat(v.text)
			p.put(&h, &v)
		}
	}
	return p.end(pattern.source)
}

// match makes a record of the first place in b where the pattern matches, and returns false without one. A pattern that begins with a placeholder or a blank is
// tried at the beginning of b alone, others at each place with the first byte of their literal.
func (p *Parser) match(pattern *Pattern, b []byte, rec *record.Record) bool {
	for from := 0; from <= len(b); from++ {
		if pattern.first != nil && pattern.parts[0].text[0] != ' ' {
			i := bytes.IndexByte(b[from:], pattern.parts[0].text[0])
			if i < 0 {
				return false
			}
			from += i
		} else if from > 0 {
			return false
		}
		if p.matchAt(pattern, b[from:], 0) {
			return p.makeRecord(pattern, rec)
		}
	}
	return false
}

// makeRecord makes the record of the values that matchAt has kept. It returns false if the record stays empty.
func (p *Parser) makeRecord(pattern *Pattern, rec *record.Record) bool {
	p.begin(rec)
	n := 0
	for i := range pattern.parts {
		if h := &pattern.parts[i].hole; len(h.name) > 0 {
			p.put(h, &p.values[n])
			n++
		}
	}
	return p.end(pattern.source)
}

// matchAt reports whether the pattern matches the beginning of b, and keeps the values and the ends of the parts. The parts before part number from have
// matched b already, with the pattern before: their values and ends are kept.
func (p *Parser) matchAt(pattern *Pattern, b []byte, from int) bool {
	at, values := p.marks[from].at, p.marks[from].values
	for i := from; i < len(pattern.parts); i++ {
		part := &pattern.parts[i]
		n := 0
		switch {
		case len(part.text) > 0:
			n = literalLen(b[at:], part.text)
		case part.hole.takesAll(): // {*} or {...}: all up to the next literal, or to the end of the line
			n = len(b) - at
			if i+1 < len(pattern.parts) {
				n = find(b[at:], pattern.parts[i+1].text)
			}
			if part.hole.pairs && n >= 0 {
				n = pairsLen(b[at : at+n])
				p.values[values] = value{text: b[at : at+max(n, 0)]}
				values++
			}
		default: // a value, possibly padded
			for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
				at++
			}
			n = valueOf(&p.values[values], b[at:], pattern.parts[i:])
			if n == 0 {
				n = -1
			}
			values++
		}
		if n < 0 {
			p.parts = i
			return false
		}
		at += n
		p.marks[i+1] = mark{at, values}
	}
	p.parts = len(pattern.parts)
	return true
}

// blank reports whether b has nothing but blanks and tabs.
func blank(b []byte) bool {
	for _, c := range b {
		if c != ' ' && c != '\t' {
			return false
		}
	}
	return true
}

// valueOf sets v to the value at the beginning of b for the placeholder at the beginning of rest: a number, or else the text before the next literal, unless
// only a number may stand there. The result is the length; 0: no value.
func valueOf(v *value, b []byte, rest []part) (n int) {
	h := &rest[0].hole
	if h.auto {
		v.number, n = decimal.Duration(b)
		v.text, v.is = b[:n], n > 0
		return n
	}
	v.number, n = decimal.Leading(b)
	if n <= 0 {
		if inner, is := tensor(b); is {
			v.number, n = decimal.Leading(inner)
			if n > 0 {
				v.text, v.is = inner[:n], true
				return len(tensorMark) + len(inner) + 1
			}
		}
		whole, end := decimal.Unsigned(b, 0) // "1epoch": decimal.Leading takes no number before an e
		v.number, n = float64(whole), end
	}
	v.is = n > 0
	if v.is {
		if isList := len(rest) > 1 && startsWithListComma(rest[1].text); !isList {
			v.number, n = decimal.Thousands(b, v.number, n)
		}
		v.text = b[:n]
		return n
	}
	if h.number {
		return 0
	}
	if len(rest) > 1 && rest[1].text != nil {
		n = max(find(b, rest[1].text), 0)
	} else if n = bytes.IndexAny(b, " \t,;|"); n < 0 { // without a literal after, a text is one word
		n = len(b)
	}
	v.text = b[:n]
	return n
}

// startsWithListComma reports whether a literal begins with a comma between values, as in "{step},{loss}": then no comma is between thousands.
func startsWithListComma(literal []byte) bool {
	return len(literal) > 0 && literal[0] == ',' && (len(literal) == 1 || literal[1] != ' ')
}

var tensorMark = []byte("tensor(")

// tensor returns the text in the parentheses of a Python tensor at the beginning of b: "1.5, device='cuda:0'"; false: none.
func tensor(b []byte) (inner []byte, is bool) {
	rest, is := bytes.CutPrefix(b, tensorMark)
	end := bytes.IndexByte(rest, ')')
	if !is || end < 0 {
		return nil, false
	}
	return rest[:end], true
}

// pairsLen returns the length of b if b is names with their values: "loss:2.5 lr=1e-5, grad_norm:tensor(1.5, device='cuda:0')"; -1: b has another form.
func pairsLen(b []byte) int {
	n := 0
	for rest := skipSeparators(b); len(rest) > 0; n++ {
		var name []byte
		name, _, rest = nextPair(rest)
		if name == nil {
			return -1
		}
	}
	if n == 0 {
		return -1
	}
	return len(b)
}

// nextPair returns the name and the value at the beginning of b, "lr=1e-5" or "loss:2.5", and the text after these and the separators. A value ends at a blank
// or comma outside of brackets. name nil: none.
func nextPair(b []byte) (name, value, rest []byte) {
	n := 0
	for n < len(b) && b[n] != ':' && b[n] != '=' {
		if separates(b[n]) {
			return nil, nil, nil
		}
		n++
	}
	if n == 0 || n+1 >= len(b) || separates(b[n+1]) {
		return nil, nil, nil
	}
	name, b = b[:n], b[n+1:]
	depth := 0
	for n = 0; n < len(b); n++ {
		switch b[n] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case ' ', '\t', ',':
			if depth > 0 {
				continue
			}
			return name, b[:n], skipSeparators(b[n:])
		}
	}
	return name, b, nil
}

// separates reports whether a character stands between a value and the next name.
func separates(c byte) bool { return c == ' ' || c == '\t' || c == ',' }

// skipSeparators returns b without the separators at its beginning.
func skipSeparators(b []byte) []byte {
	for len(b) > 0 && separates(b[0]) {
		b = b[1:]
	}
	return b
}

// literalLen returns the number of bytes of b that a literal takes, -1 where b does not begin with the literal. A blank of the literal takes one blank or more;
// a blank at the literal's end may be missing.
func literalLen(b, text []byte) int {
	n := 0
	// Most lines have the literal as written. Otherwise the number of blanks differs, or b does not begin with the literal.
	if last := len(text) - 1; last < len(b) && b[last] == text[last] && string(b[:last]) == string(text[:last]) {
		n = last + 1
		for text[last] == ' ' && n < len(b) && (b[n] == ' ' || b[n] == '\t') {
			n++
		}
		return n
	}
	for i, c := range text {
		if c != ' ' {
			if n == len(b) || b[n] != c {
				return -1
			}
			n++
			continue
		}
		from := n
		for n < len(b) && (b[n] == ' ' || b[n] == '\t') {
			n++
		}
		if n == from && i+1 < len(text) { // the last blank may be missing before a padded value
			return -1
		}
	}
	return n
}

// find returns where a literal begins in b, with all the blanks before it if the literal begins with a blank; -1: nowhere.
func find(b, text []byte) int {
	if len(text) == 1 && text[0] == ' ' { // the last blank may be missing
		if n := bytes.IndexAny(b, " \t"); n >= 0 {
			return n
		}
		return len(b)
	}
	lead := 0 // 1: the literal begins with a blank; the search is for the character after
	if text[0] == ' ' {
		lead = 1
	}
	for i := 0; ; i++ { // at each place of the literal's first character that is no blank
		n := bytes.IndexByte(b[i:], text[lead])
		if n < 0 {
			return -1
		}
		i += n
		from := i // of the blanks before
		for lead > 0 && from > 0 && (b[from-1] == ' ' || b[from-1] == '\t') {
			from--
		}
		if i-from >= lead && literalLen(b[from:], text) >= 0 {
			return from
		}
	}
}

// begin starts a record. NaN and 0 in the parser's numbers: the line has no such value yet.
func (p *Parser) begin(rec *record.Record) {
	p.objects.Begin(rec)
	p.rec, p.epoch, p.epochs, p.step, p.steps, p.stepped, p.result, p.elapsed, p.interval = rec, math.NaN(), 0, 0, 0, false, false, math.NaN(), math.NaN()
}

// put adds the value of a placeholder to the record. A field is set at once; a number of the record's place (step, epoch) or time is kept for end. A text where
// a number of a place or time belongs is dropped.
func (p *Parser) put(h *hole, v *value) {
	p.result = p.result || h.result
	switch {
	case h.pairs:
		for name, text, rest := nextPair(skipSeparators(v.text)); name != nil; name, text, rest = nextPair(rest) {
			if inner, is := tensor(text); is {
				text, _, _ = bytes.Cut(inner, []byte(","))
			}
			p.objects.Field(name, text)
		}
	case !v.is && h.kind == field:
		p.objects.Text(h.known, v.text)
	case h.kind == field && h.number:
		p.objects.Number(h.known, v.number*h.scale, v.text)
	case !v.is: // a regular expression's group may hold anything: 0 would be a value that the log does not have
	case h.kind == field: // possibly a stamp, or an id
		p.objects.Text(h.known, plain(v.text))
	case h.kind == epoch:
		p.epoch = v.number
		p.rec.Set(record.Epoch, v.number)
	case h.kind == epochs:
		p.epochs = v.number
	case h.kind == step:
		p.step, p.stepped = v.number, true
	case h.kind == steps:
		p.steps = v.number
	case h.kind == interval:
		p.interval = v.number * h.scale
	default:
		p.elapsed = v.number * h.scale
	}
}

// plain returns a number without the commas between its thousands.
func plain(value []byte) []byte {
	if bytes.IndexByte(value, ',') < 0 {
		return value
	}
	var out []byte
	for _, c := range value {
		if c != ',' {
			out = append(out, c)
		}
	}
	return out
}

// end completes the record with its kind, its iteration over all epochs, and the time of the step from the run's clock or the interval. It returns false if the
// record has no value.
func (p *Parser) end(source string) bool {
	rec := p.rec
	p.objects.End()
	rec.Source, rec.Kind = source, record.Step
	if p.result || !rec.Has(record.Loss) && rec.Has(record.ValidationLoss) {
		rec.Kind = record.Evaluation
	}
	if p.stepped {
		iteration, iterations := p.counter.Iteration(p.epoch, p.epochs, p.step, p.steps)
		rec.Set(record.Iteration, iteration)
		if iterations > 0 {
			rec.Set(record.Iterations, iterations)
		}
	}
	if !math.IsNaN(p.elapsed) {
		p.setDuration(p.clock.Step(p.elapsed, rec.Get(record.Iteration)))
	}
	if of := rec.Get(record.Iteration) - p.before; of > 0 { // the interval is of all steps since the record before
		p.setDuration(p.interval/of, of)
	}
	p.before = rec.Get(record.Iteration)
	return !rec.Empty()
}

// setDuration sets the duration of a step that has none: the mean over of steps, s.
func (p *Parser) setDuration(seconds, of float64) {
	if !(seconds > 0) || p.rec.Kind != record.Step || p.rec.Has(record.Duration) {
		return
	}
	p.rec.Set(record.Duration, seconds)
	if of > 1 {
		p.rec.Of = record.Mean
	}
}
