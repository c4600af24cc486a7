package late

import (
	"math"
	"math/rand/v2"
)

// job is a training job: each step every rank works, then all meet in collectives.
type job struct {
	ranks    int
	work     float64 // ns of a step
	transfer float64 // ns of a collective; 0: a tenth of work
	perStep  int     // consecutive collectives; 0: 1
	layers   int     // layers of the work, with a collective after each; 0: 1
	starts   bool    // whether the log has times

	sigma  float64 // jitter per rank and step, of the work: Gaussian, unless …
	rho    float64 // … for an AR(1) process
	shape  float64 // … or lognormal, exp(N(0, shape)) scaled to standard deviation sigma
	hiccup float64 // chance per rank and step to take 0.2 to 3 steps longer
	common float64 // standard deviation of the noise common to all ranks
	every  int     // steps between checkpoints, which take 10 times as long
	differ float64 // persistent differences between the ranks: ±differ, uniform
	slow   map[int32]float64
	from   int                 // first slow step
	until  int                 // 0: for ever
	keep   func(rank int) bool // the ranks with records; nil: all
	change func([]Arrival)     // changes the arrivals

	rng    *rand.Rand
	step   int
	left   []float64 // when each left the last collective, true time
	clock  []float64 // offset and …
	drift  []float64
	bias   []float64
	ar     []float64
	window *Window
	a      []Arrival
	late   []int64
}

func (j *job) start(seed uint64) *job {
	j.rng = rand.New(rand.NewPCG(seed, 5))
	if j.work == 0 {
		j.work = 100e6
	}
	if j.transfer == 0 {
		j.transfer = j.work / 10
	}
	j.perStep, j.layers = max(j.perStep, 1), max(j.layers, 1)
	j.left, j.clock, j.drift, j.bias, j.ar = make([]float64, j.ranks), make([]float64, j.ranks), make([]float64, j.ranks), make([]float64, j.ranks),
		make([]float64, j.ranks)
	for i := range j.ranks {
		j.clock[i], j.drift[i] = (j.rng.Float64()-0.5)*10e9, (j.rng.Float64()-0.5)*100e-6
		j.bias[i] = (2*j.rng.Float64() - 1) * j.differ
		j.ar[i] = j.rng.NormFloat64()
	}
	j.window = NewWindow(DefaultSize)
	j.late = make([]int64, j.ranks)
	return j
}

func (j *job) jitter(i int) float64 {
	switch {
	case j.shape > 0:
		v := j.shape * j.shape
		return j.sigma * math.Exp(j.shape*j.rng.NormFloat64()) / math.Sqrt((math.Exp(v)-1)*math.Exp(v))
	case j.rho > 0:
		j.ar[i] = j.rho*j.ar[i] + math.Sqrt(1-j.rho*j.rho)*j.rng.NormFloat64()
		return j.sigma * j.ar[i]
	}
	return j.sigma * j.rng.NormFloat64()
}

// next runs a step and calls named with each rank named in it.
func (j *job) next(named func(Slow)) (last Result) {
	for range j.layers {
		all := (1 + j.common*j.rng.NormFloat64()) / float64(j.layers)
		if j.every > 0 && j.step%j.every == j.every-1 {
			all *= 10
		}
		for i := range j.left {
			w := 1 + j.bias[i] + j.jitter(i)
			if j.step >= j.from && (j.until == 0 || j.step < j.until) {
				w += j.slow[int32(i)]
			}
			w *= all
			if j.rng.Float64() < j.hiccup {
				w += 0.2 + 2.8*j.rng.Float64()
			}
			j.left[i] += max(w, 0.01) * j.work // now: its arrival
		}
		for k := range j.perStep {
			if k > 0 {
				for i := range j.left {
					j.left[i] += 20e3 + 5e3*j.rng.Float64()
				}
			}
			last = j.meet(j.transfer*(1+float64(k%3)), named)
		}
	}
	j.step++
	return last
}

func (j *job) meet(transfer float64, named func(Slow)) Result {
	end := 0.
	for _, t := range j.left {
		end = max(end, t)
	}
	end += transfer * (1 + 0.05*j.rng.Float64())
	j.a = j.a[:0]
	for i, t := range j.left {
		j.left[i] = end + 2e3*j.rng.Float64()
		if j.keep != nil && !j.keep(i) {
			continue
		}
		a := Arrival{Rank: int32(i), Duration: int64(j.left[i] - t)}
		if j.starts {
			a.Start = 1.7e18 + int64(t*(1+j.drift[i])+j.clock[i])
		}
		j.a = append(j.a, a)
	}
	if j.change != nil {
		j.change(j.a)
	}
	r := j.window.Observe(j.a, j.late[:len(j.a)])
	for _, s := range r.Slow {
		if s.New {
			named(s)
		}
	}
	return r
}
