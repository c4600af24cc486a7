package steps

import (
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/processors/internal/lru"
)

// quantity is the measure of a series.
type quantity uint8

// The speeds come first, in order of preference: a log's own rates are closer to the measurement than rates derived from its times. All are of the kind "more
// is better".
const (
	quantitySamples quantity = iota
	quantityTokens
	quantityDeviceTokens
	quantityFlops
	quantitySteps // steps per second: 1 / step time
	quantityLoss
)

// seriesKey identifies a population of similar values.
type seriesKey struct {
	service, run, format string
	rank                 int64 // 0: unknown, or rank 0
	quantity             quantity
}

// allSeries holds the last values per key.
type allSeries struct {
	mu    sync.Mutex // guards the map and its series; held while the steps of a resource are judged
	byKey *simplelru.LRU[seriesKey, *series]
}

// newAllSeries returns no series yet.
func newAllSeries() *allSeries { return &allSeries{byKey: lru.New[seriesKey, *series](lru.Size)} }

// recentSeries are the series used last, one per quantity, of a service and run: most steps of a resource go into the same two series.
type recentSeries [quantityLoss + 1]struct {
	format string
	rank   int64
	series *series
}

// seriesOf returns the series of a key, made if absent. evicted: another series was dropped.
func (a *allSeries) seriesOf(key seriesKey, recent *recentSeries) (s *series, evicted bool) {
	r := &recent[key.quantity]
	if r.series != nil && r.rank == key.rank && r.format == key.format {
		return r.series, false
	}
	s, ok := a.byKey.Get(key)
	if !ok {
		s = &series{last: math.MinInt64, newest: math.MinInt64}
		// The key outlives its batch.
		key.service, key.run, key.format = strings.Clone(key.service), strings.Clone(key.run), strings.Clone(key.format)
		evicted = a.byKey.Add(key, s)
		if evicted {
			*recent = recentSeries{} // the dropped series may be a recent one
		}
	}
	r.format, r.rank, r.series = key.format, key.rank, s
	return s, evicted
}

// series is a ring of the last values. A sorted copy, for medians and percentiles, is made only when a value stands out. floor and ceiling rule out most values
// with two comparisons each.
type series struct {
	ids    []uint64  // spans of the values
	ring   []float64 // the values
	at     []int64   // iterations of the values, the oldest first: of losses only
	next   int       // index of the oldest, once full
	seen   int64     // values ever added since the series began or began again
	batch  float64   // samples of a step; 0: unknown
	world  int64     // ranks; 0: unknown
	begun  bool      // a value has come
	last   int64     // iteration
	newest int64     // highest iteration ever

	sorted  []float64 // the ring in order, while ordered
	ordered bool
	keep    int // number of further values to insert in order
	// As long as fewer than half of the values are below floor, and fewer than half above ceiling, the median is between floor and ceiling.
	floor, ceiling float64
	below, above   int // values below floor, and above ceiling

	skipped uint64 // id of the last warm-up step

	// For speeds:
	best            float64 // median of the fastest full window; 0: no full window yet
	quiet           int     // how many more values the slowdown is not repeated for
	lastDip, dipGap int64   // ordinal of the last dip, and its distance from the dip before
	inSpike         bool    // loss only: the last value was a spike
}

// finding is the comparison of a value with its series.
type finding struct {
	n              int     // of values before
	median, spread float64 // of the values before; spread is 1.4826 MAD, the standard deviation of a normal distribution
	low            bool    // clearly below P10
	p10            float64
	slow           bool    // the window's median is clearly below the best median
	current, best  float64 // the window's median, and the best
	spike          bool    // a loss far above the median
}

// robustZ is the number of robust standard deviations below the median from which a throughput is clearly low. The MAD of a hundred values has itself an error
// of 12 % (one standard error), so a smaller limit would be reached by chance.
const robustZ = 6

// value is one value of a step, for its series.
type value struct {
	id           uint64
	x            float64
	batch        float64
	world        int64 // ranks; 0: not known
	iteration    int64
	hasIteration bool
}

// add compares a value with the values before (the result is f), and adds it to the series. A span id still in the series is not added again, so a retried
// batch changes nothing; a span with a new highest iteration cannot be a repeat. Speeds of warm-up steps say nothing, and are left out.
func (s *series) add(q quantity, v *value, cfg *Config, f *finding) {
	*f = finding{}
	began := !s.begun
	s.begun = true
	if !v.hasIteration || v.iteration <= s.newest {
		if v.id == s.skipped && !began || slices.Contains(s.ids, v.id) { // began: nothing can be skipped yet
			return
		}
	} else {
		s.newest = v.iteration
	}
	ramped, resized := v.batch > 0 && v.batch != s.batch, v.world > 0 && v.world != s.world
	beginsAnew := ramped && s.batch > 0 || resized && s.world > 0
	if beginsAnew {
		// Another batch size makes different steps (Megatron's batch size ramp-up), and so does another number of ranks.
		*s = series{begun: true, batch: s.batch, world: s.world, last: s.last, newest: s.newest, ids: s.ids[:0], ring: s.ring[:0], at: s.at[:0], sorted: s.sorted[:0]}
	}
	if ramped {
		s.batch = v.batch
	}
	if resized {
		s.world = v.world
	}
	warmUp := began
	if v.hasIteration {
		// The first iteration compiles and allocates, also after a return to a checkpoint.
		warmUp = warmUp || v.iteration <= 1 || v.iteration < s.last
		s.last = v.iteration
	}
	if q == quantityLoss {
		if n := len(s.at); v.hasIteration && n > 0 && v.iteration < s.at[n-1] && v.iteration < slices.Min(s.at) { // steps in order need no minimum
			// The log of another host is read, or the training has gone back a long way: losses of later steps are no measure of those of earlier ones.
			s.ids, s.ring, s.at, s.sorted = s.ids[:0], s.ring[:0], s.at[:0], s.sorted[:0]
			s.next, s.below, s.above, s.ordered, s.inSpike, s.newest = 0, 0, 0, false, false, v.iteration
		}
		s.compareSpike(v.x, cfg, f)
		s.push(v.id, v.x, cfg.Window)
		s.noteIteration(v, cfg.Window)
		return
	}
	if warmUp {
		s.skipped = v.id
		return
	}
	s.compareLow(v.x, cfg, f)
	s.push(v.id, v.x, cfg.Window)
	s.compareSlow(cfg, f)
}

// noteIteration records the iteration of the value that was pushed last.
func (s *series) noteIteration(v *value, size int) {
	if !v.hasIteration {
		return
	}
	if s.at = append(s.at, v.iteration); len(s.at) > size {
		s.at = slices.Delete(s.at, 0, 1)
	}
}

// push adds a value, in place of the oldest once there are size values, and updates the order and the counts.
func (s *series) push(id uint64, x float64, size int) {
	s.seen++
	// A series compared value by value is kept sorted; otherwise sorting waits until needed.
	s.ordered = s.ordered && s.keep > 0
	s.keep = max(s.keep-1, 0)
	if len(s.ring) < size {
		s.ids, s.ring = append(s.ids, id), append(s.ring, x)
	} else {
		old := s.ring[s.next]
		s.count(old, -1)
		if s.ordered {
			i, _ := slices.BinarySearch(s.sorted, old)
			s.sorted = slices.Delete(s.sorted, i, i+1)
		}
		s.ids[s.next], s.ring[s.next] = id, x
		if s.next++; s.next == size {
			s.next = 0
		}
	}
	s.count(x, 1)
	if s.ordered {
		i, _ := slices.BinarySearch(s.sorted, x)
		s.sorted = slices.Insert(s.sorted, i, x)
	}
}

// count counts a value below floor or above ceiling in (n = 1) or out (n = −1).
func (s *series) count(x float64, n int) {
	if x < s.floor {
		s.below += n
	} else if x > s.ceiling {
		s.above += n
	}
}

// sortedValues returns the sorted values. The next few values are then inserted in order, since outliers rarely come alone.
func (s *series) sortedValues() []float64 {
	s.sortAndBound()
	s.keep = 8
	return s.sorted
}

// sortAndBound sorts the values, and sets floor and ceiling to their thirds.
func (s *series) sortAndBound() {
	if !s.ordered {
		// From the oldest on: a loss that only falls is then sorted already.
		s.sorted = append(append(s.sorted[:0], s.ring[s.next:]...), s.ring[:s.next]...)
		slices.Sort(s.sorted)
		s.ordered = true
	}
	third := len(s.sorted) / 3
	s.floor, s.ceiling = s.sorted[third], s.sorted[len(s.sorted)-1-third]
	s.below, _ = slices.BinarySearch(s.sorted, s.floor)
	after, _ := slices.BinarySearch(s.sorted, math.Nextafter(s.ceiling, math.Inf(1)))
	s.above = len(s.sorted) - after // after is the index of the first value above ceiling
}

// bounds returns a lower and an upper bound of the median. Rounding is monotonic, so a comparison with the scaled median holds only where the comparison with
// the scaled bound holds.
func (s *series) bounds() (floor, ceiling float64) {
	if half := (len(s.ring) - 1) / 2; s.below > half || s.above > half {
		s.sortAndBound()
	}
	return s.floor, s.ceiling
}

// median returns the median of the values. Only values between floor and ceiling are sorted: without the s.below lowest values, the middle ones are at (n−1)/2
// − below and n/2 − below.
func (s *series) median() float64 {
	floor, ceiling := s.bounds()
	s.sorted, s.ordered = s.sorted[:0], false
	for _, x := range s.ring {
		if x >= floor && x <= ceiling {
			s.sorted = append(s.sorted, x)
		}
	}
	slices.Sort(s.sorted)
	n := len(s.ring)
	return (s.sorted[(n-1)/2-s.below] + s.sorted[n/2-s.below]) / 2
}

// compareLow sets f.low if a speed is clearly below the speeds before: below their P10, below the median by the configured share, and by more than robustZ.
// Dips at equal distances (a checkpoint every N steps), and consecutive dips (a slower phase, see compareSlow), are reported twice and then no more.
func (s *series) compareLow(x float64, cfg *Config, f *finding) {
	f.n = len(s.ring)
	if f.n < cfg.MinSamples {
		return
	}
	if _, ceiling := s.bounds(); !(x < ceiling*(1-cfg.ThroughputDrop)) {
		return
	}
	sorted := s.sortedValues()
	f.median, f.p10 = stat.Median(sorted), sorted[(f.n-1)/10]
	if !(x < f.p10 && x < f.median*(1-cfg.ThroughputDrop)) {
		return
	}
	f.spread = stat.Sigma(sorted, f.median)
	// Logarithms are compared, where times and speeds are symmetric: a speed cannot fall below zero, a time can rise without limit.
	if x >= f.chanceLimit() {
		return
	}
	gap := s.seen - s.lastDip // 1: the value before was a dip, too
	// At the same distance as the dip before, give or take one record.
	regular := s.lastDip > 0 && s.dipGap > 0 && max(gap-s.dipGap, s.dipGap-gap) <= 1
	if s.lastDip > 0 {
		s.dipGap = gap
	}
	s.lastDip = s.seen
	f.low = !regular
}

// compareSlow sets f.slow if the median of the full window is clearly below the best median of the run; after a verdict it pauses for a window. best is taken
// at the ends of disjoint windows: the best of fewer medians is less biased by chance. The bound of the median excludes most values before anything is sorted.
func (s *series) compareSlow(cfg *Config, f *finding) {
	if s.quiet > 0 {
		s.quiet--
	}
	if len(s.ring) < cfg.Window {
		return
	}
	if s.best > 0 && s.quiet == 0 {
		if floor, _ := s.bounds(); s.best > floor*(1+cfg.Slowdown) {
			s.confirmSlow(cfg, f)
		}
	}
	if s.seen%int64(cfg.Window) == 0 {
		s.best = max(s.best, s.median())
	}
}

// confirmSlow makes the comparison of compareSlow with the exact median. f.slow: the median is lower by more than the configured share, and by more than noise
// explains.
func (s *series) confirmSlow(cfg *Config, f *finding) {
	sorted := s.sortedValues()
	f.current, f.best = stat.Median(sorted), s.best
	if !(f.best > f.current*(1+cfg.Slowdown)) {
		return
	}
	// Noise must not explain the difference: the standard error of the difference of two medians is 1.2533·σ·√(2/n).
	se := 1.2533 * stat.Sigma(sorted, f.current) * math.Sqrt(2/float64(len(sorted)))
	f.slow = f.best-f.current > 5*se // many comparisons are made: by chance hardly ever
	if f.slow {
		s.quiet = cfg.Window
	}
}

// spikeFloor is the least relative rise of a loss over the median, however steady the loss was.
const spikeFloor = 0.10

// compareSpike sets f.spike if a loss is far above the losses before: above their median by spikeFloor, and by Config.LossSpike robust standard deviations. A
// lasting rise is reported at its start only.
func (s *series) compareSpike(x float64, cfg *Config, f *finding) {
	f.n = len(s.ring)
	if f.n < cfg.MinSamples {
		return
	}
	if floor, _ := s.bounds(); x > spikeLimit(floor) {
		sorted := s.sortedValues()
		f.median = stat.Median(sorted)
		f.spread = stat.Sigma(sorted, f.median)
		f.spike = x > spikeLimit(f.median) && x-f.median > cfg.LossSpike*f.spread
	}
	f.spike, s.inSpike = f.spike && !s.inSpike, f.spike
}

// spikeLimit returns the limit above which a loss is a spike.
func spikeLimit(median float64) float64 { return median + spikeFloor*math.Abs(median) }

// chanceLimit returns the lowest speed that chance explains: robustZ robust standard deviations below the median, on a logarithmic scale.
func (f *finding) chanceLimit() float64 { return f.median * math.Exp(-robustZ*f.spread/f.median) }
