package digest

import "go.opentelemetry.io/collector/pdata/pcommon"

// maxColumns is how many columns of time the matrix of lateness has at most.
const maxColumns = 128

// Lateness is the lateness of a rank, by columns of time common to all ranks: see Collectives.Columns.
type Lateness []Late

// Late is how late a rank came in a column of time.
type Late struct {
	Count int32
	Max   float32 // s
	Sum   float64 // s
}

// Mean returns the mean lateness, s; 0: no value.
func (l *Late) Mean() float64 {
	if l.Count == 0 {
		return 0
	}
	return l.Sum / float64(l.Count)
}

// plus adds the values of another column.
func (l *Late) plus(o Late) {
	l.Count, l.Max, l.Sum = l.Count+o.Count, max(l.Max, o.Max), l.Sum+o.Sum
}

// timeAxis are columns of equal width, at most 128: beyond, the width doubles.
type timeAxis struct {
	width int64 // of a column, ns; 0: no column yet
	first int64 // start of the first column, in widths
	n     int64 // columns
}

// Columns returns the columns of Rank.Over: start of the first, ns since 1970, width of each, ns, and their number n.
func (d *Collectives) Columns() (start, width int64, n int) {
	return d.clock.first * d.clock.width, d.clock.width, int(d.clock.n)
}

// addLate records in row that its rank was late s late at a time, Unix ns. row must be the Over of one of d.ranks: the rows share their first column, so adding
// columns in front and merging columns change every row.
func (a *timeAxis) addLate(d *Collectives, row *Lateness, at int64, late float64) {
	if a.width == 0 {
		a.width = 1e6 // 1 ms
		a.first, a.n = floorDiv(at, a.width), 1
	}
	i := floorDiv(at, a.width)
	// Too many columns from the first to the last: merge them in pairs.
	for low, high := min(i, a.first), max(i, a.first+a.n-1); high-low >= maxColumns; {
		first := floorDiv(a.first, 2)
		for _, r := range d.ranks.by {
			r.Over.mergePairs(a.first)
		}
		a.n = floorDiv(a.first+a.n-1, 2) - first + 1
		a.width, a.first = 2*a.width, first
		i = floorDiv(at, a.width)
		low, high = min(i, a.first), max(i, a.first+a.n-1)
	}
	// Before the first column.
	if i < a.first {
		more := int(a.first - i)
		for _, r := range d.ranks.by {
			if len(r.Over) > 0 {
				r.Over = append(make(Lateness, more, more+len(r.Over)), r.Over...)
			}
		}
		a.first, a.n = i, a.n+int64(more)
	}
	// After the last column: a row has no columns after the last value of its rank.
	a.n = max(a.n, i-a.first+1)
	for int64(len(*row)) <= i-a.first {
		*row = append(*row, Late{})
	}
	(*row)[i-a.first].plus(Late{Count: 1, Max: float32(late), Sum: late})
}

// mergePairs merges columns in pairs, 2i and 2i+1 to i; first is the index of the first column, in widths.
func (l *Lateness) mergePairs(first int64) {
	from := floorDiv(first, 2)
	merged := (*l)[:0]
	for i, c := range *l {
		if to := int(floorDiv(first+int64(i), 2) - from); to < len(merged) {
			merged[to].plus(c)
		} else {
			merged = append(merged, c)
		}
	}
	*l = merged
}

// recentCollective has the values of a collective for the records of its ranks, and points at the sums that these add to.
type recentCollective struct {
	communicator string
	g, all       *Collective // of the communicator and operation; of the operation in all communicators
	transfer     float64     // s, the time of the rank that took least; NaN: not known
	late         float64     // s, of the last rank behind the first; NaN: not known
	last         int64       // the last rank
	host         string      // of the last rank
}

// recentCollectives has the last collectives. Their ranks come in the same message, or in one of the next.
type recentCollectives struct {
	now, before map[pcommon.SpanID]recentCollective
}

// mostRecent is how many collectives are known at least: two maps have as many each, and the older is dropped when the newer is full.
const mostRecent = 8192

// put keeps a collective by the id of its span.
func (r *recentCollectives) put(id pcommon.SpanID, c recentCollective) {
	if r.now == nil || len(r.now) == mostRecent {
		r.now, r.before = make(map[pcommon.SpanID]recentCollective, len(r.now)), r.now
	}
	r.now[id] = c
}

// get returns the collective with a span id; false: unknown, or too long ago.
func (r *recentCollectives) get(id pcommon.SpanID) (recentCollective, bool) {
	c, ok := r.now[id]
	if !ok {
		c, ok = r.before[id]
	}
	return c, ok
}
