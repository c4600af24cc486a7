package tree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// A store answers in any order, with copies, with spans without their parents, and may have impossible spans.
func TestBuild(t *testing.T) {
	td := ptrace.NewTraces()
	add := func(trace, id, parent byte, start, end pcommon.Timestamp) {
		s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{trace})
		s.SetSpanID(pcommon.SpanID{id})
		s.SetParentSpanID(pcommon.SpanID{parent})
		s.SetStartTimestamp(start)
		s.SetEndTimestamp(end)
	}
	add(2, 3, 2, 20, 30)
	add(2, 2, 1, 10, 40)
	add(2, 1, 0, 10, 50)
	add(2, 1, 0, 10, 50) // a copy
	add(2, 4, 9, 60, 55) // no parent, and an end before the start
	add(1, 5, 5, 5, 6)   // its own parent
	add(3, 6, 7, 70, 80) // a circle
	add(3, 7, 6, 70, 80)
	traces := Build(td)
	require.Len(t, traces, 3)
	own, tree, circle := traces[0], traces[1], traces[2]

	assert.True(t, own.Spans[0].Orphan)
	assert.Equal(t, own.Spans, own.Roots)

	var order []byte
	for _, s := range tree.Spans {
		order = append(order, s.SpanID()[0])
	}
	assert.Equal(t, []byte{1, 2, 3, 4}, order)
	assert.Equal(t, []int64{10, 55}, []int64{tree.Start, tree.End})
	root := tree.First()
	assert.Equal(t, []*Span{root, tree.Spans[3]}, tree.Roots)
	assert.Equal(t, root, root.Children[0].Parent)
	assert.Equal(t, pcommon.SpanID{3}, root.Children[0].Children[0].SpanID())
	assert.Equal(t, int64(0), tree.Spans[3].NS())

	td = ptrace.NewTraces() // for the next calls of add
	id := pcommon.TraceID{4}
	add(4, 8, 0, 1, 2)
	for _, parent := range []pcommon.SpanID{spans.RootID(id), {99}} { // a root that step_join has not sent yet is no missing parent
		td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetParentSpanID(parent)
		s := Build(td)[0].Roots[0]
		assert.Equal(t, parent == pcommon.SpanID{99}, s.Orphan)
	}

	assert.Empty(t, circle.Roots)
	assert.Equal(t, circle.Spans[0], circle.First())
}
