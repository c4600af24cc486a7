package stepjoinprocessor

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// flaky is a storage that fails in one call, or from that call on.
type flaky struct {
	memory
	calls, fails int // the first is 0
	forever      bool
	kept         bool // the failing call still stores, like a failed fsync
}

var errDisk = errors.New("the disk is full")

func (f *flaky) Batch(ctx context.Context, ops ...*storage.Operation) error {
	n := f.calls
	f.calls++
	if n == f.fails || f.forever && n > f.fails {
		if f.kept {
			return errors.Join(errDisk, f.memory.Batch(ctx, ops...))
		}
		return errDisk
	}
	return f.memory.Batch(ctx, ops...)
}

// halves are the spans of some steps, in two messages a step: each half has tops of the same traces.
func halves() (all []ptrace.Traces) {
	for n := range int64(3) {
		j := newJob()
		aStep(j, n, (1000+10*n)*second)
		one, other := ptrace.NewTraces(), ptrace.NewTraces()
		for i, s := range split(j.traces()) {
			to := one
			if i%2 > 0 {
				to = other
			}
			s.ResourceSpans().MoveAndAppendTo(to.ResourceSpans())
		}
		all = append(all, one, other)
	}
	return all
}

// whole checks that no span has an unsent parent, and that the storage is empty.
func whole(t *testing.T, sink *consumertest.TracesSink, store *memory) {
	t.Helper()
	lines := told(sink)
	assert.Empty(t, find(lines, "ORPHAN"))
	assert.NotEmpty(t, find(lines, "/breakdown@"))
	for key := range store.values {
		assert.False(t, strings.HasPrefix(key, "chunk-"), key)
	}
}

// A batch may promise a group twice, first its window and then its root: both are kept, and deleted once sent, by this process or the next.
func TestPromisedTwiceAtOnce(t *testing.T) {
	for n := range 6 {
		store := &flaky{memory: memory{values: map[string][]byte{}}, fails: n/2 - 1}
		b, j := newBench(t), newJob()
		b.promises.store, b.promises.keeps = store, true
		aStep(j, 0, 1000*second)
		require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
		trace := j.step(1, 1010*second, 1020*second)
		td := j.traces()
		child := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		child.SetParentSpanID(pcommon.SpanID{1})
		child.Attributes().PutStr(spans.AttrJoinBy, spans.JoinByID)
		j.function(trace, "update_actor", 100, 1011*second, second, second, second)
		j.traces().ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		require.NoError(t, b.ConsumeTraces(t.Context(), td))
		if n%2 > 0 {
			b = after(t, b, store)
		}
		b.over(t)
		assert.NotEmpty(t, store.values)
		for key := range store.values {
			assert.False(t, strings.HasPrefix(key, "chunk-"), key)
		}
	}
}

// A root promised after its window is sent after two crashes, even if the facts are lost: the later promise is the one kept.
func TestLaterPromiseStays(t *testing.T) {
	store := &flaky{memory: memory{values: map[string][]byte{}}, fails: -1}
	b, j := newBench(t), newJob()
	b.promises.store, b.promises.keeps = store, true
	aStep(j, 0, 1000*second)
	trace := j.step(1, 1010*second, 1020*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	j.function(trace, "update_actor", 100, 1011*second, second, second, second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b = after(t, b, store)
	b.sweep(t.Context(), b.clock, false)
	for key := range store.values {
		if strings.HasPrefix(key, "facts-") || strings.HasPrefix(key, "journal") {
			delete(store.values, key)
		}
	}
	b = after(t, b, store)
	b.over(t)
	assert.Empty(t, find(told(b.sink), "ORPHAN"))
}

// A storage that fails at any call, or from then on, blocks no span and changes none. If the process is killed then, positions of files are not stored either:
// repeats make no orphan.
func TestStorageFails(t *testing.T) {
	for fails := range 10 {
		for _, forever := range []bool{false, true} {
			for _, kept := range []bool{false, true} {
				store := &flaky{memory: memory{values: map[string][]byte{}}, fails: fails, forever: forever, kept: kept}
				b := newBench(t)
				b.promises.store = store
				list := halves()
				for _, td := range list[:4] {
					require.NoError(t, b.ConsumeTraces(t.Context(), td))
				}
				b.over(t)
				for _, td := range list[4:] {
					require.NoError(t, b.ConsumeTraces(t.Context(), td))
				}
				next := after(t, b, store) // killed
				store.fails, store.forever = -1, false
				for _, td := range halves() {
					require.NoError(t, next.ConsumeTraces(t.Context(), td))
				}
				next.over(t)
				// Undeleted promises are deleted with the next that is kept.
				j := newJob()
				aStep(j, 9, 2000*second)
				require.NoError(t, next.ConsumeTraces(t.Context(), j.traces()))
				next.over(t)
				whole(t, b.sink, &store.memory)
			}
		}
	}
}

// behind is a storage that does not wait for the disk; the disk fails if err is set.
type behind struct {
	memory
	err error
}

func (d *behind) Write(ctx context.Context, ops ...*storage.Operation) error {
	return d.Batch(ctx, ops...)
}

func (d *behind) Sync(context.Context) error { return d.err }

// A promise stays in the storage until the counters of sent spans are on disk, too.
func TestPromiseOutlivesWhatIsOwed(t *testing.T) {
	store := &behind{memory{values: map[string][]byte{}}, errDisk}
	b := newBench(t)
	b.promises.store = store
	for _, td := range halves() {
		require.NoError(t, b.ConsumeTraces(t.Context(), td))
	}
	b.over(t)
	assert.Contains(t, store.values, chunkKey(0))
	store.err = nil
	b.over(t)
	whole(t, b.sink, &store.memory)
}

// after is the process after a kill.
func after(t *testing.T, b *bench, store storage.Client) *bench {
	t.Helper()
	next := newBench(t)
	next.promises.store, next.sink, next.next, next.clock = store, b.sink, b.sink, b.clock
	require.NoError(t, next.restore(t.Context()))
	return next
}

// A process killed before, during or after any passing or sending leaves no orphan: the next process keeps the promises.
func TestKilledAnywhere(t *testing.T) {
	for kill := range 14 {
		store := &memory{values: map[string][]byte{}}
		b := newBench(t)
		b.promises.store = store
		sink, n := b.sink, 0
		ctx, stop := context.WithCancel(t.Context())
		b.next = consumerFunc(func(ctx context.Context, td ptrace.Traces) error {
			if n++; n > kill {
				stop()
				return errors.New("killed")
			}
			return sink.ConsumeTraces(ctx, td)
		})
		var left []ptrace.Traces
		for i, td := range halves() {
			again := ptrace.NewTraces()
			td.CopyTo(again)
			if b.ConsumeTraces(ctx, td) != nil {
				left = append(left, again) // the source reads it again
			}
			if i == 3 {
				b.pass(b.cfg.Wait + time.Second)
				b.sweep(ctx, b.clock, false)
			}
		}
		next := after(t, b, store)
		for _, td := range left {
			require.NoError(t, next.ConsumeTraces(t.Context(), td))
		}
		next.over(t)
		stop()
		assert.Empty(t, find(told(sink), "ORPHAN"), "killed at %d", kill)
		for key := range store.values {
			assert.False(t, strings.HasPrefix(key, "chunk-"), key)
		}
	}
}

type consumerFunc func(context.Context, ptrace.Traces) error

func (consumerFunc) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (f consumerFunc) ConsumeTraces(ctx context.Context, td ptrace.Traces) error { return f(ctx, td) }

// A shutdown during an outage ends with the context; the next process keeps the promises.
func TestShutdownInAnOutage(t *testing.T) {
	store := &memory{values: map[string][]byte{}}
	b := newBench(t)
	require.NoError(t, b.Start(t.Context(), componenttest.NewNopHost()))
	b.promises.store = store
	for _, td := range halves() {
		require.NoError(t, b.ConsumeTraces(t.Context(), td))
	}
	b.next = consumertest.NewErr(errors.New("down"))
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	require.NoError(t, b.Shutdown(ctx))
	next := after(t, b, store)
	next.over(t)
	assert.Empty(t, find(told(b.sink), "ORPHAN"))
}

// Many sources send at once while groups are closed.
func TestManyAtOnce(t *testing.T) {
	b := newBench(t, func(c *Config) { c.MaxBytes = 1 << 20 })
	b.promises.store = &memory{values: map[string][]byte{}}
	b.next = consumerFunc(func(ctx context.Context, td ptrace.Traces) error {
		own := ptrace.NewTraces()
		td.CopyTo(own)
		return b.sink.ConsumeTraces(ctx, own)
	})
	var sources, sweeps sync.WaitGroup
	done := make(chan struct{})
	sweeps.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				b.sweep(context.Background(), b.clock.Add(time.Duration(i)*time.Second), false)
			}
		}
	})
	for source := range int64(8) {
		sources.Go(func() {
			for n := range int64(20) {
				j := newJob()
				aStep(j, 100*source+n, (1000+10*(100*source+n))*second)
				assert.NoError(t, b.ConsumeTraces(context.Background(), j.traces()))
			}
		})
	}
	sources.Wait()
	close(done)
	sweeps.Wait()
	b.sweep(t.Context(), b.clock, true)
	whole(t, b.sink, b.promises.store.(*memory))
}

// Foreign spans with false times and kinds neither panic nor stop later spans.
func TestHostile(t *testing.T) {
	b := newBench(t)
	td := ptrace.NewTraces()
	times := []uint64{0, 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 1, uint64(1000 * second)}
	i := byte(0)
	for _, kind := range []string{"", "step", "part", "function", "stage", "collective", "pass", "session", "calls", "call", "evaluation", "root", "joined", "no such kind"} {
		for _, start := range times {
			for _, end := range times {
				rs := td.ResourceSpans().AppendEmpty()
				if i%3 > 0 {
					rs.Resource().Attributes().PutStr("ml.run.id", "run-1")
				}
				s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				m := s.Attributes()
				m.PutStr("trainbridge.kind", kind)
				m.PutStr("trainbridge.join.by", "id")
				m.PutDouble("nccl.late.max", 1e300)
				m.PutDouble("nccl.clock.offset", 1e300)
				m.PutDouble("ml.train.steps_covered", -1e300)
				m.PutStr("nccl.ranks", "many")
				i++
				s.SetTraceID(pcommon.TraceID{i % 7, 1})
				s.SetSpanID(pcommon.SpanID{i, byte(start), byte(end)})
				s.SetName("train.step")
				s.SetStartTimestamp(pcommon.Timestamp(start))
				s.SetEndTimestamp(pcommon.Timestamp(end))
			}
		}
	}
	require.NoError(t, b.ConsumeTraces(t.Context(), td))
	j := newJob()
	j.run = "run-2"
	aStep(j, 7, 1000*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.clock = b.clock.Add(time.Minute)
	b.sweep(t.Context(), b.clock, true)
	assert.Len(t, find(told(b.sink), "trainbridge.aggregate.count=8"), 1)
}
