package digest

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// At is the place of a span: its trace, and its log.
type At struct {
	Trace  pcommon.TraceID
	Span   pcommon.SpanID
	Start  int64  // ns since 1970
	File   string // "": not said
	Offset int64  // By, of the first line of its record in the file; -1: unknown
}

// compare orders by start, then by ids.
func (a *At) compare(b *At) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.Trace[:], b.Trace[:]), slices.Compare(a.Span[:], b.Span[:]))
}

// at returns the place of a span. For a breakdown, which is in no log, the place of its window is looked up; this is done for few breakdowns only.
func (r *resource) at(s ptrace.Span) At {
	at := At{Trace: s.TraceID(), Span: s.SpanID(), Start: int64(s.StartTimestamp()), File: r.file, Offset: r.offset}
	if window, ok := r.places.find(at.Trace, view.KindStep, view.KindFunction, view.KindPass); ok {
		at.File, at.Offset = window.file, window.offset
	}
	return at
}

// Top are the spans with the largest weights, the largest first; equal ones are in the order of time. The result is independent of the order of spans.
type Top[T any] []Ranked[T]

// Ranked is a span with its details.
type Ranked[T any] struct {
	Weight float64
	At
	Of T
}

// add adds a span if it is among the n with the largest weights, and returns its details for the caller to fill. nil: not among them, already there, or no
// weight (NaN).
func (t *Top[T]) add(n int, weight float64, s ptrace.Span, r *resource) *T {
	list := *t
	if math.IsNaN(weight) || len(list) == n && weight < list[n-1].Weight { // the usual case, before the place is looked up
		return nil
	}
	at := r.at(s)
	// Binary search for the place i.
	i, end := 0, len(list)
	for i < end {
		middle := (i + end) / 2
		switch c := cmp.Or(cmp.Compare(weight, list[middle].Weight), list[middle].compare(&at)); {
		case c == 0: // a repetition, perhaps in another file: the first place by file and offset is the evidence
			if had := &list[middle].At; cmp.Or(strings.Compare(at.File, had.File), cmp.Compare(at.Offset, had.Offset)) < 0 {
				*had = at
			}
			return nil
		case c < 0:
			i = middle + 1
		default:
			end = middle
		}
	}
	if i == n {
		return nil
	}
	if len(list) == n {
		list = list[:n-1]
	}
	list = slices.Insert(list, i, Ranked[T]{Weight: weight, At: at})
	*t = list
	return &list[i].Of
}
