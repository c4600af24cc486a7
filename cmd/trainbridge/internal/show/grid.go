package show

import (
	"fmt"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
)

// cell is a text of a table, and the colour to paint it with.
type cell struct{ text, colour string }

// grid is a table whose lines are no longer than the terminal. Columns that do not fit beside the first column go below, beside the first column again.
type grid struct {
	head []string
	left map[int]bool // columns of text; the others are numbers. The first one is text
	rows [][]cell
}

func (g *grid) add(cells ...cell) { g.rows = append(g.rows, cells) }

// texts are cells without a colour.
func texts(text ...string) []cell {
	cells := make([]cell, len(text))
	for i, t := range text {
		cells[i].text = t
	}
	return cells
}

func (g *grid) print(w *strings.Builder, l look) {
	width := max(l.width, minWidth)
	wide := make([]int, len(g.head))
	for i, h := range g.head {
		wide[i] = human.Columns(h)
		for _, r := range g.rows {
			wide[i] = max(wide[i], human.Columns(r[i].text))
		}
	}
	wide[0] = min(wide[0], max(human.Columns(g.head[0]), width/3))
	gap, all := "  ", 0
	for _, n := range wide {
		all += n + len(gap)
	}
	if all-len(gap) > width {
		gap = " "
	}
	for from := 1; from < len(wide); {
		to, used := from, wide[0]
		for to < len(wide) && (to == from || used+len(gap)+wide[to] <= width) {
			used += len(gap) + wide[to]
			to++
		}
		if used > width { // one column that is too wide by itself
			wide[from] -= used - width
		}
		line := func(text func(i int) cell) {
			var b strings.Builder
			for i := range wide {
				if i > 0 && (i < from || i >= to) {
					continue
				}
				c := text(i)
				blank := strings.Repeat(" ", max(0, wide[i]-human.Columns(c.text)))
				body := l.paint(c.colour, human.Cut(c.text, wide[i]))
				switch {
				case i == 0:
					b.WriteString(body + blank)
				case g.left[i]:
					b.WriteString(gap + body + blank)
				default:
					b.WriteString(gap + blank + body)
				}
			}
			fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		}
		line(func(i int) cell { return cell{g.head[i], "1"} })
		for _, r := range g.rows {
			line(func(i int) cell { return r[i] })
		}
		from = to
	}
}

// paragraph prints text on lines that are short enough; the lines after the first are indented.
func paragraph(w *strings.Builder, text, colour string, l look) {
	for i, line := range human.Wrap(text, max(l.width, minWidth)-2) {
		if i > 0 {
			line = "  " + line
		}
		fmt.Fprintln(w, l.paint(colour, line))
	}
}

// parts prints texts that belong together, two blanks between them, on as few lines as they fit on.
func parts(w *strings.Builder, l look, texts ...cell) {
	width := max(l.width, minWidth)
	used := 0
	for _, t := range texts {
		if t.text == "" {
			continue
		}
		t.text = human.Cut(t.text, width)
		switch {
		case used == 0:
		case used+2+human.Columns(t.text) > width:
			fmt.Fprintln(w)
			used = 0
		default:
			fmt.Fprint(w, "  ")
			used += 2
		}
		fmt.Fprint(w, l.paint(t.colour, t.text))
		used += human.Columns(t.text)
	}
	fmt.Fprintln(w)
}
