package spans

import (
	"strings"
	"unicode/utf8"
)

// MaxAttributeBytes bounds one attribute value, so that a log line cannot blow up a trace (Tempo rejects traces over 5 MB).
const MaxAttributeBytes = 4096

// Text makes an attribute value of raw log bytes: invalid UTF-8 becomes U+FFFD (OTLP strings must be UTF-8), and
// what exceeds MaxAttributeBytes is cut at a rune's edge.
func Text[T string | []byte](raw T) string {
	if len(raw) > MaxAttributeBytes+utf8.UTFMax {
		raw = raw[:MaxAttributeBytes+utf8.UTFMax]
	}
	s := string(raw)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if len(s) <= MaxAttributeBytes {
		return s
	}
	cut := MaxAttributeBytes
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.Clone(s[:cut]) // which does not keep the rest in memory
}

// Interner returns one string for equal bytes, so that names that repeat on every line are allocated once.
// It forgets everything when full: its use is names, and a log with more distinct names than that has none.
// The zero value is ready. It is not safe for concurrent use.
type Interner struct{ known map[string]string }

const maxInterned = 4096

// Text is the function Text, without an allocation for text seen before.
func (in *Interner) Text(raw []byte) string {
	if s, ok := in.known[string(raw)]; ok {
		return s
	}
	s := Text(raw)
	if len(raw) > MaxAttributeBytes {
		return s // thousands of these would be too much to keep
	}
	if in.known == nil || len(in.known) >= maxInterned {
		in.known = make(map[string]string)
	}
	in.known[string(raw)] = s
	return s
}
