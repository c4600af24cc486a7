package regimes

import (
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	settles = 10   // least steps of a level at an end of the attempt, twice as many within
	burst   = 48   // steps: a higher level of no more is slow steps
	blocks  = 16   // steps in a block, for spreads and the comparison of levels
	capped  = 3.0  // spreads: the cost of a step is capped, for robustness against some slow steps
	noise   = 0.8  // spreads: cost of a step at its own level, about
	finest  = 0.03 // the least spread, as a share
	levels  = 128  // tried at most
	alike   = 0.1  // levels closer than this, as logarithms, are one
)

// segment finds the regimes of a piece of the known steps (see pieces): ranges of one level, with short ranges of a higher level as bursts inside.
func (j *judge) segment(piece [2]int) {
	cuts := j.levels(piece[0], piece[1])
	parts := make([]part, 0, len(cuts)+1)
	from := piece[0]
	for _, to := range append(cuts, piece[1]) {
		parts = append(parts, part{from: from, to: to})
		from = to
	}
	parts = j.joined(parts)
	for i := range parts {
		parts[i].level = j.middle(parts[i].from, parts[i].to)
	}
	bursts(parts)
	for i := 0; i < len(parts); {
		r, next := regimeFrom(parts, i)
		j.regimes = append(j.regimes, r)
		i = next
	}
}

// regimeFrom is the regime that begins with part i, and the index of the first part behind. The regime goes on over bursts as long as the level after a burst
// is the level before. A burst between two levels is of the higher one, with which its steps are compared: of the regime if the level falls, else of the next
// part.
func regimeFrom(parts []part, i int) (r regime, next int) {
	r = regime{from: parts[i].from, to: parts[i].to}
	level := parts[i].level
	for next = i + 1; next < len(parts); next++ {
		first := next
		for next < len(parts) && parts[next].burst { // the last part is none
			next++
		}
		if first == next { // another level: another regime
			break
		}
		burst, after := [2]int{parts[first].from, parts[next-1].to}, &parts[next]
		if rise := after.level - level; math.Abs(rise) >= alike {
			if rise > 0 {
				after.from, after.before = burst[0], burst[1]
			} else {
				r.bursts, r.to = append(r.bursts, burst), burst[1]
			}
			break
		}
		r.bursts, r.to = append(r.bursts, burst), after.to
	}
	if before := parts[i].before; before > 0 { // a burst left by the regime before
		r.bursts = slices.Insert(r.bursts, 0, [2]int{parts[i].from, before})
	}
	return r, next
}

// part is a range of known steps of equal level.
type part struct {
	from, to int
	level    float64 // log s
	burst    bool
	before   int // the end of the burst at the beginning of the part; 0: none
}

// joined joins parts without a jump between them, by the medians of a block on either side: a trend passes many levels.
func (j *judge) joined(parts []part) (out []part) {
	first, all := 0, parts[0] // the first of the parts that are one so far, and all of them
	for i, p := range parts[1:] {
		jump := j.middle(p.from, min(p.from+blocks, p.to)) - j.middle(max(all.from, all.to-blocks), all.to)
		if math.Abs(jump) >= alike {
			out = append(out, j.plateaus(parts[first:i+1])...)
			first, all = i+1, p
			continue
		}
		all.to = p.to
	}
	return append(out, j.plateaus(parts[first:])...)
}

// plateaus are parts without jumps as one part, or as two if the last has another level than the first and they are no trend: the level changed little by
// little, and then stayed. The change is where half of the way is passed.
func (j *judge) plateaus(parts []part) []part {
	from, to := parts[0].from, parts[len(parts)-1].to
	start := j.middle(from, parts[0].to)
	rise := j.middle(parts[len(parts)-1].from, to) - start
	all := group{steps: j.known[from:to]}
	if math.Abs(rise) >= alike && all.trend(j) == 0 {
		for _, p := range parts[1:] {
			if math.Abs(j.middle(p.from, p.to)-start) >= math.Abs(rise)/2 {
				return []part{{from: from, to: p.from}, {from: p.from, to: to}}
			}
		}
	}
	return []part{{from: from, to: to}}
}

// bursts marks the parts that are slow steps: each higher than the unmarked parts beside, and short. Neither the first nor the last part is one. If more than
// two bursts have more than a quarter of the steps, they are the normal course of the job, and none is marked.
func bursts(parts []part) {
	left := make([]int, len(parts)) // indices of the parts not marked
	for i := range left {
		left[i] = i
	}
	marked, steps, n := 0, 0, parts[len(parts)-1].to-parts[0].from
	for at := 1; at+1 < len(left); {
		before, p, after := &parts[left[at-1]], &parts[left[at]], &parts[left[at+1]]
		higher := p.level >= max(before.level, after.level)+alike
		short := after.from-before.to <= burst // with the bursts beside
		if !higher || !short {
			at++
			continue
		}
		p.burst = true
		marked, steps = marked+1, steps+p.to-p.from
		left = slices.Delete(left, at, at+1)
		at = max(1, at-1) // the part before may be a burst now that this one is gone
	}
	if marked > 2 && 4*steps > n {
		for i := range parts {
			parts[i].burst = false
		}
	}
}

// levels are the positions of changes in the level of the known steps: the piecewise constant logarithm of least cost. A step costs its distance, at most
// capped spreads, and each change the excess of settles distant steps over usual ones. See Fearnhead and Rigaill, "Changepoint Detection in the Presence of
// Outliers" (arXiv 1609.07363); here with the absolute distance, on a grid of levels. Fewer than 2*settles steps have no change.
func (j *judge) levels(from, to int) (cuts []int) {
	y := j.logs[from:to]
	if len(y) < 2*settles {
		return nil
	}
	grid, spread := grid(y)
	cost, start := make([]float64, len(grid)), make([]int32, len(grid)) // by level: the least cost of a course that is on this level now, and since when
	best, begun := make([]int32, len(y)), make([]int32, len(y))         // the cheapest level of each step, and its start
	least, change := 0.0, settles*(capped-noise)                        // the least cost until now; the cost of a change
	for i, v := range y {
		cheapest := math.Inf(1)
		for l, level := range grid {
			if i > 0 && least+change < cost[l] { // cheaper to come from the cheapest course until now
				cost[l], start[l] = least+change, int32(i)
			}
			cost[l] += min(math.Abs(v-level)/spread, capped)
			if cost[l] < cheapest {
				cheapest, best[i] = cost[l], int32(l)
			}
		}
		begun[i], least = start[best[i]], cheapest
	}
	for at := begun[len(y)-1]; at > 0; at = begun[at-1] { // back from the end
		cuts = append(cuts, from+int(at))
	}
	slices.Reverse(cuts)
	return cuts
}

// grid are the levels tried for logarithms y, half a spread apart (further where that makes more than levels) without the outermost 2 % on either side, and the
// spread of steps of one level: the median over short blocks, hardly moved by a change of level.
func grid(y []float64) (out []float64, spread float64) {
	var spreads []float64
	var block []float64
	for from := 0; from < len(y); from += blocks {
		to := min(from+blocks, len(y))
		if to-from < blocks/2 && from > 0 {
			break
		}
		block = append(block[:0], y[from:to]...)
		slices.Sort(block)
		spreads = append(spreads, stat.Sigma(block, stat.Median(block)))
	}
	spread = max(stat.Middle(spreads), finest)
	values, edge := slices.Clone(y), len(y)/50
	low, high := stat.Select(values, edge), stat.Select(values, len(y)-1-edge)
	n := min(int((high-low)/(spread/2))+2, levels)
	for l := range n {
		out = append(out, low+(high-low)*float64(l)/float64(n-1))
	}
	return out, spread
}

const (
	trendBlocks = 24  // blocks for the comparison of medians, at most
	blockSteps  = 6   // in each at least
	concordant  = 0.9 // share of pairs in one direction
)

// trend finds the lasting growth or decline of a group's steps, if certain, and sets the slope (s a step). The result is the change over the whole group as a
// share of its level; 0: below 10 %, or none. The slope is Sen's (the median slope of all pairs), of the medians of blocks, and certain if nine pairs in ten go
// one way (Kendall).
func (g *group) trend(j *judge) float64 {
	n := len(g.steps)
	count := min(n/blockSteps, trendBlocks)
	if count < 5 { // too few pairs to be certain
		return 0
	}
	medians := make([]float64, count) // of the blocks' durations, s
	for b := range medians {
		j.values = j.values[:0]
		for _, i := range g.steps[b*n/count : (b+1)*n/count] {
			j.values = append(j.values, j.of.Seconds[i])
		}
		medians[b] = stat.MedianInPlace(j.values)
	}
	var slopes []float64 // of all pairs of blocks, s a block
	up, down := 0, 0     // pairs that rise, and that fall
	for a := range medians {
		for b := a + 1; b < count; b++ {
			d := medians[b] - medians[a]
			slopes = append(slopes, d/float64(b-a))
			switch {
			case d > 0:
				up++
			case d < 0:
				down++
			}
		}
	}
	if float64(max(up, down)) < concordant*float64(len(slopes)) {
		return 0
	}
	slope := stat.Middle(slopes) * float64(count) / float64(n) // s a step
	g.slope = slope
	if change := slope * float64(n) / stat.Middle(medians); math.Abs(change) >= slower {
		return change
	}
	return 0
}
