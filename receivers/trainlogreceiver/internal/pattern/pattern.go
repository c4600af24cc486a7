// Package pattern reads lines by patterns from the configuration: a line of a log with placeholders where the numbers stand.
//
//	iter {iteration}: loss {loss}, time {step_time:ms}ms, mfu {mfu:%}%
//
// {name} takes a number, {name:unit} one in a unit, {*} any text. A blank stands for one blank or more, and before a number for none too. A pattern may match
// anywhere in a line; what stands around the match says nothing. Between slashes stands a regular expression of package regexp, whose named groups are
// placeholders: /iter (?P<iteration>\d+) took (?P<step_time_ms>[\d.]+)/.
//
// Names are those of JSON rows (package object); one that nothing is known of becomes a field of that name. A line is matched from the left to the right,
// without going back: the time is linear in its length.
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

// Pattern is a pattern. It is safe for concurrent use.
type Pattern struct {
	text  string
	parts []part // literal, placeholder, literal, …
	first []byte // the longest run of the first literal without a blank: nearly all lines lack it
	re    *regexp.Regexp
	holes []hole // of re, by group
	whole bool   // a line is like the pattern from its beginning to its end
}

// part is a text, or a hole.
type part struct {
	text []byte // has blanks where blanks stand
	hole hole
}

// hole is a placeholder.
type hole struct {
	name  []byte // empty: {*}
	scale float64
	units string // the suffix of names in this unit
	auto  bool   // the value has its unit: "874ms", "12.3s", "2m 11s", "1h 5m"

	// Of a Parser's own copy.
	kind   kind
	known  object.Name
	number bool // nothing but a number is a value of the name
}

// kind is what a name says of the record as a whole.
type kind uint8

const (
	field kind = iota
	epoch
	epochs
	step
	steps
	elapsed
	interval
)

// kinds are the names that are more than fields. elapsed is a clock of the run: its differences are times of steps. interval is the time since
// the record before.
var kinds = map[string]kind{
	"epoch": epoch, "epochs": epochs, "iteration": step, "step": step, "iterations": steps, "steps": steps, "elapsed": elapsed, "interval": interval,
}

// units are what a number may be in, as the suffix of the names that have it, and its factor where the name alone says nothing of a unit.
var units = map[string]struct {
	suffix string
	scale  float64
}{
	"s": {"_s", 1}, "ms": {"_ms", 1e-3}, "us": {"", 1e-6}, "µs": {"", 1e-6}, "min": {"", 60}, "h": {"", 3600},
	"%": {"_percent", 0.01}, "GB": {"_gb", 1 << 30}, "GiB": {"_gib", 1 << 30}, "MB": {"_mb", 1 << 20}, "MiB": {"_mib", 1 << 20}, "B": {"_bytes", 1},
	"k": {"", 1e3}, "K": {"", 1e3}, "M": {"", 1e6}, "G": {"", 1e9}, "T": {"", 1e12},
}

// Compile reads a pattern. Errors say at which character of the pattern something is wrong.
func Compile(text string) (*Pattern, error) {
	p := &Pattern{text: text}
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

// String is the pattern as it was written.
func (p *Pattern) String() string { return p.text }

// MustWhole reads a pattern that is right, and that lines are like from their beginning to their end: those of trainers that are known.
func MustWhole(text string) *Pattern {
	p, err := Compile(text)
	if err != nil {
		panic(fmt.Sprintf("pattern %q: %v", text, err))
	}
	p.whole = true
	return p
}

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

func (p *Pattern) compile(text []rune) error {
	var literal []rune
	named, open := false, -1 // where a hole without a literal behind it begins
	end := func() {
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
			end()
			if open >= 0 && string(text[i+1:i+to]) != "*" { // a number ends by itself
				return fmt.Errorf("character %d: two placeholders with nothing between them: where does the first one end?", i+1)
			}
			h, err := holeOf(string(text[i+1 : i+to]))
			if err != nil {
				return fmt.Errorf("character %d: %w", i+1, err)
			}
			named, open = named || h.name != nil, i
			p.parts = append(p.parts, part{hole: h})
			i += to
		default:
			literal = append(literal, c)
		}
	}
	end()
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

// blanks writes runs of blanks as one.
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

func holeOf(text string) (hole, error) {
	if text == "*" {
		return hole{}, nil
	}
	name, unit, has := strings.Cut(text, ":")
	if strings.TrimSpace(name) == "" {
		return hole{}, errors.New("a placeholder without a name: {*} takes any text")
	}
	if strings.ContainsAny(name, " {") {
		return hole{}, errors.New("'{' without a '}' behind its name: names have no blanks")
	}
	h := hole{name: []byte(name), scale: 1}
	if !has {
		return h, nil
	}
	if unit == "auto" {
		h.auto = true
		return h, nil
	}
	u, ok := units[unit]
	if !ok {
		return hole{}, fmt.Errorf("%q is no unit: there are B, GB, GiB, MB, MiB, %%, s, ms, us, min, h, k, M, G, T and auto, of a time that has its unit", unit)
	}
	h.scale, h.units = u.scale, u.suffix
	return h, nil
}

// Parser reads the lines of one stream by patterns. It is not safe for concurrent use.
type Parser struct {
	patterns []*Pattern      // that match anywhere, in their order
	by       [256][]*Pattern // that match whole lines, by the first byte of these
	rest     []byte          // behind what matchAt has matched
	objects  *object.Parser
	values   []value // of the holes of a pattern, in their order
	counter  count.Counter
	clock    count.Clock
	before   float64 // the number of the step before

	// Of the record at hand.
	rec           *record.Record
	epoch, epochs float64
	step, steps   float64
	stepped       bool    // step is told
	elapsed       float64 // s
	interval      float64 // s
	text          [40]byte
}

// value is what stands at a placeholder.
type value struct {
	text   []byte
	number float64
	is     bool // a number
}

// New returns a parser; mapped is as in object.New.
func New(patterns []*Pattern, mapped map[string]object.Target) *Parser {
	p := &Parser{objects: object.New(mapped), before: math.NaN()}
	for _, pattern := range patterns {
		own := *pattern
		own.parts = slices.Clone(pattern.parts)
		for i := range own.parts {
			p.know(&own.parts[i].hole)
		}
		own.holes = slices.Clone(pattern.holes)
		for i := range own.holes {
			p.know(&own.holes[i])
		}
		p.index(&own)
	}
	return p
}

// index puts a pattern where its lines find it.
func (p *Parser) index(pattern *Pattern) {
	switch text := pattern.parts; {
	case !pattern.whole:
		p.patterns = append(p.patterns, pattern)
	case text[0].text != nil:
		c := text[0].text[0]
		p.by[c] = append(p.by[c], pattern)
	default: // a number
		for _, c := range []byte("0123456789") {
			p.by[c] = append(p.by[c], pattern)
		}
	}
}

// know finds out what a placeholder means.
func (p *Parser) know(h *hole) {
	name := string(h.name)
	if h.kind = kinds[name]; name == "duration" || name == "time" && h.scaled() {
		name = "step_time"
	}
	if h.units != "" && p.objects.Known([]byte(name+h.units)) { // the name has the unit, and the record remembers the log's
		name, h.scale = name+h.units, 1
	}
	h.known = p.objects.Name([]byte(name))
	h.number = h.auto || h.scaled() || h.kind != field || h.known.Numeric()
}

// scaled says whether the log has the value in a unit.
func (h *hole) scaled() bool { return h.units != "" || h.scale > 1 || h.scale < 1 }

// Parse fills rec, which must be empty, with the record that b holds by the first pattern that matches. found false: none does, and rec stays empty.
func (p *Parser) Parse(b []byte, rec *record.Record) (found bool, reason string) {
	if len(b) > maxLine {
		return false, ""
	}
	if len(b) == 0 {
		return false, ""
	}
	for _, pattern := range p.by[b[0]] {
		if p.matchAt(pattern, b) && len(p.rest) == 0 && p.take(pattern, rec) {
			return true, ""
		}
	}
	for _, pattern := range p.patterns {
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

func (p *Parser) expression(pattern *Pattern, b []byte, rec *record.Record) bool {
	at := pattern.re.FindSubmatchIndex(b)
	if at == nil {
		return false
	}
	p.begin(rec)
	for i, h := range pattern.holes {
		if from := at[2*i]; len(h.name) > 0 && from >= 0 {
			v := value{text: b[from:at[2*i+1]]}
			v.number, v.is = decimal.GroupedFloat(v.text)
			p.put(&h, v)
		}
	}
	return p.end()
}

// match looks for a place in b where the pattern begins, and takes the first.
func (p *Parser) match(pattern *Pattern, b []byte, rec *record.Record) bool {
	for from := 0; from <= len(b); from++ {
		if pattern.first != nil && pattern.parts[0].text[0] != ' ' { // where the first literal begins
			i := bytes.IndexByte(b[from:], pattern.parts[0].text[0])
			if i < 0 {
				return false
			}
			from += i
		} else if from > 0 {
			return false
		}
		if p.matchAt(pattern, b[from:]) {
			return p.take(pattern, rec)
		}
	}
	return false
}

// take makes the record of the values of a pattern.
func (p *Parser) take(pattern *Pattern, rec *record.Record) bool {
	p.begin(rec)
	n := 0
	for i := range pattern.parts {
		if h := &pattern.parts[i].hole; len(h.name) > 0 {
			p.put(h, p.values[n])
			n++
		}
	}
	return p.end()
}

// matchAt matches the pattern with what b begins with, and keeps the values.
func (p *Parser) matchAt(pattern *Pattern, b []byte) bool {
	p.values = p.values[:0]
	for i := range pattern.parts {
		part := &pattern.parts[i]
		switch {
		case part.text != nil:
			n := literal(b, part.text)
			if n < 0 {
				return false
			}
			b = b[n:]
		case len(part.hole.name) == 0: // any text, to the next literal
			if i+1 == len(pattern.parts) {
				p.rest = nil
				return true
			}
			n := find(b, pattern.parts[i+1].text)
			if n < 0 {
				return false
			}
			b = b[n:]
		default:
			b = bytes.TrimLeft(b, " \t")
			v := valueOf(b, pattern.parts[i:])
			if len(v.text) == 0 {
				return false
			}
			p.values = append(p.values, v)
			b = b[len(v.text):]
		}
	}
	p.rest = bytes.TrimRight(b, " \t")
	return true
}

// valueOf is the value that b begins with, of the placeholder that rest begins with: a number, or else the text before the next literal. Empty: there is none.
func valueOf(b []byte, rest []part) value {
	if rest[0].hole.auto {
		v, n := spoken(b)
		return value{b[:n], v, n > 0}
	}
	v, n := decimal.Leading(b)
	if n <= 0 { // "1epoch"
		if whole, end := decimal.Unsigned(b, 0); end > 0 {
			v, n = float64(whole), end
		}
	}
	if n > 0 {
		whole := n
		for n+3 < len(b) && b[n] == ',' && digits(b[n+1:n+4]) && (n+4 == len(b) || b[n+4]-'0' > 9) { // thousands
			n += 4
		}
		if n > whole {
			v, _ = decimal.GroupedFloat(b[:n])
		}
		return value{b[:n], v, true}
	}
	if rest[0].hole.number {
		return value{}
	}
	if len(rest) > 1 {
		n = max(find(b, rest[1].text), 0)
	} else if n = bytes.IndexAny(b, " \t,;|"); n < 0 {
		n = len(b)
	}
	return value{text: b[:n]}
}

// spoken reads a time with its units, s.
func spoken(b []byte) (seconds float64, n int) {
	for i := 0; ; {
		v, used := decimal.Leading(b[i:])
		if used <= 0 {
			return seconds, n
		}
		i += used
		unit := 0.0
		for _, u := range [...]struct {
			name  string
			scale float64
		}{{"ms", 1e-3}, {"us", 1e-6}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}} {
			if bytes.HasPrefix(b[i:], []byte(u.name)) {
				unit, i = u.scale, i+len(u.name)
				break
			}
		}
		if unit == 0 {
			return seconds, n
		}
		seconds, n = seconds+v*unit, i
		if i < len(b) && b[i] == ' ' {
			i++
		}
	}
}

func digits(b []byte) bool {
	for _, c := range b {
		if c-'0' > 9 {
			return false
		}
	}
	return true
}

// literal is how many bytes of b a literal takes, -1 where b does not begin with it.
func literal(b, text []byte) int {
	n := 0
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
		if n == from && i+1 < len(text) { // the last blank may be missing: what follows is padded
			return -1
		}
	}
	return n
}

// find is where a literal begins in b; -1: nowhere.
func find(b, text []byte) int {
	for i := 0; i <= len(b); i++ {
		c := text[0]
		if c == ' ' {
			if i < len(b) && b[i] != ' ' && b[i] != '\t' {
				continue
			}
		} else {
			n := bytes.IndexByte(b[i:], c)
			if n < 0 {
				return -1
			}
			i += n
		}
		if literal(b[i:], text) >= 0 {
			return i
		}
	}
	return -1
}

func (p *Parser) begin(rec *record.Record) {
	p.objects.Begin(rec)
	p.rec, p.epoch, p.epochs, p.step, p.steps, p.stepped, p.elapsed, p.interval = rec, math.NaN(), 0, 0, 0, false, math.NaN(), math.NaN()
}

// put gives a value to the record.
func (p *Parser) put(h *hole, v value) {
	switch {
	case !v.is && h.kind == field:
		p.objects.Text(h.known, v.text)
	case h.kind == field && h.number:
		p.objects.Number(h.known, v.number*h.scale, v.text)
	case h.kind == field: // it may be a stamp, or an id
		p.objects.Text(h.known, plain(p.text[:0], v.text))
	case h.kind == epoch:
		p.epoch = v.number
		p.rec.Set(record.Epoch, v.number)
	case h.kind == epochs:
		p.epochs = v.number
	case h.kind == step:
		p.step, p.stepped = v.number, v.is
	case h.kind == steps:
		p.steps = v.number
	case h.kind == interval:
		p.interval = v.number * h.scale
	default:
		p.elapsed = v.number * h.scale
	}
}

// plain is a number without the commas between its thousands.
func plain(out, value []byte) []byte {
	for _, c := range value {
		if c != ',' {
			out = append(out, c)
		}
	}
	return out
}

// end completes the record.
func (p *Parser) end() bool {
	rec := p.rec
	p.objects.End()
	rec.Source, rec.Kind = Source, record.Step
	if !rec.Has(record.Loss) && rec.Has(record.ValidationLoss) {
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
		p.took(p.clock.Step(p.elapsed, rec.Get(record.Iteration)))
	}
	if of := rec.Get(record.Iteration) - p.before; of > 0 {
		p.took(p.interval/of, of)
	}
	p.before = rec.Get(record.Iteration)
	return !rec.Empty()
}

// took sets the time of the step, the mean of so many.
func (p *Parser) took(seconds, of float64) {
	if !(seconds > 0) || p.rec.Kind != record.Step || p.rec.Has(record.Duration) {
		return
	}
	p.rec.Set(record.Duration, seconds)
	if of > 1 {
		p.rec.Of = record.Mean
	}
}
