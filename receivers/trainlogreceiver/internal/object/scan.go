package object

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
)

// maxDepth bounds how deep objects are followed. What lies deeper is kept as text.
const maxDepth = 8

// kind is the kind of a value.
type kind uint8

const (
	none   kind = iota
	number      // a number, NaN and Infinity included
	text        // text, a truth value, or anything else as printed
	null
)

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// object reads the members of the object that begins at b[i]. -1: it is none, or is not finished.
func (p *Parser) object(b []byte, i, depth int) int {
	i = blanks(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		e, at := p.key(b, i)
		if at < 0 {
			return -1
		}
		i = blanks(b, at)
		if i >= len(b) || b[i] != ':' {
			return -1
		}
		i++
		if i < len(b) && b[i] == ' ' {
			i++
		}
		if i < len(b) && b[i] <= ' ' {
			i = blanks(b, i)
		}
		if i = p.value(b, i, depth, e); i < 0 {
			return -1
		}
		if i < len(b) && b[i] <= ' ' {
			i = blanks(b, i)
		}
		if i >= len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i++
			if i < len(b) && b[i] == ' ' {
				i++
			}
			if i < len(b) && b[i] <= ' ' {
				i = blanks(b, i)
			}
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

// key reads the name at b[i] and returns what it means, and where it ends. Records of one log have their names in one
// order: the one that came next in the record before is tried first.
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

// value reads the value at b[i] and does with it what its name asks for. -1: it is none.
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
		if i+1 < len(b) && b[i+1]|0x20 == 'i' {
			v, k, n := word(b[i+1:])
			if k != number {
				return -1
			}
			p.number(e, -v, b[i:i+1+n])
			return i + 1 + n
		}
		fallthrough
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '.':
		v, n := record.Leading(b[i:])
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
		case null:
		default:
			return p.call(b, i, e)
		}
		return i + n
	}
	at := skip(b, i)
	if at >= 0 {
		p.list(e, b[i:at])
	}
	return at
}

// numbers reads "[97, 100, 98]" of the utilization of GPUs, the list that is on every line. -1: it is something else, or not all numbers.
func (p *Parser) numbers(b []byte, i int, e *entry) int {
	if e.action != gpus || e.Scale != 0 {
		return -1
	}
	all, percent := p.rec.GPUs[:0], false
	for i++; ; i++ {
		for i < len(b) && b[i] == ' ' {
			i++
		}
		v, n := record.Leading(b[i:])
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

// call reads "np.float64(0.1)" and "tensor(2.3, device='cuda:0')" as their first number.
func (p *Parser) call(b []byte, i int, e *entry) int {
	n := i
	for n < len(b) && (b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z' || b[n]-'0' <= 9 || b[n] == '.' || b[n] == '_') {
		n++
	}
	if n == i || n >= len(b) || b[n] != '(' {
		return -1
	}
	at := skip(b, n)
	if at < 0 {
		return -1
	}
	if v, m := record.Leading(b[n+1 : at-1]); m > 0 {
		p.number(e, v, b[n+1:n+1+m])
	} else {
		p.text(e, b[i:at])
	}
	return at
}

// skip returns the end of what opens at b[i], by brackets and quotes alone. -1: it does not end.
func skip(b []byte, i int) int {
	depth := 0
	for ; i < len(b); i++ {
		switch b[i] {
		case '[', '{', '(':
			depth++
		case ']', '}', ')':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			q := b[i]
			for i++; i < len(b) && b[i] != q; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}

// quoted reads the text in quotes at b[i] and returns where it ends, -1 when it does not. The text is a part of b, or of the
// parser where escapes had to be resolved.
func (p *Parser) quoted(b []byte, i int) ([]byte, int) {
	q := b[i]
	for n := i + 1; n < len(b); n++ {
		switch b[n] {
		case q:
			return b[i+1 : n], n + 1
		case '\\':
			return p.unescape(b, i, n)
		}
	}
	return nil, -1
}

// unescape reads a text with escapes, the first of them at b[n].
func (p *Parser) unescape(b []byte, i, n int) ([]byte, int) {
	q := b[i]
	from := len(p.own)
	p.own = append(p.own, b[i+1:n]...)
	for n < len(b) {
		c := b[n]
		n++
		if c == q {
			return p.own[from:len(p.own):len(p.own)], n
		}
		if c != '\\' {
			p.own = append(p.own, c)
			continue
		}
		if n >= len(b) {
			break
		}
		c = b[n]
		n++
		switch c {
		case 'n':
			c = '\n'
		case 't':
			c = '\t'
		case 'r':
			c = '\r'
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'x', 'u', 'U':
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			r, ok := hex(b, n, digits)
			if !ok {
				return nil, -1
			}
			n += digits
			if utf16.IsSurrogate(r) && n+1 < len(b) && b[n] == '\\' && b[n+1] == 'u' {
				if low, ok := hex(b, n+2, 4); ok {
					if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
						r = both
						n += 6
					}
				}
			}
			p.own = utf8.AppendRune(p.own, r)
			continue
		}
		p.own = append(p.own, c) // \" \' \\ \/ stand for what follows
	}
	return nil, -1
}

func hex(b []byte, i, n int) (r rune, ok bool) {
	if i+n > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+n] {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// Member returns the elements of the array that the object in b has under a name, without brackets.
func Member(b []byte, name string) ([]byte, bool) {
	var p Parser
	i := blanks(b, 0)
	if i >= len(b) || b[i] != '{' {
		return nil, false
	}
	for i = blanks(b, i+1); i < len(b) && b[i] == '"'; {
		key, at := p.quoted(b, i)
		if at < 0 {
			return nil, false
		}
		if i = blanks(b, at); i >= len(b) || b[i] != ':' {
			return nil, false
		}
		i = blanks(b, i+1)
		from := i
		switch {
		case i >= len(b):
			return nil, false
		case b[i] == '[' || b[i] == '{':
			i = skip(b, i)
		case b[i] == '"':
			_, i = p.quoted(b, i)
		default:
			for i < len(b) && b[i] != ',' && b[i] != '}' {
				i++
			}
		}
		if i < 0 {
			return nil, false
		}
		if string(key) == name && b[from] == '[' {
			in := b[from+1 : i-1]
			return in[blanks(in, 0):], true
		}
		if i = blanks(b, i); i < len(b) && b[i] == ',' {
			i = blanks(b, i+1)
		}
	}
	return nil, false
}
