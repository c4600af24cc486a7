package verdict

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

func spanNumber(n uint64) ptrace.Span {
	s := ptrace.NewSpan()
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], n)
	s.SetSpanID(id)
	return s
}

// judged is a span after judgement, with a verdict if say.
func judged(m *Memory, n uint64, say bool) map[string]any {
	v, sheet, span := NewCause(hot, spans.CauseLinkHot, "Rank {rank} came late.", &places).In(spans.TQPut), Sheet{Status: true, Memory: m}, spanNumber(n)
	sheet.Begin()
	if say {
		v.Say(&sheet, &rank{number: int64(n)}, 1, math.NaN())
	}
	sheet.Put(span)
	all := span.Attributes().AsRaw()
	all["message"] = span.Status().Message()
	for i, e := range span.Events().All() {
		all[e.Name()] = []any{i, e.Timestamp(), e.Attributes().AsRaw()}
	}
	return all
}

// A span judged again keeps its verdicts, or their absence, also after a restart from the stored memory.
func TestMemory(t *testing.T) {
	var m Memory
	late, fine := judged(&m, 1, true), judged(&m, 2, false)
	require.Len(t, fine, 1)
	require.Greater(t, len(late), 1)
	b, n := m.Fresh()
	assert.Equal(t, 2, n)
	other := judged(&m, 3, true)
	more, n := m.Fresh()
	assert.Equal(t, 1, n)
	b = append(b, more...)
	var next Memory
	assert.Equal(t, 3, next.Restore(b))
	for _, memory := range []*Memory{&m, &next} {
		assert.Equal(t, late, judged(memory, 1, false))
		assert.Equal(t, fine, judged(memory, 2, true))
		assert.Equal(t, other, judged(memory, 3, false))
		_, n = memory.Fresh()
		assert.Zero(t, n, "it is known")
	}
	assert.Zero(t, new(Memory).Restore(append(b[:9:9], 1)), "of an older form")
	for cut := range len(b) {
		assert.Less(t, new(Memory).Restore(b[:cut]), 3)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var m Memory
	for n := range uint64(3 * Remembered) {
		judged(&m, n, false)
		if n%1000 == 0 {
			m.Fresh()
		}
	}
	assert.Empty(t, judged(&m, 3*Remembered-1, true)["message"], "the last ones are known")
	for n := range uint64(3 * Remembered) {
		judged(&m, 4*Remembered+n, true)
		m.Fresh()
	}
	assert.LessOrEqual(t, len(m.said)+len(m.older), 2*Remembered)
	assert.Greater(t, len(judged(&m, 7*Remembered-1, false)), 1)
}
