package late

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLateness(t *testing.T) {
	for _, tt := range []struct {
		name      string
		durations []int64
		late      []int64
		want      Result
	}{
		{"none", nil, nil, Result{Last: -1}},
		{"one", []int64{100}, []int64{0}, Result{Last: -1}},
		{"equal", []int64{100, 100, 100}, []int64{0, 0, 0}, Result{Last: -1}},
		{"two", []int64{100, 130}, []int64{30, 0}, Result{Last: 0, Max: 30, Cost: 30}},
		// 20 is 80 behind the first and 50 behind the last but one (70): three ranks would have been spared 50 each.
		{"four", []int64{100, 70, 20, 95}, []int64{0, 30, 80, 5}, Result{Last: 2, Max: 80, Cost: 150}},
		{"two last", []int64{100, 20, 20, 95}, []int64{0, 80, 80, 5}, Result{Last: 1, Max: 80}},
		{"instant", []int64{0, 10}, []int64{10, 0}, Result{Last: 0, Max: 10, Cost: 10}},
		{"unknown", []int64{-1, 100, -1, 60}, []int64{-1, 0, -1, 40}, Result{Last: 3, Max: 40, Cost: 40}},
		{"one known", []int64{-1, 100}, []int64{-1, 0}, Result{Last: -1}},
		{"all unknown", []int64{-1, -1}, []int64{-1, -1}, Result{Last: -1}},
		{"absurd", []int64{math.MaxInt64, 0, math.MaxInt64}, []int64{0, math.MaxInt64, 0}, Result{Last: 1, Max: math.MaxInt64, Cost: 2 * (most / 3)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, late := make([]Arrival, len(tt.durations)), make([]int64, len(tt.durations))
			for i, d := range tt.durations {
				a[i] = Arrival{Rank: int32(i), Duration: d}
			}
			got := NewWindow(0).Observe(a, late)
			assert.Empty(t, got.Slow)
			got.Slow = nil
			assert.Equal(t, tt.want, got)
			assert.ElementsMatch(t, tt.late, late)
			assert.True(t, slices.Equal(tt.late, late))
		})
	}
}

// TestOthers compares the medians of the others with the medians of slices without the rank in question.
func TestOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		n := 2 + rng.IntN(12)
		a := make([]Arrival, n)
		for i := range a {
			a[i].Duration = rng.Int64N(10) // with ties
		}
		w := NewWindow(0)
		o := w.medians(a)
		for i := range a {
			var rest []float64
			for k := range a {
				if k != i {
					rest = append(rest, float64(a[k].Duration))
				}
			}
			slices.Sort(rest)
			median := (rest[(n-2)/2] + rest[(n-1)/2]) / 2
			require.InDelta(t, median-float64(a[i].Duration), o.lateness(a[i].Duration), 0, "%v, %d", a, i)
		}
	}
}

func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		v := make([]int64, 1+rng.IntN(70))
		for i := range v {
			v[i] = rng.Int64N(1 + rng.Int64N(100))
		}
		sorted := slices.Sorted(slices.Values(v))
		k := rng.IntN(len(v))
		selectNth(v, k)
		require.Equal(t, sorted[k], v[k])
		require.True(t, k == 0 || slices.Max(v[:k]) <= v[k])
		require.True(t, k == len(v)-1 || slices.Min(v[k+1:]) >= v[k])
	}
}

// steps runs a job and gives who was named, in order.
func (j *job) steps(n int) (named []int32) {
	for range n {
		j.next(func(s Slow) { named = append(named, s.Rank) })
	}
	return named
}

// TestSlow compares the verdict on a slow rank with the truth of the simulated job.
func TestSlow(t *testing.T) {
	for _, starts := range []bool{true, false} {
		j := (&job{ranks: 64, sigma: 0.005, perStep: 4, starts: starts, slow: map[int32]float64{17: 0.05}}).start(1)
		require.Equal(t, []int32{17}, j.steps(60))
		r := j.next(func(Slow) {})
		require.Len(t, r.Slow, 1)
		s := r.Slow[0]
		assert.InEpsilon(t, 0.05*j.work, s.Late, 0.1)
		assert.False(t, s.New)
		// The 63 others waited only for the slow rank from the arrival of the last of them on, some 2.4 σ after the median (the maximum of 63 normal variables), 50
		// times.
		assert.InEpsilon(t, 50*63*(0.05-2.4*0.005)*j.work, s.Cost, 0.1)
		score, ok := j.window.Score(17)
		require.Equal(t, starts, ok)
		if !starts {
			assert.True(t, math.IsNaN(s.Score))
			continue
		}
		assert.InDelta(t, score, s.Score, 0)
		assert.InDelta(t, 1/1.05, score, 0.005)
		for rank := range int32(64) {
			score, ok := j.window.Score(rank)
			require.True(t, ok)
			if rank != 17 {
				assert.InDelta(t, 1, score, 0.01)
			}
		}
	}
	_, ok := NewWindow(0).Score(3)
	assert.False(t, ok)
}

// TestScore computes by hand: work times of 100 and 200 ns are scores of 1 and 0.5, whatever the clocks show.
func TestScore(t *testing.T) {
	w := NewWindow(0)
	clock := [2]int64{1000, 5_000_000}
	late := make([]int64, 2)
	for i := range 12 {
		a := []Arrival{{Rank: 4, Start: clock[0] + 100, Duration: 150}, {Rank: 9, Start: clock[1] + 200, Duration: 50}}
		if i == 8 { // one hiccup of a rank is not its score
			a[0].Start += 1e6
		}
		w.Observe(a, late)
		for k := range a {
			clock[k] = a[k].Start + a[k].Duration
		}
	}
	for rank, want := range map[int32]float64{4: 1, 9: 0.5} {
		got, ok := w.Score(rank)
		assert.True(t, ok)
		assert.InDelta(t, want, got, 1e-9)
	}
}

func TestTwoSlow(t *testing.T) {
	for _, starts := range []bool{true, false} {
		for seed := range uint64(20) {
			j := (&job{ranks: 64, sigma: 0.01, perStep: 2, starts: starts, slow: map[int32]float64{3: 0.05, 40: 0.08}}).start(seed)
			named := j.steps(20)
			slices.Sort(named)
			require.Equal(t, []int32{3, 40}, named)
			j.steps(20)
			r := j.next(func(Slow) {})
			require.Len(t, r.Slow, 2)
			assert.Equal(t, int32(40), r.Slow[0].Rank, "worst first")
			assert.Greater(t, r.Slow[0].Late, r.Slow[1].Late)
			assert.Greater(t, r.Slow[0].Cost, r.Slow[1].Cost)
		}
	}
}

// TestRecovery: the name is taken back within 30 steps, not given again, and comes back with a second bad time.
func TestRecovery(t *testing.T) {
	for _, starts := range []bool{true, false} {
		for seed := range uint64(20) {
			j := (&job{ranks: 64, sigma: 0.01, starts: starts, slow: map[int32]float64{5: 0.05}, from: 30, until: 100}).start(seed)
			require.Equal(t, []int32{5}, j.steps(100))
			over := 0
			for range 30 {
				r := j.next(func(Slow) { t.Error("named anew") })
				if over += len(r.Over); len(r.Over) > 0 {
					require.Equal(t, []int32{5}, r.Over)
				}
				require.Equal(t, over == 0, len(r.Slow) == 1, "it is over where it is not named any more")
			}
			require.Equal(t, 1, over, "seed %d", seed)
			require.Empty(t, j.steps(200))
			j.from, j.until = j.step, 0
			require.Equal(t, []int32{5}, j.steps(20))
		}
	}
}

// TestBetween: a slightly slow rank is not named; a named rank that gets a little better stays named, without being named anew.
func TestBetween(t *testing.T) {
	j := (&job{ranks: 64, sigma: 0.003, starts: true, slow: map[int32]float64{5: 0.01}}).start(1)
	require.Empty(t, j.steps(2000))
	j.slow[5] = 0.05
	require.Equal(t, []int32{5}, j.steps(20))
	j.slow[5] = 0.015
	require.Empty(t, j.steps(2000), "not named again")
	require.Len(t, j.next(func(Slow) {}).Slow, 1, "still is")
}

// TestPartial leaves out records: a collective with less than half of the ranks has no evidence, a fuller one has.
func TestPartial(t *testing.T) {
	for _, tt := range []struct {
		share float64
		named bool
	}{{0.3, false}, {0.8, true}} {
		j := (&job{ranks: 64, sigma: 0.005, slow: map[int32]float64{5: 0.05}}).start(1)
		j.from = 10
		require.Empty(t, j.steps(10))
		j.keep = func(int) bool { return j.rng.Float64() < tt.share }
		got := j.steps(40)
		if tt.named {
			assert.Equal(t, []int32{5}, got)
		} else {
			assert.Empty(t, got)
		}
	}
}

// TestComeAndGo: half of the ranks leave and others come, as when a job grows again after a failure. The gone ones are not named any more.
func TestComeAndGo(t *testing.T) {
	j := (&job{ranks: 64, sigma: 0.005, starts: true, slow: map[int32]float64{5: 0.05, 45: 0.05}}).start(1)
	j.keep = func(rank int) bool { return rank < 32 }
	require.Equal(t, []int32{5}, j.steps(30))
	j.keep = func(rank int) bool { return rank >= 16 && rank < 64 }
	require.Equal(t, []int32{45}, j.steps(DefaultSize+5))
	r := j.next(func(Slow) {})
	require.Len(t, r.Slow, 1)
	j.keep = nil
	require.Equal(t, []int32{5}, j.steps(30), "as new")
}

// TestBounds: neither many ranks nor odd rank numbers take more room than promised.
func TestBounds(t *testing.T) {
	w := NewWindow(1 << 30)
	a, late := make([]Arrival, 2*maxRanks), make([]int64, 2*maxRanks)
	for i := range a {
		a[i] = Arrival{Rank: int32(i * 1000), Duration: int64(1000 + i)}
	}
	for range 3 {
		r := w.Observe(a, late)
		require.Equal(t, 0, r.Last)
	}
	assert.Len(t, w.ranks, maxRanks)
	assert.Len(t, w.index, maxRanks)
	assert.LessOrEqual(t, cap(w.rings), 2*maxRanks*maxSize)

	w = NewWindow(1)
	twice := []Arrival{{Rank: 1, Duration: 10}, {Rank: 1, Duration: 20}, {Rank: -1, Duration: 30}}
	for range 30 {
		w.Observe(twice, late[:3])
	}
	assert.Len(t, w.ranks, 2)
}

// TestDeterministic runs twice: the results of a Window depend only on its input, but not on the order of the ranks, nor on the times of their clocks.
func TestDeterministic(t *testing.T) {
	type said struct {
		max, cost int64
		slow      Slow
	}
	run := func(change func([]Arrival)) (all []said) {
		j := (&job{ranks: 16, sigma: 0.01, perStep: 3, starts: true, hiccup: 0.01, slow: map[int32]float64{5: 0.1}}).start(3)
		j.change = change
		for range 50 {
			r := j.next(func(Slow) {})
			s := said{max: r.Max, cost: r.Cost}
			if len(r.Slow) > 0 {
				s.slow = r.Slow[0]
			}
			all = append(all, s)
		}
		return all
	}
	want := run(func([]Arrival) {})
	require.Equal(t, int32(5), want[49].slow.Rank)
	for name, change := range map[string]func([]Arrival){
		"again":    func([]Arrival) {},
		"reversed": slices.Reverse[[]Arrival],
		"other clocks": func(a []Arrival) {
			for i := range a {
				a[i].Start += int64(a[i].Rank) * 3e9
			}
		},
	} {
		assert.True(t, slices.Equal(want, run(change)), name)
	}
}

func TestAllocations(t *testing.T) {
	j := (&job{ranks: 64, sigma: 0.01, perStep: 4, starts: true, slow: map[int32]float64{5: 0.05}}).start(1)
	j.steps(100)
	assert.Zero(t, testing.AllocsPerRun(100, func() { j.window.Observe(j.a, j.late) }))
}

// FuzzObserve observes random arrivals: no panic, known lateness is never negative, and a single rank has none; scores are within 0 and 1.
func FuzzObserve(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz0123456789"), uint8(3), int64(1))
	f.Add([]byte{0, 255, 255, 255, 255, 255, 255, 255, 127, 1, 0, 0, 0, 0, 0, 0, 0, 128, 2, 9}, uint8(2), int64(math.MaxInt64/256))
	f.Fuzz(func(t *testing.T, in []byte, ranks uint8, scale int64) {
		w := NewWindow(int(ranks))
		n := int(ranks%8) + 1
		a, late := make([]Arrival, n), make([]int64, n)
		for len(in) >= n*5 {
			for i := range a {
				v := in[i*5:]
				a[i] = Arrival{Rank: int32(int8(v[0])), Duration: int64(binary.LittleEndian.Uint16(v[1:])) * scale, Start: int64(binary.LittleEndian.Uint16(v[3:])) * scale}
			}
			in = in[n*5:]
			r := w.Observe(a, late)
			require.GreaterOrEqual(t, r.Cost, int64(0))
			zero := false
			for i := range a {
				require.Equal(t, a[i].Duration < 0, late[i] < 0)
				zero = zero || late[i] == 0
				require.LessOrEqual(t, late[i], max(r.Max, 0))
				if score, ok := w.Score(a[i].Rank); ok {
					require.True(t, score >= 0 && score <= 1)
				}
			}
			if r.Last >= 0 {
				require.Equal(t, r.Max, late[r.Last])
				require.True(t, zero)
			}
			for _, s := range r.Slow {
				require.GreaterOrEqual(t, s.Cost, int64(0))
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	for _, bench := range []struct {
		name string
		job  job
	}{
		{"64 ranks", job{ranks: 64, sigma: 0.01, starts: true}},
		{"64 ranks, one slow", job{ranks: 64, sigma: 0.01, starts: true, slow: map[int32]float64{5: 0.05}}},
		{"64 ranks, no times", job{ranks: 64, sigma: 0.01}},
		{"1024 ranks", job{ranks: 1024, sigma: 0.01, starts: true}},
		{"4096 ranks", job{ranks: 4096, sigma: 0.01, starts: true}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			j := bench.job.start(1)
			j.steps(60)
			// Collectives made beforehand: simulating the job takes longer than the measured code.
			var all [16][]Arrival
			window := j.window
			for i := range all {
				j.steps(1)
				all[i] = slices.Clone(j.a)
			}
			step := all[15][0].Start - all[0][0].Start + int64(j.work)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				a := all[n%16]
				window.Observe(a, j.late)
				for i := range a {
					if a[i].Start > 0 {
						a[i].Start += step
					}
				}
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.job.ranks), "ns/rank")
		})
	}
}
