package inspector

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// object is a kind of object, by what its members are.
type object uint8

const (
	whole object = iota
	headerObject
	metadataObject
	perfObject
	perfTrace
	kernelObject
	kernelTimes
	proxyObject
	proxyTimes
	stepObject
	stepTimes
	statsObject
)

// maxOwn is how much room for texts that had escapes is kept from line to line.
const maxOwn = 64 << 10

func blanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// object reads the members of the object that begins at b[i]. It returns where it ends; -1: it is not well-formed. null, and what is no object, has none.
func (p *Parser) object(b []byte, i int, in object) int {
	if i >= len(b) || b[i] != '{' {
		return p.wrong(b, i)
	}
	if i++; i < len(b) && b[i] <= ' ' {
		i = blanks(b, i)
	}
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	return p.members(b, i, in)
}

// members reads members from the name at b[i] to the end of their object.
func (p *Parser) members(b []byte, i int, in object) int {
	for {
		n, at := p.key(b, i)
		if at < 0 {
			return -1
		}
		if at < len(b) && b[at] <= ' ' {
			at = blanks(b, at)
		}
		switch in {
		case perfObject:
			i = p.perf(b, at, n)
		case headerObject:
			i = p.header(b, at, n)
		case metadataObject:
			i = p.metadata(b, at, n)
		case whole:
			i = p.whole(b, at, n)
		case perfTrace:
			i = p.perfTrace(b, at, n)
		case kernelObject:
			i = p.kernelMember(b, at, n)
		case kernelTimes:
			i = p.kernel(b, at, n)
		case proxyObject:
			i = p.proxy(b, at, n)
		case proxyTimes:
			i = p.proxyTimes(b, at, n)
		case stepObject:
			i = p.stepMember(b, at, n)
		case stepTimes:
			i = p.stepTimes(b, at, n)
		case statsObject:
			i = p.stats(b, at, n)
		}
		if i < 0 {
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
			if i++; i < len(b) && b[i] <= ' ' {
				i = blanks(b, i)
			}
		case '}':
			return i + 1
		default:
			return -1
		}
	}
}

// list reads the objects of the array that begins at b[i], and hands each over. It returns as object does.
func (p *Parser) list(b []byte, i int, of object) int {
	if i >= len(b) || b[i] != '[' {
		return p.wrong(b, i)
	}
	i = blanks(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if of == kernelObject {
			p.kernelEvent = noKernelEvent
		} else {
			p.step = noStep
		}
		if i = p.object(b, i, of); i < 0 {
			return -1
		}
		if of == kernelObject {
			p.addKernel()
		} else {
			p.addStep()
		}
		i = blanks(b, i)
		switch {
		case i >= len(b):
			return -1
		case b[i] == ',':
			i = blanks(b, i+1)
		case b[i] == ']':
			return i + 1
		default:
			return -1
		}
	}
}

// key reads the member name at b[i] with its colon, and returns what it means and where it ends. Records are much alike: what came after the name
// before when that was last met is tried first.
func (p *Parser) key(b []byte, i int) (name, int) {
	next := p.next[p.last]
	if t := keys[next].text; next > 0 && len(b)-i >= len(t) && string(b[i:i+len(t)]) == t {
		p.last = next
		return keys[next].name, i + len(t)
	}
	if i >= len(b) || b[i] != '"' {
		return other, -1
	}
	text, i := p.quoted(b, i)
	if i < 0 {
		return other, -1
	}
	if i = blanks(b, i); i >= len(b) || b[i] != ':' {
		return other, -1
	}
	i++
	k, ok := byText[string(text)]
	if !ok {
		return other, i
	}
	p.next[p.last], p.last = k, k
	return keys[k].name, i
}

// text reads the text at b[i]: a part of b, or of the parser where it had escapes. Of null, and of what is no text, nothing.
func (p *Parser) text(b []byte, i int) ([]byte, int) {
	if i >= len(b) || b[i] != '"' {
		return nil, p.wrong(b, i)
	}
	return p.quoted(b, i)
}

func (p *Parser) quoted(b []byte, i int) ([]byte, int) {
	i++
	for n := i; n < len(b); n++ {
		switch b[n] {
		case '"':
			return b[i:n], n + 1
		case '\\':
			return p.unescape(b, i, n)
		}
	}
	return nil, -1
}

// unescape reads the rest of a text that begins at b[i] and has its first escape at b[n].
func (p *Parser) unescape(b []byte, i, n int) ([]byte, int) {
	from := len(p.own)
	p.own = append(p.own, b[i:n]...)
	for n < len(b) {
		c := b[n]
		n++
		switch {
		case c == '"':
			return p.own[from:len(p.own):len(p.own)], n
		case c != '\\':
			p.own = append(p.own, c)
			continue
		case n >= len(b):
			return nil, -1
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
		case '"', '\\', '/':
		case 'u':
			r, ok := hex4(b, n)
			if !ok {
				return nil, -1
			}
			n += 4
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if bytes.HasPrefix(b[n:], []byte(`\u`)) {
					low, ok = hex4(b, n+2)
				}
				if both := utf16.DecodeRune(r, low); ok && both != utf8.RuneError {
					r = both
					n += 6
				} else {
					r = utf8.RuneError
				}
			}
			p.own = utf8.AppendRune(p.own, r)
			continue
		default:
			return nil, -1
		}
		p.own = append(p.own, c)
	}
	return nil, -1
}

func hex4(b []byte, i int) (rune, bool) {
	if i+4 > len(b) {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[i:i+4]), 16, 16)
	return rune(v), err == nil
}

// wrong skips what should have been of another type, and makes the line a bad one, unless it is null.
func (p *Parser) wrong(b []byte, i int) int {
	if i < len(b) && b[i] != 'n' {
		p.line.bad = true
	}
	return skip(b, i)
}

// skip returns where the value at b[i] ends; -1: it does not, or is none. Within lists and objects only brackets and quotes are looked at.
func skip(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return closing(b, i)
	case '{', '[':
		return nested(b, i)
	}
	from := i
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return literal(b, from, i)
		}
		i++
	}
	return literal(b, from, i)
}

// literal says whether b[from:to] is a number, true, false or null, by its first byte.
func literal(b []byte, from, to int) int {
	if from < to {
		switch c := b[from]; {
		case c-'0' <= 9, c == '-', c == 't', c == 'f', c == 'n', c == 'N', c == 'I': // NaN and Infinity are Python's
			return to
		}
	}
	return -1
}

func closing(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

func nested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i = closing(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}
