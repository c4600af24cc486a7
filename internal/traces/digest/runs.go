package digest

import (
	"cmp"
	"slices"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// Run sums up the traces of one run of a service.
type Run struct {
	Service, Run string
	Traces       int            // without traces that are only about the run as a whole
	Bad          int            // traces with a bad verdict
	First, Last  int64          // ns since 1970: the start of the first trace, the end of the last
	Roots        map[string]int // traces by the name of their first span
}

// Runs are the runs of traces by start: by service, the latest last.
func Runs(traces []*tree.Trace) []*Run {
	by := map[[2]string]*Run{}
	var out []*Run
	for _, t := range traces {
		first := t.First()
		key := [2]string{first.Resource.Service, runOf(t)}
		r := by[key]
		if r == nil {
			r = &Run{Service: key[0], Run: key[1], First: t.Start, Roots: map[string]int{}}
			by[key] = r
			out = append(out, r)
		}
		r.Last = max(r.Last, t.End)
		if t.IsRun() {
			continue
		}
		r.Traces++
		r.Roots[first.Name()]++
		if Severity(t) == spans.SeverityBad {
			r.Bad++
		}
	}
	slices.SortStableFunc(out, func(a, b *Run) int { return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.First, b.First)) })
	return out
}

// runOf is the run of the first span that names one.
func runOf(t *tree.Trace) string {
	for _, s := range t.Spans {
		if s.Resource.Run != "" {
			return s.Resource.Run
		}
	}
	return ""
}

// Severity is the worst of a trace, empty where nothing was judged.
func Severity(t *tree.Trace) string {
	worst := ""
	for _, s := range t.Spans {
		switch v := s.Head.Severity; {
		case v == spans.SeverityBad:
			return v
		case v == spans.SeverityWarning, worst == "":
			worst = v
		}
	}
	return worst
}
