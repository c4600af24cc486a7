package tqdm_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/tqdm"
)

// Speeds with two decimals and whole seconds drift by little at each step: no step of an even run looks slow for that, once the mean is settled.
func TestClockSpreadsDrift(t *testing.T) {
	const steps, usual = 400, 0.35
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var c tqdm.Clock
		first, _ := tqdm.Parse([]byte(fmt.Sprintf("  0%%|  | 0/%d [00:00<?, ?it/s]", steps)))
		require.True(t, c.Draw(&first, false))
		elapsed, sum := 0.0, 0.0
		for n := 1; n <= steps; n++ {
			elapsed += usual * (0.95 + 0.1*rnd.Float64())
			b, _ := tqdm.Parse([]byte(drawn(n, steps, elapsed, elapsed/float64(n))))
			require.False(t, c.Draw(&b, true))
			took, _, _ := c.Since()
			c.Mark()
			sum += took
			if n > 40 {
				assert.Less(t, took, 1.12*usual, "seed %d, step %d", seed, n)
			}
		}
		assert.InDelta(t, elapsed, sum, 1, seed)
	}
}
