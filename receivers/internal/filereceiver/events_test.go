package filereceiver

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/redact"
	"github.com/trainbridge/trainbridge/spans"
)

// valued is a batch of points that also has GPU values.
type valued struct{ gauges }

func (valued) GPUs(to func(*spans.GPUValues)) { to(&spans.GPUValues{Host: "node-7"}) }

// beside is a batch with an event between its records.
func beside(b Batch) Batch { return &eventBatch{Batch: b, found: make([]event, 1)} }

// The labels of points are redacted, whether an event stands in the same batch or not.
func TestEventLeavesLabelsRedacted(t *testing.T) {
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	parts := Parts{Redact: redact.Config{Enabled: true, HashHosts: true, HashKey: "0123456789abcdef"}}
	sink := &consumertest.MetricsSink{}
	r, err := Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return parts, nil }, nil, sink)
	require.NoError(t, err)
	points := gauges{metrics: []string{"train.loss"}, ranks: 1, host: "-7"}
	for _, b := range []Batch{points, beside(points)} {
		sink.Reset()
		require.NoError(t, r.Deliver(b).Send(t.Context()))
		require.Equal(t, 1, sink.DataPointCount())
		m := sink.AllMetrics()[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		host := spans.AttrText(m.Gauge().DataPoints().At(0).Attributes(), spans.AttrHostName)
		assert.NotEmpty(t, host)
		assert.NotContains(t, host, "node-7")
	}
	assert.False(t, hasLabels(beside(nil)), "an event alone has no points")
}

// The GPU values of records reach a reader of GPU values, whether an event stands in the same batch or not.
func TestEventLeavesGPUs(t *testing.T) {
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	r, err := Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return Parts{}, nil }, nil, consumertest.NewNop())
	require.NoError(t, err)
	got := 0
	r.gpus = func(*spans.GPUValues) { got++ }
	for _, b := range []Batch{valued{}, beside(valued{}), beside(nil)} {
		require.NoError(t, r.Deliver(b).Send(t.Context()))
	}
	assert.Equal(t, 2, got)
}

// A batch of values of GPUs behind a batch of other records goes the same way.
func TestJoinedGPUs(t *testing.T) {
	set := receivertest.NewNopSettings(component.MustNewType("train_log"))
	sink := &consumertest.MetricsSink{}
	r, err := Prepare(set, nil, func(*Receiver, component.Config) (Parts, error) { return Parts{}, nil }, nil, sink)
	require.NoError(t, err)
	got := 0
	r.gpus = func(*spans.GPUValues) { got++ }
	d := r.Deliver(beside(nil))
	require.True(t, d.Join(r.Deliver(valued{gauges{metrics: []string{"hw.gpu.utilization"}, ranks: 1}})))
	require.NoError(t, d.Send(t.Context()))
	assert.Equal(t, 1, got)
	assert.Zero(t, sink.DataPointCount())
}

// The time of an event that is not ended by a line, in a log without stamps, is when the log was written: a killed process leaves half a traceback.
func TestTimeOfUnendedEvent(t *testing.T) {
	path, written := filepath.Join(t.TempDir(), "x.log"), time.Date(2026, 6, 12, 12, 0, 0, 0, time.UTC)
	require.NoError(t, os.WriteFile(path, []byte("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    x()\n"), 0o600))
	require.NoError(t, os.Chtimes(path, written, written))
	cfg := tail.DefaultConfig()
	cfg.Include = []string{path}
	parts := Parts{Tail: cfg, NewHandler: func(*tail.Stream) tail.Handler { return ignoring{} }}
	sink := &consumertest.TracesSink{}
	mk := func(*Receiver, component.Config) (Parts, error) { return parts, nil }
	_, err := ReadAll(t.Context(), receivertest.NewNopSettings(component.MustNewType("run_events")), nil, mk, nil, sink, nil)
	require.NoError(t, err)
	require.Equal(t, 1, sink.SpanCount())
	s := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, written, s.StartTimestamp().AsTime())
}

// holder holds its first line and the sixth, none of them a record, until the end of the log.
type holder struct {
	ignoring
	stream *tail.Stream
	lines  int
	held   []tail.Held
}

func (h *holder) Line(l *tail.Line) (tail.Verdict, string) {
	if h.lines++; h.lines == 1 || h.lines == 6 {
		h.held = append(h.held, h.stream.Hold())
	}
	return h.ignoring.Line(l)
}

func (h *holder) Expire(time.Time) {
	for _, held := range h.held {
		h.stream.Release(held)
	}
}

// A line that the wrapped handler holds stays held when its event is complete: the number would name a later line.
func TestEventInAHeldLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(path, []byte("Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: x\na\nb\nc\n"), 0o600))
	cfg := tail.DefaultConfig()
	cfg.Include = []string{path}
	h := new(holder)
	parts := Parts{Tail: cfg, NewHandler: func(s *tail.Stream) tail.Handler { h.stream = s; return h }}
	sink := &consumertest.TracesSink{}
	mk := func(*Receiver, component.Config) (Parts, error) { return parts, nil }
	_, err := ReadAll(t.Context(), receivertest.NewNopSettings(component.MustNewType("run_events")), nil, mk, nil, sink, nil)
	require.NoError(t, err)
	assert.Equal(t, 1, sink.SpanCount())
	require.Len(t, h.held, 2)
	assert.NotEqual(t, h.held[0], h.held[1])
}
