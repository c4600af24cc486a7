package steps

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// noises are models of a healthy step's time, relative to 1.
var noises = map[string]func(*rand.Rand, int) float64{
	"normal 2%":    func(r *rand.Rand, _ int) float64 { return 1 + 0.02*r.NormFloat64() },
	"lognormal 5%": func(r *rand.Rand, _ int) float64 { return math.Exp(0.05 * r.NormFloat64()) },
	"uniform 10%":  func(r *rand.Rand, _ int) float64 { return 0.9 + 0.2*r.Float64() },
	"gamma 10%": func(r *rand.Rand, _ int) float64 { // a queue's long tail: the sum of 100 exponential times
		x := 0.0
		for range 100 {
			x += r.ExpFloat64()
		}
		return x / 100
	},
	"steady":           func(*rand.Rand, int) float64 { return 1 },
	"printed coarsely": func(r *rand.Rand, _ int) float64 { return printed(1+0.02*r.NormFloat64(), 1) },
	"daily wave":       func(r *rand.Rand, i int) float64 { return 1 + 0.03*math.Sin(float64(i)/500) + 0.01*r.NormFloat64() },
}

// run judges n steps and returns the iterations of each verdict. fault changes a step's time and loss.
func run(t *testing.T, seed uint64, n int, noise func(*rand.Rand, int) float64, throughput bool,
	fault func(i int, seconds, loss float64) (float64, float64),
) map[string][]int {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	p, _ := newTest(t)
	said := map[string][]int{}
	for from := 1; from <= n; from += 100 {
		b := spans.NewBatch("test", "")
		for i := from; i < from+100; i++ {
			seconds, loss := max(noise(rng, i), 0.01), perftest.HealthyLoss(rng, i)
			if i == 1 {
				seconds *= 8 // compiling
			}
			if fault != nil {
				seconds, loss = fault(i, seconds, loss)
			}
			a := attrs{spans.AttrLoss: loss}
			if throughput {
				a[spans.AttrSampleThroughput], a[spans.AttrStepDuration] = 512/seconds, nil
			}
			perftest.AddStep(b, perftest.Job, int64(i), seconds, a)
		}
		td := b.Traces()
		perftest.Judge(p, td)
		for i, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			for _, v := range perftest.Verdicts(s) {
				said[v] = append(said[v], from+i)
			}
		}
	}
	return said
}

// TestNoFalseAlarm: 10,000 healthy steps of each noise, for several seeds, by step time and by throughput.
func TestNoFalseAlarm(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, noise := range noises {
		for seed := range uint64(5) {
			assert.Empty(t, run(t, seed, 10_000, noise, seed%2 == 1, nil), "%s, seed %d", name, seed)
		}
	}
}

// TestPeriodicCheckpoints: steps slowed by periodic checkpoints are normal for the run: said twice, then no more.
func TestPeriodicCheckpoints(t *testing.T) {
	for _, every := range []int{25, 50, 250, 1000} {
		said := run(t, 3, 10_000, noises["normal 2%"], false, func(i int, seconds, loss float64) (float64, float64) {
			if i%every == 0 {
				seconds *= 3
			}
			return seconds, loss
		})
		assert.Equal(t, []string{spans.VerdictThroughputLow}, keys(said))
		assert.Len(t, said[spans.VerdictThroughputLow], 2, "every %d", every)
	}
}

func keys(m map[string][]int) (names []string) {
	for k := range m {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func TestFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, noise := range noises {
		for seed := range uint64(5) {
			t.Run(fmt.Sprintf("%s %d", name, seed), func(t *testing.T) {
				said := run(t, seed, 3000, noise, seed%2 == 1, func(i int, seconds, loss float64) (float64, float64) {
					switch {
					case i == 777 || i == 790 || i == 1000: // stalls
						seconds *= 2.5
					case i >= 1500: // a device is throttled from here on
						seconds *= 1.35
					}
					switch i {
					case 1200, 1201, 1202:
						loss *= 3
					case 1300:
						loss = math.NaN()
					case 1301:
						loss = math.Inf(1)
					}
					return seconds, loss
				})
				low := said[spans.VerdictThroughputLow]
				require.GreaterOrEqual(t, len(low), 3)
				assert.Equal(t, []int{777, 790, 1000}, low[:3])
				for _, i := range low[3:] {
					assert.GreaterOrEqual(t, i, 1500)
					assert.Less(t, i, 1560)
				}
				slow := said[spans.VerdictSlowdown]
				require.NotEmpty(t, slow)
				assert.Greater(t, slow[0], 1500)
				assert.Less(t, slow[0], 1570, "said when half of the window is slow")
				for i := 1; i < len(slow); i++ {
					assert.GreaterOrEqual(t, slow[i]-slow[i-1], 100, "once per window")
				}
				assert.GreaterOrEqual(t, len(slow), 12, "for as long as it lasts")
				assert.Equal(t, []int{1200}, said[spans.VerdictLossSpike], "said at its start")
				assert.Equal(t, []int{1300, 1301}, said[spans.VerdictLossNotFinite])
				assert.Len(t, said, 4)
			})
		}
	}
}

// TestSlowCreep: of 0.01 % slowdown per step no step stands out, but the baseline finds the creep.
func TestSlowCreep(t *testing.T) {
	said := run(t, 1, 4000, noises["normal 2%"], false, func(i int, seconds, loss float64) (float64, float64) {
		return seconds * (1 + 0.0001*float64(i)), loss
	})
	assert.Equal(t, []string{spans.VerdictSlowdown}, keys(said))
	assert.InDelta(t, 1100, said[spans.VerdictSlowdown][0], 250)
}

func TestWarmUp(t *testing.T) {
	// A run that starts slowly, returns to a checkpoint at 500 (with another slow first step), doubles its batch at 800, and has half of its ranks from 1000
	// on.
	p, _ := newTest(t)
	var said []string
	step := func(i int64, id int, seconds float64, batch, world int64) {
		b := spans.NewBatch("test", "")
		s := perftest.AddStep(b, perftest.Job, i, seconds, attrs{spans.AttrBatchSize: batch, spans.AttrWorldSize: world})
		s.SetSpanID(perftest.SpanID(id))
		perftest.Judge(p, b.Traces())
		said = append(said, perftest.Verdicts(s)...)
	}
	for i := range int64(500) {
		seconds := 1 + 0.001*float64(i%5)
		if i <= 1 {
			seconds = 20
		}
		step(i, int(i)+1, seconds, 32, 16)
	}
	for i := int64(400); i < 1200; i++ {
		seconds, batch := 1+0.001*float64(i%5), int64(32)
		if i == 400 {
			seconds = 15
		}
		world := int64(16)
		if i >= 800 {
			seconds, batch = 2*seconds, 64
		}
		if i >= 1000 {
			seconds, world = 2*seconds, 8
		}
		step(i, int(i)+10_000, seconds, batch, world)
	}
	assert.Empty(t, said)
}

func TestSpeedReasons(t *testing.T) {
	p, _ := newTest(t, func(c *Config) { c.Window, c.MinSamples = 20, 10 })
	var texts []string
	var last [2]float64
	for i := range int64(60) {
		seconds, loss := 1.0, 2.0
		switch {
		case i == 30:
			seconds, loss = 4, 5
		case i > 40:
			seconds = 1.15
		}
		b := spans.NewBatch("test", "")
		s := perftest.AddStep(b, perftest.Job, i, seconds, attrs{spans.AttrLoss: loss})
		perftest.Judge(p, b.Traces())
		texts = append(texts, perftest.Reasons(s)...)
		for _, e := range s.Events().All() {
			v, _ := e.Attributes().Get(spans.AttrVerdictValue)
			th, _ := e.Attributes().Get(spans.AttrVerdictThreshold)
			last = [2]float64{v.Double(), th.Double()}
		}
	}
	assert.Equal(t, []string{
		"The loss rose to 5; the median of the last 20 is 2, the limit 2.2. Check the data of this step, the gradient " +
			"norm and the learning rate.",
		"Step 30 took 4 s; usual is 1 s. Check data loading, the network, and whether a checkpoint or an evaluation ran.",
		"The run has slowed down: 1.15 s, at best 1 s (medians of 20); steps take 15% longer. Check for a throttled " +
			"device, other jobs on the network or the storage, and memory fragmentation.",
	}, texts)
	assert.InDelta(t, 1.15, last[0], 1e-12)
	assert.InDelta(t, 1.1, last[1], 1e-12)
}

// TestTokensOfSteps: completions of reinforcement learning grow, and steps with them. A step is slow, and the run has slowed down, only by tokens per second.
func TestTokensOfSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens func(seconds float64) int64
		want   []string
	}{
		"as many per second": {func(seconds float64) int64 { return int64(2000 * seconds) }, nil},
		"as many per step":   {func(float64) int64 { return 20_000 }, []string{spans.VerdictSlowdown, spans.VerdictThroughputLow}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTest(t, func(c *Config) { c.Window, c.MinSamples = 20, 10 })
			said := map[string]bool{}
			for i := range int64(200) {
				seconds := 10 + 0.1*float64(i) + 0.05*float64(i%7)
				if i == 30 {
					seconds = 40
				}
				b := spans.NewBatch("test", "")
				s := perftest.AddStep(b, perftest.Job, i, seconds, attrs{spans.AttrTokens: tt.tokens(seconds)})
				perftest.Judge(p, b.Traces())
				for _, v := range perftest.Verdicts(s) {
					said[v] = true
				}
			}
			assert.ElementsMatch(t, tt.want, slices.Collect(maps.Keys(said)))
		})
	}
}

func TestLossNotFinite(t *testing.T) {
	p, _ := newTest(t)
	for _, loss := range []any{"NaN", "nan", "+Inf", "-Inf", "Infinity", math.NaN(), math.Inf(-1)} {
		s := oneStep(t, p, perftest.Job, 1, attrs{spans.AttrLoss: loss})
		assert.Equal(t, []string{spans.VerdictLossNotFinite}, perftest.Verdicts(s), loss)
		assert.Equal(t, spans.SeverityBad, perftest.Severity(s))
		_, has := s.Events().At(0).Attributes().Get(spans.AttrVerdictValue)
		assert.False(t, has, "no NaN in an attribute")
	}
	for _, loss := range []any{"high", 2.5, int64(3), true} {
		assert.Empty(t, perftest.Verdicts(oneStep(t, p, perftest.Job, 1, attrs{spans.AttrLoss: loss})), loss)
	}
}

// TestLossOfAnotherHost: logs of hosts are read one behind the other, without ranks. Losses of the beginning are no spikes behind those of the end.
func TestLossOfAnotherHost(t *testing.T) {
	p, _ := newTest(t)
	for host := range int64(3) {
		for i := int64(1); i <= 300; i++ {
			loss := 2 + 5*math.Exp(-float64(i)/50)
			if i == 290 {
				loss = 9
			}
			b := spans.NewBatch("test", "")
			s := perftest.AddStep(b, perftest.Job, 1000*host+i, 1, attrs{spans.AttrIteration: i, spans.AttrLoss: loss})
			perftest.Judge(p, b.Traces())
			assert.Equal(t, i == 290, slices.Contains(perftest.Verdicts(s), spans.VerdictLossSpike), i)
		}
	}
}

func TestMFULow(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(perftest.Aquila))
	s := oneStep(t, p, perftest.Job, 2, nil)
	assert.Equal(t, []string{spans.VerdictMFULow}, perftest.Verdicts(s))
	assert.Equal(t, []string{"MFU is 17.8%: 176 of 989 TFLOP/s per device; the limit is 30%. Check data loading, the micro batch size, exposed " +
		"communication and the pipeline bubble."}, perftest.Reasons(s))
	assert.Empty(t, perftest.Verdicts(oneStep(t, p, perftest.Job, 0.5, nil)))
	assert.Empty(t, perftest.Verdicts(oneStep(t, p, perftest.Job, 2, attrs{spans.AttrIteration: int64(1)})), "the first iteration compiles")
	q, _ := newTest(t, onH100)
	assert.Contains(t, perftest.Reasons(oneStep(t, q, perftest.Job, 2, attrs{spans.AttrDeviceFlopThroughputReported: 100e12}))[0],
		"per device, as logged; the limit")
}

// TestSeriesAgainstOracle compares the incrementally sorted values with a full sort.
func TestSeriesAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{10, 11, 100} {
		var s series
		var all []float64
		for i := range 1000 {
			x := math.Round(20*rng.NormFloat64()) / 4 // with ties
			s.push(uint64(i), x, size)
			all = append(all, x)
			want := slices.Clone(all[max(0, len(all)-size):])
			slices.Sort(want)
			s.sortAndBound()
			require.Equal(t, want, s.sorted)
			middle := func(v []float64) float64 {
				slices.Sort(v)
				if n := len(v); n%2 == 1 {
					return v[n/2]
				}
				return (v[len(v)/2-1] + v[len(v)/2]) / 2
			}
			m := middle(want)
			require.InDelta(t, m, stat.Median(s.sorted), 0)
			far := make([]float64, len(want))
			for j, x := range want {
				far[j] = math.Abs(x - m)
			}
			require.InDelta(t, 1.4826*middle(far), stat.Sigma(s.sorted, m), 1e-12)
		}
	}
}

// exact is a series that sorts its values for every value, and looks every span id up.
type exact struct {
	series
	window []float64
}

// goBack begins anew where a loss is of an earlier step than all others.
func (s *exact) goBack(q quantity, v *value, cfg *Config) {
	if q != quantityLoss || !v.hasIteration {
		return
	}
	if len(s.at) > 0 && v.iteration < slices.Min(s.at) {
		s.ids, s.window, s.at, s.inSpike = nil, nil, nil, false
	}
	s.noteIteration(v, cfg.Window)
}

func (s *exact) add(q quantity, v *value, cfg *Config) (f finding) {
	began := !s.begun
	s.begun = true
	if v.id == s.skipped && !began || slices.Contains(s.ids, v.id) {
		return f
	}
	if v.batch > 0 && s.batch > 0 && v.batch != s.batch || v.world > 0 && s.world > 0 && v.world != s.world {
		*s = exact{series: series{begun: true, last: s.last, batch: s.batch, world: s.world}}
	}
	s.batch, s.world = cmp.Or(v.batch, s.batch), cmp.Or(v.world, s.world)
	warmUp := began
	if v.hasIteration {
		warmUp = warmUp || v.iteration <= 1 || v.iteration < s.last
		s.last = v.iteration
	}
	if q != quantityLoss && warmUp {
		s.skipped = v.id
		return f
	}
	s.goBack(q, v, cfg)
	before := slices.Sorted(slices.Values(s.window))
	f.n = len(before)
	if f.n >= cfg.MinSamples {
		f.median, f.p10 = stat.Median(before), before[(f.n-1)/10]
		f.spread = stat.Sigma(before, f.median)
	}
	switch {
	case f.n < cfg.MinSamples:
	case q == quantityLoss:
		spike := v.x > f.median+0.1*math.Abs(f.median) && v.x-f.median > cfg.LossSpike*f.spread
		f.spike, s.inSpike = spike && !s.inSpike, spike
	case v.x < f.p10 && v.x < f.median*(1-cfg.ThroughputDrop) && v.x < f.chanceLimit():
		gap := s.seen - s.lastDip
		regular := s.lastDip > 0 && s.dipGap > 0 && max(gap-s.dipGap, s.dipGap-gap) <= 1
		if s.lastDip > 0 {
			s.dipGap = gap
		}
		s.lastDip, f.low = s.seen, !regular
	}
	s.seen++
	s.ids, s.window = append(s.ids, v.id), append(s.window, v.x)
	if len(s.window) > cfg.Window {
		s.ids, s.window = s.ids[1:], s.window[1:]
	}
	s.quiet = max(s.quiet-1, 0)
	if q == quantityLoss || len(s.window) < cfg.Window {
		return f
	}
	after := slices.Sorted(slices.Values(s.window))
	f.current = stat.Median(after)
	se := 1.2533 * stat.Sigma(after, f.current) * math.Sqrt(2/float64(cfg.Window))
	if s.quiet == 0 && s.best > f.current*(1+cfg.Slowdown) && s.best-f.current > 5*se {
		f.slow, f.best, s.quiet = true, s.best, cfg.Window
	}
	if s.seen%int64(cfg.Window) == 0 {
		s.best = max(s.best, f.current)
	}
	return f
}

func trials() int {
	if testing.Short() {
		return 75
	}
	return 300
}

// TestSeriesAgainstExact: lazy sorting misses nothing. Random series with noise of every size, trends, jumps, ties, retries, returns to a checkpoint and
// changed batch sizes get the same verdicts with the same numbers.
func TestSeriesAgainstExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	var low, slow, spike int
	for trial := range trials() {
		cfg := DefaultConfig()
		cfg.Window = []int{10, 11, 37, 100}[trial%4]
		cfg.MinSamples = 5 + rng.IntN(cfg.Window-4)
		q := []quantity{quantitySteps, quantityLoss}[rng.IntN(2)]
		noise, trend, outliers := 0.5*math.Pow(rng.Float64(), 3), 0.002*rng.NormFloat64(), 0.03*rng.Float64()
		level, coarse, batch, world := 1.0, rng.IntN(3) == 0, 0.0, int64(4)
		got, want := &series{last: math.MinInt64, newest: math.MinInt64}, &exact{series: series{last: math.MinInt64}}
		var sent []value
		iteration := int64(0)
		for i := range 1500 {
			iteration++
			level *= math.Exp(trend)
			switch {
			case rng.IntN(300) == 0:
				level *= math.Exp(0.5 * rng.NormFloat64()) // a throttled device
			case rng.IntN(400) == 0:
				iteration = max(iteration-rng.Int64N(50), 0)
			case rng.IntN(700) == 0:
				batch += 32
			case rng.IntN(1500) == 0:
				world = 12 - world
			}
			x := level * math.Exp(noise*rng.NormFloat64())
			if rng.Float64() < outliers {
				x *= math.Exp(1.5 * rng.NormFloat64())
			}
			if coarse {
				x = math.Round(20*x)/20 + 0.05
			}
			if q == quantityLoss && trial%3 == 0 {
				x -= 1.2 // a loss below 0, such as a policy's
			}
			v := value{id: uint64(i + 1), x: x, batch: batch, world: world, iteration: iteration, hasIteration: trial%5 != 0}
			if len(sent) > 0 && rng.IntN(40) == 0 {
				v = sent[max(len(sent)-1-rng.IntN(2*cfg.Window), 0)] // a retry
			}
			sent = append(sent, v)
			var f finding
			got.add(q, &v, &cfg, &f)
			w := want.add(q, &v, &cfg)
			require.Equal(t, [...]bool{w.low, w.slow, w.spike}, [...]bool{f.low, f.slow, f.spike}, "trial %d, value %d", trial, i)
			if w.low || w.spike {
				require.Equal(t, [...]float64{float64(w.n), w.median, w.spread}, [...]float64{float64(f.n), f.median, f.spread})
			}
			if w.low {
				low++
				require.InDelta(t, w.p10, f.p10, 0)
			}
			if w.slow {
				slow++
				require.Equal(t, [...]float64{w.current, w.best}, [...]float64{f.current, f.best})
			}
			if w.spike {
				spike++
			}
		}
	}
	assert.Greater(t, min(low, slow, spike), 100, "there was something to find: %d, %d, %d", low, slow, spike)
}

func TestSeriesAreSeparate(t *testing.T) {
	p, _ := newTest(t)
	for i := range int64(60) {
		b := spans.NewBatch("test", "")
		for j, res := range []spans.Resource{perftest.Job, {Service: "other", RunID: "run-1"}, {Service: "pretrain", RunID: "run-2"}} {
			// Each population is steady; a mixture would not be.
			for k := range int64(2) {
				s := perftest.AddStep(b, res, i, float64(1+10*j), attrs{spans.AttrRank: k + 1})
				s.SetSpanID(perftest.SpanID(int(1000*i) + 10*j + int(k) + 1))
				perftest.AddStep(b, res, i, float64(1+100*j), attrs{spans.AttrSource: "deepspeed"}).SetSpanID(perftest.SpanID(int(1000*i) + 10*j + 5))
			}
		}
		perftest.Judge(p, b.Traces())
		for _, rs := range b.Traces().ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				assert.Empty(t, perftest.Verdicts(s))
			}
		}
	}
	assert.Equal(t, 9, p.series.byKey.Len())
}

func TestSeriesAreBounded(t *testing.T) {
	p, _ := newTest(t)
	b := spans.NewBatch("test", "")
	for i := range lru.Size + 5 {
		perftest.AddStep(b, spans.Resource{Service: "a", RunID: strconv.Itoa(i)}, 5, 1, nil)
	}
	evicted := perftest.Judge(p, b.Traces()).Evicted
	assert.Equal(t, lru.Size, p.series.byKey.Len())
	assert.Equal(t, lru.Size, p.episodes.Len())
	assert.Equal(t, int64(10), evicted, "series and episodes")
}

// TestRecentSeriesAreKept: an evicted series gets no further values.
func TestRecentSeriesAreKept(t *testing.T) {
	a := newAllSeries()
	var recent recentSeries
	loss := seriesKey{run: "a", format: "s", quantity: quantityLoss}
	first, _ := a.seriesOf(loss, &recent)
	again, _ := a.seriesOf(loss, &recent)
	assert.Same(t, first, again)
	for rank := range int64(lru.Size) {
		_, evicted := a.seriesOf(seriesKey{run: "a", format: "s", rank: rank, quantity: quantitySteps}, &recent)
		assert.Equal(t, rank == lru.Size-1, evicted)
	}
	again, evicted := a.seriesOf(loss, &recent)
	assert.True(t, evicted)
	assert.NotSame(t, first, again)
	kept, _ := a.byKey.Peek(loss)
	assert.Same(t, kept, again)
}

func TestStepsConcurrently(t *testing.T) {
	p, _ := newTest(t, onH100, withModel(perftest.Aquila))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				b := spans.NewBatch("test", "")
				s := perftest.AddStep(b, perftest.Job, int64(1000*g+i), 0.5, attrs{spans.AttrLoss: 2.0, spans.AttrDeviceModel: fmt.Sprint("Abacus ", i%3)})
				perftest.Judge(p, b.Traces())
				assert.InDelta(t, perftest.AquilaMegatron, perftest.Double(t, s, spans.AttrFlopCount), 1)
			}
		})
	}
	wg.Wait()
}

// TestRisingThroughput: a demonstration log, loss 2.00, 1.99, … and throughput 100, 102, … gets no verdict, though a tenth of its points is below P10 as in any
// log. A stall is found.
func TestRisingThroughput(t *testing.T) {
	for _, stall := range []bool{false, true} {
		p, _ := newTest(t)
		said := map[int64][]string{}
		for i := range int64(50) {
			throughput := float64(100 + 2*i)
			if stall && i == 40 {
				throughput = 30
			}
			b := spans.NewBatch("test", "")
			s := perftest.AddStep(b, perftest.Job, i, 1, attrs{
				spans.AttrSource: "jsonl", spans.AttrIteration: nil, spans.AttrRecord: i + 1, spans.AttrStepDuration: nil, spans.AttrStepDurationKind: nil,
				spans.AttrLoss: 2 - 0.01*float64(i), spans.AttrSampleThroughput: throughput,
			})
			perftest.Judge(p, b.Traces())
			if v := perftest.Verdicts(s); v != nil {
				said[i] = v
			}
		}
		if stall {
			assert.Equal(t, map[int64][]string{40: {spans.VerdictThroughputLow}}, said)
		} else {
			assert.Empty(t, said)
		}
	}
}
