package report

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
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
	indent := strings.Repeat(" ", reading.Columns(lead))
	for _, line := range wrap(text, pageWidth-reading.Columns(lead)) {
		p.line(lead + line)
		lead = indent
	}
}

// value writes a named value, as the documents' reports do.
func (p *page) value(name, text string) {
	p.line("  " + pad(name+p.in(":", "："), 26) + text)
}

// table writes rows below their names. The first columns are of text, the others of numbers.
func (p *page) table(text int, head []string, rows [][]string) {
	wide := make([]int, len(head))
	for i := range head {
		wide[i] = reading.Columns(head[i])
		for _, r := range rows {
			wide[i] = max(wide[i], reading.Columns(r[i]))
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
				b.WriteString(pad(cell, wide[i]))
			} else {
				b.WriteString(strings.Repeat(" ", wide[i]-reading.Columns(cell)) + cell)
			}
		}
		p.line(b.String())
	}
}

// wrap breaks text at blanks, words that are longer than a line, and Chinese anywhere.
func wrap(text string, width int) (lines []string) {
	var line strings.Builder
	used := 0
	put := func(word string) {
		line.WriteString(word)
		used += reading.Columns(word)
	}
	end := func() {
		lines = append(lines, strings.TrimRight(line.String(), " "))
		line.Reset()
		used = 0
	}
	for _, word := range words(text) {
		if used > 0 && used+reading.Columns(strings.TrimRight(word, " ")) > width {
			end()
		}
		for reading.Columns(word) > width {
			cut, room := 0, width-used
			for _, r := range word {
				if room -= reading.ColumnsOf(r); room < 0 {
					break
				}
				cut += utf8.RuneLen(r)
			}
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

// words are the pieces of a text between which a line may end; each has the blank behind it.
func words(text string) (out []string) {
	begin := 0
	for i, r := range text {
		next := i + utf8.RuneLen(r)
		switch {
		case r == ' ':
		case reading.ColumnsOf(r) == 2 && !strings.ContainsRune("，。；：、）", r) && next < len(text) && text[next] != ' ' && !closes(text[next:]):
		default:
			continue
		}
		out = append(out, text[begin:next])
		begin = next
	}
	return append(out, text[begin:])
}

// closes says whether a text begins with what must not begin a line.
func closes(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return strings.ContainsRune("，。；：、）％", r)
}

func pad(text string, n int) string {
	return text + strings.Repeat(" ", max(0, n-reading.Columns(text)))
}

// name is text of a log, fit for a line.
func name(text string) string {
	const most = 60
	text = reading.Clean(text)
	if reading.Columns(text) <= most {
		return text
	}
	return wrap(text, most-1)[0] + "…"
}

// unknown stands for a number that is not known.
const unknown = "-"

// fixed is a number with some decimals.
func fixed(x float64, decimals int) string {
	if x-x != 0 {
		return unknown
	}
	return fmt.Sprintf("%.*f", decimals, reading.Number(x))
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
func count[N int | int64 | float64](n N) string { return reading.Thousands(n) }

// many is a number of things, in English.
func many[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "s") {
		what += "e" // losses
	}
	return count(n) + " " + what + "s"
}

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
