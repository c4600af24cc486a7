package vccl

import "github.com/trainbridge/trainbridge/receivers/internal/jsonlike"

// lexer reads numbers, and words such as null and NaN.
var lexer = jsonlike.Lexer{Word: jsonlike.Alphanumeric("+-.")}

// status is the progress of reading an object.
type status uint8

const (
	closed status = iota
	more          // the object continues on the next line
	bad           // unreadable
)

// want is the set of possible next tokens.
type want uint8

const (
	wantFirst   want = iota // a key or the end
	wantKey                 // after a comma
	wantColon               // after a key
	wantValue               // after a colon, or a comma in an array
	wantElement             // a value or the end
	wantComma               // or the end
)

// maxDepth bounds how deep unknown values may be nested.
const maxDepth = 64

// scan reads an object, possibly over several lines. Texts and numbers stay within a line: JSON has no line ends in them.
type scan struct {
	v       values
	pending []byte // value of the current key: counts once a comma or the end follows
	key     key
	want    want
	depth   int    // open containers; 1: the object alone
	arrays  uint64 // arrays among the open containers: bit depth−1
}

// begin makes the scan ready for an object after its brace.
func (s *scan) begin() { *s = scan{key: noKey, depth: 1} }

// run reads the object on from b[i:]. st says how reading ended, and end where: closed, after the object's brace; more, at the end of b; bad, at the
// unreadable part. The values kept (s.v) are parts of b.
func (s *scan) run(b []byte, i int) (end int, st status) {
	for {
		for i < len(b) && b[i] <= ' ' {
			i++
		}
		if i == len(b) {
			return i, more
		}
		c := b[i]
		switch s.want {
		case wantFirst, wantKey:
			if c == '}' && s.want == wantFirst {
				break
			}
			if c != '"' {
				return i, bad
			}
			text, _, next := jsonlike.String(b, i)
			if next < 0 {
				return i, bad
			}
			s.key = noKey
			if s.depth == 1 {
				s.key = keyOf(text)
			}
			s.want, i = wantColon, next
			continue
		case wantColon:
			if c != ':' {
				return i, bad
			}
			s.want = wantValue
			i++
			continue
		case wantValue, wantElement:
			if c == ']' && s.want == wantElement {
				break
			}
			next := s.value(b, i, c)
			if next < 0 {
				return i, bad
			}
			i = next
			continue
		case wantComma:
			if c != ',' {
				break
			}
			s.keep()
			s.want = wantKey
			if s.inArray() {
				s.want = wantValue
			}
			i++
			continue
		}
		// Only the end of the innermost container can follow here.
		if c != '}' && c != ']' || (c == ']') != s.inArray() {
			return i, bad
		}
		s.keep()
		s.depth--
		s.want = wantComma
		i++
		if s.depth == 0 {
			return i, closed
		}
	}
}

// inArray reports whether the innermost open container is an array.
func (s *scan) inArray() bool { return s.arrays>>(s.depth-1)&1 == 1 }

// keep stores the pending value, now known to be whole, if its key is a known one of the object itself.
func (s *scan) keep() {
	if s.depth == 1 && s.key != noKey && s.pending != nil {
		s.v.set(s.key, s.pending)
		s.pending = nil
	}
}

// value reads a value at b[i], or the beginning of a container, and returns its end; −1: unreadable. c is b[i].
func (s *scan) value(b []byte, i int, c byte) int {
	if c == '{' || c == '[' {
		// Too deep; or the value of a known key, never a container: the object was torn before the value, and another begins here.
		if s.depth == maxDepth || s.depth == 1 && s.key < noKey {
			return -1
		}
		s.depth++
		s.arrays &^= 1 << (s.depth - 1)
		s.want = wantFirst
		if c == '[' {
			s.arrays |= 1 << (s.depth - 1)
			s.want = wantElement
		}
		return i + 1
	}
	text, next := lexer.Value(b, i)
	if next < 0 {
		return -1
	}
	if s.depth == 1 {
		s.pending = text
	}
	s.want = wantComma
	return next
}
