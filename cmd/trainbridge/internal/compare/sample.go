package compare

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// row is what one span says: a value per column, NaN where it does not say it.
type row struct {
	start, end int64  // ns since 1970
	step       int64  // iteration, noStep where it is not known
	made       bool   // its times are made up: it is where it is only by its trace
	trace      uint64 // the beginning of its trace id
	order      uint64 // of its span id, evenly distributed
	values     []float64
}

const noStep = math.MinInt64

// sample keeps rows, up to a number. Of more it keeps those whose span ids hash below a bound, so that the same spans stay in whatever order they come.
type sample struct {
	most  int
	bound uint64 // rows of a higher order are not kept
	rows  []row
	seen  int
	first row // by time; it is known of all rows
}

func newSample(most int) *sample { return &sample{most: most, bound: math.MaxUint64} }

// add keeps a row; the values are copied.
func (s *sample) add(r row, values ...float64) {
	if s.seen == 0 || r.compare(&s.first) < 0 {
		s.first = r
	}
	s.seen++
	if r.order > s.bound {
		return
	}
	r.values = slices.Clone(values)
	s.rows = append(s.rows, r)
	for len(s.rows) > s.most && s.bound > 0 {
		s.bound /= 2
		s.rows = slices.DeleteFunc(s.rows, func(r row) bool { return r.order > s.bound })
	}
}

func (r *row) compare(o *row) int {
	return cmp.Or(cmp.Compare(r.start, o.start), cmp.Compare(r.end, o.end), cmp.Compare(r.step, o.step), cmp.Compare(r.order, o.order))
}

// sorted are the rows by time.
func (s *sample) sorted() []row {
	slices.SortFunc(s.rows, func(a, b row) int { return a.compare(&b) })
	return s.rows
}

// orderOf spreads span ids evenly, whoever made them (the last mixing of splitmix64).
func orderOf(id pcommon.SpanID) uint64 {
	x := binary.BigEndian.Uint64(id[:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
