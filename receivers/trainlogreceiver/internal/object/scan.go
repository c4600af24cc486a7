package object

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
	"github.com/trainbridge/trainbridge/receivers/internal/jsonlike"
)

var (
	lexer  = jsonlike.Lexer{Notation: jsonlike.Python, Word: jsonlike.Alphanumeric("._")} // of the names of Python's functions
	passes = jsonlike.Lexer{Notation: jsonlike.Python, Word: jsonlike.Until(",}", "")}    // skips all other values
)

// maxDepth bounds how deep objects are followed. Deeper objects are kept as text.
const maxDepth = 8

// kind is the kind of a value.
type kind uint8

const (
	none   kind = iota
	number      // a number, NaN and Infinity included
	text        // text, a truth value, or any other value as printed
	null
)

// object reads the members of the object at b[i] into the record, and returns the end of the object; -1: no object, or an unfinished one. depth counts from 1.
func (p *Parser) object(b []byte, i, depth int) int {
	i, more := jsonlike.Begin(b, i, '}')
	for more {
		e, at := p.key(b, i)
		if at < 0 {
			return -1
		}
		at = jsonlike.Colon(b, at)
		if at < 0 {
			return -1
		}
		i = p.value(b, jsonlike.Blanks(b, at), depth, e)
		if i < 0 {
			return -1
		}
		if i+2 < len(b) && b[i] == ',' && b[i+1] == ' ' && b[i+2] > ' ' { // a short way: one comma and blank, as json.dumps prints
			i += 2
			continue
		}
		i, more = jsonlike.Comma(b, i)
		i = jsonlike.Blanks(b, i)
	}
	return jsonlike.Close(b, i, '}')
}

// key reads the name at b[i] and returns its meaning and its end; -1: no name. Records of one log have their names in one order, so the name after the previous
// one in the record before is tried first.
func (p *Parser) key(b []byte, i int) (*entry, int) {
	if i >= len(b) || b[i] != '"' && b[i] != '\'' {
		return nil, -1
	}
	q := b[i]
	if p.next < len(p.order) {
		if e := p.order[p.next]; e.prefix == len(p.path) {
			name := e.name[e.prefix:]
			end := i + 1 + len(name)
			if end < len(b) && b[end] == q && string(b[i+1:end]) == string(name) && (e.prefix == 0 || string(e.name[:e.prefix]) == string(p.path)) {
				p.next++
				return e, end + 1
			}
		}
	}
	name, at := p.quoted(b, i)
	if at < 0 {
		return nil, -1
	}
	e := p.entry(name)
	switch {
	case p.next < len(p.order):
		p.order[p.next] = e
	case p.next < maxOrder:
		p.order = append(p.order, e)
	}
	p.next++
	return e, at
}

// value reads the value at b[i] of the name with entry e, puts it into the record, and returns the end of the value; -1: no value. Members of an object get the
// object's name before their own, except in an object with the action unwrap.
func (p *Parser) value(b []byte, i, depth int, e *entry) int {
	if i >= len(b) {
		return -1
	}
	switch c := b[i]; c {
	case '"', '\'':
		s, at := p.quoted(b, i)
		if at >= 0 {
			p.text(e, s)
		}
		return at
	case '{':
		if depth >= maxDepth {
			break
		}
		from := len(p.path)
		if e.action == unwrap {
			p.flags |= wrapped
		} else {
			p.path = append(append(p.path[:0], e.name...), '.')
		}
		at := p.object(b, i, depth+1)
		p.path = p.path[:from]
		return at
	case '[', '(':
		if at := p.numbers(b, i, e); at >= 0 {
			return at
		}
	case '-':
		if i+1 < len(b) && b[i+1]|0x20 == 'i' { // -inf, -Infinity
			v, k, n := word(b[i+1:])
			if k != number {
				return -1
			}
			p.number(e, -v, b[i:i+1+n])
			return i + 1 + n
		}
		fallthrough
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '.':
		v, n := decimal.Leading(b[i:])
		if n == 0 {
			return -1
		}
		p.number(e, v, b[i:i+n])
		return i + n
	default:
		v, k, n := word(b[i:])
		switch k {
		case number:
			p.number(e, v, b[i:i+n])
		case text:
			p.text(e, b[i:i+n])
		case null: // says nothing
		default:
			return p.call(b, i, e)
		}
		return i + n
	}
	at := lexer.Nested(b, i) // a list, or an object below maxDepth
	if at >= 0 {
		p.list(e, b[i:at])
	}
	return at
}

// numbers reads "[97, 100, 98]" of the utilization of GPUs at b[i] and returns the end. It does the work of gpuList in one pass, for a list on every line. -1:
// another name, or one with a scale of the configuration, or not all elements are numbers.
func (p *Parser) numbers(b []byte, i int, e *entry) int {
	if e.action != gpus || e.Scale != 0 {
		return -1
	}
	all, percent := p.rec.GPUs[:0], false
	for i++; ; i++ {
		for i < len(b) && b[i] == ' ' {
			i++
		}
		v, n := decimal.Leading(b[i:])
		if n == 0 {
			return -1
		}
		percent = percent || v > 1 || bytes.IndexByte(b[i:i+n], '.') < 0
		all = append(all, v)
		if i += n; i == len(b) || b[i] != ',' {
			break
		}
	}
	if i == len(b) || b[i] != ']' {
		return -1
	}
	p.gpus(e, all, percent)
	return i + 1
}

// call reads a call in Python's repr at b[i], "np.float64(0.1)" or "tensor(2.3, device='cuda:0')", and returns its end; -1: no call. The value is the number
// after the bracket, or the whole text where no number is there.
func (p *Parser) call(b []byte, i int, e *entry) int {
	n := lexer.Bare(b, i)
	if n < 0 || n >= len(b) || b[n] != '(' {
		return -1
	}
	at := lexer.Nested(b, n)
	if at < 0 {
		return -1
	}
	if v, m := decimal.Leading(b[n+1 : at-1]); m > 0 {
		p.number(e, v, b[n+1:n+1+m])
	} else {
		p.text(e, b[i:at])
	}
	return at
}

// quoted reads the text in quotes at b[i], and returns the text and its end; -1: no end.
func (p *Parser) quoted(b []byte, i int) ([]byte, int) { return lexer.Text(b, i, &p.own) }

// Member returns the elements of the array called name in the object in b, without the brackets: "{…}, {…}" of "log_history" in trainer_state.json. Other
// members are skipped unread. It returns false without an object or the array, and for an unfinished one.
func Member(b []byte, name string) ([]byte, bool) {
	var own jsonlike.Texts
	i := jsonlike.Blanks(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil, false
	}
	for i = jsonlike.Blanks(b, i+1); i < len(b) && b[i] == '"'; {
		key, at := passes.Text(b, i, &own)
		if at < 0 {
			return nil, false
		}
		from := jsonlike.Colon(b, at)
		if from < 0 {
			return nil, false
		}
		from = jsonlike.Blanks(b, from)
		if from == len(b) {
			return nil, false
		}
		switch b[from] {
		case '[', '{':
			i = passes.Nested(b, from)
		case '"':
			_, i = passes.Text(b, from, &own)
		default:
			i = max(from, passes.Bare(b, from)) // Bare is -1 without a value: the loop then ends
		}
		if i < 0 {
			return nil, false
		}
		if string(key) == name && b[from] == '[' {
			in := b[from+1 : i-1]
			return in[jsonlike.Blanks(in, 0):], true
		}
		i, _ = jsonlike.Comma(b, i)
		i = jsonlike.Blanks(b, i)
	}
	return nil, false
}
