package runlakeexporter

import (
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// mostSeen is how many spans of a run are known at least: two maps have as many each, and the older is dropped when the newer is full.
const mostSeen = 1 << 22

// seen are the last spans of a run, by hashes of their ids.
type seen struct{ now, before map[uint64]struct{} }

var seed = maphash.MakeSeed()

// remove removes spans that were there before: a message that was not confirmed comes again, also to another gateway.
func (m *seen) remove(td ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			ss.Spans().RemoveIf(func(s ptrace.Span) bool { return m.has(s.TraceID(), s.SpanID()) })
		}
	}
}

// has says whether a span was there before, and takes note of the span.
func (m *seen) has(trace pcommon.TraceID, span pcommon.SpanID) bool {
	var id [24]byte
	copy(id[copy(id[:], trace[:]):], span[:])
	key := maphash.Bytes(seed, id[:])
	if _, ok := m.now[key]; ok {
		return true
	}
	if _, ok := m.before[key]; ok {
		return true
	}
	if m.now == nil || len(m.now) >= mostSeen {
		m.now, m.before = make(map[uint64]struct{}), m.now
	}
	m.now[key] = struct{}{}
	return false
}
