package collectives

import (
	"encoding/binary"
	"math"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// sampler decides by chance which collectives are drawn, by OpenTelemetry's consistent probability sampling (opentelemetry-specification,
// specification/trace/tracestate-probability-sampling.md): the tracestate of drawn spans has the number they stand for.
type sampler struct {
	threshold sampling.Threshold
	chosen    string // tracestate of spans drawn by chance
}

// precision is how many hex digits a threshold has, beyond leading 0 and f.
const precision = 4

// certain is the tracestate of spans drawn whatever the rate is: each stands for itself.
const certain = "ot=th:0"

// newSampler returns a sampler that draws a share of the collectives, 0 to 1.
func newSampler(rate float64) sampler {
	threshold, err := sampling.ProbabilityToThresholdWithPrecision(rate, precision)
	if err != nil { // the rate is 0, or all but 0
		return sampler{threshold: sampling.NeverSampleThreshold}
	}
	return sampler{threshold, "ot=th:" + threshold.TValue()}
}

// draws reports whether a collective is drawn by chance, and the tracestate for its spans. The randomness is in the ids, so every collector draws the same
// collectives.
func (s *sampler) draws(c *closed) (state string, ok bool) {
	if !c.byID {
		return s.chosen, s.threshold.ShouldSample(sampling.TraceIDToRandomness(c.trace))
	}
	// The trace has further collectives, and its id may be no hash: the randomness is the span's, the last 56 bits of its id.
	rnd, _ := sampling.UnsignedToRandomness(binary.BigEndian.Uint64(c.id[:]) % sampling.MaxAdjustedCount)
	return s.chosen + ";rv:" + rnd.RValue(), s.threshold.ShouldSample(rnd)
}

// decideDrawn decides whether a collective is drawn, with its ranks, and sets the tracestate of its spans. If not (undrawn), only its root leaves, for
// components that join and count. A late record is drawn if its collective was.
func (j *joiner) decideDrawn(c *judged) {
	if j.set.SampleRate >= 1 {
		return
	}
	switch {
	case c.outcome == Late:
		c.undrawn = c.unsent // its ranks are drawn like the ranks that came in time
	case c.unusual():
		c.state = certain
	default:
		state, drawn := j.sampler.draws(&c.closed)
		c.undrawn = !drawn
		if drawn {
			c.state = state
		}
	}
}

// unusual reports whether anything is wrong in the collective, or no longer wrong: such a collective is always drawn.
func (c *judged) unusual() bool {
	faulty := c.errs > 0 || c.retries > 0 || c.hang || c.mismatch
	incomplete := c.missingCount > 0 || len(c.stuck) > 0 || !c.joined && !c.proxy && c.parts[0].state != op.Completed
	low := !math.IsNaN(c.deviation)
	return faulty || incomplete || low || c.newlySlow || len(c.over) > 0
}
