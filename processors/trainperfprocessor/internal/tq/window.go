package tq

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/trainbridge/trainbridge/processors/internal/lru"
	"github.com/trainbridge/trainbridge/spans"
)

// maxWindowNS is the upper limit of a duration in a window (13 days); longer durations count as maxWindowNS. With maxWindow values it keeps n·Σd² below 2^128.
const maxWindowNS = 1 << 50

// windowKey identifies a population of similar durations.
type windowKey struct {
	service, run, function string
	stage                  spans.TQStage
}

// windows holds the last durations per key.
type windows struct {
	cfg   FluctuationConfig
	mu    sync.Mutex
	byKey *simplelru.LRU[windowKey, *window]
}

// newWindows returns no windows yet.
func newWindows(cfg FluctuationConfig) *windows {
	return &windows{cfg: cfg, byKey: lru.New[windowKey, *window](lru.Size)}
}

// spread is the distribution of a window's durations.
type spread struct {
	n    int     // of durations
	cv   float64 // population standard deviation / mean, as PromQL's stddev_over_time / avg_over_time
	mean float64 // s
	// say: the spread is a verdict that no span within the last window's length has carried.
	due bool
}

// add adds the duration of a span, ns, to the window of the key, and returns the spread of the window. A span id still in the window is not added again, so a
// retried batch changes nothing. evicted: another window was dropped.
func (w *windows) add(key windowKey, span, ns uint64) (s spread, evicted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	win, ok := w.byKey.Get(key)
	if !ok {
		win = new(window)
		// The key outlives its batch.
		key.service, key.run, key.function = strings.Clone(key.service), strings.Clone(key.run), strings.Clone(key.function)
		evicted = w.byKey.Add(key, win)
	}
	fresh := win.add(span, min(ns, maxWindowNS), w.cfg.Window)
	s = win.spread()
	switch {
	case !fresh: // a repeat, whose first verdicts verdict.Memory has
	case win.quiet > 0:
		win.quiet--
	case s.n >= w.cfg.MinSamples && s.cv > w.cfg.Threshold:
		// The spread is about the window, not about this span: one span per window length gets the verdict; on every span, it would bury the rest.
		s.due = true
		win.quiet = w.cfg.Window - 1
	}
	return s, evicted
}

// window is a ring of the last durations with their exact sum and sum of squares: integers do not drift, however long
// the window slides.
type window struct {
	spans, ns []uint64 // span id and duration of each
	next      int      // index of the oldest, once full
	quiet     int      // how many more durations the verdict is not repeated for
	sum       uint64   // of ns
	sqHi, sq  uint64   // sum of the squares, as a number of 128 bits
}

// add adds a duration, ns, to the window, in place of the oldest if the window has size durations. false: the span is still in the window, and nothing was
// added.
func (w *window) add(span, ns uint64, size int) bool {
	if slices.Contains(w.spans, span) {
		return false
	}
	if len(w.ns) < size {
		w.spans, w.ns = append(w.spans, span), append(w.ns, ns)
	} else {
		old := w.ns[w.next] // leaves the sums
		hi, lo := bits.Mul64(old, old)
		var borrow uint64
		w.sq, borrow = bits.Sub64(w.sq, lo, 0)
		w.sqHi, _ = bits.Sub64(w.sqHi, hi, borrow)
		w.sum -= old
		w.spans[w.next], w.ns[w.next] = span, ns
		w.next = (w.next + 1) % size
	}
	hi, lo := bits.Mul64(ns, ns)
	var carry uint64
	w.sq, carry = bits.Add64(w.sq, lo, 0)
	w.sqHi, _ = bits.Add64(w.sqHi, hi, carry)
	w.sum += ns
	return true
}

// spread returns the spread of the durations. The coefficient of variation is √(n·Σd² − (Σd)²) / Σd, computed exactly until the last step.
func (w *window) spread() spread {
	n := uint64(len(w.ns))
	if w.sum == 0 {
		return spread{n: len(w.ns)}
	}
	// hi, lo = n·Σd² − (Σd)², in 128 bits: the bound of a duration, maxWindowNS, leaves room.
	hi, lo := bits.Mul64(w.sq, n)
	hi += w.sqHi * n
	sumHi, sumLo := bits.Mul64(w.sum, w.sum)
	lo, borrow := bits.Sub64(lo, sumLo, 0)
	hi, _ = bits.Sub64(hi, sumHi, borrow)
	variance := float64(hi)*(1<<64) + float64(lo)
	return spread{n: len(w.ns), cv: math.Sqrt(variance) / float64(w.sum), mean: float64(w.sum) / float64(n) / 1e9}
}
