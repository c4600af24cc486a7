package sim

import (
	"math"
	"math/rand/v2"
)

// noise is a factor of a step's time, about 1. Deviation is its standard deviation.
type noise struct {
	next      func(*rand.Rand) float64
	deviation float64
}

// lognormal is noise without memory.
func lognormal(sigma float64) noise {
	return noise{func(r *rand.Rand) float64 { return math.Exp(sigma * r.NormFloat64()) }, sigma}
}

// autoregressive is correlated noise: each value is rho times the one before, and a fresh part. Sigma is its deviation in the long run.
func autoregressive(rho, sigma float64) noise {
	x, started := 0.0, false
	return noise{func(r *rand.Rand) float64 {
		fresh := sigma * r.NormFloat64()
		if !started {
			x, started = fresh, true
		} else {
			x = rho*x + math.Sqrt(1-rho*rho)*fresh
		}
		return math.Exp(x)
	}, sigma}
}

// heavy is noise with a tenth far out, up to 5 %.
func heavy(sigma float64) noise {
	return noise{func(r *rand.Rand) float64 {
		x := sigma * r.NormFloat64()
		if r.Float64() < 0.1 {
			x = math.Min(0.048, sigma/math.Pow(r.Float64(), 0.7))
		}
		return math.Exp(x)
	}, 1.6 * sigma}
}

// collected is noise with spikes below 8 %, like a garbage collector's every 15 to 45 steps.
func collected(sigma float64) noise {
	left := 20
	return noise{func(r *rand.Rand) float64 {
		x := sigma * r.NormFloat64()
		if left--; left <= 0 {
			left = 15 + r.IntN(31)
			x += 0.02 + 0.05*r.Float64()
		}
		return math.Exp(math.Min(x, 0.075))
	}, 1.6 * sigma}
}
