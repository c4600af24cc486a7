//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// truth is the truth of a log by `gen tq`: JSON lines, one function each, then one {"run": …}.
type truth struct {
	run       truthRun
	functions []*function
}

type truthRun struct {
	Lines      int64
	Trace      int64 `json:"trace_lines"`
	Detail     int64 `json:"detail_lines"`
	Neighbours int64 `json:"neighbour_lines"`
	Functions  int
	Complete   int
	Spans      int
	OpenSpans  int `json:"open_spans"`
	Files      []struct {
		Path  string
		Lines int64
	}
}

// function is one call. Wall times are of the simulated clock, durations are as printed in the log.
type function struct {
	TraceID       string `json:"trace_id"`
	Batch         int
	Func          string
	PID           int64
	Outcome       string
	StartUnixNano int64 `json:"start_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano"`
	DurationUS    int64 `json:"duration_us"`
	Stages        []stage
	Ratios        *struct{ Get, Compute, Put, Overhead struct{ Num, Den int64 } }
	Spans         int
	OpenSpans     int `json:"open_spans"`
}

type stage struct {
	Stage         string
	StartUnixNano int64 `json:"start_unix_nano"`
	EndUnixNano   int64 `json:"end_unix_nano"`
	DurationUS    int64 `json:"duration_us"`
	Done          bool
	Client        *stage
	DataSizeBytes int64 `json:"data_size_bytes"`
}

const (
	complete    = "complete"
	computeOnly = "compute_only"
	open        = "open"
)

func readTruth(tb testing.TB, path string) *truth {
	tb.Helper()
	f, err := os.Open(path)
	require.NoError(tb, err)
	defer f.Close()
	tr := &truth{}
	for dec := json.NewDecoder(bufio.NewReader(f)); ; {
		var rec struct {
			function
			Run *truthRun
		}
		require.NoErrorf(tb, dec.Decode(&rec), "%s after %d functions", path, len(tr.functions))
		if rec.Run != nil {
			tr.run = *rec.Run
			require.Len(tb, tr.functions, tr.run.Functions)
			return tr
		}
		tr.functions = append(tr.functions, &rec.function)
	}
}

// generate writes a log with its truth into dir.
func generate(tb testing.TB, dir string, flags ...string) *truth {
	tb.Helper()
	gen(tb, append([]string{"tq", "--out", dir}, flags...)...)
	return readTruth(tb, filepath.Join(dir, "truth.json"))
}

// globOf matches the logs in dir, rotated ones too.
func globOf(dir string) string { return filepath.Join(dir, "worker-*.err*") }

// node is a span as returned by a backend, all its copies together.
type node struct {
	ptrace.Span
	resource pcommon.Resource
	joined   bool // made by step_join
	copies   int
	children []*node
	claimed  bool
}

// below visits the spans under a span.
func (n *node) below(visit func(*node)) {
	for _, c := range n.children {
		visit(c)
		c.below(visit)
	}
}

// get is an attribute of the span, or of its resource.
func (n *node) get(key string) (pcommon.Value, bool) {
	if v, ok := n.Attributes().Get(key); ok {
		return v, true
	}
	return n.resource.Attributes().Get(key)
}

// str is an attribute as text; empty if absent.
func (n *node) str(key string) string {
	v, ok := n.get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

func (n *node) int(key string) int64 {
	v, ok := n.get(key)
	if !ok {
		return 0
	}
	return v.Int()
}

// idText is the trace id of a TransferQueue call as logged: a UUID is the trace id itself, and is no attribute.
func idText(s ptrace.Span) string {
	if v, ok := s.Attributes().Get(spans.AttrTQTraceID); ok {
		return v.AsString()
	}
	return uuid.UUID(s.TraceID()).String()
}

func (n *node) duration() int64 { return int64(n.EndTimestamp() - n.StartTimestamp()) }

// answer is a backend's spans of one log.
type answer struct {
	traces   map[pcommon.TraceID]map[pcommon.SpanID]*node
	problems []string
	missing  []string // of the truth, and parents: may still come
	ids      int
	copies   int // copies of spans, beyond the first span of each id
	found    map[*function]*node
}

func (a *answer) wrong(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// clockTolerance: the log's wall clock has milliseconds, and the span's start may be off by the microsecond of print rounding.
const clockTolerance = 1_100_000

func near(a, b int64) bool { return a-b <= clockTolerance && b-a <= clockTolerance }

// read is the logs' part of a backend's answer: readAll without step_join's spans. The children of a root by step_join become roots.
func read(td ptrace.Traces) *answer {
	a := readAll(td)
	for id, trace := range a.traces {
		root := spans.RootID(id)
		for span, n := range trace {
			if n.joined {
				delete(trace, span)
				a.ids--
			} else if n.ParentSpanID() == root {
				n.SetParentSpanID(pcommon.SpanID{})
			}
		}
		for _, n := range trace {
			n.children = slices.DeleteFunc(n.children, func(c *node) bool { return c.joined })
		}
	}
	return a
}

// readAll sorts a backend's answer into traces and looks for errors visible without the truth: differing copies, orphans. step_join's root of a trace comes at
// the trace's end: until then it is missing.
func readAll(td ptrace.Traces) *answer {
	a := &answer{traces: make(map[pcommon.TraceID]map[pcommon.SpanID]*node), found: make(map[*function]*node)}
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				trace := a.traces[s.TraceID()]
				if trace == nil {
					trace = make(map[pcommon.SpanID]*node)
					a.traces[s.TraceID()] = trace
				}
				n := trace[s.SpanID()]
				if n == nil {
					trace[s.SpanID()] = &node{Span: s, resource: rs.Resource(), joined: strings.HasSuffix(ss.Scope().Name(), "/stepjoinprocessor"), copies: 1}
					a.ids++
					continue
				}
				n.copies++
				a.copies++
				if n.Name() != s.Name() || n.ParentSpanID() != s.ParentSpanID() || n.Kind() != s.Kind() || !n.joined &&
					(n.duration() != int64(s.EndTimestamp()-s.StartTimestamp()) || !near(int64(n.StartTimestamp()), int64(s.StartTimestamp()))) {
					a.wrong("copies of span %s of trace %s differ: %s and %s", s.SpanID(), s.TraceID(), n.Name(), s.Name())
				}
			}
		}
	}
	for id, trace := range a.traces {
		for _, n := range trace {
			if n.ParentSpanID().IsEmpty() {
				continue
			}
			parent := trace[n.ParentSpanID()]
			if parent == nil && n.ParentSpanID() == spans.RootID(id) {
				a.missing = append(a.missing, fmt.Sprintf("the root of trace %s", id))
				continue
			}
			if parent == nil {
				a.missing = append(a.missing, fmt.Sprintf("trace %s: span %s (%s) has a parent that is not there: %s", id, n.SpanID(), n.Name(), n.ParentSpanID()))
				continue
			}
			parent.children = append(parent.children, n)
		}
	}
	return a
}

// callKey identifies the calls of a function in one process and batch.
type callKey struct {
	trace, fn string
	pid       int64
}

// calls sorts the spans of functions, and counts those of the run.
func (a *answer) calls() map[callKey][]*node {
	have := make(map[callKey][]*node)
	runs := 0
	for _, trace := range a.traces {
		for _, n := range trace {
			switch {
			case n.Name() == spans.SpanRun:
				n.claimed = true
				runs++
			case view.KindOf(n.Span) == view.KindFunction:
				k := callKey{idText(n.Span), n.str(spans.AttrTQFunction), n.int(spans.AttrProcessPID)}
				have[k] = append(have[k], n)
			}
		}
	}
	if runs > 1 {
		a.wrong("%d ids of %s for one run", runs, spans.SpanRun)
	}
	return have
}

// completeFirst are the functions in the order in which compare assigns spans to them. A printed duration identifies a function among the functions of its
// process; open functions have no duration and come last.
func (tr *truth) completeFirst() []*function {
	want := slices.Clone(tr.functions)
	slices.SortStableFunc(want, func(x, y *function) int {
		if (x.Outcome == complete) != (y.Outcome == complete) {
			if x.Outcome == complete {
				return -1
			}
			return 1
		}
		return int(x.StartUnixNano - y.StartUnixNano)
	})
	return want
}

// compare compares a backend's answer with the truth: every span of the truth exists once, below the right parent, at the right time, and no other span does.
func (tr *truth) compare(td ptrace.Traces) *answer {
	a := read(td)
	have := a.calls()
	for _, f := range tr.completeFirst() {
		k := callKey{f.TraceID, f.Func, f.PID}
		best := -1
		for i, n := range have[k] {
			if f.Outcome == complete && n.duration() != f.DurationUS*1000 || !near(int64(n.StartTimestamp()), f.StartUnixNano) {
				continue
			}
			// The earliest, not the nearest: the clock of a process may be off, but equally for all its functions.
			if best < 0 || n.StartTimestamp() < have[k][best].StartTimestamp() {
				best = i
			}
		}
		if best < 0 {
			a.missing = append(a.missing, f.String())
			continue
		}
		n := have[k][best]
		have[k] = slices.Delete(have[k], best, best+1)
		a.found[f] = n
		a.function(f, n)
	}
	for id, trace := range a.traces {
		for _, n := range trace {
			if !n.claimed {
				a.wrong("trace %s: span %s (%s, %d ns) is not in the truth", id, n.SpanID(), n.Name(), n.duration())
			}
		}
	}
	return a
}

func (f *function) String() string {
	return fmt.Sprintf("%s of pid %d (trace_id=%s, %s, start %d)", f.Func, f.PID, f.TraceID, f.Outcome, f.StartUnixNano)
}

// function checks one waterfall.
func (a *answer) function(f *function, n *node) {
	n.claimed = true
	if n.Name() != f.Func {
		a.wrong("%v: its span is named %q", f, n.Name())
	}
	if !n.ParentSpanID().IsEmpty() {
		a.wrong("%v: is not a root", f)
	}
	if id := n.TraceID().String(); f.TraceID != "N/A" && id != strings.ReplaceAll(f.TraceID, "-", "") {
		a.wrong("%v: is in trace %s", f, id)
	}
	if incomplete := n.str(spans.AttrIncomplete) == "true"; incomplete != (f.Outcome != complete) {
		a.wrong("%v: %s=%v", f, spans.AttrIncomplete, incomplete)
	}
	// A function that died in a stage is red, with a message.
	died := len(f.Stages) > 0 && !f.Stages[len(f.Stages)-1].Done
	if red := n.Status().Code() == ptrace.StatusCodeError && strings.Contains(n.Status().Message(), "never ended"); red != died {
		a.wrong("%v: its status is %v %q", f, n.Status().Code(), n.Status().Message())
	}
	if f.EndUnixNano != 0 && !near(int64(n.EndTimestamp()), f.EndUnixNano) {
		a.wrong("%v: its end is off by %d ns", f, int64(n.EndTimestamp())-f.EndUnixNano)
	}
	for i := range f.Stages {
		a.stage(f, &f.Stages[i], n, ptrace.SpanKindInternal)
	}
}

func (a *answer) stage(f *function, st *stage, parent *node, kind ptrace.SpanKind) {
	name := "tq." + strings.ReplaceAll(st.Stage, "_", ".")
	at := slices.IndexFunc(parent.children, func(n *node) bool { return n.Name() == name && !n.claimed })
	if at < 0 {
		a.missing = append(a.missing, fmt.Sprintf("%s of %v", name, f))
		return
	}
	n := parent.children[at]
	n.claimed = true
	if n.Kind() != kind {
		a.wrong("%v: %s is %v", f, name, n.Kind())
	}
	var v view.Stage
	if v.Read(n.Span); v.Stage.String() != st.Stage {
		a.wrong("%v: %s is %s", f, name, v.Stage)
	}
	if st.Done {
		if n.duration() != st.DurationUS*1000 {
			a.wrong("%v: %s takes %d ns, want %d", f, name, n.duration(), st.DurationUS*1000)
		}
		if !near(int64(n.EndTimestamp()), st.EndUnixNano) {
			a.wrong("%v: the end of %s is off by %d ns", f, name, int64(n.EndTimestamp())-st.EndUnixNano)
		}
	} else if n.str(spans.AttrIncomplete) != "true" {
		a.wrong("%v: %s has no end and is not marked", f, name)
	}
	if !near(int64(n.StartTimestamp()), st.StartUnixNano) {
		a.wrong("%v: the start of %s is off by %d ns", f, name, int64(n.StartTimestamp())-st.StartUnixNano)
	}
	if st.DataSizeBytes > 0 {
		// The log prints hundredths of a MiB; rounding that text to whole bytes may go either way.
		if d := n.int(spans.AttrTQDataSize) - st.DataSizeBytes; d < -1 || d > 1 {
			a.wrong("%v: %s moved %d bytes, want %d", f, name, n.int(spans.AttrTQDataSize), st.DataSizeBytes)
		}
	}
	if st.Client != nil {
		a.stage(f, st.Client, n, ptrace.SpanKindClient)
	}
}

// err sums up the errors; nil: none.
func (a *answer) err() error {
	if len(a.missing) == 0 && len(a.problems) == 0 {
		return nil
	}
	show := func(list []string) string {
		slices.Sort(list)
		if len(list) > 8 {
			return fmt.Sprintf("\n  %s\n  and %d more", strings.Join(list[:8], "\n  "), len(list)-8)
		}
		return "\n  " + strings.Join(list, "\n  ")
	}
	return fmt.Errorf("%d ids, %d further copies\nmissing: %d%s\nwrong: %d%s", a.ids, a.copies, len(a.missing), show(a.missing), len(a.problems), show(a.problems))
}

// await queries a backend until nothing of the truth is missing, then requires that nothing is wrong either.
func (tr *truth) await(tb testing.TB, find func() (ptrace.Traces, error)) *answer {
	tb.Helper()
	var a *answer
	eventually(tb, func() error {
		td, err := find()
		if err != nil {
			return err
		}
		a = tr.compare(td)
		if len(a.missing) > 0 {
			return a.err()
		}
		return nil
	})
	require.NoError(tb, a.err())
	return a
}
