package late

import (
	"cmp"
	"math"
	"slices"
)

// noteArrivals fills w.at and w.works: for each arrival the index of its rank, and how long the rank worked since the end of the last collective, by its own
// clock, ns. The work time is unknown (−1) unless the rank took part in the last collective too.
func (w *Window) noteArrivals(a []Arrival) {
	w.at, w.works = slices.Grow(w.at[:0], len(a)), slices.Grow(w.works[:0], len(a))
	next := int32(0) // ranks mostly come in the same order
	for i := range a {
		at := next
		if int(at) >= len(w.ranks) || w.ranks[at].id != a[i].Rank {
			at = w.find(a[i].Rank)
		}
		work := int64(-1)
		if at >= 0 {
			next = at + 1
			p := &w.ranks[at]
			if p.seen == w.calls {
				at = -1 // twice in one collective: the first counts
			} else {
				if w.calls-p.seen > uint64(w.size) {
					w.reset(p)
				} else if p.seen == w.calls-1 && p.end != 0 && a[i].Start > 0 {
					work = max(0, a[i].Start-p.end)
				}
				p.seen, p.isNew = w.calls, false
			}
		}
		w.at, w.works = append(w.at, at), append(w.works, work)
	}
}

// find returns the index of a rank in w.ranks; a new rank gets one. −1: beyond maxRanks.
func (w *Window) find(id int32) int32 {
	at, ok := w.index[id]
	switch {
	case ok:
	case len(w.ranks) == maxRanks:
		return -1
	default:
		at = int32(len(w.ranks))
		w.index[id] = at
		w.ranks = append(w.ranks, rank{id: id, seen: w.calls - 1}) // not in this collective yet (noteArrivals), and not away for long
		w.rings = slices.Grow(w.rings, w.size)[:len(w.rings)+w.size]
	}
	return at
}

// reset restarts a rank that was away for longer than the window.
func (w *Window) reset(p *rank) {
	if p.named {
		w.slows--
	}
	*p = rank{id: p.id}
}

// activeRanks returns how many ranks took part within the last size calls. here is the number of ranks in this call: mostly all.
func (w *Window) activeRanks(here int) (n int) {
	if here >= len(w.ranks) {
		return len(w.ranks)
	}
	for i := range w.ranks {
		if w.calls-w.ranks[i].seen <= uint64(w.size) {
			n++
		}
	}
	return n
}

// noteLeaving records when each rank left the collective, for noteArrivals.
func (w *Window) noteLeaving(a []Arrival) {
	for i := range a {
		if w.at[i] < 0 {
			continue
		}
		end := int64(0)
		if a[i].Start > 0 && a[i].Start < most && a[i].Duration >= 0 && a[i].Duration < most {
			end = a[i].Start + a[i].Duration
		}
		w.ranks[w.at[i]].end = end
	}
}

// pushCell adds the part of a rank (with index at) in a counting collective to the ring of the rank, and returns the rank. From time to time it also computes
// the median work time of the rank.
func (w *Window) pushCell(at int32, late float64, cost, work int64) *rank {
	p := &w.ranks[at]
	w.rings[int(at)*w.size+int(p.next)] = cell{float32(late), float32(cost), float32(work)}
	p.next++
	p.n = max(p.n, p.next)
	if int(p.next) == w.size {
		p.next = 0
	}
	if work >= 0 {
		p.works++
		// The median is costly: for few values each time, then refresh times per window, not for all ranks in the same call.
		due := p.works < 2*minScored || (int(p.works)+int(uint16(p.id)))%(w.size/refresh) == 0
		if p.works >= minScored && due {
			p.median = w.medianOf(at, int(p.n), func(c *cell) (float32, bool) { return c.work, c.work >= 0 })
		}
	}
	return p
}

// addCost adds the cost of a collective that does not count to the latest cell of the rank that was last, with index at.
func (w *Window) addCost(at int32, cost int64) {
	p := &w.ranks[at]
	if p.n == 0 {
		return
	}
	last := (int(p.next) + w.size - 1) % w.size
	w.rings[int(at)*w.size+last].cost += float32(cost)
}

// medianOf returns the median of the known values in the last n cells of a rank; 0: none is known.
func (w *Window) medianOf(at int32, n int, value func(*cell) (v float32, known bool)) float64 {
	w.values = w.values[:0]
	ring := w.rings[int(at)*w.size:][:w.size]
	k := int(w.ranks[at].next) // back from the latest cell
	for range n {
		if k--; k < 0 {
			k = w.size - 1
		}
		if v, ok := value(&ring[k]); ok {
			w.values = append(w.values, v)
		}
	}
	if len(w.values) == 0 {
		return 0
	}
	k = len(w.values) / 2
	selectNth(w.values, k)
	hi := float64(w.values[k])
	if len(w.values)%2 == 1 {
		return hi
	}
	return (hi + float64(slices.Max(w.values[:k]))) / 2
}

// slowRanks returns the named ranks that took part within the last size calls, the farthest behind first. The list is valid until the next call.
func (w *Window) slowRanks() []Slow {
	w.slow = w.slow[:0]
	if w.slows == 0 {
		return w.slow
	}
	for i := range w.ranks {
		p := &w.ranks[i]
		if !p.named || w.calls-p.seen > uint64(w.size) {
			continue
		}
		// The median over the collectives since the sum S left 0.
		behind := w.medianOf(int32(i), int(min(p.run, p.n)), func(c *cell) (float32, bool) { return c.late, true })
		s := Slow{Rank: p.id, Late: int64(max(-most, min(behind, most))), Score: math.NaN(), New: p.isNew && p.seen == w.calls}
		if score, ok := w.score(p); ok {
			s.Score = score
		}
		var cost float64
		for k := range w.rings[i*w.size:][:p.n] {
			cost += float64(w.rings[i*w.size+k].cost)
		}
		s.Cost = int64(min(cost, most))
		w.slow = append(w.slow, s)
	}
	slices.SortFunc(w.slow, func(a, b Slow) int { return cmp.Or(cmp.Compare(b.Late, a.Late), cmp.Compare(a.Rank, b.Rank)) })
	return w.slow
}

// medianWork returns the median of the work times of the ranks, ns; −1: known for less than half of n ranks. starts is the number of ranks with a duration and
// a start time. See step 1 of the package comment.
func (w *Window) medianWork(a []Arrival, n int) (median float64, starts int) {
	w.times = w.times[:0]
	for i := range a {
		if a[i].Duration >= 0 && a[i].Start > 0 {
			starts++
			if w.works[i] >= 0 {
				w.times = append(w.times, w.works[i])
			}
		}
	}
	if len(w.times) == 0 || 2*len(w.times) < n {
		return -1, starts
	}
	selectNth(w.times, len(w.times)/2)
	return float64(w.times[len(w.times)/2]), starts
}

// medianOthers has, for any duration of a collective, the median of the other durations.
type medianOthers struct {
	lower, upper  int64   // a duration up to lower is in the lower half, from upper on in the upper half
	withoutLower  float64 // the median of all durations but one in the lower half
	withoutMiddle float64 // the median of all durations but the middle one
	withoutUpper  float64 // the median of all durations but one in the upper half
}

// lateness returns how late the rank with duration d was, ns: by how much d is shorter than the median of the other ranks' durations. The median leaves d out,
// because among few ranks the short duration of a late rank would lower the median: of two ranks, half of the lateness would be lost.
func (o *medianOthers) lateness(d int64) float64 {
	switch {
	case d <= o.lower:
		return o.withoutLower - float64(d)
	case d >= o.upper:
		return o.withoutUpper - float64(d)
	}
	return o.withoutMiddle - float64(d)
}

// medians finds, for each duration of a collective of at least two ranks, the median of the other durations: without one duration the median lies between the
// neighbours of the middle, and depends only on the half that the duration is in.
func (w *Window) medians(a []Arrival) (o medianOthers) {
	w.times = w.times[:0]
	for i := range a {
		if a[i].Duration >= 0 {
			w.times = append(w.times, a[i].Duration)
		}
	}
	durations := w.times
	half := len(durations) / 2
	selectNth(durations, half)
	mid, prev := durations[half], slices.Max(durations[:half])
	if len(durations)%2 == 0 { // prev and mid are the middle; without one of the lower half mid is
		return medianOthers{lower: prev, upper: mid, withoutLower: float64(mid), withoutUpper: float64(prev)}
	}
	next := slices.Min(durations[half+1:])
	m, p, n := float64(mid), float64(prev), float64(next)
	return medianOthers{lower: mid - 1, upper: mid + 1, withoutLower: (m + n) / 2, withoutMiddle: (p + n) / 2, withoutUpper: (p + m) / 2}
}

// selectNth moves the k-th smallest value to v[k], smaller ones before and larger ones after (Hoare's FIND).
func selectNth[T int64 | float32](v []T, k int) {
	lo, hi := 0, len(v)-1
	for lo < hi {
		// The median of three keeps sorted input from taking quadratic time.
		m := lo + (hi-lo)/2
		if v[m] < v[lo] {
			v[m], v[lo] = v[lo], v[m]
		}
		if v[hi] < v[m] {
			v[hi], v[m] = v[m], v[hi]
			if v[m] < v[lo] {
				v[m], v[lo] = v[lo], v[m]
			}
		}
		pivot := v[m]
		i, j := lo, hi
		for i <= j {
			for v[i] < pivot {
				i++
			}
			for pivot < v[j] {
				j--
			}
			if i <= j {
				v[i], v[j] = v[j], v[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return
		}
	}
}
