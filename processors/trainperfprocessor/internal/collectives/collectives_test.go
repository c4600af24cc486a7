package collectives

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type attrs = perftest.Attrs

func newTest(tb testing.TB, change ...func(*Config)) *Domain {
	tb.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	require.Empty(tb, cfg.Errors())
	return New(cfg)
}

// never is a config without limits: the receiver's own judgements remain.
func never(c *Config) { *c = Config{} }

var hangs = attrs{spans.AttrNCCLHang: true, spans.AttrNCCLWaited: 300.0}

func oneCollective(tb testing.TB, p *Domain, name string, a attrs) ptrace.Span {
	tb.Helper()
	b := spans.NewBatch("test", "")
	root := perftest.AddCollective(b, 1, name, a)
	perftest.Judge(p, b.Traces())
	return root
}

type verdictTest struct {
	change attrs
	config func(*Config)
	want   []string
}

func checkVerdicts(t *testing.T, cases map[string]verdictTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			var change []func(*Config)
			if tt.config != nil {
				change = append(change, tt.config)
			}
			root := oneCollective(t, newTest(t, change...), "AllReduce", perftest.AllReduce.With(tt.change))
			assert.Equal(t, tt.want, perftest.Verdicts(root))
			severity := ""
			for _, v := range tt.want {
				severity = map[string]string{
					spans.VerdictNCCLHang: "bad", spans.VerdictNCCLRankMissing: "bad", spans.VerdictNCCLStraggler: "bad",
					spans.VerdictNCCLErrors: "bad", spans.VerdictNCCLMismatch: "bad",
				}[v]
				if severity == "bad" {
					break
				}
				severity = "warning"
			}
			assert.Equal(t, severity, perftest.Severity(root))
			require.Equal(t, len(tt.want), root.Events().Len())
			for i, e := range root.Events().All() {
				assert.Equal(t, spans.EventVerdict, e.Name())
				assert.Equal(t, root.EndTimestamp(), e.Timestamp())
				assert.Contains(t, tt.want[i], spans.AttrText(e.Attributes(), spans.AttrVerdictName))
				reason := spans.AttrText(e.Attributes(), spans.AttrVerdictReason)
				assert.True(t, strings.HasSuffix(reason, "."), reason)
				assert.NotContains(t, reason, "NaN")
			}
		})
	}
}

// The verdicts' causes, as perftest.Verdicts prints them.
const (
	saidGap     = spans.VerdictNCCLRankMissing + " (" + spans.CauseSequenceGap + ")"
	saidRetries = spans.VerdictNCCLErrors + " (" + spans.CauseRetries + ")"
	saidSlow    = spans.VerdictNCCLLink + " (" + spans.CauseLinkSlow + ")"
	saidHot     = spans.VerdictNCCLLink + " (" + spans.CauseLinkHot + ")"
)

func TestVerdictsOfMissingRanks(t *testing.T) {
	const hang, gone, gap = spans.VerdictNCCLHang, spans.VerdictNCCLRankMissing, saidGap
	checkVerdicts(t, map[string]verdictTest{
		"healthy": {nil, nil, nil},
		"nothing but its ranks": {func() attrs {
			a := attrs{}
			for name := range perftest.AllReduce {
				a[name] = nil
			}
			a[spans.AttrNCCLRanks] = int64(64)
			return a
		}(), nil, nil},
		"hang":                       {hangs, nil, []string{hang}},
		"hang with a missing rank":   {hangs.With(perftest.Missing(spans.NCCLIncompleteTimeout, int64(5))), nil, []string{hang}},
		"hang and gap":               {hangs.With(perftest.Missing(spans.NCCLIncompleteGap, int64(5))), nil, []string{hang, gap}},
		"no hang":                    {attrs{spans.AttrNCCLHang: false, spans.AttrNCCLWaited: 300.0}, nil, nil},
		"hang as text":               {attrs{spans.AttrNCCLHang: "true"}, nil, nil},
		"missing after the timeout":  {perftest.Missing(spans.NCCLIncompleteTimeout, int64(5)), nil, []string{gone}},
		"missing as before":          {perftest.Missing(spans.NCCLIncompleteGone, int64(5)), nil, []string{gone}},
		"missing at the end":         {perftest.Missing(spans.NCCLIncompleteEnd, int64(5)), nil, []string{gone}},
		"missing, evicted":           {perftest.Missing(spans.NCCLIncompleteEvicted, int64(5)), nil, []string{gone}},
		"missing, gap":               {perftest.Missing(spans.NCCLIncompleteGap, int64(5)), nil, []string{gap}},
		"missing, for another cause": {perftest.Missing("sampled", int64(5)), nil, nil},
		"missing, not completed":     {perftest.Missing(spans.NCCLIncompleteStuck, int64(5)), nil, nil},
		"missing, no cause":          {attrs{spans.AttrNCCLRanksMissingCount: int64(1)}, nil, nil},
		"none missing":               {perftest.Missing(spans.NCCLIncompleteTimeout), nil, nil},
		"missing by count only": {
			attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: int64(2)},
			nil,
			[]string{gone},
		},
		"missing by list only": {
			attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissing: []any{int64(2)}},
			nil,
			[]string{gone},
		},
		"count negative":      {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: int64(-2)}, nil, nil},
		"count as text":       {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteEnd, spans.AttrNCCLRanksMissingCount: "2"}, nil, nil},
		"gap without a count": {attrs{spans.AttrIncompleteReason: spans.NCCLIncompleteGap}, nil, []string{gap}},
	})
}

func TestVerdictsOfLateRanks(t *testing.T) {
	const straggler, lateOne = spans.VerdictNCCLStraggler, spans.VerdictNCCLLate
	nan, inf := math.NaN(), math.Inf(1)
	checkVerdicts(t, map[string]verdictTest{
		"straggler":                {attrs{spans.AttrNCCLStragglerRank: int64(0)}, nil, []string{straggler}},
		"straggler below 0":        {attrs{spans.AttrNCCLStragglerRank: int64(-1)}, nil, nil},
		"straggler as text":        {attrs{spans.AttrNCCLStragglerRank: "5"}, nil, nil},
		"straggler without a rank": {attrs{spans.AttrNCCLStragglerLate: 0.5}, nil, nil},

		"as late as the transfer took": {perftest.Late(0.002, 0.002), nil, nil},
		"later by a nanosecond":        {perftest.Late(0.002000001, 0.002), nil, []string{lateOne}},
		"late, but by less than 1 ms":  {perftest.Late(0.001, 0.0001), nil, nil},
		"late by a nanosecond more":    {perftest.Late(0.001000001, 0.0001), nil, []string{lateOne}},
		"late, transfer of no time":    {perftest.Late(0.0011, 0), nil, []string{lateOne}},
		"late, transfer not known":     {attrs{spans.AttrNCCLLateMax: 100.0, spans.AttrNCCLTransferDuration: nil}, nil, nil},
		"late, transfer NaN":           {perftest.Late(100, nan), nil, nil},
		"late NaN":                     {perftest.Late(nan, 0.002), nil, nil},
		"late infinite":                {perftest.Late(inf, 0.002), nil, nil},
		"early":                        {perftest.Late(-1, 0.002), nil, nil},
		"late as text":                 {attrs{spans.AttrNCCLLateMax: "1"}, nil, nil},
		"late, rank not known":         {perftest.Late(1, 0.002).With(attrs{spans.AttrNCCLLateRank: nil}), nil, []string{lateOne}},
		"late, half the transfer":      {perftest.Late(0.0011, 0.002), func(c *Config) { c.LateTransfers = 0.5 }, []string{lateOne}},
		"late, ten times the transfer": {perftest.Late(0.02, 0.002), func(c *Config) { c.LateTransfers = 10 }, nil},
		"late, more than ten times":    {perftest.Late(0.021, 0.002), func(c *Config) { c.LateTransfers = 10 }, []string{lateOne}},
		"late, no minimum":             {perftest.Late(0.00003, 0.00002), func(c *Config) { c.LateMin = 0 }, []string{lateOne}},
		"late, never":                  {perftest.Late(100, 0.002), never, nil},
	})
}

func TestVerdictsOfBandwidthErrorsAndLinks(t *testing.T) {
	const low, unit = spans.VerdictNCCLBandwidthLow, spans.VerdictNCCLBandwidthUnit
	const slow, hot = saidSlow, saidHot
	nan := math.NaN()
	off := func(x any) attrs { return attrs{spans.AttrNCCLBandwidthDisagreement: x} }
	checkVerdicts(t, map[string]verdictTest{
		"low":                            {attrs{spans.AttrNCCLBandwidthDeviation: 4.5, spans.AttrNCCLBandwidthBaseline: 264e9}, nil, []string{low}},
		"low, without its baseline":      {attrs{spans.AttrNCCLBandwidthDeviation: 4.5}, nil, []string{low}},
		"a baseline without a deviation": {attrs{spans.AttrNCCLBandwidthBaseline: 264e9}, nil, nil},
		"a deviation that is none":       {attrs{spans.AttrNCCLBandwidthDeviation: nan}, nil, nil},
		"one error":                      {attrs{spans.AttrNCCLErrors: int64(1)}, nil, []string{spans.VerdictNCCLErrors}},
		"errors below 0":                 {attrs{spans.AttrNCCLErrors: int64(-1)}, nil, nil},
		"errors as text":                 {attrs{spans.AttrNCCLErrors: "1"}, nil, nil},
		"retries":                        {attrs{spans.AttrNCCLRetries: int64(7)}, nil, []string{saidRetries}},
		"retries NaN":                    {attrs{spans.AttrNCCLRetries: nan}, nil, nil},
		"mismatch":                       {attrs{spans.AttrNCCLMismatch: true}, nil, []string{spans.VerdictNCCLMismatch}},
		"no mismatch":                    {attrs{spans.AttrNCCLMismatch: false}, nil, nil},
		"slow link":                      {attrs{spans.AttrNCCLLinkSlow: []any{"0→8"}}, nil, []string{slow}},
		"hot link":                       {attrs{spans.AttrNCCLLinkHot: []any{"0→8"}}, nil, []string{hot}},
		"no links":                       {attrs{spans.AttrNCCLLinkHot: []any{}, spans.AttrNCCLLinkSlow: []any{}}, nil, nil},
		"links as text":                  {attrs{spans.AttrNCCLLinkHot: "0→8", spans.AttrNCCLLinkSlow: "0→8"}, nil, nil},
		"5 % off":                        {off(0.05), nil, nil},
		"more":                           {off(0.0501), nil, []string{unit}},
		"8 times off":                    {off(int64(7)), nil, []string{unit}},
		"off by NaN":                     {off(nan), nil, nil},
		"off, another limit":             {off(0.0501), func(c *Config) { c.BandwidthDisagreement = 0.1 }, nil},
		"off, never":                     {off(0.9), never, nil},
	})
}

func TestManyVerdicts(t *testing.T) {
	checkVerdicts(t, map[string]verdictTest{
		"what the receiver judged, always": {hangs.With(attrs{spans.AttrNCCLErrors: int64(1)}), never, []string{spans.VerdictNCCLHang, spans.VerdictNCCLErrors}},
		"all": {
			hangs.With(perftest.Missing(spans.NCCLIncompleteGap, int64(5))).With(perftest.Late(1, 0.5)).With(attrs{spans.AttrNCCLBandwidthDisagreement: 0.5}).With(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLBandwidthDeviation: 4.5, spans.AttrNCCLErrors: int64(1), spans.AttrNCCLRetries: int64(2),
				spans.AttrNCCLMismatch: true, spans.AttrNCCLLinkSlow: []any{"0→8"}, spans.AttrNCCLLinkHot: []any{"8→0"},
			}), nil,
			[]string{
				spans.VerdictNCCLHang, saidGap, spans.VerdictNCCLStraggler, spans.VerdictNCCLLate, spans.VerdictNCCLBandwidthLow,
				spans.VerdictNCCLErrors, saidRetries, spans.VerdictNCCLMismatch,
				saidSlow, saidHot, spans.VerdictNCCLBandwidthUnit,
			},
		},
	})
}

// allReduce is how reasons name perftest.AllReduce.
const allReduce = "AllReduce 4012 of DP Group 0 (0x9e3779b97f4a7c15)"

var none = math.NaN() // of a verdict without a value, or without a threshold

type reasonTest struct {
	operation        string
	attrs            attrs
	reason           string
	value, threshold float64
}

func checkReasons(t *testing.T, cases map[string]reasonTest) {
	t.Helper()
	for name, tt := range cases {
		t.Run(name, func(t *testing.T) {
			root := oneCollective(t, newTest(t), tt.operation, tt.attrs)
			assert.Equal(t, []string{tt.reason}, perftest.Reasons(root))
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

func TestReasonsOfHangs(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"hang": {
			"AllReduce", perftest.AllReduce.With(hangs).With(perftest.Missing(spans.NCCLIncompleteTimeout,
				int64(5))).With(attrs{spans.AttrNCCLRanksStuck: []any{int64(0), int64(1), int64(63)}}),
			allReduce + " did not complete within 300 s; missing: rank 5; stuck: ranks 0, 1 and 63. Look first at what is missing " +
				"(crashed, in other code, waiting for data): the others wait.", 300, none,
		},
		"hang, ranks missing": {
			"AllReduce", perftest.AllReduce.With(hangs).With(perftest.Missing(spans.NCCLIncompleteTimeout, int64(5), int64(9))),
			allReduce + " did not complete within 300 s; missing: ranks 5 and 9. See what they did last (crashed, in other code, " +
				"waiting for data).", 300, none,
		},
		"hang, all there": {
			"AllReduce", perftest.AllReduce.With(hangs).With(attrs{spans.AttrNCCLRanksStuck: []any{int64(3)}}),
			allReduce + " did not complete within 300 s; stuck: rank 3. Check the network between the ranks, and whether all run the " + "same call.", 300, none,
		},
		"hang, nothing known": {
			"",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLHang: true},
			"A collective did not complete; the log does not tell which ranks are missing or stuck.", none, none,
		},
	})
}

func TestReasonsOfMissingRanks(t *testing.T) {
	many := make([]any, 32)
	for i := range many {
		many[i] = int64(2 * i)
	}
	checkReasons(t, map[string]reasonTest{
		"half of them missing": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteEnd, many...)).With(attrs{
				spans.AttrNCCLRanksMissingCount: int64(40),
				spans.AttrNCCLRanks:             int64(24),
			}),
			allReduce + " lacks ranks 0, 2, 4, 6, 8, 10, 12, 14 and 32 more (24 ranks are there) at the end of the logs. See whether " +
				"each process stopped early or did not write its last lines.", 40, none,
		},
		"one missing": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteTimeout, int64(5))).With(attrs{spans.AttrNCCLWaited: 12.5}),
			allReduce + " lacks rank 5 (63 ranks are there) after 12.5 s. See whether the process still runs and writes its log.", 1, none,
		},
		"one missing, for how long is not known": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteTimeout, int64(5))),
			allReduce + " lacks rank 5 (63 ranks are there). See whether the process still runs and writes its log.", 1, none,
		},
		"one gone": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteGone, int64(5))),
			allReduce + " lacks rank 5 (63 ranks are there), as did an earlier one: nothing was waited for. See whether the process " +
				"still runs and writes its log.", 1, none,
		},
		"evicted": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteEvicted, int64(5))),
			allReduce + " lacks rank 5 (63 ranks are there): no room to wait longer. See whether the process still runs, and whether " +
				"its log is read as soon as the others.", 1, none,
		},
		"gap": {
			"AllReduce", perftest.AllReduce.With(perftest.Missing(spans.NCCLIncompleteGap, int64(5))).With(attrs{spans.AttrNCCLCommName: nil}),
			"AllReduce 4012 of communicator 0x9e3779b97f4a7c15 lacks rank 5 (63 ranks are there), but later ones came. " +
				"Records were lost (dropped by the profiler, a full disk, a log rotated away), or it did not take part.", 1, none,
		},
		"gap, number only": {
			"AllReduce",
			attrs{
				spans.AttrNCCLRanks: int64(1), spans.AttrNCCLCommName: "TP", spans.AttrIncompleteReason: spans.NCCLIncompleteGap,
				spans.AttrNCCLRanksMissingCount: int64(3),
			},
			"AllReduce of TP lacks 3 ranks (1 rank is there), but later ones came. Records were lost (dropped by the " +
				"profiler, a full disk, a log rotated away), or they did not take part.", 3, none,
		},
		"gap, nothing known": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrIncompleteReason: spans.NCCLIncompleteGap},
			"AllReduce lacks others (2 ranks are there), but later ones came. Records were lost (dropped by the profiler, " +
				"a full disk, a log rotated away), or they did not take part.", none, none,
		},
	})
}

func TestReasonsOfStragglers(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"straggler": {
			"AllReduce", perftest.AllReduce.With(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglerHost: "node-0", spans.AttrNCCLStragglerLate: 0.00123,
				spans.AttrNCCLStragglerScore: 0.951,
				spans.AttrNCCLStragglerCost:  12.4, spans.AttrNCCLStragglers: []any{int64(5), int64(9)},
			}),
			"Rank 5 on node-0 of DP Group 0 (0x9e3779b97f4a7c15) is late again and again, by 1.23 ms (median), score " +
				"0.951 (1 is the fastest); the others waited 12.4 s in all; slow: ranks 5 and 9. Check the clocks and " +
				"temperature of its GPU, its host, and whether it has more work.", 0.00123, none,
		},
		"straggler, only its rank": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglers: []any{int64(5)}},
			"Rank 5 is late again and again. Check the clocks and temperature of its GPU, its host, and whether it has " + "more work.", none, none,
		},
		"no straggler any more": {
			"AllReduce", perftest.AllReduce.With(attrs{
				spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglerHost: "node-0", spans.AttrNCCLStragglersOver: []any{int64(5)},
			}),
			"Rank 5 on node-0 of DP Group 0 (0x9e3779b97f4a7c15) is no longer late.", none, none,
		},
		"no stragglers any more": {
			"AllReduce",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLStragglerRank: int64(5), spans.AttrNCCLStragglersOver: []any{int64(5), int64(7)}},
			"Ranks 5 and 7 are no longer late.", none, none,
		},
	})
}

func TestReasonsOfLateRanks(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"late": {
			"AllReduce", perftest.AllReduce.With(perftest.Late(0.0123, 0.002)).With(attrs{spans.AttrNCCLLateCost: 0.7749}),
			"Rank 5 on node-0 came 12.3 ms late to " + allReduce +
				" (transfer 2 ms, limit 2 ms); the others waited 775 ms in all. See what the rank did before (data loading, a " +
				"checkpoint, more work).", 0.0123, 0.002,
		},
		"late, little known": {
			"AllReduce", attrs{spans.AttrNCCLRanks: int64(2)}.With(perftest.Late(0.0015, 0.00002)),
			"A rank came 1.5 ms late to AllReduce (transfer 20 µs, limit 1 ms). See what the rank did before (data " +
				"loading, a checkpoint, more work).", 0.0015, 0.001,
		},
	})
}

func TestReasonsOfBandwidth(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"low bandwidth": {
			"AllReduce", perftest.AllReduce.With(attrs{
				spans.AttrNCCLBandwidthBus: 112.34e9, spans.AttrNCCLBandwidthBaseline: 264.2e9,
				spans.AttrNCCLBandwidthDeviation: 5.23,
			}),
			allReduce + ", 256 MiB, ran at 112 GB/s (bus), 57.5% below the median of 264 GB/s of its communicator, operation and size " +
				"(5.23 robust standard deviations), as those just before. Check for a slow link or NIC, and other traffic on " + "the network.", 112.34e9, none,
		},
		"low bandwidth, of the algorithm": {
			"AllGather",
			attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLBandwidthAlgorithm: 0.9e9, spans.AttrNCCLBandwidthDeviation: int64(4)},
			"AllGather ran at 900 MB/s (algorithm), far below the median of its communicator, operation and size (4 " +
				"robust standard deviations), as those just before. Check for a slow link or NIC, and other traffic on the " + "network.", 0.9e9, none,
		},
	})
}

func TestReasonsOfErrors(t *testing.T) {
	send := attrs{
		spans.AttrNCCLRanks: int64(1), spans.AttrNCCLCommID: "0x1f", spans.AttrNCCLCommRank: int64(3), spans.AttrNCCLPeerRank: int64(11),
		spans.AttrNCCLSequence:     int64(7),
		spans.AttrNCCLSequenceKind: "ordinal", spans.AttrNCCLRetries: int64(1),
	}
	checkReasons(t, map[string]reasonTest{
		"errors": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLErrors: int64(3)}),
			allReduce + " had 3 errors. The spans of its ranks say which had them; NCCL_DEBUG=WARN makes NCCL say why.", 3, none,
		},
		"an error": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLErrors: int64(1)}),
			allReduce + " had 1 error. The spans of its ranks say which had them; NCCL_DEBUG=WARN makes NCCL say why.", 1, none,
		},
		"retries": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLRetries: int64(1234567890)}),
			allReduce + " had 1234567890 retries. The spans of its ranks say which had them: check their links, NICs and switch ports.", 1234567890, none,
		},
		"retry of a send": {
			"Send", send,
			"Send 7 (as counted) by rank 3 on node-0 to rank 11 of communicator 0x1f had 1 retry. Check its link, NIC and " + "switch port.", 1, none,
		},
		"retry of a recv": {
			"Recv", send.With(attrs{spans.AttrNCCLSequence: nil, spans.AttrNCCLSequenceKind: nil}),
			"Recv by rank 3 on node-0 from rank 11 of communicator 0x1f had 1 retry. Check its link, NIC and switch port.", 1, none,
		},
		"error of a send": {
			"Send", send.With(attrs{spans.AttrNCCLRetries: nil, spans.AttrNCCLErrors: int64(2), spans.AttrNCCLPeerRank: nil}),
			"Send 7 (as counted) by rank 3 on node-0 of communicator 0x1f had 2 errors. NCCL_DEBUG=WARN makes NCCL say " + "why.", 2, none,
		},
		"mismatch": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLMismatch: true}),
			"The ranks of " + allReduce +
				" disagree about the message size: different calls corrupt data or hang. Compare their spans, and the code or " +
				"data that they branch on.", none, none,
		},
	})
}

func TestReasonsOfLinks(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"slow link": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLLinkSlow: []any{"0→8"}}),
			"The link 0→8 was much slower than the others, up to " + allReduce + ". Check the cable, NIC and switch port.", none, none,
		},
		"hot links": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLLinkHot: []any{"0→8", "8→16", true}}),
			"The links 0→8, 8→16 and ? carried much more than the others, up to " + allReduce +
				". Check how ranks are placed on hosts, and NCCL's rings or trees.", none, none,
		},
	})
}

func TestReasonsOfUnits(t *testing.T) {
	checkReasons(t, map[string]reasonTest{
		"unit": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLBandwidthDisagreement: 7.0, spans.AttrNCCLBandwidthUnit: "GB/s"}),
			"The logged bandwidth of " + allReduce +
				" is 700% off size and duration (limit 5%). See whether its unit, read as GB/s, is GB/s or Gbit/s, and " +
				"whether its size is of one rank or of all; use the recomputed bandwidth.", 7, 0.05,
		},
		"unit, not known": {
			"AllReduce", perftest.AllReduce.With(attrs{spans.AttrNCCLBandwidthDisagreement: 0.0625}),
			"The logged bandwidth of " + allReduce +
				" is 6.2% off size and duration (limit 5%). See whether its unit is GB/s or Gbit/s, and whether its size is " +
				"of one rank or of all; use the recomputed bandwidth.", 0.0625, 0.05,
		},
	})
}

// ncclChildren are the names of spans below a root.
var ncclChildren = []string{
	spans.NCCLRankName(11, "gpu-node-1"), spans.SpanNCCLRank, spans.SpanNCCLLate, spans.SpanNCCLWait, spans.SpanNCCLTransfer, spans.SpanNCCLChannel,
	spans.SpanNCCLProxyOp, spans.SpanNCCLProxyStep,
}

// TestOthersAreLeftAlone: spans below a root pass unchanged, even with the attributes of a root; likewise spans that only look like a root.
func TestOthersAreLeftAlone(t *testing.T) {
	b := spans.NewBatch("test", "")
	broken := perftest.AllReduce.With(attrs{spans.AttrNCCLHang: true, spans.AttrNCCLErrors: int64(3)})
	for i, name := range ncclChildren {
		perftest.AddCollective(b, 100+i, name, broken)
	}
	for i, ranks := range []any{nil, "64", 64.5, true, []any{int64(64)}} { // languages without integers send 64.0, an integer here: see package view
		perftest.AddCollective(b, 200+i, "AllReduce", broken.With(attrs{spans.AttrNCCLRanks: ranks}))
	}
	perftest.AddCollective(b, 300, "AllReduce", perftest.AllReduce)
	before := ptrace.NewTraces()
	b.Traces().CopyTo(before)
	perftest.Judge(newTest(t), b.Traces())
	require.NoError(t, ptracetest.CompareTraces(before, b.Traces()))
}

// TestNames: a root may have any name that no known span has; unknown operations are named as logged.
func TestNames(t *testing.T) {
	failed := attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLErrors: int64(3)}
	for _, name := range []string{
		"AllReduce", "Send", "Recv", "_reduce_oop", "nccl", "nccl.", "nccl.ranks", "nccl.rank.other", "Nccl.rank", "rank", "rank of",
		"ranks 3", "rpc", "tq.get", "train.run",
	} {
		root := oneCollective(t, newTest(t), name, failed)
		assert.Equal(t, []string{spans.VerdictNCCLErrors}, perftest.Verdicts(root), name)
		assert.True(t, strings.HasPrefix(perftest.Reasons(root)[0], name+" had 3 errors"))
	}
	for _, operation := range []any{"", int64(1)} { // then the span's name stands for the operation
		root := oneCollective(t, newTest(t), "AllReduce", failed.With(attrs{spans.AttrNCCLOperation: operation}))
		assert.True(t, strings.HasPrefix(perftest.Reasons(root)[0], "AllReduce had 3 errors"))
	}
}

func TestRetry(t *testing.T) {
	for _, a := range []attrs{
		perftest.AllReduce, perftest.AllReduce.With(perftest.Late(1, 0.1)),
		perftest.AllReduce.With(attrs{spans.AttrNCCLHang: true}).With(perftest.Missing(spans.NCCLIncompleteGap, int64(5))),
		{spans.AttrNCCLRanks: int64(1), spans.AttrNCCLRetries: int64(1)},
	} {
		p := newTest(t)
		b := spans.NewBatch("test", "")
		perftest.AddCollective(b, 1, "AllReduce", a)
		perftest.Judge(p, b.Traces())
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		perftest.Judge(p, b.Traces())
		require.NoError(t, ptracetest.CompareTraces(once, b.Traces()))
	}
}

// FuzzCollective: whatever a root holds, nothing panics, every verdict but none is an event with a reason, and processing twice is processing once.
func FuzzCollective(f *testing.F) {
	f.Add("AllReduce", "hang_timeout", int64(64), int64(5), int64(1), 0.0123, 0.002, 300.0, 0.07, true, []byte{5, 9})
	f.Add("", "gap", int64(math.MinInt64), int64(-1), int64(math.MaxInt64), math.Inf(1), math.NaN(), -1.0, 5e-324, false, []byte(nil))
	p := newTest(f)
	f.Fuzz(func(t *testing.T, operation, reason string, ranks, rank, count int64, late, transfer, waited, deviation float64, flag bool, list []byte) {
		var numbers, links []any
		for _, x := range list {
			numbers, links = append(numbers, int64(x)), append(links, strings.Repeat("→", int(x)))
		}
		b := spans.NewBatch("test", "")
		root := perftest.AddCollective(b, 1, "AllReduce", attrs{
			spans.AttrNCCLRanks: ranks, spans.AttrNCCLOperation: operation, spans.AttrNCCLCommRank: rank, spans.AttrNCCLPeerRank: count,
			spans.AttrNCCLSequence:     count,
			spans.AttrIncompleteReason: reason, spans.AttrNCCLHang: flag, spans.AttrNCCLMismatch: flag, spans.AttrNCCLWaited: waited,
			spans.AttrNCCLRanksMissing:      numbers,
			spans.AttrNCCLRanksMissingCount: count, spans.AttrNCCLRanksStuck: numbers, spans.AttrNCCLLateMax: late, spans.AttrNCCLLateRank: rank,
			spans.AttrNCCLLateCost:         waited,
			spans.AttrNCCLTransferDuration: transfer, spans.AttrNCCLStragglerRank: rank, spans.AttrNCCLStragglerLate: late, spans.AttrNCCLStragglers: numbers,
			spans.AttrNCCLBandwidthDeviation: deviation, spans.AttrNCCLBandwidthBus: transfer, spans.AttrNCCLMessageSize: count,
			spans.AttrNCCLBandwidthDisagreement: deviation,
			spans.AttrNCCLErrors:                count, spans.AttrNCCLRetries: deviation, spans.AttrNCCLLinkHot: links, spans.AttrNCCLLinkSlow: numbers,
		})
		perftest.Judge(p, b.Traces())
		names := perftest.Verdicts(root)
		require.Len(t, perftest.Reasons(root), len(names))
		if want := late > transfer && late > 0.001 && !math.IsInf(late, 0); want != slices.Contains(names, spans.VerdictNCCLLate) {
			t.Fatalf("late %v of %v: %v", late, transfer, names)
		}
		if want := reason == spans.NCCLIncompleteGap; want != slices.Contains(names, saidGap) {
			t.Fatalf("%q: %v", reason, names)
		}
		for i, text := range perftest.Reasons(root) {
			if !strings.HasSuffix(text, ".") || strings.Contains(text, "NaN") && !strings.Contains(operation+reason, "NaN") ||
				len(text) > 1000+2*len(operation)+8*3*255 {
				t.Fatalf("%s: %q", names[i], text)
			}
		}
		once := ptrace.NewTraces()
		b.Traces().CopyTo(once)
		perftest.Judge(p, b.Traces())
		one, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		two, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
		require.NoError(t, err)
		assert.Equal(t, one, two)
	})
}
