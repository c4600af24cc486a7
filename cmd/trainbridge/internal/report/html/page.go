package html

import (
	"math"
	"slices"
	"strconv"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/report/format"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/stat"
)

// page is the content of the page: the shapes that assets/*.js draws. Texts may come from logs: the page shows texts, never markup.
type page struct {
	Title string            `json:"title"`
	About string            `json:"about"`
	Lang  string            `json:"lang"`
	Words map[string]string `json:"words"`
	Links []format.Link     `json:"links,omitempty"` // to each trace
	Runs  *table            `json:"runs,omitempty"`  // of several, in the order of Jobs
	Jobs  []job             `json:"jobs"`
	After []section         `json:"after,omitempty"`
}

// job is the part of the page about a job.
type job struct {
	Run        string    `json:"run"`
	Name       string    `json:"name"`
	Conclusion string    `json:"conclusion"`
	Severity   string    `json:"severity"` // of the conclusion
	States     *bars     `json:"states,omitempty"`
	Causes     []cause   `json:"causes,omitempty"`
	Missing    []string  `json:"missing,omitempty"`
	Sections   []section `json:"sections,omitempty"`
}

// cause is a claim of the conclusion.
type cause struct {
	Text     string   `json:"text"`
	Advice   string   `json:"advice,omitempty"`
	Evidence []string `json:"evidence,omitempty"`
}

// section is a heading with charts.
type section struct {
	Title  string   `json:"title"`
	Notes  []string `json:"notes,omitempty"`
	Charts []any    `json:"charts"` // *series, *boxes, *bars, *heat, *waterfall, *table
}

// add adds a chart, unless it is empty.
func (s *section) add(chart interface{ empty() bool }) {
	if chart.empty() {
		return
	}
	s.Charts = append(s.Charts, chart)
}

// head begins each chart.
type head struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	Note  string `json:"note,omitempty"`
	Wide  bool   `json:"wide,omitempty"`
}

// series are lines, points or stacked areas over an axis. Values have the length of Xs.
type series struct {
	head
	XLabel  string  `json:"x_label"`
	XUnit   string  `json:"x_unit"`
	LogX    bool    `json:"log_x,omitempty"`
	Xs      numbers `json:"xs"`
	Axes    []axis  `json:"axes"`
	Series  []line  `json:"series"`
	Stacked bool    `json:"stacked,omitempty"`
	Steps   int64   `json:"steps,omitempty"` // of a point, whose x is the number of the first; 0: the axis is not of steps
	Marks   []mark  `json:"marks,omitempty"`
	Sync    string  `json:"sync,omitempty"` // the cursors of charts with the same text move together
}

// axis is a vertical axis.
type axis struct {
	Unit  string `json:"unit"` // UCUM, as in the registry
	Label string `json:"label,omitempty"`
	Log   bool   `json:"log,omitempty"`
	Zero  bool   `json:"zero,omitempty"` // begins at 0
	Wide  bool   `json:"wide,omitempty"` // shows half of the largest value at least: noise is no drama
}

// line is a series of values, drawn in the way of Draw.
type line struct {
	Name   string  `json:"name"`
	Axis   int     `json:"axis,omitempty"`
	Colour int     `json:"colour"`
	Draw   string  `json:"draw"` // line, average, points, steps; in a stack: over, a line beside the stack
	Faint  bool    `json:"faint,omitempty"`
	Dash   bool    `json:"dash,omitempty"`
	Values numbers `json:"values"`
	Low    numbers `json:"low,omitempty"`  // of means: the least of each
	High   numbers `json:"high,omitempty"` // the most of each
}

// mark is a place of a verdict on the axis.
type mark struct {
	X        number `json:"x"`
	Severity string `json:"severity"`
}

// A single point is left to the table.
func (s *series) empty() bool { return len(s.Xs) < 2 || len(s.Series) == 0 }

// boxes are distributions side by side.
type boxes struct {
	head
	Unit  string `json:"unit"`
	Items []box  `json:"items"`
}

// box is a distribution.
type box struct {
	Name   string `json:"name"`
	Colour int    `json:"colour"`
	Count  int64  `json:"count"`
	Min    number `json:"min"`
	P5     number `json:"p5"`
	P25    number `json:"p25"`
	P50    number `json:"p50"`
	P75    number `json:"p75"`
	P95    number `json:"p95"`
	Max    number `json:"max"`
}

func (b *boxes) empty() bool { return len(b.Items) == 0 }

// bars are wholes with their parts.
type bars struct {
	head
	Unit  string    `json:"unit"`
	Parts []barPart `json:"parts"`
	Items []bar     `json:"items"`
}

// barPart is a part that each bar may have.
type barPart struct {
	Name   string `json:"name"`
	Colour int    `json:"colour"`
}

// bar is a whole.
type bar struct {
	Name   string  `json:"name"`
	Values numbers `json:"values"` // as Parts
}

func (b *bars) empty() bool { return len(b.Items) == 0 }

// heat is a table of numbers as colours.
type heat struct {
	head
	Unit        string   `json:"unit"`
	RowLabel    string   `json:"row_label"`
	ColumnLabel string   `json:"column_label"`
	ValueLabel  string   `json:"value_label,omitempty"`
	Rows        []string `json:"rows"`
	Columns     []string `json:"columns"`
	Values      numbers  `json:"values"` // row by row; NaN: none
	Square      bool     `json:"square,omitempty"`
	FromZero    bool     `json:"from_zero,omitempty"`
}

func (h *heat) empty() bool {
	return !slices.ContainsFunc(h.Values, func(v float64) bool { return !math.IsNaN(v) })
}

// table is figures as text.
type table struct {
	head
	Head  []string   `json:"head"`
	Text  []bool     `json:"text"` // of a column: text, not numbers
	Cells [][]string `json:"cells"`
	By    []numbers  `json:"by,omitempty"` // rows are sorted by: the numbers of each row, null where a cell has none
}

// tableOf is a table of a domain.
func tableOf(title string, of tables.Table) *table {
	t := &table{head: head{Kind: "table", Title: title}, Head: of.Head, Text: of.Left}
	for _, r := range of.Rows {
		cells := make([]string, len(r))
		for i := range r {
			cells[i] = r[i].Text
		}
		t.Cells = append(t.Cells, cells)
	}
	return t
}

func (t *table) empty() bool { return len(t.Cells) == 0 }

// waterfall is a trace.
type waterfall struct {
	head
	Trace  string   `json:"trace"`
	Step   *int64   `json:"step,omitempty"` // the number of the step
	Length int64    `json:"length"`         // ns
	Names  []string `json:"names"`
	Rows   []row    `json:"rows"`
}

func (w *waterfall) empty() bool { return len(w.Rows) == 0 }

// row is a span: depth, index of its name in Names, start from the trace's start and duration in ns, colour, severity, details.
type row [7]any

// number is a number with seven digits, or null.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n)), nil }

// numbers are numbers with seven digits, or null.
type numbers []float64

// MarshalJSON implements json.Marshaler.
func (n numbers) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 10*len(n)+2), '[')
	for i, v := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendNumber(out, v)
	}
	return append(out, ']'), nil
}

// appendNumber writes a number as JSON: null unless finite, whole numbers in full, others with seven digits.
func appendNumber(to []byte, v float64) []byte {
	switch {
	case !stat.Finite(v):
		return append(to, "null"...)
	case v == math.Trunc(v) && math.Abs(v) < 1e15:
		return strconv.AppendInt(to, int64(v), 10)
	}
	return strconv.AppendFloat(to, v, 'g', 7, 64)
}
