package perfetto

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Whatever the order of the spans, each is a slice with its own name and times, and lies in nothing but its parent.
func TestAnyOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	kinds := []string{spans.KindFunction, spans.KindCall, spans.KindStep, spans.KindCollective, spans.KindStage, spans.KindPart, ""}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var messages []ptrace.Traces
		var m maker
		for i := range 1 + rng.IntN(150) {
			if i == 0 || rng.IntN(20) == 0 {
				m = maker{}
				m.resource(spans.AttrServiceName, "job")
				messages = append(messages, m.td)
			}
			start := rng.Uint64N(20) // many times are the same
			s := m.span(kinds[rng.IntN(len(kinds))], strconv.Itoa(i+1), byte(i+1), byte(rng.IntN(i+1)), start, start+rng.Uint64N(20))
			s.Attributes().PutInt(spans.AttrProcessPID, rng.Int64N(2))
		}
		rng.Shuffle(len(messages), func(i, k int) { messages[i], messages[k] = messages[k], messages[i] })
		parents := make(map[string]string)
		for _, td := range messages {
			for _, s := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				parents[s.Name()] = strconv.Itoa(int(s.ParentSpanID()[0]))
			}
		}
		got := written(t, messages...)
		require.Equal(t, all(messages...), got.all(), "seed %d", seed)
		for _, s := range got.slices {
			if s.parent != nil {
				require.Equal(t, parents[s.name], s.parent.name, "seed %d, slice %s", seed, s.name)
			}
		}
	}
}

// More names, tracks, hosts and overlapping slices than are remembered: all are written, and no more is remembered.
func TestBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, fill := range map[string]func(m *maker, i int) ptrace.Span{
		"names": func(m *maker, i int) ptrace.Span {
			return m.span("", "name "+strconv.Itoa(i), 1, 0, uint64(i), uint64(i+1))
		},
		"texts": func(m *maker, i int) ptrace.Span {
			s := m.span("", "x", 1, 0, uint64(i), uint64(i+1))
			s.Attributes().PutStr("text", strings.Repeat("x", 50)+strconv.Itoa(i))
			return s
		},
		"tracks": func(m *maker, i int) ptrace.Span {
			s := m.span(spans.KindFunction, "f", 1, 0, uint64(i), uint64(i+1))
			s.Attributes().PutInt(spans.AttrProcessPID, int64(i))
			return s
		},
		"hosts": func(m *maker, i int) ptrace.Span {
			s := m.span("", "x", 1, 0, uint64(i), uint64(i+1))
			s.Attributes().PutStr(spans.AttrHostName, "host "+strconv.Itoa(i%5000))
			return s
		},
		"lanes":    func(m *maker, i int) ptrace.Span { return m.span("", "x", 1, 0, uint64(i), uint64(i+100)) },
		"backward": func(m *maker, i int) ptrace.Span { return m.span("", "x", 1, 0, uint64(100_000-i), uint64(100_001-i)) },
		"deep": func(m *maker, i int) ptrace.Span {
			return m.span("", "x", byte(i%200+2), byte(i%200+1), uint64(i), uint64(200_000-i))
		},
	} {
		n := 6000
		if name == "names" || name == "texts" || name == "tracks" {
			n = maxTracks + 5000
		}
		t.Run(name, func(t *testing.T) {
			var messages []ptrace.Traces
			var m maker
			for i := range n {
				if i%1000 == 0 {
					m = maker{}
					m.resource(spans.AttrServiceName, "job")
					messages = append(messages, m.td)
				}
				fill(&m, i)
			}
			var file bytes.Buffer
			w := New(&file)
			for _, td := range messages {
				require.NoError(t, w.ConsumeTraces(t.Context(), td))
				assertBounded(t, w)
			}
			require.NoError(t, w.Close())
			got := decode(t, file.Bytes())
			require.Equal(t, all(messages...), got.all())
			assert.Equal(t, name == "names" || name == "texts", got.cleared > 1)
			assert.Less(t, file.Len(), n*120)
		})
	}
}

func assertBounded(t *testing.T, w *Writer) {
	t.Helper()
	assert.LessOrEqual(t, w.count, maxInterned+2*maxAttributes)
	assert.LessOrEqual(t, w.size, maxInternedBytes+maxText)
	assert.LessOrEqual(t, w.tracks.kept, maxTracks)
	assert.LessOrEqual(t, len(w.tracks.known), w.tracks.kept)
	assert.LessOrEqual(t, len(w.tracks.processes), maxProcesses+1)
	assert.LessOrEqual(t, len(w.tracks.homes), maxHomes)
}

func TestCounterBounds(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	var file bytes.Buffer
	w := New(&file)
	for i := range 70 {
		md := pmetric.NewMetrics()
		m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName("m")
		points := m.SetEmptyGauge().DataPoints()
		for k := range 1000 {
			dp := points.AppendEmpty()
			dp.SetIntValue(int64(1000*i + k))
			dp.Attributes().PutInt("series", int64(1000*i+k))
		}
		require.NoError(t, w.ConsumeMetrics(t.Context(), md))
		assert.LessOrEqual(t, len(w.tracks.counters), w.tracks.kept)
		assert.LessOrEqual(t, w.tracks.kept, maxTracks)
	}
	require.NoError(t, w.Close())
	tr := decode(t, file.Bytes())
	require.Len(t, tr.counters, 70_000)
	for i, c := range tr.counters {
		require.Equal(t, fmt.Sprintf("unnamed / values / m{series=%d}", i), tr.path(c.track))
		require.InDelta(t, i, c.value, 0)
	}
}

// Callers do not wait for the messages of others.
func TestConcurrentCallers(t *testing.T) {
	var file bytes.Buffer
	w := New(&file)
	in := newWorkload(nil)
	var messages []ptrace.Traces
	for range 8 {
		messages = append(messages, in.message())
	}
	var group sync.WaitGroup
	for _, td := range messages {
		group.Go(func() { assert.NoError(t, w.ConsumeTraces(t.Context(), td)) })
		group.Go(func() { assert.NoError(t, w.ConsumeMetrics(t.Context(), pmetric.NewMetrics())) })
	}
	group.Wait()
	require.NoError(t, w.Close())
	assert.Equal(t, all(messages...), decode(t, file.Bytes()).all())
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteFails(t *testing.T) {
	w := New(full{})
	in := newWorkload(nil)
	for range 20 {
		_ = w.ConsumeTraces(t.Context(), in.message())
	}
	require.ErrorIs(t, w.ConsumeTraces(t.Context(), in.message()), errFull)
	require.ErrorIs(t, w.Close(), errFull)
	assert.Less(t, len(w.raw), 2*maxBlock)
}

// No name and no time makes an unreadable trace.
func FuzzWriter(f *testing.F) {
	f.Add("name", "key", "value", "host", uint64(1), uint64(2), uint64(3), int64(-1))
	f.Add("\xff\xfe", "\x00", strings.Repeat("é", 600), "\u202e", uint64(1)<<63, uint64(0), ^uint64(0), int64(1)<<62)
	f.Add(strings.Repeat("x", 70_000), spans.AttrNCCLClockOffset, "", "", uint64(0), uint64(0), uint64(1)<<62, int64(0))
	f.Add("0"+strings.Repeat("\xbe", 200), "\xc3", "0", "\xab", uint64(0), uint64(5), uint64(128), int64(-28)) // longer when valid
	f.Fuzz(func(t *testing.T, name, key, value, host string, start, end, at uint64, n int64) {
		var m maker
		m.resource(spans.AttrServiceName, value, spans.AttrHostName, host, spans.AttrRunID, key)
		for i, kind := range []string{spans.KindRank, spans.KindCollective, spans.KindFunction, spans.KindCall, spans.KindStep, name} {
			s := m.span(kind, name, byte(i), byte(n), 0, 0)
			s.SetStartTimestamp(pcommon.Timestamp(start))
			s.SetEndTimestamp(pcommon.Timestamp(end))
			s.Attributes().PutStr(key, value)
			s.Attributes().PutInt(value, n)
			s.Attributes().PutDouble(spans.AttrNCCLClockOffset, float64(n))
			s.Attributes().PutEmptySlice(host).AppendEmpty().SetStr(name)
			s.Status().SetMessage(value)
			e := s.Events().AppendEmpty()
			e.SetName(name)
			e.SetTimestamp(pcommon.Timestamp(at))
			e.Attributes().PutStr(key, host)
		}
		md := pmetric.NewMetrics()
		metric := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		metric.SetName(name)
		metric.SetUnit(value)
		dp := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.Timestamp(at))
		dp.SetIntValue(n)
		dp.Attributes().PutStr(key, host)

		var file bytes.Buffer
		w := New(&file)
		require.NoError(t, w.ConsumeTraces(t.Context(), m.td))
		require.NoError(t, w.ConsumeMetrics(t.Context(), md))
		require.NoError(t, w.Close())
		got := decode(t, file.Bytes())
		assert.Len(t, got.slices, 6)
		assert.Len(t, got.counters, 1)
		for _, s := range got.slices {
			assert.Equal(t, bounded(name, maxName), s.name)
			assert.Equal(t, nanos(start), s.start)
			assert.Equal(t, max(nanos(start), nanos(end)), s.end)
		}
	})
}
