package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// drifting are the values of a run whose steps take 1 s, with an AR(1) of 1 %.
func drifting(r *rand.Rand, n int, rho float64) (units []unit, like []float64) {
	x := 0.01 * r.NormFloat64()
	for range n {
		x = rho*x + 0.01*math.Sqrt(1-rho*rho)*r.NormFloat64()
		units, like = append(units, unit{1 + x, 1}), append(like, 1+x)
	}
	return units, like
}

// TestDrift: of alike runs with drift (AR(1), rho 0.9, 1 %) at most 5 % are accused (once 7 of 34); a step that takes 2 % longer is found all the same.
func TestDrift(t *testing.T) {
	pairs := 150
	if testing.Short() {
		pairs = 60
	}
	for _, tt := range []struct {
		rho   float64
		steps int
		found float64 // least share
	}{{0.5, 100, 0.95}, {0.9, 40, 0}, {0.9, 100, 0}, {0.9, 200, 0.6}, {0.9, 400, 0.95}, {0.9, 1000, 0.95}, {0.97, 1000, 0.95}} {
		accused, found := 0, 0
		for pair := range uint64(pairs) {
			r := rand.New(rand.NewPCG(pair, 7))
			a, likeA := drifting(r, tt.steps, tt.rho)
			b, likeB := drifting(r, tt.steps, tt.rho)
			differ := func() bool {
				f := &figure{name: strconv.FormatUint(pair, 10), a: a, b: b, likeA: likeA, likeB: likeB}
				f.estimateOne(Confidence)
				return f.differs()
			}
			if differ() {
				accused++
			}
			for i := range b {
				b[i].sum *= 1.02
			}
			if differ() {
				found++
			}
		}
		name := fmt.Sprintf("rho %.2f, %d steps", tt.rho, tt.steps)
		assert.LessOrEqual(t, float64(accused), 0.05*float64(pairs), name)
		assert.GreaterOrEqual(t, float64(found), tt.found*float64(pairs), name)
	}
}
