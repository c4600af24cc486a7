package show

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// functions are the functions of TransferQueue, with a table like the report of verl's analyze_tq_logs.py.
var functions = domain{
	key:  "functions",
	help: tables.FunctionsHelp, rows: tables.FunctionObjects, table: functionTable,
	subject: func(t *tree.Trace) string {
		n := 0
		for _, s := range t.Spans {
			if s.Kind == view.KindFunction {
				n++
			}
		}
		if n == 0 {
			return ""
		}
		return human.Plural(n, "function")
	},
	more: idText,
	colours: map[string]string{
		spans.StageGet: "34", spans.StageClientGet: "94", spans.StageCompute: "32", spans.StagePut: "35", spans.StageClientPut: "95",
		spans.StageFunction: "1",
	},
	details: functionDetails,
	label: func(s *tree.Span) (name, end string, ok bool) {
		if s.Kind != view.KindFunction {
			return "", "", false
		}
		return reading.Clean(s.Name()), processEnd(s), true
	},
	below:       withoutClients,
	foldDetails: foldedOverhead,
}

// functionTable prints a row per function of TransferQueue, the sums over all, and the verdicts on each.
func functionTable(w *strings.Builder, d *digest.Digest, l style) {
	rows := d.Functions.Rows()
	if len(rows) == 0 {
		return
	}
	t := tables.Functions(d, false)
	printTable(w, &t, l)
	functionSum(w, d, l)
	for _, f := range rows {
		printVerdictCounts(w, f.Name, f.Verdicts, l)
	}
}

// functionSum prints a sentence over all functions: calls, times, the share in TransferQueue, and how many calls are above 30 % (see conclusionText), are
// incomplete, or have no trace id, if any.
func functionSum(w *strings.Builder, d *digest.Digest, l style) {
	all := d.Functions.Sum()
	inQueue := all.Get + all.Put
	text := fmt.Sprintf("all: %s, %s in functions, %s in TransferQueue, overhead %s",
		human.Plural(all.Calls, "call"), human.Seconds(all.Total), human.Seconds(inQueue), human.Percent(all.Ratio(inQueue)))
	text += conclusionText(d)
	if all.Incomplete > 0 {
		text += fmt.Sprintf("; %s incomplete (not in the means)", human.Thousands(all.Incomplete))
	}
	printParagraph(w, text, "", l)
	if all.WithoutID > 0 {
		printParagraph(w, fmt.Sprintf("%s of %s in the log have no trace id (N/A), so their batches are not known: each call is a trace of its own, "+
			"grouped by function here", human.Thousands(all.WithoutID), human.Plural(all.Calls+all.Incomplete, "call")), "", l)
	}
}

// conclusionText returns how many calls spent more than 30 % of their time in TransferQueue, and on which host, if on only one of several.
func conclusionText(d *digest.Digest) string {
	switch high, host := d.Functions.High(); {
	case high == 0:
		return ""
	case host != "":
		return fmt.Sprintf("; %s above 30%%, all on %s", human.Plural(high, "call"), reading.Clean(host))
	default:
		return fmt.Sprintf("; %s above 30%%", human.Plural(high, "call"))
	}
}

// functionDetails returns the numbers of a function, a stage or a client operation.
func functionDetails(s *tree.Span) (d []string) {
	switch stageOf(s) {
	case spans.TQFunction:
		if v := overhead(s); !math.IsNaN(v) {
			d = append(d, "TQ overhead "+human.Percent(v))
		}
		var f view.Function
		if f.Read(s.Span); f.BatchSize.OK {
			d = append(d, fmt.Sprintf("batch %d", f.BatchSize.N))
		}
	case spans.TQGet, spans.TQCompute, spans.TQPut:
		if s.Parent != nil && !s.Parent.Head.Incomplete { // the length of an incomplete function is not known
			d = shareOfParent(s)
		}
	case spans.TQClientGet, spans.TQClientPut:
		var v view.Stage
		v.Read(s.Span)
		if !math.IsNaN(v.Size) {
			d = append(d, human.Bytes(v.Size))
		}
		if !math.IsNaN(v.Throughput) {
			d = append(d, human.BinaryRate(v.Throughput))
		}
	}
	return d
}

// withoutClients removes, in a brief drawing, complete client operations without children and verdicts. They have no row (told): their size and rate become a
// note in the row of the stage.
func withoutClients(_ *tree.Span, children []*tree.Span, e extent) (drawn, told []*tree.Span) {
	if !e.brief {
		return children, nil
	}
	for _, c := range children {
		stage := stageOf(c)
		client := stage == spans.TQClientGet || stage == spans.TQClientPut
		if client && len(c.Children) == 0 && len(verdicts(c)) == 0 && !c.Head.Incomplete {
			told = append(told, c)
			continue
		}
		drawn = append(drawn, c)
	}
	return drawn, told
}

// foldedOverhead returns the lowest and the highest overhead of folded functions; nil if no overhead is known.
func foldedOverhead(f *fold) []string {
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range f.spans {
		if v := overhead(s); !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high { // none known
		return nil
	}
	return []string{"TQ overhead " + human.Range(human.Percent(low), human.Percent(high))}
}

// processEnd returns the process of a span for the end of its label, " [4711]": the pid of the function or stage, else of the resource; "": unknown.
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

// idText returns how the log names the trace if the trace id is not from the log: not at all, or by a text whose hash is the trace id. "" otherwise.
func idText(t *tree.Trace) string {
	text := loggedID(t)
	switch {
	case withoutID(t) != nil:
		return "no trace id in the log"
	case text != "" && strings.ReplaceAll(strings.ToLower(text), "-", "") != t.ID.String():
		return "trace_id=" + reading.Clean(text) + " in the log"
	}
	return ""
}

// loggedID returns the text of the trace id in the log, from the first function or stage with that attribute; "": none has it.
func loggedID(t *tree.Trace) string {
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

// withoutID returns the only function of a trace, if the log has no trace id for the call (such as "N/A"): each such call is a trace of its own. Nil if the log
// names an id, or the trace has no function or several.
func withoutID(t *tree.Trace) *tree.Span {
	var only *tree.Span
	for _, s := range t.Spans {
		if s.Kind != view.KindFunction {
			continue
		}
		if only != nil {
			return nil
		}
		only = s
	}
	if only == nil {
		return nil
	}
	var v view.Function
	v.Read(only.Span)
	// Without the attribute the log's id is the trace id itself; else the attribute has the log's text.
	if v.TraceID == "" || !spans.NoTraceID(v.TraceID) {
		return nil
	}
	return only
}

// functionName returns a function's name in the log, else the span's name.
func functionName(s *tree.Span) string {
	var v view.Function
	v.Read(s.Span)
	return cmp.Or(v.Name, s.Name())
}

// overhead returns the share of get and put in a TransferQueue function: the value set by train_perf, else computed from the children. NaN if unknown.
func overhead(s *tree.Span) float64 {
	if s.Kind != view.KindFunction {
		return math.NaN()
	}
	var v view.Function
	switch v.Read(s.Span); {
	case !math.IsNaN(v.Overhead):
		return v.Overhead
	case s.NS() == 0 || v.Incomplete:
		return math.NaN()
	}
	return float64(stageNS(s, spans.TQGet)+stageNS(s, spans.TQPut)) / float64(s.NS())
}

// stageOf returns the stage or client operation of TransferQueue of a span, else TQNone.
func stageOf(s *tree.Span) spans.TQStage {
	switch s.Kind {
	case view.KindFunction:
		return spans.TQFunction
	case view.KindStage:
		var v view.Stage
		v.Read(s.Span)
		return v.Stage
	}
	return spans.TQNone
}

// stageNS returns the time spent in children of a stage.
func stageNS(s *tree.Span, stage spans.TQStage) (ns int64) {
	for _, c := range s.Children {
		if stageOf(c) == stage {
			ns += c.NS()
		}
	}
	return ns
}
