package show

import (
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// domain is show's knowledge of a kind of traces: the printed part of the digest, and the drawing of spans. Each domain is a file.
type domain struct {
	key, help string // the key of its rows in the document, and the keys of a row for -h

	// rows are the domain's objects of the document of --format json.
	rows func(d *digest.Digest) []any
	// table prints the domain's tables, nothing without such traces.
	table func(w *strings.Builder, d *digest.Digest, l look)
	// what says what a trace is about, "" for another subject.
	what func(t *tree.Trace) string
	// details are the important numbers of a span; empty for another domain's span.
	details func(s *tree.Span) []string

	// The rest may be nil: then the domain's spans are drawn as any are.

	// about says more of a trace beside its subject.
	about func(t *tree.Trace) string
	// colours are ANSI codes, by stage or by name of the span.
	colours map[string]string
	// ended says that a span's details include the end, so the status is not needed.
	ended func(s *tree.Span) bool
	// label is a span's name and the text behind the name; false: another domain's span.
	label func(s *tree.Span) (name, end string, ok bool)
	// took is the duration of a span if the length differs, ns.
	took func(s *tree.Span) (ns int64, ok bool)
	// bar draws a span with more than a plain bar.
	bar func(s *tree.Span, t *tree.Trace, cells int, p reading.Palette) (text string, ok bool)
	// below chooses from the children of a span: drawn are those with rows of their own, told those without, of which the details of the last are a note of
	// the span's row.
	below func(s *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span)
	// rank puts the children of a span in order of interest, and folds the rest; false: another domain's span.
	rank func(s *tree.Span, children []*tree.Span, e extent) (drawn []child, ok bool)
	// folded are the important numbers of spans in a shared row; parallel says that the spans ran at the same time, so the sum of times means nothing.
	folded   func(f *fold) []string
	parallel func(s *tree.Span) bool
	// notes stand below a drawing.
	notes func(t *tree.Trace, rows []row) []string
}

// domains are all domains of show, in the order of their tables. The first domain that knows a trace says what the trace is about.
var domains = [...]*domain{&windows, &functions, &steps, &passes, &collectives}

// look is how to print: the width of the terminal in columns, the zone of times, with colours or without.
type look struct {
	width int
	loc   *time.Location
	reading.Palette
}

// extent is how much of a trace a waterfall shows; fit tries smaller and smaller extents, until the rows fit a screen.
type extent struct {
	level int  // 0: everything; the higher, the less
	roots int  // roots of a name drawn whole; the others become a row
	brief bool // spans that only add numbers to the span above are left out
	calls int  // the longest children of a span drawn whole; the others become a row per name. 0: all are drawn
}

// colour returns the ANSI code of a span's bar: by the stage of TransferQueue, else by the span's name; cyan for the spans that no domain names.
func colour(s *tree.Span) string {
	key := s.Name()
	if stage := stageOf(s).String(); stage != "" {
		key = stage
	}
	for _, d := range domains {
		if c := d.colours[key]; c != "" {
			return c
		}
	}
	return "36"
}

// what says what a trace is about, such as "step 12" or "3 functions", in the words of the first domain that knows; else "0 functions".
func what(t *tree.Trace) string {
	for _, d := range domains {
		if text := d.what(t); text != "" {
			return text
		}
	}
	return human.Plural(0, "function")
}
