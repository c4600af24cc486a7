package collectives

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

// noises are the bandwidth variations of healthy networks: each returns the factors of a job, collective by collective. No factor is below the effect of
// congestion on a working link.
var noises = map[string]func(*rand.Rand) func() float64{
	"normal 2 %":                func(r *rand.Rand) func() float64 { return func() float64 { return 1 + 0.02*r.NormFloat64() } },
	"lognormal 5 %":             func(r *rand.Rand) func() float64 { return func() float64 { return math.Exp(0.05 * r.NormFloat64()) } },
	"lognormal 10 %":            func(r *rand.Rand) func() float64 { return func() float64 { return math.Exp(0.1 * r.NormFloat64()) } },
	"lognormal 20 %":            func(r *rand.Rand) func() float64 { return func() float64 { return math.Exp(0.2 * r.NormFloat64()) } },
	"durations, exponential":    func(r *rand.Rand) func() float64 { return func() float64 { return 1 / (1 + 0.05*r.ExpFloat64()) } },
	"AR(1), rho 0.9, 3 %":       autoregressive(0.9, 0.03),
	"AR(1), rho 0.98, 3 %":      autoregressive(0.98, 0.03),
	"one in 50 takes 2.5 times": seldom(0.02, 0.4),
	"40 % overlap with others":  seldom(0.4, 0.6),
}

func autoregressive(rho, sigma float64) func(*rand.Rand) func() float64 {
	return func(r *rand.Rand) func() float64 {
		x := sigma * r.NormFloat64()
		return func() float64 {
			x = rho*x + sigma*math.Sqrt(1-rho*rho)*r.NormFloat64()
			return math.Exp(x)
		}
	}
}

func seldom(share, factor float64) func(*rand.Rand) func() float64 {
	return func(r *rand.Rand) func() float64 {
		return func() float64 {
			f := math.Exp(0.02 * r.NormFloat64())
			if r.Float64() < share {
				f *= factor
			}
			return f
		}
	}
}

// sizes are the message sizes of a job, By.
var sizes = map[string]func(*rand.Rand) func() float64{
	"one size": func(*rand.Rand) func() float64 { return func() float64 { return 64 << 20 } },
	"four sizes within an octave": func(r *rand.Rand) func() float64 {
		return func() float64 { return float64([...]int{33, 40, 48, 63}[r.IntN(4)] << 16) }
	},
	"1 KiB to 1 GiB": func(r *rand.Rand) func() float64 { return func() float64 { return math.Exp2(10 + 20*r.Float64()) } },
}

// drifts are factors of the bandwidth by the elapsed share of the job.
var drifts = map[string]func(float64) float64{
	"steady":            func(float64) float64 { return 1 },
	"falls by 30 %":     func(x float64) float64 { return 1 - 0.3*x },
	"rises to the full": func(x float64) float64 { return min(1, 0.5+5*x) },
}

// network is the bandwidth of a message with 25 µs of latency: S / (α + S/β).
func network(size float64) (bandwidth float64) { return size / (25e-6 + size/200e9) }

// lowBandwidths plays a job of n AllReduce of two ranks and returns the ones with a low bandwidth.
func lowBandwidths(t *testing.T, n int, size, noise func() float64, drift func(float64) float64) (low []int) {
	t.Helper()
	r := newRig(t, 2, nil)
	start := int64(0)
	for seq := range n {
		s := size()
		took := s / (network(s) * noise() * drift(float64(seq)/float64(n))) * 1e6
		for rank := range 2 {
			r.say(says{input: rank, rank: rank, seq: seq, size: int64(s), us: max(int64(math.Round(took)), 1), start: start, of: 2})
		}
		start += int64(took) + 1000
	}
	r.end()
	for _, c := range r.left {
		if !math.IsNaN(c.deviation) {
			low = append(low, int(c.seq))
			assert.Less(t, c.bus, 0.8*c.baseline)
		}
	}
	return low
}

// TestBandwidthHealthy: of 243 jobs without a fault none has a low bandwidth.
func TestBandwidthHealthy(t *testing.T) {
	jobs, wrong, seeds := 0, 0, uint64(3)
	if testing.Short() {
		seeds = 1
	}
	for noise, of := range noises {
		for size, by := range sizes {
			for drift, over := range drifts {
				for seed := range seeds {
					rng := rand.New(rand.NewPCG(seed, 29))
					jobs++
					if low := lowBandwidths(t, 600, by(rng), of(rng), over); len(low) > 0 {
						wrong++
						t.Logf("%s, %s, %s, seed %d: %v", noise, size, drift, seed, low)
					}
				}
			}
		}
	}
	assert.Equal(t, 81*int(seeds), jobs)
	assert.Zero(t, wrong)
}

// TestBandwidthSlowLink: a link at 70 % and below is found in each job, soon, and not before the link became slow.
func TestBandwidthSlowLink(t *testing.T) {
	const from, until, n = 200, 230, 400
	seeds := uint64(10)
	if testing.Short() {
		seeds = 3
	}
	for noise, within := range map[string]int{
		"normal 2 %": 3, "lognormal 5 %": 12, "lognormal 10 %": 25, "AR(1), rho 0.9, 3 %": 12, "AR(1), rho 0.98, 3 %": 12, "durations, exponential": 12,
		"one in 50 takes 2.5 times": 12,
	} {
		for _, factor := range []float64{0.7, 0.5, 0.3} {
			for seed := range seeds {
				name := fmt.Sprintf("%s, x%.1f, seed %d", noise, factor, seed)
				rng := rand.New(rand.NewPCG(seed, 92))
				low := lowBandwidths(t, n, sizes["one size"](rng), noises[noise](rng), func(x float64) float64 {
					if x >= from/float64(n) && x < until/float64(n) {
						return factor
					}
					return 1
				})
				if assert.NotEmpty(t, low, name) {
					assert.GreaterOrEqual(t, low[0], from+2, name)
					assert.Less(t, low[0], from+within, name)
					assert.Less(t, low[len(low)-1], until, name)
				}
			}
		}
	}
}

// TestBandwidthNotKnown: of 16 ranks two have a log. The time of a collective is a transfer, or the wait for a rank without a log: no bandwidth is judged.
func TestBandwidthNotKnown(t *testing.T) {
	r := newRig(t, 2, nil)
	for seq := range 100 {
		us := int64(100)
		if seq > 80 {
			us = 1000
		}
		for rank := range 2 {
			r.say(says{input: rank, rank: rank, seq: seq, size: 1 << 20, us: us, start: int64(2000 * seq), of: 16})
		}
	}
	r.end()
	assert.Len(t, r.left, 100)
	for _, c := range r.left {
		assert.True(t, math.IsNaN(c.deviation))
	}
}
