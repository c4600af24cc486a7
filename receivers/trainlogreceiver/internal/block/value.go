package block

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

var bullet, coqui = []byte("• "), []byte("| > ")

// pair is a name and its number.
type pair struct {
	name   []byte
	value  []byte // the number's text in the log
	unit   []byte
	number float64
	share  bool // followed by a share in percent: "32.85s (48.9%)"
}

const maxWords = 6 // of a name

// split reads a value's line: " loss: 2.3641", " train/CE loss=10.62", " • Total step time: 69.39s". ok is false for any other line, or without a number.
// Which lines may be values depends on the open block, p.state.In:
//   - in each block, a line with the bullet • or Coqui's sign "| >", in front of the rules below
//   - of a banner, no other line once state.Far is set: after the first line without a value below the header
//   - of olmo, an indented line; the bullets - and * are no bullets there
//   - otherwise, an indented line, or a line with the bullet - or *
//
// The name ends at the first ": " or "=", in olmo at "=" alone. pair.take reads the number, unit and share behind.
func (p *Parser) split(b []byte) (q pair, ok bool) {
	text := bytes.TrimLeft(b, " \t")
	indented := len(text) < len(b)
	switch {
	case bytes.HasPrefix(text, bullet):
		text = text[len(bullet):]
	case bytes.HasPrefix(text, coqui):
		text = text[len(coqui):]
	case p.state.In == banner && p.state.Far:
		return q, false
	case p.state.In != olmo && (bytes.HasPrefix(text, []byte("- ")) || bytes.HasPrefix(text, []byte("* "))):
		text = text[2:]
	case !indented:
		return q, false
	}
	i := bytes.IndexByte(text, '=')                                                             // the sign after the name
	if c := bytes.Index(text, []byte(": ")); p.state.In != olmo && c >= 0 && (i < 0 || c < i) { // OLMo's names may have a colon
		i = c
	}
	if i < 1 { // no sign, or no name
		return q, false
	}
	q.name = bytes.TrimSpace(text[:i])
	return q, isName(q.name, p.state.In == olmo) && q.take(bytes.TrimSpace(text[i+1:]))
}

// isName reports whether b may be the name of a value: a letter, then letters, digits and some signs, in up to maxWords words. OLMo's names are free: all signs
// are allowed.
func isName(b []byte, free bool) bool {
	if len(b) == 0 || len(b) > 128 || !ascii.IsLetter(b[0]) || bytes.Count(b, []byte(" ")) >= maxWords {
		return false
	}
	for _, c := range b {
		switch {
		case ascii.IsLetter(c), ascii.IsDigit(c), c == '_', c == '/', c == ' ', c == '-', c == '.', c == '@':
		case free && c >= ' ':
		case c == '(' || c == ')' || c == '%':
		default:
			return false
		}
	}
	return true
}

// take reads "1,234.5 ms (12.3%)" into the pair: a number, a unit and a share. It returns false for another text.
func (q *pair) take(b []byte) bool {
	n := 0 // length of the number
	for n < len(b) && (ascii.IsDigit(b[n]) || bytes.IndexByte([]byte("+-.,eE"), b[n]) >= 0) {
		n++
	}
	for n > 0 && bytes.IndexByte([]byte("eE,"), b[n-1]) >= 0 { // the first letter of a word, or a comma, after
		n--
	}
	if n == 0 || b[0] == '+' || b[0] == '-' && n == 1 { // "nan", "+inf", "-inf"; "+5" is a difference
		n = wordNumber(b)
	}
	q.value = b[:n]
	v, ok := decimal.Float(bytes.ReplaceAll(q.value, []byte(","), nil))
	if n == 0 || !ok {
		return false
	}
	q.number = v
	rest := bytes.TrimSpace(b[n:])
	if i := bytes.IndexByte(rest, '('); i >= 0 && bytes.HasSuffix(rest, []byte("%)")) {
		if _, ok := decimal.Float(rest[i+1 : len(rest)-2]); !ok {
			return false
		}
		q.share, rest = true, bytes.TrimSpace(rest[:i])
	}
	if len(rest) > 2 && rest[0] == '(' && rest[len(rest)-1] == ')' { // a mean
		if _, ok := decimal.Float(rest[1 : len(rest)-1]); ok {
			rest = nil
		}
	}
	q.unit = rest
	return len(rest) == 0 || isUnit(rest)
}

// wordNumber returns the length of nan or inf, with a sign; 0: another text.
func wordNumber(b []byte) int {
	t := bytes.TrimLeft(b, "+-")
	for _, word := range [...]string{"nan", "inf"} {
		if len(t) >= 3 && bytes.EqualFold(t[:3], []byte(word)) && (len(t) == 3 || t[3] == ' ') {
			return len(b) - len(t) + 3
		}
	}
	return 0
}

// isUnit reports whether a word may be a unit: a word after a number in a sentence is longer.
func isUnit(b []byte) bool {
	if len(b) > 16 {
		return false
	}
	for _, c := range b {
		if !ascii.IsLetter(c) && c != '/' && c != '%' && c != '_' {
			return false
		}
	}
	return true
}

// seconds are the units of time, s.
var seconds = map[string]float64{"s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1, "ms": 1e-3, "min": 60}

// suffixes are the endings of names for units.
var suffixes = map[string]string{"GB": "_gb", "GiB": "_gib", "MB": "_mb", "MiB": "_mib"}

// large are the factors after OLMo-core's numbers (src/olmo_core/utils.py, format_float).
var large = map[string]float64{"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}

// known are names of trainers with their equivalents in objects.
var known = map[string]string{
	"train/crossentropyloss": "loss", "train/ce loss": "loss", "optim/total_grad_norm": "grad_norm", "optim/total grad norm": "grad_norm",
	"optim/lr (group 0)": "lr", "optim/learning_rate_group0": "lr", "throughput/device/tps": "tokens_per_sec_per_gpu",
	"throughput/device/tokens_per_second": "tokens_per_sec_per_gpu", "throughput/device/mfu": "mfu",
	"throughput/total_tokens": "consumed_tokens", "throughput/total tokens": "consumed_tokens", "throughput/device/data loading (s)": "data_loading(s)",
	"total step time": "step_time",
}

// perSecond is OLMo-core's number of steps per second, of the step itself.
const perSecond = "throughput/device/bps"

// canonical returns a name in small letters, and the equivalent in objects, which is the name itself if there is none.
func canonical(name []byte) (lower string, out []byte) {
	lower = string(bytes.ToLower(name))
	if n, ok := known[lower]; ok {
		return lower, []byte(n)
	}
	return lower, name
}

// begins reports whether a value makes the block a record: a loss, or the time of the step.
func (p *Parser) begins(q pair) bool {
	lower, name := canonical(q.name)
	return p.objects.About(name).Loss || lower == "total step time" || string(name) == "step_time"
}

// add adds a value to the record. The field of a number is that of the name with the unit ("memory_gb"), of the name alone, or of the unit ("tokens/s"). A time
// with a share of the step is a part of the step. A value with an unknown unit is kept as text.
func (p *Parser) add(rec *record.Record, q pair) {
	lower, name := canonical(q.name)
	p.number = p.number[:0]
	for _, c := range q.value {
		if c != ',' {
			p.number = append(p.number, c)
		}
	}
	per, timed := seconds[string(q.unit)]
	scale, big := large[string(q.unit)]
	suffix, hasSuffix := suffixes[string(q.unit)]
	switch {
	case p.objects.About(name).Step: // already in the header
	case lower == perSecond && q.number > 0:
		rec.Set(record.Duration, 1/q.number)
	case isTime(lower) && (timed || len(q.unit) == 0 && bytes.IndexByte(q.value, '.') >= 0): // a whole number without a unit may be anything
		if !timed {
			per = 1
		}
		p.took(rec, q.number*per)
	case timed && q.share: // "generation: 33.93s (48.9%)"
		rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: q.number * per})
	case timed && p.known(name, "_s"):
		p.objects.Number(p.objects.Name(p.name), q.number*per, p.number)
	case hasSuffix && p.known(name, suffix):
		p.objects.Field(p.name, p.number)
	case big && p.state.In == olmo: // "1.2M"
		p.objects.Number(p.objects.Name(name), q.number*scale, p.number)
	case len(q.unit) == 0:
		p.objects.Number(p.objects.Name(name), q.number, p.number)
	case string(q.unit) != "%" && p.objects.Known(q.unit): // "tokens/s"
		p.objects.Number(p.objects.Name(q.unit), q.number, p.number)
	default:
		rec.AddExtra(record.Extra{Name: name, Text: append(append([]byte(nil), q.value...), q.unit...)})
	}
}

// known makes p.name of a name and its unit, and reports whether objects know the name.
func (p *Parser) known(name []byte, suffix string) bool {
	p.name = append(append(p.name[:0], name...), suffix...)
	return p.objects.Known(p.name)
}

// took sets the duration of a step from a loop's "time", s: of the step, or of the run so far, as count.Guess finds.
func (p *Parser) took(rec *record.Record, s float64) {
	v, of := p.time.Step(s, p.state.Step)
	if !(v > 0) || math.IsInf(v, 0) || rec.Has(record.Duration) {
		return
	}
	rec.Set(record.Duration, v)
	if of > 1 {
		rec.Of = record.Mean
	}
}

// isTime reports whether a name is of a time that loops print with each step.
func isTime(lower string) bool {
	switch lower {
	case "time", "step time", "batch time", "time taken", "took", "iteration time", "iter time":
		return true
	}
	return false
}
