package reading

import (
	"strings"
	"unicode"
)

// Clean makes logged text safe for a terminal: each control character, invalid byte and character without a glyph becomes "?".
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
