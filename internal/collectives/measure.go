package collectives

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/collectives/busbw"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
)

// measure finds durations and bandwidths.
func (c *Collective) measure() {
	c.duration, c.transfer = op.Unknown, op.Unknown
	c.alg, c.bus, c.busMean = math.NaN(), math.NaN(), math.NaN()
	c.factor = math.NaN()
	if f, ok := busbw.Factor(c.kind, int(c.commSize), busbw.InNetwork([]byte(c.algorithm))); ok {
		c.factor = f
	}
	var sum, n float64
	for i := range c.parts {
		p := &c.parts[i]
		if p.duration <= 0 || p.state != op.Completed {
			continue
		}
		own := p.reportedBus
		if math.IsNaN(own) {
			own = c.bandwidth(p) * c.factor
		}
		if !math.IsNaN(own) {
			sum, n = sum+own, n+1
		}
		c.duration = max(c.duration, p.duration)
		if c.transfer < 0 || p.duration < c.transfer {
			c.transfer = p.duration
		}
		if off := c.off(p); off > c.disagreement {
			c.disagreement = off
		}
	}
	if c.unconfirmed() { // who came last may not be here
		c.transfer = op.Unknown
	}
	if c.joined && n > 0 && !c.unconfirmed() {
		c.busMean = sum / n
	}
	if c.total > 0 && c.transfer > 0 {
		c.alg = float64(c.total) / (float64(c.transfer) / 1e9)
		c.bus = c.alg * c.factor
	}
}

// A duration of whole µs and a bandwidth of few digits may differ by so much without meaning anything.
const roundingShare = 0.02

// bandwidth is S/t of one rank, By/s; NaN: not known. Multiplied by the factor it is the bus bandwidth.
func (c *Collective) bandwidth(p *part) float64 {
	if c.total <= 0 || p.duration <= 0 || p.state != op.Completed {
		return math.NaN()
	}
	return float64(c.total) / (float64(p.duration) / 1e9)
}

// ownBandwidth is the bandwidth of one rank without its waiting, By/s: where all wait for all, the bandwidth of the transfer. NaN: it is not known.
func (c *Collective) ownBandwidth(p *part) float64 {
	if !c.kind.Symmetric() || !p.how.waits {
		return c.bandwidth(p)
	}
	if p.state != op.Completed || p.duration <= 0 {
		return math.NaN()
	}
	return c.alg
}

// off is |recomputed − reported| / recomputed of one rank; 0: print rounding explains it, or there is nothing to compare.
func (c *Collective) off(p *part) float64 {
	alg := c.bandwidth(p)
	own, reported := alg*c.factor, p.reportedBus
	if math.IsNaN(reported) || math.IsNaN(own) {
		own, reported = alg, p.reportedAlg
	}
	off := math.Abs(own-reported) / own
	if math.IsNaN(off) || off <= roundingShare {
		return 0
	}
	return off
}
