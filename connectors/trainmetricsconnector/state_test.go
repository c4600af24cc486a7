package trainmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	lastTime  = prefix + "ml.train.step.last.time|[]"
	succeeds  = prefix + "ml.run.ended|[ml.run.outcome=success]"
	fails     = prefix + "ml.run.ended|[ml.run.outcome=failure]"
	liveCount = prefix + "ml.train.steps|[trainbridge.source=jsonl]"
)

// quiet is the alert of docs/reference/queries.md: no new step for 10 min, of a run that has not ended.
func (b *bed) quiet(got map[string]point) bool {
	p, known := got[lastTime]
	return known && float64(b.clock.UnixNano())/1e9-p.value > 600 && got[succeeds].value == 0 && got[fails].value == 0
}

func eventAt(class events.Class, at time.Time) ptrace.Traces {
	b := spans.NewBatch("test", "")
	s := b.Add(jobA, spans.Span{
		ID: spanID(int(at.UnixNano() % 1e6)), Name: spans.SpanEvent, Is: spans.KindEvent, Start: at.UnixNano(), End: at.UnixNano() + 1,
	})
	s.Attributes().PutStr(spans.AttrEventClass, string(class))
	return b.Traces()
}

// "No new step for 10 min" can be asked: after 11 min, still after 48, for a day, and counters go on after the pause.
func TestQuietRun(t *testing.T) {
	c := newBed(t)
	liveSteps(c, jobA, 100, second)
	last := float64(c.clock.UnixNano()) / 1e9
	for m := 1; m < 24*60; m++ {
		got := c.flushed(time.Minute)
		assert.Equal(t, m > 10, c.quiet(got), "after %d min", m)
		assert.InDelta(t, last, got[lastTime].value, 1e-6)
	}
	c.flushed(2 * time.Minute)
	assert.Empty(t, c.flushed(time.Minute))

	c = newBed(t)
	liveSteps(c, jobA, 100, second)
	assert.True(t, c.quiet(c.flushed(29*time.Minute)))
	liveSteps(c, jobA, 1, second)
	got := c.flushed(time.Second)
	assert.False(t, c.quiet(got))
	assert.InDelta(t, 101, got[liveCount].value, 0, "no reset")
}

// A run that ended is never quiet, whatever reported its end. A run that goes on after an error may be.
func TestEndedRun(t *testing.T) {
	for name, tt := range map[string]struct {
		end     func(c *bed)
		success float64
		failure float64
	}{
		"its log says that it is done": {func(c *bed) { c.consume(eventAt(events.ClassEnded, c.clock)) }, 1, 0},
		"killed for memory":            {func(c *bed) { c.consume(eventAt(events.ClassHostOOM, c.clock)) }, 0, 1},
		"its clock is 5 s behind":      {func(c *bed) { c.consume(eventAt(events.ClassHostOOM, c.clock.Add(-5*time.Second))) }, 0, 1},
		"done, then processes that leave": {func(c *bed) {
			c.consume(eventAt(events.ClassEnded, c.clock))
			c.consume(eventAt(events.ClassSignal, c.clock.Add(time.Second)))
		}, 1, 0},
		"an error of an hour ago, and steps since then": {func(c *bed) { c.consume(eventAt(events.ClassHostOOM, c.clock.Add(-time.Hour))) }, 0, 0},
		"restarted": {func(c *bed) {
			c.consume(eventAt(events.ClassHostOOM, c.clock))
			c.clock = c.clock.Add(time.Minute)
			liveSteps(c, jobA, 1, second)
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBed(t)
			liveSteps(c, jobA, 100, second)
			tt.end(c)
			got := c.flushed(48 * time.Minute)
			assert.InDelta(t, tt.success, got[succeeds].value, 0)
			assert.InDelta(t, tt.failure, got[fails].value, 0)
			assert.Equal(t, tt.success+tt.failure == 0, c.quiet(got))
		})
	}
}

// Reading yesterday's log does not make its run stalled.
func TestOldLogIsNotQuiet(t *testing.T) {
	c := newBed(t)
	for _, td := range jobSteps(1500) {
		c.clock = c.clock.Add(time.Second)
		c.consume(td)
	}
	got := c.flushed(15 * time.Second)
	assert.NotContains(t, got, lastTime)
	assert.NotContains(t, got, fails)
	assert.Zero(t, c.notes.Len(), "within the hour")

	c.clock = c.clock.Add(24 * time.Hour)
	res := jobA
	res.RunID = "yesterday"
	for i := range 2 {
		b := spans.NewBatch("test", "")
		addStepSpan(b, res, i+1, "jsonl", -1, int64(i+1), nil)
		c.consume(b.Traces())
		c.flushed(15 * time.Second)
	}
	require.Equal(t, 1, c.notes.Len(), "once")
	assert.Contains(t, c.notes.All()[0].Message, "trainbridge replay")
	assert.Equal(t, []any{"yesterday"}, c.notes.All()[0].ContextMap()["runs"])
}

// The state of a run survives a crash.
func TestQuietRunAfterACrash(t *testing.T) {
	d := newDisk(nil)
	c := newKept(t, d, time.Time{})
	liveSteps(c, jobA, 100, second)
	c.flushed(time.Second)
	d = newDisk(d.values)
	c = newKept(t, d, c.clock)
	assert.True(t, c.quiet(c.flushed(11*time.Minute)))
	c.consume(eventAt(events.ClassHostOOM, c.clock))
	c = newKept(t, newDisk(d.values), c.clock)
	assert.InDelta(t, 1, c.flushed(time.Second)[fails].value, 0)
}

// The series of a run with long steps outlive four steps.
func TestSeriesOutliveLongSteps(t *testing.T) {
	c := newBed(t)
	liveSteps(c, jobA, 3, 1200*second)
	assert.False(t, c.flushed(79 * time.Minute)[liveCount].ended)
	assert.True(t, c.flushed(2 * time.Minute)[liveCount].ended)
}

// Every counter and every histogram is 0 for two flushes: increase() counts the first event.
func TestAllAreBornAtZero(t *testing.T) {
	c := newBed(t)
	c.store.zeros = zeroFlushes
	c.consume(ofEveryKind(1))
	for flush := range zeroFlushes + 1 {
		born := 0
		for key, p := range c.flushed(15 * time.Second) {
			metric := spans.MetricNamed(splitKey(key)[2])
			if metric.Instrument != spans.Counter && metric.Instrument != spans.Histogram {
				continue
			}
			if born++; flush < zeroFlushes {
				assert.Zero(t, p.value+float64(p.count)+p.sum, key)
			} else if metric.Instrument == spans.Histogram {
				assert.Positive(t, p.count, key)
			}
		}
		assert.Greater(t, born, 20)
	}
}
