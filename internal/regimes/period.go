package regimes

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	leastPeriod     = 4    // slow steps of a period, at least
	covered         = 0.9  // share of a period's steps that must be slow
	candidates      = 8    // distances tried
	likeness        = 0.2  // of the median excess: their quartiles are no further apart
	periods         = 3    // reported at most
	mostAccumulated = 32   // micro-steps of an update, in logs of each micro-step
	mixed           = 6    // one in that many steps is not slow, if as steady as all others
	leastMixed      = 8    // steps of a mixture, at least
	steady          = 0.05 // of their median: the distance of the quartiles of steady steps
	leastEven       = 5    // steps at even distances, at least
	apart           = 1.5  // times the excess of all other steps: that of steps at even distances
)

// evenly makes the longest steps Slow if their distances are even during the whole attempt, and their excess is far from that of all other steps. The noise of
// a shared machine hides each of these steps, but keeps no distance.
func (j *judge) evenly() {
	var long []int // more than twice their usual time
	for _, i := range j.known {
		if s := &j.run.Steps[i]; (s.State == Usual || s.State == Slow) && j.over[i] > s.Usual {
			long = append(long, i)
		}
	}
	slices.SortFunc(long, func(a, b int) int { return cmp.Or(cmp.Compare(j.over[b], j.over[a]), cmp.Compare(a, b)) })
	for n := leastEven; n <= len(long); n++ {
		next := j.run.Steps[long[n-1]].Usual
		if n < len(long) {
			next = j.over[long[n]]
		}
		if j.over[long[n-1]] < apart*next {
			continue
		}
		steps := slices.Sorted(slices.Values(long[:n]))
		if p := j.distance(steps); p.Every > 1 && j.regular(steps, p) {
			for _, i := range steps {
				j.run.Steps[i].State = Slow
			}
			return
		}
	}
}

// distance returns the period of some steps, in order, from the beginning of the attempt to the end; the zero Period: none.
func (j *judge) distance(steps []int) (p Period) {
	every := j.number(steps[1]) - j.number(steps[0])
	for n := range steps[1:] {
		if j.number(steps[n+1])-j.number(steps[n]) != every {
			return p
		}
	}
	before := j.number(steps[0]) - j.number(j.known[0])
	after := j.number(j.known[len(j.known)-1]) - j.number(steps[len(steps)-1])
	if every < 1 || before >= every || after >= every {
		return p
	}
	return Period{Every: every, Rest: mod(j.number(steps[0]), every)}
}

// period finds periods among the slow steps, the strongest first, up to a few. The steps of a period are then no longer slow, unless among each other. What is
// left is compared with the periods of earlier steps (Attempt.Earlier).
func (j *judge) period() {
	defer j.earlier()
	all := 0
	for _, i := range j.known {
		if j.run.Steps[i].State == Slow {
			all++
		}
	}
	for range periods {
		var slow []int
		for _, i := range j.known {
			if j.run.Steps[i].State == Slow {
				slow = append(slow, i)
			}
		}
		if len(slow) < leastPeriod || !j.strongest(slow, all) {
			return
		}
	}
}

// earlier makes slow steps Periodic that are as long as those of a period of earlier steps.
func (j *judge) earlier() {
	for _, p := range j.of.Earlier {
		at := slices.IndexFunc(j.run.Periods, p.Same)
		for _, i := range j.known {
			if s := &j.run.Steps[i]; s.State == Slow && mod(j.number(i), p.Every) == p.Rest && j.of.Seconds[i] <= p.Limit {
				if at < 0 {
					at, j.run.Periods = len(j.run.Periods), append(j.run.Periods, p)
				}
				s.State, s.Period = Periodic, at
			}
		}
	}
}

// Same reports whether two periods are of the same steps.
func (p Period) Same(o Period) bool { return p.Every == o.Every && p.Rest == o.Rest }

// Accumulates reports whether the slow steps look like the updates of a trainer that logs each micro-step of its gradient accumulation: the last of every 2,
// 4, 8, 16 or 32 micro-steps also reduces the gradients and runs the optimizer. Steps are numbered from 0 or 1.
func (p Period) Accumulates() bool {
	powerOfTwo := p.Every&(p.Every-1) == 0
	last := p.Rest == 0 || p.Rest == p.Every-1
	return powerOfTwo && p.Every <= mostAccumulated && last
}

// strongest finds the period with most of the slow steps, and keeps it; of several the one with the largest distance, and the least rest. A period has
// leastPeriod slow steps or more; its steps are nearly all slow, by about the same time. all is the number of slow steps of the attempt. false: no period.
func (j *judge) strongest(slow []int, all int) bool {
	var best Period
	for _, every := range j.distances(slow) {
		rests := map[int64]int{} // slow steps by number modulo every
		for _, i := range slow {
			rests[mod(j.number(i), every)]++
		}
		for _, rest := range slices.Sorted(maps.Keys(rests)) {
			n := rests[rest]
			worse := n < best.Slow || n == best.Slow && every <= best.Every
			if n < leastPeriod || worse {
				continue
			}
			of := 0 // all steps of the period but possible warm-ups, whose time says nothing
			for _, i := range j.known {
				if !j.first[i] && mod(j.number(i), every) == rest {
					of++
				}
			}
			p := Period{Every: every, Rest: rest, Slow: n, Of: of, All: all}
			if nearlyAll := float64(n) >= covered*float64(of); nearlyAll && j.regular(slow, p) {
				best = p
			}
		}
	}
	if best.Slow == 0 {
		return false
	}
	j.keep(slow, best)
	return true
}

// mod is n modulo every, from 0 on also below 0.
func mod(n, every int64) int64 { return (n%every + every) % every }

// distances are the most frequent distances between the numbers of slow steps, each to the next two: a foreign slow step may lie between two of a period.
func (j *judge) distances(slow []int) (out []int64) {
	count := map[int64]int{}
	for a := range slow {
		for b := a + 1; b < min(len(slow), a+3); b++ {
			if d := j.number(slow[b]) - j.number(slow[a]); d > 1 { // 1: a burst
				count[d]++
			}
		}
	}
	for d := range count {
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b int64) int { return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a, b)) })
	return out[:min(len(out), candidates)]
}

// regular says whether the steps of a period take about as much longer each time.
func (j *judge) regular(slow []int, p Period) bool {
	j.values = j.values[:0]
	for _, i := range slow {
		if mod(j.number(i), p.Every) == p.Rest {
			j.values = append(j.values, j.over[i])
		}
	}
	slices.Sort(j.values)
	return stat.Quantile(j.values, 0.75)-stat.Quantile(j.values, 0.25) <= likeness*stat.Median(j.values)
}

// keep adds a period to the result, and compares its slow steps with each other: those above their common limit stay Slow, the others become Periodic.
func (j *judge) keep(slow []int, p Period) {
	var steps []int
	for _, i := range slow {
		if mod(j.number(i), p.Every) == p.Rest {
			steps = append(steps, i)
			p.Excess += j.over[i]
		}
	}
	l := j.among(steps)
	for _, i := range steps {
		if s := &j.run.Steps[i]; j.of.Seconds[i] > l.Limit {
			s.Usual, s.Spread, s.Limit = l.Usual, l.Spread, l.Limit
		} else {
			s.State, s.Period = Periodic, len(j.run.Periods)
		}
	}
	p.Usual, p.Limit = l.Usual, l.Limit
	j.run.Periods = append(j.run.Periods, p)
}

// among is the level of some steps. Their durations are left in j.values, by size.
func (j *judge) among(steps []int) Level {
	j.values = j.values[:0]
	for _, i := range steps {
		j.values = append(j.values, j.of.Seconds[i])
	}
	slices.Sort(j.values)
	return Of(j.values)
}

// mixtures makes slow steps Usual that are too many and too steady to be slow: steps of two lengths alternate in their group without a period. Those far above
// their own level stay Slow.
func (j *judge) mixtures() {
	slow := make([][]int, len(j.run.members)) // by group
	for _, i := range j.known {
		if s := &j.run.Steps[i]; s.State == Slow {
			of := j.run.of[i]
			if g := &j.run.members[of.group]; of.at < len(g.steps) && g.steps[of.at] == i { // not of a burst
				slow[of.group] = append(slow[of.group], i)
			}
		}
	}
	for g, steps := range slow {
		stretches := 0 // of slow steps: two lengths alternate, but a fault that lasts for some steps is a stretch
		for n, i := range steps {
			if n == 0 || j.run.of[i].at > j.run.of[steps[n-1]].at+1 {
				stretches++
			}
		}
		if len(steps) < leastMixed || stretches < leastMixed/2 || mixed*len(steps) < len(j.run.members[g].steps) {
			continue
		}
		l, first := j.among(steps), &j.run.Steps[steps[0]]
		quartiles := stat.Quantile(j.values, 0.75) - stat.Quantile(j.values, 0.25)
		if quartiles > l.Usual*max(steady, 2*first.Spread/first.Usual) { // wider than steady, and than two spreads of the other steps, as shares
			continue
		}
		for _, i := range steps {
			s := &j.run.Steps[i]
			s.Usual, s.Spread, s.Limit = l.Usual, l.Spread, l.Limit
			if j.of.Seconds[i] <= l.Limit {
				s.State = Usual
			}
		}
	}
}
