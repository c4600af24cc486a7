package logfile

import "math/rand/v2"

// Noise is a normal deviate that never exceeds 3, so that what is slow is slow on purpose.
func Noise(rng *rand.Rand) float64 { return min(max(rng.NormFloat64(), -3), 3) }
