// Package bounds gives exponential histograms, the series of a metric, the bounds of classic histograms, the same for all series: with different bounds, a sum
// by bound would be wrong.
package bounds

import (
	"maps"
	"math"
	"slices"
)

const (
	// Finest is the scale of bounds: buckets are 9 % wide.
	Finest = 3
	// Most is the largest number of bounds of a metric. Where its values need more, neighbours are merged.
	Most = 64
	// Zero is the bound of values of 0 or below.
	Zero = math.MinInt
)

// Set is the bounds around the buckets with values. A Set only grows, or becomes coarser by dropping every second bound: series of bounds continue.
type Set struct {
	coarser int          // than Finest, in steps of the scale
	used    map[int]bool // buckets with values, at Scale
	zero    bool         // there are values of 0 or below
	uppers  []int        // see Uppers
	values  []float64    // of uppers
}

// Scale is the scale of the bounds.
func (s *Set) Scale() int { return Finest - s.coarser }

// Add covers a bucket of an exponential histogram, of base 2^(2^-scale): base^index < value ≤ base^(index+1). A histogram coarser than the set makes the set as
// coarse.
func (s *Set) Add(scale, index int) {
	was := s.coarser
	for scale < s.Scale() {
		s.halve()
	}
	index >>= scale - s.Scale() // each step of the scale merges two neighbours
	if s.used[index] && s.coarser == was {
		return
	}
	if s.used == nil {
		s.used = map[int]bool{}
	}
	s.used[index] = true
	s.fit()
}

// AddZero covers values of 0 or below.
func (s *Set) AddZero() {
	if !s.zero {
		s.zero = true
		s.fit()
	}
}

// fit computes the bounds: the lower and the upper one of each bucket with values. With more than Most bounds the set becomes coarser.
func (s *Set) fit() {
	for {
		at := make(map[int]bool, len(s.used)+2)
		for i := range s.used {
			at[i], at[i+1] = true, true
		}
		if s.zero {
			at[Zero] = true
		}
		if len(at) <= Most {
			s.uppers = slices.Sorted(maps.Keys(at))
			s.values = s.values[:0]
			for _, upper := range s.uppers {
				s.values = append(s.values, s.value(upper))
			}
			return
		}
		s.halve()
	}
}

// halve makes the scale coarser by one: buckets 2i and 2i+1 become bucket i, and every second bound goes.
func (s *Set) halve() {
	s.coarser++
	used := make(map[int]bool, len(s.used))
	for i := range s.used {
		used[i>>1] = true
	}
	s.used = used
}

// Uppers are the bounds, ascending: upper is the bound 2^(upper × 2^-Scale), of the bucket upper-1. Zero may be the first.
func (s *Set) Uppers() []int { return s.uppers }

// Values are the bounds as numbers, in the order of Uppers.
func (s *Set) Values() []float64 { return s.values }

// value is a bound as a number: 2^(upper × 2^-Scale).
func (s *Set) value(upper int) float64 {
	if upper == Zero {
		return 0
	}
	exponent := math.Ldexp(float64(upper), -s.Scale())
	// The whole part apart from the fraction: powers of two are exact.
	return math.Ldexp(math.Exp2(exponent-math.Floor(exponent)), int(math.Floor(exponent)))
}
