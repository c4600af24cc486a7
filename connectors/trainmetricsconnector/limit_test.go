package trainmetricsconnector

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/trainbridge/trainbridge/spans"
)

// tight leaves each metric room for one point beside the overflow.
func tight(c *Config) {
	_, sum := seriesPerPoint(c.Histogram.Type)
	c.CardinalityLimit = minKept * sum
}

// addFunction adds a function of TransferQueue with the spans of all its series: a dozen, most of them histograms.
func addFunction(b *spans.Batch, res spans.Resource, id int, name string) {
	f := add(b, res, 8*id+1, name, spans.StageFunction, 914_024_000)
	for _, attr := range []string{
		spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization, spans.AttrTQOverheadUtilization, spans.AttrTQUtilizationDisagreement,
	} {
		f.Attributes().PutDouble(attr, 0.25)
	}
	judged(f, spans.VerdictTQOverhead)
	add(b, res, 8*id+2, name, spans.StageGet, 52_000_001)
	add(b, res, 8*id+3, name, spans.StageCompute, 800_000_000)
	add(b, res, 8*id+4, name, spans.StageClientPut, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 200*mib)
	add(b, res, 8*id+5, name, spans.StagePut, 1).Attributes().PutBool(spans.AttrIncomplete, true)
}

// pageOf is a scraped page: the number of its series, and the sum of the values of all series of a name.
type pageOf struct {
	bytes, series int
	total         map[string]float64
}

// The text has three lines of a native histogram.
func scraped(t *testing.T, address string, histograms HistogramType) pageOf {
	t.Helper()
	text := scrape(t, address, openMetrics)
	p := pageOf{bytes: len(text), total: map[string]float64{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, rest, _ := strings.Cut(line, "{")
		if histograms == Explicit || !strings.HasSuffix(name, "_bucket") && !strings.HasSuffix(name, "_sum") {
			p.series++
		}
		_, rest, ok := strings.Cut(rest, "} ")
		require.True(t, ok, line)
		value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err, line)
		p.total[name] += v
	}
	return p
}

// TestSeriesOfManyFunctions: whatever the names in a log, Prometheus scrapes no more series than configured, and their sums are the sums of all spans.
func TestSeriesOfManyFunctions(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	const functions, perBatch = 100_000, 1_000
	exp, address := startPrometheus(t)
	c := newBed(t)
	c.next, c.clock = exp, time.Now() // the exporter's own expiration looks at the real clock
	for from := 0; from < functions; from += perBatch {
		b := spans.NewBatch("test", "")
		for i := from; i < from+perBatch; i++ {
			addFunction(b, resourceA, i, fmt.Sprint("function-", i))
		}
		c.consume(b.Traces())
	}
	c.flush(context.Background())

	page := scraped(t, address, c.cfg.Histogram.Type)
	t.Logf("%d series, %d bytes", page.series, page.bytes)
	assert.LessOrEqual(t, page.series, c.cfg.CardinalityLimit)
	assert.Greater(t, page.series, c.cfg.CardinalityLimit/2, "the room is used")
	for name, want := range map[string]float64{
		"tq_function_duration_seconds_count":          functions,
		"tq_stage_duration_seconds_count":             3 * functions,
		"tq_client_throughput_bytes_per_second_count": functions,
		"tq_client_throughput_bytes_per_second_sum":   functions * 200 * mib,
		"tq_utilization_reported_disagreement_count":  functions,
		"trainbridge_verdicts_total":                  functions,
		"trainbridge_incomplete_spans_total":          functions,
	} {
		assert.InDelta(t, want, page.total[name], 0, name)
	}
	assert.InEpsilon(t, functions*0.914024, page.total["tq_function_duration_seconds_sum"], 1e-12)
	assert.InEpsilon(t, functions*0.912000001, page.total["tq_stage_duration_seconds_sum"], 1e-12)
	m, err := c.tel.GetMetric("otelcol_connector_train_metrics_overflow_spans")
	require.NoError(t, err)
	assert.Positive(t, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	require.Equal(t, 1, c.logs.Len(), "said once")
	said := c.logs.All()[0].ContextMap()
	assert.Equal(t, int64(7000), said["cardinality_limit"])
	assert.Contains(t, said["metric"], "tq.", "which of them is full first depends on how many metrics there are")
}

// everything adds functions, steps, calls, passes, collectives and breakdowns with all attributes of metrics.
func everything(b *spans.Batch, res spans.Resource, id int) {
	name := fmt.Sprint("n", id)
	addFunction(b, res, 10*id, name)
	step := addStepSpan(b, res, 80*id+50, "jsonl", int64(id), 1, map[string]float64{
		spans.AttrStepDuration: 1, spans.AttrSamples: 1, spans.AttrTokens: 1, spans.AttrFlopThroughput: 1, spans.AttrDeviceFlopThroughput: 1,
		spans.AttrMFU: 1, spans.AttrHFU: 1, spans.AttrFlopDisagreement: 1,
	})
	judged(step, spans.VerdictMFULow)
	addPart(b, res, 80*id+51, "jsonl", name, int64(id), 1e6)
	addCall(b, res, 80*id+52, name, "unix", 1e6, 1, 1)
	addSend(b, res, 80*id+52, 1e5)
	addGroup(b, res, 80*id+53, spans.SpanRPCPass, 1e9, map[string]float64{
		spans.AttrZMQPassCalls: 1, spans.AttrZMQSendUtilization: 1,
		spans.AttrZMQThroughputDisagreement: 1,
	})
	addCollective(b, res, 80*id+54, name, "RING", 1e9, map[string]float64{
		spans.AttrNCCLDuration: 1, spans.AttrNCCLLateMax: 1, spans.AttrNCCLLateCost: 1, spans.AttrNCCLDataSize: 1, spans.AttrNCCLBandwidthBus: 1,
		spans.AttrNCCLErrors: 1, spans.AttrNCCLRetries: 1, spans.AttrNCCLRanksMissingCount: 1,
	}).Attributes().PutInt(spans.AttrNCCLLateRank, 3)
	addEvent(b, res, 80*id+56, name)
	addBreakdown(b, res, 80*id+55, spans.WindowStep, map[string]float64{spans.PartCompute: 0.75, spans.PartWait: 0.25})
}

func addEvent(b *spans.Batch, res spans.Resource, id int, class string) {
	trace := pcommon.TraceID{9, byte(id >> 8), byte(id)}
	s := b.Add(res, spans.Span{Trace: trace, ID: spanID(id), Name: spans.SpanEvent, Is: spans.KindEvent, Start: 1e18, End: 1e18 + 1e6})
	s.Attributes().PutStr(spans.AttrEventClass, class)
}

// TestSeriesAreCountedAsPrometheusDoes: the count under the limit is the number of series on the page.
func TestSeriesAreCountedAsPrometheusDoes(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"default":                      func(*Config) {},
		"explicit":                     func(c *Config) { c.Histogram.Type, c.CardinalityLimit = Explicit, 20_000 },
		"nothing but overflow and one": tight,
	} {
		t.Run(name, func(t *testing.T) {
			exp, address := startPrometheus(t)
			c := newBed(t, change)
			c.next, c.clock = exp, time.Now()
			b := spans.NewBatch("test", "")
			for i := range 3 {
				res := resourceA
				res.RunID = fmt.Sprint("run-", i)
				everything(b, res, i)
			}
			c.consume(b.Traces())
			c.flush(context.Background())
			want := 0
			for _, r := range c.store.resources {
				want += r.series
			}
			e := newEmitter(c.store, pmetric.NewMetricSlice(), 0)
			e.group(&c.store.overflow)
			for m, begun := range e.begun {
				if begun {
					want += c.store.room.cost[m]
				}
			}
			assert.LessOrEqual(t, want, c.cfg.CardinalityLimit)
			if got := scraped(t, address, c.cfg.Histogram.Type).series; c.cfg.Histogram.Type == Explicit {
				assert.LessOrEqual(t, got, want, "not every bucket is there")
			} else {
				assert.Equal(t, want, got)
			}
		})
	}
}

// TestOneTakesNotTheRoomOfOthers: beside a service with endless names, its own metrics of different names, and all metrics of another service, still have
// series.
func TestOneTakesNotTheRoomOfOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, tt := range map[string]struct {
		own   []string // metrics without room for new names of the service
		flood func(b *spans.Batch, i int)
	}{
		"functions": {[]string{"tq.", "trainbridge."}, func(b *spans.Batch, i int) { addFunction(b, resourceA, i, fmt.Sprint("f", i)) }},
		"parts":     {nil, func(b *spans.Batch, i int) { addPart(b, resourceA, i+1, "jsonl", fmt.Sprint("p", i), 0, 1e6) }},
		"ranks": {[]string{"ml."}, func(b *spans.Batch, i int) {
			addStepSpan(b, resourceA, i+1, "jsonl", int64(i), 1, map[string]float64{spans.AttrStepDuration: 1, spans.AttrTokens: 1})
		}},
		"methods": {[]string{"rpc.", "zeromq.stage.time"}, func(b *spans.Batch, i int) { addCall(b, resourceA, i+1, fmt.Sprint("m", i), "unix", 1e6, 1, 1) }},
		"communicators": {[]string{"nccl."}, func(b *spans.Batch, i int) {
			c := addCollective(b, resourceA, i+1, "AllReduce", "RING", 1e9, map[string]float64{spans.AttrNCCLDuration: 1, spans.AttrNCCLErrors: 1})
			c.Attributes().PutStr(spans.AttrNCCLCommID, strconv.Itoa(i))
		}},
		"verdicts": {[]string{"tq.", "trainbridge."}, func(b *spans.Batch, i int) {
			judged(add(b, resourceA, i+1, fmt.Sprint("f", i/1000), spans.StageFunction, 1), fmt.Sprint("v", i))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			for from := 0; from < 20_000; from += 1000 {
				b := spans.NewBatch("test", "")
				for i := from; i < from+1000; i++ {
					tt.flood(b, i)
				}
				c.consume(b.Traces())
			}
			assert.Positive(t, c.store.spills)
			b := spans.NewBatch("test", "")
			other := resourceA
			other.Service, other.RunID = "other", "run-2"
			everything(b, resourceA, 900_001)
			everything(b, other, 900_002)
			c.consume(b.Traces())
			liveSteps(c, resourceA, 10, second)
			liveSteps(c, other, 10, second)
			found := map[string]bool{}
			for key := range c.flushed(time.Second) {
				parts := splitKey(key)
				found[parts[0]+" "+parts[2]] = true
			}
			for _, m := range metrics {
				assert.True(t, found["other "+m.Name], m.Name)
				if !slices.ContainsFunc(tt.own, func(own string) bool { return strings.HasPrefix(m.Name, own) }) {
					assert.True(t, found["verl "+m.Name], m.Name)
				}
			}
			assert.LessOrEqual(t, c.store.room.taken, c.cfg.CardinalityLimit)
		})
	}
}

// TestManyServices: a hundred thousand services, or runs, leave room for different metrics, and memory is bounded.
func TestManyServices(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	exp, address := startPrometheus(t)
	c := newBed(t)
	c.next, c.clock = exp, time.Now()
	const services = 100_000
	for from := 0; from < services; from += 1000 {
		b := spans.NewBatch("test", "")
		for i := from; i < from+1000; i++ {
			add(b, spans.Resource{Service: fmt.Sprint("s", i)}, i+1, "rollout", spans.StageGet, 1e6)
		}
		c.consume(b.Traces())
	}
	b := spans.NewBatch("test", "")
	addCall(b, spans.Resource{Service: "s0"}, 2*services, "Matmul", "unix", 1e6, 1, 1)
	c.consume(b.Traces())
	c.flush(context.Background())
	page := scraped(t, address, c.cfg.Histogram.Type)
	assert.LessOrEqual(t, page.series, c.cfg.CardinalityLimit)
	assert.InDelta(t, services, page.total["tq_stage_duration_seconds_count"], 0)
	assert.Contains(t, scrape(t, address, openMetrics), `rpc_method="Matmul"`)
	assert.Less(t, len(c.store.resources), c.cfg.CardinalityLimit)
}

// TestRoomAgainstRecount sends random names for hours and counts the series at each flush.
func TestRoomAgainstRecount(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	rng := rand.New(rand.NewPCG(11, 3))
	c := newBed(t, func(c *Config) { tight(c); c.CardinalityLimit *= 2 })
	for i := range 400 {
		b := spans.NewBatch("test", "")
		for range rng.IntN(20) {
			res := resourceA
			res.RunID = fmt.Sprint("run-", rng.IntN(5))
			everything(b, res, rng.IntN(50)+1000*i)
		}
		c.consume(b.Traces())
		c.flushed(time.Duration(rng.IntN(200)) * time.Second)
		used, total := slices.Clone(c.store.room.cost), 0
		for _, r := range c.store.resources {
			require.NotEmpty(t, r.groups)
			series := 1
			used[targetInfo()]++
			e := newEmitter(c.store, pmetric.NewMetricSlice(), 0)
			for _, g := range r.groups {
				e.group(g)
			}
			for _, m := range e.list.All() {
				id := 0
				for metrics[id].Name != m.Name() {
					id++
				}
				n := c.store.room.cost[id]
				switch m.Type() {
				case pmetric.MetricTypeExponentialHistogram:
					n *= m.ExponentialHistogram().DataPoints().Len()
				case pmetric.MetricTypeSum:
					n *= m.Sum().DataPoints().Len()
				default:
					n *= m.Gauge().DataPoints().Len()
				}
				used[id] += n
				series += n
			}
			require.Equal(t, series, r.series)
		}
		for m, n := range used {
			total += max(n, c.store.room.kept[m])
		}
		require.Equal(t, used, c.store.room.used)
		require.Equal(t, total, c.store.room.taken)
		require.LessOrEqual(t, total, c.cfg.CardinalityLimit)
	}
	c.flushed(time.Hour)
	c.flushed(time.Hour)
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)
}

// TestLongNames: a name of a megabyte is cut in scrapes, and names with the same beginning are counted together.
func TestLongNames(t *testing.T) {
	c := newBed(t)
	long := strings.Repeat("x", 1<<20)
	b := spans.NewBatch("test", "")
	res := spans.Resource{Service: long, RunID: long}
	for i, end := range []string{"a", "b"} {
		addFunction(b, res, 2*i+1, long+end)
		judged(addStepSpan(b, res, 100*i+50, long+end, 0, 1, nil), long+end)
		addPart(b, res, 100*i+51, long+end, long+end, 0, 1e6)
		addCall(b, res, 100*i+52, long+end, long+end, 1e6, 1, 1)
		co := addCollective(b, res, 100*i+53, long+end, long+end, 1e9, map[string]float64{spans.AttrNCCLDuration: 1})
		co.Attributes().PutStr(spans.AttrNCCLCommID, long+end)
		co.Attributes().PutStr(spans.AttrNCCLCommName, long+end)
	}
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	calls := 0
	for key, p := range got {
		assert.Less(t, len(key), 10*spans.MaxLabelBytes)
		if strings.Contains(key, "|rpc.client.call.duration|") {
			calls++
			assert.Equal(t, uint64(2), p.count)
		}
	}
	assert.Equal(t, 1, calls)
}
