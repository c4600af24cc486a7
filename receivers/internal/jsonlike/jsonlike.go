package jsonlike

import "strings"

// Blanks returns where the blanks at b[i:] end: i itself where there are none.
func Blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// Colon reads the colon behind a name, and the blanks around it.
func Colon(b []byte, i int) (end int) {
	i = Blanks(b, i)
	if i >= len(b) || b[i] != ':' {
		return -1
	}
	return Blanks(b, i+1)
}

// Next reads the end of a member or an element, and the blanks around it: a comma, behind which there is more, or the closing bracket.
func Next(b []byte, i int, closing byte) (end int, more bool) {
	i = Blanks(b, i)
	switch {
	case i >= len(b):
		return -1, false
	case b[i] == closing:
		return i + 1, false
	case b[i] != ',':
		return -1, false
	}
	return Blanks(b, i+1), true
}

// String reads a text by the quote that it begins with, " or '. It returns what stands between the quotes; where that has escapes, see Unescape.
func String(b []byte, i int) (text []byte, escaped bool, end int) {
	quote := b[i]
	i++
	for n := i; n < len(b); n++ {
		switch b[n] {
		case quote:
			return b[i:n], escaped, n + 1
		case '\\':
			escaped = true
			n++
		}
	}
	return nil, false, -1
}

// Nested passes over an object or list, by brackets and quotes alone: { [ and ", in Python ( and ' too. It does not check which bracket closes which.
func Nested(b []byte, i int, of Notation) (end int) {
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
			if of == Python {
				depth++
			}
		case ')':
			if of == Python {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		case '"', '\'':
			if b[i] == '\'' && of == JSON {
				break
			}
			if _, _, i = String(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}

// Bytes are the bytes that a value without quotes may have.
type Bytes [256]bool

// Alphanumeric are letters, digits and others.
func Alphanumeric(others string) *Bytes {
	var t Bytes
	for _, c := range []byte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" + others) {
		t[c] = true
	}
	return &t
}

// Except are all but delimiters.
func Except(delimiters string) *Bytes {
	var t Bytes
	for c := range t {
		t[c] = strings.IndexByte(delimiters, byte(c)) < 0
	}
	return &t
}

// Bare reads a value without quotes: 1e-5, null, NaN, and with the bytes that they need np.float64, ncclFloat32, 0x262ca50, (nil).
func Bare(b []byte, i int, of *Bytes) (end int) {
	from := i
	for i < len(b) && of[b[i]] {
		i++
	}
	if i == from {
		return -1
	}
	return i
}
