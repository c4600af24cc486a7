package trainmetricsconnector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/internal/bounds"
	"github.com/trainbridge/trainbridge/spans"
)

// lists are values of histograms: step times, sizes over many decades, bounds of buckets, and numbers close to 0.
func lists() map[string][]float64 {
	rng := rand.New(rand.NewPCG(4, 320))
	draw := func(n int, next func() float64) (x []float64) {
		for range n {
			x = append(x, next())
		}
		return x
	}
	return map[string][]float64{
		"one":        {0.914024},
		"steps":      draw(5000, func() float64 { return 2.39 * math.Exp(0.2*rng.NormFloat64()) }),
		"stalls":     draw(2000, func() float64 { return 0.05 * math.Exp(3*math.Abs(rng.NormFloat64())) }),
		"sizes":      draw(3000, func() float64 { return math.Exp2(60 * rng.Float64()) }),
		"decades":    draw(3000, func() float64 { return math.Exp2(1000 * (rng.Float64() - 0.5)) }),
		"bounds":     draw(3000, func() float64 { return math.Exp2(math.Round(40 * rng.Float64())) }),
		"zeros":      {0, 1, 0, 2, 0},
		"from above": {1 << 30, 1 << 20, 1, 1e-9, 1e-300},
		"from below": {1e-300, 1e-9, 1, 1 << 20, 1 << 30},
	}
}

// The buckets equal the SDK's exponential histogram: same scale, same offset, same counts.
func TestBucketsAsTheSDK(t *testing.T) {
	for name, list := range lists() {
		reader := sdk.NewManualReader()
		provider := sdk.NewMeterProvider(sdk.WithReader(reader), sdk.WithView(sdk.NewView(sdk.Instrument{Name: "h"}, sdk.Stream{
			Aggregation: sdk.AggregationBase2ExponentialHistogram{MaxSize: mostBuckets, MaxScale: maxScale},
		})))
		h, err := provider.Meter("test").Float64Histogram("h")
		require.NoError(t, err)
		var b buckets
		for _, x := range list {
			h.Record(t.Context(), x)
			b.add(x)
		}
		var rm metricdata.ResourceMetrics
		require.NoError(t, reader.Collect(t.Context(), &rm))
		want := rm.ScopeMetrics[0].Metrics[0].Data.(metricdata.ExponentialHistogram[float64]).DataPoints[0]
		assert.Equal(t, want.Scale, int32(b.scale()), name)
		assert.Equal(t, want.PositiveBucket.Offset, int32(b.offset), name)
		assert.Equal(t, want.PositiveBucket.Counts, b.counts, name)
		assert.Equal(t, want.ZeroCount, b.zeros, name)
		require.NoError(t, provider.Shutdown(t.Context()))
	}
}

// quantile is histogram_quantile of Prometheus over classic buckets: linear between their bounds.
func (p *point) quantile(q float64) float64 {
	rank, below := q*float64(p.count), 0.0
	for i, n := range p.buckets {
		if below+float64(n) >= rank {
			lower := 0.0
			if i > 0 {
				lower = p.bounds[i-1]
			}
			return lower + (p.bounds[i]-lower)*(rank-below)/float64(n)
		}
		below += float64(n)
	}
	return math.NaN()
}

// Explicit buckets have the bounds, the counts and the quantiles of the exponential ones.
func TestExplicitBuckets(t *testing.T) {
	for _, name := range []string{"one", "steps", "stalls"} {
		list := lists()[name]
		c := newBed(t, withBuckets)
		b := spans.NewBatch("test", "")
		for i, x := range list {
			add(b, resourceA, i+1, "rollout", spans.StageGet, int64(x*1e9))
		}
		c.consume(b.Traces())
		p := c.flushed(time.Second)[prefix+"tq.stage.duration|[tq.function=rollout tq.stage=get]"]
		require.Len(t, p.buckets, len(p.bounds)+1, name)
		assert.LessOrEqual(t, len(p.bounds), bounds.Most)
		assert.True(t, slices.IsSorted(p.bounds))
		slices.Sort(list)
		below := uint64(0)
		for i, bound := range p.bounds {
			below += p.buckets[i]
			n, _ := slices.BinarySearchFunc(list, bound, func(x, bound float64) int {
				if x <= bound {
					return -1
				}
				return 1
			})
			assert.Equal(t, uint64(n), below, "%s: at most %v", name, bound)
		}
		for _, q := range []float64{0.5, 0.95, 0.99} {
			assert.InEpsilon(t, list[int(math.Ceil(q*float64(len(list))))-1], p.quantile(q), 0.1, "%s: %v", name, q)
		}
	}
}

// Series far apart, of runs and of functions, can be added bucket by bucket, while ever new values arrive.
func TestBucketsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	c := newBed(t, withBuckets)
	var all []float64
	for round := range 20 {
		b := spans.NewBatch("test", "")
		for i := range 200 {
			of := rng.IntN(4)
			res := resourceA
			res.RunID = fmt.Sprint("run-", of%2)
			ns := int64(math.Exp(0.3*rng.NormFloat64()) * math.Pow(7, float64(of)) * 1e7)
			add(b, res, 200*round+i+1, fmt.Sprint("f", of), spans.StageGet, ns)
			all = append(all, float64(ns)/1e9)
		}
		c.consume(b.Traces())
		var sum point
		for key, p := range c.flushed(time.Second) {
			if !strings.Contains(key, "|tq.stage.duration|") {
				continue
			}
			if sum.bounds == nil {
				sum.bounds, sum.buckets = p.bounds, make([]uint64, len(p.buckets))
			}
			require.Equal(t, sum.bounds, p.bounds, key)
			for i, n := range p.buckets {
				sum.buckets[i] += n
			}
			sum.count += p.count
		}
		slices.Sort(all)
		for _, q := range []float64{0.05, 0.5, 0.95, 0.99} {
			assert.InEpsilon(t, all[int(math.Ceil(q*float64(len(all))))-1], sum.quantile(q), 0.1, "%v", q)
		}
	}
}

// After observations of nothing but 0 all buckets above 0 are empty.
func TestOnlyZeros(t *testing.T) {
	c := newBed(t, withBuckets)
	b := spans.NewBatch("test", "")
	addCollective(b, resourceA, 1, "AllReduce", "RING", 1e6, map[string]float64{spans.AttrNCCLLateMax: 0})
	c.consume(b.Traces())
	p := c.flushed(time.Second)[prefix+"nccl.collective.late|"+ncclLabels("AllReduce", "RING")]
	assert.Equal(t, []float64{0}, p.bounds)
	assert.Equal(t, []uint64{1, 0}, p.buckets)
}
