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

// quantity says what the values of a series measure.
type quantity uint8

// The speeds come first, in the order of choice where a record has several: a log's own rates are nearer to what happened
// than rates made of its times. All are of the kind "more is better".
const (
	quantitySamples quantity = iota
	quantityTokens
	quantityDeviceTokens
	quantityFlops
	quantitySteps // steps per second: 1 / step time
	quantityLoss
)

// seriesKey names one population of values that should resemble each other.
type seriesKey struct {
	service, run, format string
	rank                 int64
	quantity             quantity
}

// allSeries holds the last values per key.
type allSeries struct {
	mu    sync.Mutex // of the map and of the series in it; held while the steps of a resource are judged
	byKey *simplelru.LRU[seriesKey, *series]
}

func newAllSeries() *allSeries { return &allSeries{byKey: lru.New[seriesKey, *series](lru.Size)} }

// recentSeries are the series used last, one per quantity, of a service and run: mostly all steps of a resource go into the same two.
type recentSeries [quantityLoss + 1]struct {
	format string
	rank   int64
	series *series
}

// of returns the series of a key, and makes it where there is none. evicted tells that another series was forgotten.
func (a *allSeries) of(key seriesKey, recent *recentSeries) (s *series, evicted bool) {
	r := &recent[key.quantity]
	if r.series != nil && r.rank == key.rank && r.format == key.format {
		return r.series, false
	}
	s, ok := a.byKey.Get(key)
	if !ok {
		s = &series{last: math.MinInt64, newest: math.MinInt64}
		// The key outlives the batch it was read from.
		key.service, key.run, key.format = strings.Clone(key.service), strings.Clone(key.run), strings.Clone(key.format)
		if evicted = a.byKey.Add(key, s); evicted {
			*recent = recentSeries{} // the series that was forgotten may be one of the recent ones
		}
	}
	r.format, r.rank, r.series = key.format, key.rank, s
	return s, evicted
}

// series is a ring of the last values. The same values in order, off which medians and percentiles are read, are made only when a value
// stands out: floor and ceiling, which cost two comparisons per value, tell the values that cannot.
type series struct {
	ids    []uint64
	ring   []float64
	next   int
	seen   int64 // values ever added since the series began or began again
	batch  float64
	world  int64
	begun  bool
	last   int64 // iteration
	newest int64 // highest iteration ever

	sorted  []float64 // the ring in order, while ordered
	ordered bool
	keep    int // how many more values are sorted in as they come
	// As long as fewer than half of the values are below floor, and fewer than half above ceiling, the median is between them.
	floor, ceiling float64
	below, above   int

	skipped uint64 // id of the last value that was not added

	// The next ones are for speeds only.
	best            float64 // median of the fastest full window; 0 while there is none
	quiet           int     // how many more values the slowdown is not repeated for
	lastDip, dipGap int64   // ordinal of the last dip, and how far before it the one before was
	inSpike         bool    // loss only
}

// finding says how a value stands out in its series.
type finding struct {
	n              int
	median, spread float64 // of the values before it; spread is 1.4826 MAD, the standard deviation of a normal distribution
	low            bool    // clearly below P10
	p10            float64
	slow           bool // the window's median is clearly below the best one
	current, best  float64
	spike          bool
}

// robustZ is how many robust standard deviations below the median a throughput must be to count as clearly low. The MAD of a hundred values
// is itself off by 12 % (one standard error), so that less would be reached by chance.
const robustZ = 6

// value is one value of a step, to be added to its series.
type value struct {
	id           uint64
	x            float64
	batch        float64
	world        int64 // ranks; 0: not known
	iteration    int64
	hasIteration bool
}

// add puts a value into its series and says how it stands out there. A span id that the series still holds is not added again, so a retried
// batch changes nothing. A span of a higher iteration than any before cannot be one of these.
func (s *series) add(q quantity, v *value, cfg *Config, f *finding) {
	*f = finding{}
	began := !s.begun
	s.begun = true
	if !v.hasIteration || v.iteration <= s.newest {
		if v.id == s.skipped && !began || slices.Contains(s.ids, v.id) {
			return
		}
	} else {
		s.newest = v.iteration
	}
	ramped, resized := v.batch > 0 && v.batch != s.batch, v.world > 0 && v.world != s.world
	if ramped && s.batch > 0 || resized && s.world > 0 {
		// Another batch size makes other steps (Megatron's batch size ramp-up), and so do more or fewer ranks.
		*s = series{begun: true, batch: s.batch, world: s.world, last: s.last, newest: s.newest, ids: s.ids[:0], ring: s.ring[:0], sorted: s.sorted[:0]}
	}
	if ramped {
		s.batch = v.batch
	}
	if resized {
		s.world = v.world
	}
	warmUp := began
	if v.hasIteration {
		// The first iteration compiles and allocates; so does the first after a return to a checkpoint.
		warmUp = warmUp || v.iteration <= 1 || v.iteration < s.last
		s.last = v.iteration
	}
	if q == quantityLoss {
		s.spike(v.x, cfg, f)
		s.push(v.id, v.x, cfg.Window)
		return
	}
	if warmUp {
		s.skipped = v.id
		return
	}
	s.low(v.x, cfg, f)
	s.push(v.id, v.x, cfg.Window)
	s.slow(cfg, f)
}

func (s *series) push(id uint64, x float64, size int) {
	s.seen++
	// A series that is looked at value by value is kept in order; any other is left to be sorted when it matters.
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

func (s *series) count(x float64, n int) {
	if x < s.floor {
		s.below += n
	} else if x > s.ceiling {
		s.above += n
	}
}

// order returns the values in order. Some of the next ones are then sorted in as they come: what stands out rarely comes alone.
func (s *series) order() []float64 {
	s.bound()
	s.keep = 8
	return s.sorted
}

// bound sorts the values and sets floor and ceiling to their thirds.
func (s *series) bound() {
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
	s.above = len(s.sorted) - after
}

// bounds returns a lower and an upper bound of the median. Rounding keeps the order of numbers, so that a comparison with
// the median, of one side scaled, holds only where it holds with the bound.
func (s *series) bounds() (floor, ceiling float64) {
	if half := (len(s.ring) - 1) / 2; s.below > half || s.above > half {
		s.bound()
	}
	return s.floor, s.ceiling
}

// median looks at the values between floor and ceiling only.
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

// low compares a speed with the ones before it: below their P10, below the median by the configured share, and by more than robustZ.
// Dips at equal distances (a checkpoint every so many steps), and one right after the other (a slower phase, which is the
// slowdown's to tell), are said twice and then no more.
func (s *series) low(x float64, cfg *Config, f *finding) {
	if f.n = len(s.ring); f.n < cfg.MinSamples {
		return
	}
	if _, ceiling := s.bounds(); !(x < ceiling*(1-cfg.ThroughputDrop)) {
		return
	}
	sorted := s.order()
	f.median, f.p10 = stat.Median(sorted), sorted[(f.n-1)/10]
	if !(x < f.p10 && x < f.median*(1-cfg.ThroughputDrop)) {
		return
	}
	f.spread = stat.Sigma(sorted, f.median)
	// Logarithms are compared, in which times and speeds are alike: a speed cannot fall further than to zero, a time can.
	if x >= f.lowest() {
		return
	}
	gap := s.seen - s.lastDip
	regular := s.lastDip > 0 && s.dipGap > 0 && max(gap-s.dipGap, s.dipGap-gap) <= 1
	if s.lastDip > 0 {
		s.dipGap = gap
	}
	s.lastDip = s.seen
	f.low = !regular
}

// slow compares the median of a full window with the median of the run's best one, once per value and, when it is said, not again for a window.
// best is taken at the ends of windows that do not overlap: among fewer medians, chance makes the best one less far off.
func (s *series) slow(cfg *Config, f *finding) {
	if s.quiet > 0 {
		s.quiet--
	}
	if len(s.ring) < cfg.Window {
		return
	}
	if s.best > 0 && s.quiet == 0 {
		if floor, _ := s.bounds(); s.best > floor*(1+cfg.Slowdown) {
			s.slowed(cfg, f)
		}
	}
	if s.seen%int64(cfg.Window) == 0 {
		s.best = max(s.best, s.median())
	}
}

func (s *series) slowed(cfg *Config, f *finding) {
	sorted := s.order()
	f.current, f.best = stat.Median(sorted), s.best
	if !(f.best > f.current*(1+cfg.Slowdown)) {
		return
	}
	// Nor may noise explain it: the standard error of the difference of two medians is 1.2533·σ·√(2/n).
	se := 1.2533 * stat.Sigma(sorted, f.current) * math.Sqrt(2/float64(len(sorted)))
	if f.slow = f.best-f.current > 5*se; f.slow {
		s.quiet = cfg.Window
	}
}

// spikeFloor is how much a loss must rise over the median, relative to it, however steady it was.
const spikeFloor = 0.10

// spike compares a loss with the ones before it. A rise that lasts is said at its start.
func (s *series) spike(x float64, cfg *Config, f *finding) {
	if f.n = len(s.ring); f.n < cfg.MinSamples {
		return
	}
	if floor, _ := s.bounds(); x > risen(floor) {
		sorted := s.order()
		f.median = stat.Median(sorted)
		f.spread = stat.Sigma(sorted, f.median)
		f.spike = x > risen(f.median) && x-f.median > cfg.LossSpike*f.spread
	}
	f.spike, s.inSpike = f.spike && !s.inSpike, f.spike
}

// risen is the limit that a loss has to exceed to be a spike.
func risen(median float64) float64 { return median + spikeFloor*math.Abs(median) }

// lowest is the speed that chance does not get below.
func (f *finding) lowest() float64 { return f.median * math.Exp(-robustZ*f.spread/f.median) }
