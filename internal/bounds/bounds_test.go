package bounds

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBounds(t *testing.T) {
	var s Set
	assert.Empty(t, s.Uppers())
	s.Add(4, 0)  // 1 to 2^(1/16)
	s.Add(4, 1)  // the other half of the same bucket
	s.Add(3, 8)  // 2 to 2^(9/8)
	s.Add(3, -8) // 1/2 to 2^(-7/8)
	s.AddZero()
	assert.InDeltaSlice(t, []float64{0, 0.5, math.Exp2(-7. / 8), 1, math.Exp2(1. / 8), 2, math.Exp2(9. / 8)}, s.Values(), 1e-15)
	s.Add(1, 1) // √2 to 2, by a coarser histogram
	assert.Equal(t, 1, s.Scale())
	assert.InDeltaSlice(t, []float64{0, 0.5, math.Sqrt(0.5), 1, math.Sqrt2, 2, 2 * math.Sqrt2}, s.Values(), 1e-15)
}

// A coarser histogram with values in known buckets only: the bounds are of the coarser scale.
func TestBoundsBecomeCoarser(t *testing.T) {
	var s Set
	s.Add(3, -10)
	s.Add(3, -9)
	s.Add(2, -5)
	assert.Equal(t, 2, s.Scale())
	assert.Equal(t, []int{-5, -4}, s.Uppers())
	assert.InDeltaSlice(t, []float64{math.Exp2(-5. / 4), 0.5}, s.Values(), 1e-15)
}

// Beyond the limit every second bound is dropped: the remaining bounds existed before.
func TestBoundsAreFew(t *testing.T) {
	var s Set
	var before []float64
	scale := s.Scale()
	for i := range 2000 {
		s.Add(4, i)
		now := slices.Clone(s.Values())
		assert.LessOrEqual(t, len(now), Most)
		if s.Scale() == scale {
			for _, x := range before {
				assert.Contains(t, now, x)
			}
		} else {
			for _, x := range now[1 : len(now)-1] {
				assert.Contains(t, before, x)
			}
		}
		assert.True(t, slices.IsSorted(now))
		before, scale = now, s.Scale()
	}
}
