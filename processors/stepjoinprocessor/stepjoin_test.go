package stepjoinprocessor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

const second = int64(time.Second)

// job makes spans as the receivers do.
type job struct {
	out *spans.Batch
	run string
}

func newJob() *job { return &job{out: spans.NewBatch("job", "1"), run: "run-1"} }

func (j *job) traces() ptrace.Traces {
	td := j.out.Traces()
	j.out = spans.NewBatch("job", "1")
	return td
}

func (j *job) step(n, start, end int64) pcommon.TraceID {
	trace := spans.StepTraceID(j.run, n)
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeDerived}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "step"), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: start, End: end, Source: spans.TimeDerived,
	})
	s.Attributes().PutInt(spans.AttrIteration, n)
	return trace
}

func (j *job) part(step pcommon.TraceID, name string, start, end int64) {
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeSynthetic}, spans.Span{
		Trace: step, ID: spans.SpanID(step, name), Parent: spans.SpanID(step, "step"), Name: name, Kind: ptrace.SpanKindInternal, Start: start, End: end,
		Source: spans.TimeSynthetic,
	})
	s.Attributes().PutStr(spans.AttrStage, name)
}

func (j *job) function(trace pcommon.TraceID, name string, pid, start, get, compute, put int64) {
	res := spans.Resource{Service: "verl", RunID: j.run, PID: pid, Host: "node-0", Time: spans.TimeAnchored}
	key := fmt.Appendf(nil, "%s %d %d", name, pid, start)
	id := spans.SpanID(trace, "fn", key)
	s := j.out.Add(res, spans.Span{
		Trace: trace, ID: id, Name: name, Is: spans.KindFunction, Kind: ptrace.SpanKindInternal, Start: start, End: start + get + compute + put,
		Source: spans.TimeAnchored,
	})
	s.Attributes().PutStr(spans.AttrJoinBy, spans.JoinByID)
	s.Attributes().PutStr(spans.AttrTQFunction, name)
	at := start
	for _, st := range []struct {
		name string
		d    int64
	}{{spans.SpanTQGet, get}, {spans.SpanTQCompute, compute}, {spans.SpanTQPut, put}} {
		j.out.Add(res, spans.Span{
			Trace: trace, ID: spans.SpanID(trace, st.name, key), Parent: id, Name: st.name, Is: spans.KindStage, Kind: ptrace.SpanKindInternal,
			Start: at, End: at + st.d,
			Source: spans.TimeAnchored,
		})
		at += st.d
	}
}

func (j *job) collective(n, start, end, late int64, host string) {
	trace := spans.KeyTraceID(j.run, "nccl", fmt.Appendf(nil, "%d", n))
	s := j.out.Add(spans.Resource{Service: "nccl", RunID: j.run, Time: spans.TimeLogged}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "root"), Name: "AllReduce", Is: spans.KindCollective, Kind: ptrace.SpanKindInternal, Start: start, End: end,
		Source: spans.TimeLogged,
	})
	m := s.Attributes()
	m.PutStr(spans.AttrNCCLOperation, "AllReduce")
	m.PutStr(spans.AttrNCCLCommName, "DP Group 0")
	m.PutInt(spans.AttrNCCLRanks, 16)
	m.PutInt(spans.AttrNCCLSequence, n)
	m.PutDouble(spans.AttrNCCLLateMax, float64(late)/1e9)
	m.PutInt(spans.AttrNCCLLateRank, 3)
	m.PutStr(spans.AttrNCCLLateHost, host)
}

func (j *job) pass(n, start, end int64) {
	trace := spans.KeyTraceID(j.run, "pass", fmt.Appendf(nil, "%d", n))
	s := j.out.Add(spans.Resource{Service: "zeromq", RunID: j.run, System: spans.RPCSystemZeroMQ, Time: spans.TimeLogged}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "pass"), Name: spans.SpanRPCPass, Is: spans.KindPass, Kind: ptrace.SpanKindInternal, Start: start, End: end,
		Source: spans.TimeLogged,
	})
	m := s.Attributes()
	d := float64(end-start) / 1e9
	m.PutInt(spans.AttrZMQPass, n)
	m.PutDouble(spans.AttrZMQCallDuration, d)
	m.PutDouble(spans.AttrZMQSerializeDuration, d/4)
	m.PutDouble(spans.AttrZMQSendDuration, d/4)
	m.PutDouble(spans.AttrZMQReceiveDuration, d/2)
}

// bench is a processor with a test clock, and its output.
type bench struct {
	*stepJoin
	sink  *consumertest.TracesSink
	clock time.Time
}

func newBench(t *testing.T, edit ...func(*Config)) *bench {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	for _, f := range edit {
		f(cfg)
	}
	require.NoError(t, cfg.Validate())
	b := &bench{sink: new(consumertest.TracesSink), clock: time.Unix(1_800_000_000, 0)}
	p, err := newStepJoin(cfg, processortest.NewNopSettings(metadata.Type), b.sink)
	require.NoError(t, err)
	p.now = func() time.Time { return b.clock }
	require.NoError(t, p.promises.open(t.Context(), nil, nil, component.ID{}))
	b.stepJoin = p
	return b
}

// over lets the wait pass, and closes the completed groups.
func (b *bench) over(t *testing.T) {
	t.Helper()
	b.pass(b.cfg.Wait + time.Second)
	b.sweep(t.Context(), b.clock, false)
}

// pass lets time pass without a suspension of the processor.
func (b *bench) pass(d time.Duration) {
	b.clock = b.clock.Add(d)
	b.swept = b.clock
}

// told are all spans, one line each, in order of trace and place.
func told(sink *consumertest.TracesSink) []string {
	type known struct {
		span ptrace.Span
		by   string
		of   string // service
	}
	traces := map[pcommon.TraceID]map[pcommon.SpanID]known{}
	for _, td := range sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if traces[s.TraceID()] == nil {
						traces[s.TraceID()] = map[pcommon.SpanID]known{}
					}
					traces[s.TraceID()][s.SpanID()] = known{s, ss.Scope().Name(), spans.AttrText(rs.Resource().Attributes(), spans.AttrServiceName)}
				}
			}
		}
	}
	var out []string
	for id, list := range traces {
		for _, k := range list {
			path := ""
			for at := k.span; ; {
				path = fmt.Sprintf("/%s@%d", at.Name(), at.StartTimestamp()) + path
				if at.ParentSpanID().IsEmpty() {
					break
				}
				up, ok := list[at.ParentSpanID()]
				if !ok {
					path = "ORPHAN" + path
					break
				}
				at = up.span
			}
			var attrs []string
			for name, v := range k.span.Attributes().All() {
				attrs = append(attrs, name+"="+v.AsString())
			}
			slices.Sort(attrs)
			var links strings.Builder
			for _, l := range k.span.Links().All() {
				links.WriteString(" ->" + l.TraceID().String()[:6])
			}
			out = append(out, fmt.Sprintf("%s %s of %s %d %s%s", id.String()[:6], path, k.of, k.span.EndTimestamp()-k.span.StartTimestamp(), strings.Join(attrs, " "), links.String()))
		}
	}
	slices.Sort(out)
	return out
}

func find(lines []string, text string) (found []string) {
	for _, l := range lines {
		if strings.Contains(l, text) {
			found = append(found, l)
		}
	}
	return found
}

// aStep is a step of 10 s with a batch, collectives and a pass within, none of them naming another.
func aStep(j *job, n, start int64) {
	batch := spans.KeyTraceID(j.run, "uuid", fmt.Appendf(nil, "%d", n))
	for w := range int64(4) {
		j.function(batch, "generate_sequences", 100+w, start+second/2, second/2, 3*second, second/4)
		j.function(batch, "update_actor", 100+w, start+5*second, second/4, 3*second, second/4)
	}
	for i := range int64(8) {
		at := start + 5*second + 300e6 + i*300e6
		j.collective(n*100+i, at, at+100e6, 60e6, "node-0")
	}
	j.pass(n, start+2*second, start+3*second)
	j.step(n, start, start+10*second)
}

func TestJoinsByTime(t *testing.T) {
	b, j := newBench(t), newJob()
	aStep(j, 7, 1000*second)
	aStep(j, 8, 1010*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	lines := told(b.sink)
	assert.Empty(t, find(lines, "ORPHAN"))
	roots := find(lines, "/tq.batch@")
	require.NotEmpty(t, roots)
	for _, n := range []int64{7, 8} {
		batch := spans.KeyTraceID(j.run, "uuid", fmt.Appendf(nil, "%d", n)).String()[:6]
		of := find(lines, batch+" ")
		agg := find(of, "trainbridge.aggregate.count=8")
		require.Len(t, agg, 1, strings.Join(of, "\n"))
		assert.Contains(t, agg[0], "trainbridge.join.by=run")
		assert.Contains(t, agg[0], "trainbridge.aggregate.sum=0.8")
		assert.Contains(t, agg[0], "trainbridge.aggregate.wait=0.48")
		down := find(of, "/breakdown@")
		require.Len(t, down, 2, "of the batch and of the step: %s", strings.Join(down, "\n"))
		step := find(down, "ml.train.iteration=")
		require.Len(t, step, 1)
		for _, want := range []string{"ml.step.time.collective.wait=0.48", "ml.step.time.collective=0.32", "ml.step.time.rpc.serialize=0.25", "ml.step.time.rpc.send=0.25"} {
			assert.Contains(t, step[0], want)
		}
	}
}

// Whatever order logs are read in, within the wait, the traces are the same.
func TestAnyInterleaving(t *testing.T) {
	var want []string
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := newBench(t)
		var parts []ptrace.Traces
		for n := range int64(6) {
			j := newJob()
			aStep(j, n, (1000+10*n)*second)
			parts = append(parts, split(j.traces())...)
		}
		if seed > 0 {
			rng.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
		}
		for _, p := range parts {
			require.NoError(t, b.ConsumeTraces(t.Context(), p))
			b.clock = b.clock.Add(time.Duration(rng.IntN(20)) * time.Millisecond)
			b.sweep(t.Context(), b.clock, false)
		}
		b.over(t)
		b.over(t)
		got := told(b.sink)
		if seed == 0 {
			want = got
			require.NotEmpty(t, find(want, "/breakdown@"))
			continue
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}

// split makes a message of each span.
func split(td ptrace.Traces) (out []ptrace.Traces) {
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, s := range ss.Spans().All() {
				one := ptrace.NewTraces()
				r := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(r.Resource())
				c := r.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(c.Scope())
				s.CopyTo(c.Spans().AppendEmpty())
				out = append(out, one)
			}
		}
	}
	return out
}

// A collective within two overlapping steps goes to neither.
func TestNeverAPick(t *testing.T) {
	b, j := newBench(t), newJob()
	j.step(1, 1000*second+1, 1010*second+1)
	j.step(2, 1005*second+1, 1015*second+1)
	j.collective(1, 1006*second+1, 1007*second+1, 5e8, "node-0")
	j.collective(2, 1001*second+1, 1002*second+1, 5e8, "node-0")
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	lines := told(b.sink)
	agg := find(lines, "trainbridge.aggregate.count")
	require.Len(t, agg, 1)
	assert.Contains(t, agg[0], spans.StepTraceID(j.run, 1).String()[:6])
	assert.Contains(t, agg[0], "trainbridge.aggregate.count=1 ")
}

// Parts of a step have only durations; parts within another part do not count twice.
func TestPartsOfAStep(t *testing.T) {
	b, j := newBench(t), newJob()
	trace := j.step(1, 1000*second, 1010*second)
	j.part(trace, "forward-backward", 1000*second, 1006*second)
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeSynthetic}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "b"), Parent: spans.SpanID(trace, "forward-backward"), Name: "batch-generator", Start: 1000 * second, End: 1002 * second,
		Source: spans.TimeSynthetic,
	})
	s.Attributes().PutStr(spans.AttrStage, "batch-generator")
	j.part(trace, "save-checkpoint", 1006*second, 1007*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	down := find(told(b.sink), "/breakdown@")
	require.Len(t, down, 1)
	for _, want := range []string{"/train.step@", "ml.step.time.compute=4 ", "ml.step.time.data_loading=2 ", "ml.step.time.checkpoint=1 ", "ml.step.time.unattributed=3 "} {
		assert.Contains(t, down[0], want)
	}
}

// DeepSpeed's timer of the last micro batch repeats time of the timer of all of them, where both are logged.
func TestTimerOfAMicroBatch(t *testing.T) {
	for _, timers := range [][]string{{"bwd_allreduce", "bwd_allreduce_microstep"}, {"bwd_allreduce_microstep"}} {
		b, j := newBench(t), newJob()
		trace := j.step(1, 1000*second, 1010*second)
		j.part(trace, "bwd", 1000*second, 1006*second)
		for _, timer := range timers {
			s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeSynthetic}, spans.Span{
				Trace: trace, ID: spans.SpanID(trace, timer), Parent: spans.SpanID(trace, "bwd"), Name: timer, Start: 1000 * second, End: 1002 * second,
				Source: spans.TimeSynthetic,
			})
			s.Attributes().PutStr(spans.AttrStage, timer)
		}
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
		b.over(t)
		down := find(told(b.sink), "/breakdown@")
		require.Len(t, down, 1, timers)
		for _, want := range []string{"ml.step.time.collective=2 ", "ml.step.time.compute=4 ", "ml.step.time.unattributed=4 "} {
			assert.Contains(t, down[0], want, timers)
		}
	}
}

// Waiting for rollouts is no computing, but for a rollout within (slime).
func TestWaitingIsNoComputing(t *testing.T) {
	b, j := newBench(t), newJob()
	trace := j.step(1, 1000*second, 1010*second)
	j.part(trace, "train_wait", 1000*second, 1007*second)
	for _, nested := range []struct {
		name string
		s    int64
	}{{"rollout", 4}, {"data_preprocess", 1}} {
		s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeSynthetic}, spans.Span{
			Trace: trace, ID: spans.SpanID(trace, nested.name), Parent: spans.SpanID(trace, "train_wait"), Name: nested.name, Start: 1000 * second,
			End: (1000 + nested.s) * second, Source: spans.TimeSynthetic,
		})
		s.Attributes().PutStr(spans.AttrStage, nested.name)
	}
	j.part(trace, "train", 1007*second, 1009*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	down := find(told(b.sink), "/breakdown@")
	require.Len(t, down, 1)
	for _, want := range []string{"ml.step.time.compute=6 ", "ml.step.time.data_loading=1 ", "ml.step.time.unattributed=3 "} {
		assert.Contains(t, down[0], want)
	}
}

// The timers of a record of five steps are means per step, like the step time.
func TestPartsOfSeveralSteps(t *testing.T) {
	b, j := newBench(t), newJob()
	trace := j.step(5, 1000*second, 1010*second)
	last := j.traces()
	last.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().PutInt(spans.AttrStepsCovered, 5)
	require.NoError(t, b.ConsumeTraces(t.Context(), last))
	j = newJob()
	j.part(trace, "data_loading", 1000*second, 1000*second+second/2)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	assert.Contains(t, find(told(b.sink), "/breakdown@")[0], "ml.step.time.data_loading=2.5 ")
}

// A run with only steps, without parts, passes unchanged.
func TestNothingToSay(t *testing.T) {
	b, j := newBench(t), newJob()
	for n := range int64(100) {
		j.step(n, (1000+n)*second, (1001+n)*second)
	}
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	assert.Equal(t, 100, b.sink.SpanCount())
}

// Promises are kept after a crash, with spans marked as partial.
func TestCrash(t *testing.T) {
	store := &memory{values: map[string][]byte{}}
	b, j := newBench(t), newJob()
	b.promises.store = store
	aStep(j, 7, 1000*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))

	next := newBench(t)
	next.promises.store = store
	next.sink = b.sink
	next.next = b.sink
	require.NoError(t, next.restore(t.Context()))
	next.over(t)
	lines := told(b.sink)
	assert.Empty(t, find(lines, "ORPHAN"))
	root := find(lines, "trainbridge.kind=root")
	require.Len(t, root, 1)
	assert.Contains(t, root[0], "/tq.batch@")
	assert.Contains(t, root[0], "trainbridge.join.partial=true")
	for key := range store.values {
		assert.False(t, strings.HasPrefix(key, "chunk-"), key)
	}
}

// memory is a storage that outlives a process.
type memory struct {
	storage.Client
	values map[string][]byte
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) { return m.values[key], nil }

func (*memory) Close(context.Context) error { return nil }

func (m *memory) Batch(_ context.Context, ops ...*storage.Operation) error {
	for _, op := range ops {
		switch op.Type {
		case storage.Get:
			op.Value = m.values[op.Key]
		case storage.Set:
			m.values[op.Key] = op.Value
		case storage.Delete:
			delete(m.values, op.Key)
		}
	}
	return nil
}

// An unaccepted batch leaves no facts, and comes again.
func TestRefused(t *testing.T) {
	b, j := newBench(t), newJob()
	aStep(j, 7, 1000*second)
	td := j.traces()
	again := ptrace.NewTraces()
	td.CopyTo(again)
	down := consumertest.NewErr(errors.New("down"))
	b.next = down
	require.Error(t, b.ConsumeTraces(t.Context(), td))
	b.next = b.sink
	require.NoError(t, b.ConsumeTraces(t.Context(), again))
	twice := ptrace.NewTraces()
	again.CopyTo(twice)
	require.NoError(t, b.ConsumeTraces(t.Context(), twice)) // as after a crash of the source
	b.over(t)
	lines := told(b.sink)
	assert.Len(t, find(lines, "trainbridge.aggregate.count=8"), 1)
	assert.Empty(t, find(lines, "ORPHAN"))
}

// A permanent refusal of joined spans ends them, any other is retried.
func TestRefusedForGood(t *testing.T) {
	b, j := newBench(t), newJob()
	aStep(j, 7, 1000*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.next = consumertest.NewErr(consumererror.NewPermanent(errors.New("no")))
	b.over(t)
	b.next = b.sink
	n := b.sink.SpanCount()
	b.over(t)
	assert.Equal(t, n, b.sink.SpanCount())
}

// Memory is bounded whatever comes: collectives of 64 ranks for ten minutes, and no window.
func TestBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	b, j := newBench(t, func(c *Config) { c.MaxBytes = 1 << 20 }), newJob()
	for i := range int64(60) {
		for n := range int64(1000) {
			at := 1000*second + (i*1000+n)*1e6
			j.collective(i*1000+n, at, at+9e5, 1e5, "node-0")
		}
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
		b.clock = b.clock.Add(time.Second)
		b.sweep(t.Context(), b.clock, false)
		assert.LessOrEqual(t, b.size(), int64(1<<20))
	}
	j.step(1, 1000*second, 1060*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	down := find(told(b.sink), "/breakdown@")
	require.Len(t, down, 1)
	assert.Contains(t, down[0], "trainbridge.join.partial=true")
}

// Spans of services without a run are tied by their trace alone; the configuration classifies them.
func TestPlainOTLP(t *testing.T) {
	b := newBench(t, func(c *Config) {
		c.Windows = []string{"train_batch"}
		c.Leaves = map[string]string{"next_batch": "data_loading", "ckpt*": "checkpoint"}
	})
	td := ptrace.NewTraces()
	add := func(service string, trace byte, name string, start, end int64) {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr(spans.AttrServiceName, service)
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetTraceID(pcommon.TraceID{trace})
		s.SetSpanID(spans.SpanID(s.TraceID(), name))
		if name != "train_batch" {
			s.SetParentSpanID(spans.SpanID(s.TraceID(), "train_batch"))
		}
		s.SetName(name)
		s.SetStartTimestamp(pcommon.Timestamp(start))
		s.SetEndTimestamp(pcommon.Timestamp(end))
	}
	for i := range int64(2) { // at the same time, of two jobs
		add("data", byte(1+i), "next_batch", 1000*second, (1001+i)*second)
		add("train", byte(1+i), "ckpt_save", 1005*second, 1006*second)
		add("train", byte(1+i), "forward", 1002*second, 1003*second)
		add("train", byte(1+i), "train_batch", 1000*second, 1010*second)
	}
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	b.over(t)
	down := find(told(b.sink), "/train_batch@1000000000000/breakdown@")
	require.Len(t, down, 2)
	for i, want := range []string{"ml.step.time.data_loading=1 ", "ml.step.time.data_loading=2 "} {
		assert.Contains(t, down[i], want)
		assert.Contains(t, down[i], "ml.step.time.checkpoint=1 ")
	}
	assert.Empty(t, find(told(b.sink), "trainbridge.aggregate.count"))
}

// A step that had passed at a kill, and a step in progress, get the same breakdown from the next process.
func TestCrashOfAStep(t *testing.T) {
	store := &memory{values: map[string][]byte{}}
	b, j := newBench(t), newJob()
	b.promises.store, b.promises.keeps = store, true
	j.collective(1, 1001*second+1, 1002*second+1, 1e8, "node-0")
	j.step(1, 1000*second+1, 1010*second+1)
	j.collective(2, 1011*second+1, 1012*second+1, 1e8, "node-0")
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))

	next := newBench(t)
	next.promises.store, next.promises.keeps, next.sink, next.next = store, true, b.sink, b.sink
	require.NoError(t, next.restore(t.Context()))
	j.collective(3, 1015*second+1, 1016*second+1, 1e8, "node-0")
	j.step(2, 1010*second+1, 1020*second+1)
	j.collective(4, 1025*second+1, 1026*second+1, 1e8, "node-0")
	j.step(3, 1020*second+1, 1030*second+1)
	require.NoError(t, next.ConsumeTraces(t.Context(), j.traces()))
	next.over(t)
	down := find(told(b.sink), "/breakdown@")
	require.Len(t, down, 3)
	for _, line := range down {
		assert.NotContains(t, line, spans.AttrJoinPartial)
		wait := "ml.step.time.collective.wait=0.1 "
		if strings.Contains(line, "/train.step@1010000000001/") {
			wait = "ml.step.time.collective.wait=0.2 "
		}
		assert.Contains(t, line, wait)
	}
	for key := range store.values {
		assert.False(t, strings.HasPrefix(key, "chunk-"), key)
	}
}

// Spans made for a step before a crash are sent unchanged, unless accepted, and are not made again for a repeated step, of which the next process knows less.
func TestCrashAfterAStepWasTold(t *testing.T) {
	for name, accepted := range map[string]bool{"it was accepted": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			store := &memory{values: map[string][]byte{}}
			start := func(next consumer.Traces) *bench {
				b := newBench(t)
				b.promises.store, b.promises.keeps, b.next = store, true, next
				require.NoError(t, b.restoreLedger(t.Context()))
				require.NoError(t, b.restore(t.Context()))
				return b
			}
			sink := new(consumertest.TracesSink)
			first, j := start(sink), newJob()
			aStep(j, 7, 1000*second)
			td, again := j.traces(), ptrace.NewTraces()
			td.CopyTo(again)
			require.NoError(t, first.ConsumeTraces(t.Context(), td))
			want := new(consumertest.TracesSink)
			first.next = want
			if !accepted {
				first.next = consumertest.NewErr(errors.New("down"))
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // one attempt
			first.sweep(ctx, first.now().Add(time.Minute), true)

			other := new(consumertest.TracesSink)
			second := start(other)
			second.sweep(t.Context(), second.now(), false)
			if accepted {
				require.NotZero(t, want.SpanCount())
				require.Zero(t, other.SpanCount())
			} else {
				require.NotZero(t, other.SpanCount())
				assert.Empty(t, find(told(other), "trainbridge.join.partial"))
				assert.NotEmpty(t, find(told(other), "trainbridge.kind=breakdown"))
			}
			made := other.SpanCount()
			require.NoError(t, second.ConsumeTraces(t.Context(), again))
			second.sweep(t.Context(), second.now().Add(time.Hour), true)
			assert.Equal(t, made+again.SpanCount(), other.SpanCount(), "the spans that came again, and nothing of them")
		})
	}
}

// JSONL and Megatron's output describe one step: the content is added once, in the trace of the id.
func TestTwins(t *testing.T) {
	b, j := newBench(t), newJob()
	start, end := 1000*second+1, 1010*second+1
	j.step(7, start, end)
	trace := spans.KeyTraceID(j.run, "uuid")
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeDerived}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "step"), Name: spans.SpanStep, Kind: ptrace.SpanKindInternal, Start: start + 5e6, End: end, Source: spans.TimeDerived,
	})
	s.Attributes().PutInt(spans.AttrIteration, 7)
	s.Attributes().PutStr(spans.AttrJoinBy, spans.JoinByID)
	j.collective(1, start+second, start+2*second, 1e8, "node-0")
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.over(t)
	lines := told(b.sink)
	assert.Len(t, find(lines, "trainbridge.aggregate.count=1"), 1)
	down := find(lines, "/breakdown@")
	require.Len(t, down, 1)
	assert.Contains(t, down[0], trace.String()[:6])
	assert.Len(t, find(find(lines, spans.StepTraceID(j.run, 7).String()[:6]+" "), "trainbridge.join.by=iteration"), 1)
}

// A batch refused again and again takes no more room.
func TestRefusedForLong(t *testing.T) {
	b, j := newBench(t), newJob()
	aStep(j, 7, 1000*second)
	td := j.traces()
	b.next = consumertest.NewErr(errors.New("down"))
	size := int64(0)
	for i := range 50 {
		again := ptrace.NewTraces()
		td.CopyTo(again)
		require.Error(t, b.ConsumeTraces(t.Context(), again))
		if i == 0 {
			size = b.size()
		}
		assert.Equal(t, size, b.size())
	}
	b.next = b.sink
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	b.over(t)
	lines := told(b.sink)
	assert.Len(t, find(lines, "trainbridge.aggregate.count=8"), 1)
	assert.Len(t, find(lines, "ml.step.time.collective.wait=0.48"), 2)
}

// event is a line about the end of the run.
func (j *job) event(class events.Class, at int64) {
	trace, _ := spans.RunIDs(j.run)
	s := j.out.Add(spans.Resource{Service: "train", RunID: j.run, Time: spans.TimeLogged}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, string(class)), Name: spans.SpanEvent, Is: spans.KindEvent, Kind: ptrace.SpanKindInternal, Start: at, End: at + 1,
		Source: spans.TimeLogged,
	})
	s.Attributes().PutStr(spans.AttrEventClass, string(class))
}

// A stalled run is reported once, with the ranks missing in collectives; a run with a known end is not.
func TestRunStalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		last func(b *bench, j *job)
		want string // "": nothing
	}{
		{"nothing more", func(*bench, *job) {}, "No step for 60 s, where one usually comes after 2 s; the last was step 20: it hangs, saves, evaluates, or has ended without a word"},
		{"a collective lacks a rank", func(b *bench, j *job) {
			j.collective(7, b.clock.UnixNano(), b.clock.UnixNano()+second, 0, "")
			s := j.out.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			missing := s.Attributes().PutEmptySlice(spans.AttrNCCLRanksMissing)
			missing.AppendEmpty().SetInt(5)
			missing.AppendEmpty().SetInt(3)
		}, "No step for 60 s, where one usually comes after 2 s; the last was step 20; AllReduce of communicator DP Group 0 has no record of ranks 3, 5: it hangs, saves, evaluates, or has ended without a word"},
		{"a collective lacks a rank and holds another", func(b *bench, j *job) {
			j.collective(7, b.clock.UnixNano(), b.clock.UnixNano()+second, 0, "")
			m := j.out.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes()
			m.PutEmptySlice(spans.AttrNCCLRanksMissing).AppendEmpty().SetInt(3)
			m.PutEmptySlice(spans.AttrNCCLRanksStuck).AppendEmpty().SetInt(5)
		}, "No step for 60 s, where one usually comes after 2 s; the last was step 20; AllReduce of communicator DP Group 0 has no record of rank 3 and holds rank 5: it hangs, saves, evaluates, or has ended without a word"},
		{"a rank has died", func(b *bench, j *job) { j.event(events.ClassCUDAError, b.clock.UnixNano()) }, ""},
		{"training is done", func(b *bench, j *job) { j.event(events.ClassEnded, b.clock.UnixNano()) }, ""},
		{"a warning", func(b *bench, j *job) { j.event(events.ClassWarning, b.clock.UnixNano()) }, "No step for 60 s, where one usually comes after 2 s; the last was step 20: it hangs, saves, evaluates, or has ended without a word"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, j := newBench(t), newJob()
			for n := range int64(20) {
				at := b.clock.UnixNano()
				j.step(n+1, at-2*second, at)
				require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
				b.sweep(t.Context(), b.clock, false)
				b.clock = b.clock.Add(2 * time.Second)
			}
			tt.last(b, j)
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			for range 300 {
				b.clock = b.clock.Add(time.Second)
				b.sweep(t.Context(), b.clock, false)
			}
			var texts []string
			for _, td := range b.sink.AllTraces() {
				for _, rs := range td.ResourceSpans().All() {
					for _, ss := range rs.ScopeSpans().All() {
						for _, s := range ss.Spans().All() {
							if spans.AttrText(s.Attributes(), spans.AttrEventClass) == string(events.ClassStalled) {
								assert.Equal(t, "run-1", spans.AttrText(rs.Resource().Attributes(), spans.AttrRunID))
								assert.Equal(t, ptrace.StatusCodeError, s.Status().Code())
								texts = append(texts, s.Status().Message())
							}
						}
					}
				}
			}
			if tt.want == "" {
				assert.Empty(t, texts)
				return
			}
			assert.Equal(t, []string{tt.want}, texts)
		})
	}
}
