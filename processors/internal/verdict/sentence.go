package verdict

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
)

// Places are the values that the sentences of a domain may name, each with its reader. NaN, a negative count or an empty text is an unknown value: the section
// that names it is left out.
type Places[T any] struct {
	Numbers map[string]func(of *T) float64
	Counts  map[string]func(of *T) int64
	Texts   map[string]func(b []byte, of *T) []byte // appends the text
	When    map[string]func(of *T) bool             // conditions of sections
}

// sentence is a compiled template:
//
//	{place}          a value of Places: a number with at most three digits, a count, a text. {value} and {threshold} come from the verdict.
//	{place:style}    a number as percent, seconds, bytes, rate or binary rate (By/s), or flop/s: see internal/human
//	[text]           left out as a whole where a place right in it is unknown; a section within is left out on its own
//	[text|other]     the alternative text instead
//	[when? text]     present where the condition holds; the space before the text belongs to the text
//	[when?text|other]
type sentence[T any] []part[T]

// part is plain text, a value or a section.
type part[T any] struct {
	text   string                       // where nothing else is set
	number func(of *T) float64          // of Places.Numbers
	style  style                        // of number and given
	count  func(of *T) int64            // of Places.Counts
	append func(b []byte, of *T) []byte // of Places.Texts
	given  func(g given) float64        // of the verdict, not of the T

	section         bool
	when            func(of *T) bool // the condition of the section; nil: none
	then, otherwise sentence[T]      // [then|otherwise]
}

// given has the numbers that a verdict passes to its sentence.
type given struct{ value, threshold float64 }

// style is how a number is written.
type style func(b []byte, x float64) []byte

var styles = map[string]style{
	"": human.AppendDigits, "percent": human.AppendPercent, "seconds": human.AppendSeconds, "bytes": human.AppendBytes, "rate": human.AppendRate,
	"binary rate": human.AppendBinaryRate, "flop/s": human.AppendFlops,
}

// write appends the sentence about of. It returns false where a place at the top level, outside of sections, is unknown: such a place is left out.
func (s sentence[T]) write(b []byte, of *T, g given) ([]byte, bool) {
	known := true
	for i := range s {
		p := &s[i]
		switch {
		case p.number != nil:
			b, known = p.write(b, p.number(of), known)
		case p.count != nil:
			n := p.count(of)
			if n < 0 {
				known = false
				continue
			}
			b = strconv.AppendInt(b, n, 10)
		case p.append != nil:
			n := len(b)
			b = p.append(b, of)
			known = known && len(b) > n
		case p.given != nil:
			b, known = p.write(b, p.given(g), known)
		case p.section:
			b = p.choose(b, of, g)
		default:
			b = append(b, p.text...)
		}
	}
	return b, known
}

// write appends a number in the style of the part. It returns known, or false where the number is NaN.
func (p *part[T]) write(b []byte, x float64, known bool) ([]byte, bool) {
	if math.IsNaN(x) {
		return b, false
	}
	return p.style(b, x), known
}

// choose appends the text of a section: then, or, where the condition does not hold, otherwise. Without a condition, otherwise is also taken where a place in
// then is unknown; with one, then stays without the place.
func (p *part[T]) choose(b []byte, of *T, g given) []byte {
	from := len(b)
	if p.when == nil || p.when(of) {
		after, known := p.then.write(b, of, g)
		if known || p.when != nil {
			return after
		}
		b = after[:from]
	}
	b, _ = p.otherwise.write(b, of, g)
	return b
}

// compile panics on a malformed template. Templates are constants, so any test that loads the package finds the mistake.
func compile[T any](template string, places *Places[T]) sentence[T] {
	c := compiler[T]{template: template, rest: template, places: places}
	s := c.until("")
	if c.rest != "" {
		c.fail("a bracket too many")
	}
	return s
}

// compiler turns a template into a sentence.
type compiler[T any] struct {
	template, rest string // rest: not compiled yet
	places         *Places[T]
}

func (c *compiler[T]) fail(why string) {
	panic(fmt.Sprintf("verdict: %s before %q in %q", why, c.rest, c.template))
}

// until compiles up to one of the bytes of end, and leaves that byte unread.
func (c *compiler[T]) until(end string) (s sentence[T]) {
	for c.rest != "" {
		i := strings.IndexAny(c.rest, "{[]|")
		if i < 0 {
			i = len(c.rest)
		}
		if i > 0 {
			s = append(s, part[T]{text: c.rest[:i]})
			c.rest = c.rest[i:]
			continue
		}
		switch c.rest[0] {
		case '{':
			s = append(s, c.value())
		case '[':
			s = append(s, c.section())
		default:
			if !strings.Contains(end, c.rest[:1]) {
				c.fail("no section begins")
			}
			return s
		}
	}
	if end != "" {
		c.fail("a section has no end")
	}
	return s
}

// value compiles {place} or {place:style}.
func (c *compiler[T]) value() (p part[T]) {
	inside, rest, ok := strings.Cut(c.rest[1:], "}")
	if !ok {
		c.fail("a place has no end")
	}
	name, how, _ := strings.Cut(inside, ":")
	p.style = styles[how]
	switch {
	case p.style == nil:
		c.fail("no such style")
	case name == "value":
		p.given = func(g given) float64 { return g.value }
	case name == "threshold":
		p.given = func(g given) float64 { return g.threshold }
	default:
		p.number, p.count, p.append = c.places.Numbers[name], c.places.Counts[name], c.places.Texts[name]
		if p.number == nil && p.count == nil && p.append == nil {
			c.fail("no such place")
		}
	}
	c.rest = rest
	return p
}

// section compiles [text], [text|other] or one of these behind a condition: [when?text|other].
func (c *compiler[T]) section() (p part[T]) {
	p.section = true
	c.rest = c.rest[1:]
	if i := strings.IndexAny(c.rest, "{[]|?"); i > 0 && c.rest[i] == '?' {
		p.when = c.places.When[c.rest[:i]]
		if p.when == nil {
			c.fail("no such condition")
		}
		c.rest = c.rest[i+1:]
	}
	p.then = c.until("|]")
	if c.rest[0] == '|' {
		c.rest = c.rest[1:]
		p.otherwise = c.until("]")
	}
	c.rest = c.rest[1:]
	return p
}
