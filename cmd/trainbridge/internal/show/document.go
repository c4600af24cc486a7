package show

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// documentHelp is the shape of --json, as -h says it; a test holds it to what is printed.
const documentHelp = `With --json, of what is not known the key is left out; "verdicts" are counts by name:
  {"jaeger": URL, "services": [...], "run": ID, "traces": {"read": N, "there": N, "more": BOOL},
   "functions":     [{"function", "calls", "incomplete", "without_trace_id", "mean_seconds", "get_mean_seconds", "compute_mean_seconds",
                      "put_mean_seconds", "get_ratio", "compute_ratio", "put_ratio", "overhead_ratio", "verdicts"}],
   "training_logs": [{"log", "steps", "step_seconds_p50", "step_seconds_p95", "loss_first", "loss_last", "tokens_per_second_p50",
                      "device_flop_per_second_reported_p50", "device_flop_per_second_p50", "mfu_ratio_p50", "verdicts"}],
   "passes":        [{"start", "incomplete", "pass", "calls", "duration_seconds", "serialize_ratio", "transport_ratio", "server_ratio",
                      "bytes_per_second", "verdicts"}],
   "collectives":   [{"communicator", "communicator_id", "operation", "count", "incomplete", "duration_seconds_p50", "duration_seconds_max",
                      "bus_bytes_per_second_p50", "late_seconds_p50", "late_seconds_max", "last_most_often", "verdicts"}],
   "drawn":         [{"trace", "start", "duration_seconds", "spans": [{"span", "parent", "name", "service", "start_seconds",
                      "duration_seconds", "incomplete", "error", "verdicts": [{"name", "reason", "value", "threshold"}], "attributes"}]}],
   "runs":          [{"service", "run", "traces", "bad", "first", "last", "roots"}],                        with --list
   "listed":        [{"trace", "start", "duration_seconds", "spans", "root", "what", "severity", "calls"}]} with --list, of a service or run`

type document struct {
	Jaeger       string           `json:"jaeger"`
	Services     []string         `json:"services,omitempty"`
	Run          string           `json:"run,omitempty"`
	Traces       *share           `json:"traces,omitempty"`
	Functions    []functionDoc    `json:"functions,omitempty"`
	TrainingLogs []logDoc         `json:"training_logs,omitempty"`
	Passes       []map[string]any `json:"passes,omitempty"`
	Collectives  []collectiveDoc  `json:"collectives,omitempty"`
	Drawn        []drawnDoc       `json:"drawn,omitempty"`
	Runs         []*runRow        `json:"runs,omitempty"`
	Listed       []*traceRow      `json:"listed,omitempty"`
}

type functionDoc struct {
	Function       string         `json:"function"`
	Calls          int            `json:"calls"`
	Incomplete     int            `json:"incomplete"`
	WithoutTraceID int            `json:"without_trace_id"`
	Mean           *float64       `json:"mean_seconds,omitempty"`
	GetMean        *float64       `json:"get_mean_seconds,omitempty"`
	ComputeMean    *float64       `json:"compute_mean_seconds,omitempty"`
	PutMean        *float64       `json:"put_mean_seconds,omitempty"`
	Get            *float64       `json:"get_ratio,omitempty"`
	Compute        *float64       `json:"compute_ratio,omitempty"`
	Put            *float64       `json:"put_ratio,omitempty"`
	Overhead       *float64       `json:"overhead_ratio,omitempty"`
	Verdicts       map[string]int `json:"verdicts"`
}

type logDoc struct {
	Log          string         `json:"log"`
	Steps        float64        `json:"steps"`
	P50          *float64       `json:"step_seconds_p50,omitempty"`
	P95          *float64       `json:"step_seconds_p95,omitempty"`
	LossFirst    string         `json:"loss_first,omitempty"` // a text: it may be NaN
	LossLast     string         `json:"loss_last,omitempty"`
	Tokens       *float64       `json:"tokens_per_second_p50,omitempty"`
	FlopReported *float64       `json:"device_flop_per_second_reported_p50,omitempty"`
	Flop         *float64       `json:"device_flop_per_second_p50,omitempty"`
	MFU          *float64       `json:"mfu_ratio_p50,omitempty"`
	Verdicts     map[string]int `json:"verdicts"`
}

type collectiveDoc struct {
	Communicator   string         `json:"communicator"`
	CommunicatorID string         `json:"communicator_id,omitempty"`
	Operation      string         `json:"operation"`
	Count          int            `json:"count"`
	Incomplete     int            `json:"incomplete"`
	P50            *float64       `json:"duration_seconds_p50,omitempty"`
	Max            *float64       `json:"duration_seconds_max,omitempty"`
	Bus            *float64       `json:"bus_bytes_per_second_p50,omitempty"`
	LateP50        *float64       `json:"late_seconds_p50,omitempty"`
	LateMax        *float64       `json:"late_seconds_max,omitempty"`
	Last           string         `json:"last_most_often,omitempty"`
	Verdicts       map[string]int `json:"verdicts"`
}

type drawnDoc struct {
	Trace   string    `json:"trace"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"duration_seconds"`
	Spans   []spanDoc `json:"spans"`
}

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
	Attributes map[string]any `json:"attributes"`
}

type verdictDoc struct {
	Name      string   `json:"name"`
	Reason    string   `json:"reason,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	Threshold *float64 `json:"threshold,omitempty"`
}

// known is a number that JSON can hold, or nil.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// finite makes texts of numbers that JSON cannot hold.
func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if known(v) == nil {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	case []any:
		for i := range v {
			v[i] = finite(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = finite(v[k])
		}
	}
	return v
}

func (r *report) document(opt options) document {
	doc := document{Jaeger: r.Jaeger, Services: r.Services, Run: r.Run}
	if opt.trace == "" {
		doc.Traces = &r.Share
	}
	for _, t := range r.drawn {
		doc.Drawn = append(doc.Drawn, t.document())
	}
	if opt.list {
		doc.Runs = runs(r.traces)
		if opt.service != "" || opt.run != "" {
			doc.Listed = each(r.traces)
		}
		return doc
	}
	for _, s := range functions(r.traces) {
		calls, total := float64(s.calls), float64(s.total)
		each := func(ns int64) *float64 { return known(float64(ns) / 1e9 / calls) }
		part := func(ns int64) *float64 { return known(float64(ns) / total) }
		doc.Functions = append(doc.Functions, functionDoc{
			s.function, s.calls, s.incomplete, s.noID, each(s.total), each(s.get), each(s.compute), each(s.put),
			part(s.get), part(s.compute), part(s.put), part(s.get + s.put), s.verdicts.shown(),
		})
	}
	for _, l := range logs(r.traces) {
		doc.TrainingLogs = append(doc.TrainingLogs, logDoc{
			l.log, l.steps, known(quantile(l.times, 0.5) / 1e9), known(quantile(l.times, 0.95) / 1e9), l.first, l.last, known(quantile(l.tokens, 0.5)),
			known(quantile(l.logged, 0.5)), known(quantile(l.recomputed, 0.5)), known(quantile(l.mfus, 0.5)), l.verdicts.shown(),
		})
	}
	all, _, _, _ := allPasses(r.traces)
	for _, s := range all {
		pass := map[string]any{"start": time.Unix(0, s.start()).UTC(), "incomplete": s.incomplete()}
		for _, c := range passColumns {
			if v, ok := c.of(s); ok && known(v) != nil {
				pass[c.key] = v
			}
		}
		l := newTallies()
		l.count(s)
		pass["verdicts"] = l.shown()
		doc.Passes = append(doc.Passes, pass)
	}
	for _, g := range groups(r.traces) {
		doc.Collectives = append(doc.Collectives, collectiveDoc{
			g.communicator, g.id, g.operation, g.count, g.incomplete, known(quantile(g.took, 0.5) / 1e9), known(quantile(g.took, 1) / 1e9), known(quantile(g.bus, 0.5)),
			known(quantile(g.late, 0.5) / 1e9), known(quantile(g.late, 1) / 1e9), g.lastMostOften(), g.verdicts.shown(),
		})
	}
	return doc
}

func (t *trace) document() drawnDoc {
	doc := drawnDoc{t.id.String(), time.Unix(0, t.start).UTC(), float64(t.end-t.start) / 1e9, nil}
	for _, s := range t.all {
		out := spanDoc{
			Span: s.SpanID().String(), Parent: s.ParentSpanID().String(), Name: s.Name(), Service: s.service(), Start: float64(s.start()-t.start) / 1e9,
			Seconds: float64(s.ns()) / 1e9, Incomplete: s.incomplete(), Attributes: s.Attributes().AsRaw(),
		}
		finite(out.Attributes)
		if s.failed() {
			out.Error = cmp.Or(s.Status().Message(), "error")
		}
		for _, v := range s.verdicts() {
			out.Verdicts = append(out.Verdicts, verdictDoc{v.name, v.reason, known(v.value), known(v.threshold)})
		}
		doc.Spans = append(doc.Spans, out)
	}
	slices.SortStableFunc(doc.Spans, func(a, b spanDoc) int { return cmp.Compare(a.Start, b.Start) })
	return doc
}
