package stepjoinprocessor

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// watermark says how far the collectives of a partition were sent.
func (j *job) watermark(source string, epoch, number, until, sent int64, first bool) ptrace.Span {
	trace := spans.KeyTraceID(j.run, spans.SpanNCCLWatermark)
	s := j.out.Add(spans.Resource{Service: "nccl", RunID: j.run, RecordOnly: true}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, source), Name: spans.SpanNCCLWatermark, Kind: ptrace.SpanKindInternal, Start: until, End: until,
	})
	s.Attributes().PutStr(spans.AttrNCCLWatermarkSource, source)
	s.Attributes().PutInt(spans.AttrNCCLWatermarkEpoch, epoch)
	s.Attributes().PutInt(spans.AttrNCCLWatermarkNumber, number)
	s.Attributes().PutInt(spans.AttrNCCLWatermarkUntil, until)
	s.Attributes().PutInt(spans.AttrNCCLWatermarkSent, sent)
	if first {
		s.Attributes().PutBool(spans.AttrNCCLWatermarkFirst, true)
	}
	return s
}

// The step of TestWatermark.
const (
	stepStart = int64(1_700_000_000) * second
	stepEnd   = stepStart + 10*second
)

// arrival is an input some time after the event before.
type arrival struct {
	after time.Duration
	do    func(j *job)
}

func aCollective(j *job) { j.collective(0, stepStart+second, stepStart+2*second, second/2, "node-1") }

// first is the first watermark of a source, and later each one behind it.
func first(source string, until, sent int64) arrival {
	return arrival{0, func(j *job) { j.watermark(source, 1, 1, until, sent, true) }}
}

func later(after time.Duration, source string, epoch, number, until, sent int64) arrival {
	return arrival{after, func(j *job) { j.watermark(source, epoch, number, until, sent, false) }}
}

// unreadable is the second watermark of a source, which could not read records until a time.
func unreadable(source string, until, end int64) arrival {
	return arrival{0, func(j *job) {
		j.watermark(source, 1, 2, until, 0, false).Attributes().PutInt(spans.AttrNCCLWatermarkUnreadable, end)
	}}
}

var watermarks = map[string]struct {
	events []arrival
	told   time.Duration // time of the step's closing, after the step's line
	reason string
	wait   bool // the collective is in it
}{
	"no source":    {nil, 10 * time.Second, "", false},
	"all was sent": {[]arrival{{0, aCollective}, first("a/0", stepEnd, 0)}, 10 * time.Second, "", true},
	"a partition is behind": {
		[]arrival{first("a/0", 0, 0), {60 * time.Second, aCollective}, later(0, "a/0", 1, 2, stepEnd, 0)}, 61 * time.Second, "", true,
	},
	"another is, too": {
		[]arrival{first("a/0", 0, 0), first("a/1", stepEnd-1, 0), later(30*time.Second, "a/0", 1, 2, stepEnd, 0), later(5*time.Second, "a/1", 1, 2, stepEnd, 0)},
		36 * time.Second, "", false,
	},
	"it stays so":               {[]arrival{first("a/0", stepEnd-1, 0)}, 120 * time.Second, spans.PartialBehind, false},
	"it has no name":            {[]arrival{first("", stepStart, 0)}, 120 * time.Second, spans.PartialBehind, false},
	"it goes back":              {[]arrival{first("a/0", stepEnd, 0), later(time.Second, "a/0", 1, 2, stepStart, 0)}, 10 * time.Second, "", false},
	"it began before this does": {[]arrival{later(0, "a/0", 1, 2, stepEnd, stepStart+5*second)}, 10 * time.Second, spans.PartialRestart, false},
	"it began long before":      {[]arrival{later(0, "a/0", 1, 2, stepEnd, stepStart-1)}, 10 * time.Second, "", false},
	"one of two began before": {
		[]arrival{first("a/0", stepEnd, 0), later(0, "a/1", 1, 7, stepEnd, stepStart)}, 10 * time.Second, spans.PartialRestart, false,
	},
	"a watermark is missing": {
		[]arrival{first("a/0", stepStart, stepStart), later(0, "a/0", 1, 3, stepEnd, stepStart+second)}, 10 * time.Second, spans.PartialRestart, false,
	},
	"one was missing before": {
		[]arrival{first("a/0", stepStart, stepStart), later(0, "a/0", 1, 3, stepEnd, stepStart-second)}, 10 * time.Second, "", false,
	},
	"a watermark comes again": {
		[]arrival{first("a/0", 0, 0), later(0, "a/0", 1, 2, stepEnd, stepEnd), first("a/0", 0, 0), later(0, "a/0", 1, 2, stepEnd, stepEnd)},
		10 * time.Second, "", false,
	},
	"records of its time were unreadable": {
		[]arrival{first("a/0", 0, 0), unreadable("a/0", stepEnd, stepStart)}, 10 * time.Second, spans.PartialUnreadable, false,
	},
	"records before were unreadable": {[]arrival{first("a/0", 0, 0), unreadable("a/0", stepEnd, stepStart-1)}, 10 * time.Second, "", false},
	"the topic was made anew": {
		[]arrival{
			first("a/0", stepEnd, stepStart), {0, func(j *job) { j.watermark("a/0", 2, 1, 0, 0, true) }}, later(0, "a/0", 2, 2, stepEnd, stepStart+second),
		},
		10 * time.Second, spans.PartialRestart, false,
	},
	"partitions were added": {
		[]arrival{first("a/0", 0, 0), {0, func(j *job) { j.watermark("a/0", 1, 2, stepEnd, stepEnd, true) }}}, 10 * time.Second, spans.PartialRestart, false,
	},
	"they were, and it began before this does": {
		[]arrival{{0, func(j *job) { j.watermark("a/0", 1, 7, stepEnd, stepEnd, true) }}}, 10 * time.Second, spans.PartialRestart, false,
	},
	"another goes on": {
		[]arrival{first("a/0", stepEnd, stepStart), later(0, "a/0", 2, 1, 0, stepStart-second), later(0, "a/0", 2, 2, stepEnd, stepStart+second)},
		10 * time.Second, spans.PartialRestart, false,
	},
	"another had nothing of it": {
		[]arrival{
			first("a/0", stepEnd, stepStart), later(0, "a/0", 2, 1, 0, stepStart-second), later(0, "a/0", 2, 2, stepEnd, stepStart-second),
			later(0, "a/0", 2, 3, stepEnd, stepEnd), later(0, "a/0", 1, 2, 0, stepEnd),
		},
		10 * time.Second, "", false,
	},
}

// A step waits for collectives as long as a source announces more, up to a limit. Then the step is partial, with the reason.
func TestWatermark(t *testing.T) {
	for name, tt := range watermarks {
		t.Run(name, func(t *testing.T) {
			b, j := newBench(t), newJob()
			trace := j.step(0, stepStart, stepEnd)
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			j.part(trace, "forward", stepStart, stepStart+second) // gives the step a breakdown
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			began, at := b.clock, time.Duration(0)
			breakdown := func() string { return strings.Join(find(told(b.sink), "/breakdown@"), "\n") }
			tick := func() {
				b.clock = b.clock.Add(time.Second)
				b.sweep(t.Context(), b.clock, false)
			}
			for _, e := range tt.events {
				for at += e.after; b.clock.Sub(began) < at; tick() {
					require.Empty(t, breakdown())
				}
				e.do(j)
				require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			}
			for breakdown() == "" {
				tick()
			}
			assert.Equal(t, tt.told, b.clock.Sub(began))
			if tt.reason == "" {
				assert.NotContains(t, breakdown(), spans.AttrJoinPartial)
			} else {
				assert.Contains(t, breakdown(), spans.AttrJoinPartialReason+"="+tt.reason)
			}
			assert.Equal(t, tt.wait, strings.Contains(breakdown(), "ml.step.time.collective.wait=0.5 "))
		})
	}
}

// Input from the time of a suspension is read before anything is closed.
func TestStoodStill(t *testing.T) {
	b, j := newBench(t), newJob()
	start := int64(1_700_000_000) * second
	b.sweep(t.Context(), b.clock, false)
	j.step(0, start, start+10*second)
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	b.clock = b.clock.Add(time.Minute)
	b.sweep(t.Context(), b.clock, false)
	j.collective(0, start+second, start+2*second, second/2, "node-1")
	require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
	require.Empty(t, find(told(b.sink), "/breakdown@"))
	for range 11 {
		b.clock = b.clock.Add(time.Second)
		b.sweep(t.Context(), b.clock, false)
	}
	assert.Len(t, find(told(b.sink), "ml.step.time.collective.wait=0.5 "), 1)
}

// messageOf is how a message comes from Kafka's receiver.
func messageOf(t *testing.T, offset int) context.Context {
	t.Helper()
	return client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{
		"kafka.topic": {"spans"}, "kafka.partition": {"3"}, "kafka.offset": {strconv.Itoa(offset)},
	})})
}

// until lets time pass until a breakdown is sent, and returns the time taken.
func (b *bench) until(t *testing.T) (took time.Duration, breakdown string) {
	t.Helper()
	began := b.clock
	for ; breakdown == "" && b.clock.Sub(began) < time.Hour; breakdown = strings.Join(find(told(b.sink), "/breakdown@"), "\n") {
		b.clock = b.clock.Add(time.Second)
		b.sweep(t.Context(), b.clock, false)
	}
	return b.clock.Sub(began), breakdown
}

// A process that has just taken over a run does not know the run's sources of collectives: silent sources, being taken over too, may send more.
func TestTakenOver(t *testing.T) {
	for name, tt := range map[string]struct {
		offset int       // of the first message
		words  []arrival // during the step
		took   time.Duration
		reason string
	}{
		"nothing was heard of any":         {7, nil, 2 * time.Minute, spans.PartialRestart},
		"nor was there before":             {0, nil, 2 * time.Minute, ""},
		"one is heard from its beginning":  {7, []arrival{first("a/0", stepEnd, 0)}, 2 * time.Minute, ""},
		"so is the run":                    {0, []arrival{first("a/0", stepEnd, 0)}, 10 * time.Second, ""},
		"another gateway joins them now":   {0, []arrival{first("a/0", stepEnd, 0), later(0, "a/0", 2, 1, stepEnd, stepEnd)}, 10 * time.Second, ""},
		"one of perhaps several was heard": {7, []arrival{later(0, "a/0", 1, 7, stepEnd, stepStart-second)}, 2 * time.Minute, ""},
		"another had sent more of it": {7, []arrival{
			later(0, "a/0", 1, 7, stepEnd, stepStart-second), later(0, "a/0", 2, 3, stepEnd, stepEnd),
		}, 2 * time.Minute, spans.PartialRestart},
		"another began since": {7, []arrival{
			later(0, "a/0", 1, 7, stepEnd, stepStart-second), later(0, "a/0", 1<<62, 3, stepEnd, stepEnd),
		}, 2 * time.Minute, ""},
		"and lacks something": {7, []arrival{later(0, "a/0", 1, 7, stepEnd, stepEnd)}, 2 * time.Minute, spans.PartialRestart},
	} {
		t.Run(name, func(t *testing.T) {
			b, j := newBench(t), newJob()
			for _, e := range tt.words {
				e.do(j)
			}
			j.part(j.step(0, stepStart, stepEnd), "forward", stepStart, stepStart+second)
			require.NoError(t, b.ConsumeTraces(messageOf(t, tt.offset), j.traces()))
			took, breakdown := b.until(t)
			assert.Equal(t, tt.took, took)
			assert.Equal(t, tt.reason != "", strings.Contains(breakdown, spans.AttrJoinPartialReason+"="+tt.reason))
		})
	}
}

// After a crash a step waits for the run's known sources of collectives, however long they are silent.
func TestSourcesAfterCrash(t *testing.T) {
	started := func(stored map[string][]byte) *bench {
		b := newBench(t)
		b.promises.store, b.promises.keeps = &memory{values: stored}, true
		require.NoError(t, b.restoreLedger(t.Context()))
		require.NoError(t, b.restore(t.Context()))
		return b
	}
	stored := map[string][]byte{}
	b, j := started(stored), newJob()
	for _, e := range []arrival{first("a/0", 0, 0), first("a/1", 0, 0)} {
		e.do(j)
	}
	require.NoError(t, b.ConsumeTraces(messageOf(t, 0), j.traces()))
	for _, say := range [][]arrival{nil, {later(0, "a/0", 1, 7, stepEnd, 0)}, {later(0, "a/0", 1, 7, stepEnd, 0), later(0, "a/1", 1, 7, stepEnd, 0)}} {
		b := started(maps.Clone(stored))
		j.part(j.step(0, stepStart, stepEnd), "forward", stepStart, stepStart+second)
		require.NoError(t, b.ConsumeTraces(messageOf(t, 1), j.traces()))
		for _, e := range say {
			e.do(j)
		}
		require.NoError(t, b.ConsumeTraces(messageOf(t, 2), j.traces()))
		took, breakdown := b.until(t)
		if len(say) == 2 {
			assert.Equal(t, 10*time.Second, took)
			assert.NotContains(t, breakdown, spans.AttrJoinPartial)
		} else {
			assert.Equal(t, 2*time.Minute, took)
			assert.Contains(t, breakdown, spans.AttrJoinPartialReason+"="+spans.PartialBehind)
		}
	}
}

// Facts read by another process are missed, despite any known facts of the run, also after a crash.
func TestMissed(t *testing.T) {
	for name, crash := range map[string]bool{"at work": false, "after a crash": true} {
		t.Run(name, func(t *testing.T) {
			l, j := &lives{T: t, stored: map[string][]byte{}}, newJob()
			l.begin()
			first("a/0", stepEnd, 0).do(j)
			require.NoError(t, l.ConsumeTraces(messageOf(t, 0), j.traces()))
			if crash {
				l.begin()
			}
			j.part(j.step(0, stepStart, stepEnd), "forward", stepStart, stepStart+second)
			require.NoError(t, l.ConsumeTraces(messageOf(t, 9), j.traces()))
			l.tick(60)
			require.Empty(t, find(told(l.sink), "/breakdown@"), "how much that is was not said yet")
			later(0, "a/0", 1, 70, stepEnd, stepStart+second).do(j)
			require.NoError(t, l.ConsumeTraces(messageOf(t, 10), j.traces()))
			_, breakdown := l.until(t)
			assert.Contains(t, breakdown, spans.AttrJoinPartialReason+"="+spans.PartialRestart)
		})
	}
}

// The collectives of a step go to another process if the partition does: after a pause, or while this process was down. The step is told as incomplete, unless
// the next message of the partition comes here.
func TestPartitionLost(t *testing.T) {
	for name, tt := range map[string]struct {
		word   bool // all collectives of the step's time are sent
		lost   bool // the kafka receiver gives the partition up
		crash  bool
		next   int // offset of the next message of the partition; 0: none comes
		took   time.Duration
		reason string
	}{
		"no collectives":                   {false, false, false, 0, 2 * time.Minute, ""},
		"lost":                             {false, true, false, 0, 2 * time.Minute, spans.PartialBehind},
		"lost after the word":              {true, true, false, 0, 2 * time.Minute, spans.PartialBehind},
		"lost, and given back":             {true, true, false, 2, 10 * time.Second, ""},
		"lost for some messages":           {true, true, false, 9, 2 * time.Minute, spans.PartialBehind},
		"lost by a crash":                  {true, false, true, 0, 2 * time.Minute, spans.PartialBehind},
		"not lost by a crash":              {true, false, true, 2, 10 * time.Second, ""},
		"by a crash, and given back later": {true, false, true, 9, 2 * time.Minute, spans.PartialBehind},
	} {
		t.Run(name, func(t *testing.T) {
			l, j := &lives{T: t, stored: map[string][]byte{}}, newJob()
			l.begin()
			partition, giveUp := context.WithCancel(messageOf(t, 0))
			defer giveUp()
			require.NoError(t, l.ConsumeTraces(partition, j.traces()))
			if tt.word {
				first("a/0", stepEnd, 0).do(j)
			}
			j.part(j.step(0, stepStart, stepEnd), "forward", stepStart, stepStart+second)
			next, giveUpToo := context.WithCancel(messageOf(t, 1))
			defer giveUpToo()
			require.NoError(t, l.ConsumeTraces(next, j.traces()))
			if tt.lost {
				giveUpToo()
			}
			if tt.crash {
				l.begin()
			}
			if tt.next > 0 {
				require.NoError(t, l.ConsumeTraces(messageOf(t, tt.next), newJob().traces()))
			}
			took, breakdown := l.until(t)
			assert.Equal(t, tt.took, took)
			assert.Equal(t, tt.reason != "", strings.Contains(breakdown, spans.AttrJoinPartialReason+"="+tt.reason), breakdown)
		})
	}
}

// slow is a backend that answers on demand.
type slow struct {
	consumertest.Consumer

	called chan context.Context
	answer chan error
}

func (s *slow) ConsumeTraces(ctx context.Context, _ ptrace.Traces) error {
	s.called <- ctx
	select {
	case err := <-s.answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A message of a reassigned partition is handled to the end, or not begun: a partly counted message would be counted again by another gateway.
func TestGivenUp(t *testing.T) {
	for name, grace := range map[string]time.Duration{"accepted": time.Hour, "the backend hangs": 0} {
		t.Run(name, func(t *testing.T) {
			b, j, next := newBench(t), newJob(), &slow{Consumer: consumertest.NewNop(), called: make(chan context.Context), answer: make(chan error)}
			b.next, b.grace = next, grace
			ctx, giveUp := context.WithCancel(messageOf(t, 0))
			j.step(0, stepStart, stepEnd)
			td, result := j.traces(), make(chan error)
			go func() { result <- b.ConsumeTraces(ctx, td) }()
			longer := <-next.called
			giveUp()
			if grace == 0 {
				require.ErrorIs(t, <-result, context.Canceled)
				return
			}
			require.NoError(t, longer.Err())
			next.answer <- nil
			require.NoError(t, <-result)
			before := b.size()
			j.step(1, stepEnd, stepEnd+second)
			require.ErrorIs(t, b.ConsumeTraces(ctx, j.traces()), context.Canceled)
			assert.Equal(t, before, b.size())
		})
	}
}
