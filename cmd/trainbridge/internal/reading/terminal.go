package reading

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Terminal returns how many columns an output to w has, and whether w is a terminal: COLUMNS if set, else the terminal's own number, else width.
func Terminal(w io.Writer, width int) (columns int, tty bool) {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		tty = true
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			width = n
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		width = n
	}
	return width, tty
}

// Palette colours text with ANSI escapes, or not.
type Palette bool

// Colours is the palette of a terminal, unless NO_COLOR is set.
func Colours(tty bool) Palette { return Palette(tty && os.Getenv("NO_COLOR") == "") }

// Paint returns text in a colour, a number of ANSI's SGR; "": no colour.
func (p Palette) Paint(code, text string) string {
	if !p || text == "" || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold returns text in bold.
func (p Palette) Bold(text string) string { return p.Paint("1", text) }

// Dim returns faint text.
func (p Palette) Dim(text string) string { return p.Paint("2", text) }
