package redact

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/secrets"
)

// shape is a kind of secret with a recognizable form, such as a GitHub token (ghp_…), with one of its prefixes.
type shape struct {
	begins string         // the prefix, in lower case
	re     *regexp.Regexp // the whole form; a group is the secret itself
	looks  secrets.Looks  // the found text must look so, too
}

// shapesOf are the shapes by their first byte, in either case, and seconds are the possible second bytes.
var shapesOf, seconds = func() (by [256][]shape, second [256][256]bool) {
	for _, k := range secrets.Kinds() {
		if k.Pattern == "" {
			continue
		}
		re := regexp.MustCompile("^(?:" + k.Pattern + ")")
		for _, begins := range k.Begins {
			for _, first := range cases(begins[0]) {
				by[first] = append(by[first], shape{begins, re, k.Looks})
				for _, next := range cases(begins[1]) {
					second[first][next] = true
				}
			}
		}
	}
	return by, second
}()

// cases are both cases of a small letter; any other byte alone.
func cases(c byte) []byte {
	if lower(c) {
		return []byte{c, c - 'a' + 'A'}
	}
	return []byte{c}
}

// beginsAt returns the shapes that may begin at s[i]: the first of them does have its prefix there, of the others the caller must see. nil: none, as at nearly
// all bytes.
func beginsAt(s string, i int) []shape {
	if i+1 >= len(s) || !seconds[s[i]][s[i+1]] || !startsWord(s, i) {
		return nil
	}
	for n, sh := range shapesOf[s[i]] {
		if hasPrefix(s[i:], sh.begins) {
			return shapesOf[s[i]][n:]
		}
	}
	return nil
}

// hasPrefix reports whether s begins with prefix, in any case.
func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && (s[:len(prefix)] == prefix || strings.EqualFold(s[:len(prefix)], prefix))
}

// startsWord reports whether a secret may begin at s[i], by s[i] and the bytes before: s[i] is the first byte of the text or a symbol (no letter, digit or
// dash), or s[i] stands behind a symbol, a dash, an escaped character or a terminal's colour (endsEscape). Of dashes in a row only the first begins a secret.
func startsWord(s string, i int) bool {
	if i == 0 {
		return true
	}
	isSymbol := !ascii.IsAlphanumeric(s[i]) && s[i] != '-'
	if isSymbol {
		return true
	}
	before := s[i-1]
	if ascii.IsAlphanumeric(before) {
		return endsEscape(s, i)
	}
	isFurtherDash := before == '-' && s[i] == '-'
	return !isFurtherDash
}

// isAlphanumeric reports whether a byte is an ASCII letter or digit.
// endsEscape reports whether an escaped character (\n, \u0026, %3D) or a terminal's colour (ESC[1;31m) ends with the letter or digit s[i-1].
func endsEscape(s string, i int) bool {
	c := s[i-1]
	switch {
	case i > 1 && s[i-2] == '\\':
		return c == 'n' || c == 'r' || c == 't'
	case i > 2 && s[i-3] == '%':
		return true
	case i > 5 && s[i-6] == '\\' && s[i-5] == 'u':
		return true
	case c == 'm': // the end of a colour, after its numbers: at most ESC[38;5;255
		return strings.HasSuffix(strings.TrimRight(s[max(0, i-12):i-1], "0123456789;"), "\x1b[")
	}
	return false
}

// reach is the searched length of a shape. A longer secret is removed whole once found.
const reach = 1024

// shaped replaces the secrets with a recognizable form in a text, wherever they stand, and counts them in n. In a truncated text the beginning of a secret at
// the end is enough.
func shaped(s string, n *Counts) string {
	var out edit
	truncated := isCut(s)
	for i := 0; i < len(s); i++ {
		if bytesOf[s[i]]&begins == 0 {
			continue
		}
		for _, sh := range beginsAt(s, i) {
			if !hasPrefix(s[i:], sh.begins) {
				continue
			}
			begin, end, ok := sh.find(s, i)
			if !ok && truncated {
				begin, end, ok = sh.beginning(s, i)
			}
			if !ok || redacted(s, begin) {
				continue
			}
			whole := !truncated || end < len(s) // the beginning of a secret need not look as the whole does
			if whole && !hides(sh.looks, s[begin:end]) {
				continue
			}
			out.put(s, begin, end, Redacted)
			n.Values++
			i = end - 1
			break
		}
	}
	return out.text(s)
}

// find returns where the secret of a shape that begins at s[i] begins and ends: the group of the pattern if there is one, else the match. Within reach bytes
// first, as the pattern costs time by the length of the text.
func (sh *shape) find(s string, i int) (begin, end int, ok bool) {
	until := min(len(s), i+reach)
	for until < len(s) && !utf8.RuneStart(s[until]) {
		until--
	}
	at := sh.re.FindStringSubmatchIndex(s[i:until])
	if at != nil && i+at[1] == until && until < len(s) { // goes on beyond reach
		at = sh.re.FindStringSubmatchIndex(s[i:])
	}
	if at == nil {
		return 0, 0, false
	}
	if len(at) > 2 { // the group
		at = at[2:]
	}
	return i + at[0], i + at[1], true
}

// beginning finds the secret of a shape that begins at s[i] and whose end was truncated with the text: the text filled up with zeros has the shape, or all of
// the rest is one word behind the prefix. The secret goes to the end of the text.
func (sh *shape) beginning(s string, i int) (begin, end int, ok bool) {
	begin, _, ok = sh.find(s+strings.Repeat("0", 80), i) // 80: more than any pattern needs
	if !ok {
		begin, ok = i+len(sh.begins), !strings.ContainsAny(s[i:], " \t\r\n\"'")
	}
	return begin, len(s), ok && begin < len(s)
}

// redacted reports whether a part of a text was replaced before: patterns may leave the bracket out.
func redacted(s string, begin int) bool {
	return strings.HasPrefix(s[begin:], Redacted) || begin > 0 && strings.HasPrefix(s[begin-1:], Redacted)
}
