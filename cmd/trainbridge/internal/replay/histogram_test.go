package replay

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector"
	"github.com/trainbridge/trainbridge/spans"
)

// counted is the output of train_metrics for spans, with histograms of a type.
func counted(t *testing.T, td ptrace.Traces, histograms trainmetricsconnector.HistogramType) pmetric.Metrics {
	t.Helper()
	f, sink := trainmetricsconnector.NewFactory(), new(consumertest.MetricsSink)
	cfg := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"collector": "", "histogram": map[string]any{"type": string(histograms)}}).Unmarshal(cfg))
	c, err := f.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(f.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(context.Background()))
	require.Len(t, sink.AllMetrics(), 1)
	return sink.AllMetrics()[0]
}

// bucketsOf takes the buckets out of series: cumulative counts by bound, by labels without the bound.
func bucketsOf(t *testing.T, all map[string]float64) map[string]map[float64]float64 {
	t.Helper()
	out := map[string]map[float64]float64{}
	for key, value := range all {
		m := bound.FindStringSubmatch(key)
		if m == nil {
			continue
		}
		delete(all, key)
		le, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		of := strings.Replace(key, m[0], "", 1)
		if out[of] == nil {
			out[of] = map[float64]float64{}
		}
		out[of][le] = value
	}
	return out
}

var bound = regexp.MustCompile(`le="([^"]+)",?`)

// The buckets of a replay equal the buckets on a live collector's page with histogram::type explicit; some empty ones are missing.
func TestAsExplicit(t *testing.T) {
	td, err := golden.ReadTraces(filepath.Join("..", "..", "..", "..", "processors", "trainperfprocessor", "testdata", "want.yaml"))
	require.NoError(t, err)
	td.MarkReadOnly()
	page := live(t, withNow(counted(t, td, trainmetricsconnector.Explicit)))
	table := newTable()
	table.add(counted(t, td, trainmetricsconnector.Exponential), func(pcommon.Timestamp) int64 { return 7 })
	all := table.take()
	sets := boundsOf(all)
	sent := byLabels(t, func(yield func(*series) bool) {
		for _, s := range all {
			for x := range s.each(sets) {
				if !yield(x) {
					return
				}
			}
		}
	})
	want, got := bucketsOf(t, page), bucketsOf(t, sent)
	assert.Equal(t, page, sent, "all that has no buckets")
	require.NotEmpty(t, want)
	assert.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for key, bounds := range want {
		for le, value := range bounds {
			below := 0.0
			for at, n := range got[key] {
				if at <= le {
					below = max(below, n)
				}
			}
			assert.InDelta(t, value, below, 0, "%s up to %v", key, le)
		}
	}
}

// quantileOf is Prometheus' histogram_quantile over buckets by bound.
func quantileOf(q float64, buckets map[float64]float64) float64 {
	bounds := slices.Sorted(maps.Keys(buckets))
	rank := q * buckets[math.Inf(1)]
	i := slices.IndexFunc(bounds, func(b float64) bool { return buckets[b] >= rank })
	switch {
	case i == len(bounds)-1:
		return bounds[i-1]
	case i == 0 && bounds[0] <= 0:
		return bounds[0]
	}
	begin, below := 0.0, 0.0
	if i > 0 {
		begin, below = bounds[i-1], buckets[bounds[i-1]]
	}
	return begin + (bounds[i]-begin)*(rank-below)/(buckets[bounds[i]]-below)
}

type timed struct{ end, ns int64 }

// someSteps has the steps of some runs, each run with twice the step time of the one before.
func someSteps(n, runs int, base, length int64) (ptrace.Traces, []timed) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := spans.NewBatch("test", "")
	var steps []timed
	for i := range n {
		run := rng.IntN(runs)
		s := timed{base + rng.Int64N(length), int64(math.Exp(rng.NormFloat64()*0.3) * 0.2e9 * math.Exp2(float64(run)))}
		steps = append(steps, s)
		b.Add(spans.Resource{Service: "train", RunID: fmt.Sprint("r", run), Time: spans.TimeLogged}, spans.Span{
			Trace: pcommon.TraceID{1, byte(i >> 8), byte(i)}, ID: pcommon.SpanID{1}, Name: spans.SpanStep, Is: spans.KindStep, Start: s.end - s.ns, End: s.end,
		})
	}
	return b.Traces(), steps
}

// overTime adds up the buckets of all series of a histogram, by time and bound. All buckets of a series exist for the same time.
func overTime(t *testing.T, all []*series, metric string) map[int64]map[float64]float64 {
	t.Helper()
	at := map[int64]map[float64]float64{}
	lives := map[string][2]int64{}
	for _, s := range all {
		of := map[string]string{}
		for _, l := range s.labels {
			of[l.name] = l.value
		}
		if of[metricName] != metric+"_bucket" {
			continue
		}
		le, err := strconv.ParseFloat(of["le"], 64)
		require.NoError(t, err)
		assert.InDelta(t, 0, s.samples[0].value, 0)
		life := [2]int64{s.samples[0].at, s.samples[len(s.samples)-1].at}
		if _, ok := lives[of["instance"]]; !ok {
			lives[of["instance"]] = life
		}
		assert.Equal(t, lives[of["instance"]], life)
		for _, x := range s.samples[:len(s.samples)-1] { // the last sample marks the end
			if at[x.at] == nil {
				at[x.at] = map[float64]float64{}
			}
			at[x.at][le] += x.value
		}
	}
	return at
}

// Quantiles over all series of a metric are within 10 % of the exact ones, at any time, although each series has times of its own size.
func TestQuantiles(t *testing.T) {
	const base, windows = 1_790_000_000_000_000_000 / s15 * s15, 40
	td, steps := someSteps(4000, 5, base, windows*s15)
	h := newHistory(openIntervals)
	require.NoError(t, h.take(t.Context(), td))
	at := overTime(t, allOf(t, h), "ml_train_step_duration_seconds")
	for from := range int64(windows) {
		for _, to := range []int64{from + 1, min(from+20, windows)} {
			first, end := base+from*s15, base+to*s15
			came := map[float64]float64{}
			for le, value := range at[end/1e6] {
				came[le] = value - at[first/1e6][le]
			}
			var times []float64
			for _, s := range steps {
				if s.end >= first && s.end < end {
					times = append(times, float64(s.ns)/1e9)
				}
			}
			slices.Sort(times)
			require.InDelta(t, len(times), came[math.Inf(1)], 0)
			for _, q := range []float64{0.5, 0.95, 0.99} {
				assert.InEpsilon(t, times[int(math.Ceil(q*float64(len(times))))-1], quantileOf(q, came), 0.1, "quantile %v of %d", q, len(times))
			}
		}
	}
}

// pointOf has counts from an index of a scale on.
func pointOf(scale, offset int32, zeroes uint64, counts ...uint64) pmetric.ExponentialHistogramDataPoint {
	p := pmetric.NewExponentialHistogramDataPoint()
	p.SetScale(scale)
	p.SetZeroCount(zeroes)
	p.SetCount(zeroes)
	for _, n := range counts {
		p.SetCount(p.Count() + n)
	}
	p.Positive().SetOffset(offset)
	p.Positive().BucketCounts().FromRaw(counts)
	return p
}

// Buckets of several scales get common bounds, at most 64.
func TestGrid(t *testing.T) {
	wide := make([]uint64, 320)
	for i := range wide {
		wide[i] = 1
	}
	r2 := math.Exp2(0.5)
	for name, tt := range map[string]struct {
		points []pmetric.ExponentialHistogramDataPoint
		want   map[float64]float64
	}{
		"nothing":    {[]pmetric.ExponentialHistogramDataPoint{pointOf(4, 0, 0)}, map[float64]float64{math.Inf(1): 0}},
		"only zeros": {[]pmetric.ExponentialHistogramDataPoint{pointOf(4, 0, 3)}, map[float64]float64{0: 3, math.Inf(1): 3}},
		"finer": {
			[]pmetric.ExponentialHistogramDataPoint{pointOf(4, -1, 1, 2, 4)},
			map[float64]float64{0: 1, math.Exp2(-1. / 8): 1, 1: 3, math.Exp2(1. / 8): 7, math.Inf(1): 7},
		},
		"with gaps": {
			[]pmetric.ExponentialHistogramDataPoint{pointOf(3, 8, 0, 1), pointOf(3, 800, 0, 1)},
			map[float64]float64{2: 0, 2 * math.Exp2(1./8): 1, math.Exp2(100): 1, math.Exp2(100 + 1./8): 2, math.Inf(1): 2},
		},
		"a coarser one": {
			[]pmetric.ExponentialHistogramDataPoint{pointOf(3, -4, 0, 1, 1, 1, 1), pointOf(1, -2, 0, 8)},
			map[float64]float64{0.5: 0, r2 / 2: 8, 1: 12, math.Inf(1): 12},
		},
		"much coarser": {[]pmetric.ExponentialHistogramDataPoint{pointOf(-2, -1, 0, 1, 2)}, map[float64]float64{1. / 16: 0, 1: 1, 16: 3, math.Inf(1): 3}},
		"too many": {[]pmetric.ExponentialHistogramDataPoint{pointOf(4, 0, 0, wide...)}, func() map[float64]float64 {
			want := map[float64]float64{math.Inf(1): 320}
			for i := range 41 {
				want[math.Ldexp([]float64{1, r2}[i%2], i/2)] = float64(8 * i)
			}
			return want
		}()},
	} {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("a")
		m.SetEmptyExponentialHistogram()
		for _, p := range tt.points {
			p.CopyTo(m.ExponentialHistogram().DataPoints().AppendEmpty())
		}
		table := newTable()
		table.add(md, func(pcommon.Timestamp) int64 { return 7 })
		got := map[float64]float64{}
		for _, s := range table.take() {
			s.sort()
			for x := range s.each(boundsOf([]*series{s})) {
				if x.labels[0] == (label{metricName, "a_bucket"}) {
					le, err := strconv.ParseFloat(x.labels[1].value, 64)
					require.NoError(t, err)
					require.Len(t, x.samples, 1)
					got[le] = x.samples[0].value
				}
			}
		}
		assert.Equal(t, tt.want, got, name)
	}
}
