package trainmetricsconnector

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// takeAccount takes the series of accounts out of points and returns their values by run and label.
func takeAccount(of map[string]point) map[string]float64 {
	out := map[string]float64{}
	for key, p := range of {
		parts := splitKey(key)
		if parts[2] == spans.MetricRunTime || parts[2] == spans.MetricGoodput {
			name := strings.TrimSuffix(strings.TrimPrefix(strings.Trim(parts[3], "[]"), spans.AttrRunState+"="), " ")
			out[parts[1]+" "+name] = p.value
			delete(of, key)
		}
	}
	return out
}

// liveSteps consumes steps of a run, each as soon as the step is over.
func liveSteps(c *bed, res spans.Resource, steps int, each int64) {
	for range steps {
		c.clock = c.clock.Add(time.Duration(each))
		c.steps++
		b := spans.NewBatch("test", "")
		trace := pcommon.TraceID{5, byte(c.steps >> 16), byte(c.steps >> 8), byte(c.steps)}
		end := c.clock.UnixNano()
		s := b.Add(res, spans.Span{Trace: trace, ID: spanID(1), Name: spans.SpanStep, Is: spans.KindStep, Start: end - each, End: end})
		s.Attributes().PutInt(spans.AttrIteration, int64(c.steps))
		s.Attributes().PutStr(spans.AttrSource, "jsonl")
		c.consume(b.Traces())
	}
}

// jobSteps returns the messages of a job: steps of 1 s, 500 per message, with a checkpoint of 20 s after every 500th.
func jobSteps(steps int) (all []ptrace.Traces) {
	at := int64(base)
	for first := 0; first < steps; first += 500 {
		b := spans.NewBatch("test", "")
		for n := first; n < min(steps, first+500); n++ {
			took := second + int64(n%7)*second/100
			trace := pcommon.TraceID{3, byte(n >> 16), byte(n >> 8), byte(n)}
			s := b.Add(resourceA, spans.Span{Trace: trace, ID: spanID(1), Name: spans.SpanStep, Is: spans.KindStep, Start: at, End: at + took})
			s.Attributes().PutInt(spans.AttrIteration, int64(n+1))
			at += took
			if n%500 == 499 {
				p := b.Add(resourceA, spans.Span{
					Trace: trace, ID: spanID(2), Parent: spanID(1), Name: "save-checkpoint", Is: spans.KindPart, Start: at - took, End: at - took + 20*second,
				})
				p.Attributes().PutStr(spans.AttrStage, "save-checkpoint")
				at += 20 * second
			}
		}
		td := b.Traces()
		td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrSource, "megatron")
		all = append(all, td)
	}
	return all
}

// BenchmarkAccountFlush flushes a job of 100,000 steps after 15 new ones.
func BenchmarkAccountFlush(b *testing.B) {
	c := newBed(b)
	for _, td := range jobSteps(100_000) {
		c.consume(td)
	}
	c.flushed(time.Second)
	n := 100_000
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		batch := spans.NewBatch("test", "")
		for range 15 {
			n++
			at := base + int64(n)*2*second
			s := batch.Add(resourceA, spans.Span{
				Trace: pcommon.TraceID{4, byte(n >> 16), byte(n >> 8), byte(n)}, ID: spanID(1), Name: spans.SpanStep, Is: spans.KindStep, Start: at, End: at + 2*second,
			})
			s.Attributes().PutInt(spans.AttrIteration, int64(n))
		}
		td := batch.Traces()
		td.ResourceSpans().At(0).Resource().Attributes().PutStr(spans.AttrSource, "megatron")
		c.consume(td)
		b.StartTimer()
		c.flushed(15 * time.Second)
	}
}

// truthOf is the account of jobSteps: a checkpoint behind the last step counts.
func truthOf(steps int) (inSteps, saving float64) {
	for n := range steps {
		inSteps += 1 + float64(n%7)/100
	}
	return inSteps, 20 * float64(steps/500)
}

func checkAccount(t *testing.T, steps int, got map[string]float64) {
	t.Helper()
	inSteps, saving := truthOf(steps)
	assert.Len(t, got, 3)
	assert.InDelta(t, inSteps, got["run-1 step"], 1e-6)
	assert.InDelta(t, saving, got["run-1 checkpoint"], 1e-6)
	assert.InDelta(t, inSteps/(inSteps+saving), got["run-1 "], 1e-6)
}

// The account of a run is reported while the run goes on, counts no span twice, and lives longer than its series.
func TestAccount(t *testing.T) {
	c := newBed(t)
	for i, td := range jobSteps(1500) {
		c.consume(td)
		checkAccount(t, 500*(i+1), takeAccount(c.flushed(15*time.Second)))
		c.consume(td)
		checkAccount(t, 500*(i+1), takeAccount(c.flushed(15*time.Second)))
	}
	for _, p := range c.flushed(24 * time.Hour) {
		assert.True(t, p.ended)
	}
	assert.Empty(t, c.flushed(time.Second))
	c.consume(jobSteps(2000)[3])
	checkAccount(t, 2000, takeAccount(c.flushed(time.Second)))
}

// A long run's account is reported again when 1 in 64 steps is new, after a minute without news, and at the end.
func TestAccountOfALongRun(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	all := jobSteps(70_500)
	c := newBed(t)
	reported := func(steps int, after time.Duration) {
		t.Helper()
		checkAccount(t, steps, takeAccount(c.flushed(after)))
	}
	for _, td := range all[:139] {
		c.consume(td)
	}
	reported(69_500, time.Second)
	c.consume(all[139])
	reported(69_500, time.Second)
	reported(70_000, time.Minute)
	c.consume(all[140])
	reported(70_000, time.Second)
	require.NoError(t, c.Shutdown(t.Context()))
	checkAccount(t, 70_500, takeAccount(points(t, <-c.sent)))
}

// After a kill the next process continues the account, even if the last messages are sent again or neighbouring steps were merged.
func TestAccountAfterACrash(t *testing.T) {
	all := jobSteps(4000)
	for _, merged := range []bool{false, true} {
		d := newDisk(nil)
		c := newKept(t, d, time.Time{})
		for _, td := range all[:5] {
			c.consume(td)
		}
		if merged {
			require.True(t, c.store.accounts.slots[0].Ledger.Merge())
			c.consume(all[5])
		}
		c = newKept(t, newDisk(d.values), c.clock)
		assert.Zero(t, c.logs.Len())
		for _, td := range all[4:] {
			c.consume(td)
		}
		checkAccount(t, 4000, takeAccount(c.flushed(time.Second)))
	}
}

// What a join knew of slow steps before a kill counts in the goodput after it.
func TestSlowStepsAfterACrash(t *testing.T) {
	at := func(n int) int64 { return base + int64(n)*2*second }
	steps := func(first, last int) ptrace.Traces {
		b := spans.NewBatch("test", "")
		for n := first; n < last; n++ {
			s := b.Add(resourceA, spans.Span{
				Trace: pcommon.TraceID{3, byte(n)}, ID: spanID(1), Name: spans.SpanStep, Is: spans.KindStep, Start: at(n), End: at(n + 1),
			})
			s.Attributes().PutInt(spans.AttrIteration, int64(n+1))
			s.Attributes().PutStr(spans.AttrSource, "jsonl")
		}
		return b.Traces()
	}
	b := spans.NewBatch("test", "")
	s := addBreakdown(b, resourceA, 9, spans.WindowStep, map[string]float64{spans.PartCompute: 2})
	s.SetStartTimestamp(pcommon.Timestamp(at(3)))
	s.SetEndTimestamp(pcommon.Timestamp(at(4)))
	s.Attributes().PutDouble(spans.AttrStepExcess, 1.5)
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	c.consume(steps(0, 10))
	c.consume(b.Traces())
	c.consume(steps(10, 20))
	const goodput = (20*2 - 1.5) / (20 * 2)
	assert.InDelta(t, goodput, takeAccount(c.flushed(time.Second))["run-1 "], 1e-9)
	c = newKept(t, newDisk(d.values), c.clock)
	assert.Zero(t, c.logs.Len())
	c.consume(steps(20, 40))
	assert.InDelta(t, (40*2-1.5)/(40*2), takeAccount(c.flushed(time.Second))["run-1 "], 1e-9)
}

// The run without news for longest is evicted, from the storage too.
func TestRunsAreBounded(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	for i := range mostRuns + 50 {
		b := spans.NewBatch("test", "")
		res := resourceA
		res.RunID = fmt.Sprint("many-", i)
		addStepSpan(b, res, i+1, "jsonl", -1, 1, nil)
		c.clock = c.clock.Add(time.Second)
		c.consume(b.Traces())
	}
	assert.Len(t, c.store.accounts.runs, mostRuns)
	assert.Len(t, c.store.accounts.slots, mostRuns)
	assert.Nil(t, c.store.accounts.runs[resourceKey{run: "many-49"}])
	stored := 0
	for key := range d.values {
		if strings.HasPrefix(key, "run-") {
			stored++
		}
	}
	assert.Equal(t, 3*mostRuns, stored, "a head, names and a chunk of each")
	next := newKept(t, newDisk(d.values), c.clock)
	assert.Len(t, next.store.accounts.runs, mostRuns)
	assert.NotNil(t, next.store.accounts.runs[resourceKey{run: "many-50"}])
}

// A failed write is repaired by the next, chunks that no longer exist included.
func TestAccountWhileStorageFails(t *testing.T) {
	all := jobSteps(3000)
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	c.consume(all[0])
	d.set(errors.New("no space left on device"))
	for _, td := range all[1:5] {
		c.consume(td)
	}
	require.True(t, c.store.accounts.slots[0].Ledger.Merge())
	d.set(nil)
	c.consume(all[5])
	next := newKept(t, newDisk(d.values), c.clock)
	assert.Zero(t, next.logs.Len())
	next.store.accounts.slots[0].changed = true
	checkAccount(t, 3000, takeAccount(next.flushed(time.Second)))
}
