package logfile

import (
	"context"
	"math/rand/v2"
	"time"
)

// Clock is the real time of live logs; tests inject their own.
type Clock struct {
	Now   func() time.Time
	Sleep func(ctx context.Context, d time.Duration)
}

// RealClock is the clock of the machine.
var RealClock = Clock{
	Now: time.Now,
	Sleep: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	},
}

// HostClock is a host's clock: at true time t it shows t + Skew + Drift·1e-6·(t − Start), all in ns but for the drift in ppm.
type HostClock struct {
	Start, Skew int64
	Drift       float64
}

// Local is the reading of the clock at a true time.
func (c *HostClock) Local(at int64) int64 {
	return at + c.Skew + int64(c.Drift*1e-6*float64(at-c.Start))
}

// Noise is a normal deviate bounded by 3, so that slow steps are slow on purpose.
func Noise(rng *rand.Rand) float64 { return min(max(rng.NormFloat64(), -3), 3) }
