package trainmetricsconnector

import (
	"fmt"
	"maps"
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

// addCollective appends the root of a collective of four ranks as nccl writes one, which ends ns after base.
func addCollective(b *spans.Batch, res spans.Resource, id int, operation, algorithm string, ns int64, numbers map[string]float64) ptrace.Span {
	s := b.Add(res, spans.Span{
		Trace: pcommon.TraceID{4}, ID: spanID(id), Name: operation, Kind: ptrace.SpanKindInternal, Start: base, End: base + ns,
		Attributes: 24,
	})
	a := s.Attributes()
	a.PutInt(spans.AttrNCCLRanks, 4)
	a.PutStr(spans.AttrNCCLOperation, operation)
	a.PutStr(spans.AttrNCCLCommID, "0x9e")
	a.PutStr(spans.AttrNCCLCommName, "DP")
	a.PutInt(spans.AttrNCCLCommSize, 4)
	a.PutInt(spans.AttrNCCLSequence, int64(id))
	if algorithm != "" {
		a.PutStr(spans.AttrNCCLAlgorithm, algorithm)
	}
	for n, v := range numbers {
		switch n {
		case spans.AttrNCCLDataSize, spans.AttrNCCLErrors, spans.AttrNCCLRetries, spans.AttrNCCLRanksMissingCount:
			a.PutInt(n, int64(v))
		default:
			a.PutDouble(n, v)
		}
	}
	return s
}

// addBelow appends a span below a collective, with attributes of a root.
func addBelow(b *spans.Batch, res spans.Resource, id int, name string) {
	s := b.Add(res, spans.Span{
		Trace: pcommon.TraceID{4}, ID: spanID(id), Parent: spanID(1), Name: name, Kind: ptrace.SpanKindInternal, Start: base,
		End: base + 1e6, Attributes: 10,
	})
	a := s.Attributes()
	a.PutInt(spans.AttrNCCLCommRank, 3)
	a.PutInt(spans.AttrRank, 3)
	a.PutDouble(spans.AttrNCCLLate, 0.00001)
	a.PutDouble(spans.AttrNCCLBandwidthBus, 264.2e9)
	a.PutDouble(spans.AttrNCCLBandwidthBusReported, 264.2e9)
	a.PutStr(spans.AttrNCCLTiming, "kernel_gpu")
	a.PutInt(spans.AttrNCCLChannels, 16)
	a.PutInt(spans.AttrNCCLErrors, 1)
	a.PutBool(spans.AttrIncomplete, true)
}

var ncclChildren = []string{
	spans.NCCLRankName(11, "gpu-node-1"), spans.SpanNCCLRank, spans.SpanNCCLLate, spans.SpanNCCLWait, spans.SpanNCCLTransfer, spans.SpanNCCLChannel,
	spans.SpanNCCLProxyOp, spans.SpanNCCLProxyStep,
}

// ncclLabels are the labels of the collectives of addCollective.
func ncclLabels(operation, algorithm string) string {
	if algorithm != "" {
		algorithm = "nccl.algorithm=" + algorithm + " "
	}
	return "[" + algorithm + "nccl.comm.id=0x9e nccl.comm.name=DP nccl.comm.size=4 nccl.operation=" + operation + "]"
}

func cut(s ptrace.Span, reason string) { spans.PutIncomplete(s.Attributes(), reason) }

// collectiveBatch has every value of a collective.
func collectiveBatch() ptrace.Traces {
	b := spans.NewBatch("test", "")
	addCollective(b, resourceA, 1, "AllReduce", "RING", 3_000_000, map[string]float64{
		spans.AttrNCCLDuration: 0.0029, spans.AttrNCCLTransferDuration: 0.002, spans.AttrNCCLLateMax: 0.0009, spans.AttrNCCLLateCost: 0.0025,
		spans.AttrNCCLDataSize: 1 << 28, spans.AttrNCCLBandwidthAlgorithm: 134e9, spans.AttrNCCLBandwidthBus: 201e9, spans.AttrNCCLErrors: 0,
		spans.AttrNCCLRetries: 2,
	})
	for i, name := range ncclChildren {
		addBelow(b, resourceA, 20+i, name)
	}
	// The last collective to end: the gauge has its bandwidth.
	judged(addCollective(b, resourceA, 2, "AllReduce", "RING", 9_000_000, map[string]float64{
		spans.AttrNCCLDuration: 0.00002, spans.AttrNCCLLateMax: 0.012, spans.AttrNCCLLateCost: 0.0365, spans.AttrNCCLDataSize: 1 << 20,
		spans.AttrNCCLBandwidthAlgorithm: 50e9, spans.AttrNCCLBandwidthBus: 75e9, spans.AttrNCCLBandwidthBusMean: 60e9, spans.AttrNCCLErrors: 1,
		spans.AttrNCCLRetries: 3,
	}), spans.VerdictNCCLLate, spans.VerdictNCCLErrors)
	addCollective(b, resourceA, 3, "AllReduce", "RING", 6_000_000, map[string]float64{spans.AttrNCCLBandwidthAlgorithm: 1, spans.AttrNCCLBandwidthBus: 1})
	// Of an incomplete collective (rank 3 is missing) only errors, retries and missing ranks count.
	gap := addCollective(b, resourceA, 4, "AllReduce", "RING", 20_000_000, map[string]float64{
		spans.AttrNCCLDuration: 0.9, spans.AttrNCCLLateMax: 0.9, spans.AttrNCCLLateCost: 0.9, spans.AttrNCCLDataSize: 1 << 30, spans.AttrNCCLBandwidthBus: 2,
		spans.AttrNCCLRanksMissingCount: 1, spans.AttrNCCLErrors: 4, spans.AttrNCCLRetries: 5,
	})
	cut(gap, spans.NCCLIncompleteGap)
	judged(gap, spans.VerdictNCCLRankMissing)
	warned(gap, spans.VerdictNCCLRankMissing, spans.CauseSequenceGap, "")
	// A log without algorithm and bandwidth.
	hang := addCollective(b, resourceA, 5, "AllGather", "", 300e9, map[string]float64{spans.AttrNCCLRanksMissingCount: 2})
	cut(hang, spans.NCCLIncompleteTimeout)
	judged(hang, spans.VerdictNCCLHang)
	// A Send without its Recv.
	send := b.Add(resourceA, spans.Span{Trace: pcommon.TraceID{4}, ID: spanID(6), Name: "Send", Start: base, End: base + 1e6})
	send.Attributes().PutInt(spans.AttrNCCLRanks, 1)
	send.Attributes().PutInt(spans.AttrNCCLCommRank, 3)
	send.Attributes().PutInt(spans.AttrNCCLDataSize, 4096)
	send.Attributes().PutDouble(spans.AttrNCCLDuration, 0.001)
	return b.Traces()
}

func TestEveryCollectiveMetric(t *testing.T) {
	c := newBed(t)
	start := pcommon.NewTimestampFromTime(c.clock)
	c.consume(collectiveBatch())
	got := c.flushed(15 * time.Second)
	ring, gather, send := ncclLabels("AllReduce", "RING"), ncclLabels("AllGather", ""), "[nccl.operation=Send]"
	with := func(labels, more string) string { return labels[:len(labels)-1] + " " + more + "]" } // more labels sort behind the usual ones
	kind := func(kind, size string) string {
		return "[nccl.bandwidth.kind=" + kind + size + " nccl.operation=AllReduce]"
	}
	const small, large = " nccl.data.size.class=1MiB", " nccl.data.size.class=256MiB"
	ids := func(ids ...int) (out []pcommon.SpanID) {
		for _, id := range ids {
			out = append(out, spanID(id))
		}
		return out
	}
	for key, want := range map[string]wantPoint{
		"nccl.collective.duration|" + ring: {2, 0.00292, ids(1, 2)},
		"nccl.collective.duration|" + send: {1, 0.001, ids(6)},
		// The largest value is the latest too.
		"nccl.collective.late|" + ring:                           {2, 0.0129, ids(2)},
		"nccl.collective.late.cost|" + ring:                      {0.039, 0, ids(2)},
		"nccl.collective.io|" + ring:                             {1<<28 + 1<<20, 0, ids(1, 2)},
		"nccl.collective.io|" + send:                             {4096, 0, ids(6)},
		"nccl.collective.bandwidth|" + kind("algbw", large):      {1, 134e9, ids(1)},
		"nccl.collective.bandwidth|" + kind("busbw", large):      {1, 201e9, ids(1)},
		"nccl.collective.bandwidth|" + kind("algbw", small):      {1, 50e9, ids(2)},
		"nccl.collective.bandwidth|" + kind("busbw", small):      {1, 75e9, ids(2)},
		"nccl.collective.bandwidth|" + kind("busbw_mean", small): {1, 60e9, ids(2)},
		"nccl.collective.bandwidth|" + kind("algbw", ""):         {1, 1, ids(3)},
		"nccl.collective.bandwidth|" + kind("busbw", ""):         {1, 1, ids(3)},
		"nccl.collective.errors|" + ring:                         {5, 0, ids(4)},
		"nccl.collective.errors|" + gather:                       {0, 0, nil},
		"nccl.collective.errors|" + send:                         {0, 0, nil},
		"nccl.collective.retries|" + ring:                        {10, 0, ids(4)},
		"nccl.collective.retries|" + gather:                      {0, 0, nil},
		"nccl.collective.retries|" + send:                        {0, 0, nil},
		"nccl.collective.missing|" + ring:                        {1, 0, ids(4)},
		"nccl.collective.missing|" + gather:                      {2, 0, ids(5)},
		"nccl.collective.missing|" + send:                        {0, 0, nil},
		"trainbridge.incomplete.spans|" + ring:                   {1, 0, ids(4)},
		"trainbridge.incomplete.spans|" + gather:                 {1, 0, ids(5)},
		"trainbridge.verdicts|" + with(ring, "trainbridge.verdict.name=nccl_late trainbridge.verdict.severity=warning"):                                                {1, 0, ids(2)},
		"trainbridge.verdicts|" + with(ring, "trainbridge.verdict.name=nccl_errors trainbridge.verdict.severity=bad"):                                                  {1, 0, ids(2)},
		"trainbridge.verdicts|" + with(ring, "trainbridge.verdict.cause=sequence_gap trainbridge.verdict.name=nccl_rank_missing trainbridge.verdict.severity=warning"): {1, 0, ids(4)},
		"trainbridge.verdicts|" + with(gather, "trainbridge.verdict.name=nccl_hang trainbridge.verdict.severity=bad"):                                                  {1, 0, ids(5)},
	} {
		takePoint(t, got, key, start, want)
	}
	assert.Empty(t, got)
}

func TestCollectiveBuckets(t *testing.T) {
	c := newBed(t)
	c.consume(collectiveBatch())
	got, ring := c.flushed(15*time.Second), ncclLabels("AllReduce", "RING")
	durations, late := got[prefix+"nccl.collective.duration|"+ring], got[prefix+"nccl.collective.late|"+ring]
	assert.Equal(t, uint64(1), durations.in(20e-6))
	assert.Equal(t, uint64(1), durations.in(0.0029))
	assert.Equal(t, []float64{0.0029, 0.00002}, durations.exemplars)
	assert.Equal(t, uint64(1), late.in(0.0009))
	assert.Equal(t, uint64(1), late.in(0.012))
}

// TestCollectivesAgainstOracle sends random collectives with the spans below them in random batches, some twice, and sums the input independently.
func TestCollectivesAgainstOracle(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 13))
		c := newBed(t)
		counts, totals, values := map[string]uint64{}, map[string]int64{}, map[string]float64{}
		last := c.consumeRandom(rng, 60, func(b *spans.Batch, id int) {
			res, end := resourceA, 1+rng.Int64N(1e9)
			res.RunID = fmt.Sprint("run-", rng.IntN(2))
			if rng.IntN(3) > 0 {
				addBelow(b, res, id, ncclChildren[rng.IntN(len(ncclChildren))])
				return
			}
			operation, algorithm := []string{"AllReduce", "AllGather", "Broadcast"}[rng.IntN(3)], []string{"", "RING", "TREE"}[rng.IntN(3)]
			labels := ncclLabels(operation, algorithm)
			key := func(metric string) string { return "verl|" + res.RunID + "|" + metric + "|" + labels }
			// Whole ns and µs: the sums are exact.
			duration, late, size := rng.Int64N(1<<rng.IntN(40)), rng.Int64N(1<<rng.IntN(34)), rng.Int64N(1<<rng.IntN(36))
			errors, retries, missing := rng.Int64N(3), rng.Int64N(3), int64(0)
			bus := rng.Int64N(1e12)
			s := addCollective(b, res, id, operation, algorithm, end, map[string]float64{
				spans.AttrNCCLDuration: float64(duration) / 1e9, spans.AttrNCCLLateMax: float64(late) / 1e9, spans.AttrNCCLLateCost: float64(late) / 64,
				spans.AttrNCCLDataSize: float64(size), spans.AttrNCCLBandwidthBus: float64(bus), spans.AttrNCCLErrors: float64(errors),
				spans.AttrNCCLRetries: float64(retries),
			})
			if rng.IntN(6) == 0 {
				missing = 1 + rng.Int64N(63)
				s.Attributes().PutInt(spans.AttrNCCLRanksMissingCount, missing)
				cut(s, spans.NCCLIncompleteEnd)
				values[key("trainbridge.incomplete.spans")]++
			} else {
				counts[key("nccl.collective.duration")]++
				totals[key("nccl.collective.duration")] += duration
				counts[key("nccl.collective.late")]++
				totals[key("nccl.collective.late")] += late
				values[key("nccl.collective.late.cost")] += float64(late) / 64
				values[key("nccl.collective.io")] += float64(size)
				k := "verl|" + res.RunID + "|nccl.collective.bandwidth|" + bandwidthLabels(operation, size)
				counts[k]++
				totals[k] += bus
			}
			values[key("nccl.collective.errors")] += float64(errors)
			values[key("nccl.collective.retries")] += float64(retries)
			values[key("nccl.collective.missing")] += float64(missing)
			if rng.IntN(5) == 0 {
				judged(s, "v")
				labels = labels[:len(labels)-1] + " trainbridge.verdict.name=v]"
				values[key("trainbridge.verdicts")]++
			}
		})
		require.Len(t, last, len(counts)+len(values))
		for key, want := range values {
			assert.InDelta(t, want, last[key].value, 0, key)
		}
		checkCounts(t, last, counts, totals, func(metric string) float64 {
			if metric == "nccl.collective.bandwidth" {
				return 1
			}
			return 1e9
		})
	}
}

// bandwidthLabels are the labels of the bus bandwidth.
func bandwidthLabels(operation string, size int64) string {
	class := "more"
	for _, c := range []struct {
		name string
		most int64
	}{{"4GiB", 4 << 30}, {"256MiB", 256 << 20}, {"16MiB", 16 << 20}, {"1MiB", 1 << 20}, {"64KiB", 64 << 10}} {
		if size <= c.most {
			class = c.name
		}
	}
	return "[nccl.bandwidth.kind=busbw nccl.data.size.class=" + class + " nccl.operation=" + operation + "]"
}

func TestCollectiveRetryNeverCountsTwice(t *testing.T) {
	c := newBed(t)
	batch := collectiveBatch()
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
	metadatatest.AssertEqualConnectorTrainMetricsDuplicateSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 3 * 6}}, metricdatatest.IgnoreTimestamp())
}

// aCollective has the numbers from the spans of TestCollectiveValues.
var aCollective = map[string]float64{
	"nccl.collective.duration": 1, "nccl.collective.late": 1, "nccl.collective.late.cost": 0.5, "nccl.collective.io": 1 << 20, "nccl.collective.bandwidth": 1,
	"nccl.collective.errors": 1, "nccl.collective.retries": 2, "nccl.collective.missing": 3,
}

// collectiveBut returns all numbers with some left out, or with different values.
func collectiveBut(change map[string]float64) map[string]float64 {
	out := maps.Clone(aCollective)
	for name, x := range change {
		if delete(out, name); x >= 0 {
			out[name] = x
		}
	}
	return out
}

func setAttr(name string, x any) func(pcommon.Map, ptrace.Span) {
	return func(m pcommon.Map, _ ptrace.Span) {
		v, _ := m.GetOrPutEmpty(name)
		if err := v.FromRaw(x); err != nil {
			panic(err)
		}
	}
}

type collectiveTest struct {
	change  func(pcommon.Map, ptrace.Span)
	want    map[string]float64 // nil: no series at all
	labels  string
	invalid int64
}

func checkCollectives(t *testing.T, cases map[string]collectiveTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			b := spans.NewBatch("test", "")
			s := b.Add(resourceA, spans.Span{Trace: pcommon.TraceID{4}, ID: spanID(1), Name: "AllReduce", Start: base, End: base + 1e9})
			a := s.Attributes()
			a.PutStr(spans.AttrNCCLOperation, "AllReduce")
			for name, x := range map[string]float64{
				spans.AttrNCCLDuration: 0.5, spans.AttrNCCLLateMax: 0.25, spans.AttrNCCLLateCost: 0.5, spans.AttrNCCLDataSize: 1 << 20, spans.AttrNCCLBandwidthBus: 3e9,
				spans.AttrNCCLErrors: 1, spans.AttrNCCLRetries: 2, spans.AttrNCCLRanksMissingCount: 3,
			} {
				a.PutDouble(name, x)
			}
			a.PutInt(spans.AttrNCCLRanks, 4)
			got, labels := map[string]float64{}, map[string]bool{}
			for key, p := range c.changed(b.Traces(), tt.change) {
				parts := splitKey(key)
				got[parts[2]] = float64(p.count) + p.value
				switch parts[2] {
				case "nccl.collective.bandwidth", "trainbridge.verdicts": // have one more label
				default:
					labels[parts[3]] = true
				}
			}
			if tt.want == nil {
				assert.Empty(t, got)
			} else {
				assert.Equal(t, tt.want, got)
				assert.Equal(t, map[string]bool{tt.labels: true}, labels)
			}
			assertInvalid(t, c, tt.invalid)
		})
	}
}

func TestCollectiveValues(t *testing.T) {
	const (
		duration, late, cost = "nccl.collective.duration", "nccl.collective.late", "nccl.collective.late.cost"
		io, bandwidth        = "nccl.collective.io", "nccl.collective.bandwidth"
	)
	const plain = "[nccl.operation=AllReduce]"
	nan, inf := math.NaN(), math.Inf(1)
	checkCollectives(t, map[string]collectiveTest{
		"good": {func(pcommon.Map, ptrace.Span) {}, aCollective, plain, 0},
		"incomplete": {setAttr(spans.AttrIncomplete, true), collectiveBut(map[string]float64{
			duration: -1, late: -1, cost: -1, io: -1, bandwidth: -1,
			"trainbridge.incomplete.spans": 1,
		}), plain, 0},
		"incomplete as text":    {setAttr(spans.AttrIncomplete, "true"), aCollective, plain, 0},
		"of no time":            {setAttr(spans.AttrNCCLDuration, 0.0), aCollective, plain, 0},
		"in whole seconds":      {setAttr(spans.AttrNCCLDuration, int64(2)), aCollective, plain, 0},
		"duration negative":     {setAttr(spans.AttrNCCLDuration, -1e-9), collectiveBut(map[string]float64{duration: -1}), plain, 1},
		"duration of two years": {setAttr(spans.AttrNCCLDuration, 6.4e7), collectiveBut(map[string]float64{duration: -1}), plain, 1},
		"duration NaN":          {setAttr(spans.AttrNCCLDuration, nan), collectiveBut(map[string]float64{duration: -1}), plain, 0},
		"duration infinite":     {setAttr(spans.AttrNCCLDuration, inf), collectiveBut(map[string]float64{duration: -1}), plain, 0},
		"duration as text":      {setAttr(spans.AttrNCCLDuration, "1"), collectiveBut(map[string]float64{duration: -1}), plain, 0},
		"early":                 {setAttr(spans.AttrNCCLLateMax, -0.1), collectiveBut(map[string]float64{late: -1}), plain, 1},
		"not late":              {setAttr(spans.AttrNCCLLateMax, 0.0), aCollective, plain, 0},
		"cost negative":         {setAttr(spans.AttrNCCLLateCost, -0.1), collectiveBut(map[string]float64{cost: -1}), plain, 1},
		"size negative":         {setAttr(spans.AttrNCCLDataSize, int64(-1)), collectiveBut(map[string]float64{io: -1}), plain, 1},
		"size of everything":    {setAttr(spans.AttrNCCLDataSize, 1e300), collectiveBut(map[string]float64{io: -1}), plain, 1},
		"size as a double":      {setAttr(spans.AttrNCCLDataSize, 2.5), collectiveBut(map[string]float64{io: 2.5}), plain, 0},
		"bandwidth infinite":    {setAttr(spans.AttrNCCLBandwidthBus, inf), collectiveBut(map[string]float64{bandwidth: -1}), plain, 0},
		"errors negative":       {setAttr(spans.AttrNCCLErrors, int64(-1)), collectiveBut(map[string]float64{"nccl.collective.errors": 0}), plain, 1},
		"errors as text":        {setAttr(spans.AttrNCCLErrors, "1"), collectiveBut(map[string]float64{"nccl.collective.errors": 0}), plain, 0},
		"retries NaN":           {setAttr(spans.AttrNCCLRetries, nan), collectiveBut(map[string]float64{"nccl.collective.retries": 0}), plain, 0},
		"verdicts":              {func(_ pcommon.Map, s ptrace.Span) { judged(s, "v") }, collectiveBut(map[string]float64{"trainbridge.verdicts": 1}), plain, 0},
		"verdict as text":       {setAttr(spans.AttrVerdict, "v"), aCollective, plain, 0},
		"its span has no start": {func(_ pcommon.Map, s ptrace.Span) { s.SetStartTimestamp(0) }, aCollective, plain, 0},
		"its span ends early":   {func(_ pcommon.Map, s ptrace.Span) { s.SetEndTimestamp(s.StartTimestamp() - 1) }, aCollective, plain, 0},
		"everything is bad, once": {func(m pcommon.Map, _ ptrace.Span) {
			m.PutInt(spans.AttrNCCLErrors, -1)
			m.PutInt(spans.AttrNCCLRetries, -1)
		}, collectiveBut(map[string]float64{"nccl.collective.errors": 0, "nccl.collective.retries": 0}), plain, 1},
	})
}

func TestCollectiveLabels(t *testing.T) {
	const plain = "[nccl.operation=AllReduce]"
	checkCollectives(t, map[string]collectiveTest{
		"labels of other types": {func(m pcommon.Map, _ ptrace.Span) {
			m.PutInt(spans.AttrNCCLOperation, 1) // then the span's name is the operation
			m.PutBool(spans.AttrNCCLAlgorithm, true)
			m.PutInt(spans.AttrNCCLCommID, 0x9e)
			m.PutEmptyMap(spans.AttrNCCLCommName)
			m.PutStr(spans.AttrNCCLCommSize, "64")
		}, aCollective, plain, 0},
		"no name at all":         {func(m pcommon.Map, s ptrace.Span) { m.Remove(spans.AttrNCCLOperation); s.SetName("") }, aCollective, "[nccl.operation=unknown]", 0},
		"size of a communicator": {setAttr(spans.AttrNCCLCommSize, int64(8)), aCollective, "[nccl.comm.size=8 nccl.operation=AllReduce]", 0},
		"negative":               {setAttr(spans.AttrNCCLCommSize, int64(-8)), aCollective, plain, 0},
		"an algorithm":           {setAttr(spans.AttrNCCLAlgorithm, "NVLS"), aCollective, "[nccl.algorithm=NVLS nccl.operation=AllReduce]", 0},
		"with a stage":           {setAttr(spans.AttrTQStage, spans.StageFunction), aCollective, plain, 0},
		"another's name":         {func(_ pcommon.Map, s ptrace.Span) { s.SetName("rpc") }, aCollective, plain, 0},
	})
}

func TestNoCollective(t *testing.T) {
	checkCollectives(t, map[string]collectiveTest{
		"no ranks":       {func(m pcommon.Map, _ ptrace.Span) { m.Remove(spans.AttrNCCLRanks) }, nil, "", 0},
		"ranks as text":  {setAttr(spans.AttrNCCLRanks, "4"), nil, "", 0},
		"a rank":         {func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanNCCLRank) }, nil, "", 0},
		"a channel":      {func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanNCCLChannel) }, nil, "", 0},
		"a proxy":        {func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanNCCLProxyOp) }, nil, "", 0},
		"a proxy's step": {func(_ pcommon.Map, s ptrace.Span) { s.SetName(spans.SpanNCCLProxyStep) }, nil, "", 0},
	})
}

// TestCollectivesBesideTheOthers: a collective and spans without labels of their own, of one resource, do not share series.
func TestCollectivesBesideTheOthers(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	addCollective(b, jobA, 1, "AllReduce", "RING", 1e6, map[string]float64{spans.AttrNCCLDuration: 0.001})
	add(b, jobA, 2, "AllReduce", spans.StageFunction, 1e6) // not the name of a function
	addBelow(b, jobA, 3, spans.SpanNCCLRank)
	addStepSpan(b, jobA, 4, "", -1, 1, map[string]float64{spans.AttrStepDuration: 1})
	addCall(b, jobA, 5, "AllReduce", "tcp", 1e6, -1, -1)
	for i, add := range []func() ptrace.Span{
		func() ptrace.Span { return add(b, jobA, 10, "", spans.StageFunction, 1) },
		func() ptrace.Span { return addStepSpan(b, jobA, 11, "", -1, 1, nil) },
		func() ptrace.Span { return addGroup(b, jobA, 12, spans.SpanRPCPass, 1, nil) },
		func() ptrace.Span {
			s := b.Add(jobA, spans.Span{Trace: pcommon.TraceID{4}, ID: spanID(13), Start: base, End: base + 1})
			s.Attributes().PutInt(spans.AttrNCCLRanks, 1)
			return s
		},
	} {
		s := add()
		s.Attributes().PutBool(spans.AttrIncomplete, true)
		judged(s, fmt.Sprint("v", i%2))
	}
	c.consume(b.Traces())
	got := c.flushed(time.Second)
	assert.Equal(t, map[string]float64{"run-1 step": 1, "run-1 ": 1}, takeAccount(got))
	for key, want := range map[string]float64{
		"tq.function.duration|[tq.function=AllReduce]": 1,
		"ml.train.step.duration|[]":                    1,
		"ml.train.steps|[]":                            1,
		"rpc.client.call.duration|[network.transport=tcp rpc.method=AllReduce rpc.system.name=zeromq]": 1,
		"nccl.collective.duration|" + ncclLabels("AllReduce", "RING"):                                  1,
		"nccl.collective.errors|" + ncclLabels("AllReduce", "RING"):                                    0,
		"nccl.collective.retries|" + ncclLabels("AllReduce", "RING"):                                   0,
		"nccl.collective.missing|" + ncclLabels("AllReduce", "RING"):                                   0,
		"nccl.collective.errors|[nccl.operation=unknown]":                                              0,
		"nccl.collective.retries|[nccl.operation=unknown]":                                             0,
		"nccl.collective.missing|[nccl.operation=unknown]":                                             0,
		"trainbridge.incomplete.spans|[tq.stage=function]":                                             1,
		"trainbridge.incomplete.spans|[]":                                                              1,
		"trainbridge.incomplete.spans|[rpc.system.name=zeromq]":                                        1,
		"trainbridge.incomplete.spans|[nccl.operation=unknown]":                                        1,
		"trainbridge.verdicts|[trainbridge.verdict.name=v0]":                                           1,
		"trainbridge.verdicts|[trainbridge.verdict.name=v1]":                                           1,
		"trainbridge.verdicts|[rpc.system.name=zeromq trainbridge.verdict.name=v0]":                    1,
		"trainbridge.verdicts|[nccl.operation=unknown trainbridge.verdict.name=v1]":                    1,
	} {
		p, ok := got[prefix+key]
		if assert.True(t, ok, key) {
			assert.InDelta(t, want, p.value+float64(p.count), 0, key)
			delete(got, prefix+key)
		}
	}
	assert.Empty(t, got)
}

func TestCollectiveExpiry(t *testing.T) {
	c := newBed(t)
	c.consume(collectiveBatch())
	n := len(c.flushed(15 * time.Second))
	got := c.flushed(c.cfg.MetricsExpiration)
	require.Len(t, got, n)
	for key, p := range got {
		assert.True(t, p.ended, key)
	}
	assert.Empty(t, c.flushed(time.Second))
	assert.Empty(t, c.store.resources)
	assert.Empty(t, c.store.byKey)
	assert.Equal(t, newRoom(c.cfg.CardinalityLimit, c.cfg.Histogram.Type), c.store.room)

	ended := pcommon.NewTimestampFromTime(c.clock)
	b := spans.NewBatch("test", "")
	addCollective(b, resourceA, 100, "AllReduce", "RING", 1, map[string]float64{spans.AttrNCCLDataSize: 7})
	c.consume(b.Traces())
	p := c.flushed(time.Second)[prefix+"nccl.collective.io|"+ncclLabels("AllReduce", "RING")]
	assert.InDelta(t, 7.0, p.value, 0, "it begins again")
	assert.Equal(t, ended, p.start)
}

// TestCollectiveComesBack: the series of one operation end while another operation goes on, and begin again.
func TestCollectiveComesBack(t *testing.T) {
	const key = prefix + "nccl.collective.io|"
	c := newBed(t)
	id := 0
	consume := func(operation string) {
		id++
		b := spans.NewBatch("test", "")
		addCollective(b, resourceA, id, operation, "", 1, map[string]float64{spans.AttrNCCLDataSize: 7})
		c.consume(b.Traces())
	}
	consume("AllReduce")
	for range 4 {
		consume("AllGather")
		c.flushed(10 * time.Minute)
	}
	got := c.flushed(time.Second)
	assert.InDelta(t, 28.0, got[key+ncclLabels("AllGather", "")].value, 0)
	assert.NotContains(t, got, key+ncclLabels("AllReduce", ""))
	assert.Len(t, c.store.resources[0].groups, 1)
	consume("AllReduce")
	assert.InDelta(t, 7.0, c.flushed(time.Second)[key+ncclLabels("AllReduce", "")].value, 0)
}

// TestHugeIO: the counter still only grows beyond the bytes of an int64.
func TestHugeIO(t *testing.T) {
	c := newBed(t)
	const n = 4096
	b := spans.NewBatch("test", "")
	for i := range n {
		addCollective(b, resourceA, i+1, "AllReduce", "", 1, map[string]float64{spans.AttrNCCLDataSize: 1 << 53})
	}
	c.consume(b.Traces())
	assert.InDelta(t, math.Ldexp(1, 65), c.flushed(time.Second)[prefix+"nccl.collective.io|"+ncclLabels("AllReduce", "")].value, 0)
}

func TestCollectiveOverflow(t *testing.T) {
	const limit, operations = 1, 10
	c := newBed(t, tight)
	b := spans.NewBatch("test", "")
	for i := range operations {
		for j := range 2 {
			addCollective(b, resourceA, 10+2*i+j, fmt.Sprint("op", i), "RING", 1e6, map[string]float64{
				spans.AttrNCCLDuration: 1, spans.AttrNCCLDataSize: 10, spans.AttrNCCLBandwidthAlgorithm: 1, spans.AttrNCCLBandwidthBus: 1, spans.AttrNCCLErrors: 1,
			})
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
		"nccl.collective.duration": limit, "nccl.collective.io": limit, "nccl.collective.bandwidth": limit, "nccl.collective.errors": limit,
		"nccl.collective.retries": limit, "nccl.collective.missing": limit,
	}, series)
	assert.Equal(t, map[string]float64{
		"nccl.collective.duration": 2 * operations, "nccl.collective.io": 20 * operations, "nccl.collective.bandwidth": 4 * operations,
		"nccl.collective.errors":  2 * operations,
		"nccl.collective.retries": 0, "nccl.collective.missing": 0,
	}, counted, "nothing is lost by it")
	// The spans of the first operation too: one of its bandwidths found no room.
	metadatatest.AssertEqualConnectorTrainMetricsOverflowSpans(t, c.tel, []metricdata.DataPoint[int64]{{Value: 2 * operations}}, metricdatatest.IgnoreTimestamp())

	c.flushed(time.Hour)
	b = spans.NewBatch("test", "")
	addCollective(b, resourceA, 100, "op9", "RING", 1, map[string]float64{spans.AttrNCCLDuration: 1})
	c.consume(b.Traces())
	assert.Contains(t, c.flushed(time.Second), prefix+"nccl.collective.duration|"+ncclLabels("op9", "RING"), "room that became free is used")
}
