package collectives

import (
	"encoding/binary"
	"math"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"

	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// sampler decides by chance which collectives are drawn, as OpenTelemetry's consistent probability sampling does (opentelemetry-specification,
// specification/trace/tracestate-probability-sampling.md): spans that are drawn say in their tracestate how many they stand for.
type sampler struct {
	threshold sampling.Threshold
	chosen    string // tracestate of spans drawn by chance
}

// precision is how many hex digits a threshold has, beyond leading f.
const precision = 4

// certain is the tracestate of spans drawn whatever the rate is: each stands for itself.
const certain = "ot=th:0"

func newSampler(rate float64) sampler {
	threshold, err := sampling.ProbabilityToThresholdWithPrecision(rate, precision)
	if err != nil { // the rate is 0, or all but 0
		return sampler{threshold: sampling.NeverSampleThreshold}
	}
	return sampler{threshold, "ot=th:" + threshold.TValue()}
}

// draws says whether a collective is drawn by chance, and with which tracestate.
func (s *sampler) draws(c *closed) (state string, ok bool) {
	if !c.byID {
		return s.chosen, s.threshold.ShouldSample(sampling.TraceIDToRandomness(c.trace))
	}
	// The trace has other collectives, and its id may be no hash: the randomness is that of the span.
	rnd, _ := sampling.UnsignedToRandomness(binary.BigEndian.Uint64(c.id[:]) % sampling.MaxAdjustedCount)
	return s.chosen + ";rv:" + rnd.RValue(), s.threshold.ShouldSample(rnd)
}

// draw decides whether a collective is drawn, with its ranks. One that is not leaves as its root alone, for what joins and counts.
func (j *joiner) draw(c *judged) {
	if j.set.SampleRate >= 1 {
		return
	}
	switch {
	case c.outcome == Tardy:
		c.undrawn = c.unsent // its ranks are drawn where those that came in time were
	case c.errs > 0 || c.retries > 0 || c.hang || c.mismatch || c.missingCount > 0 || len(c.stuck) > 0 || !math.IsNaN(c.deviation),
		c.newlySlow, len(c.over) > 0, !c.joined && !c.proxy && c.parts[0].state != op.Completed:
		c.state = certain
	default:
		state, drawn := j.sampler.draws(&c.closed)
		if c.undrawn = !drawn; drawn {
			c.state = state
		}
	}
}
