package collectives

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/sampling"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Drawn collectives stand for the rest: their adjusted counts, by OpenTelemetry's own reader, add up to all.
func TestSampler(t *testing.T) {
	const n = 200_000
	for _, rate := range []float64{0.5, 0.1, 0.01, 0.003, 0.0003} {
		for _, byID := range []bool{false, true} {
			s, r := newSampler(rate), rand.New(rand.NewPCG(1, 2))
			all, drawn := 0.0, 0
			for range n {
				c := closed{byID: byID}
				binary.BigEndian.PutUint64(c.trace[8:], r.Uint64())
				binary.BigEndian.PutUint64(c.id[:], r.Uint64())
				state, ok := s.draws(&c)
				if !ok {
					continue
				}
				drawn++
				w3c, err := sampling.NewW3CTraceState(state)
				require.NoError(t, err)
				threshold, ok := w3c.OTelValue().TValueThreshold()
				require.True(t, ok)
				rnd, explicit := w3c.OTelValue().RValueRandomness()
				require.Equal(t, byID, explicit)
				if !explicit {
					rnd = sampling.TraceIDToRandomness(c.trace)
				}
				require.True(t, threshold.ShouldSample(rnd), "a sampler behind this one agrees")
				all += threshold.AdjustedCount()
			}
			deviation := math.Sqrt(n * rate * (1 - rate))
			assert.InDelta(t, n*rate, drawn, 4*deviation)
			assert.InDelta(t, n, all, 4*deviation/rate)
		}
	}
	for _, rate := range []float64{0, 1e-300} {
		s := newSampler(rate)
		_, ok := s.draws(&closed{trace: [16]byte{15: 0xff}})
		assert.False(t, ok)
	}
}
