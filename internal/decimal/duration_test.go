package decimal

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDuration(t *testing.T) {
	for in, want := range map[string]struct {
		seconds float64
		n       int
	}{
		"1h 2m 3.5s, x": {3723.5, 10}, "12ms": {0.012, 4}, "2m": {120, 2}, "1d": {86400, 2}, "0m12s 5": {12, 5}, "5us left": {5e-6, 3},
		"": {}, "12": {}, "s": {}, "12 s": {},
	} {
		seconds, n := Duration([]byte(in))
		assert.InDelta(t, want.seconds, seconds, 1e-9, in)
		assert.Equal(t, want.n, n, in)
	}
}
