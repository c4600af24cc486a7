package show

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// mostWorth bounds the traces that worthDrawing chooses.
const mostWorth = 3

// worthDrawing returns the traces to draw: the most interesting one. If that is a call of TransferQueue whose log has no trace id, the most interesting call of
// each function is returned instead, at most 3, for the functions with the longest time. At least one trace must be given.
func worthDrawing(traces []*tree.Trace) []*tree.Trace {
	best := mostInteresting(traces)
	if withoutID(best) == nil {
		return []*tree.Trace{best}
	}
	took, by := map[string]int64{}, map[string][]*tree.Trace{} // by function; took in ns
	for _, t := range traces {
		if f := withoutID(t); f != nil {
			name := functionName(f)
			took[name] += f.NS()
			by[name] = append(by[name], t)
		}
	}
	var out []*tree.Trace
	for _, name := range digest.ByCount(took) {
		out = append(out, mostInteresting(by[name]))
	}
	return out[:min(mostWorth, len(out))]
}

// mostInteresting returns the trace with the step, batch or pass that was over its limit by the longest time; else the one with the highest TQ overhead; else
// with the worst training step, pass or collective (of passes, with the most verdicts, then the slowest; of collectives, with the latest rank, then the
// slowest); else with the most spans. Of equals the newest is returned.
func mostInteresting(traces []*tree.Trace) *tree.Trace {
	ranked := make([]*interest, len(traces))
	for i, t := range traces {
		ranked[i] = interestOf(t)
	}
	return slices.MaxFunc(ranked, (*interest).compare).trace
}

// How bad the worst training step, pass or collective of a trace is.
const (
	notJudged = iota
	good
	warning
	bad
)

// interest has the figures for comparing traces.
type interest struct {
	trace      *tree.Trace
	slow       float64   // s of its slowest step, batch or pass over the limit, −1 without
	overhead   float64   // the highest of its functions, −1 without
	badness    int       // of the worst verdict: notJudged to bad
	pass       []float64 // of the first pass: number of verdicts, and the time of the calls in s; 0 if unknown. nil: no pass
	collective []float64 // of the first root that is a collective: the lateness of its last rank in s, and its time in s. nil: none
}

// compare returns a positive number if a is more interesting than b. The order of the figures is the order promised in the help of show.
func (a *interest) compare(b *interest) int {
	return cmp.Or(
		cmp.Compare(a.slow, b.slow), cmp.Compare(a.overhead, b.overhead), cmp.Compare(a.badness, b.badness),
		compareBoth(a.pass, b.pass), compareBoth(a.collective, b.collective),
		cmp.Compare(a.size(), b.size()), cmp.Compare(a.trace.Start, b.trace.Start),
	)
}

// compareBoth compares the figures of two traces of the same domain; 0 for traces of different domains.
func compareBoth(a, b []float64) int {
	if a == nil || b == nil {
		return 0
	}
	return slices.Compare(a, b)
}

// size returns the number of spans, which decides between otherwise equal traces; 0 for judged traces (steps, passes, collectives), so that the newest is
// chosen and not the step with the most parts.
func (a *interest) size() int {
	if a.badness > notJudged {
		return 0
	}
	return len(a.trace.Spans)
}

// interestOf returns the figures of a trace.
func interestOf(t *tree.Trace) *interest {
	in := &interest{trace: t, slow: -1, overhead: -1}
	for _, s := range t.Spans {
		switch s.Kind {
		case view.KindBreakdown:
			if v, ok := digest.SlowOf(s.Span); ok {
				in.slow = max(in.slow, v.Over)
			}
		case view.KindFunction:
			if v := overhead(s); !math.IsNaN(v) {
				in.overhead = max(in.overhead, v)
			}
		case view.KindStep, view.KindRanks:
			in.raiseBadness(s)
		case view.KindPass:
			in.raiseBadness(s)
			if in.pass == nil {
				var v view.Group
				v.Read(s.Span, s.Resource)
				in.pass = []float64{float64(v.Verdicts.Len()), orZero(v.CallDuration)}
			}
		case view.KindCollective:
			in.raiseBadness(s)
			if in.collective == nil && s.Parent == nil {
				var v view.Collective
				v.Read(s.Span)
				in.collective = []float64{orZero(v.Last.Late), digest.CollectiveDuration(s.Span, &v)}
			}
		}
	}
	return in
}

// raiseBadness raises the badness to that of the verdicts on a span; a span of a judged kind without a verdict is good.
func (a *interest) raiseBadness(s *tree.Span) {
	switch s.Head.Severity {
	case spans.SeverityBad:
		a.badness = max(a.badness, bad)
	case spans.SeverityWarning:
		a.badness = max(a.badness, warning)
	default:
		a.badness = max(a.badness, good)
	}
}

// orZero returns v, or 0 for NaN.
func orZero(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}
