package jsonlike

// Blanks returns the end of the blanks at b[i:]: i itself without blanks.
func Blanks(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// The functions for punctuation are small, so that the compiler inlines them.

// Begin passes over the opening bracket at b[i] and the blanks behind. more says that an element may follow: the object or list is not empty.
func Begin(b []byte, i int, closing byte) (end int, more bool) {
	i = Blanks(b, i+1)
	return i, i >= len(b) || b[i] != closing
}

// Colon reads the colon behind a member's name. The end is behind the colon.
func Colon(b []byte, i int) (end int) {
	i = Blanks(b, i)
	if i < len(b) && b[i] == ':' {
		return i + 1
	}
	return -1
}

// Comma reads the comma behind a member or an element. more says that a comma was there; without one, the caller expects the closing bracket at end (Close).
func Comma(b []byte, i int) (end int, more bool) {
	i = Blanks(b, i)
	if i < len(b) && b[i] == ',' {
		return i + 1, true
	}
	return i, false
}

// Close reads the closing bracket at b[i].
func Close(b []byte, i int, closing byte) (end int) {
	if i < len(b) && b[i] == closing {
		return i + 1
	}
	return -1
}

// String reads a text by its opening quote, " or '. The result is the text between the quotes; with escapes, see Lexer.Text.
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
