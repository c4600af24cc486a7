package stepjoinprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// recorded sets the sampling of a batch's collectives: drawn ones by a tracestate, the rest by their resource.
func recorded(td ptrace.Traces, state string, only bool) ptrace.Traces {
	for _, rs := range td.ResourceSpans().All() {
		if spans.AttrText(rs.Resource().Attributes(), spans.AttrServiceName) != "nccl" {
			continue
		}
		if only {
			rs.Resource().Attributes().PutBool(spans.AttrRecordOnly, true)
		}
		for _, s := range rs.ScopeSpans().At(0).Spans().All() {
			s.TraceState().FromRaw(state)
		}
	}
	return td
}

// Without the collectives left out by sampling, breakdowns are partial. With them, breakdowns count them, without links.
func TestSampledCollectives(t *testing.T) {
	for name, tt := range map[string]struct {
		state   string
		also    bool // further collectives, not drawn
		partial bool
	}{
		"all are drawn":             {"", false, false},
		"each for itself":           {"ot=th:0", false, false},
		"each for a hundred":        {"ot=th:fd70a", false, true},
		"with a randomness":         {"ot=th:fd70a;rv:fe49e0788dda04", false, true},
		"of another vendor":         {"congo=t61rcWkgMzE", false, false},
		"the others, too":           {"ot=th:fd70a", true, false},
		"none, and the others, too": {"ot=th:0", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := newBench(t), newJob()
			start := int64(1_700_000_000) * second
			j.collective(0, start+second, start+2*second, second/2, "node-1")
			require.NoError(t, b.ConsumeTraces(t.Context(), recorded(j.traces(), tt.state, false)))
			if tt.also {
				j.collective(1, start+4*second, start+6*second, second, "node-1")
				require.NoError(t, b.ConsumeTraces(t.Context(), recorded(j.traces(), "", true)))
			}
			trace := j.step(0, start, start+10*second)
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			b.sink.Reset()
			b.over(t)
			made := told(b.sink)
			parts := find(made, "ml.step.time.collective=")
			require.Len(t, parts, 1)
			if tt.partial {
				assert.Contains(t, parts[0], "trainbridge.join.partial.reason=sampled")
			} else {
				assert.NotContains(t, parts[0], spans.AttrJoinPartial)
			}
			waited, slowest := "ml.step.time.collective.wait=0.5 ", 1
			if tt.also {
				waited, slowest = "ml.step.time.collective.wait=1.5 ", 2
			}
			assert.Contains(t, parts[0], waited)
			singles := find(made, spans.AttrNCCLLateRank+"=3")
			assert.Len(t, singles, slowest)
			assert.Len(t, find(singles, " ->"), 1, "to the one that is drawn")
			back := 0
			for _, l := range find(made, "->"+trace.String()[:6]) {
				if l[:6] != trace.String()[:6] {
					back++
				}
			}
			assert.Equal(t, 1, back)
		})
	}
}
