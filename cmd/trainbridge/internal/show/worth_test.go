package show

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// maker makes a trace for each root.
type maker struct {
	*spans.Batch
	n byte
}

func newMaker() *maker { return &maker{Batch: spans.NewBatch("test", "")} }

func (m *maker) traces() []*tree.Trace { return tree.Build(m.Traces()) }

// root makes a span of 100 ms, or of the given length, some seconds after the one before.
func (m *maker) root(service, name string, took int64) pcommon.Map {
	m.n++
	start := now.UnixNano() + int64(m.n)*second
	res := spans.Resource{Service: service, RunID: "r"}
	return m.Add(res, spans.Span{Trace: pcommon.TraceID{m.n}, ID: pcommon.SpanID{1}, Name: name, Start: start, End: start + took}).Attributes()
}

// function makes a call; get is the share of its get stage.
func (m *maker) function(name, traceID string, get int64) {
	attrs := m.root("verl", name, second/10)
	attrs.PutStr(spans.AttrTQStage, spans.StageFunction)
	attrs.PutStr(spans.AttrTQTraceID, traceID)
	s := m.Add(spans.Resource{Service: "verl", RunID: "r"}, spans.Span{
		Trace: pcommon.TraceID{m.n}, ID: pcommon.SpanID{2}, Parent: pcommon.SpanID{1}, Name: spans.SpanTQGet, Start: now.UnixNano(), End: now.UnixNano() + get,
	})
	s.Attributes().PutStr(spans.AttrTQStage, spans.StageGet)
}

// Of a log without trace ids a call of each long function is worth a look.
func TestWorth(t *testing.T) {
	const ms = second / 1000
	m := newMaker()
	for i, name := range []string{"a", "b", "c", "d"} {
		for n := range int64(4 - i) {
			m.function(name, "N/A", (10*n+int64(i))*ms)
		}
	}
	var names []string
	for _, tr := range worthDrawing(m.traces()) {
		names = append(names, functionName(tr.First()))
	}
	assert.Equal(t, []string{"a", "b", "c"}, names)
	m.function("batch", "id", 90*ms)
	best := worthDrawing(m.traces())
	require.Len(t, best, 1)
	assert.Equal(t, "batch", functionName(best[0].First()))

	// Of equally bad steps the newest wins; a slow step comes before TransferQueue's overhead, and the slowest first.
	m = newMaker()
	for range 2 {
		attrs := m.root("llm", spans.SpanStep, second)
		attrs.PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(spans.VerdictMFULow)
		attrs.PutStr(spans.AttrVerdictSeverity, spans.SeverityWarning)
	}
	assert.Equal(t, pcommon.TraceID{2}, mostInteresting(m.traces()).ID)
	m.function("generate", "a", 90*ms)
	for _, over := range []float64{0.5, 1.5, 1} {
		m.root("rl", spans.SpanStep, 2*second)
		s := m.Add(spans.Resource{Service: "rl", RunID: "r"}, spans.Span{
			Trace: pcommon.TraceID{m.n}, ID: pcommon.SpanID{3}, Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: now.UnixNano(), End: now.UnixNano(),
		})
		e := s.Events().AppendEmpty()
		e.SetName(spans.EventVerdict)
		e.Attributes().PutStr(spans.AttrVerdictName, spans.VerdictStepSlow)
		e.Attributes().PutDouble(spans.AttrVerdictValue, 2)
		e.Attributes().PutDouble(spans.AttrVerdictThreshold, 2-over)
	}
	assert.Equal(t, pcommon.TraceID{5}, mostInteresting(m.traces()).ID)
}

func TestRuns(t *testing.T) {
	m := newMaker()
	m.AddRun(spans.RunSpan{Run: "r", Service: "verl", File: "x.log", Start: now.UnixNano() - 1, Time: spans.TimeDerived})
	m.function("generate", "a", 1)
	m.function("update", "b", 1)
	m.root("llm", spans.SpanStep, second).PutStr(spans.AttrVerdictSeverity, spans.SeverityBad)
	at := func(ns int64) time.Time { return time.Unix(0, now.UnixNano()+ns).UTC() }
	assert.Equal(t, []*runRow{
		{Service: "llm", Run: "r", Traces: 1, Bad: 1, First: at(3 * second), Last: at(4 * second), Roots: map[string]int{spans.SpanStep: 1}},
		{Service: "verl", Run: "r", Traces: 2, First: at(-1), Last: at(2*second + second/10), Roots: map[string]int{"generate": 1, "update": 1}},
	}, runRows(m.traces()))
}
