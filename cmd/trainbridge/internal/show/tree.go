package show

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// span is a span with its resource and its place in the tree.
type span struct {
	ptrace.Span
	resource pcommon.Map
	parent   *span
	children []*span
	orphan   bool // names a parent that is not in the trace
}

func (s *span) start() int64 { return int64(s.StartTimestamp()) }
func (s *span) end() int64   { return int64(s.EndTimestamp()) }
func (s *span) ns() int64    { return max(0, s.end()-s.start()) }

// attr is an attribute as text, of the span or of its resource; empty when there is none.
func (s *span) attr(key string) string {
	if v, ok := s.Attributes().Get(key); ok {
		return v.AsString()
	}
	if v, ok := s.resource.Get(key); ok {
		return v.AsString()
	}
	return ""
}

func (s *span) number(key string) (float64, bool) {
	v, ok := s.Attributes().Get(key)
	if !ok {
		return 0, false
	}
	if v.Type() == pcommon.ValueTypeInt {
		return float64(v.Int()), true
	}
	return v.Double(), v.Type() == pcommon.ValueTypeDouble
}

func (s *span) service() string { return s.attr(spans.AttrServiceName) }

// elsewhere says whether another service than that of its parent ran it; of a root: than that of the trace's first span.
func (s *span) elsewhere(t *trace) bool {
	if s.parent != nil {
		return s.service() != s.parent.service()
	}
	return s.service() != t.all[0].service()
}

func (s *span) stage() string { return s.attr(spans.AttrTQStage) }

func (s *span) incomplete() bool {
	v, ok := s.Attributes().Get(spans.AttrIncomplete)
	return ok && v.Bool()
}

func (s *span) failed() bool { return s.Status().Code() == ptrace.StatusCodeError }

// child returns the time spent in children of a stage.
func (s *span) child(stage string) (ns int64) {
	for _, c := range s.children {
		if c.stage() == stage {
			ns += c.ns()
		}
	}
	return ns
}

// overhead is the share of get and put in a function: train_perf's if it ran, else from the children.
func (s *span) overhead() (float64, bool) {
	if v, ok := s.number(spans.AttrTQOverheadUtilization); ok {
		return v, true
	}
	if s.ns() == 0 || s.incomplete() {
		return 0, false
	}
	return float64(s.child(spans.StageGet)+s.child(spans.StagePut)) / float64(s.ns()), true
}

// trace is all spans with one trace id.
type trace struct {
	id         pcommon.TraceID
	roots      []*span
	all        []*span
	start, end int64
}

// functions are the TQ functions of the trace.
func (t *trace) functions() []*span {
	var fs []*span
	for _, s := range t.all {
		if s.stage() == spans.StageFunction {
			fs = append(fs, s)
		}
	}
	return fs
}

// overhead is the highest of the trace's functions.
func (t *trace) overhead() float64 {
	worst := -1.0
	for _, f := range t.functions() {
		if v, ok := f.overhead(); ok {
			worst = max(worst, v)
		}
	}
	return worst
}

// build sorts spans into traces (by start) and trees. Copies of a span, which a replay may leave in the store, count once.
func build(td ptrace.Traces) []*trace {
	byID := map[pcommon.TraceID]*trace{}
	type key struct {
		trace pcommon.TraceID
		span  pcommon.SpanID
	}
	known := map[key]*span{}
	var traces []*trace
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, sp := range ss.Spans().All() {
				k := key{sp.TraceID(), sp.SpanID()}
				if known[k] != nil {
					continue
				}
				s := &span{Span: sp, resource: rs.Resource().Attributes()}
				known[k] = s
				t := byID[k.trace]
				if t == nil {
					t = &trace{id: k.trace, start: s.start(), end: s.end()}
					byID[k.trace] = t
					traces = append(traces, t)
				}
				t.all = append(t.all, s)
				t.start, t.end = min(t.start, s.start()), max(t.end, s.end())
			}
		}
	}
	byStart := func(a, b *span) int {
		return cmp.Or(cmp.Compare(a.start(), b.start()), cmp.Compare(b.end(), a.end()), slices.Compare(spanID(a), spanID(b)))
	}
	for _, t := range traces {
		slices.SortFunc(t.all, byStart)
		for _, s := range t.all {
			parent := known[key{t.id, s.ParentSpanID()}]
			switch {
			case s.ParentSpanID().IsEmpty():
				t.roots = append(t.roots, s)
			case parent == nil || parent == s:
				s.orphan = true
				t.roots = append(t.roots, s)
			default:
				s.parent = parent
				parent.children = append(parent.children, s)
			}
		}
	}
	slices.SortFunc(traces, func(a, b *trace) int {
		return cmp.Or(cmp.Compare(a.start, b.start), slices.Compare(a.id[:], b.id[:]))
	})
	return traces
}

func spanID(s *span) []byte {
	id := s.SpanID()
	return id[:]
}

// Ranks of badness.
const (
	notJudged = iota
	good
	warning
	bad
)

// badness is that of the worst training step, pass or collective of the trace.
func (t *trace) badness() int {
	worst := notJudged
	for _, s := range t.all {
		if !s.isStep() && !s.isPass() && !s.isCollective() && s.Name() != spans.SpanRanks {
			continue
		}
		switch s.attr(spans.AttrVerdictSeverity) {
		case spans.SeverityBad:
			worst = max(worst, bad)
		case spans.SeverityWarning:
			worst = max(worst, warning)
		default:
			worst = max(worst, good)
		}
	}
	return worst
}

// size decides between traces that are equally bad: of steps it is none, so that the newest is taken and not the one with the most parts.
func (t *trace) size() int {
	if t.badness() > notJudged {
		return 0
	}
	return len(t.all)
}

// interesting is the trace with the highest TQ overhead, else that with the worst training step, pass or collective (of passes, the one with the most
// verdicts, then the slowest; of collectives, the one with the latest rank, then the slowest), else the one with the most spans; the newest of equals.
func interesting(traces []*trace) *trace {
	return slices.MaxFunc(traces, func(a, b *trace) int {
		return cmp.Or(
			cmp.Compare(a.overhead(), b.overhead()), cmp.Compare(a.badness(), b.badness()), a.pass().compare(b.pass()),
			a.collective().compareLate(b.collective()),
			cmp.Compare(a.size(), b.size()), cmp.Compare(a.start, b.start),
		)
	})
}
