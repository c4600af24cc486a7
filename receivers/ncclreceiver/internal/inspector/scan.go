package inspector

import "github.com/trainbridge/trainbridge/receivers/internal/jsonlike"

// object is a kind of object in a line. Parser.members knows the method that reads the members of each kind.
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

// lexer ends numbers, true, false and null at the possible next characters. NaN and Infinity are Python's.
var lexer = jsonlike.Lexer{Word: jsonlike.Until(",}] \t\n\r", "0123456789-tfnNI")}

// object reads the members of the object at b[i] and returns its end; -1: malformed. null, like any other value, has no members.
func (p *Parser) object(b []byte, i int, in object) int {
	if i >= len(b) || b[i] != '{' {
		return p.skipWrongType(b, i)
	}
	i, more := jsonlike.Begin(b, i, '}')
	if !more {
		return i + 1
	}
	return p.members(b, i, in)
}

// members reads the members of an object of a kind, from the name at b[i] to the end of the object, and returns the end; -1: malformed. The reader of the kind
// gets the position of each value and the meaning of its name, and returns the end of the value.
func (p *Parser) members(b []byte, i int, in object) int {
	for more := true; more; {
		n, at := p.key(b, i)
		if at < 0 {
			return -1
		}
		at = jsonlike.Blanks(b, at)
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
		if i+1 < len(b) && b[i] == ',' && b[i+1] == '"' { // as the plugin prints
			i++
			continue
		}
		i, more = jsonlike.Comma(b, i)
		i = jsonlike.Blanks(b, i)
	}
	return jsonlike.Close(b, i, '}')
}

// list reads the array at b[i] of kernels (kernelObject) or of steps (stepObject), adds each to the current operation, and returns the end of the array; -1:
// malformed.
func (p *Parser) list(b []byte, i int, of object) int {
	if i >= len(b) || b[i] != '[' {
		return p.skipWrongType(b, i)
	}
	i, more := jsonlike.Begin(b, i, ']')
	for more {
		if of == kernelObject {
			p.kernelEvent = noKernelEvent
		} else {
			p.step = noStep
		}
		i = p.object(b, jsonlike.Blanks(b, i), of)
		if i < 0 {
			return -1
		}
		if of == kernelObject {
			p.addKernel()
		} else {
			p.addStep()
		}
		i, more = jsonlike.Comma(b, i)
	}
	return jsonlike.Close(b, i, ']')
}

// key reads the member name at b[i] with its colon, and returns its meaning and its end. Records are much alike: the name that came after the previous name
// the last time is compared first, without a search for its end.
func (p *Parser) key(b []byte, i int) (name, int) {
	next := p.next[p.last]
	if t := keys[next].text; next > 0 && len(b)-i >= len(t) && string(b[i:i+len(t)]) == t {
		p.last = next
		return keys[next].name, i + len(t)
	}
	return p.otherKey(b, i)
}

// otherKey reads a member name that key did not guess, and returns its meaning and its end; -1: malformed. The name is remembered as the successor of the name
// before. A name missing in keys is other, and is not remembered.
func (p *Parser) otherKey(b []byte, i int) (name, int) {
	if i >= len(b) || b[i] != '"' {
		return other, -1
	}
	text, i := p.quoted(b, i)
	if i < 0 {
		return other, -1
	}
	i = jsonlike.Colon(b, i)
	if i < 0 {
		return other, -1
	}
	k, ok := byText[string(text)]
	if !ok {
		return other, i
	}
	p.next[p.last], p.last = k, k
	return keys[k].name, i
}

// text reads the text at b[i]: a part of b, or of the parser if it had escapes. null and values of other types give nothing.
func (p *Parser) text(b []byte, i int) ([]byte, int) {
	if i >= len(b) || b[i] != '"' {
		return nil, p.skipWrongType(b, i)
	}
	return p.quoted(b, i)
}

// quoted reads the text in quotes at b[i]: a part of b, or of p.own if it had escapes.
func (p *Parser) quoted(b []byte, i int) ([]byte, int) { return lexer.Text(b, i, &p.own) }

// skipWrongType skips a value of a wrong type, and marks the line as bad, unless the value is null. It returns the end of the value; -1: malformed.
func (p *Parser) skipWrongType(b []byte, i int) int {
	if i < len(b) && b[i] != 'n' {
		p.line.bad = true
	}
	return skip(b, i)
}

// skip returns the end of the value at b[i]; -1: unfinished, or no value.
func skip(b []byte, i int) int {
	_, i = lexer.Value(b, i)
	return i
}
