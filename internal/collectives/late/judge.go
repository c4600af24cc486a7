package late

import (
	"math"
	"math/bits"
)

// weights has the usual weights of collectives (step 1 of the package): the sums of their weights' power ⅔, by power of four. The power is ⅔ because the
// measure must be neither the one step in fifty that takes a hundred times as long, nor a hundred back-to-back collectives.
type weights struct {
	sums  [33]float64 // by power of four of the weight, fading
	calls int
	usual int // a third of the sum is at or above this power
}

// addWeight adds the weight of a collective. ok: the collective has evidence, since its weight is at least about a sixteenth of the usual weight. anew: the
// usual weight has just risen, while few collectives were seen, so much that earlier collectives should not have counted.
func (w *weights) addWeight(weight float64) (ok, anew bool) {
	at := bits.Len64(uint64(weight)) / 2 // the power of four
	root := math.Cbrt(weight)
	all := 0.
	for i := range w.sums {
		if w.sums[i] *= 1 - weightMemory; i == at {
			w.sums[i] += root * root
		}
		all += w.sums[i]
	}
	before := w.usual
	w.usual = len(w.sums) - 1 // down until a third of the sum is at or above
	for above := w.sums[w.usual]; w.usual > 0 && 3*above < all; above += w.sums[w.usual] {
		w.usual--
	}
	w.calls++
	few := w.calls > 1 && w.calls < 1/weightMemory
	return at >= w.usual-weightPowers, few && w.usual > before+weightPowers
}

// movingMean is a moving mean: plain over the first values, exponential (EWMA) later.
type movingMean struct {
	mean   float64
	n      int     // calls of add
	spread float64 // variance of mean, for values of variance 1: the inverse of the effective number of values
}

// add adds the mean of a number of values. memory is the least share of the new mean in the average.
func (m *movingMean) add(mean float64, values int, memory float64) {
	m.n++
	share := max(1/float64(m.n), memory)
	m.mean += share * (mean - m.mean)
	m.spread = (1-share)*(1-share)*m.spread + share*share/float64(max(values, 1))
}

// restart forgets everything learnt, because the unit of lateness changes (timed), or because earlier collectives should not have counted. Named ranks stay
// named.
func (w *Window) restart(timed bool) {
	w.timed, w.counted = timed, 0
	w.noise = [2]movingMean{}
	w.cube, w.shift = movingMean{}, movingMean{}
	w.spread, w.ownNoise, w.spreadOf, w.transfer, w.sigma = 0, 0, 0, 0, 0
	w.k, w.h, w.cut = math.Inf(1), math.Inf(1), math.Inf(1)
	for i := range w.ranks {
		w.ranks[i].forget()
	}
}

// forget drops the sums of the rank. Whether the rank is named stays.
func (r *rank) forget() {
	r.held, r.ys, r.mean, r.means, r.ownVar, r.up, r.down, r.run = 0, 0, 0, 0, 0, 0, 0, 0
}

// judge takes the evidence of a collective (steps 1 to 4 of the package), with at least two ranks and at least half of the known ranks. A collective too light
// to count only adds its cost to the last rank. r is the result so far: who was last.
func (w *Window) judge(arrivals []Arrival, b bounds, r *Result) {
	others := w.medians(arrivals)
	interval, starts := w.medianWork(arrivals, b.n)
	timed := 2*starts >= b.n // most ranks have a start
	if timed && interval < 0 {
		return // times exist, but not yet of two collectives
	}
	if timed != w.timed { // the unit of lateness changes
		w.weights = weights{}
		w.restart(timed)
	}
	// Step 1: does the collective count?
	weight := interval
	if !timed { // the mean lateness
		weight = 0
		for i := range arrivals {
			if arrivals[i].Duration >= 0 {
				weight += min(math.Abs(others.lateness(arrivals[i].Duration)), w.cut)
			}
		}
		weight /= float64(b.n)
	}
	last := int32(-1) // index in ranks
	if r.Last >= 0 {
		last = w.at[r.Last]
	}
	counts, anew := w.weights.addWeight(weight)
	if anew {
		w.restart(timed)
	}
	if !counts {
		if last >= 0 {
			w.addCost(last, r.Cost)
		}
		return
	}
	// Steps 2 to 4: the lateness of each rank against the median of the others, in units and clipped, is added to the sums of the rank.
	unit := 1. // of lateness, ns
	if timed {
		unit = max(interval, minWork*float64(b.shortest), 1)
	}
	w.counted++
	w.transfer += max(1/float64(w.counted), noiseMemory) * (float64(b.shortest) - w.transfer)
	w.setLimits() // before this collective's values change σ
	w.best = 0
	var t tally
	w.halves = w.halves[:0]
	for i := range arrivals {
		if w.at[i] < 0 || arrivals[i].Duration < 0 {
			continue
		}
		late, cost := others.lateness(arrivals[i].Duration), int64(0)
		if w.at[i] == last {
			cost = r.Cost
		}
		p := w.pushCell(w.at[i], late, cost, w.works[i])
		w.addValue(p, max(-w.cut, min(late/unit, w.cut)), &t)
		if p.median > 0 && (w.best == 0 || p.median < w.best) {
			w.best = p.median
		}
	}
	w.addTally(&t)
}

// tally has the sums over the ranks of a collective, for learn. The names are those of the averages in Window.
type tally struct {
	noise         [2]float64
	noisy         [2]int // values in noise
	cube          float64
	cubes         int     // values in cube
	means, ownVar float64 // of the ranks' squared means, and of the part by chance in them
	shift         float64
	n             int // ranks in means, ownVar and shift
}

// setLimits sets K, H and the limit where lateness is clipped, from the collectives before (steps 2 to 4 of the package).
func (w *Window) setLimits() {
	if w.noise[1].n == 0 { // σ is unknown
		return
	}
	rho := 0. // 1+ρ is the quotient of the differences (step 3)
	if half := w.noise[0].mean; half > 0 {
		rho = min(max(w.noise[1].mean/half-1, 0), maxRho)
	}
	variance := w.noise[0].mean / (1 - rho) // σ²: half the squared differences have the mean σ²(1−ρ)
	grown := (1 + rho) / (1 - rho)
	s2 := variance * grown // the variance of sums grows by s² with each value
	w.sigma = math.Sqrt(variance)
	w.k = material // with times, K is a share of the work time
	if !w.timed {
		w.k = sigmaShare * w.sigma
		if w.spreadOf >= manyRanks {
			w.k += spreadShare * math.Sqrt(max(0, w.spread-w.ownNoise*s2))
		}
		w.k = max(w.k, transferShare*w.transfer, 1)
	}
	if w.spreadOf >= manyRanks { // skewed noise has a mean above its median
		w.k += max(0, w.shift.mean)
	}
	s2 *= 1 + freedom*w.noise[0].spread
	theta := 2 * w.k / s2 // for symmetric noise
	// The third cumulant of the sums grows with ρ as their standard deviation does, by the third power, or a little more.
	if third := w.cube.mean * grown * math.Sqrt(grown); third > 1e-3*s2*math.Sqrt(s2) { // skewed upwards: the root of step 4's equation; nearer to 0 inexact
		theta = 3 * (math.Sqrt(s2*s2/4+2*third*w.k/3) - s2/2) / third
	}
	w.h = max(evidence/theta, minSum*w.k)
	w.cut = max(cutSigma*w.sigma, cutK*w.k)
}

// addValue adds the next value y of a rank, already clipped: to the noise in the tally, to the mean of the rank, and to Page's sums. Values that come before σ
// or the spread between the ranks is known are kept in p.early, and added later.
func (w *Window) addValue(p *rank, y float64, t *tally) {
	w.addNoise(p, y, t)
	if w.counted <= warmUp || w.noise[1].n == 0 { // the limit for clipping is not known yet
		if int(p.held) < warmUp {
			p.early[p.held] = y
			p.held++
		}
		return
	}
	if p.means == 0 { // the mean begins with the values kept
		for _, early := range p.early[:p.held] {
			w.updateMean(p, max(-w.cut, min(early, w.cut)), t)
		}
	}
	w.updateMean(p, y, t)
	square := p.mean * p.mean
	if w.spreadOf > 0 { // at most two standard deviations, squared: a single slow rank is not to widen the usual spread, which would hide the rank
		square = min(square, max(4*w.spread, w.negligible()))
	}
	t.means, t.ownVar, t.n = t.means+square, t.ownVar+p.ownVar, t.n+1
	t.shift += max(-3*w.sigma, min(y, 3*w.sigma)) // a slow rank is hardly to raise K

	if w.spreadOf == 0 { // the usual spread between the ranks is not known yet
		if int(p.held) < len(p.early) {
			p.early[p.held] = y
			p.held++
		}
		return
	}
	// Page's sums (step 4), with the values kept first.
	for _, early := range p.early[:p.held] {
		w.updatePage(p, max(-w.cut, min(early, w.cut)))
	}
	p.held = 0
	w.updatePage(p, y)
}

// addNoise adds half the squared differences between a rank's next value y and its last two values to the tally (step 3 of the package), and makes y the last
// value.
func (w *Window) addNoise(p *rank, y float64, t *tally) {
	for lag := range int(p.ys) {
		half := (y - p.y[lag]) * (y - p.y[lag]) / 2
		if lag == 0 && w.noise[0].n < robust { // for their median: there is no clipping yet
			w.halves = append(w.halves, float32(half))
		}
		t.noise[lag] += min(half, w.mostNoise())
		t.noisy[lag]++
	}
	p.y[1], p.y[0], p.ys = p.y[0], y, min(p.ys+1, 2)
}

// updateMean adds y to the moving mean of a rank. Once the mean is known well enough, the cube of the distance from the mean is added to the tally.
func (w *Window) updateMean(p *rank, y float64, t *tally) {
	if p.means >= warmUp {
		d := y - p.mean
		t.cube, t.cubes = t.cube+d*d*d, t.cubes+1
	}
	p.means++
	share := max(1/float64(p.means), meanMemory)
	p.mean += share * (y - p.mean)
	p.ownVar = (1-share)*(1-share)*p.ownVar + share*share
}

// updatePage adds y to Page's sums of a rank (step 4 of the package): the rank is named when the sum up passes H, and, if named, no longer when the sum down
// does.
func (w *Window) updatePage(p *rank, y float64) {
	p.up = max(0, p.up+y-w.k)
	// A named rank's run goes on: its lateness is the median since the rank became slow.
	if p.up == 0 && !p.named {
		p.run = 0
	} else {
		p.run = min(p.run+1, int32(w.size))
	}
	if !p.named {
		if p.up > w.h && p.run >= minRun {
			p.named, p.isNew, p.down = true, true, 0
			w.slows++
		}
		return
	}
	p.down = max(0, p.down+w.k/2-y)
	if p.down > w.h {
		p.named, p.up, p.run = false, 0, 0
		w.slows--
		w.over = append(w.over, p.id)
	}
}

// mostNoise returns the largest squared difference that counts in the mean: (3σ)². Without a limit one hiccup would make everything look like noise. The limit
// is never too small for the mean to grow.
func (w *Window) mostNoise() float64 {
	if w.noise[0].n == 0 {
		return math.Inf(1)
	}
	return max(9*max(w.noise[0].mean, w.noise[1].mean), w.negligible())
}

// negligible returns a variance that does not matter: the square of a tenth of the least K.
func (w *Window) negligible() float64 {
	if w.timed {
		return material * material / 100
	}
	k := max(transferShare*w.transfer, 1)
	return k * k / 100
}

// addTally adds the tally of a collective to the averages by which the next collective is judged: noise, skewness, and the spread between the ranks.
func (w *Window) addTally(t *tally) {
	for lag := range t.noise {
		if t.noisy[lag] == 0 {
			continue
		}
		mean := t.noise[lag] / float64(t.noisy[lag])
		if lag == 0 && w.noise[0].n < robust { // no clipping yet: one hiccup would be all of the mean
			selectNth(w.halves, len(w.halves)/2)
			mean = medianToMean * float64(w.halves[len(w.halves)/2])
		}
		memory := min(noiseMemory, float64(t.noisy[lag])/256) // longer for fewer than 256·noiseMemory = 8 ranks: a mean of few values says less
		w.noise[lag].add(mean, t.noisy[lag]-1, memory)        // less one: the values are relative to each other
	}
	if t.cubes > 0 {
		w.cube.add(t.cube/float64(t.cubes), t.cubes, noiseMemory)
	}
	if t.n > 0 {
		w.shift.add(t.shift/float64(t.n), t.n, noiseMemory)
		w.spread, w.ownNoise, w.spreadOf = t.means/float64(t.n), t.ownVar/float64(t.n), t.n
	}
}
