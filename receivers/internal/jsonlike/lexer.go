package jsonlike

import "strings"

// Notation is the set of quotes, brackets and escapes.
type Notation uint8

// The notations.
const (
	JSON   Notation = iota // RFC 8259
	Python                 // and ', ( and the escapes \x, \U and \'; a character without meaning as an escape stands for itself
)

// Lexer reads the values of a format.
type Lexer struct {
	Notation Notation
	Word     *Word // the bytes of values without quotes
}

// Value passes over the value at b[i]. A text in double quotes is returned without its quotes and with its escapes unresolved; any other value as printed. In
// Python's notation a text in single quotes and a tuple are read by Text and Nested.
func (x *Lexer) Value(b []byte, i int) (text []byte, end int) {
	if i >= len(b) {
		return nil, -1
	}
	switch b[i] {
	case '"':
		text, _, end = String(b, i)
		return text, end
	case '{', '[':
		end = x.Nested(b, i)
	default:
		end = x.Bare(b, i)
	}
	if end < 0 {
		return nil, -1
	}
	return b[i:end], end
}

// Texts is the memory of the texts of a record, one behind the other, after resolving their escapes.
type Texts []byte

// maxTexts is the memory kept from record to record.
const maxTexts = 64 << 10

// Reset forgets the texts of the record before.
func (t *Texts) Reset() {
	if cap(*t) > maxTexts {
		*t = nil
	}
	*t = (*t)[:0]
}

// Text reads the text in quotes at b[i]. The text is a part of b, or of own if escapes were resolved. A text with an escape that is unfinished, or unknown to
// the notation, has no end (-1).
func (x *Lexer) Text(b []byte, i int, own *Texts) (text []byte, end int) {
	text, escaped, end := String(b, i)
	if escaped && end >= 0 {
		text = x.resolve(text, own)
		if text == nil {
			return nil, -1
		}
	}
	return text, end
}

// resolve appends a text with its escapes resolved to own, and returns the appended part. nil: as unescape's false.
func (x *Lexer) resolve(text []byte, own *Texts) []byte {
	from := len(*own)
	all, ok := unescape(*own, text, x.Notation)
	*own = all
	if !ok {
		return nil
	}
	return all[from:len(all):len(all)] // no capacity: appending to the text must not write over the next one
}

// Nested returns the end of the object or list that begins with the bracket at b[i]. Only brackets and quotes count: { [ and ", in Python ( and ' too. Any
// closing bracket closes any opening one. -1: b has no such end.
func (x *Lexer) Nested(b []byte, i int) (end int) {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '(':
			if x.Notation == Python {
				depth++
			}
		case ')':
			if x.Notation == Python {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		case '"', '\'':
			if b[i] == '\'' && x.Notation == JSON {
				break
			}
			_, _, i = String(b, i) // brackets in texts do not count
			if i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}

// Bare returns the end of the value without quotes at b[i]: 1e-5, null, NaN, and with a suitable Word np.float64, ncclFloat32, 0x262ca50, (nil).
func (x *Lexer) Bare(b []byte, i int) (end int) {
	if i >= len(b) || x.Word[b[i]] < begins {
		return -1
	}
	for i++; i < len(b) && x.Word[b[i]] != ends; {
		i++
	}
	return i
}

// Word says of each byte whether it ends a value without quotes, continues it, or may begin it.
type Word [256]uint8

const (
	ends uint8 = iota
	goesOn
	begins
)

// Alphanumeric is the Word of values made of letters, digits and the bytes in others. Each of them may begin a value.
func Alphanumeric(others string) *Word {
	var w Word
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + others) {
		w[c] = begins
	}
	return &w
}

// Until is the Word of values that go on to one of the bytes in delimiters. A value begins with one of the bytes in first; "": with any but a delimiter.
func Until(delimiters, first string) *Word {
	var w Word
	for c := range w {
		switch {
		case strings.IndexByte(delimiters, byte(c)) >= 0:
		case first == "" || strings.IndexByte(first, byte(c)) >= 0:
			w[c] = begins
		default:
			w[c] = goesOn
		}
	}
	return &w
}
