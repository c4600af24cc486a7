package digest

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/view"
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

// digest is the digest of the only job.
func (m *maker) digest() *Digest {
	j := New()
	j.Batch(m.Traces())
	return &j.Rows()[0].Digest
}

func newMaker() *maker { return &maker{Batch: spans.NewBatch("test", "")} }

func TestFunctions(t *testing.T) {
	m := newMaker()
	m.function("h1", "generate", "a", 10*ms)
	m.function("h1", "generate", "b", 50*ms)
	m.function("h2", "update", "c", 20*ms)
	m.function("h2", "update", "N/A", 30*ms)
	d := m.digest()
	rows := d.Functions.Rows()
	require.Len(t, rows, 2)
	generate := rows[0].Sums()
	assert.InDelta(t, 0.06, generate.Get, 1e-12)
	generate.Get = 0.06
	assert.Equal(t, FunctionSums{Name: "generate", Calls: 2, Total: 0.2, Get: 0.06}, generate)
	assert.Equal(t, FunctionSums{Name: "update", Calls: 2, WithoutID: 1, Total: 0.2, Get: 0.05}, rows[1].Sums())
	assert.InDelta(t, 0.3, generate.Ratio(generate.Get), 1e-12)
	assert.InDelta(t, 0.03, generate.Mean(generate.Get), 1e-12)
	sum := d.Functions.Sum()
	assert.Equal(t, 4, sum.Calls)
	assert.InDeltaSlice(t, []float64{0.4, 0.11}, []float64{sum.Total, sum.Get}, 1e-12)
	high, host := d.Functions.High()
	assert.Equal(t, 1, high)
	assert.Equal(t, "h1", host)
	assert.True(t, math.IsNaN(new(FunctionSums).Ratio(0)))
}

// Of a call of which a share is known and the other is that of its span, both count: 25 % and 10 %. A share above the limit is enough.
func TestHighOfOneShare(t *testing.T) {
	for _, tt := range []struct {
		put  float64
		get  int64
		high int
	}{{0.25, 10 * ms, 1}, {0.15, 10 * ms, 0}, {0.4, 0, 1}, {0.4, 40 * ms, 1}} {
		m := newMaker()
		m.function("h1", "generate", "a", tt.get)
		m.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutDouble(spans.AttrTQPutUtilization, tt.put)
		high, _ := m.digest().Functions.High()
		assert.Equal(t, tt.high, high, "%+v", tt)
	}
}

// Records come in the order of ids, of files, of anything: a series is in the order of steps, also after further records are added.
func TestSteps(t *testing.T) {
	m := newMaker()
	for _, n := range []int64{3, 1, 2} {
		m.step(n, n*1000*ms, 10-float64(n), 0.5+float64(n)/8)
	}
	d := m.digest()
	l := d.Steps.Rows()[0]
	assert.Equal(t, "megatron", l.Name)
	assert.Equal(t, []string{"9", "7", "7"}, []string{l.First.String(), l.Last.String(), l.Lowest.String()})
	assert.Equal(t, []view.Int{{N: 1, OK: true}, {N: 3, OK: true}}, []view.Int{l.First.Step, l.Last.Step})
	assert.InDelta(t, 6, l.Covered, 0)
	assert.Equal(t, []Bucket{{1, 1, 0.625, 0.625, 0.625}, {2, 1, 0.75, 0.75, 0.75}, {3, 1, 0.875, 0.875, 0.875}}, l.Measures[MFU].Over.Buckets())
	assert.InDelta(t, 0.1, l.Measures[StepTime].Quantile(0.5), 1e-12)
	assert.InDelta(t, 0.875, l.Measures[MFU].Latest(), 0)
	assert.True(t, math.IsNaN(l.Measures[MFUReported].Latest()))
	assert.Equal(t, map[string]int{spans.VerdictMFULow: 3}, l.Shown())
}

// breakdown makes the breakdown of a window; over is its excess above its limit, 0 if not slow.
func (m *maker) breakdown(window string, start, took int64, over float64, times map[string]float64) {
	m.n++
	s := m.Add(spans.Resource{Service: "rl", RunID: "r"}, spans.Span{
		Trace: pcommon.TraceID{m.n}, ID: pcommon.SpanID{1}, Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: base + start, End: base + start + took,
	})
	s.Attributes().PutStr(spans.AttrStepWindow, window)
	for part, seconds := range times {
		s.Attributes().PutDouble(spans.StepTimePrefix+part, seconds)
	}
	if start > 0 { // of the first nothing is usual yet
		s.Attributes().PutDouble(spans.AttrStepUsual, 1)
	}
	if over > 0 {
		s.Attributes().PutDouble(spans.AttrStepExcess, float64(took)/1e9-1)
		e := s.Events().AppendEmpty()
		e.SetName(spans.EventVerdict)
		e.Attributes().PutStr(spans.AttrVerdictName, spans.VerdictStepSlow)
		e.Attributes().PutStr(spans.AttrVerdictReason, "why")
		e.Attributes().PutDouble(spans.AttrVerdictValue, float64(took)/1e9)
		e.Attributes().PutDouble(spans.AttrVerdictThreshold, float64(took)/1e9-over)
	}
}

// figuresOf are count, sum, minimum, median and maximum.
func figuresOf(v *Values) []float64 {
	return []float64{float64(v.Count()), v.Sum(), v.Min(), v.Quantile(0.5), v.Max()}
}

func TestWindows(t *testing.T) {
	m := newMaker()
	m.breakdown(spans.WindowPass, 0, 1000*ms, 0, map[string]float64{spans.PartRPCSend: 1})
	m.breakdown(spans.WindowStep, 0, 1000*ms, 0, map[string]float64{spans.PartCompute: 0.75, spans.PartUnattributed: 0.25})
	m.breakdown(spans.WindowStep, 2000*ms, 2000*ms, 0.5, map[string]float64{spans.PartCompute: 0.75, spans.PartGet: 0.25, spans.PartUnattributed: 1})
	m.breakdown(spans.WindowStep, 5000*ms, 3000*ms, 1.5, map[string]float64{spans.PartCompute: 1, spans.PartGet: 2})
	rows := m.digest().Windows.Rows()
	require.Len(t, rows, 2)
	step, pass := rows[0], rows[1]
	assert.Equal(t, []string{spans.WindowStep, spans.WindowPass}, []string{step.Of, pass.Of})
	assert.InDeltaSlice(t, []float64{3, 6, 1, 2, 3}, figuresOf(&step.Took), 1e-12)
	var names []string
	for _, p := range step.ByTime() {
		names = append(names, p.Name)
	}
	assert.Equal(t, []string{spans.PartCompute, spans.PartGet, spans.PartUnattributed}, names, "what is left comes last, and ties by name")
	get := step.Parts[spans.PartGet]
	assert.InDeltaSlice(t, []float64{2, 2.25, 0.25, 1.125, 2}, figuresOf(&get.All), 1e-12)
	assert.InDeltaSlice(t, []float64{2, 2.25, 0.25, 1.125, 2}, figuresOf(&get.Slow), 1e-12)
	assert.InDelta(t, 2.5/6, step.Share(step.Parts[spans.PartCompute]), 1e-12)
	require.Len(t, step.Slow, 2)
	assert.Equal(t, []float64{1.5, 0.5}, []float64{step.Slow[0].Of.Over, step.Slow[1].Of.Over}, "what costs most is first")
	assert.EqualValues(t, 2, step.Judged)
	assert.InDelta(t, 3, step.Excess.Sum(), 1e-12)
	assert.Zero(t, pass.Judged)
	assert.Empty(t, pass.Slow)
	assert.True(t, math.IsNaN(new(Window).Share(&Part{})))
}

// A breakdown without a span counts as its span does.
func TestWindowsWithoutSpans(t *testing.T) {
	out, bare := spans.NewBatch("test", ""), []spans.Window{}
	for i, of := range []string{spans.WindowStep, spans.WindowBatch, spans.WindowStep, spans.WindowStep, ""} {
		w := spans.Window{
			Service: "rl", RunID: "r", Of: of, Trace: pcommon.TraceID{byte(i)}, ID: pcommon.SpanID{1}, Start: base + int64(i)*1000*ms, Seconds: 1.5 + float64(i),
			Iteration: -1, Usual: math.NaN(),
		}
		s := out.Add(spans.Resource{Service: w.Service, RunID: w.RunID}, spans.Span{
			Trace: w.Trace, ID: w.ID, Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: w.Start, End: w.Start,
		})
		m := s.Attributes()
		if of != "" {
			m.PutStr(spans.AttrStepWindow, of)
		}
		m.PutDouble(spans.StepTimePrefix+spans.PartUnattributed, w.Seconds)
		if i > 1 {
			w.Iteration, w.Ranks, w.Usual = int64(i), 8, 2
			m.PutInt(spans.AttrIteration, w.Iteration)
			m.PutInt(spans.AttrWorldSize, w.Ranks)
			m.PutDouble(spans.AttrStepUsual, w.Usual)
		}
		bare = append(bare, w)
	}
	want, got := New(), New()
	want.Batch(out.Traces())
	got.Windows(bare)
	require.Len(t, got.Rows(), 1)
	a, b := want.Rows()[0], got.Rows()[0]
	assert.Equal(t, a.Windows.Rows(), b.Windows.Rows())
	assert.Equal(t, a.Ledger, b.Ledger)
	assert.Equal(t, []int64{a.Spans, a.First, a.Last}, []int64{b.Spans, b.First, b.Last})
	assert.Equal(t, a.Services, b.Services)
}

// Offline work is known of each of the slowest calls, from spans beside the calls as from attributes.
func TestOffline(t *testing.T) {
	res := spans.Resource{Service: "zeromq", RunID: "r", System: spans.RPCSystemZeroMQ}
	for _, stated := range []bool{false, true} {
		m := newMaker()
		trace, _ := m.root(res, spans.SpanRPCPass, 0, 100*ms)
		for i := range int64(3) {
			at, offline := base+i*20*ms, i*ms
			s := m.Add(res, spans.Span{
				Trace: trace, ID: pcommon.SpanID{2, byte(i)}, Parent: pcommon.SpanID{1}, Name: "Linear", Is: spans.KindCall, Start: at, End: at + (9-i)*ms,
			})
			s.Attributes().PutInt(spans.AttrZMQCallID, i)
			switch {
			case stated:
				s.Attributes().PutDouble(spans.AttrZMQCallDuration, float64(9-i)/1e3)
				if offline > 0 {
					s.Attributes().PutDouble(spans.AttrZMQOfflineDuration, float64(offline)/1e9)
				}
			case offline > 0:
				m.AddPart(&spans.Span{
					Trace: trace, ID: pcommon.SpanID{3, byte(i)}, Parent: pcommon.SpanID{1}, Name: spans.SpanRPCOffline, Start: at - offline, End: at,
				})
			}
		}
		calls := &m.digest().Passes.Calls
		require.Len(t, calls.Slowest, 3)
		assert.InDelta(t, 0.003, calls.Stages[RPCOffline].Sum(), 1e-9)
		assert.True(t, math.IsNaN(calls.Slowest[0].Of.Stages[RPCOffline]))
		assert.InDelta(t, 0.001, calls.Slowest[1].Of.Stages[RPCOffline], 1e-9, "stated %t", stated)
		assert.InDelta(t, 0.002, calls.Slowest[2].Of.Stages[RPCOffline], 1e-9, "stated %t", stated)
	}
}

// A run went on after an event if collectives were completed more than ten minutes later; some minutes later, groups without a dead rank may still work.
func TestWentOnByCollectives(t *testing.T) {
	m, minute := newMaker(), 60_000*ms
	collective := func(end int64, lacksRanks bool) {
		s := m.Add(spans.Resource{Service: "nccl", RunID: "r"}, spans.Span{
			Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{byte(end / minute)}, Name: "AllReduce", Is: spans.KindCollective, Start: base + end - ms, End: base + end,
			Source: spans.TimeLogged,
		})
		if lacksRanks {
			spans.PutIncomplete(s.Attributes(), spans.NCCLIncompleteTimeout)
		}
	}
	collective(10*minute, false)
	collective(30*minute, true)
	j := New()
	j.Batch(m.Traces())
	d := j.Rows()[0]
	at := func(after int64) *Event { return &Event{Time: base + after} }
	assert.True(t, d.WentOn(at(-minute)))
	assert.False(t, d.WentOn(at(minute)))
	assert.False(t, d.WentOn(at(20*minute)))
}
