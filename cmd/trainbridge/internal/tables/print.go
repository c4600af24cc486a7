package tables

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
)

// Styles of cells beside the severities.
const (
	Head = "head" // names of columns
	Fine = "fine" // a share below the limits of train_perf
)

// Add adds a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// Texts is a table of texts. left says which columns are no numbers.
func Texts(head []string, rows [][]string, left func(column int) bool) Table {
	t := Table{Head: head}
	for i := range head {
		t.Left = append(t.Left, left(i))
	}
	for _, r := range rows {
		cells := make([]Cell, len(r))
		for i := range r {
			cells[i].Text = r[i]
		}
		t.Add(cells...)
	}
	return t
}

// Lines are the lines of Write, without colours. The width Any leaves a table as wide as it needs to be.
func (t *Table) Lines(width int) []string {
	var b strings.Builder
	t.Write(&b, width, func(_, text string) string { return text })
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// Fit is the table without the last columns beyond a width.
func (t Table) Fit(width int) Table {
	used := 0
	for i, h := range t.Head {
		wide := human.Columns(h)
		for _, r := range t.Rows {
			wide = max(wide, human.Columns(r[i].Text))
		}
		if i == 0 {
			wide = min(wide, max(human.Columns(h), width/3))
		}
		if used += wide + 2; used-2 > width {
			t.Head, t.Left = t.Head[:i], t.Left[:i]
			break
		}
	}
	return t
}

// Any is a width beyond all tables.
const Any = 1 << 30

// Write prints lines within a width. Columns that do not fit beside the first column go below, beside the first column again.
func (t *Table) Write(w *strings.Builder, width int, paint func(severity, text string) string) {
	wide := make([]int, len(t.Head))
	for i, h := range t.Head {
		wide[i] = human.Columns(h)
		for _, r := range t.Rows {
			wide[i] = max(wide[i], human.Columns(r[i].Text))
		}
	}
	wide[0] = min(wide[0], max(human.Columns(t.Head[0]), width/3))
	gap, all := "  ", 0
	for _, n := range wide {
		all += n + len(gap)
	}
	if all-len(gap) > width {
		gap = " "
	}
	for from := 1; from == 1 || from < len(wide); {
		to, used := from, wide[0]
		for to < len(wide) && (to == from || used+len(gap)+wide[to] <= width) {
			used += len(gap) + wide[to]
			to++
		}
		if used > width && from < len(wide) { // a single column is too wide
			wide[from] -= used - width
		}
		line := func(cell func(i int) Cell) {
			var b strings.Builder
			for i := range wide {
				if i > 0 && (i < from || i >= to) {
					continue
				}
				c := cell(i)
				text := human.Cut(c.Text, wide[i])
				body, blank := paint(c.Severity, text), human.Pad("", wide[i]-human.Columns(text))
				switch {
				case i == 0:
					b.WriteString(body + blank)
				case t.Left[i]:
					b.WriteString(gap + body + blank)
				default:
					b.WriteString(gap + blank + body)
				}
			}
			w.WriteString(strings.TrimRight(b.String(), " ") + "\n")
		}
		line(func(i int) Cell { return Cell{Text: t.Head[i], Severity: Head} })
		for _, r := range t.Rows {
			line(func(i int) Cell { return r[i] })
		}
		from = max(to, 2)
	}
}
