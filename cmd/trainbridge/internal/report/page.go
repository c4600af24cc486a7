package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
)

// pageWidth is that of the documents' own reports. It does not follow the terminal: two reports are held against each other with diff.
const pageWidth = 100

// page writes text in one of two languages.
type page struct {
	w       io.Writer
	chinese bool
	err     error
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

func (p *page) line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, strings.TrimRight(text, " ")+"\n")
	}
}

func (p *page) blank() { p.line("") }

// title begins the report of a job.
func (p *page) title(text string) {
	p.line(strings.Repeat("=", pageWidth))
	p.paragraph("", text)
	p.line(strings.Repeat("=", pageWidth))
}

// head begins a section.
func (p *page) head(text string) {
	p.blank()
	p.line(text)
	p.line(strings.Repeat("-", pageWidth))
}

// paragraph writes text on lines that are short enough. The first begins with lead, the others as far in.
func (p *page) paragraph(lead, text string) {
	indent := strings.Repeat(" ", human.Columns(lead))
	for _, line := range human.Wrap(text, pageWidth-human.Columns(lead)) {
		p.line(lead + line)
		lead = indent
	}
}

// value writes a named value, as the documents' reports do.
func (p *page) value(name, text string) {
	p.line("  " + human.Pad(name+p.in(":", "："), 26) + text)
}

// table writes rows below their names. The first columns are of text, the others of numbers.
func (p *page) table(text int, head []string, rows [][]string) {
	wide := make([]int, len(head))
	for i := range head {
		wide[i] = human.Columns(head[i])
		for _, r := range rows {
			wide[i] = max(wide[i], human.Columns(r[i]))
		}
	}
	for _, r := range append([][]string{head}, rows...) {
		var b strings.Builder
		b.WriteString("  ")
		for i, cell := range r {
			if i > 0 {
				b.WriteString("  ")
			}
			if i < text {
				b.WriteString(human.Pad(cell, wide[i]))
			} else {
				b.WriteString(human.PadLeft(cell, wide[i]))
			}
		}
		p.line(b.String())
	}
}

// name is text of a log, fit for a line.
func name(text string) string { return human.Cut(reading.Clean(text), 60) }

// unknown stands for a number that is not known.
const unknown = "-"

// fixed is a number with some decimals.
func fixed(x float64, decimals int) string {
	if x-x != 0 {
		return unknown
	}
	return fmt.Sprintf("%.*f", decimals, human.Number(x))
}

// digits is a number with some significant digits.
func digits(x float64, n int) string {
	if x-x != 0 {
		return unknown
	}
	if a := math.Abs(x); a >= 1e6 || a < 1e-4 && a > 0 {
		return strconv.FormatFloat(x, 'e', n-1, 64)
	}
	text := strconv.FormatFloat(x, 'g', n, 64)
	if strings.Contains(text, "e") {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return text
}

// seconds is a duration, in a unit that fits.
func seconds(s float64) string {
	switch a := math.Abs(s); {
	case s-s != 0:
		return unknown
	case a >= 1:
		return fixed(s, 2) + " s"
	case a >= 1e-3:
		return fixed(s*1e3, 2) + " ms"
	case a == 0:
		return "0 s"
	case a < 2e-9: // spans.Batch makes a length of what has none
		return unknown
	}
	return fixed(s*1e6, 2) + " µs"
}

// percent is a share.
func percent(share float64) string {
	if share-share != 0 {
		return unknown
	}
	return fixed(100*share, 1) + "%"
}

// count is a whole number with its digits in groups.
func count[N int | int64 | float64](n N) string { return human.Thousands(n) }

// mebi is a size in powers of 1024. The documents that these tables are of call them KB, MB and GB.
func mebi(bytes float64) string {
	switch {
	case bytes-bytes != 0:
		return unknown
	case bytes >= 1<<30:
		return fixed(bytes/(1<<30), 2) + " GiB"
	case bytes >= 1<<20:
		return fixed(bytes/(1<<20), 2) + " MiB"
	}
	return fixed(bytes/(1<<10), 2) + " KiB"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
