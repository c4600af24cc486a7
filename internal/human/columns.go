package human

import (
	"strings"
	"unicode/utf8"
)

// Columns is how wide a text is in a terminal.
func Columns(text string) (n int) {
	for _, r := range text {
		n += columns(r)
	}
	return n
}

// columns is 2 for East Asian characters of double width (Unicode's annex 11: wide, full width).
func columns(r rune) int {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Pad fills a text with blanks on the right, up to a width.
func Pad(text string, width int) string { return text + blanks(text, width) }

// PadLeft fills a text with blanks on the left, up to a width.
func PadLeft(text string, width int) string { return blanks(text, width) + text }

func blanks(text string, width int) string { return strings.Repeat(" ", max(0, width-Columns(text))) }

// Cut is a text, truncated to a width with "…" if longer.
func Cut(text string, width int) string {
	if Columns(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return text[:fitting(text, width-1)] + "…"
}

// fitting is the number of bytes of a text that fit in a width.
func fitting(text string, width int) int {
	for i, r := range text {
		if width -= columns(r); width < 0 {
			return i
		}
	}
	return len(text)
}

// Wrap breaks a text into lines of at most width columns: at blanks, in words longer than a line, and in Chinese behind any character (but see words). An empty
// text is one empty line.
func Wrap(text string, width int) (lines []string) {
	var line strings.Builder
	used := 0 // columns of line
	put := func(word string) {
		line.WriteString(word)
		used += Columns(word)
	}
	end := func() {
		lines = append(lines, strings.TrimRight(line.String(), " "))
		line.Reset()
		used = 0
	}
	for _, word := range words(text) {
		if used > 0 && used+Columns(strings.TrimRight(word, " ")) > width {
			end()
		}
		for Columns(strings.TrimRight(word, " ")) > width { // longer than a line
			cut := max(fitting(word, width), firstLen(word))
			put(word[:cut])
			end()
			word = word[cut:]
		}
		put(word)
	}
	if used > 0 || len(lines) == 0 {
		end()
	}
	return lines
}

// firstLen is the length of a text's first rune: a line has at least one.
func firstLen(text string) int {
	_, n := utf8.DecodeRuneInString(text)
	return n
}

// words are the pieces of a text between possible line breaks: words, each with the blank behind, and Chinese characters, each with what must stay on the same
// line: the opening bracket or the Latin word directly before, the punctuation or the blank behind.
func words(text string) (out []string) {
	begin := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		mayEnd := columns(r) == 2 && !strings.ContainsRune("（《〈「『【〔", r) // no line ends with an opening bracket
		breaks := r == ' ' || mayEnd && next < len(text) && text[next] != ' ' && !closes(text[next:])
		if !breaks {
			continue
		}
		out = append(out, text[begin:next])
		begin = next
	}
	return append(out, text[begin:])
}

// closes says whether a text begins with a character that must not begin a line.
func closes(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("，。；：、！？）》〉」』】〕％”’…,.;:!?)]}%", r)
}
