package why

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
)

// whole is a finished job: its windows, and their verdicts.
type whole struct {
	*job
	h       *History
	windows []*Window
	said    []Verdict
	slow    map[int]bool
	told    int
}

func lognormal(r *rand.Rand) float64 { return math.Exp(0.02 * r.NormFloat64()) }

func finished(noise func(r *rand.Rand) float64) *whole {
	return &whole{job: newJob(noise), h: New(), slow: map[int]bool{}}
}

// step adds a window whose computing takes times as long.
func (w *whole) step(times float64, faults ...fault) *Window {
	x := w.window(faults...)
	b := x.Breakdown
	b.Duration += (times - 1) * b.Time[breakdown.Compute]
	b.Time[breakdown.Compute] *= times
	x.Number, x.Start = int64(w.job.step), int64(w.job.step)*100
	w.windows = append(w.windows, x)
	return x
}

// judge holds all windows, and takes their verdicts.
func (w *whole) judge(t *testing.T) {
	t.Helper()
	w.said = make([]Verdict, len(w.windows))
	once := make([]bool, len(w.windows))
	for i, x := range w.windows {
		w.h.Hold(x, func(v *Verdict, slow bool) {
			require.False(t, once[i])
			once[i], w.said[i] = true, *v
			w.told++
			if slow {
				w.slow[i] = true
			}
		})
	}
	w.h.Settle()
	require.Equal(t, len(w.windows), w.told)
	require.Zero(t, w.h.held)
}

// In a short job, and from the first steps on, slow steps are found with their cause.
func TestHoldShort(t *testing.T) {
	for _, steps := range []int{14, 200} {
		for seed := range uint64(7) {
			w := finished(tails(0.01))
			w.Rand = rand.New(rand.NewPCG(seed, 5))
			want := []int{3 + w.IntN(3), 7 + w.IntN(6)}
			for i := range steps {
				switch i {
				case want[0]:
					w.step(1, fault{breakdown.Wait, rank(9), 3})
				case want[1]:
					w.step(1, fault{kind: breakdown.DataLoading, seconds: 3})
				default:
					w.step(1)
				}
			}
			w.judge(t)
			require.Len(t, w.slow, 2, "%d steps, seed %d", steps, seed)
			for n, i := range want {
				v := w.said[i]
				require.True(t, w.slow[i])
				require.Len(t, v.Causes, 1, v.Sentence)
				assert.Equal(t, []breakdown.Kind{breakdown.Wait, breakdown.DataLoading}[n], v.Causes[0].Kind)
				assert.InDelta(t, 3, v.Excess, 0.5)
				assert.True(t, addsUp(t, v.Sentence), v.Sentence)
			}
			assert.Equal(t, rank(9), w.said[want[0]].Causes[0].Who)
			judged, unjudged := w.h.Judged("run-1")
			assert.EqualValues(t, steps, judged)
			assert.Zero(t, unjudged)
		}
	}
}

// A new level, alternating lengths and a drift make no step slow, also across the ends of chunks judged together; faults are found in each.
func TestHoldRegimes(t *testing.T) {
	const steps = 10_000
	for name, times := range map[string]func(i int) float64{
		"flat": func(int) float64 { return 1 }, "from half on": func(i int) float64 { return 1 + 0.8*float64(i/(steps/2)) },
		"alternating": func(i int) float64 { return 1 + 2*float64(i%2) }, "drift": func(i int) float64 { return 1 + 0.5*float64(i)/steps },
		"levels of 300 steps": func(i int) float64 { return 1 + float64(i/300%3) },
	} {
		w := finished(lognormal)
		want := map[int]bool{}
		for i := range steps {
			if i%97 == 13+i/1000 {
				want[i] = true
				w.step(times(i), fault{kind: breakdown.Get, seconds: 3 * (1 + times(i)) * (1 + w.Float64())})
				continue
			}
			w.step(times(i))
		}
		w.judge(t)
		if name == "alternating" { // a slowed step of the shorter kind looks like a step of the longer kind
			for i := range w.slow {
				assert.True(t, want[i], "%s: step %d", name, i)
			}
			continue
		}
		assert.Equal(t, want, w.slow, name)
		for i := range want {
			assert.Equal(t, breakdown.Get, w.said[i].Causes[0].Kind, "%s: %s", name, w.said[i].Sentence)
		}
	}
}

// A period without a cause makes no step slow; with a logged cause, each such step is slow.
func TestHoldPeriod(t *testing.T) {
	for kind, slow := range map[breakdown.Kind]int{breakdown.Unattributed: 0, breakdown.DataLoading: 19, breakdown.Checkpoint: 0} {
		w := finished(tails(0.01))
		for i := range 200 {
			if w.job.step%10 == 9 && i > 10 {
				w.step(1, fault{kind: kind, seconds: 10})
				continue
			}
			w.step(1)
		}
		w.judge(t)
		assert.InDelta(t, slow, len(w.slow), 1, kind.String())
		for i := range w.slow {
			assert.Equal(t, kind, w.said[i].Causes[0].Kind)
		}
	}
}

// A period that was found once makes none of its later steps slow, though some 4,000 windows are judged together and the last ones have too few of its steps.
func TestHoldPeriodToTheEnd(t *testing.T) {
	w := finished(tails(0.01))
	for range 10_500 {
		if n := w.job.step; n%1000 == 999 {
			w.step(1, fault{kind: breakdown.Unattributed, seconds: 10})
			continue
		}
		w.step(1)
	}
	w.judge(t)
	assert.Empty(t, w.slow)
}

// A checkpoint is compared with those on both sides: of ten, the only one with ten times the duration is slow, wherever it is.
func TestHoldCheckpoints(t *testing.T) {
	for long := range 10 {
		w := finished(tails(0.01))
		for i := range 100 {
			seconds := 4 * w.noise(w.Rand)
			switch {
			case i%10 != 9:
				w.step(1)
				continue
			case i/10 == long:
				seconds *= 10
			}
			w.step(1, fault{kind: breakdown.Checkpoint, seconds: seconds})
		}
		w.judge(t)
		require.Equal(t, map[int]bool{10*long + 9: true}, w.slow)
		v := w.said[10*long+9]
		assert.Equal(t, breakdown.Checkpoint, v.Causes[0].Kind)
		assert.InDelta(t, 36, v.Excess, 2)
	}
}

// Warm-up is named separately, also after a restart; too few windows of a kind are not judged; order does not matter.
func TestHoldStarts(t *testing.T) {
	w := finished(tails(0.01))
	for i := range 80 {
		times := 1.0
		if i == 0 || i == 50 {
			times = 20
		}
		x := w.step(times)
		if i >= 50 {
			x.Number -= 10
		}
	}
	for range 6 {
		w.step(1).Batch = 7
	}
	w.Shuffle(80, func(a, b int) { w.windows[a], w.windows[b] = w.windows[b], w.windows[a] })
	w.judge(t)
	assert.Empty(t, w.slow)
	assert.False(t, slices.ContainsFunc(w.said[80:], func(v Verdict) bool { return v.Judged }))
	judged, unjudged := w.h.Judged("run-1")
	assert.EqualValues(t, 80, judged)
	assert.EqualValues(t, 6, unjudged)
}

// For any number of kinds of windows, some thousands wait at most, and each gets one verdict.
func TestHoldBounds(t *testing.T) {
	w := finished(exactly)
	for i := range 9000 {
		w.step(1).Batch = int64(i % (2 * keys))
	}
	w.judge(t)
	assert.LessOrEqual(t, w.h.series.Len(), keys)
	w = finished(exactly)
	most := 0
	for range 9000 {
		w.h.Hold(w.step(1), func(*Verdict, bool) {})
		most = max(most, w.h.held)
	}
	assert.LessOrEqual(t, most, held)
	w.h.Settle()
	s, _ := w.h.series.Get(w.windows[0].Key)
	assert.LessOrEqual(t, len(s.held), around)
}

// A rank that is not among as many as are kept of a window was waited for no longer than the last of these; a shorter list is complete.
func TestAt(t *testing.T) {
	for n, want := range map[int]float64{few - 1: 0, few: 1, few + 1: 0, 2 * few: 1} {
		list := make([]originTime, n)
		for i := range list {
			list[i] = originTime{who: breakdown.Who{Rank: int64(i), HasRank: true}, seconds: float64(n - i)}
		}
		assert.InDelta(t, want, usualTime(list, originTime{who: breakdown.Who{Rank: 99, HasRank: true}}), 0, n)
		assert.InDelta(t, n, usualTime(list, list[0]), 0, n)
	}
}
