package seen

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSeenAgainstMap compares with a map of every id and its last use.
func TestSeenAgainstMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	s := Seen{window: 100, max: 1 << 30}
	met := map[uint64]int64{}
	now := int64(0)
	for range 200_000 {
		now += rng.Int64N(2)
		s.Advance(now)
		id := 1 + rng.Uint64N(3000)
		if rng.IntN(2) == 0 {
			id *= 1 << 40 // ids that differ in their upper bits only
		}
		last, ever := met[id]
		known := s.Known(id, now)
		met[id] = now
		switch {
		case !ever:
			require.False(t, known)
		case now-last < 100:
			require.True(t, known, "met %d ns ago", now-last)
		case now-last >= 200:
			require.False(t, known)
		}
	}
	assert.Zero(t, s.Early)
}

func TestSeenIsBounded(t *testing.T) {
	s := Seen{window: 1 << 60, max: 4096}
	for id := range uint64(100_000) {
		require.False(t, s.Known(id+1, 0))
		// At least the last half of the possible ids is known.
		if id >= 4000 {
			require.True(t, s.Has(id-3999))
		}
	}
	assert.Equal(t, int64(100_000/4096), s.Early)
	assert.LessOrEqual(t, len(s.current.slots)+len(s.previous.slots), 4*4096)
}
