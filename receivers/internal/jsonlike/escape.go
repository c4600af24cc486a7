package jsonlike

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// unescape appends a text to dst with its escapes (\n, \u00e9) resolved. Two \u escapes of a surrogate pair (\ud83d\ude00) are one character; half a pair
// becomes U+FFFD. false: an escape that is unfinished, or unknown to the notation.
func unescape(dst, text []byte, of Notation) ([]byte, bool) {
	for {
		n := bytes.IndexByte(text, '\\')
		if n < 0 {
			return append(dst, text...), true
		}
		dst = append(dst, text[:n]...)
		text = text[n+1:]
		if len(text) == 0 {
			return dst, false
		}
		c := text[0] // behind the backslash; in the end the byte that the escape stands for
		text = text[1:]
		digits := 0 // hexadecimal digits of the escape
		switch {
		case c == 'n':
			c = '\n'
		case c == 't':
			c = '\t'
		case c == 'r':
			c = '\r'
		case c == 'b':
			c = '\b'
		case c == 'f':
			c = '\f'
		case c == '"', c == '\\', c == '/':
		case c == 'u':
			digits = 4
		case of == JSON: // Python also has \x, \U, and any other character stands for itself
			return dst, false
		case c == 'x':
			digits = 2
		case c == 'U':
			digits = 8
		}
		if digits == 0 {
			dst = append(dst, c)
			continue
		}
		r, ok := hex(text, digits)
		if !ok {
			return dst, false
		}
		text = text[digits:]
		if utf16.IsSurrogate(r) && len(text) > 1 && text[0] == '\\' && text[1] == 'u' {
			if low, ok := hex(text[2:], 4); ok {
				if both := utf16.DecodeRune(r, low); both != utf8.RuneError {
					r, text = both, text[6:]
				}
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// hex reads the n hexadecimal digits at the beginning of b.
func hex(b []byte, n int) (r rune, ok bool) {
	if len(b) < n {
		return 0, false
	}
	for _, c := range b[:n] {
		switch {
		case ascii.IsDigit(c):
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f': // the bit 0x20 makes a letter small
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
