package steps

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// rankedStep makes the span of a step of 1 s with the compute time of each rank, as the receivers do.
func rankedStep(b *spans.Batch, name string, n int, seconds []float64) {
	trace := spans.StepTraceID("run", int64(n))
	s := b.Add(spans.Resource{Service: "job", RunID: "run"}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, name, []byte("megatron")), Name: name,
		Start: int64(n) * 1e9, End: int64(n+1) * 1e9,
	})
	ranks := make([]int, len(seconds))
	for i := range ranks {
		ranks[i] = i
	}
	slices.SortFunc(ranks, func(a, b int) int { return cmp.Compare(seconds[b], seconds[a]) })
	slowest, usual := seconds[ranks[0]], (seconds[ranks[1+(len(ranks)-2)/2]]+seconds[ranks[1+(len(ranks)-1)/2]])/2
	m := s.Attributes()
	m.PutStr(spans.AttrSource, "megatron")
	m.PutInt(spans.AttrIteration, int64(n))
	m.PutDouble(spans.AttrStepDuration, 1)
	m.PutInt(spans.AttrRankSlowest, int64(ranks[0]))
	m.PutStr(spans.AttrRankSlowestStage, "forward-compute")
	m.PutInt(spans.AttrRankSlowestPeers, int64(len(ranks)-1))
	m.PutDouble(spans.AttrRankSlowestDuration, slowest)
	m.PutDouble(spans.AttrRankSlowestPeersDuration, usual)
	behind := m.PutEmptySlice(spans.AttrRanksBehind)
	for _, r := range ranks {
		if seconds[r]-usual >= (slowest-usual)/2 && behind.Len() < 16 {
			behind.AppendEmpty().SetInt(int64(r))
		}
	}
}

// slowRankVerdicts are the verdicts about n records: "record: sentence".
func slowRankVerdicts(t *testing.T, name string, n int, seconds func(n int) []float64) (got []string) {
	t.Helper()
	p, _ := newTest(t)
	for i := 1; i <= n; i++ {
		var reasons [2]string
		for again := range reasons { // a batch sent again
			b := spans.NewBatch("test", "")
			rankedStep(b, name, i, seconds(i))
			td := b.Traces()
			perftest.Judge(p, td)
			s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			for _, e := range s.Events().All() {
				if v, _ := e.Attributes().Get(spans.AttrVerdictName); v.Str() == spans.VerdictRankSlow {
					reason, _ := e.Attributes().Get(spans.AttrVerdictReason)
					reasons[again] = reason.Str()
					assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
				}
			}
		}
		require.Equal(t, reasons[0], reasons[1], i)
		if reasons[0] != "" {
			got = append(got, fmt.Sprintf("%d: %s", i, reasons[0]))
		}
	}
	return got
}

const rankAdvice = " All others wait. Check the clock, temperature and errors of its GPU, its host, and its share of the work (experts, sequence lengths)."

func TestSlowRank(t *testing.T) {
	for name, tt := range map[string]struct {
		seconds func(n int) []float64
		want    []string
	}{
		"always": {func(int) []float64 { return []float64{0.4, 0.41, 0.6, 0.39} }, []string{
			"10: Rank 2 computed for 600 ms, 50% longer than the median of the 3 other ranks of its pipeline stage, mostly in forward-compute: " +
				"slow in 9 of the last 9 records." + rankAdvice,
			"110: Rank 2 computed for 600 ms, 50% longer than the median of the 3 other ranks of its pipeline stage, mostly in forward-compute: " +
				"slow in 10 of the last 10 records." + rankAdvice + " True of 100 of the last 100 records.",
		}},
		"two that share each operation": {func(n int) []float64 { return []float64{0.4, 0.4, 0.6 + 0.01*float64(n%2), 0.6, 0.4, 0.4, 0.4, 0.4} }, []string{
			"10: Rank 2 and 1 more computed for 600 ms, 50% longer than the median of the 7 other ranks of its pipeline stage, mostly in " +
				"forward-compute: slow in 9 of the last 9 records." + rankAdvice,
		}},
		"of two": {
			func(int) []float64 { return []float64{0.4, 0.5} },
			[]string{"10: Rank 1 computed for 500 ms, 25% longer than the fastest, mostly in forward-compute: slow in 9 of the last 9 " +
				"records." + rankAdvice},
		},
		"another each time":  {func(n int) []float64 { s := []float64{0.4, 0.4, 0.4, 0.4}; s[n%4] = 0.6; return s }, nil},
		"every other time":   {func(n int) []float64 { return []float64{0.4, 0.4, 0.4 + 0.2*float64(n%2), 0.4} }, nil},
		"a little":           {func(int) []float64 { return []float64{0.4, 0.4, 0.43, 0.4} }, nil},
		"of what is nothing": {func(int) []float64 { return []float64{0.004, 0.004, 0.008, 0.004} }, nil},
		"for a while":        {func(n int) []float64 { return []float64{0.4, 0.4, 0.4 + 0.2*float64(n/8%2), 0.4} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := slowRankVerdicts(t, spans.SpanStep, 120, tt.seconds)
			if len(tt.want) == 1 {
				got = got[:min(1, len(got))]
			}
			assert.Equal(t, tt.want, got)
		})
	}
	assert.Len(t, slowRankVerdicts(t, spans.SpanRanks, 50, func(int) []float64 { return []float64{0.4, 0.6} }), 1, "a report")
}

// Healthy ranks differ by noise only.
func TestNoSlowRankByChance(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, noise := range noises {
		for _, world := range []int{2, 4, 64} {
			t.Run(fmt.Sprint(name, " ", world), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(world), 5))
				assert.Empty(t, slowRankVerdicts(t, spans.SpanStep, 1000, func(n int) []float64 {
					s := make([]float64, world)
					for i := range s {
						s[i] = 0.5 * noise(rng, n)
					}
					return s
				}))
			})
		}
	}
}
