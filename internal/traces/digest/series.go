package digest

import "github.com/trainbridge/trainbridge/internal/stat"

// buckets is how many buckets a series has at most.
const buckets = 4096

// Series are values along an axis of whole numbers: steps, or milliseconds. Each number has a bucket of its own, up to 4,096 buckets: beyond, each bucket holds
// twice as many numbers, and so on. A series of any length takes some 200 kB at most, and a series of 4,096 steps is exact. The result is independent of the
// order of values.
type Series struct {
	Width   int64 // numbers per bucket: a power of two; 0: no value
	first   int64 // of the first bucket, in widths
	buckets []Bucket
}

// Bucket are the values of Series.Width numbers, from At on.
type Bucket struct {
	At            int64
	Count         int64
	Min, Max, Sum float64
}

// Mean returns the mean of the values.
func (b *Bucket) Mean() float64 { return b.Sum / float64(b.Count) }

// add adds a value.
func (b *Bucket) add(x float64) {
	if b.Count == 0 {
		b.Min, b.Max = x, x
	}
	b.Count++
	b.Sum += x
	b.Min, b.Max = min(b.Min, x), max(b.Max, x)
}

// Plus adds the values of another bucket.
func (b *Bucket) Plus(o *Bucket) {
	switch {
	case o.Count == 0:
	case b.Count == 0:
		*b = *o
	default:
		b.Count, b.Sum, b.Min, b.Max = b.Count+o.Count, b.Sum+o.Sum, min(b.Min, o.Min), max(b.Max, o.Max)
	}
}

// Add adds the value x at a number of the axis; NaN and infinities are ignored. New buckets are added before or after the others; if they would be too many,
// buckets are merged in pairs first.
func (s *Series) Add(at int64, x float64) {
	if !stat.Finite(x) {
		return
	}
	if s.Width == 0 {
		s.Width, s.first, s.buckets = 1, at, make([]Bucket, 1, 16)
	}
	i := floorDiv(at, s.Width)
	for low, high := min(i, s.first), max(i, s.first+int64(len(s.buckets))-1); uint64(high-low) >= buckets; { // unsigned: the difference may overflow
		s.mergePairs()
		i = floorDiv(at, s.Width)
		low, high = min(i, s.first), max(i, s.first+int64(len(s.buckets))-1)
	}
	if i < s.first {
		more := make([]Bucket, s.first-i, s.first-i+int64(len(s.buckets)))
		s.buckets, s.first = append(more, s.buckets...), i
	}
	for int64(len(s.buckets)) <= i-s.first {
		s.buckets = append(s.buckets, Bucket{})
	}
	s.buckets[i-s.first].add(x)
}

// mergePairs merges buckets in pairs, 2i and 2i+1 to i, and doubles the width.
func (s *Series) mergePairs() {
	s.Width *= 2
	first := floorDiv(s.first, 2)
	merged := s.buckets[:0]
	for i, b := range s.buckets {
		if to := int(floorDiv(s.first+int64(i), 2) - first); to < len(merged) {
			merged[to].Plus(&b)
		} else {
			merged = append(merged, b)
		}
	}
	s.buckets, s.first = merged, first
}

// floorDiv returns n/by, rounded towards minus infinity.
func floorDiv(n, by int64) int64 {
	q := n / by
	if n%by < 0 {
		q--
	}
	return q
}

// Buckets returns the buckets that have values, in order.
func (s *Series) Buckets() []Bucket {
	var out []Bucket
	for i, b := range s.buckets {
		if b.Count > 0 {
			b.At = (s.first + int64(i)) * s.Width
			out = append(out, b)
		}
	}
	return out
}
