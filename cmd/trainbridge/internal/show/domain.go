package show

import (
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// domain is a kind of traces: how its part of the digest is printed, and how its spans are drawn. Each domain has a file.
type domain struct {
	key, help string // the key of its rows in the document, and the keys of a row for -h

	// rows returns the objects of the domain in the document of --format json.
	rows func(d *digest.Digest) []any
	// table prints the domain's tables, nothing without such traces.
	table func(w *strings.Builder, d *digest.Digest, l style)
	// subject returns what a trace is about; "": the trace is of another domain.
	subject func(t *tree.Trace) string
	// details returns the important numbers of a span; nil: the span is of another domain.
	details func(s *tree.Span) []string

	// The fields below may be nil: then the spans of the domain are drawn in the default way.

	// more returns what else to print about a trace.
	more func(t *tree.Trace) string
	// colours are ANSI codes, by stage or by name of the span.
	colours map[string]string
	// showsEnd reports whether the details of a span include its end, so that the status is not needed.
	showsEnd func(s *tree.Span) bool
	// label returns the name of a span and the text after the name; false: the span is of another domain.
	label func(s *tree.Span) (name, end string, ok bool)
	// duration returns the duration of a span, ns, if that is not the length of the span.
	duration func(s *tree.Span) (ns int64, ok bool)
	// bar returns the bar of a span whose bar is not plain.
	bar func(s *tree.Span, t *tree.Trace, cells int, p reading.Palette) (text string, ok bool)
	// below divides the children of a span: drawn are those with rows of their own. told have no rows, and the details of the last one become a note in the row of
	// the span. The others are left out.
	below func(s *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span)
	// order returns the children of a span in order of interest, and folds the rest; false: the span is of another domain.
	order func(s *tree.Span, children []*tree.Span, e extent) (drawn []child, ok bool)
	// foldDetails returns the important numbers of spans in a common row. parallel reports whether the children of a span ran at the same time, so that the sum of
	// their times means nothing.
	foldDetails func(f *fold) []string
	parallel    func(s *tree.Span) bool
	// notes returns the notes below a drawing.
	notes func(t *tree.Trace, rows []row) []string
}

// domains are all domains of show, in the order of their tables. The first domain that knows a trace says what the trace is about.
var domains = [...]*domain{&windows, &functions, &steps, &passes, &collectives}

// style is the style of printing: the width of the terminal in columns, the zone of times, and colours or none.
type style struct {
	width int
	loc   *time.Location
	reading.Palette
}

// extent is how much of a trace is drawn; fitRows tries smaller and smaller extents, until the rows fit a screen.
type extent struct {
	level int  // 0: everything; the higher, the less
	roots int  // roots of a name drawn whole; the others become a row
	brief bool // spans that only add numbers to the span above are left out
	calls int  // the longest children of a span drawn whole; the others become a row per name. 0: all are drawn
}

// colour returns the ANSI code of the bar of a span: by the stage of TransferQueue, else by the name of the span; cyan if no domain has the name.
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

// subjectOf returns what a trace is about, such as "step 12" or "3 functions", by the first domain that knows the trace; else "0 functions".
func subjectOf(t *tree.Trace) string {
	for _, d := range domains {
		if text := d.subject(t); text != "" {
			return text
		}
	}
	return human.Plural(0, "function")
}
