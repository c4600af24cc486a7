package late

import (
	"flag"
	"fmt"
	"slices"
	"testing"
)

var byHand = flag.Int("ranksteps", 0, "healthy rank-steps per model")

type model struct {
	name string
	job  job
}

func models() []model {
	var m []model
	for _, starts := range []bool{true, false} {
		add := func(name string, j job) {
			j.starts = starts
			if j.ranks == 0 {
				j.ranks = 64
			}
			if !starts {
				name += ", no times"
			}
			m = append(m, model{name, j})
		}
		add("Gaussian 0.5 %", job{sigma: 0.005})
		add("Gaussian 1 %", job{sigma: 0.01})
		add("Gaussian 1.5 %", job{sigma: 0.015})
		add("Gaussian 2 %", job{sigma: 0.02})
		add("Gaussian 2.5 %", job{sigma: 0.025})
		add("Gaussian 3 %", job{sigma: 0.03})
		add("lognormal 1.5 %, shape 0.25", job{sigma: 0.015, shape: 0.25})
		add("lognormal 1 %, shape 1", job{sigma: 0.01, shape: 1})
		add("lognormal 1.5 %, shape 1", job{sigma: 0.015, shape: 1})
		add("hiccups", job{sigma: 0.01, hiccup: 1e-3})
		add("hiccups 1.5 %", job{sigma: 0.015, hiccup: 1e-3})
		add("hiccups 0.5% x5", job{sigma: 0.005, hiccup: 5e-3})
		add("common", job{sigma: 0.01, common: 0.1, every: 25})
		add("checkpoint every 5", job{sigma: 0.01, common: 0.1, every: 5})
		add("AR(1) 1 %", job{sigma: 0.01, rho: 0.5})
		add("AR(1) 1.5 %", job{sigma: 0.015, rho: 0.5})
		add("AR(1) 1.5 %, differ .5", job{sigma: 0.015, rho: 0.5, differ: 0.005})
		add("4 per step 1.5 %", job{sigma: 0.015, perStep: 4})
		add("16 per step 1 %", job{sigma: 0.01, perStep: 16})
		add("100 per step 1 %", job{sigma: 0.01, perStep: 100, transfer: 1e6})
		add("4 per step 1.5 %, checkpoints x10 every 5", job{sigma: 0.015, perStep: 4, every: 5})
		add("4 layers 1.5 %", job{sigma: 0.015, layers: 4, perStep: 2})
		add("differ 0.5 %, 0.5 %", job{sigma: 0.005, differ: 0.005})
		add("differ 0.5 %, 0.1 %", job{sigma: 0.001, differ: 0.005})
		add("differ 0.5 %, 1 %", job{sigma: 0.01, differ: 0.005})
		add("all together", job{sigma: 0.01, rho: 0.3, hiccup: 1e-3, common: 0.05, every: 50, differ: 0.003, perStep: 4})
		add("differ 0.3 %, 0.2 %", job{sigma: 0.002, differ: 0.003})
		add("differ 0.5 %, 0.2 %, 4 per step, hiccups", job{sigma: 0.002, differ: 0.005, perStep: 4, hiccup: 1e-3})
		add("AR .7 1.5 %", job{sigma: 0.015, rho: 0.7})
		add("big transfer 1 %", job{sigma: 0.01, transfer: 80e6})
		for _, n := range []int{2, 3, 4, 8, 16} {
			add(fmt.Sprintf("%d ranks 1 %%", n), job{sigma: 0.01, ranks: n})
			add(fmt.Sprintf("%d ranks 1.5 %%, hiccups", n), job{sigma: 0.015, ranks: n, hiccup: 1e-3})
			add(fmt.Sprintf("%d ranks AR 1 %%", n), job{sigma: 0.01, rho: 0.5, ranks: n})
		}
		add("1024 ranks hiccups 1.5 %", job{sigma: 0.015, ranks: 1024, hiccup: 1e-3})
	}
	return m
}

func TestByHand(t *testing.T) {
	if *byHand == 0 {
		return
	}
	for _, m := range models() {
		steps, alarms, seed := 0, 0, uint64(0)
		for steps*m.job.ranks < *byHand {
			seed++
			j := m.job
			j.start(seed)
			for range 2000 {
				j.next(func(Slow) { alarms++ })
				steps++
			}
		}
		// slow rank
		const seeds = 300
		var took []int
		wrong, missed := 0, 0
		for seed := range uint64(seeds) {
			j := m.job
			culprit := int32(seed % uint64(j.ranks))
			j.slow = map[int32]float64{culprit: 0.05}
			j.from = 0
			if seed%2 == 1 {
				j.from = 100
			}
			j.start(seed + 1000)
			at := 0
			for j.step < j.from+20 && at == 0 {
				j.next(func(s Slow) {
					if s.Rank == culprit {
						at = j.step + 1 - j.from
					} else {
						wrong++
					}
				})
			}
			if at == 0 {
				missed++
			} else {
				took = append(took, at)
			}
		}
		slices.Sort(took)
		med, worst := 0, 0
		if len(took) > 0 {
			med, worst = took[len(took)/2], took[len(took)-1]
		}
		t.Logf("%-40s alarms %4d in %9d = %6.2f /100k; missed %3d of %d, wrong %d, steps median %d worst %d", m.name, alarms, steps*m.job.ranks, 1e5*float64(alarms)/float64(steps*m.job.ranks), missed, seeds, wrong, med, worst)
	}
}
