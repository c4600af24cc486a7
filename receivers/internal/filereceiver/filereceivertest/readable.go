package filereceivertest

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// readable checks the needs of backends and people: no invisible character in a name, a label or a resource, no NUL in any text, and no time that wrapped.
func (r *Result) readable(tb testing.TB) {
	tb.Helper()
	// Without assert: assert's comparisons would take most of the time of 100,000 spans.
	name := func(s string) {
		if strings.ContainsFunc(s, spans.Hidden) {
			assert.Fail(tb, "hidden characters", "%q", s)
		}
	}
	labels := func(m pcommon.Map) {
		for k, v := range m.All() {
			name(k)
			name(v.AsString())
		}
	}
	at := func(times ...pcommon.Timestamp) {
		for _, t := range times {
			if t > math.MaxInt64 {
				assert.Fail(tb, "before 1970")
			}
		}
	}
	for _, td := range r.Traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			labels(rs.Resource().Attributes())
		}
	}
	for _, s := range r.All("") {
		name(s.Name())
		for k, v := range s.Attributes().All() {
			name(k)
			if v.Type() != pcommon.ValueTypeDouble && strings.Contains(v.AsString(), "\x00") {
				assert.Fail(tb, "NUL", "%s: %q", k, v.AsString())
			}
		}
		at(s.StartTimestamp(), s.EndTimestamp())
		if s.StartTimestamp() > s.EndTimestamp() {
			assert.Fail(tb, "ends before it begins", s.Name())
		}
	}
	for _, md := range r.Metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			labels(rm.Resource().Attributes())
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					name(m.Name())
					for _, p := range numbers(tb, m).All() {
						labels(p.Attributes())
						at(p.StartTimestamp(), p.Timestamp())
					}
				}
			}
		}
	}
}
