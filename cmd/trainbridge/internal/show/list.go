package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// runRow is a row about a run of a service in --list.
type runRow struct {
	Service string         `json:"service"`
	Run     string         `json:"run"`
	Traces  int            `json:"traces"` // without traces about the run as a whole
	Bad     int            `json:"bad"`    // traces with a bad verdict
	First   time.Time      `json:"first"`
	Last    time.Time      `json:"last"`
	Roots   map[string]int `json:"roots"` // traces by the name of their first span
}

// traceRow is a row about a trace in --list.
type traceRow struct {
	Trace    string    `json:"trace"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"duration_seconds"`
	Spans    int       `json:"spans"`
	Root     string    `json:"root"`
	What     string    `json:"what"`
	Severity string    `json:"severity,omitempty"`
	Calls    int       `json:"calls,omitempty"` // of a function without trace ids: the number of traces with a single call behind the row
}

// runRows returns the rows of runs, sorted by service, then by the start of the run. The traces are sorted by start, so that the first trace of a run has the
// start of the run.
func runRows(traces []*tree.Trace) (out []*runRow) {
	by := map[[2]string]*runRow{} // by service and run
	for _, t := range traces {
		first := t.First()
		key := [2]string{first.Resource.Service, runOf(t)}
		r := by[key]
		if r == nil {
			r = &runRow{Service: reading.Clean(key[0]), Run: reading.Clean(key[1]), First: time.Unix(0, t.Start).UTC(), Roots: map[string]int{}}
			by[key] = r
			out = append(out, r)
		}
		if end := time.Unix(0, t.End).UTC(); end.After(r.Last) {
			r.Last = end
		}
		if t.IsRun() { // about the run as a whole: counts for the run's times alone
			continue
		}
		r.Traces++
		r.Roots[reading.Clean(first.Name())]++
		if severityOf(t) == spans.SeverityBad {
			r.Bad++
		}
	}
	slices.SortStableFunc(out, func(a, b *runRow) int { return cmp.Or(cmp.Compare(a.Service, b.Service), a.First.Compare(b.First)) })
	return out
}

// runOf returns the run of the first span that has one.
func runOf(t *tree.Trace) string {
	for _, s := range t.Spans {
		if s.Resource.Run != "" {
			return s.Resource.Run
		}
	}
	return ""
}

// severityOf returns the worst severity of a trace's verdicts: bad, warning, or "" for neither.
func severityOf(t *tree.Trace) (worst string) {
	for _, s := range t.Spans {
		worst = worse(worst, s.Head.Severity)
	}
	return worst
}

// traceRows returns the rows of traces, the latest first, without traces about a run as a whole. Calls of TransferQueue without a trace id, each a trace of its
// own, have one row for each function, at the place of the latest call.
func traceRows(traces []*tree.Trace) []*traceRow {
	var out []*traceRow
	calls := map[string]*traceRow{} // rows of calls without a trace id, by function
	for _, t := range slices.Backward(traces) {
		if t.IsRun() {
			continue
		}
		seconds := float64(t.End-t.Start) / 1e9
		severity := reading.Clean(severityOf(t))
		r := &traceRow{
			Trace: t.ID.String(), Start: time.Unix(0, t.Start).UTC(), Seconds: seconds, Spans: len(t.Spans), Root: reading.Clean(t.First().Name()),
			What: subjectOf(t), Severity: severity,
		}
		if f := withoutID(t); f != nil {
			name := functionName(f)
			if known := calls[name]; known != nil {
				known.Calls++
				known.Start = r.Start // the latest call comes first, so the row ends up with the start of the first
				known.Spans += r.Spans
				known.Seconds += seconds
				known.Severity = worse(known.Severity, severity)
				continue
			}
			r.Calls = 1
			calls[name] = r
		}
		out = append(out, r)
	}
	for _, r := range calls {
		if r.Calls > 1 {
			r.Trace, r.What = "", human.Plural(r.Calls, "call")+" without a trace id, together"
		}
	}
	return out
}

// worse returns the worse of two severities: bad, warning, or "" for neither.
func worse(a, b string) string {
	for _, s := range []string{spans.SeverityBad, spans.SeverityWarning} {
		if a == s || b == s {
			return s
		}
	}
	return ""
}

// printLists prints the lists of --list: a row for each run, with the three most frequent names of first spans, and, if a service or a run was chosen, a row
// for each trace.
func printLists(w *strings.Builder, traces []*tree.Trace, opt options, l style) {
	// Left: the columns with texts. The rest, numbers, are flush right.
	g := tables.Table{Head: []string{"service", "run", "traces", "bad", "first", "last", "begin with"}, Left: []bool{true, true, 6: true}}
	at := func(t time.Time) string { return t.In(l.loc).Format("2006-01-02 15:04:05") }
	for _, r := range runRows(traces) {
		var roots []string
		for _, name := range digest.ByCount(r.Roots) {
			roots = append(roots, fmt.Sprintf("%s ×%s", name, human.Thousands(r.Roots[name])))
		}
		if len(roots) > 3 {
			roots = append(roots[:3], "…")
		}
		g.Add(textCells(r.Service, cmp.Or(r.Run, "-"), human.Thousands(r.Traces), human.Thousands(r.Bad), at(r.First), at(r.Last), strings.Join(roots, ", "))...)
	}
	printTable(w, &g, l)
	if opt.service == "" && opt.run == "" {
		return
	}
	w.WriteByte('\n')
	g = tables.Table{Head: []string{"trace", "start", "duration", "spans", "verdict", "begins with", "what"}, Left: []bool{true, 4: true, 5: true, 6: true}}
	for _, r := range traceRows(traces) {
		g.Add(append(textCells(cmp.Or(r.Trace, "-"), at(r.Start), human.Seconds(r.Seconds), human.Thousands(r.Spans)),
			cell{Text: cmp.Or(r.Severity, "-"), Severity: r.Severity}, cell{Text: r.Root}, cell{Text: r.What})...)
	}
	printTable(w, &g, l)
}
