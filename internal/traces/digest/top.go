package digest

import (
	"cmp"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// At is where a span is: its trace, and the log that it was made of.
type At struct {
	Trace  pcommon.TraceID
	Span   pcommon.SpanID
	Start  int64  // ns since 1970
	File   string // "": not said
	Offset int64  // By, of the first line of its record in the file; -1: not said
}

// compare orders by start, then by id.
func (a *At) compare(b *At) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.Trace[:], b.Trace[:]), slices.Compare(a.Span[:], b.Span[:]))
}

// at is where a span is.
func (r *resource) at(s ptrace.Span) At {
	return At{Trace: s.TraceID(), Span: s.SpanID(), Start: int64(s.StartTimestamp()), File: r.file, Offset: r.offset}
}

// Top are the spans with the largest weights, the largest first; equal ones are in the order of time. It is the same in whatever order they come.
type Top[T any] []Ranked[T]

// Ranked is a span with what is worth to know of it.
type Ranked[T any] struct {
	Weight float64
	At
	Of T
}

// add takes a span that is among the n largest, and returns what is to be said of it; nil where there is no room for the span.
func (t *Top[T]) add(n int, weight float64, s ptrace.Span, r *resource) *T {
	list := *t
	if math.IsNaN(weight) || len(list) == n && weight < list[n-1].Weight {
		return nil
	}
	at := r.at(s)
	i, end := 0, len(list)
	for i < end {
		middle := (i + end) / 2
		switch c := cmp.Or(cmp.Compare(weight, list[middle].Weight), list[middle].compare(&at)); {
		case c == 0: // it came again
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
