package trainmetricsconnector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/connectors/trainmetricsconnector/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

const second = int64(time.Second)

// addStepSpan appends a step of a log, of one second that ends at end.
func addStepSpan(b *spans.Batch, res spans.Resource, id int, source string, rank, end int64, numbers map[string]float64) ptrace.Span {
	trace := pcommon.TraceID{2, byte(id >> 16), byte(id >> 8), byte(id)}
	s := b.Add(res, spans.Span{Trace: trace, ID: spanID(id), Name: spans.SpanStep, Start: base + (end-1)*second, End: base + end*second})
	if source != "" {
		s.Attributes().PutStr(spans.AttrSource, source)
	}
	if rank >= 0 {
		s.Attributes().PutInt(spans.AttrRank, rank)
	}
	s.Attributes().PutInt(spans.AttrIteration, int64(id))
	for name, v := range numbers {
		s.Attributes().PutDouble(name, v)
	}
	return s
}

// addPart appends a part of a step.
func addPart(b *spans.Batch, res spans.Resource, id int, source, part string, rank, ns int64) ptrace.Span {
	s := b.Add(res, spans.Span{Trace: pcommon.TraceID{2}, ID: spanID(id), Name: part, Start: base, End: base + ns})
	s.SetEndTimestamp(pcommon.Timestamp(base + ns))
	s.Attributes().PutStr(spans.AttrSource, source)
	s.Attributes().PutStr(spans.AttrStage, part)
	s.Attributes().PutStr(spans.AttrStageOrder, spans.OrderUnknown)
	if rank >= 0 {
		s.Attributes().PutInt(spans.AttrRank, rank)
	}
	return s
}

func oneStep(id int, end int64, numbers map[string]float64) ptrace.Traces {
	b := spans.NewBatch("test", "")
	addStepSpan(b, jobA, id, "megatron", -1, end, numbers)
	return b.Traces()
}

func judged(s ptrace.Span, names ...string) {
	list := s.Attributes().PutEmptySlice(spans.AttrVerdict)
	for _, n := range names {
		list.AppendEmpty().SetStr(n)
	}
}

// warned adds the event of a warning.
func warned(s ptrace.Span, name, cause, stage string) {
	e := s.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	for attr, v := range map[string]string{
		spans.AttrVerdictName: name, spans.AttrVerdictSeverity: spans.SeverityWarning, spans.AttrVerdictCause: cause, spans.AttrTQStage: stage,
	} {
		if v != "" {
			e.Attributes().PutStr(attr, v)
		}
	}
}

// stepBatch has every value of a step.
func stepBatch() ptrace.Traces {
	b := spans.NewBatch("test", "")
	s := addStepSpan(b, jobA, 1, "megatron", 7, 10, map[string]float64{
		spans.AttrStepDuration: 0.75, spans.AttrSamples: 1024, spans.AttrTokens: 4_194_304.5, spans.AttrFlopThroughput: 3.2e15, spans.AttrDeviceFlopThroughput: 4e14,
		spans.AttrMFU: 0.41, spans.AttrHFU: 0.5, spans.AttrFlopDisagreement: 0.03, spans.AttrLoss: 2.5,
		spans.AttrDeviceFlopThroughputReported: 3.9e14, spans.AttrMFUReported: 0.4,
	})
	s.Attributes().PutInt(spans.AttrStepsCovered, 10)
	judged(s, spans.VerdictMFULow, spans.VerdictLossSpike)
	s = addStepSpan(b, jobA, 2, "megatron", 7, 20, map[string]float64{spans.AttrStepDuration: 0.25, spans.AttrMFU: 0.43})
	s.Attributes().PutInt(spans.AttrSamples, 1024)
	s.Attributes().PutInt(spans.AttrTokens, 4_194_304)
	judged(s, spans.VerdictMFULow)
	addStepSpan(b, jobA, 3, "jsonl", -1, 20, nil).Attributes().PutBool(spans.AttrTimePoint, true) // no duration
	s = addStepSpan(b, jobA, 4, "jsonl", -1, 30, map[string]float64{spans.AttrStepDuration: 1, spans.AttrMFU: 0.9})
	s.Attributes().PutBool(spans.AttrIncomplete, true)
	addPart(b, jobA, 5, "verl", "gen", -1, 52*second)
	addPart(b, jobA, 6, "verl", "update_actor", -1, 12*second)
	addPart(b, jobA, 7, "verl", "gen", -1, 40*second)
	addPart(b, jobA, 8, "megatron", "forward-backward", 7, second/2)
	b.Add(jobA, spans.Span{
		Trace: pcommon.TraceID{2}, ID: spanID(9), Name: spans.SpanEvaluation, Start: base,
		End: base,
	}).Attributes().PutDouble(spans.AttrMFU, 0.1)
	return b.Traces()
}

func TestEveryStepMetric(t *testing.T) {
	c := newBed(t)
	start := pcommon.NewTimestampFromTime(c.clock)
	c.consume(stepBatch())
	got := c.flushed(15 * time.Second)
	assert.Equal(t, map[string]float64{"run-1 step": 2, "run-1 unexplained": 9, "run-1 ": 2.0 / 11}, takeAccount(got))
	const ranked, plain, verl = "[dl.rank=7 trainbridge.source=megatron]", "[trainbridge.source=jsonl]", " trainbridge.source=verl]"
	for key, want := range map[string]float64{
		"ml.train.steps|" + ranked:                                    11,
		"ml.train.samples|" + ranked:                                  2048,
		"ml.train.tokens|" + ranked:                                   8_388_608.5,
		"ml.train.flop.throughput|" + ranked:                          3.2e15,
		"ml.train.device.flop.throughput|" + ranked:                   4e14,
		"ml.train.flop.utilization|" + ranked:                         0.43,
		"ml.train.hardware.flop.utilization|" + ranked:                0.5,
		"ml.train.steps|" + plain:                                     1,
		"trainbridge.incomplete.spans|" + plain:                       1,
		"ml.train.step.duration|" + ranked:                            2, // histograms: the count
		"ml.train.flop.throughput.disagreement|" + ranked:             1,
		"ml.train.stage.duration|[ml.train.stage=gen" + verl:          2,
		"ml.train.stage.duration|[ml.train.stage=update_actor" + verl: 1,
		"ml.train.stage.duration|[dl.rank=7 ml.train.stage=forward-backward trainbridge.source=megatron]":                                             1,
		"trainbridge.verdicts|[dl.rank=7 trainbridge.source=megatron trainbridge.verdict.name=train_mfu_low trainbridge.verdict.severity=warning]":    2,
		"trainbridge.verdicts|[dl.rank=7 trainbridge.source=megatron trainbridge.verdict.name=train_loss_spike trainbridge.verdict.severity=warning]": 1,
	} {
		p, ok := got[prefix+key]
		require.True(t, ok, key)
		assert.InDelta(t, want, p.value+float64(p.count), 0, key)
		delete(got, prefix+key)
		if p.start != 0 {
			assert.Equal(t, start, p.start, key)
		}
		assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "run-1", "service.instance.id": "run-1"}, p.host)
		switch key {
		case "ml.train.step.duration|" + ranked:
			assert.InDelta(t, 1.0, p.sum, 0)
			assert.Equal(t, []float64{0.75, 0.25}, p.exemplars)
			assert.Equal(t, []pcommon.SpanID{spanID(1), spanID(2)}, p.spans)
		case "ml.train.steps|" + ranked:
			assert.Equal(t, []pcommon.SpanID{spanID(1), spanID(2)}, p.spans)
		case "ml.train.stage.duration|[ml.train.stage=gen" + verl:
			assert.InDelta(t, 92.0, p.sum, 0)
			assert.Equal(t, []float64{52, 40}, p.exemplars)
		case "ml.train.flop.throughput.disagreement|" + ranked:
			assert.Equal(t, uint64(1), p.count)
		}
	}
	assert.Empty(t, got)
}

// TestStepsAgainstOracle sends random steps in random batches, some twice, and sums the input independently.
func TestStepsAgainstOracle(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 9))
		c := newBed(t)
		sums, counts, durations := map[string]float64{}, map[string]uint64{}, map[string]int64{}
		latest, gauge := map[string]int64{}, map[string]float64{}
		last := c.consumeRandom(rng, 30, func(b *spans.Batch, id int) {
			res, source, rank := jobA, fmt.Sprint("s", rng.IntN(2)), rng.Int64N(3)-1
			res.RunID = fmt.Sprint("run-", rng.IntN(2))
			labels := "trainbridge.source=" + source + "]"
			if rank >= 0 {
				labels = fmt.Sprint("dl.rank=", rank, " ") + labels
			}
			key := func(metric string) string { return "verl|" + res.RunID + "|" + metric + "|[" + labels }
			if rng.IntN(3) == 0 {
				part, ns := fmt.Sprint("p", rng.IntN(4)), rng.Int64N(1e12)
				addPart(b, res, id, source, part, rank, ns)
				labels = "ml.train.stage=" + part + " trainbridge.source=" + source + "]"
				if rank >= 0 {
					labels = fmt.Sprint("dl.rank=", rank, " ") + labels
				}
				counts[key("ml.train.stage.duration")]++
				durations[key("ml.train.stage.duration")] += ns
				return
			}
			end, mfu, ms, covered, tokens := rng.Int64N(1000), rng.Float64(), rng.Int64N(1e6), rng.Int64N(20), rng.Int64N(1e7)
			s := addStepSpan(b, res, id, source, rank, end, map[string]float64{
				spans.AttrMFU: mfu, spans.AttrStepDuration: float64(ms) / 1e3, spans.AttrSamples: float64(tokens) / 4, // quarters are exact
			})
			s.Attributes().PutInt(spans.AttrStepsCovered, covered)
			s.Attributes().PutInt(spans.AttrTokens, tokens)
			sums[key("ml.train.steps")] += float64(covered)
			sums[key("ml.train.tokens")] += float64(tokens)
			sums[key("ml.train.samples")] += float64(tokens) / 4
			counts[key("ml.train.step.duration")]++
			durations[key("ml.train.step.duration")] += ms * 1e6
			if k := key("ml.train.flop.utilization"); end >= latest[k] {
				latest[k], gauge[k] = end, mfu
			}
		})
		takeAccount(last) // TestAccount has an oracle for accounts
		require.Len(t, last, len(sums)+len(counts)+len(gauge))
		for key, want := range sums {
			assert.InDelta(t, want, last[key].value, 0, key)
		}
		for key, want := range gauge {
			assert.InDelta(t, want, last[key].value, 0, key)
		}
		checkCounts(t, last, counts, durations, ofNanoseconds)
	}
}

func TestStepRetryNeverCountsTwice(t *testing.T) {
	c := newBed(t)
	batch := stepBatch()
	c.consume(batch)
	before := c.flushed(time.Second)
	for range 3 {
		c.consume(batch)
	}
	after := c.flushed(time.Second)
	require.Len(t, after, len(before))
	for key, p := range after {
		assert.InDelta(t, before[key].value, p.value, 0, key)
		assert.Equal(t, before[key].count, p.count, key)
	}
	metadatatest.AssertEqualConnectorTrainMetricsDuplicateSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 3 * 9}}, metricdatatest.IgnoreTimestamp())
}

func TestGaugeIsNotSetBack(t *testing.T) {
	const key = prefix + "ml.train.flop.utilization|[trainbridge.source=megatron]"
	mfu := func(x float64) map[string]float64 { return map[string]float64{spans.AttrMFU: x} }
	c := newBed(t)
	c.consume(oneStep(1, 100, mfu(0.4)))
	c.consume(oneStep(2, 90, mfu(0.2)))
	assert.InDelta(t, 0.4, c.flushed(time.Second)[key].value, 0, "older")
	c.consume(oneStep(3, 100, mfu(0.5)))
	assert.InDelta(t, 0.5, c.flushed(time.Second)[key].value, 0, "as old: the one that came last")
	c.consume(oneStep(4, 110, nil))
	assert.InDelta(t, 0.5, c.flushed(time.Second)[key].value, 0, "a step without one")

	// A record by a clock a year ahead does not hold the gauge for ever.
	c.consume(oneStep(5, 365*86_400, mfu(0.9)))
	assert.InDelta(t, 0.9, c.flushed(time.Second)[key].value, 0)
	for i := range 130 {
		c.consume(oneStep(10+i, 200+int64(i), mfu(0.6)))
		c.flushed(15 * time.Second)
	}
	assert.InDelta(t, 0.6, c.flushed(time.Second)[key].value, 0)
}

type stepTest struct {
	change  func(pcommon.Map, ptrace.Span)
	steps   float64 // −1: no series
	timed   uint64
	samples float64 // −1: no series
	invalid int64
}

func checkSteps(t *testing.T, cases map[string]stepTest) {
	t.Helper()
	const labels = "[trainbridge.source=megatron]"
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			got := c.changed(oneStep(1, 10, map[string]float64{spans.AttrStepDuration: 0.5, spans.AttrSamples: 8}), tt.change)
			assert.InDelta(t, tt.steps, got[prefix+"ml.train.steps|"+labels].value, 0)
			assert.Equal(t, tt.timed, got[prefix+"ml.train.step.duration|"+labels].count)
			p, ok := got[prefix+"ml.train.samples|"+labels]
			if assert.Equal(t, tt.samples >= 0, ok) && ok {
				assert.InDelta(t, tt.samples, p.value, 0)
			}
			takeAccount(got) // no part of this test
			series := 1
			if tt.timed > 0 {
				series++
			}
			if ok {
				series++
			}
			assert.Len(t, got, series)
			if tt.invalid > 0 {
				metadatatest.AssertEqualConnectorTrainMetricsInvalidSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: tt.invalid}}, metricdatatest.IgnoreTimestamp())
			}
		})
	}
}

func TestStepValues(t *testing.T) {
	checkSteps(t, map[string]stepTest{
		"good": {func(pcommon.Map, ptrace.Span) {}, 1, 1, 8, 0},
		"integers": {func(m pcommon.Map, _ ptrace.Span) {
			m.PutInt(spans.AttrStepDuration, 3)
			m.PutInt(spans.AttrSamples, 9)
		}, 1, 1, 9, 0},
		"no steps covered":            {func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrStepsCovered, 0) }, 0, 1, 8, 0},
		"steps covered as a double":   {func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrStepsCovered, 5) }, 5, 1, 8, 0},
		"negative steps covered":      {func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrStepsCovered, -5) }, 1, 1, 8, 1},
		"negative samples":            {func(m pcommon.Map, _ ptrace.Span) { m.PutInt(spans.AttrSamples, -5) }, 1, 1, -1, 1},
		"more samples than there are": {func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrSamples, 1e300) }, 1, 1, -1, 1},
		"negative duration":           {func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrStepDuration, -1) }, 1, 0, 8, 1},
		"duration of centuries":       {func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrStepDuration, 1e12) }, 1, 0, 8, 1},
		"several of them are one span": {func(m pcommon.Map, _ ptrace.Span) {
			m.PutInt(spans.AttrStepDuration, -1)
			m.PutInt(spans.AttrSamples, -1)
		}, 1, 0, -1, 1},
		"NaN as text":           {func(m pcommon.Map, _ ptrace.Span) { m.PutStr(spans.AttrStepDuration, "NaN") }, 1, 0, 8, 0},
		"infinite":              {func(m pcommon.Map, _ ptrace.Span) { m.PutDouble(spans.AttrStepDuration, math.Inf(1)) }, 1, 0, 8, 0},
		"the span has no start": {func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(0) }, 1, 1, 8, 0},
		"other types": {func(m pcommon.Map, _ ptrace.Span) {
			m.PutStr(spans.AttrRank, "0")
			m.PutStr(spans.AttrIncomplete, "true")
			m.PutStr(spans.AttrVerdict, "bad")
			m.PutEmptyMap(spans.AttrMFU)
			m.PutStr(spans.AttrTokens, "12")
		}, 1, 1, 8, 0},
	})
}

func TestInvalidParts(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	addPart(b, jobA, 1, "verl", "gen", -1, -1)
	addPart(b, jobA, 2, "verl", "gen", -1, 1).SetStartTimestamp(0)
	addPart(b, jobA, 3, "verl", "", -1, 1)
	addPart(b, jobA, 4, "verl", "gen", -1, 1).Attributes().PutInt(spans.AttrStage, 7)
	c.consume(b.Traces())
	assert.Empty(t, c.flushed(time.Second))
	metadatatest.AssertEqualConnectorTrainMetricsInvalidSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 2}}, metricdatatest.IgnoreTimestamp())
}

// TestStepsWithoutLabels: a verdict about a step without source and rank, and a verdict about a client operation without a
// function, are the same series.
func TestStepsWithoutLabels(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	judged(add(b, jobA, 1, "", spans.StageClientGet, 1e6), "v")
	judged(addStepSpan(b, jobA, 2, "", -1, 1, nil), "v")
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	assert.InDelta(t, 2.0, got[prefix+"trainbridge.verdicts|[trainbridge.verdict.name=v]"].value, 0)
	assert.InDelta(t, 1.0, got[prefix+"ml.train.steps|[]"].value, 0)
	assert.Equal(t, uint64(1), got[prefix+"tq.stage.duration|[tq.stage=client_get]"].count)
	assert.Equal(t, uint64(1), got[prefix+"ml.train.step.duration|[]"].count, "the span's length")
	assert.Equal(t, map[string]float64{"run-1 step": 1, "run-1 ": 1}, takeAccount(got))
	assert.Len(t, got, 4)
}

func TestStepExpiry(t *testing.T) {
	c := newBed(t)
	c.consume(stepBatch())
	n := len(c.flushed(15 * time.Second))
	got := c.flushed(30*time.Minute + 2*time.Second)
	require.Len(t, got, n)
	for key, p := range got {
		assert.True(t, p.ended, key)
	}
	assert.Empty(t, c.flushed(time.Second))
	assert.Empty(t, c.store.resources)
	assert.Empty(t, c.store.byKey)
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)

	ended := pcommon.NewTimestampFromTime(c.clock)
	c.consume(oneStep(100, 1, nil))
	p := c.flushed(time.Second)[prefix+"ml.train.steps|[trainbridge.source=megatron]"]
	assert.InDelta(t, 1.0, p.value, 0, "it begins again")
	assert.Equal(t, ended, p.start)
}

// TestRareRecords: the series of a log with one record in 1000 s live on in between, and counters continue.
func TestRareRecords(t *testing.T) {
	const steps, gen = prefix + "ml.train.steps|[trainbridge.source=verl]", prefix + "ml.train.stage.duration|[ml.train.stage=gen trainbridge.source=verl]"
	c := newBed(t)
	for i := range 5 {
		b := spans.NewBatch("test", "")
		s := addStepSpan(b, jobA, 2*i+1, "verl", -1, int64(1000*(i+1)), nil)
		s.SetStartTimestamp(s.EndTimestamp() - pcommon.Timestamp(1000*second))
		s.Attributes().PutInt(spans.AttrStepsCovered, 100)
		addPart(b, jobA, 2*i+2, "verl", "gen", -1, 300*second)
		c.consume(b.Traces())
		for range 99 {
			got := c.flushed(10 * time.Second)
			require.InDelta(t, float64(100*(i+1)), got[steps].value, 0)
			require.Equal(t, uint64(i+1), got[gen].count)
			require.False(t, got[steps].ended || got[gen].ended)
		}
		c.clock = c.clock.Add(10 * time.Second)
	}
	got := c.flushed(2990 * time.Second) // 1000 s after the record; the series end after 4 × 1000
	require.False(t, got[steps].ended || got[gen].ended)
	got = c.flushed(10 * time.Second)
	require.True(t, got[steps].ended && got[gen].ended)
}

func TestStepOverflow(t *testing.T) {
	const limit, ranks = 1, 10
	c := newBed(t, tight)
	b := spans.NewBatch("test", "")
	for i := range ranks {
		addStepSpan(b, jobA, 100*i+1, "megatron", int64(i), 1, map[string]float64{spans.AttrStepDuration: 1, spans.AttrTokens: 10})
		for p := range 3 {
			addPart(b, jobA, 100*i+2+p, "megatron", fmt.Sprint("p", p), int64(i), second)
		}
	}
	c.consume(b.Traces())
	series, counted := map[string]int{}, map[string]float64{}
	for key, p := range c.flushed(time.Second) {
		parts := splitKey(key)
		counted[parts[2]] += float64(p.count) + p.value
		if parts[3] == "["+attrOverflow+"=true]" {
			assert.Equal(t, "|", parts[0]+"|"+parts[1])
		} else {
			series[parts[2]]++
		}
	}
	assert.Equal(t, map[string]int{
		"ml.train.steps": limit, "ml.train.tokens": limit, "ml.train.step.duration": limit, "ml.train.stage.duration": limit, "ml.run.time": 1, "ml.train.goodput": 1,
	}, series)
	assert.Equal(t, map[string]float64{
		"ml.train.steps": ranks, "ml.train.tokens": 10 * ranks, "ml.train.step.duration": ranks, "ml.train.stage.duration": 3 * ranks,
		"ml.run.time": 1, "ml.train.goodput": 1, // ten ranks log the same step
	}, counted, "nothing is lost by it")
	// Nine ranks, and two parts of the first rank's step, found no room.
	metadatatest.AssertEqualConnectorTrainMetricsOverflowSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: (ranks-limit)*4 + 2}},
		metricdatatest.IgnoreTimestamp())

	c.flushed(time.Hour)
	c.consume(oneStep(1000, 1, nil))
	assert.Contains(t, c.flushed(time.Second), prefix+"ml.train.steps|[trainbridge.source=megatron]", "room that became free is used")
}
