package html

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/show"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

const (
	mostTraces  = 6    // of a job
	allTraces   = 24   // of all: their spans are in memory
	mostSpans   = 2000 // of a trace
	mostDetails = 1600 // of these, details: spans below calls and below the roots of collectives
)

// choice is a trace worth a look, and why.
type choice struct {
	id    pcommon.TraceID
	title string
	note  string
	step  view.Int // the step's number, of a trace of a step

	mu      sync.Mutex
	spans   ptrace.Traces // kept by keep
	n       int           // how many they are
	details int           // how many of them are details
	left    int           // spans without room
}

// choose picks the traces to draw of each job, mostTraces or fewer: of each kind of window three slow ones, the longest and a typical one; then, as far as
// there is room, the slowest steps, calls of functions and RPCs, and the collectives with the latest rank and of the longest time. Jobs beyond allTraces
// have none.
func choose(jobs []*digest.Job, chinese bool) map[*digest.Job][]*choice {
	c := composer{chinese: chinese}
	out := map[*digest.Job][]*choice{}
	var none view.Int
	each := max(1, min(mostTraces, allTraces/max(1, len(jobs))))
	for _, j := range jobs[:min(len(jobs), allTraces)] {
		var list []*choice
		// A trace is drawn once, for the first reason.
		add := func(at digest.At, step view.Int, title, note string) {
			if len(list) < each && !slices.ContainsFunc(list, func(o *choice) bool { return o.id == at.Trace }) {
				list = append(list, &choice{id: at.Trace, title: title, note: note, step: step, spans: ptrace.NewTraces()})
			}
		}
		for _, w := range j.Windows.Rows() {
			one, _ := tables.Window(w.Of, c.chinese)
			for i, slow := range w.Slow {
				if i < 3 {
					n := slow.Of.Iteration
					add(slow.At, n, fmt.Sprintf(c.t("Slow %s%s: %s", "慢的%s%s：%s"), one, numbered(n), human.Seconds(slow.Of.Took)), slow.Of.Reason)
				}
			}
			if len(w.Longest) > 0 {
				top := w.Longest[0]
				add(top.At, top.Of, fmt.Sprintf(c.t("The longest %s%s: %s", "最长的%s%s：%s"), one, numbered(top.Of), human.Seconds(top.Weight)), "")
			}
			if at, iteration, ok := w.Typical(); ok {
				add(at, iteration, fmt.Sprintf(c.t("A typical %s%s", "典型的%s%s"), one, numbered(iteration)), "")
			}
		}
		for _, l := range j.Steps.Rows() {
			if len(l.Slowest) > 0 {
				top := l.Slowest[0]
				add(top.At, top.Of, fmt.Sprintf(c.t("The slowest step%s: %s", "最慢的步%s：%s"), numbered(top.Of), human.Seconds(top.Weight)), "")
			}
		}
		for _, f := range slices.SortedFunc(slices.Values(j.Functions.Rows()), func(a, b *digest.Function) int { return cmp.Compare(b.Took.Sum(), a.Took.Sum()) }) {
			if len(f.Slowest) > 0 {
				add(f.Slowest[0].At, none, fmt.Sprintf(c.t("The slowest %s: %s", "最慢的 %s：%s"), f.Name, human.Seconds(f.Slowest[0].Weight)), "")
			}
		}
		if top := j.Passes.Calls.Slowest; len(top) > 0 {
			add(top[0].At, none, fmt.Sprintf(c.t("The slowest call: %s, %s", "最慢的调用：%s，%s"), top[0].Of.Method, human.Seconds(top[0].Weight)), "")
		}
		for _, o := range j.Collectives.Operations() {
			if len(o.Latest) > 0 {
				add(o.Latest[0].At, none, fmt.Sprintf(c.t("The %s with the latest rank: %s late", "迟到最久的 %s：%s"), o.Operation, human.Seconds(o.Latest[0].Weight)), "")
			}
			if len(o.Slowest) > 0 {
				add(o.Slowest[0].At, none, fmt.Sprintf(c.t("The slowest %s: %s", "最慢的 %s：%s"), o.Operation, human.Seconds(o.Slowest[0].Weight)), "")
			}
		}
		out[j] = list
	}
	return out
}

// numbered is a number behind a noun, " 12"; "": not known.
func numbered(n view.Int) string {
	if !n.OK {
		return ""
	}
	return fmt.Sprintf(" %d", n.N)
}

// spans reads the logs again, and keeps the spans of the chosen traces: the first reading, which chose them, kept no spans.
func (w *Page) spans(ctx context.Context, chosen map[*digest.Job][]*choice) error {
	by := map[pcommon.TraceID]*choice{}
	for _, list := range chosen {
		for _, c := range list {
			by[c.id] = c
		}
	}
	if len(by) == 0 {
		return nil
	}
	traces, _ := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
		for _, rs := range td.ResourceSpans().All() {
			var to map[*choice]ptrace.SpanSlice
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if c := by[s.TraceID()]; c != nil {
						c.keep(rs, s, &to)
					}
				}
			}
		}
		return nil
	})
	_, err := offline.Read(ctx, w.In, w.Options, offline.Sink{Traces: traces}) // the same logs make the same trace ids
	return err
}

// keep copies a span of the chosen trace, up to a bound. Details, the spans below calls and collectives, leave room for the rest, such as step_join's spans at
// the end of a step. to has the copies of the resource at hand, by trace: a resource is copied with its first span.
func (c *choice) keep(rs ptrace.ResourceSpans, s ptrace.Span, to *map[*choice]ptrace.SpanSlice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	detail := view.IsDetail(s)
	if c.n == mostSpans || detail && c.details == mostDetails {
		c.left++
		return
	}
	c.n++
	if detail {
		c.details++
	}
	list, ok := (*to)[c]
	if !ok {
		own := c.spans.ResourceSpans().AppendEmpty()
		rs.Resource().CopyTo(own.Resource())
		list = own.ScopeSpans().AppendEmpty().Spans()
		if *to == nil {
			*to = map[*choice]ptrace.SpanSlice{}
		}
		(*to)[c] = list
	}
	s.CopyTo(list.AppendEmpty())
}

// traces has the waterfalls of the chosen traces.
func (c *composer) traces(chosen []*choice) section {
	s := section{Title: c.t("Traces", "调用链")}
	for _, one := range chosen {
		if w := c.waterfall(one); w != nil {
			s.add(w)
		}
	}
	return s
}

// waterfall draws a chosen trace as `trainbridge show` does, c.rows rows of it; nil: there is nothing to draw.
func (c *composer) waterfall(one *choice) *waterfall {
	traces := tree.Build(one.spans)
	if len(traces) == 0 {
		return nil
	}
	d := show.Draw(traces[0])
	if len(d.Rows) < 2 { // a single bar says no more than the title
		return nil
	}
	out := &waterfall{head: head{Kind: "waterfall", Title: one.title, Note: one.note}, Trace: one.id.String(), Length: d.End - d.Start}
	if one.step.OK {
		out.Step = &one.step.N
	}
	names, left := map[string]int{}, one.left
	for _, r := range d.Rows {
		if len(out.Rows) == c.rows {
			left += len(d.Rows) - c.rows
			break
		}
		i, ok := names[r.Name]
		if !ok {
			i = len(out.Names)
			names[r.Name] = i
			out.Names = append(out.Names, r.Name)
		}
		severity := ""
		if r.Told {
			severity = r.Head.Severity
		}
		out.Rows = append(out.Rows, row{r.Depth, i, r.Start() - d.Start, r.NS(), r.Colour % grey, severity, r.Details})
	}
	out.Note = joined(out.Note, "trace "+out.Trace)
	if left > 0 {
		out.Note = joined(out.Note, fmt.Sprintf(c.t("%s more spans of it are not drawn", "另有 %s 个 span 未画出"), human.Thousands(left)))
	}
	return out
}

// joined puts a note behind another, either of which may be empty.
func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + " · " + b
}
