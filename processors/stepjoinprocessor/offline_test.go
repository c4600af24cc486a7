package stepjoinprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/spans"
)

// offline is a processor for finished logs.
func offline(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	b.Offline(nil)
	return b
}

// lasting adds steps of the given durations, s; timeless: the log has no clock.
func (j *job) lasting(seconds []float64, timeless bool) {
	at := int64(1_700_000_000) * second
	for i, s := range seconds {
		end := at + int64(s*1e9)
		source := spans.TimeDerived
		if timeless {
			source = spans.TimeSynthetic
		}
		trace := spans.StepTraceID(j.run, int64(i))
		s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeDerived}, spans.Span{
			Trace: trace, ID: spans.SpanID(trace, "step"), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: at, End: end, Source: source,
		})
		s.Attributes().PutInt(spans.AttrIteration, int64(i))
		at = end
	}
}

// breakdowns returns the usual time and the excess, by step.
func breakdowns(t *testing.T, b *bench) (usual, excess map[int64]float64) {
	t.Helper()
	usual, excess = map[int64]float64{}, map[int64]float64{}
	for _, td := range b.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if s.Name() != spans.SpanBreakdown {
						continue
					}
					n, _ := s.Attributes().Get(spans.AttrIteration)
					_, again := usual[n.Int()]
					require.False(t, again, "step %d", n.Int())
					usual[n.Int()] = math.NaN()
					if v, ok := s.Attributes().Get(spans.AttrStepUsual); ok {
						usual[n.Int()] = v.Double()
					}
					if v, ok := s.Attributes().Get(spans.AttrStepExcess); ok {
						excess[n.Int()] = v.Double()
						assert.Equal(t, ptrace.StatusCodeUnset, s.Status().Code())
						assert.NotZero(t, s.Events().Len())
					}
				}
			}
		}
	}
	return usual, excess
}

// For a training log alone each step has a window, with or without a clock, and is compared with neighbours on both sides, for any number of steps.
func TestOfflineTrainingLog(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for _, tt := range []struct {
		steps    int
		timeless bool
	}{{14, false}, {14, true}, {200, false}, {60_000, false}, {60_000, true}} {
		rng := rand.New(rand.NewPCG(uint64(tt.steps), 1))
		seconds := make([]float64, tt.steps)
		for i := range seconds {
			seconds[i] = 4 * math.Exp(0.02*rng.NormFloat64())
		}
		seconds[5], seconds[tt.steps-3] = 604, 9
		b, j := offline(t), newJob()
		j.lasting(seconds, tt.timeless)
		for _, m := range j.out.Messages() {
			require.NoError(t, b.ConsumeTraces(t.Context(), m.Traces))
		}
		require.NoError(t, b.sweepAll(t))
		usual, excess := breakdowns(t, b)
		require.Len(t, usual, tt.steps)
		for n, u := range usual {
			require.InDelta(t, 4, u, 0.3, "step %d", n)
		}
		require.Len(t, excess, 2, "%v", tt)
		assert.InDelta(t, 600, excess[5], 0.3)
		assert.InDelta(t, 5, excess[int64(tt.steps-3)], 0.3)
	}
}

// A sink that sums up gets the windows that were not slow as values, with the ids, lengths and usual times of the spans left out.
func TestOfflineWindows(t *testing.T) {
	seconds := slices.Repeat([]float64{4}, 200)
	seconds[0], seconds[100] = 5, 9 // a warm-up, and a slow step
	whole, bare := offline(t), newBench(t)
	var list []spans.Window
	bare.Offline(func(more []spans.Window) { list = append(list, more...) })
	for _, b := range []*bench{whole, bare} {
		j := newJob()
		j.lasting(seconds, false)
		require.NoError(t, b.ConsumeTraces(t.Context(), j.out.Traces()))
		require.NoError(t, b.sweepAll(t))
	}
	usual, _ := breakdowns(t, whole)
	left, excess := breakdowns(t, bare)
	require.Len(t, left, 1)
	assert.InDelta(t, 5, excess[100], 1e-9)
	require.Len(t, list, len(seconds)-1)
	for _, w := range list {
		n, trace := w.Iteration, spans.StepTraceID("run-1", w.Iteration)
		step := spans.SpanID(trace, "step")
		assert.Equal(t, trace, w.Trace)
		assert.Equal(t, spans.SpanID(trace, spans.SpanBreakdown, trace[:], step[:]), w.ID)
		assert.InDelta(t, seconds[n], w.Seconds, 1e-9)
		assert.InDelta(t, usual[n], w.Usual, 0)
		assert.Equal(t, []string{spans.WindowStep, "train"}, []string{w.Of, w.Service})
	}
}

func (b *bench) sweepAll(t *testing.T) error {
	t.Helper()
	b.sweep(t.Context(), b.clock, true)
	return b.Shutdown(t.Context())
}

// Live, steps without known parts get a breakdown once any step had parts.
func TestLiveSteps(t *testing.T) {
	b, j := newBench(t), newJob()
	for n := range int64(30) {
		trace := j.step(n, n*second, (n+1)*second)
		if n == 10 {
			j.part(trace, "data_loading", n*second, n*second+second/2)
		}
	}
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	usual, excess := breakdowns(t, b)
	assert.Len(t, usual, 20)
	assert.True(t, math.IsNaN(usual[12]))
	assert.InDelta(t, 1, usual[29], 1e-9)
	assert.Empty(t, excess)
	down := find(told(b.sink), "/breakdown@")
	assert.Contains(t, strings.Join(down, "\n"), "ml.step.time.unattributed=1")
}

// An evaluation without a clock of its own, logged behind the step in whose trace it is, took none of the step's time.
func TestEvaluationBehindAStep(t *testing.T) {
	b, j := offline(t), newJob()
	j.lasting([]float64{4, 4, 4, 4}, true)
	at, trace := int64(1_700_000_000)*second+8*second, spans.StepTraceID(j.run, 1)
	j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeDerived}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "evaluation"), Name: spans.SpanEvaluation, Kind: ptrace.SpanKindInternal, Start: at, End: at + 3*second, Source: spans.TimeSynthetic,
	})
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	require.NoError(t, b.sweepAll(t))
	down := strings.Join(find(told(b.sink), "/breakdown@"), "\n")
	assert.Equal(t, 4, strings.Count(down, "ml.step.time.unattributed=4"), down)
	assert.NotContains(t, down, "evaluation")
}

// The number of unjudged windows is logged at the end of a run.
func TestNotJudgedIsSaid(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	b, j := newBench(t), newJob()
	b.set.Logger = zap.New(core)
	for n := range int64(20) {
		j.part(j.step(n, n*second, (n+1)*second), "data_loading", n*second, n*second+second/2)
	}
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.sweep(t.Context(), b.clock, true)
	entries := logs.FilterMessageSnippet("none was slow").All()
	require.Len(t, entries, 1)
	assert.Equal(t, "map[judged:7 not_judged:13 run:run-1]", fmt.Sprint(entries[0].ContextMap()))
}
