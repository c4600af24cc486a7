package spans

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxAttributeBytes bounds one attribute value, to keep a log line from blowing up a trace (Tempo rejects traces over 5 MB).
const MaxAttributeBytes = 4096

// Text returns raw log bytes as an attribute value: invalid UTF-8 (OTLP strings must be UTF-8) and NUL, at which databases and C programs cut, become U+FFFD,
// and the text is cut to MaxAttributeBytes, at a rune's edge.
func Text[T string | []byte](raw T) string {
	s := valid(raw)
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", replacement)
	}
	return clip(s, MaxAttributeBytes)
}

// Name returns raw log bytes as a name: of a span, an attribute, a host, or any label of a metric. Beyond what Text does, invisible characters become U+FFFD:
// they make two names look the same, or imitate another name.
func Name[T string | []byte](raw T) string {
	s := valid(raw)
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			s = strings.Map(shown, s)
			break
		}
	}
	return clip(s, MaxAttributeBytes)
}

// Hidden reports whether a rune is invisible: a control character (C0, DEL, C1), a change of text direction, a character without width (ZWSP, ZWJ, BOM), or a
// line end.
func Hidden(r rune) bool {
	if r < utf8.RuneSelf { // nearly every rune of every name
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

const replacement = "\uFFFD"

// shown returns a rune of a name, U+FFFD for an invisible one.
func shown(r rune) rune {
	if Hidden(r) {
		return utf8.RuneError
	}
	return r
}

// valid returns the beginning of a text in UTF-8, a little longer than an attribute can be.
func valid[T string | []byte](raw T) string {
	if len(raw) > MaxAttributeBytes+utf8.UTFMax {
		raw = raw[:MaxAttributeBytes+utf8.UTFMax]
	}
	s := string(raw)
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, replacement)
	}
	return s
}

// clip cuts a text to limit bytes, at a rune's edge.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.Clone(s[:cut]) // a clone does not keep the rest in memory
}

// Interner returns one string for equal bytes: names that repeat on every line are allocated once. A full Interner starts over: its use is names, and no log
// has so many distinct names. The zero value is ready. It is not safe for concurrent use.
type Interner struct {
	known  map[string]string
	recent [4]string // names equal to their raw text: they soon repeat, and comparing is cheaper than hashing
}

const maxInterned = 4096

// Text returns the function Name, without an allocation for a name seen before.
func (in *Interner) Text(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	// A cheap hash, of the length and the last byte: names in turn, such as "rank 1" and "rank 2", get different places.
	recent := &in.recent[(uint8(len(raw))^raw[len(raw)-1])%uint8(len(in.recent))]
	if *recent == string(raw) {
		return *recent
	}
	if s, ok := in.known[string(raw)]; ok {
		if s == string(raw) {
			*recent = s
		}
		return s
	}
	s := Name(raw)
	if len(raw) > MaxAttributeBytes {
		return s // too long to keep by the thousand
	}
	if in.known == nil || len(in.known) >= maxInterned {
		in.known = make(map[string]string)
	}
	in.known[string(raw)] = s
	return s
}
