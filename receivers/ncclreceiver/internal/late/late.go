// Package late tells who came late to collectives, who does so again and again, and what that cost the others.
//
// # One collective
//
// Where all ranks leave together (AllReduce, AllGather, ReduceScatter, AllToAll) at some moment e, and durations include waiting, rank i came at e − Durationᵢ.
// The first to come has the longest duration, and rank i came max_j Durationⱼ − Durationᵢ after it: e is gone, and with it every clock. What is left of error is
// how far apart the ranks really leave, microseconds.
//
// # Over the window
//
// How late a rank is behind the median of the others is its deviation in the work since they last met; a rank that is slow deviates to one side again and
// again. Four steps lead from there to a name:
//
//  1. Only collectives that follow work say something. Of several in a row (buckets, layers) all but the first start with all ranks in step: their lateness is
//     near zero whoever is slow, and would dilute any mean. A collective counts if its weight (the median rank's time since the last collective; where there are
//     no times, the mean lateness) is at least 1/8 of what collectives of weight have (Σw²/Σw over about 64 of them). The others are left out of
//     the window; their cost is not.
//  2. Lateness is measured in the median rank's work time, so that long steps (checkpoints) count as short ones; without times in ns. It is cut off at
//     ±max(5σ, 3K), so that a hiccup of three steps weighs no more than a bad step.
//  3. σ² comes from differences of a rank's consecutive values, averaged over all ranks and about 32 collectives: neither who is slow nor common noise changes it.
//     Differences over two collectives against those over one give the autocorrelation ρ (E(yₜ−yₜ₋₁)² = 2σ²(1−ρ), E(yₜ−yₜ₋₂)² = 2σ²(1−ρ²) in an AR(1) process,
//     so 1+ρ is their quotient), and s² = σ²·(1+ρ)/(1−ρ) the variance that sums grow by.
//  4. Page's cumulative sum (Biometrika 41, 1954): S = max(0, S + y − K) per rank; named when S > H. K is the lateness that does not matter, H = L·s²/2K: a sum
//     with drift −K and variance s² passes H with probability exp(−2KH/s²) = exp(−L) (Wald; Lundberg's exponent), whatever K and s are. L = 16.
//     With times K is 2.5 % of the work time: half of the 5 % to be found, which is where Page's sum is optimal (Moustakides, Ann. Stat. 14, 1986), and five times the
//     differences between healthy GPUs. Without, nothing says how long the work took: K is the largest of 1.25 σ, 5 % of the median duration, and three standard
//     deviations of what persistent differences there are between the ranks.
//
// A name is taken back when the sum the other way round, of K/2 − y, passes the same H: what is between K/2 and K stays as it is.
//
// Operations and sizes may alternate: lateness is about arriving.
package late

import (
	"math"
)

// DefaultSize is the collectives looked back on where nothing else is set, as VCCL's TELEMETRY_WINDOWSIZE.
const DefaultSize = 50

const (
	minSize, maxSize = 8, 512
	maxRanks         = 4096

	// What counts (step 1).
	weightMemory = 1. / 128 // EWMA
	weightPowers = 2        // of four

	// σ and ρ (step 3).
	noiseMemory = 1. / 32
	maxRho      = 0.9
	warmUp      = 4 // collectives from which nothing but σ is learnt
	robust      = 3 // of them, the first: σ² is by the median of squares, not yet by their mean, cut off

	medianToMean = 2.198 // of a squared normal variable: 1/Φ⁻¹(¾)²

	// K and H (step 4).
	freedom = 16 // s² is taken as 1 + 16/values times as large: few values may say too little

	// K and H (step 4).
	material      = 0.02
	sigmaShare    = 1.25
	transferShare = 0.025
	spreadShare   = 2
	manyRanks     = 16 // among fewer, one slow rank is most of the spread
	meanMemory    = 1. / 16
	evidence      = 16 // L
	minSum        = 4  // H is at least this times K …
	minRun        = 5  // … and S must be above 0 for so many collectives: a bad moment is not a slow rank
	cutSigma      = 5  // step 2
	cutK          = 3
	minWork       = 1. / 4 // of the transfer: a shorter work time counts as that, K does not go to 0 with it

	minScored = 5 // work times from which on there is a score
	refresh   = 8 // a rank's median work time is computed anew once in so many collectives
)

// Arrival is what one rank says about a collective.
type Arrival struct {
	Rank     int32
	Duration int64 // ns, waiting for the others included (op.Op.Waits); negative: unknown, it takes no part
	Start    int64 // ns on the rank's own clock, 0: unknown. Only compared with other times of the same rank
}

// Slow is a rank that is clearly slow.
type Slow struct {
	Rank  int32
	Late  int64   // ns behind the median of the other ranks: the median since it became slow, at most over the window
	Score float64 // see Window.Score; NaN: unknown
	Cost  int64   // rank-ns: the sum of Result.Cost over the window where it was the last
	New   bool    // named with this call
}

// Result is what one collective said.
type Result struct {
	Last int   // index of the last to arrive, the first of equals; −1: there is none (fewer than two ranks, or all came at the same time)
	Max  int64 // ns, how late it was
	Cost int64 // rank-ns that the others would have been spared had it come with the last but one: (n−1)·(late_last − late_second)
	// Slow are the ranks that are clearly slow, worst first. Valid until the next call of Observe.
	Slow []Slow
}

// Window looks back on the collectives of one communicator, of all its operations together: the time between two collectives is only work if none is left out. It
// keeps 12 bytes per rank and collective looked back on, of 4096 ranks: others count for Result but are never named. It is not safe for concurrent use.
type Window struct {
	size  int
	index map[int32]int32 // of a rank in ranks
	ranks []rank
	// Rings of size values per rank, for the collectives that count: ns behind the median of the others, Result.Cost where it was last, and ns of work.
	late, cost, work []float32

	calls   uint64
	weights weights
	timed   bool
	counted int // collectives, since timed is what it is
	// ½(yₜ−yₜ₋₁)² and ½(yₜ−yₜ₋₂)²
	noise       [2]moving
	spread      float64 // mean of the ranks' squared means …
	ownNoise    float64 // … and what share of s² is in there by chance
	spreadOf    int
	transfer    float64 // ns
	cube, shift moving
	sigma       float64
	k, h        float64
	cut         float64
	best        float64 // median work time of the best rank, ns

	at     []int32 // of each arrival in ranks; −1: not known
	works  []int64 // of each arrival; −1: unknown
	times  []int64
	values []float32
	halves []float32
	slow   []Slow
	slows  int // ranks that are named
}

// rank is what is known about a rank.
type rank struct {
	id    int32
	seen  uint64 // call
	end   int64  // of its last collective, own clock; 0: unknown
	n     int32  // values in the rings
	next  int32
	works int32 // collectives that counted and had a work time

	y       [2]float64 // the last two
	ys      int8
	mean    float64
	ownVar  float64 // the part of s² that is in mean by chance
	means   int32
	early   [warmUp + 1]float64
	earlies int8
	up      float64 // S
	run     int32   // collectives since S was 0
	down    float64
	named   bool
	isNew   bool

	median float64 // work time, ns; 0: unknown
}

// NewWindow makes a Window that looks back on size collectives that count (8 to 512; 0: DefaultSize).
func NewWindow(size int) *Window {
	if size <= 0 {
		size = DefaultSize
	}
	w := &Window{size: min(max(size, minSize), maxSize), index: make(map[int32]int32)}
	w.restart(false)
	return w
}

// Observe takes what the ranks say about one collective, in any order but in the order of the collectives, and fills late, of the same length: late[i] is how many
// ns a[i] came behind the first; −1: unknown. Collectives with less than half of the ranks known only count for Result.Last, Max and Cost.
func (w *Window) Observe(a []Arrival, late []int64) Result {
	w.calls++
	r, b := lateness(a, late)
	w.arrive(a)
	if b.n > 1 && 2*b.n >= w.known(len(a)) {
		w.judge(a, b, &r)
	}
	w.leave(a)
	r.Slow = w.named()
	return r
}

// bounds are of the known durations of a collective.
type bounds struct {
	n                 int
	longest, shortest int64
}

func lateness(a []Arrival, late []int64) (r Result, b bounds) {
	r.Last = -1
	last, second := -1, int64(math.MaxInt64)
	for i := range a {
		d := a[i].Duration
		if d < 0 {
			continue
		}
		b.n++
		b.longest = max(b.longest, d)
		if last < 0 || d < a[last].Duration {
			if last >= 0 {
				second = a[last].Duration
			}
			last = i
		} else {
			second = min(second, d)
		}
	}
	for i := range a {
		if late[i] = -1; a[i].Duration >= 0 {
			late[i] = b.longest - a[i].Duration
		}
	}
	if b.n == 0 {
		return r, b
	}
	b.shortest = a[last].Duration
	if b.shortest < b.longest {
		r.Last, r.Max = last, late[last]
		r.Cost = int64(b.n-1) * (second - b.shortest) // late_last − late_second = duration_second − duration_last
	}
	return r, b
}

// Score is the relative score of a rank as nvidia-resiliency-ext (NVRx) defines it: the best rank's time ÷ this rank's, 0..1; 0.5 is twice as slow as the
// best. Time is that between the end of the last collective and the start of this one on the rank's own clock, the median over the window. ok is false where
// there are not yet five such times.
func (w *Window) Score(rank int32) (score float64, ok bool) {
	at, ok := w.index[rank]
	if !ok {
		return 0, false
	}
	return w.score(&w.ranks[at])
}

func (w *Window) score(r *rank) (float64, bool) {
	if r.median <= 0 || w.best <= 0 {
		return 0, false
	}
	return min(w.best/r.median, 1), true
}
