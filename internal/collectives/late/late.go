// Package late finds the ranks late to collectives, the ranks late again and again, and the cost for the others.
//
// # One collective
//
// Where all ranks leave together (AllReduce, AllGather, ReduceScatter, AllToAll) at some moment e, and durations include waiting, rank i came at e −
// Durationᵢ. The first to come has the longest duration, and rank i came max_j Durationⱼ − Durationᵢ later: e cancels out, and with e every clock. The
// remaining error is the scatter of the ranks' leaving, microseconds.
//
// # Over the window
//
// The lateness of a rank behind the median of the others is its deviation in the work since the last collective; a slow rank deviates to one side again and
// again. Four steps lead to a name:
//
//  1. Only collectives behind work have evidence. In a row of collectives (buckets) all but the first start with all ranks in step: their lateness is near
//     zero whichever rank is slow, and would dilute any mean. The weight of a collective is the median rank's work time, from the end of the last
//     collective to the start of the next; without times, the mean lateness. Collectives lighter than about a sixteenth of the usual weight (see weights)
//     are left out of the window, but their cost counts.
//  2. Lateness y is measured in the median rank's work time, which makes a checkpoint a step like any; without times in ns. y is clipped at ±max(5σ, 3K):
//     a hiccup of three steps weighs no more than a bad moment.
//  3. σ² comes from differences of a rank's consecutive values, averaged over all ranks and 32 collectives: neither a slow rank nor a delay common to all
//     ranks changes the differences. Differences over two collectives give the autocorrelation ρ: in an AR(1) process E(yₜ−yₜ₋₁)² = 2σ²(1−ρ) and
//     E(yₜ−yₜ₋₂)² = 2σ²(1−ρ²), hence 1+ρ is their quotient; the variance of sums grows by s² = σ²·(1+ρ)/(1−ρ) with each value.
//  4. Page's cumulative sum (Biometrika 41, 1954) per rank: S = max(0, S + y − K); the rank is named when S > H. K is the largest harmless lateness, and
//     H = L/θ, where θ solves −K + θs²/2 + θ²κ/6 = 0 (κ: third cumulant, 0 for symmetric noise; then H = L·s²/2K): a walk with the same drift, variance and
//     skewness passes H with probability exp(−θH) = exp(−L) (Lundberg's exponent), whatever the noise. H is at least 4K and S must have been above 0 five
//     times.
//
// With times K is 2 % of the work time: less than half of the 5 % to be found (half would be optimal for long runs: Moustakides, Ann. Stat. 14, 1986; with s²
// and 20 steps given √(L·s²/40) is, 1.6 % for σ = 1.5 % and ρ = 0.5), and four times the differences between healthy GPUs. Without times the length of
// the work is unknown: K is 1.25 σ + 2 standard deviations of the persistent differences between the ranks (known among 16 or more), at least 2.5 % of the
// transfers' time. L = 16: see TestFalseAlarms for the remaining false alarms. Skewed noise (lognormal) has a mean above its median: K grows by the difference
// (known among 16 or more ranks).
//
// A rank is no longer named when the opposite sum, of K/2 − y, passes the same H. A lateness between K/2 and K decides nothing either way.
//
// The median is taken over the other ranks: with two ranks a median of both would be half way between them.
//
// Operations and sizes may alternate: lateness is about arriving.
package late

import "math"

// DefaultSize is the collectives looked back on where nothing else is set, as VCCL's TELEMETRY_WINDOWSIZE.
const DefaultSize = 50

const (
	minSize, maxSize = 8, 512
	maxRanks         = 4096

	// Selection of collectives (step 1).
	weightMemory = 1. / 512 // EWMA
	weightPowers = 2        // powers of four

	// σ and ρ (step 3).
	noiseMemory  = 1. / 32 // EWMA; longer among fewer than eight ranks
	maxRho       = 0.9
	warmUp       = 4     // collectives for learning σ only; their evidence counts later
	robust       = 3     // the first of the warm-up: σ² is by the median of squares, for lack of a clipping limit
	medianToMean = 2.198 // of a squared normal variable: 1/Φ⁻¹(¾)²
	freedom      = 16    // s² is taken as 1 + 16/values times as large: few values may say too little

	// K and H (step 4).
	material      = 0.02
	sigmaShare    = 1.25
	transferShare = 0.025
	spreadShare   = 2
	manyRanks     = 16      // among fewer, one slow rank is most of the spread
	meanMemory    = 1. / 16 // EWMA
	evidence      = 16      // L
	minSum        = 4
	minRun        = 5
	cutSigma      = 5
	cutK          = 3
	minWork       = 1. / 4 // share of the transfer's time: a shorter work time counts as this share, to keep K above 0

	minScored = 5 // work times before the first score
	refresh   = 3 // times per window, a rank's median work time is computed anew

	most = 1 << 62 // ns: more is not a time
)

// Arrival is one rank's record of a collective.
type Arrival struct {
	Rank     int32
	Duration int64 // ns, waiting for the others included (op.Op.Waits); negative: unknown, the rank takes no part
	Start    int64 // ns on the rank's own clock, 0: unknown. Only compared with times of the same rank
}

// Slow is a clearly slow rank.
type Slow struct {
	Rank  int32
	Late  int64   // ns behind the median of the other ranks: the median since the rank became slow, at most over the window
	Score float64 // see Window.Score; NaN: unknown
	Cost  int64   // rank-ns: the sum of Result.Cost over the window, of collectives with the rank last
	New   bool    // named in this call
}

// Result is the judgement of a collective.
type Result struct {
	Last int   // index of the last to arrive, the first of equals; −1: none (fewer than two ranks, or all came at the same time)
	Max  int64 // ns, lateness of the last
	Cost int64 // rank-ns saved by the others had the last come with the last but one: (n−1)·(late_last − late_second)
	// Slow are the clearly slow ranks, worst first. Valid until the next call of Observe.
	Slow []Slow
	// Over are the ranks that were slow until now and are as fast as the others again. Valid until the next call of Observe.
	Over []int32
}

// Window has the last collectives of a communicator, of all operations together: the time between two collectives is only work if none is left out. A Window
// takes 12 bytes per rank and collective, for 4096 ranks: further ranks count for Result but are never named. It is not safe for concurrent use.
type Window struct {
	size  int             // counting collectives
	index map[int32]int32 // index of a rank in ranks
	ranks []rank
	rings []cell // size per rank, for the collectives that count

	calls   uint64 // of Observe
	weights weights
	timed   bool // the unit of y is the work time, else ns
	counted int  // collectives, in the current unit

	noise     [2]movingMean // ½(yₜ−yₜ₋₁)², ½(yₜ−yₜ₋₂)²
	cube      movingMean    // (y − the rank's mean)³
	shift     movingMean    // y: how far the mean is above the median
	spread    float64       // mean of the ranks' squared means …
	ownNoise  float64       // … and the part of s² in it by chance
	spreadOf  int           // ranks in spread
	transfer  float64       // the shortest duration of a collective: EWMA, ns
	sigma     float64       // σ
	k, h, cut float64       // K, H, and the limit ±cut of y; +Inf: not known yet
	best      float64       // median work time of the best rank, ns; 0: unknown

	at     []int32 // for each arrival its index in ranks; −1: no room, or twice
	works  []int64 // for each arrival its work time, ns; −1: unknown
	times  []int64 // scratch, as values
	values []float32
	halves []float32 // ½(yₜ−yₜ₋₁)² of the ranks, for their median
	slow   []Slow    // Result.Slow
	over   []int32   // Result.Over
	slows  int       // number of named ranks
}

// cell is a rank's part in one collective.
type cell struct {
	late float32 // ns behind the median of the others
	cost float32 // Result.Cost if the rank was last, ns
	work float32 // ns; −1: unknown
}

// rank is the state of a rank.
type rank struct {
	id    int32
	seen  uint64 // Window.calls of its last collective
	end   int64  // end of its last collective, own clock, Unix ns; 0: unknown
	n     int32  // cells in its ring
	next  int32  // index in its ring of the next cell
	works int32  // counting collectives with a work time

	y      [2]float64          // the last two, the latest first
	ys     int8                // values in y
	mean   float64             // moving average of y
	ownVar float64             // the part of s² in mean by chance
	means  int32               // values in mean
	early  [warmUp + 1]float64 // values to be added to the sums later
	held   int8                // values in early
	up     float64             // S
	run    int32               // collectives since S was 0
	down   float64             // the opposite sum, of a named rank
	named  bool                // clearly slow
	isNew  bool                // named in the latest call

	median float64 // work time, ns; 0: unknown
}

// NewWindow makes a Window over size counting collectives (8 to 512; 0: DefaultSize).
func NewWindow(size int) *Window {
	if size <= 0 {
		size = DefaultSize
	}
	w := &Window{size: min(max(size, minSize), maxSize), index: make(map[int32]int32)}
	w.restart(false)
	return w
}

// Observe takes the records of the ranks in a collective, in any order of ranks but in the order of the collectives. It fills late, of the same length: late[i]
// is how many ns a[i] came after the first; −1: unknown. Collectives with less than half of the known ranks only count for Result.Last, Max and Cost.
func (w *Window) Observe(a []Arrival, late []int64) Result {
	w.calls++
	w.over = w.over[:0]
	r, b := lateness(a, late)
	w.noteArrivals(a)
	if b.n > 1 && 2*b.n >= w.activeRanks(len(a)) {
		w.judge(a, b, &r)
	}
	w.noteLeaving(a)
	r.Slow, r.Over = w.slowRanks(), w.over
	return r
}

// bounds has the number, the longest and the shortest of the known durations of a collective, ns.
type bounds struct {
	n                 int
	longest, shortest int64
}

// lateness fills late, of the length of a, with how many ns each rank came after the first (−1: unknown). The result says who was last, with the shortest
// duration, and the cost for the others.
func lateness(a []Arrival, late []int64) (r Result, b bounds) {
	r.Last = -1
	last, second := -1, int64(math.MaxInt64) // index of the shortest duration, and the shortest but one
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
		late[i] = -1
		if a[i].Duration >= 0 {
			late[i] = b.longest - a[i].Duration
		}
	}
	if b.n == 0 {
		return r, b
	}
	b.shortest = a[last].Duration
	if b.shortest < b.longest {
		r.Last, r.Max = last, late[last]
		// late_last − late_second = duration_second − duration_last. The bound keeps the product below an overflow.
		r.Cost = int64(b.n-1) * min(second-b.shortest, most/int64(b.n))
	}
	return r, b
}

// Score returns the relative score of a rank as defined by nvidia-resiliency-ext (NVRx): the best rank's time ÷ the rank's own, 0..1; 0.5 is twice as slow as
// the best. Time is the time from the end of the last collective to the next start on the rank's own clock, its median over the window. ok is false for fewer
// than five times.
func (w *Window) Score(rank int32) (score float64, ok bool) {
	at, ok := w.index[rank]
	if !ok {
		return 0, false
	}
	return w.score(&w.ranks[at])
}

// score is Score for the state of a rank.
func (w *Window) score(r *rank) (float64, bool) {
	if r.median <= 0 || w.best <= 0 {
		return 0, false
	}
	return min(w.best/r.median, 1), true
}
