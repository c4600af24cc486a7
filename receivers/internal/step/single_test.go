package step

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A logged step with an evaluation within says nothing of the nine steps before, but a second slow one in a row does.
func TestTimeOfSingleSteps(t *testing.T) {
	const ms = int64(1e6)
	for _, c := range []struct {
		before, duration float64
		steps, want      int64
	}{
		{0, 0.25, 10, 2500 * ms},
		{0.25, 9.25, 10, 11500 * ms},
		{9.25, 9.25, 10, 92500 * ms},
		{0.25, 0.30, 10, 3000 * ms},
		{0.25, 9.25, 1, 9250 * ms},
		{41, 0.25, 10, 2500 * ms},
	} {
		assert.Equal(t, c.want, (&track{Own: c.before}).time(c.duration, c.steps), c)
	}
}
