package show

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// documentHelp returns the text for -h about the shape of --format json; a test compares the shape with the output.
func documentHelp() string {
	var b strings.Builder
	b.WriteString(`With --format json, of what is not known the key is left out; "verdicts" are counts by name:
  {"jaeger": URL, "services": [...], "run": ID, "traces": {"read": N, "there": N, "more": BOOL},
`)
	for _, d := range domains {
		key := "   " + human.Pad(strconv.Quote(d.key)+":", 17)
		for _, line := range human.Wrap("["+d.help+"],", 110) {
			b.WriteString(key + line + "\n")
			key = human.Pad("", 22)
		}
	}
	b.WriteString(`   "drawn":         [{"trace", "start", "duration_seconds", "spans": [{"span", "parent", "name", "service", "start_seconds",
                      "duration_seconds", "incomplete", "error", "verdicts": [{"name", "reason", "value", "threshold"}], "links", "attributes"}]}],
   "runs":          [{"service", "run", "traces", "bad", "first", "last", "roots"}],                        with --list
   "listed":        [{"trace", "start", "duration_seconds", "spans", "root", "what", "severity", "calls"}]} with --list, of a service or run
and in place of "jaeger" with --tempo {"tempo": URL}, with --file {"files": [...]}`)
	return b.String()
}

// drawnDoc is a drawn trace with all spans, in --format json.
type drawnDoc struct {
	Trace   string    `json:"trace"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"duration_seconds"`
	Spans   []spanDoc `json:"spans"`
}

// spanDoc is a span of a drawn trace.
type spanDoc struct {
	Span       string         `json:"span"`
	Parent     string         `json:"parent,omitempty"`
	Name       string         `json:"name"`
	Service    string         `json:"service"`
	Start      float64        `json:"start_seconds"` // since the trace's start
	Seconds    float64        `json:"duration_seconds"`
	Incomplete bool           `json:"incomplete,omitempty"`
	Error      string         `json:"error,omitempty"`
	Verdicts   []verdictDoc   `json:"verdicts,omitempty"`
	Links      []string       `json:"links,omitempty"` // ids of other traces
	Attributes map[string]any `json:"attributes"`
}

// verdictDoc is a verdict on a span.
type verdictDoc struct {
	Name      string   `json:"name"`
	Severity  string   `json:"severity,omitempty"`
	Cause     string   `json:"cause,omitempty"`
	Stage     string   `json:"stage,omitempty"`
	Reason    string   `json:"reason,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	Threshold *float64 `json:"threshold,omitempty"`
}

// finiteOrNil returns a pointer to a number for JSON; nil for NaN and infinities, which JSON lacks.
func finiteOrNil(v float64) *float64 {
	if !spans.Finite(v) {
		return nil
	}
	return &v
}

// makeFinite returns a value in which NaN and infinities, which JSON lacks, are texts ("NaN", "+Inf"). Lists and maps are changed in place.
func makeFinite(v any) any {
	switch v := v.(type) {
	case float64:
		if finiteOrNil(v) == nil {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		for i := range v {
			v[i] = makeFinite(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = makeFinite(v[k])
		}
	}
	return v
}

// document returns the output of --format json, in the shape of documentHelp.
func (r *report) document(opt options) (doc tables.Object) {
	doc.Add(r.from.key, r.from.value)
	tables.AddAll(&doc, "services", r.services)
	if r.run != "" {
		doc.Add("run", r.run)
	}
	if opt.trace == "" {
		doc.Add("traces", r.share)
	}
	if !opt.list {
		all := digestOf(r.traces)
		for _, d := range domains {
			tables.AddAll(&doc, d.key, d.rows(all))
		}
	}
	var drawn []drawnDoc
	for _, t := range r.drawn {
		drawn = append(drawn, drawnDocument(t))
	}
	tables.AddAll(&doc, "drawn", drawn)
	if opt.list {
		tables.AddAll(&doc, "runs", runRows(r.traces))
		if opt.service != "" || opt.run != "" {
			tables.AddAll(&doc, "listed", traceRows(r.traces))
		}
	}
	return doc
}

// drawnDocument returns a trace for --format json, spans by start; times are in s since the trace's start.
func drawnDocument(t *tree.Trace) drawnDoc {
	doc := drawnDoc{t.ID.String(), time.Unix(0, t.Start).UTC(), float64(t.End-t.Start) / 1e9, nil}
	for _, s := range t.Spans {
		out := spanDoc{
			Span: s.SpanID().String(), Parent: s.ParentSpanID().String(), Name: s.Name(), Service: s.Resource.Service,
			Start: float64(s.Start()-t.Start) / 1e9, Seconds: float64(s.NS()) / 1e9, Incomplete: s.Head.Incomplete, Attributes: s.Attributes().AsRaw(),
		}
		makeFinite(out.Attributes)
		if s.Failed() {
			out.Error = cmp.Or(s.Status().Message(), "error")
		}
		for _, v := range verdicts(s) {
			out.Verdicts = append(out.Verdicts, verdictDoc{v.Name, v.Severity, v.Cause, v.Stage, v.reason, finiteOrNil(v.value), finiteOrNil(v.threshold)})
		}
		for _, link := range s.Links().All() {
			out.Links = append(out.Links, link.TraceID().String())
		}
		doc.Spans = append(doc.Spans, out)
	}
	slices.SortStableFunc(doc.Spans, func(a, b spanDoc) int { return cmp.Compare(a.Start, b.Start) })
	return doc
}
