package tq

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stageSpan is one child: stage, start and end in ns from the start of its function.
type stageSpan struct {
	stage    string
	from, to int64
}

func addFunction(b *spans.Batch, id int, name string, start, total int64, children ...stageSpan) ptrace.Span {
	stages := make([]perftest.Stage, len(children))
	for i, c := range children {
		stages[i] = perftest.Stage{Name: c.stage, From: c.from, To: c.to}
	}
	return perftest.AddFunction(b, id, name, start, total, stages...)
}

func newTest(tb testing.TB, change ...func(*Config)) *Domain {
	tb.Helper()
	cfg := DefaultConfig()
	for _, f := range change {
		f(&cfg)
	}
	require.Empty(tb, cfg.Errors())
	return New(cfg)
}

// guideFunction is the example of verl's guide to TQ performance monitoring: 0.914024 s, with 0.052 s of GET, 0.8 s of COMPUTE and 0.062024 s of PUT.
func guideFunction(b *spans.Batch) ptrace.Span {
	f := addFunction(b, 100, "rollout", perftest.Base, 914_024_000,
		stageSpan{"get", 0, 52_000_000}, stageSpan{"compute", 52_000_000, 852_000_000}, stageSpan{"put", 852_000_000, 914_024_000})
	f.Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.0569)
	f.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.8752)
	f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.0678)
	return f
}

func TestExampleOfTheGuide(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := guideFunction(b)
	perftest.Judge(newTest(t), b.Traces())

	assert.InDelta(t, 52_000.0/914_024.0, perftest.Double(t, f, spans.AttrTQGetUtilization), 1e-15)
	assert.InDelta(t, 800_000.0/914_024.0, perftest.Double(t, f, spans.AttrTQComputeUtilization), 1e-15)
	assert.InDelta(t, 62_024.0/914_024.0, perftest.Double(t, f, spans.AttrTQPutUtilization), 1e-15)
	assert.InDelta(t, 114_024.0/914_024.0, perftest.Double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
	assert.Zero(t, perftest.Double(t, f, spans.AttrTQUnattributedUtilization))
	// The log rounds PUT down: 6.786 % printed as 6.78 %.
	assert.InDelta(t, 62_024.0/914_024.0-0.0678, perftest.Double(t, f, spans.AttrTQUtilizationDisagreement), 1e-15)
	assert.Empty(t, perftest.Verdicts(f), "what is good has no verdict")
	assert.Empty(t, perftest.Severity(f))
	assert.Zero(t, f.Events().Len())
}

// The verdicts of one name, as perftest.Verdicts prints them.
const (
	saidElevated = spans.VerdictTQOverhead + " warning"
	saidGet      = spans.VerdictTQFluctuating + " (get)"
	saidPut      = spans.VerdictTQFluctuating + " (put)"
)

func TestFunctionVerdicts(t *testing.T) {
	for name, tt := range map[string]struct {
		get, compute, put int64 // of 1000
		want              []string
		severity          string
	}{
		"compute above 80":          {50, 801, 50, nil, ""},
		"compute exactly 80":        {50, 800, 50, nil, ""},
		"overhead just below 20":    {100, 700, 99, nil, ""},
		"overhead exactly 20":       {100, 700, 100, []string{saidElevated}, "warning"},
		"overhead exactly 30":       {150, 600, 150, []string{saidElevated}, "warning"},
		"overhead above 30":         {150, 600, 151, []string{spans.VerdictTQOverhead}, "bad"},
		"nothing but unattributed":  {0, 0, 0, nil, ""},
		"all get":                   {1000, 0, 0, []string{spans.VerdictTQOverhead}, "bad"},
		"get and compute, no put":   {10, 990, 0, nil, ""},
		"compute beside the others": {400, 900, 0, []string{spans.VerdictTQOverhead}, "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", perftest.Base, 1000,
				stageSpan{"get", 0, tt.get}, stageSpan{"compute", 0, tt.compute}, stageSpan{"put", 1000 - tt.put, 1000})
			perftest.Judge(newTest(t), b.Traces())
			assert.Equal(t, tt.want, perftest.Verdicts(f))
			assert.Equal(t, tt.severity, perftest.Severity(f))
			for _, e := range f.Events().All() {
				assert.Equal(t, spans.EventVerdict, e.Name())
				assert.Equal(t, f.EndTimestamp(), e.Timestamp())
			}
		})
	}
}

func TestReasonHasTheNumbersAndTheAdvice(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := addFunction(b, 1, "rollout", perftest.Base, 914_024_000,
		stageSpan{"get", 0, 200_000_000}, stageSpan{"compute", 200_000_000, 700_000_000}, stageSpan{"put", 700_000_000, 900_000_000})
	c := perftest.AddClient(b, 10, 2, spans.StageClientPut, perftest.Base, 200_000_000)
	c.Attributes().PutInt(spans.AttrTQDataSize, 15_938_355) // 15.2 MiB
	c.Attributes().PutDouble(spans.AttrTQThroughput, 15_938_355/0.2)
	perftest.Judge(newTest(t), b.Traces())

	assert.Equal(t, []string{"TransferQueue took 43.8% of the 914 ms of rollout (GET 21.9%, PUT 21.9%); the limit is 30%. Check the storage " +
		"backend (Redis or distributed storage), tune the batch size for fewer transfers, consider compressing the data."}, perftest.Reasons(f))
	e := f.Events().At(0).Attributes()
	value, _ := e.Get(spans.AttrVerdictValue)
	threshold, _ := e.Get(spans.AttrVerdictThreshold)
	assert.InDelta(t, 400_000.0/914_024.0, value.Double(), 1e-15)
	assert.InDelta(t, 0.3, threshold.Double(), 0)

	assert.Equal(t, []string{"PUT moved 15.2 MiB at 76 MiB/s (limit 100 MiB/s). Check the network bandwidth, the IOPS of the storage, and how the " +
		"data is serialised."}, perftest.Reasons(c))
}

// TestOneConclusion: of 240 calls above the limit the first get a verdict, then one in a hundred.
func TestOneConclusion(t *testing.T) {
	for name, tt := range map[string]struct {
		high func(i int) bool
		said int
		last string
	}{
		"nearly all calls": {
			func(i int) bool { return i%24 != 0 }, 8 + 3,
			"True of 96 of the last 100 calls.",
		},
		"those of one host": {
			func(i int) bool { return i%5 == 4 }, 48,
			"True of 20 of the last 100 calls.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTest(t, func(c *Config) { c.Fluctuation.MinSamples = 100; c.Fluctuation.Threshold = 9 })
			said, last := 0, ""
			for i := range 240 {
				b := spans.NewBatch("test", "")
				get := int64(80)
				if tt.high(i) {
					get = 420
					if name == "those of one host" {
						get = 380
					}
				}
				f := addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 1000, stageSpan{"get", 0, get}, stageSpan{"compute", get, 1000})
				host := "10.4.1.33"
				if name == "those of one host" && !tt.high(i) {
					host = "10.4.1.34"
				}
				td := b.Traces()
				td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrHostName, host)
				again := ptrace.NewTraces()
				td.CopyTo(again)
				perftest.Judge(p, td)
				perftest.Judge(p, again)
				require.NoError(t, ptracetest.CompareTraces(td, again), "a batch that comes again")
				if slices.Contains(perftest.Verdicts(f), spans.VerdictTQOverhead) {
					said++
					if _, more, ok := strings.Cut(perftest.Reasons(f)[0], "compressing the data. "); ok {
						last = more
					}
				}
			}
			assert.Equal(t, tt.said, said)
			assert.Equal(t, tt.last, last)
		})
	}
}

// TestSummary: the line that a person reads first.
func TestSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(m pcommon.Map)
		want   string
	}{
		"whole": {func(m pcommon.Map) {
			m.PutInt(spans.AttrTQBatchSize, 64)
			m.PutInt(spans.AttrProcessPID, 1531903)
		}, "TQ overhead 41.6% · get 21.8% · put 19.8%; batch 64; worker 1531903"},
		"no batch": {func(pcommon.Map) {}, "TQ overhead 41.6% · get 21.8% · put 19.8%; worker 15930"},
		"died": {func(m pcommon.Map) {
			spans.PutIncomplete(m, "no_compute_end")
			m.PutInt(spans.AttrTQBatchSize, 64)
		}, "incomplete (no_compute_end); batch 64; worker 15930"},
		"a line lost": {func(m pcommon.Map) {
			spans.PutIncomplete(m, "stage_missing")
			m.PutDouble(spans.AttrTQGetUtilizationReported, 0.21)
		}, "TQ overhead 41.6% · get 21.8% · put 19.8%; incomplete (stage_missing); worker 15930"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "generate_sequences", perftest.Base, 1000, stageSpan{"get", 0, 218}, stageSpan{"compute", 218, 802},
				stageSpan{"put", 802, 1000})
			tt.change(f.Attributes())
			perftest.Judge(newTest(t), b.Traces())
			assert.Equal(t, tt.want, spans.AttrText(f.Attributes(), spans.AttrSummary))
		})
	}
}

func TestThroughputVerdicts(t *testing.T) {
	set := func(name string, by float64) func(ptrace.Span) {
		return func(s ptrace.Span) { s.Attributes().PutDouble(name, by) }
	}
	for name, tt := range map[string]struct {
		change func(ptrace.Span)
		want   []string
	}{
		"above 500 MiB/s":       {set(spans.AttrTQThroughput, 500*mib+1), nil},
		"exactly 500 MiB/s":     {set(spans.AttrTQThroughput, 500*mib), nil},
		"exactly 100 MiB/s":     {set(spans.AttrTQThroughput, 100*mib), nil},
		"below 100 MiB/s":       {set(spans.AttrTQThroughput, 100*mib-1), []string{spans.VerdictTQThroughputLow}},
		"only the log's number": {set(spans.AttrTQThroughputReported, 253.33*mib), nil},
		"the log's number, low": {set(spans.AttrTQThroughputReported, 25.33*mib), []string{spans.VerdictTQThroughputLow}},
		"size 0 says nothing":   {set(spans.AttrTQThroughput, 0), nil},
		"infinite":              {set(spans.AttrTQThroughput, math.Inf(1)), nil},
		"not a number":          {set(spans.AttrTQThroughput, math.NaN()), nil},
		"text":                  {func(s ptrace.Span) { s.Attributes().PutStr(spans.AttrTQThroughput, "fast") }, nil},
		"nothing known":         {func(ptrace.Span) {}, nil},
		"incomplete": {func(s ptrace.Span) {
			s.Attributes().PutDouble(spans.AttrTQThroughput, 1)
			s.Attributes().PutBool(spans.AttrIncomplete, true)
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			c := perftest.AddClient(b, 1, 0, spans.StageClientGet, perftest.Base, 1e9)
			tt.change(c)
			perftest.Judge(newTest(t), b.Traces())
			assert.Equal(t, tt.want, perftest.Verdicts(c))
		})
	}
}

func TestNothingIsInvented(t *testing.T) {
	shares := []string{
		spans.AttrTQGetUtilization, spans.AttrTQComputeUtilization, spans.AttrTQPutUtilization,
		spans.AttrTQOverheadUtilization, spans.AttrTQUnattributedUtilization,
	}
	three := []stageSpan{{"get", 0, 400}, {"compute", 400, 500}, {"put", 500, 1000}}
	report := func(f ptrace.Span) { f.Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.41) }
	for name, tt := range map[string]struct {
		total    int64
		children []stageSpan
		change   func(ptrace.Span)
		want     []string // the known shares
		verdicts []string
	}{
		"no stages":             {1000, nil, func(ptrace.Span) {}, nil, nil},
		"no stages, one report": {1000, nil, report, shares[:1], nil},
		"no stages, full report": {1000, nil, func(f ptrace.Span) {
			report(f)
			f.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.5)
			f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.09)
		}, shares[:4], []string{spans.VerdictTQOverhead}},
		"no duration": {0, three, func(ptrace.Span) {}, nil, nil},
		"negative":    {-5, three, func(ptrace.Span) {}, nil, nil},
		"incomplete, end never seen": {1000, three, func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
		}, nil, nil},
		"incomplete, end seen": {1000, three, func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
			report(f)
		}, shares, []string{spans.VerdictTQOverhead}},
		"incomplete, end seen, no PUT": {1000, three[:2], func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
			report(f)
		}, shares[:2], nil},
		"complete without PUT":                  {1000, three[:2], func(ptrace.Span) {}, shares, []string{spans.VerdictTQOverhead}},
		"a stage with its end before its start": {1000, append(slices.Clone(three), stageSpan{"put", 9, 3}), func(ptrace.Span) {}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", perftest.Base, tt.total, tt.children...)
			tt.change(f)
			perftest.Judge(newTest(t), b.Traces())
			var got []string
			for _, name := range shares {
				if perftest.Has(f, name) {
					got = append(got, name)
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.verdicts, perftest.Verdicts(f))
			for _, r := range perftest.Reasons(f) {
				assert.Equal(t, strings.Contains(name, "report"), strings.Contains(r, "as logged"), r)
			}
		})
	}
}

// TestLostStageLine: FUNCTION_END states all shares, so a lost line of a stage must not silence its function. Shares of known stages are recomputed, the rest
// are the log's, and each share names its source.
func TestLostStageLine(t *testing.T) {
	three := []stageSpan{{"get", 0, 210_000_000}, {"compute", 210_000_000, 800_000_000}, {"put", 800_000_000, 1_000_000_000}}
	for name, tt := range map[string]struct {
		children          []stageSpan
		open              int // the child whose end was not seen; −1: none
		get, compute, put float64
		reported          []string
		overhead          float64
		reason            string
	}{
		"none":    {three, -1, 0.21, 0.59, 0.2, nil, 0.41, "(GET 21%, PUT 20%)"},
		"GET":     {three[1:], -1, 0.2123, 0.59, 0.2, []string{spans.AttrTQGetUtilizationSource}, 0.4123, "(GET 21.2% as logged, PUT 20%)"},
		"GET_END": {three, 0, 0.2123, 0.59, 0.2, []string{spans.AttrTQGetUtilizationSource}, 0.4123, "(GET 21.2% as logged, PUT 20%)"},
		"COMPUTE": {[]stageSpan{three[0], three[2]}, -1, 0.21, 0.5876, 0.2, []string{spans.AttrTQComputeUtilizationSource}, 0.41, "(GET 21%, PUT 20%)"},
		"PUT":     {three[:2], -1, 0.21, 0.59, 0.2001, []string{spans.AttrTQPutUtilizationSource}, 0.4101, "(GET 21%, PUT 20% as logged)"},
		"both": {
			three[1:2], -1, 0.2123, 0.59, 0.2001,
			[]string{spans.AttrTQGetUtilizationSource, spans.AttrTQPutUtilizationSource},
			0.4124,
			"(GET 21.2%, PUT 20%, both as logged)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", perftest.Base, 1_000_000_000, tt.children...)
			m := f.Attributes()
			m.PutDouble(spans.AttrTQGetUtilizationReported, 0.2123)
			m.PutDouble(spans.AttrTQComputeUtilizationReported, 0.5876)
			m.PutDouble(spans.AttrTQPutUtilizationReported, 0.2001)
			td := b.Traces()
			if name != "none" {
				spans.PutIncomplete(m, "stage_missing")
			}
			if tt.open >= 0 {
				spans.PutIncomplete(perftest.SpanByID(t, td, 2+tt.open).Attributes(), "no_get_end")
			}
			perftest.Judge(newTest(t), td)

			assert.InDelta(t, tt.get, perftest.Double(t, f, spans.AttrTQGetUtilization), 1e-15)
			assert.InDelta(t, tt.compute, perftest.Double(t, f, spans.AttrTQComputeUtilization), 1e-15)
			assert.InDelta(t, tt.put, perftest.Double(t, f, spans.AttrTQPutUtilization), 1e-15)
			assert.InDelta(t, tt.overhead, perftest.Double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
			var reported []string
			for _, name := range shareSource {
				if spans.AttrText(m, name) == spans.TQShareReported {
					reported = append(reported, name)
				}
			}
			assert.Equal(t, tt.reported, reported)
			require.Equal(t, []string{spans.VerdictTQOverhead}, perftest.Verdicts(f))
			assert.Contains(t, perftest.Reasons(f)[0], tt.reason)
		})
	}
}

func TestChildrenAnywhereInTheResource(t *testing.T) {
	b := spans.NewBatch("test", "")
	for i := range 20 {
		addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i), 1000, stageSpan{"get", 0, int64(i)}, stageSpan{"compute", 100, 900},
			stageSpan{"put", 900, 1000})
	}
	td := b.Traces()
	// Backwards, and split over two scopes.
	list := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	backwards := ptrace.NewTraces()
	rs := backwards.ResourceSpans().AppendEmpty()
	td.ResourceSpans().At(0).Resource().CopyTo(rs.Resource())
	one, two := rs.ScopeSpans().AppendEmpty().Spans(), rs.ScopeSpans().AppendEmpty().Spans()
	for i := range list.Len() {
		to := one
		if i%3 == 0 {
			to = two
		}
		list.At(list.Len() - 1 - i).CopyTo(to.AppendEmpty())
	}
	// Without the verdict that depends on the order of events.
	steady := func(c *Config) { c.Fluctuation.MinSamples = 100 }
	perftest.Judge(newTest(t, steady), td)
	perftest.Judge(newTest(t, steady), backwards)
	for i := range 20 {
		straight := perftest.SpanByID(t, td, 10*i+10)
		assert.InDelta(t, float64(i)/1000, perftest.Double(t, straight, spans.AttrTQGetUtilization), 1e-15)
		assert.Equal(t, straight.Attributes().AsRaw(), perftest.SpanByID(t, backwards, 10*i+10).Attributes().AsRaw())
	}
}

func TestChildrenOfAnotherTraceAreNotOurs(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := addFunction(b, 1, "rollout", perftest.Base, 1000, stageSpan{"get", 0, 500})
	perftest.SpanByID(t, b.Traces(), 2).SetTraceID(pcommon.TraceID{9})
	perftest.Judge(newTest(t), b.Traces())
	assert.False(t, perftest.Has(f, spans.AttrTQGetUtilization))
}

// TestSharesAgainstOracle compares random functions with exact rational arithmetic and a union painted ns by ns.
func TestSharesAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := newTest(t)
	stages := []string{"get", "compute", "put"}
	for range 500 {
		b := spans.NewBatch("test", "")
		total := 1 + rng.Int64N(300)
		var children []stageSpan
		for range 1 + rng.IntN(8) {
			from := rng.Int64N(350) - 20
			children = append(children, stageSpan{stages[rng.IntN(3)], from, from + rng.Int64N(120)})
		}
		f := addFunction(b, 1, "rollout", perftest.Base, total, children...)
		f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.25)
		perftest.Judge(p, b.Traces())

		sum := map[string]int64{}
		painted := make([]bool, total)
		for _, c := range children {
			sum[c.stage] += c.to - c.from
			for ns := max(c.from, 0); ns < min(c.to, total); ns++ {
				painted[ns] = true
			}
		}
		var free int64
		for _, p := range painted {
			if !p {
				free++
			}
		}
		ratio := func(n int64) float64 { x, _ := big.NewRat(n, total).Float64(); return x }
		assert.InDelta(t, ratio(sum["get"]), perftest.Double(t, f, spans.AttrTQGetUtilization), 0)
		assert.InDelta(t, ratio(sum["compute"]), perftest.Double(t, f, spans.AttrTQComputeUtilization), 0)
		assert.InDelta(t, ratio(sum["put"]), perftest.Double(t, f, spans.AttrTQPutUtilization), 0)
		assert.InDelta(t, ratio(sum["get"]+sum["put"]), perftest.Double(t, f, spans.AttrTQOverheadUtilization), 0)
		assert.InDelta(t, ratio(free), perftest.Double(t, f, spans.AttrTQUnattributedUtilization), 0)
		assert.InDelta(t, math.Abs(ratio(sum["put"])-0.25), perftest.Double(t, f, spans.AttrTQUtilizationDisagreement), 0)
	}
}

// TestRetry: the same object again, and a fresh copy of the original (as a fan-out makes) again.
func TestRetry(t *testing.T) {
	build := func() ptrace.Traces {
		b := spans.NewBatch("test", "")
		for i := range 60 {
			ns := int64(1+i%2*9) * 20_000_000
			addFunction(b, 10*i+10, "rollout", perftest.Base+int64(i)*1e9, 500_000_000, stageSpan{"get", 0, ns}, stageSpan{"compute", ns, 400_000_000},
				stageSpan{"put", 400_000_000, 500_000_000})
			c := perftest.AddClient(b, 10*i+15, 0, spans.StageClientPut, perftest.Base, ns)
			c.Attributes().PutDouble(spans.AttrTQThroughput, 50*mib)
		}
		return b.Traces()
	}
	p := newTest(t)
	first := build()
	perftest.Judge(p, first)
	assert.Contains(t, perftest.Verdicts(perftest.SpanByID(t, first, 200)), saidGet)
	once := ptrace.NewTraces()
	first.CopyTo(once)
	window := func() map[windowKey]window {
		all := map[windowKey]window{}
		for _, k := range p.windows.byKey.Keys() {
			w, _ := p.windows.byKey.Peek(k)
			c := *w
			c.spans, c.ns = slices.Clone(w.spans), slices.Clone(w.ns)
			all[k] = c
		}
		return all
	}
	before := window()

	perftest.Judge(p, first)
	require.NoError(t, ptracetest.CompareTraces(once, first), "the second pass changed something")
	assert.Equal(t, before, window())

	perftest.Judge(p, build())
	assert.Equal(t, before, window(), "a span was fed twice")
}

func TestConcurrent(t *testing.T) {
	p := newTest(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				b := spans.NewBatch("test", "")
				f := addFunction(b, 1000*g+10*i+10, "rollout", perftest.Base, 1000, stageSpan{"get", 0, 10}, stageSpan{"compute", 10, 900},
					stageSpan{"put", 900, 1000})
				perftest.Judge(p, b.Traces())
				assert.InDelta(t, 0.11, perftest.Double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
			}
		})
	}
	wg.Wait()
}
