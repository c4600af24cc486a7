package spans

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestBatchGroupsByResource(t *testing.T) {
	b := NewBatch("scope", "1.2.3")
	a, c := Resource{Service: "verl", RunID: "r", PID: 7}, Resource{Service: "verl", RunID: "r", Host: "10.0.0.1"}
	for i, res := range []Resource{a, c, a, a} {
		s := b.Add(res, Span{
			Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{byte(i + 1)}, Name: "n", Kind: ptrace.SpanKindClient,
			Start: 10, End: 20, Source: TimeAnchored, Attributes: 1,
		})
		s.Attributes().PutInt("i", int64(i))
	}
	assert.Equal(t, 4, b.Len())
	td := b.Traces()
	require.Equal(t, 2, td.ResourceSpans().Len())
	first := td.ResourceSpans().At(0)
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "r", "process.pid": int64(7)}, first.Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "r", "host.name": "10.0.0.1"}, td.ResourceSpans().At(1).Resource().Attributes().AsRaw())
	assert.Equal(t, "scope", first.ScopeSpans().At(0).Scope().Name())
	assert.Equal(t, "1.2.3", first.ScopeSpans().At(0).Scope().Version())
	spans := first.ScopeSpans().At(0).Spans()
	require.Equal(t, 3, spans.Len())
	s := spans.At(1)
	assert.Equal(t, pcommon.SpanID{3}, s.SpanID())
	assert.Equal(t, ptrace.SpanKindClient, s.Kind())
	assert.Equal(t, pcommon.Timestamp(10), s.StartTimestamp())
	assert.Equal(t, pcommon.Timestamp(20), s.EndTimestamp())
	assert.Equal(t, map[string]any{"trainbridge.time.source": "anchored", "i": int64(2)}, s.Attributes().AsRaw())
}

func TestRun(t *testing.T) {
	t.Setenv("SLURM_JOB_ID", "")
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	assert.Equal(t, RunConfig{}.Run(a), RunConfig{}.Run(b), "the files of one directory are one run")
	assert.NotEqual(t, RunConfig{}.Run(a), RunConfig{}.Run(filepath.Join(t.TempDir(), "a.log")))
	assert.Equal(t, "mine", RunConfig{RunID: "mine"}.Run(a))
	t.Setenv("SLURM_JOB_ID", "4711")
	assert.Equal(t, "slurm-4711", RunConfig{}.Run(a))
	assert.Equal(t, "mine", RunConfig{RunID: "mine"}.Run(a))
}

func TestRunSpanAndLink(t *testing.T) {
	batch := NewBatch("scope", "v")
	res := Resource{Service: "verl", RunID: "r", PID: 9}
	batch.AddRun(res, 100, TimeLogged, "/logs/a.err")
	step := batch.Add(res, Span{Trace: pcommon.TraceID{5}, ID: pcommon.SpanID{5}, Source: TimeLogged})
	trace, id := RunIDs("r")
	Link(step, trace, id)
	run := batch.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, SpanRun, run.Name())
	assert.Equal(t, map[string]any{"trainbridge.time.source": "logged", "log.file.path": "/logs/a.err"}, run.Attributes().AsRaw())
	require.Equal(t, 1, step.Links().Len())
	assert.Equal(t, run.TraceID(), step.Links().At(0).TraceID())
	assert.Equal(t, run.SpanID(), step.Links().At(0).SpanID())
	_, hasPID := batch.Traces().ResourceSpans().At(0).Resource().Attributes().Get("process.pid")
	assert.False(t, hasPID, "a run is not the work of one process")
}

func BenchmarkBatchAdd(b *testing.B) {
	res := Resource{Service: "verl", RunID: "r", PID: 7}
	s := Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{2}, Name: SpanTQGet, Kind: ptrace.SpanKindInternal, Start: 1, End: 2, Source: TimeAnchored, Attributes: 3}
	b.ReportAllocs()
	batch := NewBatch("scope", "v")
	for b.Loop() {
		if batch.Len() == 2048 {
			batch = NewBatch("scope", "v")
		}
		out := batch.Add(res, s)
		out.Attributes().PutStr(AttrTQStage, StageGet)
		out.Attributes().PutInt(AttrTQBatchSize, 32)
	}
}
