// Package tables declares the tables of each domain once, as columns over the rows of a digest: the report's text and page and show print the same columns, and
// show's document has their keys. A new column is in all of them.
package tables

import (
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// Column says how a column gets its cells from rows of a type R. A column of numbers has of and write, a column of texts has text alone. A column with of and
// text has numbers in the document and texts in the tables.
type Column[R any] struct {
	english, chinese string // the heads; "": the column is in the document only
	key              string // of the document (show --format json); "": the column is in the tables only

	of    func(R) float64 // the number of a row; NaN: not known
	write func(float64) string
	text  func(R) string
	judge func(R) string // the severity of a cell; nil: cells are not judged
}

// text, number and count are columns of texts, of numbers printed by write, and of counts.
func text[R any](english, chinese, key string, of func(R) string) Column[R] {
	return Column[R]{english: english, chinese: chinese, key: key, text: of}
}

func number[R any](english, chinese, key string, write func(float64) string, of func(R) float64) Column[R] {
	return Column[R]{english: english, chinese: chinese, key: key, of: of, write: write}
}

func count[R any, N int | int64 | float64](english, chinese, key string, of func(R) N) Column[R] {
	return number(english, chinese, key, human.Thousands[float64], func(r R) float64 { return float64(of(r)) })
}

// some is a count of rare events: a 0 is not printed.
func some[R any](english, chinese, key string, of func(R) int) Column[R] {
	c := count(english, chinese, key, of)
	c.write = func(n float64) string {
		if n == 0 {
			return human.Unknown
		}
		return human.Thousands(n)
	}
	return c
}

// at is a row's quantile q, 0 to 1, of the values that of selects; mean and sum are likewise. NaN: there is no value.
func at[R any](of func(R) *digest.Values, q float64) func(R) float64 {
	return func(r R) float64 { return of(r).Quantile(q) }
}

func mean[R any](of func(R) *digest.Values) func(R) float64 {
	return func(r R) float64 { return of(r).Mean() }
}

func sum[R any](of func(R) *digest.Values) func(R) float64 {
	return func(r R) float64 {
		if v := of(r); v.Count() > 0 {
			return v.Sum()
		}
		return math.NaN()
	}
}

// Table is a table to print.
type Table struct {
	Head []string
	Left []bool // by column: texts, which stand at the left; numbers stand at the right
	Rows [][]Cell
}

// Cell is a text, its severity ("": not judged), and its number (NaN: none; cells of Texts have no number).
type Cell struct {
	Text, Severity string
	Value          float64
}

// tableOf makes a table of rows. Columns without any known value are left out, but for the first.
func tableOf[R any](columns []Column[R], rows []R, chinese bool) Table {
	t := Table{Rows: make([][]Cell, len(rows))}
	for i := range columns {
		c := &columns[i]
		if c.english == "" { // of the document only
			continue
		}
		cells, known := make([]Cell, len(rows)), i == 0
		for k, r := range rows {
			cells[k] = c.cell(r)
			known = known || cells[k].Text != human.Unknown && cells[k].Text != ""
		}
		if !known {
			continue
		}
		head := c.english
		if chinese {
			head = c.chinese
		}
		t.Head, t.Left = append(t.Head, head), append(t.Left, c.text != nil && c.of == nil)
		for k := range rows {
			t.Rows[k] = append(t.Rows[k], cells[k])
		}
	}
	return t
}

// cell is the column's cell of a row. Texts may come from logs: they are cleaned, and cut to 60 columns of a terminal.
func (c *Column[R]) cell(r R) (out Cell) {
	out.Value = math.NaN()
	if c.text != nil {
		out.Text = human.Cut(reading.Clean(c.text(r)), 60)
	} else {
		out.Value = c.of(r)
		out.Text = c.write(out.Value)
	}
	if c.judge != nil {
		out.Severity = c.judge(r)
	}
	return out
}

// object is a row of the document, without the keys of unknown values.
func object[R any](columns []Column[R], r R) (out Object) {
	for i := range columns {
		c := &columns[i]
		switch {
		case c.key == "":
		case c.of != nil:
			if x := c.of(r); spans.Finite(x) {
				out.Add(c.key, x)
			}
		default:
			if t := reading.Clean(c.text(r)); t != "" {
				out.Add(c.key, t)
			}
		}
	}
	return out
}

// objects are rows of the document. more, if not nil, adds further keys to each.
func objects[R any](columns []Column[R], rows []R, more func(R, *Object)) (out []any) {
	for _, r := range rows {
		o := object(columns, r)
		if more != nil {
			more(r, &o)
		}
		out = append(out, o)
	}
	return out
}

// keys lists the keys of the columns for a help text, quoted, with commas between, then more, a list likewise.
func keys[R any](columns []Column[R], more string) string {
	var out strings.Builder
	for i := range columns {
		if columns[i].key != "" {
			out.WriteString(strconv.Quote(columns[i].key) + ", ")
		}
	}
	return strings.TrimSuffix(out.String()+more, ", ")
}

// share judges a share with train_perf's limits: over 30 % is bad, over 20 % a warning.
func share(part, whole float64) string {
	switch {
	case 10*part > 3*whole:
		return spans.SeverityBad
	case 5*part > whole:
		return spans.SeverityWarning
	}
	return Fine
}
