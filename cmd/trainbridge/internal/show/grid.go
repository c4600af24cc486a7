package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
)

// cell is a text, and a severity or the ANSI code of a colour to paint it with.
type cell = tables.Cell

// textCells returns cells without a colour.
func textCells(text ...string) []cell {
	cells := make([]cell, len(text))
	for i, t := range text {
		cells[i].Text = t
	}
	return cells
}

// printTable prints a table in the width of the terminal.
func printTable(w *strings.Builder, t *tables.Table, l style) {
	t.Write(w, max(l.width, minWidth), func(severity, text string) string { return l.Paint(cmp.Or(severityColour[severity], severity), text) })
}

// printParagraph prints text wrapped at the terminal's width, in a colour (an ANSI code, "": none); the lines after the first are indented.
func printParagraph(w *strings.Builder, text, colour string, l style) {
	for i, line := range human.Wrap(text, max(l.width, minWidth)-2) {
		if i > 0 {
			line = "  " + line
		}
		fmt.Fprintln(w, l.Paint(colour, line))
	}
}

// printParts prints texts, separated by two blanks, on as few lines as possible. A text is never broken, but truncated if longer than a line.
func printParts(w *strings.Builder, l style, texts ...cell) {
	width := max(l.width, minWidth)
	used := 0
	for _, t := range texts {
		if t.Text == "" {
			continue
		}
		t.Text = human.Cut(t.Text, width)
		switch { // what stands before the text
		case used == 0:
		case used+2+human.Columns(t.Text) > width:
			fmt.Fprintln(w)
			used = 0
		default:
			fmt.Fprint(w, "  ")
			used += 2
		}
		fmt.Fprint(w, l.Paint(t.Severity, t.Text))
		used += human.Columns(t.Text)
	}
	fmt.Fprintln(w)
}
