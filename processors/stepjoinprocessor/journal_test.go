package stepjoinprocessor

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

const stepsOfModel = 12

// modelJob is the messages of a job: steps with collectives, passes and calls of TransferQueue, a pass without a clock for each, and watermarks of the
// collectives.
func modelJob(rnd *rand.Rand) (all []ptrace.Traces) {
	for n := range int64(stepsOfModel) {
		j, start := newJob(), (1000+10*n)*second+1
		aStep(j, n, start)
		j.idPass(spans.KeyTraceID(j.run, "uuid", fmt.Appendf(nil, "%d", n)), pcommon.SpanID{}, n, start+60*second, second/10, spans.TimeSynthetic)
		of := split(j.traces())
		rnd.Shuffle(len(of), func(a, b int) { of[a], of[b] = of[b], of[a] })
		for len(of) > 0 {
			message := ptrace.NewTraces()
			take := min(len(of), 1+rnd.IntN(40))
			for _, td := range of[:take] {
				td.ResourceSpans().MoveAndAppendTo(message.ResourceSpans())
			}
			all, of = append(all, message), of[take:]
		}
		j.watermark("a/0", 1, n+1, start+10*second, start+10*second, n == 0)
		all = append(all, j.traces())
	}
	return all
}

// lives is a step_join that is killed now and then.
type lives struct {
	*testing.T
	*bench

	stored map[string][]byte
}

// begin starts the next process with the stored state of the last.
func (l *lives) begin() {
	l.Helper()
	b := newBench(l.T)
	if l.bench != nil {
		b.sink, b.next, b.clock = l.sink, l.next, l.clock
	}
	l.bench = b
	b.promises.store, b.promises.keeps = &memory{values: l.stored}, true
	require.NoError(l, b.restoreLedger(l.Context()))
	require.NoError(l, b.restore(l.Context()))
}

func (l *lives) take(td ptrace.Traces) {
	l.Helper()
	own := ptrace.NewTraces()
	td.CopyTo(own)
	require.NoError(l, l.ConsumeTraces(l.Context(), own))
}

// tick lets seconds pass.
func (l *lives) tick(seconds int) {
	for range seconds {
		l.pass(time.Second)
		l.sweep(l.Context(), l.clock, false)
	}
}

// aMinute takes the 6,000 collectives of a minute, of 9 ms with a wait of 1 ms each. then is called after each second.
func (l *lives) aMinute(then func()) {
	l.Helper()
	for i := range int64(60) {
		j := newJob()
		for n := range int64(100) {
			at := 1000*second + (i*100+n)*1e7
			j.collective(i*100+n, at, at+9e6, 1e6, "node-0")
		}
		l.take(j.traces())
		l.tick(1)
		then()
	}
}

// partsOf are the sent breakdowns, without the verdict by the run's history.
func partsOf(sink *consumertest.TracesSink) (all []string) {
	for _, line := range find(told(sink), "/breakdown@") {
		var of []string
		for word := range strings.FieldsSeq(line) {
			if strings.Contains(word, "/breakdown@") || strings.HasPrefix(word, "ml.step.") || strings.HasPrefix(word, spans.AttrJoinPartial) {
				of = append(of, word)
			}
		}
		all = append(all, strings.Join(of, " "))
	}
	slices.Sort(all)
	return all
}

// Killed at any moment, also with repeats of accepted messages: each breakdown is the same as without a kill, and no entry is stored at the end.
func TestJournalModel(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds /= 4
	}
	for seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 29))
			messages := modelJob(rnd)
			whole := &lives{T: t, stored: map[string][]byte{}}
			whole.begin()
			l := &lives{T: t, stored: map[string][]byte{}}
			l.begin()
			kills := 0
			for i, m := range messages {
				whole.take(m)
				whole.tick(1)
				l.take(m)
				l.tick(rnd.IntN(4))
				if rnd.IntN(6) == 0 {
					l.stored = maps.Clone(l.stored)
					l.begin()
					kills++
					for again := max(0, i-rnd.IntN(4)); again <= i; again++ {
						l.take(messages[again])
					}
				}
			}
			whole.tick(30)
			l.tick(30)
			require.Len(t, partsOf(whole.sink), 3*stepsOfModel, "of the batch, of the step and of its pass")
			assert.Equal(t, partsOf(whole.sink), partsOf(l.sink), "%d kills", kills)
			assert.Empty(t, find(told(l.sink), "ORPHAN"))
			left := 0
			for key := range l.stored {
				if strings.HasPrefix(key, "facts-") || strings.HasPrefix(key, "chunk-") {
					left++
				}
			}
			assert.Zero(t, left)
		})
	}
}

// The journal is bounded for any input. Windows of the next process that may lack facts for lack of room are marked.
func TestJournalBounded(t *testing.T) {
	l := &lives{T: t, stored: map[string][]byte{}}
	l.begin()
	l.cfg.MaxBytes = 1 << 18
	l.aMinute(func() {
		bytes := 0
		for _, b := range l.stored {
			bytes += len(b)
		}
		require.Less(t, bytes, 3<<17)
	})
	l.begin()
	j := newJob()
	j.step(1, 1000*second, 1060*second)
	j.collective(10_000, 1070*second, 1071*second, second/10, "node-0")
	j.step(2, 1061*second, 1080*second)
	l.take(j.traces())
	l.tick(30)
	down := partsOf(l.sink)
	require.Len(t, down, 2)
	assert.Contains(t, down[0], spans.AttrJoinPartial, "its first half is not there")
	assert.NotContains(t, down[1], spans.AttrJoinPartial)
}

// A storage that fails whenever entries are to be deleted still has them in its range: the next process knows all facts.
func TestJournalUndeleted(t *testing.T) {
	l := &lives{T: t, stored: map[string][]byte{}}
	l.begin()
	l.cfg.MaxBytes = 1 << 18
	l.promises.store = &undeleting{memory{values: l.stored}}
	l.aMinute(func() {})
	l.begin()
	j := newJob()
	j.step(1, 1000*second, 1060*second)
	l.take(j.traces())
	l.tick(30)
	down := partsOf(l.sink)
	require.Len(t, down, 1)
	assert.Contains(t, down[0], "ml.step.time.collective.wait=6 ml.step.time.collective=48 ")
	assert.NotContains(t, down[0], spans.AttrJoinPartial)
}

// undeleting is a storage that deletes no facts.
type undeleting struct{ memory }

func (u *undeleting) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if slices.ContainsFunc(ops, func(op *storage.Operation) bool {
		return op.Type == storage.Delete && strings.HasPrefix(op.Key, "facts-")
	}) {
		return errDisk
	}
	return u.memory.Batch(ctx, ops...)
}

// A storage that fails for a while blocks nothing, and has all facts later.
func TestJournalOwes(t *testing.T) {
	l := &lives{T: t, stored: map[string][]byte{}}
	l.begin()
	full := &sometimes{memory: memory{values: l.stored}}
	l.promises.store = full
	messages := modelJob(rand.New(rand.NewPCG(1, 31)))
	for i, m := range messages {
		full.full = i%3 != 0 && i != len(messages)-1
		l.take(m)
	}
	l.begin()
	l.tick(30)
	down := partsOf(l.sink)
	require.Len(t, down, 3*stepsOfModel)
	assert.NotContains(t, strings.Join(down, "\n"), spans.AttrJoinPartial)
}

// sometimes is a storage without room at times.
type sometimes struct {
	memory

	full bool
}

func (s *sometimes) Batch(ctx context.Context, ops ...*storage.Operation) error {
	if s.full {
		return errDisk
	}
	return s.memory.Batch(ctx, ops...)
}

// Damaged entries are read as far as possible, and nothing panics.
func TestJournalBroken(t *testing.T) {
	l := &lives{T: t, stored: map[string][]byte{}}
	l.begin()
	for _, m := range modelJob(rand.New(rand.NewPCG(1, 31)))[:9] {
		l.take(m)
	}
	rnd := rand.New(rand.NewPCG(1, 37))
	for range 500 {
		stored := map[string][]byte{}
		for key, b := range l.stored {
			if b = slices.Clone(b); strings.HasPrefix(key, "facts-") && len(b) > 0 {
				b[rnd.IntN(len(b))] ^= byte(1 << rnd.IntN(8))
				b = b[:len(b)-rnd.IntN(2)]
			}
			stored[key] = b
		}
		next := &lives{T: t, stored: stored}
		next.begin()
		next.tick(15)
	}
}
