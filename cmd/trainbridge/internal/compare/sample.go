package compare

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// row has the values of a span, one for each column, NaN if absent.
type row struct {
	start, end int64  // ns since 1970
	step       int64  // iteration, noStep if unknown
	madeUp     bool   // made-up times: only the trace gives a place
	trace      uint64 // the beginning of the trace id
	order      uint64 // of the span id, evenly distributed
	values     []float64
}

// noStep is the step of a row whose span names none.
const noStep = math.MinInt64

// sample keeps rows, up to a number. If there are more, those are kept whose span ids hash below a bound, so that the same spans are kept in any order of
// adding.
type sample struct {
	most  int
	bound uint64 // rows of a higher order are not kept
	rows  []row
	seen  int // rows, kept or not
	first row // of all seen rows the first by time, without its values: the first step is warm-up, even if its row is not kept
}

// newSample returns a sample of at most a number of rows.
func newSample(most int) *sample { return &sample{most: most, bound: math.MaxUint64} }

// add adds a row with a copy of the values. If the sample is full, the bound is halved until enough rows are deleted.
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

// compare compares rows by time. For equal times, step and span id decide, so that the order never depends on the order of reading.
func (r *row) compare(o *row) int {
	return cmp.Or(cmp.Compare(r.start, o.start), cmp.Compare(r.end, o.end), cmp.Compare(r.step, o.step), cmp.Compare(r.order, o.order))
}

// sorted returns the rows by time.
func (s *sample) sorted() []row {
	slices.SortFunc(s.rows, func(a, b row) int { return a.compare(&b) })
	return s.rows
}

// orderOf returns a hash of a span id that is evenly distributed for any ids (the last mixing of splitmix64).
func orderOf(id pcommon.SpanID) uint64 {
	x := binary.BigEndian.Uint64(id[:])
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
