package filereceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Calls are separated from one another, not from their stages; only a single call is split within.
func TestHalves(t *testing.T) {
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	add := func(trace, span, parent byte) {
		s := list.AppendEmpty()
		s.SetTraceID(pcommon.TraceID{trace})
		s.SetSpanID(pcommon.SpanID{span})
		if parent > 0 {
			s.SetParentSpanID(pcommon.SpanID{parent})
		}
	}
	for call := range byte(3) { // a call, its stages, and an operation of a stage
		add(1, 10*call+1, 99)
		add(1, 10*call+2, 10*call+1)
		add(1, 10*call+3, 10*call+2)
	}
	add(2, 1, 0)
	begins := beginnings(td)
	assert.Equal(t, []bool{true, false, false, true, false, false, true, false, false, true}, begins)
	assert.Equal(t, []spanRange{{0, 6}, {6, 10}}, spanRange{0, 10}.halves(begins))
	assert.Equal(t, []spanRange{{0, 3}, {3, 6}}, spanRange{0, 6}.halves(begins))
	assert.Equal(t, []spanRange{{6, 9}, {9, 10}}, spanRange{6, 10}.halves(begins))
	assert.Equal(t, []spanRange{{3, 4}, {4, 6}}, spanRange{3, 6}.halves(begins))
	assert.Equal(t, []spanRange{{4, 5}, {5, 6}}, spanRange{4, 6}.halves(begins))
}
