package gen

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// The trace of each step is as long as the step by the truth, within 5 %, though passes of RPCs have no clock. With ids each trace has its pass, as long as the
// calls in the log.
func TestWaterfall(t *testing.T) {
	for _, ids := range []string{IDsUUID, IDsNone} {
		for seed := range uint64(5) {
			t.Run(ids+" "+strconv.FormatUint(seed+1, 10), func(t *testing.T) {
				t.Parallel()
				o := options(t, func(o *Options) { o.Faults, o.Seed, o.IDs, o.Ranks, o.Steps = Faults(), seed+1, ids, 4, 30 })
				truth := one(t, o)
				traces := map[pcommon.TraceID][]ptrace.Span{}
				for _, s := range join(t, &truth, o.Out) {
					traces[s.TraceID()] = append(traces[s.TraceID()], s)
				}
				for _, step := range truth.Steps {
					id := spans.TraceID("run", []byte(step.TraceID))
					if ids == IDsNone {
						id = spans.StepTraceID("run", int64(step.Step))
					}
					require.NotEmpty(t, traces[id], "step %d", step.Step)
					start, end, passed := step.Start, step.End, []ptrace.Span(nil)
					for _, s := range traces[id] {
						start, end = min(start, int64(s.StartTimestamp())), max(end, int64(s.EndTimestamp()))
						if s.Name() == spans.SpanRPCPass {
							passed = append(passed, s)
						}
					}
					assert.LessOrEqual(t, float64(end-start), 1.05*float64(step.End-step.Start), "step %d", step.Step)
					if ids == IDsNone {
						continue
					}
					require.Len(t, passed, 1, "step %d", step.Step)
					assert.Equal(t, spans.KindJoined, view.KindOf(passed[0]).String())
					length := float64(passed[0].EndTimestamp()-passed[0].StartTimestamp()) / 1e9
					assert.InDelta(t, step.Sum[spans.PartRPCSerialize]+step.Sum[spans.PartRPCSend]+step.Sum[spans.PartRPCReceive]+step.Sum[spans.PartRPCServer]+
						step.Sum[spans.PartRPCDeserialize]+step.Sum[spans.PartRPCUnattributed], length, 1e-6, "step %d", step.Step)
				}
			})
		}
	}
}
