package count_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/count"
)

func TestGuess(t *testing.T) {
	times := func(values ...float64) (out []float64) {
		var g count.Guess
		for i, v := range values {
			seconds, _ := g.Step(v, float64(i+1))
			out = append(out, seconds)
		}
		return out
	}
	// The times of steps may rise for some rows, and double.
	noisy := []float64{0.130, 0.022, 0.023, 0.025, 0.056, 0.022, 0.021, 0.024}
	assert.Equal(t, noisy, times(noisy...))
	// A clock rises for good, and evenly. Until then, its values are taken as times of steps.
	assert.Equal(t, []float64{2, 4, 6, 2, 2, 3}, times(2, 4, 6, 8, 10, 13))
	// Another run restarts its clock.
	got := times(2, 4, 6, 8, 10, 12, 14, 16, 2, 4, 6)
	assert.Equal(t, []float64{2, 2}, got[9:])
}
