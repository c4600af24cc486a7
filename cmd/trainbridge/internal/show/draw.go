package show

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// Drawing is a trace as rows, for programs with more room than a terminal.
type Drawing struct {
	Start, End int64 // ns since 1970, of the axis
	Rows       []Drawn
}

// Drawn is a row of a Drawing: a span with its texts.
type Drawn struct {
	*tree.Span
	Depth   int // below a root: 1
	Name    string
	Details string // important numbers, and each verdict with its sentence
	Told    bool   // the span has a verdict
	Colour  int    // from 0, the same for all rows of a name
}

// Draw returns a trace with a row for each span, children below their parents, for the page of `trainbridge report`.
func Draw(t *tree.Trace) *Drawing {
	t = withLoggedAxis(t)
	d := &Drawing{Start: t.Start, End: t.End}
	colours := map[string]int{}
	var walk func(s *tree.Span, depth int)
	walk = func(s *tree.Span, depth int) {
		r := row{Span: s}
		name, end := r.label()
		colour, ok := colours[name]
		if !ok {
			colour = len(colours)
			colours[name] = colour
		}
		texts := []string{r.details(t)}
		told := verdicts(s)
		for _, v := range told {
			texts = append(texts, strings.TrimSuffix(v.Title()+": "+v.reason, ": ")) // without a reason, the title alone
		}
		// TrimPrefix: a row without details begins with the verdicts.
		d.Rows = append(d.Rows, Drawn{s, depth, name + end, strings.TrimPrefix(strings.Join(texts, " · "), " · "), len(told) > 0, colour})
		for _, c := range s.Children {
			walk(c, depth+1)
		}
	}
	for _, s := range t.Roots {
		walk(s, 0)
	}
	return d
}
