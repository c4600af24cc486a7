package show

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

const second = int64(1e9)

// training makes 20 records of 10 steps each, as train_log, flagscale and train_perf do of a Megatron log and of perf_monitor; steps
// 120 and 150 are slow, 170 has a loss of NaN if asked.
func training(nan bool) ptrace.Traces {
	b := spans.NewBatch("test", "")
	res := spans.Resource{Service: "llm", RunID: "run-9"}
	at := int64(1770799200) * second
	trace := func(n int64) pcommon.TraceID { return spans.StepTraceID("run-9", n) }
	b.AddRun(spans.RunSpan{Run: res.RunID, Service: res.Service, File: "train.log", Start: at, Time: spans.TimeDerived})
	for n := int64(10); n <= 200; n += 10 {
		seconds, mfu := 2.68+float64(n%3)*0.01, 0.42
		if n == 120 || n == 150 {
			seconds, mfu = 5.4, 0.209
		}
		start := at
		at += int64(seconds*10) * second
		key := []byte{byte(n)}
		id := spans.SpanID(trace(n), spans.SpanStep, key)
		s := b.Add(res, spans.Span{Trace: trace(n), ID: id, Name: spans.SpanStep, Start: start, End: at})
		m := s.Attributes()
		m.PutStr(spans.AttrSource, "megatron")
		m.PutInt(spans.AttrIteration, n)
		m.PutInt(spans.AttrStepsCovered, 10)
		m.PutDouble(spans.AttrStepDuration, seconds)
		m.PutDouble(spans.AttrLoss, 11-float64(n)/40)
		m.PutDouble(spans.AttrTokenThroughput, 65536/seconds)
		m.PutDouble(spans.AttrDeviceFlopThroughputReported, mfu*312e12+0.04e12)
		m.PutDouble(spans.AttrDeviceFlopThroughput, mfu*312e12)
		m.PutDouble(spans.AttrMFU, mfu)
		if mfu < 0.3 {
			verdictOn(s, spans.SeverityWarning, verdict{
				view.Said{Name: spans.VerdictMFULow}, "MFU is 20.9%: 65.2 of 312 TFLOP/s per device, below the limit of 30.0%.", mfu, 0.3,
			})
		}
		if nan && n == 170 {
			m.PutStr(spans.AttrLoss, "NaN")
			verdictOn(s, spans.SeverityBad, verdict{view.Said{Name: spans.VerdictLossNotFinite}, "The loss is NaN.", 0, 0})
		}
		addParts(b, spans.Span{Trace: trace(n), ID: id, Start: start}, key, seconds)
		if n%100 == 0 {
			e := b.Add(res, spans.Span{Trace: trace(n), ID: spans.SpanID(trace(n), spans.SpanEvaluation, key), Name: spans.SpanEvaluation, Start: at, End: at})
			e.Attributes().PutStr(spans.AttrSource, "megatron")
			e.Attributes().PutDouble(spans.AttrValidationLoss, 11.06-float64(n)/40)
			f := b.Add(res, spans.Span{Trace: trace(n), ID: spans.SpanID(trace(n), "other", key), Name: spans.SpanStep, Start: at - 2*second, End: at})
			f.Attributes().PutStr(spans.AttrSource, "perf_monitor")
			f.Attributes().PutDouble(spans.AttrDeviceFlopThroughputReported, 34e12)
		}
	}
	return b.Traces()
}

// addParts adds the parts of a step of Megatron, and the ranks below a part.
func addParts(b *spans.Batch, step spans.Span, key []byte, seconds float64) {
	res := spans.Resource{Service: "llm", RunID: "run-9"}
	parts := map[string]pcommon.SpanID{"": step.ID}
	for _, part := range []struct {
		name, above string
		from, share float64 // of a step
	}{
		{"forward-backward", "", 0, 0.93},
		{"forward-compute", "forward-backward", 0, 0.3},
		{"batch-generator", "forward-compute", 0, 0.01},
		{"backward-compute", "forward-backward", 0.3, 0.6},
		{"optimizer", "", 0.93, 0.04},
	} {
		took, from := seconds*part.share, step.Start+int64(seconds*part.from*1e9)
		until := from + int64(took*1e9)
		parts[part.name] = spans.SpanID(step.Trace, part.name, key)
		c := b.Add(res, spans.Span{Trace: step.Trace, ID: parts[part.name], Parent: parts[part.above], Name: part.name, Start: from, End: until})
		c.Attributes().PutStr(spans.AttrStage, part.name)
		c.Attributes().PutStr(spans.AttrStageOrder, spans.OrderTrainer)
		c.Attributes().PutDouble(spans.AttrStageDurationMin, took*0.98)
		if part.name != "backward-compute" {
			continue
		}
		c.Attributes().PutInt(spans.AttrStageRankSlowest, 3)
		c.Attributes().PutDouble(spans.AttrStageDurationMedian, took*0.985)
		for rank := range int64(4) { // with --timing-log-option all
			r := b.Add(res, spans.Span{
				Trace: step.Trace, ID: spans.SpanID(step.Trace, spans.SpanRank, key, []byte{byte(rank)}), Parent: parts[part.name],
				Name: fmt.Sprint(spans.SpanRank, rank), Start: from, End: until,
			})
			r.Attributes().PutInt(spans.AttrRank, rank)
		}
	}
}

func verdictOn(s ptrace.Span, severity string, v verdict) {
	s.Attributes().PutStr(spans.AttrVerdictSeverity, severity)
	s.Attributes().PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(v.Name)
	e := s.Events().AppendEmpty()
	e.SetName(spans.EventVerdict)
	e.Attributes().PutStr(spans.AttrVerdictName, v.Name)
	e.Attributes().PutStr(spans.AttrVerdictReason, v.reason)
	if v.threshold != 0 {
		e.Attributes().PutDouble(spans.AttrVerdictValue, v.value)
		e.Attributes().PutDouble(spans.AttrVerdictThreshold, v.threshold)
	}
}

func TestStepsGolden(t *testing.T) {
	url := answering(t, func(service string) ptrace.Traces { return training(service == "nan") })
	for golden, service := range map[string]string{"steps.txt": "llm", "steps_nan.txt": "nan"} {
		got, err := draw(t, options{jaeger: url, service: service, width: 120}, false)
		require.NoError(t, err)
		compare(t, golden, got)
	}
}

// A log without times and durations: "time p50 1 ns", and a loss in the order of ids, which rose instead of falling.
func TestStepsWithoutTimes(t *testing.T) {
	b := spans.NewBatch("test", "")
	for i := range int64(40) {
		at := 1770799200 * second
		n := (i*7)%40 + 1
		id := spans.StepTraceID("run-9", n)
		res := spans.Resource{Service: "sft", RunID: "run-9"}
		s := b.Add(res, spans.Span{Trace: id, ID: spans.SpanID(id, spans.SpanStep), Name: spans.SpanStep, Start: at, End: at})
		s.Attributes().PutStr(spans.AttrSource, "hf")
		s.Attributes().PutBool(spans.AttrTimePoint, true)
		s.Attributes().PutInt([]string{spans.AttrIteration, spans.AttrRecord}[i%2], n)
		s.Attributes().PutDouble(spans.AttrLoss, float64(100-n)+float64(i%2)*-50) // records without a step come behind records with one
	}
	var out strings.Builder
	stepTable(&out, digestOf(tree.Build(b.Traces())), style{120, cst, false})
	row := strings.Fields(strings.Split(out.String(), "\n")[1])
	assert.Equal(t, []string{"hf", "40", "99", "→", "10"}, row)
}

func TestNewestOfTheWorstSteps(t *testing.T) {
	iteration := func(nan bool) string {
		worst := mostInteresting(tree.Build(training(nan)))
		i := slices.IndexFunc(worst.Spans, func(s *tree.Span) bool { return s.Name() == spans.SpanStep })
		return attr(worst.Spans[i], spans.AttrIteration)
	}
	assert.Equal(t, "150", iteration(false))
	assert.Equal(t, "170", iteration(true))
	assert.Equal(t, "200", attr(mostInteresting(tree.Build(healthy())).Spans[0], spans.AttrIteration))
}

// attr is an attribute as text.
func attr(s *tree.Span, name string) string {
	v, _ := s.Attributes().Get(name)
	return v.AsString()
}

func healthy() ptrace.Traces {
	td := training(false)
	for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		s.Attributes().Remove(spans.AttrVerdictSeverity)
	}
	return td
}

func TestStepVerdictInShort(t *testing.T) {
	for _, tt := range []struct {
		v    verdict
		want string
	}{
		{
			verdict{Said: view.Said{Name: spans.VerdictFlopsWrong, Cause: spans.CauseMFUImpossible}, value: 54.19, threshold: 1},
			"train_flops_wrong (mfu_impossible) 5,419% > 100%",
		},
		{verdict{Said: view.Said{Name: spans.VerdictMFULow}, value: 0.209, threshold: 0.3}, "train_mfu_low 20.9% < 30%"},
		{verdict{Said: view.Said{Name: spans.VerdictThroughputLow}, value: 65e12, threshold: 118e12}, "train_throughput_low 65 TFLOP/s < 118 TFLOP/s"},
		{verdict{Said: view.Said{Name: spans.VerdictThroughputLow}, value: 6.5, threshold: 11.8}, "train_throughput_low 6.5 < 11.8"},
		{verdict{Said: view.Said{Name: spans.VerdictSlowdown}, value: 3.1, threshold: 2.9}, "train_slowdown 3.1 > 2.9"},
	} {
		assert.Equal(t, tt.want, tt.v.summary())
	}
}

// A record with nothing but its name is drawn too.
func TestBareStep(t *testing.T) {
	td := ptrace.NewTraces()
	s := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	s.SetName(spans.SpanStep)
	s.Attributes().PutStr(spans.AttrLoss, "\x1b[2J")
	var out strings.Builder
	stepTable(&out, digestOf(tree.Build(td)), style{80, cst, false})
	printWaterfall(&out, tree.Build(td)[0], style{80, cst, false})
	assert.NotContains(t, out.String(), "\x1b")
	assert.Contains(t, out.String(), "training log")
}
