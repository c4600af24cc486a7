package trainmetricsconnector

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadata"
	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// base is the start of the test's spans, ns: 2026-02-11T08:40:00Z.
const base = 1_770_799_200_000_000_000

var resourceA = spans.Resource{Service: "verl", RunID: "run-1", Host: "10.4.1.33", PID: 15930}

// jobA is its job: the resource without a worker.
var jobA = spans.Resource{Service: "verl", RunID: "run-1"}

// bed is a connector with a test clock and ticker, and the metrics sent.
type bed struct {
	*trainMetrics
	t     testing.TB
	clock time.Time
	ticks chan time.Time
	sent  chan pmetric.Metrics
	err   error
	tel   *componenttest.Telemetry
	logs  *observer.ObservedLogs // warnings
	notes *observer.ObservedLogs // all
	steps int                    // of liveSteps
}

func newBed(tb testing.TB, change ...func(*Config)) *bed {
	tb.Helper()
	cfg := defaultConfig()
	cfg.Collector = "" // a single collector
	for _, f := range change {
		f(cfg)
	}
	require.NoError(tb, cfg.Validate())
	b := &bed{
		t: tb, clock: time.Unix(0, base).Add(time.Hour), ticks: make(chan time.Time), sent: make(chan pmetric.Metrics, 10),
		tel: componenttest.NewTelemetry(),
	}
	tb.Cleanup(func() { require.NoError(tb, b.tel.Shutdown(context.Background())) })
	next, err := consumer.NewMetrics(func(_ context.Context, md pmetric.Metrics) error {
		if b.err != nil {
			return b.err
		}
		b.sent <- md
		return nil
	})
	require.NoError(tb, err)
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = b.tel.NewTelemetrySettings()
	core, logs := observer.New(zap.WarnLevel)
	all, notes := observer.New(zap.InfoLevel)
	set.Logger, b.logs, b.notes = zap.New(zapcore.NewTee(core, all)), logs, notes
	b.trainMetrics, err = newTrainMetrics(cfg, set, next)
	require.NoError(tb, err)
	b.now = func() time.Time { return b.clock }
	b.newTicker = func(d time.Duration) (<-chan time.Time, func()) {
		require.Equal(tb, cfg.MetricsFlushInterval, d)
		return b.ticks, func() {}
	}
	b.store = newStore(cfg, b.clock)
	return b
}

func (b *bed) consume(td ptrace.Traces) {
	require.NoError(b.t, b.ConsumeTraces(context.Background(), td))
}

// flushed advances the clock, flushes and returns the metrics sent, by series.
func (b *bed) flushed(after time.Duration) map[string]point {
	b.clock = b.clock.Add(after)
	b.flush(context.Background())
	select {
	case md := <-b.sent:
		return points(b.t, md)
	default:
		return map[string]point{}
	}
}

// point is a data point of any kind.
type point struct {
	start, at pcommon.Timestamp
	ended     bool
	value     float64 // gauge, counter
	count     uint64
	sum       float64
	min, max  float64
	bounds    []float64
	buckets   []uint64
	exemplars []float64
	spans     []pcommon.SpanID
	host      map[string]any // resource
}

// points returns the data points by "resource|metric|labels". Two points with the same key are a mistake.
func points(tb testing.TB, md pmetric.Metrics) map[string]point {
	tb.Helper()
	out := map[string]point{}
	for _, rm := range md.ResourceMetrics().All() {
		res := rm.Resource().Attributes()
		put := func(m pmetric.Metric, attrs pcommon.Map, p point) {
			key := spans.AttrText(res, spans.AttrServiceName) + "|" + spans.AttrText(res, spans.AttrRunID) + "|" + m.Name() + "|" + labelText(attrs)
			_, twice := out[key]
			require.False(tb, twice, key)
			p.host = res.AsRaw()
			out[key] = p
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					require.Equal(tb, pmetric.AggregationTemporalityCumulative, m.Histogram().AggregationTemporality())
					for _, p := range m.Histogram().DataPoints().All() {
						o := point{
							start: p.StartTimestamp(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), count: p.Count(), sum: p.Sum(), min: p.Min(), max: p.Max(),
							bounds: p.ExplicitBounds().AsRaw(), buckets: p.BucketCounts().AsRaw(),
						}
						for _, x := range p.Exemplars().All() {
							require.False(tb, x.TraceID().IsEmpty())
							o.exemplars, o.spans = append(o.exemplars, x.DoubleValue()), append(o.spans, x.SpanID())
						}
						put(m, p.Attributes(), o)
					}
				case pmetric.MetricTypeExponentialHistogram:
					require.Equal(tb, pmetric.AggregationTemporalityCumulative, m.ExponentialHistogram().AggregationTemporality())
					for _, p := range m.ExponentialHistogram().DataPoints().All() {
						put(m, p.Attributes(), exponentialPointOf(tb, p))
					}
				case pmetric.MetricTypeSum:
					require.Equal(tb, spans.MetricNamed(m.Name()).Instrument == spans.Counter, m.Sum().IsMonotonic())
					for _, p := range m.Sum().DataPoints().All() {
						o := point{start: p.StartTimestamp(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: float64(p.IntValue()) + p.DoubleValue()}
						for _, x := range p.Exemplars().All() {
							o.spans = append(o.spans, x.SpanID())
						}
						put(m, p.Attributes(), o)
					}
				default:
					for _, p := range m.Gauge().DataPoints().All() {
						put(m, p.Attributes(), point{at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), value: p.DoubleValue()})
					}
				}
			}
		}
	}
	return out
}

// exponentialPointOf has the bounds and the buckets of an explicit histogram.
func exponentialPointOf(tb testing.TB, p pmetric.ExponentialHistogramDataPoint) point {
	tb.Helper()
	o := point{
		start: p.StartTimestamp(), at: p.Timestamp(), ended: p.Flags().NoRecordedValue(), count: p.Count(), sum: p.Sum(), min: p.Min(), max: p.Max(),
		buckets: []uint64{p.ZeroCount()},
	}
	for i, n := range p.Positive().BucketCounts().All() {
		o.bounds, o.buckets = append(o.bounds, bound(p, i)), append(o.buckets, n)
	}
	o.bounds, o.buckets = append(o.bounds, bound(p, len(o.bounds))), append(o.buckets, 0)
	for _, x := range p.Exemplars().All() {
		require.False(tb, x.TraceID().IsEmpty())
		o.exemplars, o.spans = append(o.exemplars, x.DoubleValue()), append(o.spans, x.SpanID())
	}
	return o
}

// bound is the lower bound of a bucket.
func bound(p pmetric.ExponentialHistogramDataPoint, i int) float64 {
	return math.Exp2(math.Ldexp(float64(int(p.Positive().Offset())+i), -int(p.Scale())))
}

// in is how many values are in the bucket of a value.
func (p *point) in(x float64) uint64 {
	i, _ := slices.BinarySearchFunc(p.bounds, x, func(bound, x float64) int {
		if math.Abs(bound-x) <= 1e-12*x { // a bound belongs to its bucket
			return 0
		}
		return cmp.Compare(bound, x)
	})
	return p.buckets[min(i, len(p.buckets)-1)]
}

func labelText(attrs pcommon.Map) string {
	var parts []string
	for k, v := range attrs.All() {
		parts = append(parts, k+"="+v.AsString())
	}
	sort.Strings(parts)
	return fmt.Sprint(parts)
}

// changed are the series of one span after a change.
func (b *bed) changed(td ptrace.Traces, change func(pcommon.Map, ptrace.Span)) map[string]point {
	s := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	change(s.Attributes(), s)
	b.consume(td)
	return b.flushed(time.Second)
}

func spanID(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

// add appends a span of a stage.
func add(b *spans.Batch, res spans.Resource, id int, function, stage string, ns int64) ptrace.Span {
	s := b.Add(res, spans.Span{Trace: pcommon.TraceID{1}, ID: spanID(id), Name: function, Start: base, End: base + ns})
	s.SetEndTimestamp(pcommon.Timestamp(base + ns)) // before the start, as a service's span may end
	if function != "" {
		s.Attributes().PutStr(spans.AttrTQFunction, function)
	}
	s.Attributes().PutStr(spans.AttrTQStage, stage)
	return s
}

func one(stage string, id int, ns int64) ptrace.Traces {
	b := spans.NewBatch("test", "")
	add(b, resourceA, id, "rollout", stage, ns)
	return b.Traces()
}

const mib = 1 << 20

const prefix = "verl|run-1|"

func TestEveryMetric(t *testing.T) {
	const fluctuating, ofVerdict = prefix + "trainbridge.verdicts|[tq.function=rollout tq.stage=", " trainbridge.verdict.name=tq_fluctuating trainbridge.verdict.severity=warning]"
	c := newBed(t)
	start := pcommon.NewTimestampFromTime(c.clock)
	c.consume(tqBatch())
	got := c.flushed(15 * time.Second)

	assert.ElementsMatch(t, []string{
		prefix + "tq.function.duration|[tq.function=rollout]",
		prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]",
		prefix + "tq.stage.duration|[tq.function=rollout tq.stage=client_get]",
		prefix + "tq.stage.duration|[tq.function=rollout tq.stage=client_put]",
		prefix + "tq.stage.duration|[tq.function=rollout tq.stage=client_clear]",
		prefix + "tq.stage.duration|[tq.stage=client_get]",
		prefix + "tq.client.throughput|[tq.function=rollout tq.stage=client_get]",
		prefix + "tq.client.throughput|[tq.function=rollout tq.stage=client_put]",
		prefix + "tq.function.time|[tq.function=rollout]",
		prefix + "tq.stage.time|[tq.function=rollout tq.stage=get]",
		prefix + "tq.stage.time|[tq.function=rollout tq.stage=compute]",
		prefix + "tq.stage.time|[tq.function=rollout tq.stage=put]",
		prefix + "tq.stage.utilization|[tq.function=rollout tq.stage=get]",
		prefix + "tq.stage.utilization|[tq.function=rollout tq.stage=compute]",
		prefix + "tq.stage.utilization|[tq.function=rollout tq.stage=put]",
		prefix + "tq.overhead.utilization|[tq.function=rollout]",
		prefix + "tq.utilization.reported.disagreement|[tq.function=rollout]",
		fluctuating + "get" + ofVerdict,
		fluctuating + "put" + ofVerdict,
		prefix + "trainbridge.incomplete.spans|[tq.function=rollout tq.stage=compute]",
	}, slices.Collect(maps.Keys(got)))

	h := got[prefix+"tq.function.duration|[tq.function=rollout]"]
	assert.Equal(t, uint64(1), h.count)
	assert.InDelta(t, 0.914024, h.sum, 0)
	assert.Equal(t, []float64{0.914024}, h.exemplars)
	assert.Equal(t, []pcommon.SpanID{spanID(1)}, h.spans)
	assert.Equal(t, start, h.start)
	assert.Equal(t, pcommon.NewTimestampFromTime(c.clock), h.at)
	assert.Equal(t, []uint64{0, 1, 0}, h.buckets)
	assert.Less(t, h.bounds[0], 0.914024)
	assert.GreaterOrEqual(t, h.bounds[1], 0.914024)
	assert.Less(t, h.bounds[1]/h.bounds[0], 1.045)
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "run-1", "service.instance.id": "run-1"}, h.host)
	assert.InDelta(t, 253.33*mib, got[prefix+"tq.client.throughput|[tq.function=rollout tq.stage=client_put]"].sum, 0)
	assert.InDelta(t, 0.88, got[prefix+"tq.stage.utilization|[tq.function=rollout tq.stage=compute]"].value, 0)
	assert.InDelta(t, 0.12, got[prefix+"tq.overhead.utilization|[tq.function=rollout]"].value, 0)
	v := got[fluctuating+"put"+ofVerdict]
	assert.InDelta(t, 1.0, v.value, 0)
	assert.Equal(t, []pcommon.SpanID{spanID(1)}, v.spans)
	assert.InDelta(t, 1.0, got[prefix+"trainbridge.incomplete.spans|[tq.function=rollout tq.stage=compute]"].value, 0)
}

// tqBatch has a function with all of its shares, its stages, a function cut off, and a foreign span.
func tqBatch() ptrace.Traces {
	b := spans.NewBatch("test", "")
	f := add(b, resourceA, 1, "rollout", spans.StageFunction, 914_024_000)
	for name, v := range map[string]float64{
		spans.AttrTQGetUtilization: 0.05, spans.AttrTQComputeUtilization: 0.88, spans.AttrTQPutUtilization: 0.07,
		spans.AttrTQOverheadUtilization: 0.12, spans.AttrTQUtilizationDisagreement: 0.0002, spans.AttrTQUnattributedUtilization: 0.3,
	} {
		f.Attributes().PutDouble(name, v)
	}
	judged(f, spans.VerdictTQFluctuating)
	warned(f, spans.VerdictTQFluctuating, "", spans.StageGet)
	warned(f, spans.VerdictTQFluctuating, "", spans.StagePut)
	add(b, resourceA, 2, "rollout", spans.StageGet, 52_000_000)
	add(b, resourceA, 3, "rollout", spans.StageClientGet, 50_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 500*mib)
	add(b, resourceA, 4, "rollout", spans.StageClientPut, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughputReported, 253.33*mib)
	add(b, resourceA, 5, "rollout", spans.StageClientClear, 1_000_000)
	add(b, resourceA, 6, "", spans.StageClientGet, 1_000_001).Attributes().PutDouble(spans.AttrTQThroughput, 0)
	add(b, resourceA, 7, "rollout", spans.StageCompute, 5).Attributes().PutBool(spans.AttrIncomplete, true)
	b.Add(resourceA, spans.Span{Trace: pcommon.TraceID{1}, ID: spanID(8), Name: "not ours", Start: base, End: base + 5})
	return b.Traces()
}

// TestOneOverheadPopulation: calls that died in compute have a GET and no duration. Sums of histograms, divided by the functions' time, would give
// TransferQueue 89.5 % instead of 26.3 %, and 85 % instead of 15 %. The counters cover only functions with known shares.
func TestOneOverheadPopulation(t *testing.T) {
	for _, tt := range []struct {
		get, put, total int64 // ms, of the complete call
		died            int   // calls without an end, with the same GET
		naive, want     float64
	}{
		{300, 200, 1900, 4, 0.895, 0.263},
		{100, 50, 1000, 7, 0.85, 0.15},
	} {
		c := newBed(t)
		b := spans.NewBatch("test", "")
		m := add(b, resourceA, 1, "rollout", spans.StageFunction, tt.total*1e6).Attributes()
		total := float64(tt.total)
		m.PutDouble(spans.AttrTQGetUtilization, float64(tt.get)/total)
		m.PutDouble(spans.AttrTQComputeUtilization, float64(tt.total-tt.get-tt.put)/total)
		m.PutDouble(spans.AttrTQPutUtilization, float64(tt.put)/total)
		m.PutDouble(spans.AttrTQOverheadUtilization, float64(tt.get+tt.put)/total)
		add(b, resourceA, 2, "rollout", spans.StageGet, tt.get*1e6)
		add(b, resourceA, 3, "rollout", spans.StagePut, tt.put*1e6)
		for i := range tt.died {
			spans.PutIncomplete(add(b, resourceA, 10*i+10, "rollout", spans.StageFunction, tt.total*1e6).Attributes(), "no_compute_end")
			add(b, resourceA, 10*i+11, "rollout", spans.StageGet, tt.get*1e6)
		}
		// A call without the lines of its PUT is incomplete, but its shares are known: here the same as for complete calls.
		lost := add(b, resourceA, 4, "rollout", spans.StageFunction, tt.total*1e6).Attributes()
		m.CopyTo(lost)
		spans.PutIncomplete(lost, "stage_missing")
		add(b, resourceA, 5, "rollout", spans.StageGet, tt.get*1e6)
		c.consume(b.Traces())
		got := c.flushed(15 * time.Second)

		stage := func(metric, stage string) point {
			return got[prefix+metric+"|[tq.function=rollout tq.stage="+stage+"]"]
		}
		function := got[prefix+"tq.function.time|[tq.function=rollout]"].value
		assert.InDelta(t, 2*total/1e3, function, 1e-12)
		assert.InDelta(t, tt.want, (stage("tq.stage.time", "get").value+stage("tq.stage.time", "put").value)/function, 5e-4)
		// The ratio by histograms, without the incomplete call.
		sums := stage("tq.stage.duration", "get").sum + stage("tq.stage.duration", "put").sum - float64(tt.get)/1e3
		assert.InDelta(t, tt.naive, sums/got[prefix+"tq.function.duration|[tq.function=rollout]"].sum, 5e-4)
	}
}

// consumeRandom consumes 40 batches of up to most spans each, some of them twice, and returns the metrics sent last.
func (b *bed) consumeRandom(rng *rand.Rand, most int, add func(batch *spans.Batch, id int)) (last map[string]point) {
	var batches []ptrace.Traces
	for i := range 40 {
		batch := spans.NewBatch("test", "")
		for j := range 1 + rng.IntN(most) {
			add(batch, 1+1000*i+j)
		}
		batches = append(batches, batch.Traces())
		b.consume(batch.Traces())
		if rng.IntN(4) == 0 { // a retry, perhaps late
			b.consume(batches[rng.IntN(len(batches))])
		}
		if rng.IntN(5) == 0 || i == 39 {
			last = b.flushed(time.Second)
		}
	}
	return last
}

// checkHistogram compares a histogram with its values.
func checkHistogram(t *testing.T, key string, values []float64, got point) {
	t.Helper()
	slices.Sort(values)
	assert.Equal(t, uint64(len(values)), got.count, key)
	assert.InDelta(t, values[0], got.min, 0)
	assert.InDelta(t, values[len(values)-1], got.max, 0)
	require.Len(t, got.buckets, len(got.bounds)+1)
	below, reached := 0, uint64(0)
	p95 := values[int(math.Ceil(0.95*float64(len(values))))-1]
	lower := 0.0
	for i, bound := range append(slices.Clone(got.bounds), math.Inf(1)) {
		inside := 0
		for _, v := range values {
			if v <= bound {
				inside++
			}
		}
		assert.Equal(t, uint64(inside-below), got.buckets[i], "%s ≤ %v", key, bound)
		below = inside
		// The bucket of the histogram's 95th percentile holds the 95th percentile of the values.
		before := reached
		reached += got.buckets[i]
		if rank := uint64(math.Ceil(0.95 * float64(len(values)))); before < rank && rank <= reached {
			assert.True(t, lower < p95 && p95 <= bound || p95 == 0, "%s: p95 %v in (%v, %v]", key, p95, lower, bound)
		}
		lower = bound
	}
}

// checkCounts compares histograms with the count and the sum of their values: whole numbers, scale of them to the unit.
func checkCounts(t *testing.T, last map[string]point, counts map[string]uint64, totals map[string]int64, scale func(metric string) float64) {
	t.Helper()
	for key, want := range counts {
		p := last[key]
		assert.Equal(t, want, p.count, key)
		assert.InDelta(t, float64(totals[key])/scale(splitKey(key)[2]), p.sum, 0, "%s: sums of ns, bytes and calls are exact", key)
		var inBuckets uint64
		for _, n := range p.buckets {
			inBuckets += n
		}
		assert.Equal(t, want, inBuckets, key)
	}
}

func ofNanoseconds(string) float64 { return 1e9 }

// TestAgainstOracle sends random spans in random batches, some twice, and counts the input independently.
func TestAgainstOracle(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		c := newBed(t)
		o := tqOracle{durations: map[string][]int64{}, speeds: map[string][]float64{}, counts: map[string]float64{}}
		last := c.consumeRandom(rng, 40, func(b *spans.Batch, id int) { o.add(b, id, rng) })
		require.Len(t, last, len(o.durations)+len(o.speeds)+len(o.counts))
		for key, n := range o.counts {
			assert.InDelta(t, n, last[key].value, 0, key)
		}
		for key, durations := range o.durations {
			var values []float64
			var total int64
			for _, ns := range durations {
				values = append(values, float64(ns)/1e9)
				total += ns
			}
			assert.InDelta(t, float64(total)/1e9, last[key].sum, 0, "the sum of durations is exact")
			checkHistogram(t, key, values, last[key])
		}
		for key, values := range o.speeds {
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			assert.InEpsilon(t, sum, last[key].sum, 1e-12)
			checkHistogram(t, key, values, last[key])
		}
	}
}

// tqOracle keeps every value of the spans added, by series.
type tqOracle struct {
	durations map[string][]int64 // ns
	speeds    map[string][]float64
	counts    map[string]float64
}

func (o *tqOracle) add(b *spans.Batch, id int, rng *rand.Rand) {
	stageNames := []string{"function", "get", "compute", "put", "client_get", "client_put", "client_get_meta", "client_clear"}
	res := resourceA
	res.PID = rng.Int64N(5) // no label of the metrics
	res.RunID = fmt.Sprint("run-", rng.IntN(2))
	fn, st := fmt.Sprint("f", rng.IntN(4)), stageNames[rng.IntN(len(stageNames))]
	ns := int64(math.Exp(rng.Float64() * 30)) // 1 ns to 3 h
	s := add(b, res, id, fn, st, ns)
	key := "verl|" + res.RunID + "|"
	incomplete := rng.IntN(10) == 0
	if incomplete {
		s.Attributes().PutBool(spans.AttrIncomplete, true)
		o.counts[key+fmt.Sprintf("trainbridge.incomplete.spans|[tq.function=%s tq.stage=%s]", fn, st)]++
	} else if st == "function" {
		series := key + fmt.Sprintf("tq.function.duration|[tq.function=%s]", fn)
		o.durations[series] = append(o.durations[series], ns)
	} else {
		series := key + fmt.Sprintf("tq.stage.duration|[tq.function=%s tq.stage=%s]", fn, st)
		o.durations[series] = append(o.durations[series], ns)
	}
	if st == "client_put" || st == "client_get" {
		speed := rng.Float64() * 1e9
		s.Attributes().PutDouble(spans.AttrTQThroughput, speed)
		if !incomplete {
			series := key + fmt.Sprintf("tq.client.throughput|[tq.function=%s tq.stage=%s]", fn, st)
			o.speeds[series] = append(o.speeds[series], speed)
		}
	}
	if rng.IntN(3) == 0 {
		list := s.Attributes().PutEmptySlice(spans.AttrVerdict)
		for k := range rng.IntN(3) {
			list.AppendEmpty().SetStr(fmt.Sprint("v", k))
			o.counts[key+fmt.Sprintf("trainbridge.verdicts|[tq.function=%s trainbridge.verdict.name=v%d]", fn, k)]++
		}
	}
}

func TestExemplars(t *testing.T) {
	const key = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]"
	c := newBed(t)
	for i, ms := range []int64{5, 90, 30, 20} {
		c.consume(one(spans.StageGet, i+1, ms*1e6))
	}
	assert.Equal(t, []float64{0.09, 0.02}, c.flushed(time.Second)[key].exemplars, "the largest and the latest")
	assert.Equal(t, []float64{0.09, 0.02}, c.flushed(time.Second)[key].exemplars, "kept while nothing newer is there")
	c.consume(one(spans.StageGet, 9, 1e6))
	got := c.flushed(time.Second)[key]
	assert.Equal(t, []float64{0.001}, got.exemplars, "the old ones are gone with the first new one")
	assert.Equal(t, []pcommon.SpanID{spanID(9)}, got.spans)
}

func TestCumulativeAndStart(t *testing.T) {
	const get, put = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]", prefix + "tq.stage.duration|[tq.function=rollout tq.stage=put]"
	c := newBed(t)
	begin := pcommon.NewTimestampFromTime(c.clock)
	assert.Empty(t, c.flushed(15*time.Second), "nothing to say")
	second := pcommon.NewTimestampFromTime(c.clock)
	c.consume(one(spans.StageGet, 1, 1e6))
	p := c.flushed(15 * time.Second)[get]
	assert.Equal(t, second, p.start, "nothing was in it at the last flush")
	assert.NotEqual(t, begin, p.start)
	third := p.at
	c.consume(one(spans.StageGet, 2, 1e6))
	c.consume(one(spans.StagePut, 3, 1e6))
	all := c.flushed(15 * time.Second)
	assert.Equal(t, second, all[get].start)
	assert.Equal(t, uint64(2), all[get].count)
	assert.Equal(t, third, all[put].start)
	// A clock set back.
	all = c.flushed(-time.Hour)
	assert.LessOrEqual(t, all[get].start, all[get].at)
	assert.LessOrEqual(t, all[put].start, all[put].at)
	c.consume(one(spans.StageCompute, 9, 1e6))
	all = c.flushed(time.Second)
	assert.Equal(t, uint64(1), all[strings.Replace(get, "=get", "=compute", 1)].count, "what is new has not ended")
}

func TestStaleness(t *testing.T) {
	const get, put = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]", prefix + "tq.stage.duration|[tq.function=rollout tq.stage=put]"
	c := newBed(t)
	c.consume(one(spans.StageGet, 1, 1e6))
	c.consume(one(spans.StagePut, 2, 1e6))
	c.flushed(15 * time.Second)
	c.clock = c.clock.Add(25 * time.Minute)
	c.consume(one(spans.StagePut, 3, 1e6))
	got := c.flushed(5 * time.Minute)
	assert.True(t, got[get].ended)
	assert.Zero(t, got[get].count)
	assert.False(t, got[put].ended)
	assert.Equal(t, uint64(2), got[put].count)
	ended := got[get].at

	got = c.flushed(15 * time.Second)
	assert.NotContains(t, got, get, "said once")
	c.consume(one(spans.StageGet, 4, 1e6))
	got = c.flushed(15 * time.Second)
	assert.Equal(t, uint64(1), got[get].count, "it begins again")
	assert.Greater(t, got[get].start, ended)

	got = c.flushed(time.Hour)
	assert.True(t, got[get].ended && got[put].ended)
	assert.Empty(t, c.flushed(time.Second))
	assert.Empty(t, c.store.resources)
	assert.Empty(t, c.store.byKey)
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)
}

// TestEndedSeriesHaveMetricsOfTheirOwn: the prometheus exporter skips the points behind an end in the same metric.
func TestEndedSeriesHaveMetricsOfTheirOwn(t *testing.T) {
	c := newBed(t)
	for i, st := range []string{"get", "compute", "put"} {
		c.consume(one(st, i+1, 1e6))
	}
	c.clock = c.clock.Add(time.Hour)
	c.consume(one("client_get", 9, 1e6))
	c.flush(context.Background())
	list := (<-c.sent).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	assert.Equal(t, 4, list.Len())
	for _, m := range list.All() {
		assert.Equal(t, "tq.stage.duration", m.Name())
		assert.Equal(t, 1, m.ExponentialHistogram().DataPoints().Len())
	}
}

func TestNoExpiration(t *testing.T) {
	c := newBed(t, func(c *Config) { c.MetricsExpiration = 0 })
	c.consume(one(spans.StageGet, 1, 1e6))
	for _, p := range c.flushed(1000 * time.Hour) {
		assert.False(t, p.ended)
	}
}

func TestCardinalityLimit(t *testing.T) {
	const limit = 1
	c := newBed(t, tight)
	const functions = 25
	for i := range functions {
		c.consume(ofEveryKind(i))
	}
	for _, run := range []string{"run-0", "run-1"} {
		liveSteps(c, spans.Resource{Service: "verl", RunID: run}, 10, second)
	}
	series, total := map[string]int{}, map[string]float64{}
	overflows := 0
	for key, p := range c.flushed(time.Second) {
		var service, run, metric, labels string
		parts := splitKey(key)
		service, run, metric, labels = parts[0], parts[1], parts[2], parts[3]
		total[metric] += float64(p.count) + p.value
		if labels == "["+attrOverflow+"=true]" {
			overflows++
			assert.Empty(t, service+run)
			continue
		}
		series[metric]++
	}
	for _, m := range metrics {
		assert.LessOrEqual(t, series[m.Name], limit, m.Name)
		assert.Positive(t, series[m.Name], m.Name)
	}
	assert.Equal(t, len(metrics), overflows)
	assert.Equal(t, limit, series["tq.function.duration"])
	assert.Equal(t, limit, series["tq.stage.duration"])
	// Nothing is lost by the limit.
	assert.InDelta(t, float64(functions), total["tq.function.duration"], 0)
	assert.InDelta(t, float64(5*functions), total["tq.stage.duration"], 0)
	assert.InDelta(t, float64(2*functions), total["tq.client.throughput"], 0)
	for _, m := range []string{"ml.train.step.duration", "ml.train.steps"} {
		assert.InDelta(t, float64(functions+2*10), total[m], 0, m)
	}
	for _, m := range []string{
		"ml.train.stage.duration", "ml.train.tokens", "ml.train.flop.throughput.disagreement",
		"rpc.client.call.duration", "rpc.client.request.size", "rpc.client.response.size", "zeromq.pass.duration", "zeromq.pass.calls",
		"zeromq.throughput.disagreement",
		"nccl.collective.duration", "nccl.collective.late", "nccl.collective.late.cost", "nccl.collective.io", "nccl.collective.errors",
		"nccl.collective.retries", "nccl.collective.missing",
	} {
		assert.InDelta(t, float64(functions), total[m], 0, m)
	}
	assert.InDelta(t, float64(4*functions), total["trainbridge.verdicts"], 0)
	assert.InDelta(t, float64(2*functions), total["trainbridge.incomplete.spans"], 0)
	m, err := c.tel.GetMetric("otelcol_connector_train_metrics_overflow_spans")
	require.NoError(t, err)
	assert.Positive(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)

	// Free room is reused.
	c.flushed(25 * time.Hour)
	c.consume(one(spans.StageGet, 100_000, 1e6))
	assert.Contains(t, c.flushed(time.Second), prefix+"tq.stage.duration|[tq.function=rollout tq.stage=get]")
}

// ofEveryKind has a span for every metric, and labels unique to i.
func ofEveryKind(i int) ptrace.Traces {
	b := spans.NewBatch("test", "")
	res := resourceA
	res.RunID = fmt.Sprint("run-", i%3)
	f := add(b, res, 10*i+1, fmt.Sprint("f", i), "function", 1e6)
	f.Attributes().PutDouble(spans.AttrTQGetUtilization, 0.5)
	f.Attributes().PutDouble(spans.AttrTQOverheadUtilization, 0.5)
	f.Attributes().PutDouble(spans.AttrTQUtilizationDisagreement, 0.5)
	names := f.Attributes().PutEmptySlice(spans.AttrVerdict)
	for v := range 3 {
		names.AppendEmpty().SetStr(fmt.Sprint("v", v))
	}
	for j, st := range []string{"get", "compute", "put", "client_get", "client_put"} {
		add(b, res, 10*i+2+j, fmt.Sprint("f", i), st, 1e6).Attributes().PutDouble(spans.AttrTQThroughput, 1)
	}
	add(b, res, 10*i+8, fmt.Sprint("f", i), "get", 1e6).Attributes().PutBool(spans.AttrIncomplete, true)
	step := addStepSpan(b, res, 10*i+9, "jsonl", int64(i), 1, map[string]float64{
		spans.AttrStepDuration: 1, spans.AttrSamples: 1, spans.AttrTokens: 1, spans.AttrFlopThroughput: 1, spans.AttrDeviceFlopThroughput: 1,
		spans.AttrMFU: 1, spans.AttrHFU: 1, spans.AttrFlopDisagreement: 1,
	})
	judged(step, "v0")
	addPart(b, res, 10*i+10, "jsonl", "gen", int64(i), 1e6)
	addStepSpan(b, res, 10_000+i, "jsonl", int64(i), 1, nil).Attributes().PutBool(spans.AttrIncomplete, true)
	addBreakdown(b, res, 15_000+i, spans.WindowStep, map[string]float64{fmt.Sprint("part", i): 1})
	addEvent(b, res, 50_000+i, fmt.Sprint("class", i))
	res.RunID = fmt.Sprint("run-", i) // groups of calls have a series per run
	addCall(b, res, 20_000+i, fmt.Sprint("m", i), "unix", 1e6, 1, 1)
	addSend(b, res, 20_000+i, 1e5)
	addGroup(b, res, 30_000+i, spans.SpanRPCPass, 1e9, map[string]float64{
		spans.AttrZMQPassCalls: 1, spans.AttrZMQSendUtilization: 1,
		spans.AttrZMQThroughputDisagreement: 1,
	})
	addCollective(b, res, 40_000+i, fmt.Sprint("op", i), "RING", 1e9, map[string]float64{
		spans.AttrNCCLDuration: 1, spans.AttrNCCLLateMax: 1, spans.AttrNCCLLateCost: 1, spans.AttrNCCLDataSize: 1, spans.AttrNCCLBandwidthBus: 1,
		spans.AttrNCCLErrors: 1, spans.AttrNCCLRetries: 1, spans.AttrNCCLRanksMissingCount: 1,
	}).Attributes().PutInt(spans.AttrNCCLLateRank, int64(i))
	return b.Traces()
}

func splitKey(key string) (parts [4]string) {
	n := 0
	for _, r := range key {
		if r == '|' && n < 3 {
			n++
			continue
		}
		parts[n] += string(r)
	}
	return parts
}

func TestRetryNeverCountsTwice(t *testing.T) {
	const key = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]"
	c := newBed(t, func(c *Config) { c.MetricsExpiration = 0 })
	batch := one(spans.StageGet, 1, 1e6)
	c.consume(batch)
	for range 100 { // a backend down for five hours, tried every three minutes
		c.clock = c.clock.Add(3 * time.Minute)
		c.consume(batch)
	}
	assert.Equal(t, uint64(1), c.flushed(time.Second)[key].count)
	c.consume(one(spans.StageGet, 2, 1e6))
	assert.Equal(t, uint64(2), c.flushed(time.Second)[key].count)
	metadatatest.AssertEqualConnectorTrainMetricsDuplicateSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 100}}, metricdatatest.IgnoreTimestamp())

	c.clock = c.clock.Add(time.Hour)
	c.consume(batch)
	assert.Equal(t, uint64(3), c.flushed(time.Second)[key].count, "forgotten after two windows")
}

func TestSameSpanIDInAnotherTrace(t *testing.T) {
	c := newBed(t)
	c.consume(one(spans.StageGet, 1, 1e6))
	other := one(spans.StageGet, 1, 1e6)
	other.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{2})
	c.consume(other)
	noID := one(spans.StageGet, 0, 1e6)
	c.consume(noID)
	c.consume(noID)
	assert.Equal(t, uint64(4), c.flushed(time.Second)[prefix+"tq.stage.duration|[tq.function=rollout tq.stage=get]"].count)
}

func TestInvalidSpansAreCounted(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	add(b, resourceA, 1, "rollout", spans.StageGet, -1)
	add(b, resourceA, 2, "rollout", spans.StageGet, 1).SetStartTimestamp(0)
	add(b, resourceA, 3, "rollout", "unknown", 1)
	s := add(b, resourceA, 4, "rollout", "", 1)
	s.Attributes().PutInt(spans.AttrTQStage, 7)
	c.consume(b.Traces())
	assert.Empty(t, c.flushed(time.Second))
	metadatatest.AssertEqualConnectorTrainMetricsInvalidSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
}

func TestAttributesOfOtherTypes(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	s := add(b, resourceA, 1, "", spans.StageFunction, 1)
	a := s.Attributes()
	a.PutEmptyMap(spans.AttrTQFunction)
	a.PutStr(spans.AttrIncomplete, "true")
	a.PutStr(spans.AttrVerdict, "bad")
	a.PutStr(spans.AttrTQGetUtilization, "0.5")
	a.PutDouble(spans.AttrTQPutUtilization, math.NaN())
	a.PutDouble(spans.AttrTQOverheadUtilization, math.Inf(1))
	a.PutInt(spans.AttrTQComputeUtilization, 1)
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	assert.Len(t, got, 2)
	assert.InDelta(t, 1.0, got[prefix+"tq.stage.utilization|[tq.stage=compute]"].value, 0)
	assert.Equal(t, uint64(1), got[prefix+"tq.function.duration|[]"].count)
}

func TestRefusedFlush(t *testing.T) {
	const key = prefix + "tq.stage.duration|[tq.function=rollout tq.stage=get]"
	c := newBed(t)
	c.err = errors.New("no room")
	c.consume(one(spans.StageGet, 1, 1e6))
	for range 12 { // 3 minutes
		c.flushed(15 * time.Second)
	}
	assert.Equal(t, 3, c.logs.Len(), "once a minute")
	metadatatest.AssertEqualConnectorTrainMetricsFlushFailures(t, c.tel, []metricdata.DataPoint[int64]{{Value: 12}}, metricdatatest.IgnoreTimestamp())
	c.err = nil
	c.consume(one(spans.StageGet, 2, 1e6))
	assert.Equal(t, uint64(2), c.flushed(15 * time.Second)[key].count)
}

func TestTickerAndShutdown(t *testing.T) {
	c := newBed(t)
	require.NoError(t, c.Start(context.Background(), componenttest.NewNopHost()))
	c.consume(one(spans.StageGet, 1, 1e6))
	c.ticks <- time.Time{}
	assert.Equal(t, 1, (<-c.sent).DataPointCount())
	c.consume(one(spans.StagePut, 2, 1e6))
	require.NoError(t, c.Shutdown(context.Background()))
	assert.Equal(t, 2, (<-c.sent).DataPointCount())
	require.NoError(t, c.Shutdown(context.Background()))
	assert.Empty(t, c.sent)
}

func TestShutdownWithoutStart(t *testing.T) {
	c := newBed(t)
	c.consume(one(spans.StageGet, 1, 1e6))
	require.NoError(t, c.Shutdown(context.Background()))
	assert.Equal(t, 1, (<-c.sent).DataPointCount())
}

// TestShutdownOfAHeldFlush: a next component that ignores its context must not hold the collector for ever.
func TestShutdownOfAHeldFlush(t *testing.T) {
	c := newBed(t)
	held, release := make(chan struct{}), make(chan struct{})
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		close(held)
		<-release
		return nil
	})
	require.NoError(t, err)
	c.next = next
	require.NoError(t, c.Start(context.Background(), componenttest.NewNopHost()))
	c.consume(one(spans.StageGet, 1, 1e6))
	c.ticks <- time.Time{}
	<-held
	c.consume(one(spans.StageGet, 2, 1e6)) // does not wait for the flush
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, c.Shutdown(ctx), context.Canceled)
	close(release)
	<-c.done
}

func TestConcurrent(t *testing.T) {
	c := newBed(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 100 {
				c.consume(one(spans.StageGet, 1000*g+i+1, 1e6))
			}
		})
	}
	for range 5 {
		c.flush(context.Background()) // the test's clock has no lock, and stands still
	}
	wg.Wait()
	for len(c.sent) > 0 {
		<-c.sent
	}
	assert.Equal(t, uint64(800), c.flushed(time.Second)[prefix+"tq.stage.duration|[tq.function=rollout tq.stage=get]"].count)
}

// TestGolden: the functions are the output of train_perf's golden test.
func TestGolden(t *testing.T) {
	functions, err := golden.ReadTraces(filepath.Join("..", "..", "processors", "trainperfprocessor", "testdata", "want.yaml"))
	require.NoError(t, err)
	for file, in := range map[string]ptrace.Traces{
		"want.yaml": functions, "want_steps.yaml": stepBatch(), "want_rpc.yaml": rpcBatch(), "want_nccl.yaml": collectiveBatch(),
	} {
		t.Run(file, func(t *testing.T) {
			want, err := golden.ReadMetrics(filepath.Join("testdata", file))
			require.NoError(t, err)
			c := newBed(t, func(cfg *Config) { cfg.Collector = "gateway-0" })
			c.consume(in)
			c.clock = c.clock.Add(15 * time.Second)
			c.flush(t.Context())
			require.NoError(t, pmetrictest.CompareMetrics(want, <-c.sent, pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
		})
	}
}

// Two collectors of one run share no series, overflow and ended series included, and their sum is the count of a single collector.
func TestTwoCollectors(t *testing.T) {
	var beds [2]*bed
	for i := range beds {
		beds[i] = newBed(t, tight, func(c *Config) { c.Collector = fmt.Sprint("gateway-", i) })
	}
	const n = 300
	for i := range n { // ever new names: some find no room
		b := spans.NewBatch("test", "")
		add(b, resourceA, i+1, fmt.Sprint("f", i/20), spans.StageGet, 1e9)
		beds[i%2].consume(b.Traces())
	}
	for _, ended := range []bool{false, true} {
		after := map[bool]time.Duration{false: time.Second, true: time.Hour}[ended]
		all, count := map[string]point{}, uint64(0)
		for _, b := range beds {
			for key, p := range b.flushed(after) {
				assert.NotContains(t, all, key)
				assert.Equal(t, ended, p.ended, key)
				all[key] = p
				count += p.count
			}
		}
		for _, labels := range []string{"tq.function=f0 tq.stage=get", "otel.metric.overflow=true"} {
			found := 0
			for key := range all {
				if strings.Contains(key, labels) {
					found++
				}
			}
			assert.Equal(t, 2, found, labels)
		}
		assert.Equal(t, map[bool]uint64{false: n, true: 0}[ended], count)
	}
}

func TestFactory(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	c, err := NewFactory().CreateTracesToMetrics(context.Background(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
	require.NoError(t, err)
	assert.False(t, c.Capabilities().MutatesData)
	require.NoError(t, c.Start(context.Background(), componenttest.NewNopHost()))
	td := one(spans.StageGet, 1, 1e6)
	td.MarkReadOnly()
	require.NoError(t, c.ConsumeTraces(context.Background(), td))
	require.NoError(t, c.Shutdown(context.Background()))
	require.Equal(t, 1, sink.DataPointCount())
}

// FuzzConsume: whatever OTLP holds, nothing panics and every span with a stage and a possible duration, and every step with a duration, counts once; likewise
// calls, passes and collectives.
func FuzzConsume(f *testing.F) {
	raw, err := new(ptrace.ProtoMarshaler).MarshalTraces(oddSpans())
	require.NoError(f, err)
	f.Add(raw)
	cfg := defaultConfig()
	tight(cfg)
	f.Fuzz(func(t *testing.T, raw []byte) {
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(raw)
		if err != nil {
			return
		}
		st, in := newStore(cfg, time.Unix(0, base)), newScratch()
		in.read(td)
		st.apply(in, time.Unix(1, base))
		want, steps := observed(in)
		got, counted := countedIn(st.build(time.Unix(2, base)))
		assert.Equal(t, want, got)
		assert.InDelta(t, steps, counted, 1e3) // of up to 2⁵³ each
	})
}

// oddSpans has a span of every kind, some with missing attributes.
func oddSpans() ptrace.Traces {
	b := spans.NewBatch("test", "")
	s := add(b, resourceA, 1, "rollout", spans.StageFunction, 1e9)
	s.Attributes().PutDouble(spans.AttrTQGetUtilization, 0.5)
	s.Attributes().PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr("v")
	add(b, resourceA, 2, "", spans.StageClientPut, -1).Attributes().PutDouble(spans.AttrTQThroughput, 1e9)
	add(b, spans.Resource{}, 0, "rollout", spans.StageGet, 1).Attributes().PutBool(spans.AttrIncomplete, true)
	addStepSpan(b, resourceA, 3, "hf", 1, 1, map[string]float64{
		spans.AttrStepDuration: 1, spans.AttrTokens: 1e9,
		spans.AttrMFU: 0.5,
	}).Attributes().PutInt(spans.AttrStepsCovered, 3)
	addStepSpan(b, resourceA, 3, "hf", 1, 1, nil)
	addPart(b, resourceA, 4, "verl", "gen", -1, 1)
	addCall(b, resourceA, 5, "Matmul", "unix", 1e6, 1024, 2048)
	addCall(b, resourceA, 6, "LMHead", "", 1e6, 1, 2).Attributes().PutBool(spans.AttrIncomplete, true)
	addGroup(b, resourceA, 7, spans.SpanRPCPass, 1e9, map[string]float64{
		spans.AttrZMQPassCalls: 98, spans.AttrZMQSendUtilization: 0.5,
		spans.AttrZMQThroughputDisagreement: 0.1,
	})
	addGroup(b, resourceA, 8, spans.SpanRPCSession, 1e9, nil)
	addGroup(b, resourceA, 9, spans.SpanRPCCalls, 1e9, nil).Attributes().PutBool(spans.AttrIncomplete, true)
	addCollective(b, resourceA, 10, "AllReduce", "RING", 1e9, map[string]float64{
		spans.AttrNCCLDuration: 1, spans.AttrNCCLDataSize: 1e9,
		spans.AttrNCCLErrors: 3, spans.AttrNCCLBandwidthBus: 1e9,
	})
	cut(addCollective(b, resourceA, 11, "Send", "", 1e9, map[string]float64{spans.AttrNCCLLateMax: 1, spans.AttrNCCLRanksMissingCount: 1}),
		spans.NCCLIncompleteGap)
	addBelow(b, resourceA, 12, spans.SpanNCCLRank)
	return b.Traces()
}

// observed counts the spans expected in a histogram or in the counter of incomplete spans, and the steps.
func observed(in *scratch) (want uint64, steps float64) {
	met := map[uint64]bool{0: false}
	for _, o := range in.observations {
		if met[o.id] {
			continue
		}
		met[o.id] = o.id != 0
		measured := true // has a duration
		switch r := in.readers[o.family].(type) {
		case *stepReader:
			if v := &r.values[o.values]; v.part == "" {
				measured = v.timed
				if !o.incomplete {
					steps += v.counts[0]
				}
			}
		case *rpcReader:
			measured = o.values >= 0 || r.groups[^o.values].pass
		case *collectiveReader:
			measured = r.values[o.values].timed
		}
		if o.incomplete || measured {
			want++
		}
	}
	return want, steps
}

// countedIn counts the same in the metrics.
func countedIn(md pmetric.Metrics) (got uint64, steps float64) {
	for _, rm := range md.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch m.Name() {
			case spans.MetricTQFunctionDuration, spans.MetricTQStageDuration, spans.MetricStepDuration, spans.MetricStageDuration,
				spans.MetricRPCCallDuration, spans.MetricZMQPassDuration, spans.MetricNCCLDuration:
				for _, p := range m.ExponentialHistogram().DataPoints().All() {
					got += p.Count()
				}
			case spans.MetricIncompleteSpans:
				for _, p := range m.Sum().DataPoints().All() {
					got += uint64(p.IntValue())
				}
			case spans.MetricSteps:
				for _, p := range m.Sum().DataPoints().All() {
					steps += p.DoubleValue()
				}
			}
		}
	}
	return got, steps
}
