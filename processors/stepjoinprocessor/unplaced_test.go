package stepjoinprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadatatest"
	"github.com/trainbridge/trainbridge/spans"
)

// idPass is a pass of 10 calls in the trace of an id, as zmq_rpc makes it of a table without a clock: from start, for 10 × each ns.
func (j *job) idPass(trace pcommon.TraceID, parent pcommon.SpanID, n, start, each int64, source spans.TimeSource) {
	res := spans.Resource{Service: "zeromq", RunID: j.run, System: spans.RPCSystemZeroMQ, Time: source, JoinBy: spans.JoinByID}
	key := fmt.Appendf(nil, "%d", n)
	id := spans.SpanID(trace, "pass", key)
	s := j.out.Add(res, spans.Span{
		Trace: trace, ID: id, Parent: parent, Name: spans.SpanRPCPass, Is: spans.KindPass, Kind: ptrace.SpanKindInternal, Start: start, End: start + 10*each,
		Source: source,
	})
	m := s.Attributes()
	m.PutInt(spans.AttrZMQPass, n)
	m.PutDouble(spans.AttrZMQCallDuration, float64(10*each)/1e9)
	m.PutDouble(spans.AttrZMQSerializeDuration, float64(10*each)/1e9)
	for i := range int64(10) {
		call := spans.SpanID(trace, "call", key, []byte{byte(i)})
		s := j.out.Add(res, spans.Span{
			Trace: trace, ID: call, Parent: id, Name: "Matmul", Is: spans.KindCall, Kind: ptrace.SpanKindClient, Start: start + i*each, End: start + (i+1)*each,
			Source: source,
		})
		if i < 5 {
			s.Attributes().PutInt(spans.AttrZMQCallSlowest, i+1)
		}
		j.out.AddPart(&spans.Span{
			Trace: trace, ID: spans.SpanID(trace, "send", call[:]), Parent: call, Name: spans.SpanRPCSend, Kind: ptrace.SpanKindInternal,
			Start: start + i*each, End: start + (i+1)*each,
		})
	}
}

var uuid = spans.KeyTraceID("run-1", "uuid")

// consume hands a job's spans on, each part as a batch.
func (b *bench) consume(t *testing.T, parts ...func(j *job)) {
	t.Helper()
	for _, part := range parts {
		j := newJob()
		part(j)
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	}
}

// traces are the sent spans.
func (b *bench) traces() map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span {
	all := map[pcommon.TraceID]map[pcommon.SpanID]ptrace.Span{}
	for _, td := range b.sink.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, s := range ss.Spans().All() {
					if all[s.TraceID()] == nil {
						all[s.TraceID()] = map[pcommon.SpanID]ptrace.Span{}
					}
					all[s.TraceID()][s.SpanID()] = s
				}
			}
		}
	}
	return all
}

// of are the spans of a trace.
func (b *bench) of(trace pcommon.TraceID) map[pcommon.SpanID]ptrace.Span { return b.traces()[trace] }

// extent is from when to when a trace lasts.
func extent(all map[pcommon.SpanID]ptrace.Span) (start, end int64) {
	for _, s := range all {
		start, end = extendRange(start, end, int64(s.StartTimestamp()), int64(s.EndTimestamp()))
	}
	return start, end
}

// copies are the passes drawn in the trace of a step, in order of time.
func copies(all map[pcommon.SpanID]ptrace.Span) (list []ptrace.Span) {
	for _, s := range all {
		if s.Name() == spans.SpanRPCPass {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b ptrace.Span) int { return int(a.StartTimestamp()) - int(b.StartTimestamp()) })
	return list
}

// A trace lasts as long as its step, and has the same content, for any time of reading the passes.
func TestUnplaced(t *testing.T) {
	batch := func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) }
	var want []string
	for name, tt := range map[string]struct {
		source spans.TimeSource
		start  int64 // of the first pass
		order  []int
	}{
		"passes after the step":              {spans.TimeSynthetic, 1060 * second, []int{0, 1, 2}},
		"passes before the step":             {spans.TimeSynthetic, 1060 * second, []int{1, 2, 0}},
		"the second pass first":              {spans.TimeSynthetic, 1060 * second, []int{2, 0, 1}},
		"a file older than the job":          {spans.TimeSynthetic, 2 * second, []int{0, 1, 2}},
		"lines that came when they happened": {spans.TimeObserved, 1003 * second, []int{1, 0, 2}},
		"lines that came late":               {spans.TimeObserved, 1012 * second, []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			parts := []func(j *job){
				batch,
				func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 1, tt.start, second/10, tt.source) },
				func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 2, tt.start+2*second, second/5, tt.source) },
			}
			for _, i := range tt.order {
				b.consume(t, parts[i])
			}
			b.over(t)
			lines := told(b.sink)
			assert.Empty(t, find(lines, "ORPHAN"))
			of := b.of(uuid)
			start, end := extent(of)
			assert.Equal(t, [2]int64{1000 * second, 1010 * second}, [2]int64{start, end})

			list := copies(of)
			require.Len(t, list, 2)
			own := spans.ClocklessTraceID(uuid)
			for i, s := range list {
				assert.Equal(t, int64(i+1), attr(s, spans.AttrZMQPass).Int(), "in their order")
				assert.Equal(t, int64(i+1)*second, int64(s.EndTimestamp()-s.StartTimestamp()))
				assert.Equal(t, string(spans.TimeSynthetic), attr(s, spans.AttrTimeSource).Str())
				require.Equal(t, 1, s.Links().Len())
				assert.Equal(t, own, s.Links().At(0).TraceID())
				of, ok := b.of(own)[s.Links().At(0).SpanID()]
				require.True(t, ok)
				assert.Equal(t, int64(i+1), attr(of, spans.AttrZMQPass).Int())
				assert.Equal(t, uuid, of.Links().At(0).TraceID())
				assert.Contains(t, b.of(uuid), of.Links().At(0).SpanID())
				assert.Len(t, find(lines, fmt.Sprintf("%s@%d/Matmul@", s.Name(), s.StartTimestamp())), 3, "its slowest calls")
			}
			assert.Greater(t, list[1].StartTimestamp(), list[0].EndTimestamp())
			assert.Len(t, b.of(own), 2*(1+10+10), "nothing is lost")

			lines = find(lines, uuid.String()[:6]+" ")
			assert.Len(t, find(lines, "ml.step.sum.rpc.serialize=3"), 1)
			if want == nil {
				want = lines
			}
			assert.Equal(t, want, lines)
		})
	}
}

func attr(s ptrace.Span, name string) pcommon.Value {
	v, ok := s.Attributes().Get(name)
	if !ok {
		return pcommon.NewValueEmpty()
	}
	return v
}

// Passes that together took longer than the step are drawn within it all the same, in order; a single longer pass begins with it.
func TestUnplacedWithoutRoom(t *testing.T) {
	b := newBench(t)
	b.consume(t, func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) }, func(j *job) {
		for n := range int64(9) {
			j.idPass(uuid, pcommon.SpanID{}, n+1, (2000+10*n)*second, second/5+n*1e6, spans.TimeSynthetic)
		}
		j.idPass(uuid, pcommon.SpanID{}, 10, 3000*second, 2*second, spans.TimeSynthetic)
	})
	b.over(t)
	list := copies(b.of(uuid))
	require.Len(t, list, 10)
	for i, s := range list[:9] {
		assert.Equal(t, int64(i+1), attr(s, spans.AttrZMQPass).Int())
		assert.LessOrEqual(t, int64(s.EndTimestamp()), 1010*second)
	}
	assert.Equal(t, 20*second, int64(list[9].EndTimestamp()-list[9].StartTimestamp()))
}

// Many passes with one id are one row and the slowest, like collectives.
func TestUnplacedMany(t *testing.T) {
	b := newBench(t)
	b.consume(t, func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) }, func(j *job) {
		for n := range int64(500) {
			j.idPass(uuid, pcommon.SpanID{}, n+1, (2000+10*n)*second, 1e6, spans.TimeSynthetic)
		}
	})
	b.over(t)
	of := b.of(uuid)
	start, end := extent(of)
	assert.Equal(t, [2]int64{1000 * second, 1010 * second}, [2]int64{start, end})
	lines := find(told(b.sink), uuid.String()[:6]+" ")
	assert.Len(t, find(lines, "/rpc.pass@"), 4)
	assert.Len(t, find(lines, "trainbridge.aggregate.count=500"), 1)
	assert.Empty(t, find(lines, "ORPHAN"))
	assert.Less(t, len(of), 20)
}

// A pass that comes after the step's end is drawn within, once, as long as the step is known; later, in the pass's own trace only.
func TestUnplacedLate(t *testing.T) {
	for name, store := range map[string]*memory{"with storage": {values: map[string][]byte{}}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if store != nil {
				b.promises.store, b.promises.keeps = store, true
				require.NoError(t, b.restoreLedger(t.Context()))
			}
			pass := func(n int64) func(j *job) {
				return func(j *job) {
					j.idPass(uuid, pcommon.SpanID{}, n, (1060+n)*second, second/10, spans.TimeObserved)
				}
			}
			b.consume(t, func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) }, pass(1))
			b.over(t)
			b.consume(t, pass(2), pass(2), pass(1))
			b.sweep(t.Context(), b.clock, false)
			list := copies(b.of(uuid))
			require.Len(t, list, 2)
			assert.Greater(t, list[1].StartTimestamp(), list[0].EndTimestamp())
			assert.Equal(t, int64(2), attr(list[1], spans.AttrZMQPass).Int())

			b.clock = b.clock.Add(b.cfg.Keep)
			b.over(t)
			b.consume(t, pass(3))
			b.over(t)
			of := b.of(uuid)
			assert.Len(t, copies(of), 2)
			start, end := extent(of)
			assert.Equal(t, [2]int64{1000 * second, 1010 * second}, [2]int64{start, end})
			assert.Empty(t, find(told(b.sink), "ORPHAN"))
		})
	}
}

// If no log of an id has a clock, the passes stay in the id's trace, with a breakdown if the arrival of lines is known.
func TestUnplacedAlone(t *testing.T) {
	for source, parts := range map[spans.TimeSource]int{spans.TimeSynthetic: 0, spans.TimeObserved: 1} {
		t.Run(string(source), func(t *testing.T) {
			b := newBench(t)
			b.consume(t, func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 1, 1000*second, second/10, source) })
			b.over(t)
			of := b.of(uuid)
			list := copies(of)
			require.Len(t, list, 1)
			assert.Equal(t, 1000*second, int64(list[0].StartTimestamp()))
			assert.Equal(t, string(source), attr(list[0], spans.AttrTimeSource).Str())
			start, end := extent(of)
			assert.Equal(t, [2]int64{1000 * second, 1001 * second}, [2]int64{start, end})
			lines := told(b.sink)
			assert.Empty(t, find(lines, "ORPHAN"))
			assert.Len(t, find(lines, "/step@"), len(of), "one root")
			assert.Len(t, find(lines, "/breakdown@"), parts)
		})
	}
}

// A parent named by the log, for instance of a Go service, is the parent of the copy, and the pass links to the parent.
func TestUnplacedBelowAParent(t *testing.T) {
	b := newBench(t)
	parent := spans.SpanID(uuid, "fn", []byte("generate_sequences 100 1000000000000"))
	b.consume(t, func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) },
		func(j *job) { j.idPass(uuid, parent, 1, 1060*second, second/10, spans.TimeSynthetic) })
	b.over(t)
	lines := told(b.sink)
	assert.Empty(t, find(lines, "ORPHAN"))
	assert.Len(t, find(lines, "/tq.batch@1000000000000/generate_sequences@1000000000000/rpc.pass@1000000000000 "), 1)
	own := b.of(spans.ClocklessTraceID(uuid))
	links := 0
	for _, s := range own {
		if s.Links().Len() > 0 {
			assert.Equal(t, parent, s.Links().At(0).SpanID())
			assert.True(t, s.ParentSpanID().IsEmpty())
			links++
		}
	}
	assert.Equal(t, 1, links)
}

// A span moved by one step_join to a trace of its own stays there in the next.
func TestUnplacedTwice(t *testing.T) {
	agent, gateway := newBench(t), newBench(t)
	agent.consume(t, func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) },
		func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 1, 1060*second, second/10, spans.TimeSynthetic) })
	agent.over(t)
	for _, td := range agent.sink.AllTraces() {
		again := ptrace.NewTraces()
		td.CopyTo(again)
		require.NoError(t, gateway.ConsumeTraces(t.Context(), again))
	}
	gateway.over(t)
	assert.Len(t, gateway.of(spans.ClocklessTraceID(uuid)), 1+10+10)
	start, end := extent(gateway.of(uuid))
	assert.Equal(t, [2]int64{1000 * second, 1010 * second}, [2]int64{start, end})
}

// After a crash an accepted pass is drawn in its step, and the step is no wider. A repeated pass is drawn unchanged, once.
func TestUnplacedCrash(t *testing.T) {
	store := &memory{values: map[string][]byte{}}
	start := func() *bench {
		b := newBench(t)
		b.promises.store, b.promises.keeps = store, true
		require.NoError(t, b.restoreLedger(t.Context()))
		require.NoError(t, b.restore(t.Context()))
		return b
	}
	batch := func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) }
	pass := func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 1, 1060*second, second/10, spans.TimeSynthetic) }
	first := start()
	first.consume(t, pass)
	first.consume(t, batch)

	second1 := start()
	second1.over(t)
	from, to := extent(second1.of(uuid))
	assert.Equal(t, [2]int64{1000 * second, 1010 * second}, [2]int64{from, to})
	assert.Len(t, copies(second1.of(uuid)), 1)

	again := start()
	again.consume(t, pass) // not accepted
	again.over(t)
	assert.Empty(t, again.of(uuid), "it is drawn")

	// A copy made and not accepted is the next process's first output.
	store.values = map[string][]byte{}
	third := start()
	third.consume(t, batch, pass)
	want := third.sink
	third.over(t)
	other := start()
	other.consume(t, pass, batch)
	other.over(t)
	assert.Empty(t, copies(other.of(uuid)))
	assert.Len(t, copies((&bench{sink: want}).of(uuid)), 1)
}

// A refused batch comes again, and the passes are drawn once.
func TestUnplacedRefused(t *testing.T) {
	b := newBench(t)
	sink := b.sink
	b.next = consumertest.NewErr(errors.New("down"))
	for range 3 {
		j := newJob()
		j.idPass(uuid, pcommon.SpanID{}, 1, 1060*second, second/10, spans.TimeSynthetic)
		require.Error(t, b.ConsumeTraces(t.Context(), j.traces()))
	}
	b.next = sink
	b.consume(t, func(j *job) { j.idPass(uuid, pcommon.SpanID{}, 1, 1060*second, second/10, spans.TimeSynthetic) },
		func(j *job) { j.function(uuid, "generate_sequences", 100, 1000*second, second, 8*second, second) })
	b.over(t)
	assert.Len(t, copies(b.of(uuid)), 1)
	assert.Len(t, find(told(b.sink), "/Matmul@"), 3+10*2, "three are drawn, and ten with a stage each are in their own trace")
}

// Beyond the limit, passes whose step was not read yet are dropped, rather than drawn at a wrong time. A dropped pass is no window that was closed.
func TestUnplacedCrowded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	const steps = 4000
	for name, tt := range map[string]struct{ lead, drawn int64 }{"read a little earlier": {200, steps}, "read first": {steps, 0}} {
		t.Run(name, func(t *testing.T) {
			b, run := newBench(t, func(c *Config) { c.MaxBytes = 1 << 20 }), newJob().run
			tel := componenttest.NewTelemetry()
			var err error
			b.telemetry, err = metadata.NewTelemetryBuilder(tel.NewTelemetrySettings())
			require.NoError(t, err)
			trace := func(n int64) pcommon.TraceID { return spans.KeyTraceID(run, "uuid", fmt.Appendf(nil, "%d", n)) }
			for n := range steps + tt.lead {
				b.clock = b.clock.Add(time.Millisecond)
				if n < steps {
					b.consume(t, func(j *job) {
						j.idPass(trace(n), pcommon.SpanID{}, n+1, (9000+n)*second, second/100, spans.TimeSynthetic)
					})
				}
				if n -= tt.lead; n >= 0 {
					b.consume(t, func(j *job) { j.function(trace(n), "generate_sequences", 100, (1000+n)*second, 1e8, 6e8, 1e8) })
				}
				require.LessOrEqual(t, b.size(), int64(1<<20))
			}
			b.over(t)
			drawn, all := 0, b.traces()
			for n := range int64(steps) {
				of := all[trace(n)]
				start, end := extent(of)
				require.Equal(t, [2]int64{(1000 + n) * second, (1000+n)*second + 8e8}, [2]int64{start, end}, "step %d", n)
				drawn += len(copies(of))
			}
			assert.Equal(t, int(tt.drawn), drawn)
			metadatatest.AssertEqualProcessorStepJoinWindows(t, tel, []metricdata.DataPoint[int64]{{Value: steps}}, metricdatatest.IgnoreTimestamp())
			require.NoError(t, tel.Shutdown(t.Context()))
		})
	}
}

// Steps and batches are the same with and without storage.
func TestGoldenWithStorage(t *testing.T) {
	for name, tt := range goldenJobs {
		t.Run(name, func(t *testing.T) {
			var lines [2][]string
			for i := range lines {
				b, j := newBench(t), newJob()
				b.promises.keeps = i == 1
				b.promises.store = &memory{values: map[string][]byte{}}
				require.NoError(t, b.restoreLedger(t.Context()))
				tt.job(j)
				require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
				b.over(t)
				lines[i] = told(b.sink)
			}
			assert.Equal(t, strings.Join(lines[0], "\n"), strings.Join(lines[1], "\n"))
		})
	}
}
