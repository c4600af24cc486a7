package show

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/spans"
)

// runRow is what there is of one run of a service.
type runRow struct {
	Service string         `json:"service"`
	Run     string         `json:"run"`
	Traces  int            `json:"traces"`
	Bad     int            `json:"bad"` // traces with a bad verdict
	First   time.Time      `json:"first"`
	Last    time.Time      `json:"last"`
	Roots   map[string]int `json:"roots"` // traces by the name of their first span
}

// traceRow is what there is of one trace.
type traceRow struct {
	Trace    string    `json:"trace"`
	Start    time.Time `json:"start"`
	Seconds  float64   `json:"duration_seconds"`
	Spans    int       `json:"spans"`
	Root     string    `json:"root"`
	What     string    `json:"what"`
	Severity string    `json:"severity,omitempty"`
	Calls    int       `json:"calls,omitempty"` // of a function without trace ids: how many traces of one call the row stands for
}

// first is the span that a trace begins with, of those that have no parent the longest.
func (t *trace) first() *span {
	if len(t.roots) == 0 { // a circle
		return t.all[0]
	}
	return t.roots[0]
}

// severity is the worst of a trace.
func (t *trace) severity() string {
	worst := ""
	for _, s := range t.all {
		switch v := s.attr(spans.AttrVerdictSeverity); {
		case v == spans.SeverityBad:
			return v
		case v == spans.SeverityWarning, worst == "":
			worst = v
		}
	}
	return clean(worst)
}

func (t *trace) attr(key string) string {
	for _, s := range t.all {
		if v := s.attr(key); v != "" {
			return clean(v)
		}
	}
	return ""
}

// runs sums up by service and run, the latest last.
func runs(traces []*trace) []*runRow {
	by := map[[2]string]*runRow{}
	var out []*runRow
	for _, t := range traces {
		first := t.first()
		key := [2]string{clean(first.service()), t.attr(spans.AttrRunID)}
		r := by[key]
		if r == nil {
			r = &runRow{Service: key[0], Run: key[1], First: time.Unix(0, t.start).UTC(), Roots: map[string]int{}}
			by[key] = r
			out = append(out, r)
		}
		if at := time.Unix(0, t.end).UTC(); at.After(r.Last) {
			r.Last = at
		}
		if isRun(t) {
			continue
		}
		r.Traces++
		r.Roots[clean(first.Name())]++
		if t.severity() == spans.SeverityBad {
			r.Bad++
		}
	}
	slices.SortStableFunc(out, func(a, b *runRow) int { return cmp.Or(cmp.Compare(a.Service, b.Service), a.First.Compare(b.First)) })
	return out
}

// each lists traces, the latest first; calls without a trace id are one row per function.
func each(traces []*trace) []*traceRow {
	var out []*traceRow
	calls := map[string]*traceRow{}
	for _, t := range slices.Backward(traces) {
		if isRun(t) {
			continue
		}
		f := t.noID()
		if f != nil && calls[f.function()] != nil {
			r := calls[f.function()]
			r.Calls++
			r.Start, r.Spans, r.Seconds = time.Unix(0, t.start).UTC(), r.Spans+len(t.all), r.Seconds+float64(t.end-t.start)/1e9
			r.Severity = worse(r.Severity, t.severity())
			continue
		}
		r := &traceRow{
			Trace: t.id.String(), Start: time.Unix(0, t.start).UTC(), Seconds: float64(t.end-t.start) / 1e9, Spans: len(t.all), Root: clean(t.first().Name()),
			What: t.what(), Severity: t.severity(),
		}
		if f != nil {
			r.Calls = 1
			calls[f.function()] = r
		}
		out = append(out, r)
	}
	for _, r := range calls {
		if r.Calls > 1 {
			r.Trace, r.What = "", plural(r.Calls, "call")+" without a trace id, together"
		}
	}
	return out
}

func worse(a, b string) string {
	for _, s := range []string{spans.SeverityBad, spans.SeverityWarning, spans.SeverityGood} {
		if a == s || b == s {
			return s
		}
	}
	return ""
}

// overview prints what there is.
func overview(w *strings.Builder, traces []*trace, opt options, loc *time.Location, p palette) {
	g := grid{head: []string{"service", "run", "traces", "bad", "first", "last", "begin with"}, left: map[int]bool{1: true, 6: true}}
	at := func(t time.Time) string { return t.In(loc).Format("2006-01-02 15:04:05") }
	for _, r := range runs(traces) {
		var roots []string
		for _, name := range byCount(r.Roots) {
			roots = append(roots, fmt.Sprintf("%s ×%s", name, thousands(r.Roots[name])))
		}
		if len(roots) > 3 {
			roots = append(roots[:3], "…")
		}
		g.add(texts(r.Service, cmp.Or(r.Run, "-"), thousands(r.Traces), thousands(r.Bad), at(r.First), at(r.Last), strings.Join(roots, ", "))...)
	}
	g.print(w, opt.width, p)
	if opt.service == "" && opt.run == "" {
		return
	}
	w.WriteByte('\n')
	g = grid{head: []string{"trace", "start", "duration", "spans", "verdict", "begins with", "what"}, left: map[int]bool{4: true, 5: true, 6: true}}
	for _, r := range each(traces) {
		g.add(append(texts(cmp.Or(r.Trace, "-"), at(r.Start), duration(int64(r.Seconds*1e9)), thousands(r.Spans)),
			cell{cmp.Or(r.Severity, "-"), severityColour[r.Severity]}, cell{text: r.Root}, cell{text: r.What})...)
	}
	g.print(w, opt.width, p)
}
