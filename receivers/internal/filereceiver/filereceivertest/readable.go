package filereceivertest

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// readable holds of all that came out what backends and people need: no character that is not seen in a name, a label or a resource, no NUL in any text, and
// no time that wrapped.
func (r *Result) readable(tb testing.TB) {
	tb.Helper()
	name := func(s string) { assert.False(tb, strings.ContainsFunc(s, spans.Hidden), "%q", s) }
	labels := func(m pcommon.Map) {
		for k, v := range m.All() {
			name(k)
			name(v.AsString())
		}
	}
	at := func(times ...pcommon.Timestamp) {
		for _, t := range times {
			assert.LessOrEqual(tb, uint64(t), uint64(math.MaxInt64), "before 1970")
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
			assert.NotContains(tb, v.AsString(), "\x00", k)
		}
		at(s.StartTimestamp(), s.EndTimestamp())
		assert.LessOrEqual(tb, s.StartTimestamp(), s.EndTimestamp(), s.Name())
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
