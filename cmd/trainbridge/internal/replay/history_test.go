package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

func timeNow() time.Time { return time.Now() }

const s15 = int64(interval)

// aStep adds a training step of one second, with its end in Unix ns and n tokens.
func aStep(b *spans.Batch, n int, end int64, source spans.TimeSource) {
	s := b.Add(spans.Resource{Service: "train", RunID: "r", Time: source}, spans.Span{
		Trace: pcommon.TraceID{1, byte(n >> 8), byte(n)}, ID: pcommon.SpanID{1}, Name: spans.SpanStep, Is: spans.KindStep,
		Start: end - 1e9, End: end, Source: source,
	})
	s.Attributes().PutInt(spans.AttrTokens, int64(n))
	s.Attributes().PutDouble(spans.AttrMFU, float64(n))
}

// allOf are the series of a history.
func allOf(t *testing.T, h *history) (all []*series) {
	t.Helper()
	require.NoError(t, h.each(t.Context(), func(s *series) error {
		all = append(all, s)
		return nil
	}))
	return all
}

// of returns the samples of a metric by time; the metric must have one series.
func of(t *testing.T, all []*series, name string) map[int64]float64 {
	t.Helper()
	var out map[int64]float64
	for _, s := range all {
		for _, l := range s.labels {
			if l == (label{"__name__", name}) {
				require.Nil(t, out, "two series of %s", name)
				out = map[int64]float64{}
				for i, x := range s.samples {
					require.True(t, i == 0 || s.samples[i-1].at < x.at, "in order of time")
					out[x.at] = x.value
				}
			}
		}
	}
	return out
}

// At the end of each interval a counter has all spans that ended before, whatever the order and the messages of spans, and however few train_metrics were open
// at once.
func TestHistory(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n, base = 300, 1_790_000_000_000_000_000 / s15 * s15
	ends := make([]int64, n)
	for i := range ends {
		ends[i] = base + rng.Int64N(100*s15)
	}
	for _, open := range []int{1, 3, openIntervals} {
		h := newHistory(open)
		order := rng.Perm(n)
		for len(order) > 0 {
			m := min(len(order), 1+rng.IntN(40))
			b := spans.NewBatch("test", "")
			for _, i := range order[:m] {
				aStep(b, i, ends[i], spans.TimeLogged)
			}
			require.NoError(t, h.take(t.Context(), b.Traces()))
			order = order[m:]
		}
		all := allOf(t, h)
		tokens, steps, mfu := of(t, all, "ml_train_tokens_total"), of(t, all, "ml_train_steps_total"), of(t, all, "ml_train_flop_utilization_ratio")
		require.NotEmpty(t, tokens)
		for k := int64(1); k <= 100; k++ {
			at := base + k*s15
			wantTokens, wantSteps, latest, value := 0.0, 0.0, int64(0), math.NaN()
			for i, end := range ends {
				if end < at {
					wantTokens += float64(i)
					wantSteps++
					if end > latest {
						latest, value = end, float64(i)
					}
				}
			}
			ms := at / int64(time.Millisecond)
			if wantSteps == 0 {
				continue
			}
			assert.InDelta(t, wantTokens, tokens[ms], 0)
			assert.InDelta(t, wantSteps, steps[ms], 0)
			if open == openIntervals { // a gauge counted in two goes has the later value
				assert.InDelta(t, value, mfu[ms], 0)
			}
		}
	}
}

// Spans with made-up times are in no metric, and are counted; details are not read.
func TestMadeUp(t *testing.T) {
	h, b := newHistory(openIntervals), spans.NewBatch("test", "")
	aStep(b, 1, 100*s15, spans.TimeSynthetic)
	aStep(b, 2, 100*s15, spans.TimeLogged)
	b.Add(spans.Resource{Service: "nccl"}, spans.Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{2}, Name: "rank 3", Is: spans.KindRank})
	require.NoError(t, h.take(t.Context(), b.Traces()))
	require.NoError(t, h.take(t.Context(), ptrace.NewTraces()))
	all := allOf(t, h)
	assert.Equal(t, int64(1), h.synthetic)
	assert.InDelta(t, 1, of(t, all, "ml_train_steps_total")[101*15_000], 0)
}

// A breakdown counts at the end of its window.
func TestBreakdown(t *testing.T) {
	h, b := newHistory(openIntervals), spans.NewBatch("test", "")
	s := b.Add(spans.Resource{Service: "train", RunID: "r", Time: spans.TimeLogged}, spans.Span{
		Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{1}, Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: 100 * s15, End: 100 * s15,
	})
	s.Attributes().PutStr(spans.AttrStepWindow, spans.WindowStep)
	s.Attributes().PutDouble(spans.StepTimePrefix+spans.PartGet, 40)
	s.Attributes().PutDouble(spans.StepTimePrefix+spans.PartGet+"x", 10)
	require.NoError(t, h.take(t.Context(), b.Traces()))
	all := allOf(t, h)
	for _, x := range all {
		assert.Equal(t, sample{103 * 15_000, 0}, x.samples[0], "50 s after its start")
		assert.Equal(t, int64(104*15_000), x.samples[1].at)
	}
	assert.Len(t, all, 2)
}

// A series goes on between its spans up to an hour, and for five minutes after the last one; then its end is marked.
func TestSpread(t *testing.T) {
	const k = 15_000
	for _, adds := range []bool{true, false} {
		s := series{adds: adds, samples: []sample{{10 * k, 1}, {12 * k, 2}, {1000 * k, 4}}}
		got := s.spread()
		values := map[int64]float64{}
		for i, x := range got {
			require.True(t, i == 0 || got[i-1].at < x.at)
			values[x.at/k] = x.value
		}
		sum := func(a, b float64) float64 {
			if adds {
				return a + b
			}
			return b
		}
		want := map[int64]float64{10: 1, 11: 1, 12: sum(1, 2), 32: sum(1, 2), 1000: sum(sum(1, 2), 4), 1020: sum(sum(1, 2), 4)}
		for at, v := range want {
			assert.InDelta(t, v, values[at], 0, at)
		}
		assert.Equal(t, math.Float64bits(staleNaN), math.Float64bits(values[33]))
		assert.Equal(t, math.Float64bits(staleNaN), math.Float64bits(values[1021]))
		n := 1 + 1 + 21 + 1 + 21 + 1
		if adds {
			assert.InDelta(t, 0, values[9], 0)
			n++
		}
		assert.Len(t, got, n)
	}
}

// BenchmarkHistory is the cost of metrics per span, beside reading and sending.
func BenchmarkHistory(b *testing.B) {
	batch := spans.NewBatch("bench", "")
	for i := range 8192 {
		aStep(batch, i, 1e18+int64(i)*1e8, spans.TimeLogged) // 150 a step
	}
	td := batch.Traces()
	h := newHistory(openIntervals)
	b.ReportAllocs()
	for b.Loop() {
		again := ptrace.NewTraces()
		td.CopyTo(again)
		if h.take(b.Context(), again) != nil {
			b.Fatal("refused")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/8192, "ns/span")
}

// The account of a run covers all of its steps, across intervals of 15 s: a checkpoint between two steps is no part of either. The place of a part in its step
// is made up, but not its duration. Parts of steps without a clock are in no metric.
func TestAccount(t *testing.T) {
	h := newHistory(openIntervals)
	const took = 10 * int64(time.Second)
	for i := range 30 {
		b := spans.NewBatch("test", "")
		end := 100*s15 + int64(i+1)*took
		for k, source := range []spans.TimeSource{spans.TimeLogged, spans.TimeSynthetic} {
			at := spans.Resource{Service: "train", RunID: "r", Time: source}
			id := pcommon.SpanID{byte(i + 1), byte(k)}
			b.Add(at, spans.Span{
				Trace: pcommon.TraceID{1, byte(i)}, ID: id, Name: spans.SpanStep, Is: spans.KindStep, Start: end - took, End: end, Source: source,
			}).Attributes().PutInt(spans.AttrIteration, int64(i))
			at.Time = spans.TimeSynthetic
			b.Add(at, spans.Span{
				Trace: pcommon.TraceID{1, byte(i)}, ID: pcommon.SpanID{byte(i + 1), 9, byte(k)}, Parent: id, Name: "save_checkpoint", Is: spans.KindPart,
				Start: end - took, End: end - took + took/10, Source: spans.TimeSynthetic,
			}).Attributes().PutStr(spans.AttrStage, "save_checkpoint")
		}
		require.NoError(t, h.take(t.Context(), b.Traces()))
	}
	all := allOf(t, h)
	states := map[string]float64{}
	for _, s := range all {
		for _, l := range s.labels {
			if l.name == "ml_run_state" {
				states[l.value] = s.samples[len(s.samples)-2].value // the last marks the end
				assert.Equal(t, (100*s15+30*took)/s15*15_000+15_000, s.samples[1].at, "when the run was over")
			}
		}
	}
	assert.InDeltaMapValues(t, map[string]float64{"step": 270, "checkpoint": 30}, states, 1e-6)
	assert.Equal(t, int64(60), h.synthetic)
	parts := of(t, all, "ml_train_stage_duration_seconds_count")
	assert.InDelta(t, 30, parts[(100*s15+30*took)/s15*15_000+15_000], 0)
}

// A breakdown counts at the end of its window, whatever a part lacks.
func TestBreakdownCountedAt(t *testing.T) {
	s := ptrace.NewSpan()
	s.SetEndTimestamp(1e9)
	s.Attributes().PutStr(spans.AttrKind, spans.KindBreakdown)
	s.Attributes().PutDouble(spans.StepTimePrefix+spans.PartCompute, 2)
	s.Attributes().PutDouble(spans.StepTimePrefix+spans.PartGet, math.NaN())
	assert.Equal(t, int64(3e9), newHistory(1).countedAt(s))
}
