package show

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// functions are the functions of TransferQueue, with a table like the report of verl's analyze_tq_logs.py.
var functions = domain{
	key: "functions",
	help: `[{"function", "calls", "incomplete", "without_trace_id", "mean_seconds", "get_mean_seconds", "compute_mean_seconds",
                      "put_mean_seconds", "get_ratio", "compute_ratio", "put_ratio", "overhead_ratio", "verdicts"}]`,
	rows: functionRows, table: functionTable,
	what: func(t *tree.Trace) string {
		n := 0
		for _, s := range t.Spans {
			if s.Kind == view.KindFunction {
				n++
			}
		}
		if n == 0 {
			return ""
		}
		return plural(n, "function")
	},
	about: aboutID,
	colours: map[string]string{
		spans.StageGet: "34", spans.StageClientGet: "94", spans.StageCompute: "32", spans.StagePut: "35", spans.StageClientPut: "95",
		spans.StageFunction: "1",
	},
	details: functionDetails,
	label: func(s *tree.Span) (name, end string, ok bool) {
		if s.Kind != view.KindFunction {
			return "", "", false
		}
		return clean(s.Name()), processEnd(s), true
	},
	below:  withoutClients,
	folded: foldedOverhead,
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

func functionRows(d *digest.Digest) (rows []any) {
	for _, f := range d.Functions.Rows() {
		mean := func(ns int64) *float64 { return known(f.Seconds(ns)) }
		ratio := func(ns int64) *float64 { return known(f.Ratio(ns)) }
		rows = append(rows, functionDoc{
			f.Name, f.Calls, f.Incomplete, f.WithoutID, mean(f.Total), mean(f.Get), mean(f.Compute), mean(f.Put),
			ratio(f.Get), ratio(f.Compute), ratio(f.Put), ratio(f.Get + f.Put), f.Shown(),
		})
	}
	return rows
}

func functionTable(w *strings.Builder, d *digest.Digest, l look) {
	rows := d.Functions.Rows()
	if len(rows) == 0 {
		return
	}
	g := grid{head: []string{"function", "calls", "mean", "get", "compute", "put", "TQ overhead"}}
	for _, f := range rows {
		part := func(ns int64) string {
			if f.Calls == 0 {
				return "-"
			}
			return mean(ns, f.Calls) + " (" + ratio(&f.FunctionSums, ns) + ")"
		}
		g.add(append(texts(clean(f.Name), strconv.Itoa(f.Calls), mean(f.Total, f.Calls), part(f.Get), part(f.Compute), part(f.Put)),
			cell{ratio(&f.FunctionSums, f.Get+f.Put), overheadColour(f.Get+f.Put, f.Total)})...)
	}
	g.print(w, l)
	functionSum(w, d, l)
	bad := slices.ContainsFunc(rows, func(f *digest.Function) bool { return len(f.Bad) > 0 })
	for _, f := range rows {
		if !bad || len(f.Bad) > 0 {
			verdictCounts(w, f.Name, f.Verdicts, l)
		}
	}
}

// functionSum prints the sums over all functions.
func functionSum(w *strings.Builder, d *digest.Digest, l look) {
	all := d.Functions.Sum()
	inQueue := all.Get + all.Put
	text := fmt.Sprintf("all: %s, %s in functions, %s in TransferQueue, overhead %s",
		plural(all.Calls, "call"), duration(all.Total), duration(inQueue), ratio(all, inQueue))
	text += conclusion(d)
	if all.Incomplete > 0 {
		text += fmt.Sprintf("; %s incomplete (not in the means)", thousands(all.Incomplete))
	}
	paragraph(w, text, "", l)
	if all.WithoutID > 0 {
		paragraph(w, fmt.Sprintf("%s of %s in the log have no trace id (N/A): no batch is known for them, each is a trace of its own, "+
			"and they are grouped by function here", thousands(all.WithoutID), plural(all.Calls+all.Incomplete, "call")), "", l)
	}
}

// conclusion says how many calls spent more than 30 % of their time in TransferQueue, and where, if that was on one of several hosts.
func conclusion(d *digest.Digest) string {
	switch high, host := d.Functions.High(); {
	case high == 0:
		return ""
	case host != "":
		return fmt.Sprintf("; %s above 30%%, all on %s", plural(high, "call"), clean(host))
	default:
		return fmt.Sprintf("; %s above 30%%", plural(high, "call"))
	}
}

func ratio(s *digest.FunctionSums, ns int64) string {
	if s.Total == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f%%", 100*s.Ratio(ns))
}

func mean(ns int64, calls int) string {
	if calls == 0 {
		return "-"
	}
	return duration(ns / int64(calls))
}

// overheadColour is by the limits of train_perf: a share over 30 % is bad, over 20 % elevated.
func overheadColour(part, whole int64) string {
	switch {
	case 10*part > 3*whole:
		return "31"
	case 5*part > whole:
		return "33"
	}
	return "32"
}

// functionDetails are the numbers of a function, a stage or a client operation.
func functionDetails(s *tree.Span) (d []string) {
	switch digest.StageOf(s) {
	case spans.TQFunction:
		if v := digest.Overhead(s); !math.IsNaN(v) {
			d = append(d, "TQ overhead "+percent(v))
		}
		var f view.Function
		if f.Read(s.Span); f.BatchSize.OK {
			d = append(d, fmt.Sprintf("batch %d", f.BatchSize.N))
		}
	case spans.TQGet, spans.TQCompute, spans.TQPut:
		if s.Parent != nil && !s.Parent.Head.Incomplete {
			d = ofParent(s)
		}
	case spans.TQClientGet, spans.TQClientPut:
		var v view.Stage
		v.Read(s.Span)
		if !math.IsNaN(v.Size) {
			d = append(d, fmt.Sprintf("%.2f MiB", v.Size/(1<<20)))
		}
		if !math.IsNaN(v.Throughput) {
			d = append(d, fmt.Sprintf("%.1f MiB/s", v.Throughput/(1<<20)))
		}
	}
	return d
}

// withoutClients leaves out client operations that have nothing below them and no verdict, where rows are short.
func withoutClients(_ *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span) {
	if !e.brief {
		return children, nil
	}
	for _, c := range children {
		stage := digest.StageOf(c)
		client := stage == spans.TQClientGet || stage == spans.TQClientPut
		if client && len(c.Children) == 0 && len(verdicts(c)) == 0 && !c.Head.Incomplete {
			told = append(told, c)
			continue
		}
		drawn = append(drawn, c)
	}
	return drawn, told
}

// foldedOverhead is the range of the overheads of functions.
func foldedOverhead(f *fold) []string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range f.spans {
		if v := digest.Overhead(s); !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		return nil
	}
	text := fmt.Sprintf("%.0f", 100*high)
	if lowest := fmt.Sprintf("%.0f", 100*low); lowest != text {
		text = lowest + "–" + text
	}
	return []string{"TQ overhead " + text + "%"}
}

// processEnd says in which process a span ran.
func processEnd(s *tree.Span) string {
	pid := s.Resource.PID
	var own view.Int
	switch s.Kind {
	case view.KindFunction:
		var v view.Function
		v.Read(s.Span)
		own = v.PID
	case view.KindStage:
		var v view.Stage
		v.Read(s.Span)
		own = v.PID
	}
	if own.OK {
		pid = own
	}
	if !pid.OK {
		return ""
	}
	return fmt.Sprintf(" [%d]", pid.N)
}

// aboutID says where a trace id comes from that is not the log's.
func aboutID(t *tree.Trace) string {
	text := wantedID(t)
	switch {
	case digest.WithoutID(t) != nil:
		return "no trace id in the log"
	case text != "" && strings.ReplaceAll(strings.ToLower(text), "-", "") != t.ID.String():
		return "trace_id=" + clean(text) + " in the log"
	}
	return ""
}

// wantedID is the trace id that a log names; "": none does.
func wantedID(t *tree.Trace) string {
	for _, s := range t.Spans {
		switch s.Kind {
		case view.KindFunction:
			var v view.Function
			if v.Read(s.Span); v.TraceID != "" {
				return v.TraceID
			}
		case view.KindStage:
			var v view.Stage
			if v.Read(s.Span); v.TraceID != "" {
				return v.TraceID
			}
		}
	}
	return ""
}
