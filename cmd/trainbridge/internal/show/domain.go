package show

import (
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
)

// domain is what show knows of one kind of traces: the part of the digest that it prints, and how it draws its spans. Each domain is one file.
type domain struct {
	key, help string // the key of its rows in the document, and the keys of a row as -h says them

	rows  func(d *digest.Digest) []any
	table func(w *strings.Builder, d *digest.Digest, l look)
	// what says what a trace is about, "" if it is about something else.
	what func(t *tree.Trace) string
	// details are the numbers of a span that matter; empty for another domain's span.
	details func(s *tree.Span) []string

	// The rest may be nil: then the domain's spans are drawn as any are.

	// about says what there is to know of a trace beside its subject.
	about func(t *tree.Trace) string
	// colours are ANSI codes, by stage or by name of the span.
	colours map[string]string
	// ended says that a span's details tell how it ended, so that its status need not.
	ended func(s *tree.Span) bool
	// label is a span's name and the text behind it; false: another domain's span.
	label func(s *tree.Span) (name, end string, ok bool)
	// took is how long a span took where that is not its length, ns.
	took func(s *tree.Span) (ns int64, ok bool)
	// bar draws a span that is more than one plain bar.
	bar func(s *tree.Span, t *tree.Trace, cells int, p reading.Palette) (text string, ok bool)
	// below are the spans to draw below another one; of the spans that are only told, the details of the last one become a note of the span above.
	below func(s *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span)
	// rank puts the children of a span in the order in which they are of interest, and folds the rest; false: another domain's span.
	rank func(s *tree.Span, children []*tree.Span, e extent) (drawn []child, ok bool)
	// folded are the numbers that matter of spans that are drawn as one row; parallel says that the spans below a span ran at the same time, so that
	// the sum of its times means nothing.
	folded   func(f *fold) []string
	parallel func(s *tree.Span) bool
	// notes stand below a drawing.
	notes func(t *tree.Trace, rows []row) []string
}

// domains are all domains that show knows, in the order in which their tables are printed. The first domain that knows a trace says what it is about.
var domains = [...]*domain{&windows, &functions, &steps, &passes, &collectives}

// look is how to print.
type look struct {
	width int
	loc   *time.Location
	reading.Palette
}

// extent is how much is drawn of a trace.
type extent struct {
	level int  // 0: all of it; the higher, the less
	roots int  // roots of one name that are drawn whole; the others become one row
	brief bool // spans that only add numbers to the span above them are left out
	calls int  // the longest children of a span that are drawn whole; the others become one row per name. 0: all are drawn
}

// colour is the colour of a span's bar.
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

// what says what a trace is about.
func what(t *tree.Trace) string {
	for _, d := range domains {
		if text := d.what(t); text != "" {
			return text
		}
	}
	return human.Plural(0, "function")
}
