package trainperfprocessor

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

func newNCCLTest(tb testing.TB, change ...func(*NCCLConfig)) *trainPerf {
	tb.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, f := range change {
		f(&cfg.NCCL)
	}
	require.NoError(tb, cfg.Validate())
	p, err := newTrainPerf(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(tb, err)
	return p
}

// ncclHost is where a rank runs.
func ncclHost(rank int) spans.Resource {
	return spans.Resource{Service: "gpt", RunID: "run-1", Host: fmt.Sprint("node-", rank/8), PID: int64(1000 + rank)}
}

func addCollective(b *spans.Batch, id int, name string, a attrs) ptrace.Span {
	span := b.Add(ncclHost(0), spans.Span{Trace: traceID, ID: spanID(id), Name: name, Kind: ptrace.SpanKindInternal, Start: base, End: base + 1e9, Source: spans.TimeLogged})
	for name, v := range a {
		if v == nil {
			continue
		}
		value, _ := span.Attributes().GetOrPutEmpty(name)
		if err := value.FromRaw(v); err != nil {
			panic(err)
		}
	}
	return span
}

func oneCollective(tb testing.TB, p *trainPerf, name string, a attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	root := addCollective(b, 1, name, a)
	process(tb, p, b.Traces())
	return root
}

// allReduce gives no verdict: 256 MiB of 64 ranks, of which the last came 0.9 ms after the first.
var allReduce = attrs{
	spans.AttrNCCLRanks: int64(64), spans.AttrNCCLOperation: "AllReduce", spans.AttrNCCLCommID: "0x9e3779b97f4a7c15", spans.AttrNCCLCommName: "DP Group 0",
	spans.AttrNCCLCommSize: int64(64), spans.AttrNCCLSequence: int64(4012), spans.AttrNCCLAlgorithm: "RING", spans.AttrNCCLProtocol: "SIMPLE",
	spans.AttrNCCLMessageSize: int64(1 << 28), spans.AttrNCCLDataSize: int64(1 << 28), spans.AttrNCCLDuration: 0.0029, spans.AttrNCCLTransferDuration: 0.002,
	spans.AttrNCCLBandwidthAlgorithm: 134.2e9, spans.AttrNCCLBandwidthBus: 264.2e9, spans.AttrNCCLLateMax: 0.0009, spans.AttrNCCLLateRank: int64(5),
	spans.AttrNCCLLateHost: "node-0", spans.AttrNCCLLateCost: 0.05, spans.AttrNCCLErrors: int64(0), spans.AttrNCCLRetries: int64(0), spans.AttrNCCLClockReference: "node-0",
}

func missing(reason string, ranks ...any) attrs {
	return attrs{
		spans.AttrIncomplete: true, spans.AttrIncompleteReason: reason, spans.AttrNCCLRanksMissing: ranks, spans.AttrNCCLRanksMissingCount: int64(len(ranks)),
		spans.AttrNCCLRanks: int64(64 - len(ranks)),
	}
}

func late(seconds, transfer float64) attrs {
	return attrs{spans.AttrNCCLLateMax: seconds, spans.AttrNCCLTransferDuration: transfer}
}

func TestNCCLVerdicts(t *testing.T) {
	const hang, gone, gap = spans.VerdictNCCLHang, spans.VerdictNCCLRankMissing, spans.VerdictNCCLSequenceGap
	const straggler, lateOne, low = spans.VerdictNCCLStraggler, spans.VerdictNCCLLate, spans.VerdictNCCLBandwidthLow
	const slow, hot, unit = spans.VerdictNCCLLinkSlow, spans.VerdictNCCLLinkHot, spans.VerdictNCCLBandwidthUnit
	nan, inf := math.NaN(), math.Inf(1)
	hangs := attrs{spans.AttrNCCLHang: true, spans.AttrNCCLWaited: 300.0}
	off := func(x any) attrs { return attrs{spans.AttrNCCLBandwidthDisagreement: x} }
	never := func(c *NCCLConfig) { *c = NCCLConfig{} }
	for name, tt := range map[string]struct {
		change attrs
		config func(*NCCLConfig)
		want   []string
	}{
		"healthy": {nil, nil, nil},
		"nothing but its ranks": {func() attrs {
			a := attrs{}
			for name := range allReduce {
				a[name] = nil
			}
			a[spans.AttrNCCLRanks] = int64(64)
			return a
		}(), nil, nil},
		"hang":                       {hangs, nil, []string{hang}},
		"hang with a missing rank":   {hangs.with(missing(spans.NCCLIncompleteTimeout, int64(5))), nil, []string{hang}},
		"hang and gap":               {hangs.with(missing(spans.NCCLIncompleteGap, int64(5))), nil, []string{hang, gap}},
		"no hang":                    {attrs{spans.AttrNCCLHang: false, spans.AttrNCCLWaited: 300.0}, nil, nil},
		"hang as text":               {attrs{spans.AttrNCCLHang: "true"}, nil, nil},
		"missing after the timeout":  {missing(spans.NCCLIncompleteTimeout, int64(5)), nil, []string{gone}},
		"missing as before":          {missing(spans.NCCLIncompleteGone, int64(5)), nil, []string{gone}},
		"missing at the end":         {missing(spans.NCCLIncompleteEnd, int64(5)), nil, []string{gone}},
		"missing, evicted":           {missing(spans.NCCLIncompleteEvicted, int64(5)), nil, []string{gone}},
		"missing, gap":               {missing(spans.NCCLIncompleteGap, int64(5)), nil, []string{gap}},
		"missing, for another cause": {missing("sampled", int64(5)), nil, nil},
		"missing, not completed":     {missing(spans.NCCLIncompleteStuck, int64(5)), nil, nil},
		"missing, no cause":          {attrs{spans.AttrNCCLRanksMissingCount: int64(1)}, nil, nil},
		"none missing":               {missing(spans.NCCLIncompleteTimeout), nil, nil},
		"missing by count only":      {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: int64(2)}, nil, []string{gone}},
		"missing by list only":       {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissing: []any{int64(2)}}, nil, []string{gone}},
		"count negative":             {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: int64(-2)}, nil, nil},
		"count as text":              {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: "2"}, nil, nil},
		"gap without a count":        {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteGap}, nil, []string{gap}},
		"straggler":                  {attrs{spans.AttrNCCLStragglerRank: int64(0)}, nil, []string{straggler}},
		"straggler below 0":          {attrs{spans.AttrNCCLStragglerRank: int64(-1)}, nil, nil},
		"straggler as text":          {attrs{spans.AttrNCCLStragglerRank: "5"}, nil, nil},
		"straggler without a rank":   {attrs{spans.AttrNCCLStragglerLate: 0.5}, nil, nil},

		"as late as the transfer took":     {late(0.002, 0.002), nil, nil},
		"later by a nanosecond":            {late(0.002000001, 0.002), nil, []string{lateOne}},
		"late, but by less than 1 ms":      {late(0.001, 0.0001), nil, nil},
		"late by a nanosecond more":        {late(0.001000001, 0.0001), nil, []string{lateOne}},
		"late, transfer of no time":        {late(0.0011, 0), nil, []string{lateOne}},
		"late, transfer not known":         {attrs{spans.AttrNCCLLateMax: 100.0, spans.AttrNCCLTransferDuration: nil}, nil, nil},
		"late, transfer NaN":               {late(100, nan), nil, nil},
		"late NaN":                         {late(nan, 0.002), nil, nil},
		"late infinite":                    {late(inf, 0.002), nil, nil},
		"early":                            {late(-1, 0.002), nil, nil},
		"late as text":                     {attrs{spans.AttrNCCLLateMax: "1"}, nil, nil},
		"late, rank not known":             {late(1, 0.002).with(attrs{spans.AttrNCCLLateRank: nil}), nil, []string{lateOne}},
		"late, half the transfer":          {late(0.0011, 0.002), func(c *NCCLConfig) { c.LateTransfers = 0.5 }, []string{lateOne}},
		"late, ten times the transfer":     {late(0.02, 0.002), func(c *NCCLConfig) { c.LateTransfers = 10 }, nil},
		"late, more than ten times":        {late(0.021, 0.002), func(c *NCCLConfig) { c.LateTransfers = 10 }, []string{lateOne}},
		"late, no minimum":                 {late(0.00003, 0.00002), func(c *NCCLConfig) { c.LateMin = 0 }, []string{lateOne}},
		"late, never":                      {late(100, 0.002), never, nil},
		"low":                              {attrs{spans.AttrNCCLBandwidthDeviation: 4.5, spans.AttrNCCLBandwidthBaseline: 264e9}, nil, []string{low}},
		"low, without its baseline":        {attrs{spans.AttrNCCLBandwidthDeviation: 4.5}, nil, []string{low}},
		"a baseline without a deviation":   {attrs{spans.AttrNCCLBandwidthBaseline: 264e9}, nil, nil},
		"a deviation that is none":         {attrs{spans.AttrNCCLBandwidthDeviation: nan}, nil, nil},
		"one error":                        {attrs{spans.AttrNCCLErrors: int64(1)}, nil, []string{spans.VerdictNCCLErrors}},
		"errors below 0":                   {attrs{spans.AttrNCCLErrors: int64(-1)}, nil, nil},
		"errors as text":                   {attrs{spans.AttrNCCLErrors: "1"}, nil, nil},
		"retries":                          {attrs{spans.AttrNCCLRetries: int64(7)}, nil, []string{spans.VerdictNCCLRetries}},
		"retries NaN":                      {attrs{spans.AttrNCCLRetries: nan}, nil, nil},
		"mismatch":                         {attrs{spans.AttrNCCLMismatch: true}, nil, []string{spans.VerdictNCCLMismatch}},
		"no mismatch":                      {attrs{spans.AttrNCCLMismatch: false}, nil, nil},
		"slow link":                        {attrs{spans.AttrNCCLLinkSlow: []any{"0→8"}}, nil, []string{slow}},
		"hot link":                         {attrs{spans.AttrNCCLLinkHot: []any{"0→8"}}, nil, []string{hot}},
		"no links":                         {attrs{spans.AttrNCCLLinkHot: []any{}, spans.AttrNCCLLinkSlow: []any{}}, nil, nil},
		"links as text":                    {attrs{spans.AttrNCCLLinkHot: "0→8", spans.AttrNCCLLinkSlow: "0→8"}, nil, nil},
		"5 % off":                          {off(0.05), nil, nil},
		"more":                             {off(0.0501), nil, []string{unit}},
		"8 times off":                      {off(int64(7)), nil, []string{unit}},
		"off by NaN":                       {off(nan), nil, nil},
		"off, another limit":               {off(0.0501), func(c *NCCLConfig) { c.BandwidthDisagreement = 0.1 }, nil},
		"off, never":                       {off(0.9), never, nil},
		"what the receiver judged, always": {hangs.with(attrs{spans.AttrNCCLErrors: int64(1)}), never, []string{hang, spans.VerdictNCCLErrors}},
		"all": {
			hangs.with(missing(spans.NCCLIncompleteGap, int64(5))).with(late(1, 0.5)).with(off(0.5)).with(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLBandwidthDeviation: 4.5, spans.AttrNCCLErrors: int64(1), spans.AttrNCCLRetries: int64(2),
				spans.AttrNCCLMismatch: true, spans.AttrNCCLLinkSlow: []any{"0→8"}, spans.AttrNCCLLinkHot: []any{"8→0"},
			}), nil,
			[]string{hang, gap, straggler, lateOne, low, spans.VerdictNCCLErrors, spans.VerdictNCCLRetries, spans.VerdictNCCLMismatch, slow, hot, unit},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var change []func(*NCCLConfig)
			if tt.config != nil {
				change = append(change, tt.config)
			}
			root := oneCollective(t, newNCCLTest(t, change...), "AllReduce", allReduce.with(tt.change))
			assert.Equal(t, tt.want, verdicts(root))
			severity := ""
			for _, v := range tt.want {
				severity = map[string]string{hang: "bad", gone: "bad", straggler: "bad", spans.VerdictNCCLErrors: "bad", spans.VerdictNCCLMismatch: "bad"}[v]
				if severity == "bad" {
					break
				}
				severity = "warning"
			}
			assert.Equal(t, severity, severityOf(root))
			require.Equal(t, len(tt.want), root.Events().Len())
			for i, e := range root.Events().All() {
				assert.Equal(t, spans.EventVerdict, e.Name())
				assert.Equal(t, root.EndTimestamp(), e.Timestamp())
				assert.Equal(t, tt.want[i], spans.AttrText(e.Attributes(), spans.AttrVerdictName))
				reason := spans.AttrText(e.Attributes(), spans.AttrVerdictReason)
				assert.True(t, strings.HasSuffix(reason, "."), reason)
				assert.NotContains(t, reason, "NaN")
			}
		})
	}
}

func TestNCCLReasons(t *testing.T) {
	const subject = "AllReduce 4012 of communicator DP Group 0 (0x9e3779b97f4a7c15)"
	none := math.NaN()
	many := make([]any, 32)
	for i := range many {
		many[i] = int64(2 * i)
	}
	send := attrs{
		spans.AttrNCCLRanks: int64(1), spans.AttrNCCLCommID: "0x1f", spans.AttrNCCLCommRank: int64(3), spans.AttrNCCLPeerRank: int64(11), spans.AttrNCCLSequence: int64(7),
		spans.AttrNCCLSequenceKind: "ordinal", spans.AttrNCCLRetries: int64(1),
	}
	hang := attrs{spans.AttrNCCLHang: true, spans.AttrNCCLWaited: 300.0}
	for name, tt := range map[string]struct {
		operation        string
		attrs            attrs
		reason           string
		value, threshold float64
	}{
		"hang": {
			"AllReduce", allReduce.with(hang).with(missing(spans.NCCLIncompleteTimeout, int64(5))).with(attrs{spans.AttrNCCLRanksStuck: []any{int64(0), int64(1), int64(63)}}),
			subject + " did not complete within 300 s; missing: rank 5; stuck: ranks 0, 1 and 63: look at what is missing first (crashed, in other code, waiting for data), " +
				"the others wait for it.", 300, none,
		},
		"hang, ranks missing": {
			"AllReduce", allReduce.with(hang).with(missing(spans.NCCLIncompleteTimeout, int64(5), int64(9))),
			subject + " did not complete within 300 s; missing: ranks 5 and 9: see what they did last (crashed, in other code, waiting for data).", 300, none,
		},
		"hang, all there": {
			"AllReduce", allReduce.with(hang).with(attrs{spans.AttrNCCLRanksStuck: []any{int64(3)}}),
			subject + " did not complete within 300 s; stuck: rank 3: look at the network between the ranks, and at whether all run the same call.", 300, none,
		},
		"hang, nothing known": {
			"",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLHang: true},
			"A collective did not complete; the log does not tell which ranks are missing or stuck.", none, none,
		},
		"half of them missing": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteEnd, many...)).with(attrs{spans.AttrNCCLRanksMissingCount: int64(40), spans.AttrNCCLRanks: int64(24)}),
			subject + " has records of 24 ranks and none of ranks 0, 2, 4, 6, 8, 10, 12, 14 and 32 more, which took part before: none came before reading ended: " +
				"see whether each process stopped before the others, or did not write its last lines.", 40, none,
		},
		"one missing": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteTimeout, int64(5))).with(attrs{spans.AttrNCCLWaited: 12.5}),
			subject + " has records of 63 ranks and none of rank 5, which took part before: none came within 12.5 s: see whether the process still runs, and still writes its log.", 1, none,
		},
		"one missing, for how long is not known": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteTimeout, int64(5))),
			subject + " has records of 63 ranks and none of rank 5, which took part before: none came in time: see whether the process still runs, and still writes its log.", 1, none,
		},
		"one gone": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteGone, int64(5))),
			subject + " has records of 63 ranks and none of rank 5, which took part before: none came for an earlier one, so that none was waited for: " +
				"see whether the process still runs, and still writes its log.", 1, none,
		},
		"evicted": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteEvicted, int64(5))),
			subject + " has records of 63 ranks and none of rank 5, which took part before: none came before there was no more room to wait: " +
				"see whether the process still runs, and whether its log is read as soon as those of the others.", 1, none,
		},
		"gap": {
			"AllReduce", allReduce.with(missing(spans.NCCLIncompleteGap, int64(5))).with(attrs{spans.AttrNCCLCommName: nil}),
			"AllReduce 4012 of communicator 0x9e3779b97f4a7c15 has records of 63 ranks and none of rank 5, which went on to later ones: " +
				"records were lost (dropped by the profiler, a full disk, a log rotated away), or it did not take part.", 1, none,
		},
		"gap, number only": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(1), spans.AttrNCCLCommName: "TP", spans.AttrIncompleteReason: spans.NCCLIncompleteGap, spans.AttrNCCLRanksMissingCount: int64(3)},
			"AllReduce of communicator TP has records of 1 rank and none of 3 ranks, which went on to later ones: " +
				"records were lost (dropped by the profiler, a full disk, a log rotated away), or they did not take part.", 3, none,
		},
		"gap, nothing known": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrIncompleteReason: spans.NCCLIncompleteGap},
			"AllReduce has records of 2 ranks and none of others, which went on to later ones: " +
				"records were lost (dropped by the profiler, a full disk, a log rotated away), or they did not take part.", none, none,
		},
		"straggler": {
			"AllReduce", allReduce.with(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglerHost: "node-0", spans.AttrNCCLStragglerLate: 0.00123, spans.AttrNCCLStragglerScore: 0.951,
				spans.AttrNCCLStragglerCost: 12.4, spans.AttrNCCLStragglers: []any{int64(5), int64(9)},
			}),
			"Rank 5 on node-0 of communicator DP Group 0 (0x9e3779b97f4a7c15) is late again and again, by median 1.23 ms behind the median rank, with a score of 0.951 " +
				"(1 is the fastest); over the window that cost the other ranks 12.4 s in all; slow are ranks 5 and 9: " +
				"check the clocks and temperature of its GPU, its host, and whether it has more work than the others.", 0.00123, none,
		},
		"straggler, only its rank": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglers: []any{int64(5)}},
			"Rank 5 is late again and again: check the clocks and temperature of its GPU, its host, and whether it has more work than the others.", none, none,
		},
		"no straggler any more": {
			"AllReduce", allReduce.with(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglerHost: "node-0", spans.AttrNCCLStragglersOver: []any{int64(5)},
			}),
			"Rank 5 on node-0 of communicator DP Group 0 (0x9e3779b97f4a7c15) was late again and again until here, and is as fast as the others again.", none, none,
		},
		"no stragglers any more": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglersOver: []any{int64(5), int64(7)}},
			"Ranks 5 and 7 were late again and again until here, and are as fast as the others again.", none, none,
		},
		"late": {
			"AllReduce", allReduce.with(late(0.0123, 0.002)).with(attrs{spans.AttrNCCLLateCost: 0.7749}),
			"Rank 5 on node-0 came 12.3 ms late to " + subject + ", whose transfer took 2 ms; the limit is 2 ms. Waiting for it cost the other ranks 774.9 ms in all: " +
				"see what it did before (data loading, a checkpoint, more work than the others).", 0.0123, 0.002,
		},
		"late, little known": {
			"AllReduce", attrs{spans.AttrNCCLRanks: int64(2)}.with(late(0.0015, 0.00002)),
			"A rank came 1.5 ms late to AllReduce, whose transfer took 20 µs; the limit is 1 ms: see what it did before (data loading, a checkpoint, more work than the others).", 0.0015, 0.001,
		},
		"low bandwidth": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLBandwidthBus: 112.34e9, spans.AttrNCCLBandwidthBaseline: 264.2e9, spans.AttrNCCLBandwidthDeviation: 5.23}),
			subject + ", 256 MiB, had a low bandwidth, 112.3 GB/s (bus): 5.2 robust standard deviations below the median of 264.2 GB/s of those before of this communicator, " +
				"operation and size. Look for a slow link or NIC, and for other traffic on the network.", 112.34e9, none,
		},
		"low bandwidth, of the algorithm": {
			"AllGather",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLBandwidthAlgorithm: 0.9e9, spans.AttrNCCLBandwidthDeviation: int64(4)},
			"AllGather had a low bandwidth, 900 MB/s (algorithm): 4 robust standard deviations below the median of those before of this communicator, " +
				"operation and size. Look for a slow link or NIC, and for other traffic on the network.", 0.9e9, none,
		},
		"errors": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLErrors: int64(3)}),
			subject + " had 3 errors: the spans of its ranks say which had them; NCCL_DEBUG=WARN makes NCCL say why.", 3, none,
		},
		"an error": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLErrors: int64(1)}),
			subject + " had 1 error: the spans of its ranks say which had them; NCCL_DEBUG=WARN makes NCCL say why.", 1, none,
		},
		"retries": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLRetries: int64(1234567890)}),
			subject + " had 1234567890 retries: the spans of its ranks say which had them; check their links, NICs and switch ports for errors.", 1234567890, none,
		},
		"retry of a send": {
			"Send", send,
			"Send 7 (as counted) by rank 3 on node-0 to rank 11 of communicator 0x1f had 1 retry: check its link, NIC and switch port for errors.", 1, none,
		},
		"retry of a recv": {
			"Recv", send.with(attrs{spans.AttrNCCLSequence: nil, spans.AttrNCCLSequenceKind: nil}),
			"Recv by rank 3 on node-0 from rank 11 of communicator 0x1f had 1 retry: check its link, NIC and switch port for errors.", 1, none,
		},
		"error of a send": {
			"Send", send.with(attrs{spans.AttrNCCLRetries: nil, spans.AttrNCCLErrors: int64(2), spans.AttrNCCLPeerRank: nil}),
			"Send 7 (as counted) by rank 3 on node-0 of communicator 0x1f had 2 errors: NCCL_DEBUG=WARN makes NCCL say why.", 2, none,
		},
		"mismatch": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLMismatch: true}),
			"The ranks of " + subject + " disagree about the message size: they do not run the same call, which corrupts data or hangs. " +
				"Compare their spans, and the code or data that they branch on.", none, none,
		},
		"slow link": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLLinkSlow: []any{"0→8"}}),
			"Up to " + subject + " the link 0→8 was much slower than the others: check the cable, NIC and switch port.", none, none,
		},
		"hot links": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLLinkHot: []any{"0→8", "8→16", true}}),
			"Up to " + subject + " the links 0→8, 8→16 and ? carried much more than the others: check how ranks are placed on hosts, and which rings or trees NCCL made of them.", none, none,
		},
		"unit": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLBandwidthDisagreement: 7.0, spans.AttrNCCLBandwidthUnit: "GB/s"}),
			"The bandwidth that the log has of " + subject + " is 700% off what size and duration give, above the limit of 5%: " +
				"see whether its unit, read as GB/s, is GB/s or Gbit/s, and whether its size is of one rank or of all. Use the recomputed one.", 7, 0.05,
		},
		"unit, not known": {
			"AllReduce", allReduce.with(attrs{spans.AttrNCCLBandwidthDisagreement: 0.0625}),
			"The bandwidth that the log has of " + subject + " is 6.2% off what size and duration give, above the limit of 5%: " +
				"see whether its unit is GB/s or Gbit/s, and whether its size is of one rank or of all. Use the recomputed one.", 0.0625, 0.05,
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := oneCollective(t, newNCCLTest(t), tt.operation, tt.attrs)
			assert.Equal(t, []string{tt.reason}, reasons(root))
			e := root.Events().At(0).Attributes()
			for name, want := range map[string]float64{spans.AttrVerdictValue: tt.value, spans.AttrVerdictThreshold: tt.threshold} {
				v, ok := e.Get(name)
				assert.Equal(t, !math.IsNaN(want), ok, name)
				if ok {
					assert.InDelta(t, want, v.Double(), 0, name)
				}
			}
		})
	}
}

func TestAppendScaled(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		of   scale
		want string
	}{
		{300, seconds, "300 s"},
		{1, seconds, "1 s"},
		{86400.04, seconds, "86400 s"},
		{0.9994, seconds, "999.4 ms"},
		{0.00101, seconds, "1.01 ms"},
		{0.0000123456, seconds, "12.35 µs"},
		{5e-9, seconds, "5 ns"},
		{0, seconds, "0 ns"},
		{-0.5, seconds, "-500 ms"},
		{1e300, seconds, "1e+300 s"},
		{1 << 28, bytes, "256 MiB"},
		{1<<40 + 1<<39, bytes, "1536 GiB"},
		{1000, bytes, "1000 B"},
		{1536, bytes, "1.5 KiB"},
		{180.44e9, bytesPerSecond, "180.4 GB/s"},
		{999e6, bytesPerSecond, "999 MB/s"},
		{12.5e3, bytesPerSecond, "12.5 kB/s"},
		{8, bytesPerSecond, "8 B/s"},
	} {
		assert.Equal(t, tt.want, string(appendScaled(nil, tt.x, tt.of)))
	}
}

// ncclChildren are the names of what stands below a root.
var ncclChildren = []string{
	spans.NCCLRankName(11, "gpu-node-1"), spans.SpanNCCLRank, spans.SpanNCCLLate, spans.SpanNCCLWait, spans.SpanNCCLTransfer, spans.SpanNCCLChannel, spans.SpanNCCLProxyOp, spans.SpanNCCLProxyStep,
}

// addRank appends the span of a rank, with the attributes in the order of a receiver.
func addRank(b *spans.Batch, id, parent, rank int) {
	span := b.Add(ncclHost(rank), spans.Span{
		Trace: traceID, ID: spanID(id), Parent: spanID(parent), Name: spans.SpanNCCLRank, Kind: ptrace.SpanKindInternal, Start: base, End: base + 1e6, Source: spans.TimeLogged, Attributes: 8,
	})
	m := span.Attributes()
	m.PutInt(spans.AttrNCCLCommRank, int64(rank))
	m.PutInt(spans.AttrRank, int64(rank))
	m.PutDouble(spans.AttrNCCLLate, 0.00001)
	m.PutDouble(spans.AttrNCCLBandwidthBus, 264.2e9)
	m.PutDouble(spans.AttrNCCLBandwidthBusReported, 264.2e9)
	m.PutStr(spans.AttrNCCLTiming, "kernel_gpu")
	m.PutInt(spans.AttrNCCLChannels, 16)
}

// TestNCCLOthersAreLeftAlone: what is below a root passes as it is, even when it has what a root has; and so does what only looks like a root.
func TestNCCLOthersAreLeftAlone(t *testing.T) {
	b := spans.NewBatch("test", "")
	broken := allReduce.with(attrs{spans.AttrNCCLHang: true, spans.AttrNCCLErrors: int64(3)})
	for i, name := range ncclChildren {
		addCollective(b, 100+i, name, broken)
	}
	for i, ranks := range []any{nil, "64", 64.0, true, []any{int64(64)}} {
		addCollective(b, 200+i, "AllReduce", broken.with(attrs{spans.AttrNCCLRanks: ranks}))
	}
	addCollective(b, 300, "AllReduce", allReduce)
	before := ptrace.NewTraces()
	b.Traces().CopyTo(before)
	process(t, newNCCLTest(t), b.Traces())
	require.NoError(t, ptracetest.CompareTraces(before, b.Traces()))
}

// TestNCCLNames: a root may have any name but those that are others'; unknown operations are named as logged.
func TestNCCLNames(t *testing.T) {
	failed := attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLErrors: int64(3)}
	for _, name := range []string{"AllReduce", "Send", "Recv", "_reduce_oop", "nccl", "nccl.", "nccl.ranks", "nccl.rank.other", "Nccl.rank", "rank", "rank of", "ranks 3", "rpc", "tq.get", "train.run"} {
		root := oneCollective(t, newNCCLTest(t), name, failed)
		assert.Equal(t, []string{spans.VerdictNCCLErrors}, verdicts(root), name)
		assert.True(t, strings.HasPrefix(reasons(root)[0], name+" had 3 errors"))
	}
	for _, operation := range []any{"", int64(1)} { // then it is named by its span
		root := oneCollective(t, newNCCLTest(t), "AllReduce", failed.with(attrs{spans.AttrNCCLOperation: operation}))
		assert.True(t, strings.HasPrefix(reasons(root)[0], "AllReduce had 3 errors"))
	}
}

// TestNCCLBesideTheOtherDomains: one batch with a function of TransferQueue, a step, a pass and a collective with its ranks in between.
func TestNCCLBesideTheOtherDomains(t *testing.T) {
	b := spans.NewBatch("test", "")
	failed := allReduce.with(attrs{spans.AttrNCCLErrors: int64(3)})
	c1 := addCollective(b, 1000, "AllReduce", failed)
	f := addFunction(b, 1, "AllReduce", base, 1000, stageSpan{"get", 0, 400}, stageSpan{"compute", 400, 1000}) // by name no function at all
	for i := range 10 {
		addRank(b, 1001+i, 1000, i)
	}
	g := addGroup(b, 20, spans.SpanRPCPass, realPass)
	// Attributes of TransferQueue do not make a function of it.
	c2 := addCollective(b, 2000, "AllGather", failed.with(attrs{spans.AttrTQStage: spans.StageFunction, spans.AttrTQFunction: "rollout"}))
	s := addStep(b, job, 7, 0.5, attrs{spans.AttrBatchSize: int64(32)})
	process(t, newNCCLTest(t), b.Traces())
	assert.Equal(t, []string{spans.VerdictTQOverheadHigh}, verdicts(f))
	assert.Equal(t, []string{spans.VerdictZMQCallsHigh}, verdicts(g))
	numbers(t, s, map[string]float64{spans.AttrSamples: 32})
	for _, c := range []ptrace.Span{c1, c2} {
		assert.Equal(t, []string{spans.VerdictNCCLErrors}, verdicts(c))
		assert.False(t, has(c, spans.AttrTQComputeUtilization))
	}
}

func TestNCCLRetry(t *testing.T) {
	for _, a := range []attrs{
		allReduce, allReduce.with(late(1, 0.1)), allReduce.with(attrs{spans.AttrNCCLHang: true}).with(missing(spans.NCCLIncompleteGap, int64(5))),
		{spans.AttrNCCLRanks: int64(1), spans.AttrNCCLRetries: int64(1)},
	} {
		p := newNCCLTest(t)
		b := spans.NewBatch("test", "")
		addCollective(b, 1, "AllReduce", a)
		process(t, p, b.Traces())
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		process(t, p, b.Traces())
		require.NoError(t, ptracetest.CompareTraces(once, b.Traces()))
	}
}

func TestNCCLOwnTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings())
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	for i := range 3 {
		addCollective(b, 100+i, "AllReduce", allReduce) // no verdict, twice
		addRank(b, 200+i, 100+i, i)
	}
	for i := range 2 {
		addCollective(b, 300+i, "Send", attrs{spans.AttrNCCLRanks: int64(1), spans.AttrNCCLErrors: int64(1)}) // judged, then already
	}
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfCollectives(t, tel, []metricdata.DataPoint[int64]{
		point("judged", 2), point("no_verdict", 6), point("already_judged", 2),
	}, metricdatatest.IgnoreTimestamp())
	_, err = tel.GetMetric("otelcol_processor_train_perf_functions")
	require.Error(t, err, "none was taken for a function")
}

// TestNCCLGolden runs the whole component on a healthy collective, one that hangs, one with a late rank, and a Send with retries.
func TestNCCLGolden(t *testing.T) {
	in, err := golden.ReadTraces(filepath.Join("testdata", "nccl_in.yaml"))
	require.NoError(t, err)
	sink := new(consumertest.TracesSink)
	p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(context.Background(), in))
	require.NoError(t, p.Shutdown(context.Background()))
	require.Len(t, sink.AllTraces(), 1)
	compare(t, "nccl_want.yaml", sink.AllTraces()[0])
}

// FuzzNCCL: whatever a root holds, nothing panics, every verdict but none is an event with a reason, and processing twice is processing once.
func FuzzNCCL(f *testing.F) {
	f.Add("AllReduce", "hang_timeout", int64(64), int64(5), int64(1), 0.0123, 0.002, 300.0, 0.07, true, []byte{5, 9})
	f.Add("", "gap", int64(math.MinInt64), int64(-1), int64(math.MaxInt64), math.Inf(1), math.NaN(), -1.0, 5e-324, false, []byte(nil))
	p := newNCCLTest(f)
	f.Fuzz(func(t *testing.T, operation, reason string, ranks, rank, count int64, late, transfer, waited, deviation float64, flag bool, list []byte) {
		var numbers, links []any
		for _, x := range list {
			numbers, links = append(numbers, int64(x)), append(links, strings.Repeat("→", int(x)))
		}
		b := spans.NewBatch("test", "")
		root := addCollective(b, 1, "AllReduce", attrs{
			spans.AttrNCCLRanks: ranks, spans.AttrNCCLOperation: operation, spans.AttrNCCLCommRank: rank, spans.AttrNCCLPeerRank: count, spans.AttrNCCLSequence: count,
			spans.AttrIncompleteReason: reason, spans.AttrNCCLHang: flag, spans.AttrNCCLMismatch: flag, spans.AttrNCCLWaited: waited, spans.AttrNCCLRanksMissing: numbers,
			spans.AttrNCCLRanksMissingCount: count, spans.AttrNCCLRanksStuck: numbers, spans.AttrNCCLLateMax: late, spans.AttrNCCLLateRank: rank, spans.AttrNCCLLateCost: waited,
			spans.AttrNCCLTransferDuration: transfer, spans.AttrNCCLStragglerRank: rank, spans.AttrNCCLStragglerLate: late, spans.AttrNCCLStragglers: numbers,
			spans.AttrNCCLBandwidthDeviation: deviation, spans.AttrNCCLBandwidthBus: transfer, spans.AttrNCCLMessageSize: count, spans.AttrNCCLBandwidthDisagreement: deviation,
			spans.AttrNCCLErrors: count, spans.AttrNCCLRetries: deviation, spans.AttrNCCLLinkHot: links, spans.AttrNCCLLinkSlow: numbers,
		})
		process(t, p, b.Traces())
		names := verdicts(root)
		require.Len(t, reasons(root), len(names))
		if want := late > transfer && late > 0.001 && !math.IsInf(late, 0); want != slices.Contains(names, spans.VerdictNCCLLate) {
			t.Fatalf("late %v of %v: %v", late, transfer, names)
		}
		if want := reason == spans.NCCLIncompleteGap; want != slices.Contains(names, spans.VerdictNCCLSequenceGap) {
			t.Fatalf("%q: %v", reason, names)
		}
		for i, text := range reasons(root) {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "NaN") && !strings.Contains(operation+reason, "NaN") || len(text) > 1000+2*len(operation)+8*3*255 {
				t.Fatalf("%s: %q", names[i], text)
			}
		}
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		process(t, p, b.Traces())
		one, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		two, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
		require.NoError(t, err)
		assert.Equal(t, one, two)
	})
}

// addRoot puts the attributes of allReduce in an order, which a map would not.
func addRoot(b *spans.Batch, id int, verdicts bool) ptrace.Span {
	span := b.Add(ncclHost(0), spans.Span{
		Trace: traceID, ID: spanID(id), Name: "AllReduce", Kind: ptrace.SpanKindInternal, Start: base, End: base + int64(3*time.Millisecond), Source: spans.TimeLogged, Attributes: 32,
	})
	m := span.Attributes()
	for _, name := range []string{
		spans.AttrNCCLRanks, spans.AttrNCCLOperation, spans.AttrNCCLCommID, spans.AttrNCCLCommName, spans.AttrNCCLCommSize, spans.AttrNCCLSequence, spans.AttrNCCLAlgorithm,
		spans.AttrNCCLProtocol, spans.AttrNCCLMessageSize, spans.AttrNCCLDataSize, spans.AttrNCCLDuration, spans.AttrNCCLTransferDuration, spans.AttrNCCLBandwidthAlgorithm,
		spans.AttrNCCLBandwidthBus, spans.AttrNCCLLateMax, spans.AttrNCCLLateRank, spans.AttrNCCLLateHost, spans.AttrNCCLLateCost, spans.AttrNCCLErrors, spans.AttrNCCLRetries,
		spans.AttrNCCLClockReference,
	} {
		if err := m.PutEmpty(name).FromRaw(allReduce[name]); err != nil {
			panic(err)
		}
	}
	if verdicts {
		m.PutDouble(spans.AttrNCCLLateMax, 0.1)
		m.PutInt(spans.AttrNCCLStragglerRank, 5)
		m.PutStr(spans.AttrNCCLStragglerHost, "node-0")
		m.PutDouble(spans.AttrNCCLStragglerLate, 0.00123)
		m.PutDouble(spans.AttrNCCLStragglerScore, 0.951)
		m.PutDouble(spans.AttrNCCLStragglerCost, 12.4)
	}
	return span
}

// BenchmarkNCCL: 32 collectives of 64 ranks, each rank with a resource of its own; what is below the roots alone; roots alone, healthy and with two verdicts.
func BenchmarkNCCL(b *testing.B) {
	roots := func(n int, verdicts bool) *spans.Batch {
		batch := spans.NewBatch("bench", "")
		for i := range n {
			addRoot(batch, i+1, verdicts)
		}
		return batch
	}
	ranks := func(batch *spans.Batch) *spans.Batch {
		for i := range 64 {
			for j := range 32 {
				addRank(batch, 1000+32*i+j, j+1, i)
			}
		}
		return batch
	}
	for name, batch := range map[string]*spans.Batch{
		"collectives": ranks(roots(32, false)), "ranks": ranks(roots(0, false)), "roots": roots(100, false), "verdicts": roots(100, true),
	} {
		b.Run(name, func(b *testing.B) {
			const copies = 16
			fresh := make([]ptrace.Traces, copies)
			p := newNCCLTest(b)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%copies == 0 && (n == 0 || name == "verdicts") { // the others are not written to
					b.StopTimer()
					for i := range fresh {
						fresh[i] = ptrace.NewTraces()
						batch.Traces().CopyTo(fresh[i])
					}
					b.StartTimer()
				}
				process(b, p, fresh[n%copies])
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(batch.Traces().SpanCount()), "ns/span")
		})
	}
}
