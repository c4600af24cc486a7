package assemble

import "slices"

// matchable is an element of a list: it has a function name and perhaps a pid.
type matchable interface {
	comparable
	fits(name string, pid int64) bool
}

type entry[T matchable] struct {
	t int64
	v T
}

// list is sorted by time. Lines come nearly in order, so that almost everything happens at its end.
type list[T matchable] []entry[T]

// maxScan bounds how many neighbours a search looks at, so that no log makes it quadratic.
const maxScan = 256

// upper is the index behind the entries with times ≤ t.
func (l list[T]) upper(t int64) int {
	lo, hi := 0, len(l)
	if hi == 0 || l[hi-1].t <= t {
		return hi
	}
	for lo < hi {
		if m := (lo + hi) / 2; l[m].t <= t {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

func (l *list[T]) add(t int64, v T) {
	i := l.upper(t)
	if i == len(*l) {
		*l = append(*l, entry[T]{t, v})
		return
	}
	*l = slices.Insert(*l, i, entry[T]{t, v})
}

func (l *list[T]) remove(t int64, v T) {
	for i := l.upper(t) - 1; i >= 0 && (*l)[i].t == t; i-- {
		if (*l)[i].v == v {
			// Calls that never end stay long and leave at the front: moving what lies behind them would be quadratic. Short lists
			// keep their place in memory instead.
			if len(*l) > 64 && i < len(*l)/2 {
				copy((*l)[1:i+1], (*l)[:i])
				(*l)[0] = entry[T]{}
				*l = (*l)[1:]
				return
			}
			n := copy((*l)[i:], (*l)[i+1:]) + i
			clear((*l)[n:])
			*l = (*l)[:n]
			return
		}
	}
}

// near returns the fitting element closest to t, at most tol away.
func (l list[T]) near(t, tol int64, name string, pid int64) (best T, ok bool) {
	gap := tol + 1
	for i, n := l.upper(t+tol)-1, 0; i >= 0 && n < maxScan; i, n = i-1, n+1 {
		d := l[i].t - t
		if d < 0 {
			d = -d
			if d >= gap { // from here on it only gets worse
				break
			}
		}
		if d < gap && l[i].v.fits(name, pid) {
			best, gap, ok = l[i].v, d, true
		}
	}
	return best, ok
}

// before returns the fitting element closest before t (or at most tol after it), at most limit away.
func (l list[T]) before(t, tol, limit int64, name string, pid int64) (best T, ok bool) {
	for i, n := l.upper(t+tol)-1, 0; i >= 0 && n < maxScan && t-l[i].t <= limit; i, n = i-1, n+1 {
		if l[i].v.fits(name, pid) {
			return l[i].v, true
		}
	}
	return best, false
}
