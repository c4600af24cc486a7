package otlpackedexporter

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	vocabulary "github.com/trainbridge/trainbridge/spans"
)

// drawn is a message without its record-only resources, whose spans are joined and counted by other components, but not for a backend. The message may be
// shared with other exporters: if there is something to leave out, the rest is copied.
func drawn(td ptrace.Traces) ptrace.Traces {
	leftOut := 0
	for _, rs := range td.ResourceSpans().All() {
		if recordOnly(rs) {
			leftOut++
		}
	}
	if leftOut == 0 {
		return td
	}
	out := ptrace.NewTraces()
	out.ResourceSpans().EnsureCapacity(td.ResourceSpans().Len() - leftOut)
	for _, rs := range td.ResourceSpans().All() {
		if !recordOnly(rs) {
			rs.CopyTo(out.ResourceSpans().AppendEmpty())
		}
	}
	return out
}

func recordOnly(rs ptrace.ResourceSpans) bool {
	v, ok := rs.Resource().Attributes().Get(vocabulary.AttrRecordOnly)
	return ok && v.Bool()
}
