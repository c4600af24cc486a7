package jsonlike

// Blanks returns the end of the blanks at b[i:]: i itself without blanks.
func Blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// The functions for punctuation are small, so that the compiler inlines them.

// Begin passes over the opening bracket at b[i] and the blanks behind. more reports whether an element may follow: the next byte is not the closing bracket.
func Begin(b []byte, i int, closing byte) (end int, more bool) {
	i = Blanks(b, i+1)
	return i, i >= len(b) || b[i] != closing
}

// Colon reads the colon behind a member's name, after blanks from b[i] on. The end is the index after the colon; -1: b has no colon here.
func Colon(b []byte, i int) (end int) {
	i = Blanks(b, i)
	if i < len(b) && b[i] == ':' {
		return i + 1
	}
	return -1
}

// Comma reads the comma behind a member or an element, after blanks from b[i] on. more reports whether b has a comma here; without a comma, the caller expects
// the closing bracket at end (Close).
func Comma(b []byte, i int) (end int, more bool) {
	i = Blanks(b, i)
	if i < len(b) && b[i] == ',' {
		return i + 1, true
	}
	return i, false
}

// Close returns the index after the closing bracket at b[i]; -1: b[i] is not the bracket, or b ends before i.
func Close(b []byte, i int, closing byte) (end int) {
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	return -1
}

// String reads the text in quotes that begins at b[i], its opening quote, " or '. text is the raw part of b between the quotes: escapes are not resolved
// (Lexer.Text resolves them), and escaped reports whether text has any. end is the index after the closing quote. Without a closing quote, text is nil and end
// is -1.
func String(b []byte, i int) (text []byte, escaped bool, end int) {
	quote, begin := b[i], i+1
	for n := begin; n < len(b); n++ {
		switch b[n] {
		case quote:
			return b[begin:n], escaped, n + 1
		case '\\':
			escaped = true
			n++ // an escaped quote does not end the text
		}
	}
	return nil, false, -1
}
