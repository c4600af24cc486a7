//go:build e2e

package e2e

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// model makes the spans of a truth.
func model(tr *truth) ptrace.Traces {
	b := spans.NewBatch("e2e", "")
	var last byte
	add := func(trace pcommon.TraceID, parent pcommon.SpanID, name, stage string, kind ptrace.SpanKind, start, end int64) ptrace.Span {
		last++
		s := b.Add(spans.Resource{}, spans.Span{Trace: trace, ID: pcommon.SpanID{last}, Parent: parent, Name: name, Kind: kind, Start: start, End: end})
		s.Attributes().PutStr(spans.AttrTQStage, stage)
		return s
	}
	for _, f := range tr.functions {
		trace := spans.TraceID("", []byte(f.TraceID))
		fn := add(trace, pcommon.SpanID{}, f.Func, spans.StageFunction, ptrace.SpanKindInternal, f.StartUnixNano, f.EndUnixNano)
		fn.Attributes().PutStr(spans.AttrTQTraceID, f.TraceID)
		fn.Attributes().PutStr(spans.AttrTQFunction, f.Func)
		fn.Attributes().PutInt(spans.AttrProcessPID, f.PID)
		for _, st := range f.Stages {
			s := add(trace, fn.SpanID(), "tq."+st.Stage, st.Stage, ptrace.SpanKindInternal, st.StartUnixNano, st.EndUnixNano)
			if c := st.Client; c != nil {
				op := add(trace, s.SpanID(), "tq.client.get", c.Stage, ptrace.SpanKindClient, c.StartUnixNano, c.EndUnixNano)
				op.Attributes().PutInt(spans.AttrTQDataSize, c.DataSizeBytes)
			}
		}
	}
	return b.Traces()
}

// twoCalls are two functions of one process, one without a trace_id.
func twoCalls() *truth {
	stages := func(at int64) []stage {
		get := stage{Stage: "get", StartUnixNano: at, EndUnixNano: at + 1_000_000, DurationUS: 1000, Done: true}
		get.Client = &stage{Stage: "client_get", StartUnixNano: at, EndUnixNano: at + 500_000, DurationUS: 500, Done: true, DataSizeBytes: 1 << 20}
		return []stage{get, {Stage: "compute", StartUnixNano: at + 1_000_000, EndUnixNano: at + 3_000_000, DurationUS: 2000, Done: true}}
	}
	const at = int64(1_770_000_000_000_000_000)
	return &truth{run: truthRun{Functions: 2, Spans: 8}, functions: []*function{
		{
			TraceID: "85b3fde4-889c-4199-b348-45e8ed8eae6b", Func: "f", PID: 1, Outcome: complete, StartUnixNano: at, EndUnixNano: at + 3_000_000, DurationUS: 3000,
			Stages: stages(at),
		},
		{TraceID: "N/A", Func: "f", PID: 1, Outcome: complete, StartUnixNano: at, EndUnixNano: at + 3_100_000, DurationUS: 3100, Stages: stages(at)},
	}}
}

// Foundation of the other tests: compare finds every kind of error.
func TestCompare(t *testing.T) {
	tr := twoCalls()
	require.NoError(t, tr.compare(model(tr)).err())

	for name, tt := range map[string]struct {
		spoil func(list ptrace.SpanSlice)
		want  string
	}{
		// The function is the parent of two stages.
		"a function is lost":   {func(l ptrace.SpanSlice) { l.RemoveIf(func(s ptrace.Span) bool { return s.SpanID()[0] == 1 }) }, "missing: 3"},
		"a stage is lost":      {func(l ptrace.SpanSlice) { l.RemoveIf(func(s ptrace.Span) bool { return s.SpanID()[0] == 4 }) }, "missing: 1"},
		"an operation is lost": {func(l ptrace.SpanSlice) { l.RemoveIf(func(s ptrace.Span) bool { return s.SpanID()[0] == 3 }) }, "missing: 1"},
		"an orphan":            {func(l ptrace.SpanSlice) { l.At(2).SetParentSpanID(pcommon.SpanID{99}) }, "a parent that is not there"},
		"another parent":       {func(l ptrace.SpanSlice) { l.At(2).SetParentSpanID(l.At(0).SpanID()) }, "missing: 1"},
		"twice with another id": {func(l ptrace.SpanSlice) {
			l.At(3).CopyTo(l.AppendEmpty())
			l.At(l.Len() - 1).SetSpanID(pcommon.SpanID{99})
		}, "is not in the truth"},
		"twice, but different": {func(l ptrace.SpanSlice) { l.At(3).CopyTo(l.AppendEmpty()); l.At(l.Len() - 1).SetName("x") }, "differ"},
		"another duration":     {func(l ptrace.SpanSlice) { l.At(3).SetStartTimestamp(l.At(3).StartTimestamp() + 1) }, "takes"},
		"another time": {func(l ptrace.SpanSlice) {
			s := l.At(3)
			s.SetStartTimestamp(s.StartTimestamp() + 2e6)
			s.SetEndTimestamp(s.EndTimestamp() + 2e6)
		}, "is off by"},
		"another trace": {func(l ptrace.SpanSlice) {
			for _, s := range l.All() {
				s.SetTraceID(pcommon.TraceID{7})
			}
		}, "is in trace"},
		"another size":               {func(l ptrace.SpanSlice) { l.At(2).Attributes().PutInt(spans.AttrTQDataSize, 5) }, "moved 5 bytes"},
		"complete, but marked":       {func(l ptrace.SpanSlice) { l.At(0).Attributes().PutBool(spans.AttrIncomplete, true) }, spans.AttrIncomplete},
		"a function below something": {func(l ptrace.SpanSlice) { l.At(0).SetParentSpanID(l.At(1).SpanID()) }, "is not a root"},
	} {
		t.Run(name, func(t *testing.T) {
			td := model(tr)
			tt.spoil(td.ResourceSpans().At(0).ScopeSpans().At(0).Spans())
			err := tr.compare(td).err()
			require.Error(t, err)
			assert.Contains(t, err.Error(), tt.want)
		})
	}
}

// A replay sends spans again, with the same id.
func TestCompareCopies(t *testing.T) {
	tr := twoCalls()
	td := model(tr)
	list := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	list.At(3).CopyTo(list.AppendEmpty())
	a := tr.compare(td)
	require.NoError(t, a.err(), "twice with the same id is what a replay does")
	assert.Equal(t, 1, a.copies)
}
