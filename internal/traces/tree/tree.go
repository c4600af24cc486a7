// Package tree assembles unordered spans of a store or a file: into traces, and each trace into the tree to draw.
package tree

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// Span is a span with its place in the tree, and with the attributes common to all kinds. The view of its kind reads the rest.
type Span struct {
	ptrace.Span
	Kind     view.Kind
	Head     view.Head
	Resource *view.Resource // shared by all spans of the resource

	Parent   *Span // nil: a root
	Children []*Span
	Orphan   bool // its parent is not in the trace, or the span itself. Children of step_join's root, sent only when a trace is over, are no orphans
}

// Start is in ns since 1970.
func (s *Span) Start() int64 { return int64(s.StartTimestamp()) }

// End is in ns since 1970.
func (s *Span) End() int64 { return int64(s.EndTimestamp()) }

// NS is the duration in ns, 0 for an end before the start.
func (s *Span) NS() int64 { return max(0, s.End()-s.Start()) }

// Failed says whether the status is an error.
func (s *Span) Failed() bool { return s.Status().Code() == ptrace.StatusCodeError }

// Trace is all spans with the same trace id.
type Trace struct {
	ID         pcommon.TraceID
	Roots      []*Span // by start: spans without a parent, and orphans
	Spans      []*Span // by start
	Start, End int64   // ns since 1970: the first start and the last end of all spans
}

// First is the first span of a trace; of several roots with the same start, the longest.
func (t *Trace) First() *Span {
	if len(t.Roots) == 0 { // the parents are a circle
		return t.Spans[0]
	}
	return t.Roots[0]
}

// Build sorts spans into traces (by start) and trees. Copies of a span, which a replay may leave in the store, count once. The spans stay in td.
func Build(td ptrace.Traces) []*Trace {
	byID := map[pcommon.TraceID]*Trace{}
	type key struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	// All spans, by trace.
	known := map[key]*Span{}
	var traces []*Trace
	for _, rs := range td.ResourceSpans().All() {
		resource := new(view.Resource)
		resource.Read(rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				k := key{sp.TraceID(), sp.SpanID()}
				if known[k] != nil {
					continue
				}
				s := &Span{Span: sp, Kind: view.KindOf(sp), Resource: resource}
				s.Head.Read(sp)
				known[k] = s
				t := byID[k.trace]
				if t == nil {
					t = &Trace{ID: k.trace, Start: s.Start(), End: s.End()}
					byID[k.trace] = t
					traces = append(traces, t)
				}
				t.Spans = append(t.Spans, s)
				t.Start, t.End = min(t.Start, s.Start()), max(t.End, s.End())
			}
		}
	}
	// Each span below its parent.
	for _, t := range traces {
		slices.SortFunc(t.Spans, byStart)
		for _, s := range t.Spans {
			parent := known[key{t.ID, s.ParentSpanID()}]
			belowRootToCome := parent == nil && s.ParentSpanID() == spans.RootID(t.ID) // step_join sends its root when the trace is over
			switch {
			case s.ParentSpanID().IsEmpty(), belowRootToCome:
				t.Roots = append(t.Roots, s)
			case parent == nil || parent == s:
				s.Orphan = true
				t.Roots = append(t.Roots, s)
			default:
				s.Parent = parent
				parent.Children = append(parent.Children, s)
			}
		}
	}
	SortByStart(traces)
	return traces
}

// SortByStart sorts traces by start, then by id.
func SortByStart(traces []*Trace) {
	slices.SortFunc(traces, func(a, b *Trace) int { return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.ID[:], b.ID[:])) })
}

// byStart sorts parents before children with the same start.
func byStart(a, b *Span) int {
	idA, idB := a.SpanID(), b.SpanID()
	return cmp.Or(cmp.Compare(a.Start(), b.Start()), cmp.Compare(b.End(), a.End()), slices.Compare(idA[:], idB[:]))
}

// OfRun says whether a trace has spans of a run.
func (t *Trace) OfRun(run string) bool {
	return slices.ContainsFunc(t.Spans, func(s *Span) bool { return s.Resource.Run == run })
}

// IsRun says whether a trace is only about a run as a whole.
func (t *Trace) IsRun() bool {
	return !slices.ContainsFunc(t.Spans, func(s *Span) bool { return s.Kind != view.KindRun && s.Kind != view.KindSummary })
}
