package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
)

// fullWidth is the width of the documents' own reports, whatever the terminal: two reports are compared with diff.
const fullWidth = 100

// page writes text in either language. Its methods write nothing after an error of the writer.
type page struct {
	w       io.Writer
	width   int // columns
	colours reading.Palette
	chinese bool
	steady  float64 // of a conclusion, as in format.Request
	err     error   // the first of w
}

// in is the text in the page's language.
func (p *page) in(english, chinese string) string {
	if p.chinese {
		return chinese
	}
	return english
}

// sf is fmt.Sprintf in the page's language.
func (p *page) sf(english, chinese string, args ...any) string {
	return fmt.Sprintf(p.in(english, chinese), args...)
}

// line writes a line, without spaces at its end.
func (p *page) line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(text, " ")+"\n")
	}
}

// blank writes an empty line.
func (p *page) blank() { p.line("") }

// title begins the report of a job.
func (p *page) title(text string) {
	p.line(strings.Repeat("=", p.width))
	p.paragraph("", text)
	p.line(strings.Repeat("=", p.width))
}

// head begins a section.
func (p *page) head(text string) {
	p.blank()
	p.line(text)
	p.line(strings.Repeat("-", p.width))
}

// paragraph writes text on short lines. The first begins with lead, the others as far in.
func (p *page) paragraph(lead, text string) {
	p.painted("", lead, text)
}

// painted is a paragraph in a colour of Palette.
func (p *page) painted(colour, lead, text string) {
	indent := strings.Repeat(" ", human.Columns(lead))
	for _, line := range human.Wrap(text, p.width-human.Columns(lead)) {
		p.line(lead + p.colours.Paint(colour, line))
		lead = indent
	}
}

// value writes a named value, as the documents' reports do.
func (p *page) value(name, text string) {
	p.line("  " + human.Pad(name+p.in(":", "："), 26) + text)
}

// print writes a table of a domain, unless without rows.
func (p *page) print(t tables.Table) {
	if len(t.Rows) == 0 {
		return
	}
	p.lines(t, p.width-2)
}

// table writes rows below a head. The first columns, as many as text says, are of text, the others of numbers.
func (p *page) table(text int, head []string, rows [][]string) {
	p.lines(tables.Texts(head, rows, func(i int) bool { return i < text }), tables.Any)
}

// lines writes a table within a width, indented.
func (p *page) lines(t tables.Table, width int) {
	for _, line := range t.Lines(width) {
		p.line("  " + line)
	}
}

// name is a text from a log, fit for a line: without control characters, and cut.
func name(text string) string { return human.Cut(reading.Clean(text), 60) }

// unknown stands for an unknown number.
const unknown = human.Unknown

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
