package digest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestQuantile(t *testing.T) {
	v := Values{5, 1, 4, 2, 3}
	for q, want := range map[float64]float64{0: 1, 0.2: 1, 0.5: 3, 0.95: 5, 1: 5} {
		assert.InDelta(t, want, v.Quantile(q), 0)
	}
	assert.Equal(t, Values{5, 1, 4, 2, 3}, v)
	assert.True(t, math.IsNaN(Values{}.Quantile(0.5)))
}
