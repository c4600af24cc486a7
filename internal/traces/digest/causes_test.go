package digest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// The most expensive cause is first, and its windows are identified by their records.
func TestCauses(t *testing.T) {
	m := newMaker()
	for i, causes := range [][]view.Cause{
		{
			{Part: spans.PartWait, Seconds: 0.5, Cost: 8, Rank: view.Int{N: 3, OK: true}, Host: "h1", Operation: "AllReduce"},
			{Part: spans.PartUnattributed, Seconds: 0.25, Cost: 4},
		},
		{{Part: spans.PartDataLoading, Seconds: 0.75, Cost: 12}},
		{
			{Part: spans.PartWait, Seconds: 1, Cost: 16, Rank: view.Int{N: 3, OK: true}, Host: "h1", Comm: "DP Group 0"},
			{Part: spans.PartWait, Seconds: 0.25, Cost: math.NaN()},
		},
	} {
		id, attrs := m.root(spans.Resource{Service: "rl", RunID: "r"}, spans.SpanStep, int64(i)*1000*ms, 100*ms)
		attrs.PutStr(spans.AttrLogFile, "train.log")
		attrs.PutInt(spans.AttrLogOffset, int64(100*i))
		s := m.Add(spans.Resource{Service: "rl", RunID: "r"}, spans.Span{
			Trace: id, ID: pcommon.SpanID{2}, Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: base, End: base,
		})
		s.Attributes().PutStr(spans.AttrStepWindow, spans.WindowStep)
		s.Attributes().PutInt(spans.AttrIteration, int64(i))
		e := s.Events().AppendEmpty()
		e.SetName(spans.EventVerdict)
		e.Attributes().PutStr(spans.AttrVerdictName, spans.VerdictStepSlow)
		for _, c := range causes {
			e := s.Events().AppendEmpty()
			e.SetName(spans.EventCause)
			e.Attributes().PutStr(spans.AttrStepPart, c.Part)
			e.Attributes().PutDouble(spans.AttrCauseTime, c.Seconds)
			spans.PutFinite(e.Attributes(), spans.AttrCauseCost, c.Cost)
			if c.Rank.OK {
				e.Attributes().PutInt(spans.AttrNCCLLateRank, c.Rank.N)
			}
			e.Attributes().PutStr(spans.AttrNCCLLateHost, c.Host)
			e.Attributes().PutStr(spans.AttrNCCLCommName, c.Comm)
			e.Attributes().PutStr(spans.AttrNCCLOperation, c.Operation)
		}
	}
	jobs := New()
	jobs.Batch(m.Traces())
	rows := jobs.Rows()
	require.Len(t, rows, 1)
	window := rows[0].Windows.Rows()[0]
	costs := window.Costs()
	require.Len(t, costs, 4)
	var parts []string
	for _, c := range costs {
		parts = append(parts, c.Part)
	}
	assert.Equal(t, []string{spans.PartWait, spans.PartDataLoading, spans.PartUnattributed, spans.PartWait}, parts)
	rank := costs[0]
	assert.Equal(t, []any{int64(2), "h1", view.Int{N: 3, OK: true}}, []any{rank.Windows, rank.Host, rank.Rank})
	assert.InDelta(t, 1.5, rank.Time.Sum(), 0)
	assert.InDelta(t, 24, rank.Devices.Sum(), 0)
	require.Len(t, rank.Dearest, 2)
	assert.Equal(t, Blamed{Iteration: view.Int{N: 2, OK: true}, Comm: "DP Group 0"}, rank.Dearest[0].Of)
	assert.Equal(t, At{Trace: pcommon.TraceID{3}, Span: pcommon.SpanID{2}, Start: base, File: "train.log", Offset: 200}, rank.Dearest[0].At)
	assert.Equal(t, int64(0), rank.Dearest[1].Offset)
	assert.Zero(t, costs[3].Devices.Count())
	assert.Equal(t, int64(100), window.Longest[1].Offset)
}

func TestPlacesAreBounded(t *testing.T) {
	p, res := new(places), &resource{offset: -1}
	b := spans.NewBatch("test", "")
	s := b.Add(spans.Resource{}, spans.Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{1}, Name: spans.SpanStep, Start: base, End: base + 1})
	p.note(s, res, view.KindStep, 0)
	assert.Empty(t, p.by, "the record's place is not said")
	res.offset = 7
	for i := range mostPlaces + 2 {
		s.SetTraceID(pcommon.TraceID{byte(i), byte(i >> 8), byte(i >> 16)})
		p.note(s, res, view.KindStep, 0)
		p.note(s, res, view.KindStep, 0)
	}
	assert.Len(t, p.by, mostPlaces)
	_, ok := p.find(pcommon.TraceID{1}, view.KindStep)
	assert.False(t, ok)
	at, ok := p.find(pcommon.TraceID{2}, view.KindStep)
	assert.True(t, ok)
	assert.Equal(t, int64(7), at.offset)
	assert.True(t, p.note(s, res, view.KindFunction, 0))
	assert.False(t, p.note(s, res, view.KindFunction, 0))
	res.offset = 3
	assert.False(t, p.note(s, res, view.KindFunction, 0), "of an earlier line, read later")
	at, _ = p.find(s.TraceID(), view.KindPass, view.KindFunction, view.KindStep)
	assert.Equal(t, int64(3), at.offset)
	_, ok = (*places)(nil).find(pcommon.TraceID{2}, view.KindStep)
	assert.False(t, ok)
}
