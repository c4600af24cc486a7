package digest

import "go.opentelemetry.io/collector/pdata/pcommon"

// columns is how many columns of time the matrix of lateness has at most.
const columns = 128

// Lateness is the lateness of a rank, by columns of time common to all ranks: see Collectives.Columns.
type Lateness []Late

// Late is how late a rank came in a column of time.
type Late struct {
	Count int32
	Max   float32 // s
	Sum   float64 // s
}

// Mean lateness, s; 0 if none.
func (l *Late) Mean() float64 {
	if l.Count == 0 {
		return 0
	}
	return l.Sum / float64(l.Count)
}

func (l *Late) plus(o Late) {
	l.Count, l.Max, l.Sum = l.Count+o.Count, max(l.Max, o.Max), l.Sum+o.Sum
}

// timeAxis are columns of equal width, at most 128: beyond, the width doubles.
type timeAxis struct {
	width, first, n int64 // ns; in widths; columns
}

// Columns are the columns of Rank.Over: the first begins at start, ns since 1970, and each is width ns wide. n is their number.
func (d *Collectives) Columns() (start, width int64, n int) {
	return d.clock.first * d.clock.width, d.clock.width, int(d.clock.n)
}

// add notes how late a rank was. The columns of all ranks begin together.
func (a *timeAxis) add(d *Collectives, row *Lateness, at int64, late float64) {
	if a.width == 0 {
		a.width = 1e6
		a.first, a.n = floor(at, a.width), 1
	}
	i := floor(at, a.width)
	for low, high := min(i, a.first), max(i, a.first+a.n-1); high-low >= columns; {
		first := floor(a.first, 2)
		for _, r := range d.ranks.by {
			r.Over.halve(a.first)
		}
		a.n = floor(a.first+a.n-1, 2) - first + 1
		a.width, a.first = 2*a.width, first
		i = floor(at, a.width)
		low, high = min(i, a.first), max(i, a.first+a.n-1)
	}
	if i < a.first {
		more := int(a.first - i)
		for _, r := range d.ranks.by {
			if len(r.Over) > 0 {
				r.Over = append(make(Lateness, more, more+len(r.Over)), r.Over...)
			}
		}
		a.first, a.n = i, a.n+int64(more)
	}
	a.n = max(a.n, i-a.first+1)
	for int64(len(*row)) <= i-a.first {
		*row = append(*row, Late{})
	}
	(*row)[i-a.first].plus(Late{1, float32(late), late})
}

// halve merges columns in pairs; first is the index of the first.
func (l *Lateness) halve(first int64) {
	from := floor(first, 2)
	merged := (*l)[:0]
	for i, c := range *l {
		if to := int(floor(first+int64(i), 2) - from); to < len(merged) {
			merged[to].plus(c)
		} else {
			merged = append(merged, c)
		}
	}
	*l = merged
}

// recentCollective has the collective's values for the spans of its ranks.
type recentCollective struct {
	communicator string
	g, all       *Collective
	transfer     float64 // s; NaN: not known
	late         float64 // s, of the last rank behind the first; NaN: not known
	last         int64   // the last rank
	host         string  // of the last rank
}

// recent has the last collectives. Their ranks come in the same message, or in one of the next.
type recent struct {
	now, before map[pcommon.SpanID]recentCollective
}

const mostRecent = 8192

func (r *recent) put(id pcommon.SpanID, c recentCollective) {
	if r.now == nil || len(r.now) == mostRecent {
		r.now, r.before = make(map[pcommon.SpanID]recentCollective, len(r.now)), r.now
	}
	r.now[id] = c
}

func (r *recent) get(id pcommon.SpanID) (recentCollective, bool) {
	c, ok := r.now[id]
	if !ok {
		c, ok = r.before[id]
	}
	return c, ok
}
