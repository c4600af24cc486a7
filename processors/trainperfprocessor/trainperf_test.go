package trainperfprocessor

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// base is the start of the test's functions, ns: 2026-02-11T08:40:00Z.
const base = 1_770_799_200_000_000_000

var resource = spans.Resource{Service: "verl", RunID: "run-1", Host: "10.4.1.33", PID: 15930}

func newTest(tb testing.TB, change ...func(*TQConfig)) *trainPerf {
	tb.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, f := range change {
		f(&cfg.TQ)
	}
	p, err := newTrainPerf(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(tb, err)
	return p
}

func process(tb testing.TB, p *trainPerf, td ptrace.Traces) {
	tb.Helper()
	_, err := p.processTraces(context.Background(), td)
	require.NoError(tb, err)
}

func spanID(n int) (id pcommon.SpanID) {
	binary.BigEndian.PutUint64(id[:], uint64(n))
	return id
}

var traceID = pcommon.TraceID{15: 1}

// stageSpan is one child: stage, start and end in ns from the start of its function.
type stageSpan struct {
	stage    string
	from, to int64
}

// addFunction appends a function of total ns and its children as tq_trace does. Ids count up from id.
func addFunction(b *spans.Batch, id int, name string, start, total int64, children ...stageSpan) ptrace.Span {
	f := b.Add(resource, spans.Span{Trace: traceID, ID: spanID(id), Name: name, Kind: ptrace.SpanKindInternal, Start: start, End: start + total, Source: spans.TimeAnchored})
	f.SetEndTimestamp(pcommon.Timestamp(start + total))
	f.Attributes().PutStr(spans.AttrTQFunction, name)
	f.Attributes().PutStr(spans.AttrTQStage, spans.StageFunction)
	for i, c := range children {
		s := b.Add(resource, spans.Span{
			Trace: traceID, ID: spanID(id + 1 + i), Parent: spanID(id), Name: "tq." + c.stage, Kind: ptrace.SpanKindInternal,
			Start: start + c.from, End: start + c.to, Source: spans.TimeAnchored,
		})
		s.SetEndTimestamp(pcommon.Timestamp(start + c.to)) // before its start, as a service's may be
		s.Attributes().PutStr(spans.AttrTQFunction, name)
		s.Attributes().PutStr(spans.AttrTQStage, c.stage)
	}
	return f
}

func addClient(b *spans.Batch, id, parent int, stage string, start, ns int64) ptrace.Span {
	s := b.Add(resource, spans.Span{Trace: traceID, ID: spanID(id), Parent: spanID(parent), Name: "tq." + stage, Kind: ptrace.SpanKindClient, Start: start, End: start + ns})
	s.SetEndTimestamp(pcommon.Timestamp(start + ns))
	s.Attributes().PutStr(spans.AttrTQFunction, "rollout")
	s.Attributes().PutStr(spans.AttrTQStage, stage)
	return s
}

// spanByID finds a span in what may have been reordered.
func spanByID(tb testing.TB, td ptrace.Traces, id int) ptrace.Span {
	tb.Helper()
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				if s.SpanID() == spanID(id) {
					return s
				}
			}
		}
	}
	require.Fail(tb, "no such span", "%d", id)
	return ptrace.Span{}
}

func double(tb testing.TB, s ptrace.Span, name string) float64 {
	tb.Helper()
	v, ok := s.Attributes().Get(name)
	require.True(tb, ok, name)
	return v.Double()
}

func has(s ptrace.Span, name string) bool {
	_, ok := s.Attributes().Get(name)
	return ok
}

func verdicts(s ptrace.Span) []string {
	v, ok := s.Attributes().Get(spans.AttrVerdict)
	if !ok {
		return nil
	}
	var names []string
	for _, name := range v.Slice().All() {
		names = append(names, name.Str())
	}
	return names
}

func severityOf(s ptrace.Span) string {
	return spans.AttrText(s.Attributes(), spans.AttrVerdictSeverity)
}

func reasons(s ptrace.Span) []string {
	var out []string
	for _, e := range s.Events().All() {
		out = append(out, spans.AttrText(e.Attributes(), spans.AttrVerdictReason))
	}
	return out
}

// seedFunction is the example of the mission's guide: 0.914024 s, of which GET 0.052, COMPUTE 0.8, PUT 0.062024.
func seedFunction(b *spans.Batch) ptrace.Span {
	f := addFunction(b, 100, "rollout", base, 914_024_000,
		stageSpan{"get", 0, 52_000_000}, stageSpan{"compute", 52_000_000, 852_000_000}, stageSpan{"put", 852_000_000, 914_024_000})
	f.Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.0569)
	f.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.8752)
	f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.0678)
	return f
}

func TestSeedExample(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := seedFunction(b)
	process(t, newTest(t), b.Traces())

	assert.InDelta(t, 52_000.0/914_024.0, double(t, f, spans.AttrTQGetUtilization), 1e-15)
	assert.InDelta(t, 800_000.0/914_024.0, double(t, f, spans.AttrTQComputeUtilization), 1e-15)
	assert.InDelta(t, 62_024.0/914_024.0, double(t, f, spans.AttrTQPutUtilization), 1e-15)
	assert.InDelta(t, 114_024.0/914_024.0, double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
	assert.Zero(t, double(t, f, spans.AttrTQUnattributedUtilization))
	// PUT is the one the log rounds down: 6.786 % printed as 6.78 %.
	assert.InDelta(t, 62_024.0/914_024.0-0.0678, double(t, f, spans.AttrTQUtilizationDisagreement), 1e-15)
	assert.Equal(t, []string{spans.VerdictTQComputeShareGood}, verdicts(f))
	assert.Equal(t, spans.SeverityGood, severityOf(f))
	assert.Zero(t, f.Events().Len(), "a good verdict needs no explanation")
}

func TestFunctionVerdicts(t *testing.T) {
	for name, tt := range map[string]struct {
		get, compute, put int64 // of 1000
		want              []string
		severity          string
	}{
		"compute above 80":          {50, 801, 50, []string{spans.VerdictTQComputeShareGood}, "good"},
		"compute exactly 80":        {50, 800, 50, nil, ""},
		"overhead just below 20":    {100, 700, 99, nil, ""},
		"overhead exactly 20":       {100, 700, 100, []string{spans.VerdictTQOverheadElevated}, "warning"},
		"overhead exactly 30":       {150, 600, 150, []string{spans.VerdictTQOverheadElevated}, "warning"},
		"overhead above 30":         {150, 600, 151, []string{spans.VerdictTQOverheadHigh}, "bad"},
		"nothing but unattributed":  {0, 0, 0, nil, ""},
		"all get":                   {1000, 0, 0, []string{spans.VerdictTQOverheadHigh}, "bad"},
		"get and compute, no put":   {10, 990, 0, []string{spans.VerdictTQComputeShareGood}, "good"},
		"compute beside the others": {400, 900, 0, []string{spans.VerdictTQOverheadHigh}, "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", base, 1000,
				stageSpan{"get", 0, tt.get}, stageSpan{"compute", 0, tt.compute}, stageSpan{"put", 1000 - tt.put, 1000})
			process(t, newTest(t), b.Traces())
			assert.Equal(t, tt.want, verdicts(f))
			assert.Equal(t, tt.severity, severityOf(f))
			for _, e := range f.Events().All() {
				assert.Equal(t, spans.EventVerdict, e.Name())
				assert.Equal(t, f.EndTimestamp(), e.Timestamp())
			}
		})
	}
}

func TestReasonHasTheNumbersAndTheAdvice(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := addFunction(b, 1, "rollout", base, 914_024_000,
		stageSpan{"get", 0, 200_000_000}, stageSpan{"compute", 200_000_000, 700_000_000}, stageSpan{"put", 700_000_000, 900_000_000})
	c := addClient(b, 10, 2, spans.StageClientPut, base, 200_000_000)
	c.Attributes().PutInt(spans.AttrTQDataSize, 15_938_355) // 15.2 MiB
	c.Attributes().PutDouble(spans.AttrTQThroughput, 15_938_355/0.2)
	process(t, newTest(t), b.Traces())

	assert.Equal(t, []string{"TransferQueue took 43.8% of the 0.914024 s of rollout (GET 21.9%, PUT 21.9%), above the limit of 30%: " +
		"check the storage backend's configuration (Redis or distributed storage), tune the batch size so that fewer transfers are needed, " +
		"consider compressing the data."}, reasons(f))
	e := f.Events().At(0).Attributes()
	value, _ := e.Get(spans.AttrVerdictValue)
	threshold, _ := e.Get(spans.AttrVerdictThreshold)
	assert.InDelta(t, 400_000.0/914_024.0, value.Double(), 1e-15)
	assert.InDelta(t, 0.3, threshold.Double(), 0)

	assert.Equal(t, []string{"PUT moved 15.2 MiB at 76 MiB/s, below the limit of 100 MiB/s: " +
		"check the network bandwidth, the IOPS of the storage, and how the data is serialised."}, reasons(c))
}

// TestOneConclusion: 240 calls above the limit were 240 red bars. Now it is said of the first ones, then once in a hundred, with what it means for the run.
func TestOneConclusion(t *testing.T) {
	for name, tt := range map[string]struct {
		high func(i int) bool
		said int
		last string
	}{
		"nearly all calls":  {func(i int) bool { return i%24 != 0 }, 8 + 3, "It is so for 96 of the last 100 calls. TransferQueue took 40.5% of the time of the run's 210 calls so far; 201 of them were above 30%."},
		"those of one host": {func(i int) bool { return i%5 == 4 }, 48, "It is so for 20 of the last 100 calls. TransferQueue took 14% of the time of the run's 210 calls so far; 42 of them were above 30%, all on 10.4.1.33."},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTest(t, func(c *TQConfig) { c.Fluctuation.MinSamples = 100; c.Fluctuation.Threshold = 9 })
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
				f := addFunction(b, 10*i+10, "rollout", base+int64(i)*1e9, 1000, stageSpan{"get", 0, get}, stageSpan{"compute", get, 1000})
				host := "10.4.1.33"
				if name == "those of one host" && !tt.high(i) {
					host = "10.4.1.34"
				}
				td := b.Traces()
				td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrHostName, host)
				again := ptrace.NewTraces()
				td.CopyTo(again)
				process(t, p, td)
				process(t, p, again)
				require.NoError(t, ptracetest.CompareTraces(td, again), "a batch that comes again")
				if slices.Contains(verdicts(f), spans.VerdictTQOverheadHigh) {
					said++
					if _, more, ok := strings.Cut(reasons(f)[0], "compressing the data. "); ok {
						last = more
					}
				}
			}
			assert.Equal(t, tt.said, said)
			assert.Equal(t, tt.last, last)
		})
	}
}

// TestSummary: one line that a person reads first.
func TestSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(m pcommon.Map)
		want   string
	}{
		"whole": {func(m pcommon.Map) {
			m.PutInt(spans.AttrTQBatchSize, 64)
			m.PutInt(spans.AttrProcessPID, 1531903)
		}, "TQ overhead 41.6 % · get 21.8 % · put 19.8 %; batch 64; worker 1531903"},
		"no batch": {func(pcommon.Map) {}, "TQ overhead 41.6 % · get 21.8 % · put 19.8 %"},
		"died": {func(m pcommon.Map) {
			spans.PutIncomplete(m, "no_compute_end")
			m.PutInt(spans.AttrTQBatchSize, 64)
		}, "incomplete (no_compute_end); batch 64"},
		"a line lost": {func(m pcommon.Map) {
			spans.PutIncomplete(m, "stage_missing")
			m.PutDouble(spans.AttrTQGetUtilizationReported, 0.21)
		}, "TQ overhead 41.6 % · get 21.8 % · put 19.8 %; incomplete (stage_missing)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "generate_sequences", base, 1000, stageSpan{"get", 0, 218}, stageSpan{"compute", 218, 802}, stageSpan{"put", 802, 1000})
			tt.change(f.Attributes())
			process(t, newTest(t), b.Traces())
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
		"above 500 MiB/s":       {set(spans.AttrTQThroughput, 500*mib+1), []string{spans.VerdictTQThroughputGood}},
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
			c := addClient(b, 1, 0, spans.StageClientGet, base, 1e9)
			tt.change(c)
			process(t, newTest(t), b.Traces())
			assert.Equal(t, tt.want, verdicts(c))
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
		want     []string // the shares that are there
		verdicts []string
	}{
		"no stages":             {1000, nil, func(ptrace.Span) {}, nil, nil},
		"no stages, one report": {1000, nil, report, shares[:1], nil},
		"no stages, full report": {1000, nil, func(f ptrace.Span) {
			report(f)
			f.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.5)
			f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.09)
		}, shares[:4], []string{spans.VerdictTQOverheadHigh}},
		"no duration": {0, three, func(ptrace.Span) {}, nil, nil},
		"negative":    {-5, three, func(ptrace.Span) {}, nil, nil},
		"incomplete, end never seen": {1000, three, func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
		}, nil, nil},
		"incomplete, end seen": {1000, three, func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
			report(f)
		}, shares, []string{spans.VerdictTQOverheadHigh}},
		"incomplete, end seen, no PUT": {1000, three[:2], func(f ptrace.Span) {
			f.Attributes().PutBool(spans.AttrIncomplete, true)
			report(f)
		}, shares[:2], nil},
		"complete without PUT":                  {1000, three[:2], func(ptrace.Span) {}, shares, []string{spans.VerdictTQOverheadHigh}},
		"a stage with its end before its start": {1000, append(slices.Clone(three), stageSpan{"put", 9, 3}), func(ptrace.Span) {}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", base, tt.total, tt.children...)
			tt.change(f)
			process(t, newTest(t), b.Traces())
			var got []string
			for _, name := range shares {
				if has(f, name) {
					got = append(got, name)
				}
			}
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.verdicts, verdicts(f))
			for _, r := range reasons(f) {
				assert.Equal(t, strings.Contains(name, "report"), strings.Contains(r, "as reported by the log"), r)
			}
		})
	}
}

// TestLostStageLine: FUNCTION_END states all shares, so one lost line of a stage must not silence its function. What is there is recomputed, the rest is the
// log's, and each share says which it is.
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
		"GET":     {three[1:], -1, 0.2123, 0.59, 0.2, []string{spans.AttrTQGetUtilizationSource}, 0.4123, "(GET 21.2% as reported by the log, PUT 20%)"},
		"GET_END": {three, 0, 0.2123, 0.59, 0.2, []string{spans.AttrTQGetUtilizationSource}, 0.4123, "(GET 21.2% as reported by the log, PUT 20%)"},
		"COMPUTE": {[]stageSpan{three[0], three[2]}, -1, 0.21, 0.5876, 0.2, []string{spans.AttrTQComputeUtilizationSource}, 0.41, "(GET 21%, PUT 20%)"},
		"PUT":     {three[:2], -1, 0.21, 0.59, 0.2001, []string{spans.AttrTQPutUtilizationSource}, 0.4101, "(GET 21%, PUT 20% as reported by the log)"},
		"both":    {three[1:2], -1, 0.2123, 0.59, 0.2001, []string{spans.AttrTQGetUtilizationSource, spans.AttrTQPutUtilizationSource}, 0.4124, "(GET 21.2%, PUT 20%, both as reported by the log)"},
	} {
		t.Run(name, func(t *testing.T) {
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", base, 1_000_000_000, tt.children...)
			m := f.Attributes()
			m.PutDouble(spans.AttrTQGetUtilizationReported, 0.2123)
			m.PutDouble(spans.AttrTQComputeUtilizationReported, 0.5876)
			m.PutDouble(spans.AttrTQPutUtilizationReported, 0.2001)
			td := b.Traces()
			if name != "none" {
				spans.PutIncomplete(m, "stage_missing")
			}
			if tt.open >= 0 {
				spans.PutIncomplete(spanByID(t, td, 2+tt.open).Attributes(), "no_get_end")
			}
			process(t, newTest(t), td)

			assert.InDelta(t, tt.get, double(t, f, spans.AttrTQGetUtilization), 1e-15)
			assert.InDelta(t, tt.compute, double(t, f, spans.AttrTQComputeUtilization), 1e-15)
			assert.InDelta(t, tt.put, double(t, f, spans.AttrTQPutUtilization), 1e-15)
			assert.InDelta(t, tt.overhead, double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
			var reported []string
			for _, name := range shareSource {
				if spans.AttrText(m, name) == spans.TQShareReported {
					reported = append(reported, name)
				}
			}
			assert.Equal(t, tt.reported, reported)
			require.Equal(t, []string{spans.VerdictTQOverheadHigh}, verdicts(f))
			assert.Contains(t, reasons(f)[0], tt.reason)
		})
	}
}

func TestChildrenAnywhereInTheResource(t *testing.T) {
	b := spans.NewBatch("test", "")
	for i := range 20 {
		addFunction(b, 10*i+10, "rollout", base+int64(i), 1000, stageSpan{"get", 0, int64(i)}, stageSpan{"compute", 100, 900}, stageSpan{"put", 900, 1000})
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
	steady := func(c *TQConfig) { c.Fluctuation.MinSamples = 100 }
	process(t, newTest(t, steady), td)
	process(t, newTest(t, steady), backwards)
	for i := range 20 {
		straight := spanByID(t, td, 10*i+10)
		assert.InDelta(t, float64(i)/1000, double(t, straight, spans.AttrTQGetUtilization), 1e-15)
		assert.Equal(t, straight.Attributes().AsRaw(), spanByID(t, backwards, 10*i+10).Attributes().AsRaw())
	}
}

func TestChildrenOfAnotherTraceAreNotOurs(t *testing.T) {
	b := spans.NewBatch("test", "")
	f := addFunction(b, 1, "rollout", base, 1000, stageSpan{"get", 0, 500})
	spanByID(t, b.Traces(), 2).SetTraceID(pcommon.TraceID{9})
	process(t, newTest(t), b.Traces())
	assert.False(t, has(f, spans.AttrTQGetUtilization))
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
		f := addFunction(b, 1, "rollout", base, total, children...)
		f.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.25)
		process(t, p, b.Traces())

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
		assert.InDelta(t, ratio(sum["get"]), double(t, f, spans.AttrTQGetUtilization), 0)
		assert.InDelta(t, ratio(sum["compute"]), double(t, f, spans.AttrTQComputeUtilization), 0)
		assert.InDelta(t, ratio(sum["put"]), double(t, f, spans.AttrTQPutUtilization), 0)
		assert.InDelta(t, ratio(sum["get"]+sum["put"]), double(t, f, spans.AttrTQOverheadUtilization), 0)
		assert.InDelta(t, ratio(free), double(t, f, spans.AttrTQUnattributedUtilization), 0)
		assert.InDelta(t, math.Abs(ratio(sum["put"])-0.25), double(t, f, spans.AttrTQUtilizationDisagreement), 0)
	}
}

// TestFluctuationAgainstOracle feeds random times and computes the spread of the last hundred in two passes of floats.
func TestFluctuationAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	p := newTest(t)
	var gets []float64
	warned, silentUntil := 0, 0 // the verdict comes at most once per hundred
	for i := range 1000 {
		ns := int64(40_000_000 * (1 + 0.1*rng.NormFloat64()))
		if i/200%2 == 1 { // a bad phase
			ns = int64(40_000_000 * rng.ExpFloat64())
		}
		ns = max(ns, 0)
		b := spans.NewBatch("test", "")
		f := addFunction(b, 10*i+10, "rollout", base+int64(i)*1e9, 914_024_000, stageSpan{"get", 0, ns}, stageSpan{"compute", ns, 900_000_000}, stageSpan{"put", 900_000_000, 905_000_000})
		process(t, p, b.Traces())

		gets = append(gets, float64(ns)/1e9)
		last := gets[max(0, len(gets)-100):]
		mean, square := 0.0, 0.0
		for _, x := range last {
			mean += x / float64(len(last))
		}
		for _, x := range last {
			square += (x - mean) * (x - mean) / float64(len(last))
		}
		cv := math.Sqrt(square) / mean
		want := len(last) >= 20 && cv > 0.5 && i >= silentUntil
		if want {
			silentUntil = i + 100
		}
		assert.Equal(t, want, slices.Contains(verdicts(f), spans.VerdictTQGetFluctuating), "function %d, cv %v", i, cv)
		assert.NotContains(t, verdicts(f), spans.VerdictTQPutFluctuating)
		for _, e := range f.Events().All() {
			if spans.AttrText(e.Attributes(), spans.AttrVerdictName) == spans.VerdictTQGetFluctuating {
				warned++
				v, _ := e.Attributes().Get(spans.AttrVerdictValue)
				assert.InDelta(t, cv, v.Double(), 1e-12)
				r := spans.AttrText(e.Attributes(), spans.AttrVerdictReason)
				assert.Contains(t, r, fmt.Sprintf("over the last %d the standard deviation was", len(last)))
				assert.Contains(t, r, "above the limit of 50%: the network or the storage is not stable.")
			}
		}
	}
	assert.GreaterOrEqual(t, warned, 4)
	assert.LessOrEqual(t, warned, 10)
}

func TestFluctuationOfLoneClientOperations(t *testing.T) {
	p := newTest(t)
	var said []int
	for i := range 240 {
		b := spans.NewBatch("test", "")
		lone := addClient(b, i+1, 0, spans.StageClientGet, base, int64(1+i%2*9)*1e6)
		// The same inside a function belongs to the window of tq.get and says nothing here.
		inner := addClient(b, 1000+i, 7, spans.StageClientPut, base, int64(1+i%2*9)*1e6)
		process(t, p, b.Traces())
		assert.Empty(t, verdicts(inner))
		if v := verdicts(lone); len(v) > 0 {
			assert.Equal(t, []string{spans.VerdictTQGetFluctuating}, v)
			assert.Equal(t, spans.SeverityWarning, severityOf(lone))
			said = append(said, i)
		}
	}
	assert.Equal(t, []int{19, 119, 219}, said, "as soon as there are 20, then once per window")
}

func TestWindowsAreSeparate(t *testing.T) {
	w := newWindows(createDefaultConfig().(*Config).TQ.Fluctuation)
	for i := range 50 {
		// Each population is steady; mixed they would not be.
		for j, key := range []windowKey{
			{"a", "r", "f", spans.TQGet}, {"b", "r", "f", spans.TQGet}, {"a", "s", "f", spans.TQGet}, {"a", "r", "g", spans.TQGet}, {"a", "r", "f", spans.TQPut},
		} {
			s, _ := w.add(key, uint64(i), uint64(1+100*j))
			assert.Zero(t, s.cv)
		}
	}
	assert.Equal(t, 5, w.byKey.Len())
}

func TestWindowsAreBounded(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings())
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	for i := range maxWindows + 5 {
		addFunction(b, 10*i+10, fmt.Sprint("f", i), base, 1000, stageSpan{"get", 0, 10})
	}
	process(t, p, b.Traces())
	assert.Equal(t, maxWindows, p.tq.windows.byKey.Len())
	metadatatest.AssertEqualProcessorTrainPerfWindowsEvicted(t, tel, []metricdata.DataPoint[int64]{{Value: 5}}, metricdatatest.IgnoreTimestamp())
}

func TestWindowOfHugeTimesStaysExact(t *testing.T) {
	var w window
	for i := range uint64(3 * maxWindow) {
		w.add(i, maxWindowNS-i%2, maxWindow)
	}
	s := w.spread()
	assert.InEpsilon(t, 0.5/(maxWindowNS-0.5), s.cv, 1e-9)
	assert.InEpsilon(t, (maxWindowNS-0.5)/1e9, s.mean, 1e-12)
}

// TestRetry: the same object again, and a fresh copy of the original (as a fan-out makes) again.
func TestRetry(t *testing.T) {
	build := func() ptrace.Traces {
		b := spans.NewBatch("test", "")
		for i := range 60 {
			ns := int64(1+i%2*9) * 20_000_000
			addFunction(b, 10*i+10, "rollout", base+int64(i)*1e9, 500_000_000, stageSpan{"get", 0, ns}, stageSpan{"compute", ns, 400_000_000}, stageSpan{"put", 400_000_000, 500_000_000})
			c := addClient(b, 10*i+15, 0, spans.StageClientPut, base, ns)
			c.Attributes().PutDouble(spans.AttrTQThroughput, 50*mib)
		}
		return b.Traces()
	}
	p := newTest(t)
	first := build()
	process(t, p, first)
	assert.Contains(t, verdicts(spanByID(t, first, 200)), spans.VerdictTQGetFluctuating)
	once := ptrace.NewTraces()
	first.CopyTo(once)
	window := func() map[windowKey]window {
		all := map[windowKey]window{}
		for _, k := range p.tq.windows.byKey.Keys() {
			w, _ := p.tq.windows.byKey.Peek(k)
			c := *w
			c.spans, c.ns = slices.Clone(w.spans), slices.Clone(w.ns)
			all[k] = c
		}
		return all
	}
	before := window()

	process(t, p, first)
	require.NoError(t, ptracetest.CompareTraces(once, first), "the second pass changed something")
	assert.Equal(t, before, window())

	process(t, p, build())
	assert.Equal(t, before, window(), "a span was fed twice")
}

func TestConcurrent(t *testing.T) {
	p := newTest(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 50 {
				b := spans.NewBatch("test", "")
				f := addFunction(b, 1000*g+10*i+10, "rollout", base, 1000, stageSpan{"get", 0, 10}, stageSpan{"compute", 10, 900}, stageSpan{"put", 900, 1000})
				process(t, p, b.Traces())
				assert.InDelta(t, 0.11, double(t, f, spans.AttrTQOverheadUtilization), 1e-15)
			}
		})
	}
	wg.Wait()
}

func TestOwnTelemetry(t *testing.T) {
	tel := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, tel.Shutdown(context.Background())) })
	p, err := newTrainPerf(createDefaultConfig().(*Config), tel.NewTelemetrySettings())
	require.NoError(t, err)
	b := spans.NewBatch("test", "")
	addFunction(b, 10, "a", base, 1000, stageSpan{"get", 0, 10})
	addFunction(b, 20, "a", base, 1000)
	addFunction(b, 30, "a", base, 0)
	addFunction(b, 40, "a", base, 1000).Attributes().PutBool(spans.AttrIncomplete, true)
	carry(addFunction(b, 50, "a", base, 1000), 0.1, 0.5, 0.1)
	lost := addFunction(b, 60, "a", base, 1000).Attributes()
	part := addFunction(b, 70, "a", base, 1000, stageSpan{"get", 0, 10}).Attributes()
	for _, m := range []pcommon.Map{lost, part} {
		spans.PutIncomplete(m, "stage_missing")
		for _, name := range []string{spans.AttrTQGetUtilizationReported, spans.AttrTQComputeUtilizationReported, spans.AttrTQPutUtilizationReported} {
			m.PutDouble(name, 0.01)
		}
	}
	process(t, p, b.Traces())
	process(t, p, b.Traces())
	point := func(outcome string, n int64) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("outcome", outcome))}
	}
	metadatatest.AssertEqualProcessorTrainPerfFunctions(t, tel, []metricdata.DataPoint[int64]{
		point("measured", 1), point("already_measured", 7), point("no_stages", 2), point("partly_reported", 1), point("no_duration", 1), point("incomplete", 1), point("self_measured", 1),
	}, metricdatatest.IgnoreTimestamp())
}

// TestGolden runs the whole component on a batch with a function of every kind.
func TestGolden(t *testing.T) {
	in, err := golden.ReadTraces(filepath.Join("testdata", "in.yaml"))
	require.NoError(t, err)
	sink := new(consumertest.TracesSink)
	p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), sink)
	require.NoError(t, err)
	assert.True(t, p.Capabilities().MutatesData)
	require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
	require.NoError(t, p.ConsumeTraces(context.Background(), in))
	require.NoError(t, p.Shutdown(context.Background()))
	require.Len(t, sink.AllTraces(), 1)
	compare(t, "want.yaml", sink.AllTraces()[0])
}

var update = flag.Bool("update", false, "write the golden files anew")

// compare compares with a golden file.
func compare(t *testing.T, file string, got ptrace.Traces) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		require.NoError(t, golden.WriteTracesToFile(path, got))
	}
	want, err := golden.ReadTraces(path)
	require.NoError(t, err)
	require.NoError(t, ptracetest.CompareTraces(want, got, ptracetest.IgnoreSpansOrder()))
}

// FuzzProcess: whatever OTLP holds, nothing panics and no span is lost or made.
func FuzzProcess(f *testing.F) {
	b := spans.NewBatch("test", "")
	seedFunction(b)
	addClient(b, 200, 101, spans.StageClientGet, base, 1e6).Attributes().PutDouble(spans.AttrTQThroughput, 1)
	odd := addFunction(b, 300, "odd", math.MinInt64, 1, stageSpan{"get", math.MinInt64, 0}, stageSpan{"put", 0, -1}, stageSpan{"get", 0, math.MaxInt64})
	odd.Attributes().PutEmptyMap(spans.AttrIncomplete)
	odd.Attributes().PutEmptySlice(spans.AttrTQGetUtilizationReported)
	carry(addFunction(b, 350, "own", base, 1000, stageSpan{"get", 0, 10}), int64(1), "0.5", 0.5)
	addClient(b, 360, 9999, spans.StageGet, base, 10)
	addPass(b, 400, 2, realPass)
	addGroup(b, 500, spans.SpanRPCCalls, attrs{spans.AttrZMQCallDuration: []any{1.0}, spans.AttrZMQTransport: map[string]any{"tcp": true}})
	addCollective(b, 600, "AllReduce", allReduce.with(missing(spans.NCCLIncompleteGap, int64(5))).with(late(1, 0.5)))
	addRank(b, 601, 600, 3)
	addCollective(b, 700, "rpc.pass", attrs{spans.AttrNCCLRanks: int64(2), spans.AttrNCCLHang: true, spans.AttrNCCLRanksMissing: []any{1.0, map[string]any{"a": true}}})
	raw, err := new(ptrace.ProtoMarshaler).MarshalTraces(b.Traces())
	require.NoError(f, err)
	f.Add(raw)
	p := newTest(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(raw)
		if err != nil {
			return
		}
		n := td.SpanCount()
		process(t, p, td)
		once := ptrace.NewTraces()
		td.CopyTo(once)
		process(t, p, td)
		assert.Equal(t, n, td.SpanCount())
		a, err := new(ptrace.ProtoMarshaler).MarshalTraces(once)
		require.NoError(t, err)
		b, err := new(ptrace.ProtoMarshaler).MarshalTraces(td)
		require.NoError(t, err)
		assert.Equal(t, a, b, "processing twice differs from processing once")
	})
}

// BenchmarkProcess: batches of 100 healthy functions of six spans each, as tq_trace sends them. ns/span and
// allocs/span include the attributes added to the function and client spans.
func BenchmarkProcess(b *testing.B) {
	batch := spans.NewBatch("bench", "")
	const functions = 100
	for i := range functions {
		start := base + int64(i)*1e9
		seed := addFunction(batch, 10*i+10, "rollout", start, 914_024_000,
			stageSpan{"get", 0, 52_000_000}, stageSpan{"compute", 52_000_000, 852_000_000}, stageSpan{"put", 852_000_000, 914_024_000})
		seed.Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.0569)
		seed.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.8752)
		seed.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.0678)
		addClient(batch, 10*i+14, 10*i+11, spans.StageClientGet, start, 51_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 300*mib)
		addClient(batch, 10*i+15, 10*i+13, spans.StageClientPut, start, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 253.33*mib)
	}
	// The copies, which the processor writes into, are made outside the measured time.
	const copies = 64
	fresh := make([]ptrace.Traces, copies)
	p := newTest(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n%copies == 0 {
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
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(6*functions), "ns/span")
}

// TestVerdictStatus: a bad verdict is red in Jaeger, with its sentence, unless the span has an error of its own, or the config says never; each verdict is a tag.
func TestVerdictStatus(t *testing.T) {
	for name, tt := range map[string]struct {
		put    int64 // ns of 1000
		own    string
		status bool
		code   ptrace.StatusCode
		tags   []string
	}{
		"bad":             {450, "", true, ptrace.StatusCodeError, []string{spans.VerdictTQOverheadHigh}},
		"warning":         {150, "", true, ptrace.StatusCodeUnset, []string{spans.VerdictTQOverheadElevated}},
		"good":            {50, "", true, ptrace.StatusCodeUnset, []string{spans.VerdictTQComputeShareGood}},
		"never":           {450, "", false, ptrace.StatusCodeUnset, []string{spans.VerdictTQOverheadHigh}},
		"an error before": {450, "CUDA out of memory", true, ptrace.StatusCodeError, []string{spans.VerdictTQOverheadHigh}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.VerdictStatus = tt.status
			p, err := newTrainPerf(cfg, componenttest.NewNopTelemetrySettings())
			require.NoError(t, err)
			b := spans.NewBatch("test", "")
			f := addFunction(b, 1, "rollout", base, 1000, stageSpan{"get", 0, 50}, stageSpan{"compute", 50, 1000 - tt.put}, stageSpan{"put", 1000 - tt.put, 1000})
			want := ""
			if tt.own != "" {
				f.Status().SetCode(ptrace.StatusCodeError)
				f.Status().SetMessage(tt.own)
				want = tt.own
			}
			process(t, p, b.Traces())
			if tt.code == ptrace.StatusCodeError && want == "" {
				want = reasons(f)[0]
			}
			assert.Equal(t, tt.code, f.Status().Code())
			assert.Equal(t, want, f.Status().Message())
			for _, name := range tt.tags {
				v, ok := f.Attributes().Get(spans.AttrVerdictPrefix + name)
				assert.True(t, ok && v.Bool(), name)
			}
		})
	}
}
