package regimes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const seeds = 7

// job is a simulated attempt with known slow steps.
type job struct {
	*rand.Rand
	Attempt
	slow map[int]float64 // excess by step
}

// steps makes n steps of a base, each with its noise.
func steps(seed uint64, n int, base func(i int) float64, noise func(r *rand.Rand) float64) *job {
	j := &job{Rand: rand.New(rand.NewPCG(seed, 29)), slow: map[int]float64{}}
	for i := range n {
		j.Seconds = append(j.Seconds, base(i)*noise(j.Rand))
	}
	return j
}

// late makes a step slow by a share of its base.
func (j *job) late(i int, by float64) {
	if _, ok := j.slow[i]; !ok {
		j.slow[i] = by * j.Seconds[i]
		j.Seconds[i] += j.slow[i]
	}
}

// some makes count steps slow by 0.5 to 3 times their time, at random from a step on.
func (j *job) some(from, count int) *job {
	for len(j.slow) < count {
		j.late(from+j.IntN(len(j.Seconds)-from), 0.5+2.5*j.Float64())
	}
	return j
}

func flat(s float64) func(int) float64 { return func(int) float64 { return s } }

func lognormal(sigma float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Exp(sigma * r.NormFloat64()) }
}

// correlated is AR(1) noise.
func correlated(rho, sigma float64) func(r *rand.Rand) float64 {
	x, begun := 0.0, false
	return func(r *rand.Rand) float64 {
		if !begun {
			x, begun = sigma*r.NormFloat64(), true
		}
		x = rho*x + math.Sqrt(1-rho*rho)*sigma*r.NormFloat64()
		return math.Exp(x)
	}
}

// student has 3 degrees of freedom.
func student(scale float64) func(r *rand.Rand) float64 {
	return func(r *rand.Rand) float64 {
		chi := 0.0
		for range 3 {
			x := r.NormFloat64()
			chi += x * x
		}
		return max(0.2, 1+scale*r.NormFloat64()/math.Sqrt(chi/3))
	}
}

// scenarios are kinds of jobs. Those with "none slow" have no slow step.
var scenarios = map[string]func(seed uint64) *job{
	"14 steps, 2 slow":              func(s uint64) *job { return steps(s, 14, flat(2), lognormal(0.02)).some(1, 2) },
	"14 steps, none slow":           func(s uint64) *job { return steps(s, 14, flat(2), lognormal(0.05)) },
	"faults in steps 3 to 13":       func(s uint64) *job { j := steps(s, 200, flat(3), lognormal(0.03)); return within(j, 3, 13, 4) },
	"homogeneous, 1 %":              func(s uint64) *job { return steps(s, 300, flat(4), lognormal(0.01)) },
	"homogeneous, 10 %":             func(s uint64) *job { return steps(s, 300, flat(4), lognormal(0.1)) },
	"faults anywhere":               func(s uint64) *job { return steps(s, 300, flat(4), lognormal(0.03)).some(1, 20) },
	"one in eight, all of 2 s":      func(s uint64) *job { return constant(steps(s, 64, flat(4), lognormal(0.02)), 8) },
	"longer from half on":           func(s uint64) *job { return steps(s, 200, half(200), lognormal(0.03)) },
	"longer from half on, faults":   func(s uint64) *job { return steps(s, 200, half(200), lognormal(0.03)).some(1, 12) },
	"longer from half on, 30 steps": func(s uint64) *job { return steps(s, 30, half(30), lognormal(0.03)) },
	"half the ranks":                shrunk,
	"alternating lengths": func(s uint64) *job {
		return steps(s, 200, func(i int) float64 { return 1 + 2*float64(i%2) }, lognormal(0.03))
	},
	"alternating lengths, short": func(s uint64) *job {
		return steps(s, 15, func(i int) float64 { return 1 + 2*float64(i%2) }, lognormal(0.03))
	},
	"lengths of three kinds":     func(s uint64) *job { return lengths(s, 1, 2, 4) },
	"one length in five is long": func(s uint64) *job { return lengths(s, 1, 1, 1, 1, 3) },
	"lengths in blocks": func(s uint64) *job {
		return steps(s, 400, func(i int) float64 { return 1 + 2*float64(i/25%2) }, lognormal(0.03))
	},
	"ramp-up of the batch": func(s uint64) *job {
		return steps(s, 300, func(i int) float64 { return 1 + 0.25*float64(min(i/20, 8)) }, lognormal(0.03))
	},
	"ramp-up in small stages": func(s uint64) *job {
		return steps(s, 200, func(i int) float64 { return 1 + 0.1*float64(min(i/6, 16)) }, lognormal(0.02))
	},
	"drift of 20 %":          func(s uint64) *job { return steps(s, 200, drift(200, 0.2), lognormal(0.02)) },
	"drift of 20 %, faults":  func(s uint64) *job { return steps(s, 200, drift(200, 0.2), lognormal(0.02)).some(1, 10) },
	"drift of 200 %":         func(s uint64) *job { return steps(s, 100, drift(100, 2), lognormal(0.02)) },
	"heavy tails":            func(s uint64) *job { return steps(s, 400, flat(4), student(0.03)).clear(3, 10) },
	"heavy tails, none slow": func(s uint64) *job { return steps(s, 400, flat(4), student(0.03)) },
	"AR(1)":                  func(s uint64) *job { return steps(s, 400, flat(4), correlated(0.9, 0.02)) },
	"AR(1), faults":          func(s uint64) *job { return steps(s, 400, flat(4), correlated(0.9, 0.02)).some(1, 20) },
	"a burst of 10":          func(s uint64) *job { return bursting(s, 10) },
	"a burst of 25":          func(s uint64) *job { return bursting(s, 25) },
	"a burst of 40":          func(s uint64) *job { return bursting(s, 40) },
	"steps 3 to 13 all slow": func(s uint64) *job { return from(steps(s, 100, flat(4), lognormal(0.03)), 3, 14) },
	"slow from a step to the end": func(s uint64) *job {
		return steps(s, 100, func(i int) float64 { return 2 + 2*float64(i/80) }, lognormal(0.03))
	},
	"each tenth":             func(s uint64) *job { return tenth(s, 200) },
	"each tenth, 45 steps":   func(s uint64) *job { return tenth(s, 45) },
	"each tenth, and faults": func(s uint64) *job { return tenth(s, 200).some(1, 8) },
	"a first step of 60 s": func(s uint64) *job {
		j := steps(s, 100, flat(4), lognormal(0.03))
		j.Seconds[0] = 60
		return j.some(3, 5)
	},
	"a first step of 60 s, 14 steps": func(s uint64) *job {
		j := steps(s, 14, flat(4), lognormal(0.03))
		j.Seconds[0] = 60
		return j.some(3, 2)
	},
	"2 slow of 60,000": func(s uint64) *job { return steps(s, 60_000, flat(0.4), lognormal(0.02)).some(1, 2) },
	"whole seconds":    func(s uint64) *job { return rounded(steps(s, 300, flat(4.2), lognormal(0.02))) },
}

// clear makes some steps slow by a multiple of their time.
func (j *job) clear(by float64, count int) *job {
	for len(j.slow) < count {
		j.late(1+j.IntN(len(j.Seconds)-1), by)
	}
	return j
}

func half(n int) func(int) float64 {
	return func(i int) float64 {
		if i >= n/2 {
			return 3
		}
		return 2
	}
}

func drift(n int, by float64) func(int) float64 {
	return func(i int) float64 { return 4 * (1 + by*float64(i)/float64(n)) }
}

func within(j *job, first, last, count int) *job {
	for len(j.slow) < count {
		j.late(first+j.IntN(last-first+1), 0.6+j.Float64())
	}
	return j
}

func from(j *job, first, end int) *job {
	for i := first; i < end; i++ {
		j.late(i, 1)
	}
	return j
}

func bursting(seed uint64, length int) *job {
	j := steps(seed, 200, flat(4), lognormal(0.03))
	at := 30 + j.IntN(100)
	return from(j, at, at+length)
}

func constant(j *job, count int) *job {
	for len(j.slow) < count {
		i := 1 + j.IntN(len(j.Seconds)-1)
		j.late(i, 2/j.Seconds[i])
	}
	return j
}

func lengths(seed uint64, of ...float64) *job {
	r := rand.New(rand.NewPCG(seed, 3))
	return steps(seed, 300, func(int) float64 { return of[r.IntN(len(of))] }, lognormal(0.02))
}

// shrunk is a job that continues with half of its ranks, as its log shows.
func shrunk(seed uint64) *job {
	j := steps(seed, 120, func(i int) float64 { return 4 * (1 + float64(i/70)*0.9) }, lognormal(0.03))
	for i := range j.Seconds {
		j.Loads = append(j.Loads, Load{Ranks: 16 >> (i / 70)})
	}
	return j
}

func tenth(seed uint64, n int) *job {
	j := steps(seed, n, flat(4), lognormal(0.03))
	for i := 10; i < n; i += 10 {
		j.Seconds[i] += 10 + 0.5*j.NormFloat64()
	}
	return j
}

func rounded(j *job) *job {
	at, was := 0.3, 0.0
	for i, s := range j.Seconds {
		at += s
		j.Seconds[i], was = math.Floor(at)-was, math.Floor(at)
	}
	return j
}

// In all scenarios at least 98 % of the slow steps are found, and no other.
func TestScenarios(t *testing.T) {
	tails := map[string]int{"heavy tails": 4, "heavy tails, none slow": 4} // 1 %: steps of the tail
	all, found := 0, 0
	for name, make := range scenarios {
		missed, wrong := 0, 0
		for seed := range uint64(seeds) {
			j := make(seed)
			run, falsely := Judge(j.Attempt), 0
			require.Len(t, run.Steps, len(j.Seconds))
			for i, s := range run.Steps {
				_, slow := j.slow[i]
				switch {
				case slow && s.State == Slow:
					found++
					assert.InDelta(t, j.slow[i], j.Seconds[i]-s.Usual, 0.25*j.Seconds[i], "%s: step %d", name, i)
				case slow:
					missed++
				case s.State == Slow:
					falsely++
				}
				assert.NotEqual(t, Unknown, s.State, "%s: step %d", name, i)
			}
			all += len(j.slow)
			assert.LessOrEqual(t, falsely, tails[name], "%s, seed %d", name, seed)
			wrong += falsely
		}
		if missed+wrong > 0 {
			t.Logf("%s: %d missed, %d wrong", name, missed, wrong)
		}
	}
	t.Logf("%d of %d found in %d scenarios", found, all, len(scenarios))
	assert.GreaterOrEqual(t, float64(found), 0.98*float64(all))
}

// Lasting levels are segments, and nothing else is.
func TestSegments(t *testing.T) {
	for name, want := range map[string]string{
		"homogeneous, 1 %": "0-300 4", "faults anywhere": "0-300 4", "longer from half on": "0-100 2, 100-200 3", "longer from half on, 30 steps": "0-15 2, 15-30 3",
		"half the ranks": "0-70 4, 70-120 8", "drift of 20 %": "0-200 4", "heavy tails": "0-400 4", "AR(1)": "0-400 4",
		"a burst of 10": "0-200 4", "a burst of 25": "0-200 4", "a burst of 40": "0-200 4", "slow from a step to the end": "0-80 2, 80-100 4",
		"each tenth": "0-200 4", "2 slow of 60,000": "0-60000 0",
	} {
		for seed := range uint64(seeds) {
			var got strings.Builder
			for _, s := range Judge(scenarios[name](seed).Attempt).Segments {
				fmt.Fprintf(&got, ", %d-%d %.0f", s.From, s.To, math.RoundToEven(s.Level-0.01))
			}
			assert.Equal(t, ", "+want, got.String(), "%s, seed %d", name, seed)
		}
	}
}

// A fault of some steps in a row is no mixture of two lengths, however many the other steps are.
func TestStretch(t *testing.T) {
	for seed := range uint64(seeds) {
		for _, n := range []int{60, 80, 90} {
			run := Judge(steps(seed, n, func(i int) float64 {
				if i >= 30 && i < 30+n/6 {
					return 71
				}
				return 48
			}, lognormal(0.02)).Attempt)
			for i, s := range run.Steps {
				assert.Equal(t, i >= 30 && i < 30+n/6, s.State == Slow, "seed %d, step %d of %d", seed, i, n)
			}
		}
	}
}

// A level that is reached little by little, and stays, is a level of its own: no jump and no trend tells of the change.
func TestSlope(t *testing.T) {
	for seed := range uint64(seeds) {
		run := Judge(steps(seed, 400, func(i int) float64 { return 2 * (1 + 0.4*min(1, max(0, float64(i-150)/100))) }, lognormal(0.01)).Attempt)
		require.Len(t, run.Segments, 2, seed)
		assert.InDelta(t, 200, run.Segments[1].From, 25, seed)
		assert.InDelta(t, 2, run.Segments[0].Level, 0.05, seed)
		assert.InDelta(t, 2.8, run.Segments[1].Level, 0.05, seed)
	}
}

func TestTrend(t *testing.T) {
	for seed := range uint64(seeds) {
		for name := range scenarios {
			run := Judge(scenarios[name](seed).Attempt)
			switch trend := run.Segments[0].Trend; name {
			case "drift of 20 %", "drift of 20 %, faults":
				require.Len(t, run.Segments, 1)
				assert.InDelta(t, 0.2/1.1, trend, 0.03, name)
			case "drift of 200 %", "ramp-up in small stages", "ramp-up of the batch":
			default:
				assert.Zero(t, trend, "%s, seed %d", name, seed)
			}
		}
	}
}

// A period is reported with all of its seconds; the period's time is usual for its steps, and one of them may be slow.
func TestPeriod(t *testing.T) {
	for seed := range uint64(seeds) {
		j := tenth(seed, 200)
		j.Number = make([]int64, 200)
		for i := range j.Number {
			j.Number[i] = int64(i + 1000)
		}
		run := Judge(j.Attempt)
		require.Len(t, run.Periods, 1)
		p := run.Periods[0]
		assert.Equal(t, Period{Every: 10, Rest: 0, Slow: 19, Of: 19, All: 19, Usual: p.Usual, Limit: p.Limit, Excess: p.Excess}, p)
		assert.InDelta(t, 190, p.Excess, 6)
		assert.InDelta(t, 14, p.Usual, 0.5)
		assert.Equal(t, Periodic, run.Steps[50].State)
		assert.Equal(t, Usual, run.Steps[51].State)

		j.Seconds[50] += 30
		run = Judge(j.Attempt)
		assert.Equal(t, Slow, run.Steps[50].State)
		assert.InDelta(t, 14, run.Steps[50].Usual, 0.5)

		for name, f := range scenarios {
			if run := Judge(f(seed).Attempt); len(run.Periods) > 0 && name[:5] != "each " {
				t.Errorf("%s, seed %d: %+v", name, seed, run.Periods)
			}
		}
	}
}

// Long steps at even distances are a period, though in such noise no step is slow by itself. Long steps at other distances are no period.
func TestEvenlyLong(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var noise, even, odd Attempt
		for n := range 60 {
			x := 0.4 + math.Exp(rnd.NormFloat64()-1) // a shared machine
			noise.Seconds = append(noise.Seconds, x)
			even.Seconds = append(even.Seconds, x)
			odd.Seconds = append(odd.Seconds, x)
			if n%10 == 9 {
				even.Seconds[n], odd.Seconds[n] = 14+rnd.Float64(), 14+rnd.Float64()
			}
		}
		odd.Seconds[29], odd.Seconds[31] = 0.6, odd.Seconds[29]
		if slices.Max(noise.Seconds) < 9 {
			run := Judge(even)
			require.Len(t, run.Periods, 1, seed)
			assert.Equal(t, []int64{10, 9, 6, 6}, []int64{run.Periods[0].Every, run.Periods[0].Rest, int64(run.Periods[0].Slow), int64(run.Periods[0].Of)}, seed)
			assert.Empty(t, Judge(odd).Periods, seed)
		}
		assert.Empty(t, Judge(noise).Periods, seed)
	}
	// The real steps of a job with a pause after each tenth step, beside a load of 40 on two cores.
	seconds := []float64{
		3.2, 0.828, 0.423, 2.391, 1.628, 1.043, 1.294, 0.421, 0.598, 5.549, 2.366, 0.871, 3.408, 1.517, 1.93, 0.558, 2.405, 1.843, 0.531, 7.087,
		0.417, 0.723, 0.421, 1.233, 1.202, 0.619, 0.829, 0.428, 0.754, 5.61, 1.365, 0.501, 0.42, 0.501, 0.432, 0.428, 0.553, 0.483, 0.429, 5.49,
		0.908, 0.879, 0.515, 0.548, 0.421, 1.386, 1.618, 2.534, 1.221, 5.792, 0.77, 0.476, 0.553, 1.46, 0.594, 0.753, 0.597, 0.74, 1.5, 5.875,
	}
	run := Judge(Attempt{Seconds: seconds})
	require.Len(t, run.Periods, 1)
	assert.Equal(t, []int64{10, 9, 6}, []int64{run.Periods[0].Every, run.Periods[0].Rest, int64(run.Periods[0].Slow)})
	assert.InDelta(t, 30, run.Periods[0].Excess, 1)
}

// Three steps of a period that earlier steps had are no slow steps; without the earlier steps, and where one takes longer, each is.
func TestEarlierPeriod(t *testing.T) {
	of := Attempt{}
	for i := range 350 {
		of.Seconds, of.Number = append(of.Seconds, 1+0.001*float64(i%7)), append(of.Number, int64(i))
	}
	of.Seconds[100], of.Seconds[200], of.Seconds[300] = 4, 4.1, 9
	assert.Equal(t, []State{Slow, Slow, Slow}, []State{Judge(of).Steps[100].State, Judge(of).Steps[200].State, Judge(of).Steps[300].State})
	of.Earlier = []Period{{Every: 100, Rest: 50, Limit: 5}, {Every: 100, Limit: 5, Usual: 4}}
	run := Judge(of)
	assert.Equal(t, []State{Periodic, Periodic, Slow}, []State{run.Steps[100].State, run.Steps[200].State, run.Steps[300].State})
	assert.Equal(t, of.Earlier[1:], run.Periods)
}

// Two periods of one distance with equally many steps come in the order of their rests, each time.
func TestPeriodsOfOneDistance(t *testing.T) {
	j := steps(1, 400, flat(1), lognormal(0.01))
	for i := 3; i < 400; i += 20 {
		j.late(i, 1)
		j.late(i+8, 1)
	}
	for range 50 {
		run := Judge(j.Attempt)
		got := run.Periods
		require.Len(t, got, 2)
		assert.Equal(t, [4]int{0, 1, 0, 1}, [4]int{run.Steps[3].Period, run.Steps[11].Period, run.Steps[23].Period, run.Steps[31].Period})
		assert.Equal(t, [2]int64{3, 11}, [2]int64{got[0].Rest, got[1].Rest})
	}
}

// Warm-up steps have their own state, also after a restart.
func TestFirst(t *testing.T) {
	j := steps(1, 60, flat(4), lognormal(0.02))
	j.Seconds[0], j.Seconds[1], j.Seconds[30] = 60, 12, 45
	j.Starts = []int{30}
	run := Judge(j.Attempt)
	assert.Equal(t, []State{First, First, Usual}, []State{run.Steps[0].State, run.Steps[1].State, run.Steps[2].State})
	assert.Equal(t, First, run.Steps[30].State)
	assert.InDelta(t, 4, run.Steps[0].Usual, 0.2)
	j.Starts = nil
	assert.Equal(t, Slow, Judge(j.Attempt).Steps[30].State)
}

// Steps with alternating loads are compared with steps of the same load.
func TestLoads(t *testing.T) {
	j := steps(1, 200, flat(1), lognormal(0.02))
	for i := range j.Seconds {
		of := Load{Batch: 64}
		if i%8 == 3 {
			j.Seconds[i], of = 3*j.Seconds[i], Load{Batch: 192}
		}
		j.Loads = append(j.Loads, of)
	}
	j.Seconds[50], j.Seconds[51] = 2, 9 // of the small and of the large batch
	for i, s := range Judge(j.Attempt).Steps {
		assert.Equal(t, i == 50 || i == 51, s.State == Slow, "step %d", i)
	}
}

// Steps that cannot be judged are Unknown, and do not affect others.
func TestUnknown(t *testing.T) {
	assert.Empty(t, Judge(Attempt{}).Steps)
	bad := []float64{math.NaN(), 0, -1, math.Inf(1), math.Inf(-1)}
	run := Judge(Attempt{Seconds: bad, Starts: []int{-1, 99}})
	for i, s := range run.Steps {
		assert.Equal(t, Unknown, s.State)
		assert.True(t, math.IsNaN(s.Limit))
		assert.Empty(t, run.Neighbours(nil, i))
	}
	assert.Empty(t, run.Segments)
	run = Judge(Attempt{Seconds: []float64{1, 1, 1, 1, 1, 1, 9}})
	assert.Len(t, run.Segments, 1)
	assert.Equal(t, Unknown, run.Steps[6].State)

	j := steps(1, 100, flat(4), lognormal(0.02)).some(1, 5)
	for n, x := range bad {
		j.Seconds = slices.Insert(j.Seconds, 7*n, x)
	}
	found := 0
	for _, s := range Judge(j.Attempt).Steps {
		if s.State == Slow {
			found++
		}
	}
	assert.Equal(t, 5, found)
}

// Neighbours are on both sides, of one regime, and of no burst.
func TestNeighbours(t *testing.T) {
	j := from(steps(1, 400, half(400), lognormal(0.02)), 50, 80)
	run := Judge(j.Attempt)
	got := run.Neighbours(nil, 40)
	assert.Equal(t, 1, got[0])
	assert.Equal(t, 134, got[len(got)-1])
	assert.NotContains(t, got, 40)
	assert.NotContains(t, got, 60)
	assert.Equal(t, 199, slices.Max(run.Neighbours(nil, 190)))
	assert.Len(t, run.Neighbours(nil, 300), 2*near)
	assert.Len(t, run.Neighbours(nil, 60), 49+near+1)
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 250}, uint8(3))
	f.Add([]byte{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 90, 10, 10, 10, 10, 10, 10, 10, 10, 90, 90, 90, 90}, uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, loads uint8) {
		var a Attempt
		for i, x := range b {
			s := float64(x) / 10
			if x == 255 {
				s = math.NaN()
			}
			a.Seconds = append(a.Seconds, s)
			if loads > 0 {
				a.Loads = append(a.Loads, Load{Batch: int64(i) / int64(loads) % 3})
			}
		}
		run := Judge(a)
		at := 0
		for _, s := range run.Segments {
			if s.From != at || s.To <= s.From {
				t.Fatalf("segments %v", run.Segments)
			}
			at = s.To
		}
		for i, s := range run.Steps {
			if s.State == Slow && !(a.Seconds[i] > s.Limit && s.Limit > s.Usual) || s.State != Unknown && !(s.Usual >= 0) {
				t.Fatalf("step %d of %v: %+v", i, a.Seconds[i], s)
			}
			if len(run.Neighbours(nil, i)) > 2*near+1 {
				t.Fatal("too many neighbours")
			}
		}
	})
}

// A window after each replacement is what sorting makes of its values, also of equal ones.
func TestReplace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n < 40; n++ {
		values := make([]float64, n) // in order of time
		for i := range values {
			values[i] = float64(rng.IntN(n))
		}
		window := slices.Sorted(slices.Values(values))
		for range 3 * n {
			x := float64(rng.IntN(n))
			replace(window, values[0], x)
			values = append(values[1:], x)
			require.Equal(t, slices.Sorted(slices.Values(values)), window)
		}
	}
}

// The time of any attempt grows with its steps alone.
func BenchmarkJudge(b *testing.B) {
	for name, f := range map[string]func(int) float64{
		"flat": flat(4), "alternating": func(i int) float64 { return 1 + float64(i%2) }, "levels": func(i int) float64 { return 1 + float64(i/20%9) },
		"drift": drift(60_000, 3),
	} {
		j := steps(1, 60_000, f, lognormal(0.05))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Judge(j.Attempt)
			}
		})
	}
}

// The limit of rounded durations is above the next one, whether their upper half is wide or not.
func TestRoundedLimit(t *testing.T) {
	for _, tt := range []struct {
		of  []float64
		min float64
	}{
		{[]float64{4, 4, 4, 4, 4, 4, 4, 4, 5, 5}, 5},
		{[]float64{3, 3, 4, 4, 4, 4, 5, 5, 5, 5}, 5},
		{[]float64{0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.4, 0.4, 0.4}, 0.4},
	} {
		assert.Greater(t, Of(tt.of).Limit, tt.min, "%v", tt.of)
	}
	assert.InDelta(t, 4.4, Of([]float64{4, 4, 4, 4, 4, 4, 4, 4, 4, 5}).Limit, 1e-9, "a single longer one may be slow")
}
