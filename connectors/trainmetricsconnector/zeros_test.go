package trainmetricsconnector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

func xid(id int) ptrace.Traces {
	b := spans.NewBatch("test", "")
	s := b.Add(resourceA, spans.Span{ID: spanID(id), Name: spans.SpanEvent, Is: spans.KindEvent, Start: base, End: base + 1e6})
	s.Attributes().PutStr(spans.AttrEventClass, "xid")
	return b.Traces()
}

// increase() sees the first event of a class: its counter is 0 in the two flushes before. A restored counter goes on without a 0.
func TestCountersAreBornAtZero(t *testing.T) {
	const series = prefix + "ml.run.events|[ml.run.event.class=xid]"
	d := newDisk(nil)
	b := newKept(t, d, time.Time{})
	b.store.zeros = zeroFlushes
	b.consume(xid(1))
	var reported []float64
	for range 4 {
		reported = append(reported, b.flushed(15 * time.Second)[series].value)
	}
	b.consume(xid(2))
	reported = append(reported, b.flushed(15 * time.Second)[series].value)
	assert.Equal(t, []float64{0, 0, 1, 1, 2}, reported)

	next := newBed(t, func(c *Config) { c.Storage = &diskID })
	next.clock, next.store.zeros = b.clock, zeroFlushes
	require.NoError(t, next.open(t.Context(), diskHost{componenttest.NewNopHost(), newDisk(d.values)}))
	next.consume(xid(3))
	assert.InDelta(t, 3, next.flushed(15 * time.Second)[series].value, 0, "no reset")
}

// A process emits all counts before its end.
func TestLastFlushTellsAll(t *testing.T) {
	b := newBed(t)
	b.store.zeros = zeroFlushes
	b.consume(xid(1))
	require.NoError(t, b.Shutdown(t.Context()))
	assert.InDelta(t, 1, points(t, <-b.sent)[prefix+"ml.run.events|[ml.run.event.class=xid]"].value, 0)
}
