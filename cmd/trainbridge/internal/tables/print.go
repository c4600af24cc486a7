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

// Texts makes a table of cells that are printed already. left says of a column whether its cells stand at the left, as texts do.
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

// Lines are the lines of Write, without colours. With the width Any nothing is cut or put below.
func (t *Table) Lines(width int) []string {
	var b strings.Builder
	t.Write(&b, width, func(_, text string) string { return text })
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// Fit is the table without the last columns that have no room within a width. As Write does, it gives a third of the width to a wide first column, and two
// spaces to each gap.
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

// Write prints the table within a width of columns of a terminal; paint colours a cell. Columns that do not fit go below in a block of their own, which begins
// with the first column again. The first column has a third of the width at most, or the width of its head; longer texts are cut, and so are those of a column
// that is too wide for a block.
func (t *Table) Write(w *strings.Builder, width int, paint func(severity, text string) string) {
	wide := make([]int, len(t.Head)) // of each column
	for i, h := range t.Head {
		wide[i] = human.Columns(h)
		for _, r := range t.Rows {
			wide[i] = max(wide[i], human.Columns(r[i].Text))
		}
	}
	wide[0] = min(wide[0], max(human.Columns(t.Head[0]), width/3))
	// Two spaces between columns, or one if two make the table too wide.
	gap, all := "  ", 0
	for _, n := range wide {
		all += n + len(gap)
	}
	if all-len(gap) > width {
		gap = " "
	}
	// A block of lines for the first column and the columns from … to−1. A table of a single column has a block too.
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
		from = max(to, 2) // past 1, which means the first block
	}
}
