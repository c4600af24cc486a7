package digest

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	base = int64(1770799200e9)
	ms   = int64(time.Millisecond)
)

// maker makes a trace for each root.
type maker struct {
	*spans.Batch
	n byte
}

func (m *maker) root(res spans.Resource, name string, start, took int64) (pcommon.TraceID, pcommon.Map) {
	m.n++
	id := pcommon.TraceID{m.n}
	s := m.Add(res, spans.Span{Trace: id, ID: pcommon.SpanID{1}, Name: name, Start: base + start, End: base + start + took})
	return id, s.Attributes()
}

// function makes a call of 100 ms; get is the part of its get stage.
func (m *maker) function(host, name, traceID string, get int64) {
	res := spans.Resource{Service: "verl", RunID: "r", Host: host}
	id, attrs := m.root(res, name, int64(m.n)*1000*ms, 100*ms)
	attrs.PutStr(spans.AttrTQStage, spans.StageFunction)
	attrs.PutStr(spans.AttrTQTraceID, traceID)
	s := m.Add(res, spans.Span{Trace: id, ID: pcommon.SpanID{2}, Parent: pcommon.SpanID{1}, Name: spans.SpanTQGet, Start: base, End: base + get})
	s.Attributes().PutStr(spans.AttrTQStage, spans.StageGet)
}

func (m *maker) step(iteration, start int64, loss, mfu float64) {
	_, attrs := m.root(spans.Resource{Service: "llm", RunID: "r"}, spans.SpanStep, start, 200*ms)
	attrs.PutStr(spans.AttrSource, "megatron")
	attrs.PutInt(spans.AttrIteration, iteration)
	attrs.PutInt(spans.AttrStepsCovered, 2)
	attrs.PutDouble(spans.AttrLoss, loss)
	attrs.PutDouble(spans.AttrMFU, mfu)
	attrs.PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(spans.VerdictMFULow)
	attrs.PutStr(spans.AttrVerdictSeverity, spans.SeverityWarning)
}

func (m *maker) traces() []*tree.Trace { return tree.Build(m.Traces()) }

func newMaker() *maker { return &maker{Batch: spans.NewBatch("test", "")} }

func TestFunctions(t *testing.T) {
	m := newMaker()
	m.function("h1", "generate", "a", 10*ms)
	m.function("h1", "generate", "b", 50*ms)
	m.function("h2", "update", "c", 20*ms)
	m.function("h2", "update", "N/A", 30*ms)
	d := Of(m.traces())
	rows := d.Functions.Rows()
	require.Len(t, rows, 2)
	assert.Equal(t, FunctionSums{Name: "generate", Calls: 2, Total: 200 * ms, Get: 60 * ms}, rows[0].FunctionSums)
	assert.Equal(t, FunctionSums{Name: "update", Calls: 2, WithoutID: 1, Total: 200 * ms, Get: 50 * ms}, rows[1].FunctionSums)
	assert.InDelta(t, 0.3, rows[0].Ratio(rows[0].Get), 1e-12)
	assert.InDelta(t, 0.03, rows[0].Seconds(rows[0].Get), 1e-12)
	sum := d.Functions.Sum()
	assert.Equal(t, []int64{4, 400 * ms, 110 * ms}, []int64{int64(sum.Calls), sum.Total, sum.Get})
	high, host := d.Functions.High()
	assert.Equal(t, 1, high)
	assert.Equal(t, "h1", host)
	assert.True(t, math.IsNaN(new(FunctionSums).Ratio(0)))
}

// Records come in the order of ids, of files, of anything: a series is in the order of steps, also after further records are added.
func TestSeries(t *testing.T) {
	m := newMaker()
	for _, n := range []int64{3, 1, 2} {
		m.step(n, n*1000*ms, 10-float64(n), 0.5+float64(n)/8)
	}
	traces := m.traces()
	d := new(Digest)
	for _, tr := range slices.Backward(traces) {
		d.Add(tr)
		d.Steps.Rows()
	}
	l := d.Steps.Rows()[0]
	assert.Equal(t, "megatron", l.Log)
	first, last := l.Loss()
	assert.Equal(t, []string{"9", "7"}, []string{first, last})
	assert.InDelta(t, 6, l.Covered(), 0)
	assert.Equal(t, Values{0.625, 0.75, 0.875}, l.Values(func(s *Step) float64 { return s.MFU }))
	assert.Equal(t, Values{1e8, 1e8, 1e8}, l.Values(func(s *Step) float64 { return s.Duration }))
	assert.Equal(t, map[string]int{spans.VerdictMFULow: 3}, l.Shown())
	assert.Equal(t, traces[2], Interesting(traces), "the newest of equals")
}

// Of a log without trace ids one call of each function that took long is worth a look.
func TestWorth(t *testing.T) {
	m := newMaker()
	for i, name := range []string{"a", "b", "c", "d"} {
		for n := range int64(4 - i) {
			m.function("h", name, "N/A", (10*n+int64(i))*ms)
		}
	}
	var names []string
	for _, tr := range Worth(m.traces()) {
		names = append(names, FunctionName(tr.First()))
	}
	assert.Equal(t, []string{"a", "b", "c"}, names)
	m.function("h", "batch", "id", 90*ms)
	worth := Worth(m.traces())
	require.Len(t, worth, 1)
	assert.Equal(t, "batch", FunctionName(worth[0].First()))
}

func TestRuns(t *testing.T) {
	m := newMaker()
	res := spans.Resource{Service: "verl", RunID: "r"}
	m.AddRun(res, base-1, spans.TimeDerived, "x.log")
	m.function("h", "generate", "a", 10*ms)
	m.function("h", "update", "b", 10*ms)
	m.step(1, 5000*ms, 1, 1)
	got := Runs(m.traces())
	require.Len(t, got, 2)
	assert.Equal(t, &Run{
		Service: "llm", Run: "r", Traces: 1, First: base + 5000*ms, Last: base + 5200*ms, Roots: map[string]int{spans.SpanStep: 1},
	}, got[0])
	assert.Equal(t, &Run{
		Service: "verl", Run: "r", Traces: 2, First: base - 1, Last: base + 1100*ms, Roots: map[string]int{"generate": 1, "update": 1},
	}, got[1])
}
