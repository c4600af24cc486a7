package show

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// joiner makes traces as from step_join: batches of four workers under a root, with 20 AllReduce of other traces and a pass from a log without times.
type joiner struct {
	*spans.Batch
	run string
}

func (j joiner) resource(source spans.TimeSource) spans.Resource {
	return spans.Resource{Service: "rl", RunID: j.run, Time: source, JoinBy: spans.JoinByID}
}

func (j joiner) add(s spans.Span, attrs ...any) ptrace.Span {
	out := j.Add(j.resource(""), s)
	for i := 0; i < len(attrs); i += 2 {
		switch v := attrs[i+1].(type) {
		case string:
			out.Attributes().PutStr(attrs[i].(string), v)
		case int64:
			out.Attributes().PutInt(attrs[i].(string), v)
		case float64:
			out.Attributes().PutDouble(attrs[i].(string), v)
		}
	}
	return out
}

// batch is a step of 4 s, or of 6 s with a wait for rank 17.
func (j joiner) batch(n, at int64, slow bool) pcommon.TraceID {
	trace := spans.StepTraceID(j.run, n)
	root := spans.RootID(trace)
	end, wait := at+4*second, 0.1
	if slow {
		end, wait = at+6*second, 2.1
	}
	span := func(name string, is string, parent pcommon.SpanID, start, end int64, key ...byte) spans.Span {
		return spans.Span{
			Trace: trace, ID: spans.SpanID(trace, name, []byte(is), key), Parent: parent, Name: name, Is: is, Kind: ptrace.SpanKindInternal, Start: start, End: end,
			Source: spans.TimeDerived,
		}
	}
	top := span(spans.SpanTQBatch, spans.KindRoot, pcommon.SpanID{}, at, end)
	top.ID = root
	j.add(top, spans.AttrIteration, n)
	j.add(span(spans.SpanStep, "", root, at, end), spans.AttrIteration, n, spans.AttrLoss, 2.5)
	for worker := range int64(4) {
		f := span("rollout", spans.KindFunction, root, at, at+2*second+worker*second/10, byte(worker))
		j.add(f, spans.AttrTQFunction, "rollout", spans.AttrProcessPID, 100+worker, spans.AttrTQOverheadUtilization, 0.15)
		j.add(span(spans.SpanTQGet, spans.KindStage, f.ID, at, at+3*second/10, byte(worker)), spans.AttrTQStage, spans.StageGet)
	}
	all := span("AllReduce", spans.KindAggregate, root, at+2*second, end)
	j.add(all, spans.AttrJoinBy, spans.JoinByRun, spans.AttrAggregateCount, int64(20), spans.AttrAggregateSum, wait+0.9, spans.AttrAggregateUnion, wait+0.9,
		spans.AttrAggregateP50, 0.05, spans.AttrAggregateP99, wait, spans.AttrAggregateMax, wait, spans.AttrAggregateWait, wait, spans.AttrNCCLCommName, "DP Group 0")
	of := spans.KeyTraceID(j.run, "collective", []byte{byte(n)})
	late := j.add(span("AllReduce", spans.KindJoined, all.ID, at+3*second, at+3*second+int64(wait*1e9)), spans.AttrJoinBy, spans.JoinByRun,
		spans.AttrNCCLLateMax, wait, spans.AttrNCCLLateRank, int64(17))
	late.Links().AppendEmpty().SetTraceID(of)
	// The untimed contents of a pass's log stand behind the trace.
	pass := span(spans.SpanRPCPass, spans.KindPass, root, at+60*second, at+61*second)
	pass.Source = spans.TimeSynthetic
	j.Add(j.resource(spans.TimeSynthetic), pass).Attributes().PutInt(spans.AttrZMQPass, n)
	b := j.add(span(spans.SpanBreakdown, spans.KindBreakdown, root, at, end), spans.AttrStepWindow, spans.WindowStep, spans.AttrIteration, n)
	for _, p := range []struct {
		part             string
		time, sum, union float64
	}{
		{spans.PartWait, wait, wait, wait},
		{spans.PartCollective, 0.9, 0.9, 0.9},
		{spans.PartCompute, 2, 7.4, 2},
		{spans.PartGet, 0.3, 1.2, 0.3},
		{spans.PartDataLoading, 0, 0, 0},
	} {
		b.Attributes().PutDouble(spans.StepTimePrefix+p.part, p.time)
		b.Attributes().PutDouble(spans.StepSumPrefix+p.part, p.sum)
		b.Attributes().PutDouble(spans.StepUnionPrefix+p.part, p.union)
	}
	b.Attributes().PutDouble(spans.StepTimePrefix+spans.PartUnattributed, 0.7)
	gpusOf(b)
	if slow {
		verdictOn(b, spans.SeverityWarning, verdict{
			view.Said{Name: spans.VerdictStepSlow}, fmt.Sprintf("Step %d took 6 s, 2 s more than usual (4 s): 2 s waiting for rank 17 in AllReduce of DP Group 0.", n), 6, 4.4,
		})
	}
	return trace
}

// gpusOf tells of the GPUs of a breakdown.
func gpusOf(b ptrace.Span) {
	b.Attributes().PutInt(spans.AttrGPUCount, 16)
	b.Attributes().PutInt(spans.AttrGPUSampleCount, 64)
	b.Attributes().PutDouble(spans.AttrGPUUtilization, 0.915)
	b.Attributes().PutDouble(spans.AttrGPUTemperatureMax, 88)
	b.Attributes().PutDouble(spans.AttrGPUClockMin, 1.2e9)
	b.Attributes().PutDouble(spans.GPUThrottleTimePrefix+"thermal", 1.7)
	xid := b.Events().AppendEmpty()
	xid.SetName(spans.EventGPUXID)
	xid.Attributes().PutStr(spans.AttrErrorType, "79")
	xid.Attributes().PutStr(spans.AttrHardwareName, "GPU 3")
	xid.Attributes().PutStr(spans.AttrHostName, "node-2")
}

func joinedJob(slow ...int64) ptrace.Traces {
	j := joiner{spans.NewBatch("test", ""), "run-9"}
	for n := range int64(20) {
		isSlow := false
		for _, s := range slow {
			isSlow = isSlow || s == n
		}
		j.batch(n, 1770799200*second+n*10*second, isSlow)
	}
	return j.Traces()
}

func TestWindowsGolden(t *testing.T) {
	url := answering(t, func(string) ptrace.Traces { return joinedJob(3, 11) })
	for golden, width := range map[string]int{"windows.txt": 110, "windows_narrow.txt": 70} {
		got, err := draw(t, options{jaeger: url, service: "rl", width: width}, false)
		require.NoError(t, err)
		compare(t, golden, got)
		for line := range strings.Lines(got) {
			assert.LessOrEqual(t, human.Columns(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
}

// Without slow windows, a table says where the time went, and the trace of interest is the same.
func TestNoWindowWasSlow(t *testing.T) {
	url := answering(t, func(string) ptrace.Traces { return joinedJob() })
	got, err := draw(t, options{jaeger: url, service: "rl", width: 110}, false)
	require.NoError(t, err)
	assert.NotContains(t, got, "more than usual")
	assert.Contains(t, got, "20 steps, 0 slow")
	assert.Contains(t, got, "step 19, 4 functions, 1 pass, 20 collectives")
}

// Spans of a log without times stand at no place of the axis; spans of a trace without a root of step_join have their place as before.
func TestSpansWithoutTimes(t *testing.T) {
	traces := tree.Build(joinedJob(3))
	joined := traces[3]
	shown := withLoggedAxis(joined)
	assert.Equal(t, 6*second, shown.End-shown.Start)
	assert.Equal(t, 61*second, joined.End-joined.Start)
	var pass *tree.Span
	for _, s := range joined.Spans {
		if s.Name() == spans.SpanRPCPass {
			pass = s
		}
	}
	require.NotNil(t, pass)
	assert.True(t, leavesAxis(pass, shown))
	assert.Equal(t, strings.Repeat(" ", 9), plainBar(pass, shown, 9, "", false))
	other := tree.Build(training(false))[1]
	assert.Same(t, other, withLoggedAxis(other))
}

// A batch of many workers and collectives fits a screen: of each function the longest, collectives as a row, of an aggregate the slowest.
func TestManyWorkersUnderARoot(t *testing.T) {
	j := joiner{spans.NewBatch("test", ""), "run-9"}
	at := 1770799200 * second
	trace := j.batch(1, at, true)
	root := spans.RootID(trace)
	for worker := range int64(16) {
		for n, name := range []string{"rollout", "log_prob", "update"} {
			id := spans.SpanID(trace, name, []byte{byte(worker), 1})
			j.add(spans.Span{
				Trace: trace, ID: id, Parent: root, Name: name, Is: spans.KindFunction, Start: at + int64(n)*second, End: at + int64(n+1)*second + worker*second/100,
			}, spans.AttrTQFunction, name)
			j.add(spans.Span{
				Trace: trace, ID: spans.SpanID(trace, "get", id[:]), Parent: id, Name: spans.SpanTQGet, Is: spans.KindStage, Start: at + int64(n)*second,
				End: at + int64(n)*second + second/10,
			}, spans.AttrTQStage, spans.StageGet)
		}
	}
	for n := range int64(40) {
		c := j.add(spans.Span{
			Trace: trace, ID: spans.SpanID(trace, "c", []byte{byte(n)}), Parent: root, Name: "AllGather", Is: spans.KindCollective, Start: at + 4*second + n*1e6,
			End: at + 4*second + n*1e6 + 5e5,
		}, spans.AttrNCCLRanks, int64(16), spans.AttrNCCLOperation, "AllGather", spans.AttrNCCLDuration, 0.0005, spans.AttrNCCLLateMax, 0.0001)
		j.add(spans.Span{Trace: trace, ID: spans.SpanID(trace, "r", []byte{byte(n)}), Parent: c.SpanID(), Name: "rank 3", Is: spans.KindRank, Start: at, End: at + 1})
	}
	traces := tree.Build(j.Traces())
	var out strings.Builder
	printWaterfall(&out, traces[0], style{110, cst, false})
	got := out.String()
	assert.Contains(t, got, "step 1, 52 functions, 1 pass, 60 collectives")
	assert.Regexp(t, `AllGather ×40 .* together 20 ms · waited 4 ms`, got)
	assert.Regexp(t, `update ×13 more`, got)
	assert.Contains(t, got, "AllReduce rank 17 +2.1 s")
	assert.NotContains(t, got, "rank 3")
	assert.NotContains(t, got, "are not drawn")
	assert.LessOrEqual(t, strings.Count(got, "▏"), maxLines)
}

// Of a batch in a step the step's breakdown is drawn: the longer window.
func TestOneBreakdownIsDrawn(t *testing.T) {
	j := joiner{spans.NewBatch("test", ""), "run-9"}
	at := 1770799200 * second
	trace := j.batch(4, at, true)
	b := j.add(spans.Span{
		Trace: trace, ID: pcommon.SpanID{9}, Parent: spans.RootID(trace), Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: at, End: at + 5*second,
	}, spans.AttrStepWindow, spans.WindowBatch, spans.StepTimePrefix+spans.PartPut, 5.0)
	verdictOn(b, spans.SeverityWarning, verdict{view.Said{Name: spans.VerdictStepSlow}, "The batch took 5 s.", 5, 4})
	var out strings.Builder
	printWaterfall(&out, tree.Build(j.Traces())[0], style{110, cst, false})
	got := out.String()
	assert.Contains(t, got, "the 6 s of step 4 ")
	assert.NotContains(t, got, "of batch ")
	assert.Equal(t, 1, strings.Count(got, "The batch took 5 s."), "its verdict is explained all the same")
	assert.Contains(t, got, "step 4, 4 functions")
}

func TestNamesOfWindows(t *testing.T) {
	for of, want := range map[string]string{"step": "steps", "batch": "batches", "pass": "passes", "": "windows", "tomorrow": "windows"} {
		_, several := tables.Window(of, false)
		assert.Equal(t, want, several)
	}
}
