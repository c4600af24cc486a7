package spans

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func TestBatchGroupsByResource(t *testing.T) {
	b := NewBatch("scope", "1.2.3")
	a, c := Resource{Service: "verl", RunID: "r", PID: 7}, Resource{Service: "verl", RunID: "r", Host: "10.0.0.1"}
	for i, res := range []Resource{a, c, a, a} {
		s := b.Add(res, Span{
			Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{byte(i + 1)}, Name: "n", Kind: ptrace.SpanKindClient,
			Start: 10, End: 20, Source: TimeAnchored, Attributes: 1,
		})
		s.Attributes().PutInt("i", int64(i))
	}
	assert.Equal(t, 4, b.Len())
	td := b.Traces()
	require.Equal(t, 2, td.ResourceSpans().Len())
	first := td.ResourceSpans().At(0)
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "r", "process.pid": int64(7)}, first.Resource().Attributes().AsRaw())
	assert.Equal(t, map[string]any{"service.name": "verl", "ml.run.id": "r", "host.name": "10.0.0.1"}, td.ResourceSpans().At(1).Resource().Attributes().AsRaw())
	assert.Equal(t, "scope", first.ScopeSpans().At(0).Scope().Name())
	assert.Equal(t, "1.2.3", first.ScopeSpans().At(0).Scope().Version())
	spans := first.ScopeSpans().At(0).Spans()
	require.Equal(t, 3, spans.Len())
	s := spans.At(1)
	assert.Equal(t, pcommon.SpanID{3}, s.SpanID())
	assert.Equal(t, ptrace.SpanKindClient, s.Kind())
	assert.Equal(t, pcommon.Timestamp(10), s.StartTimestamp())
	assert.Equal(t, pcommon.Timestamp(20), s.EndTimestamp())
	assert.Equal(t, map[string]any{"trainbridge.time.source": "anchored", "i": int64(2)}, s.Attributes().AsRaw())
}

// No message is larger than a default receiver takes, for any sequence of spans and resources, and each span has its origin.
func TestBatchIsCut(t *testing.T) {
	long := strings.Repeat("x", MaxAttributeBytes)
	for name, c := range map[string]struct {
		spans int
		host  func(i int) string
		width func(i int) int
	}{
		"small":                   {20_000, func(int) string { return "" }, func(int) int { return 0 }},
		"each as large as can be": {10, func(int) string { return "" }, func(int) int { return 2_100_000 }},
		"larger than a message":   {5, func(int) string { return "" }, func(int) int { return 4_000_000 }},
		"large ones between":      {3000, func(i int) string { return strconv.Itoa(i % 3) }, func(i int) int { return max(0, i%1000-998) * 2_400_000 }},
		"each of a resource":      {3000, strconv.Itoa, func(i int) int { return max(0, i%1000-998) * 2_400_000 }},
		"each of a long resource": {3000, func(i int) string { return long + strconv.Itoa(i) }, func(int) int { return 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBatch("scope", "v")
			b.Keep()
			for i := range c.spans {
				b.From(int64(i))
				s := b.Add(Resource{Host: c.host(i)}, Span{Name: strconv.Itoa(i)})
				s.Attributes().PutStr("text", strings.Repeat("x", c.width(i)))
			}
			all := make(map[string]bool)
			for _, m := range b.Messages() {
				assert.LessOrEqual(t, (&ptrace.ProtoMarshaler{}).TracesSize(m.Traces), 4<<20)
				assert.Positive(t, m.Traces.SpanCount())
				assert.LessOrEqual(t, m.Traces.SpanCount(), MaxMessageSpans)
				require.Len(t, m.Origins, m.Traces.ResourceSpans().Len())
				for i, rs := range m.Traces.ResourceSpans().All() {
					list := rs.ScopeSpans().At(0).Spans()
					require.Len(t, m.Origins[i], list.Len())
					require.Positive(t, list.Len())
					for j, s := range list.All() {
						n := int(m.Origins[i][j])
						require.Equal(t, strconv.Itoa(n), s.Name())
						require.Equal(t, c.host(n), AttrText(rs.Resource().Attributes(), AttrHostName))
						text, _ := s.Attributes().Get("text")
						require.Len(t, text.Str(), c.width(n))
						all[s.Name()] = true
					}
				}
			}
			assert.Len(t, all, c.spans)
		})
	}
}

// Parts fill messages like spans of their size, and follow their parent.
func TestParts(t *testing.T) {
	edited := 0
	whole, parts := NewBatch("scope", "v"), NewBatch("scope", "v")
	whole.Keep()
	parts.Keep()
	parts.Edit(func(pcommon.Map) {}, func(ptrace.Span) { edited++ })
	const calls, each = 400, 40
	for i := range calls {
		res := Resource{Host: strconv.Itoa(i / 100), Time: TimeLogged}
		for _, b := range []*Batch{whole, parts} {
			b.From(int64(i))
			s := b.Add(res, Span{Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{2}, Name: "call", Source: TimeLogged})
			s.Attributes().PutStr("text", strings.Repeat("x", i%1000))
			for j := range each {
				part := Span{
					Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{3}, Parent: pcommon.SpanID{2}, Name: strings.Repeat("p", 1+j), Kind: ptrace.SpanKindInternal,
					Start: int64(1 + j), End: int64(1 + j), Source: TimeLogged,
				}
				if b == whole {
					b.Add(res, part)
				} else {
					b.AddPart(&part)
				}
			}
		}
	}
	require.Greater(t, len(parts.Messages()), 2)
	require.True(t, reflect.DeepEqual(whole.Messages(), parts.Messages()), "cut in other places, or not the same spans")
	assert.Equal(t, calls, edited)
}

// Without parts, for readers in the same process, only the number of spans ends a message.
func TestLeaveParts(t *testing.T) {
	b := NewBatch("scope", "v")
	b.LeaveParts()
	for range MaxMessageSpans + 1 {
		s := b.Add(Resource{}, Span{Name: "call"})
		s.Attributes().PutStr("text", strings.Repeat("x", MaxMessageBytes/1000))
		b.AddPart(&Span{Name: "part"})
	}
	all := b.Messages()
	require.Len(t, all, 2)
	assert.Equal(t, MaxMessageSpans, all[0].Traces.SpanCount())
	assert.Equal(t, 1, all[1].Traces.SpanCount())
}

func TestRunSpanAndLink(t *testing.T) {
	batch := NewBatch("scope", "v")
	batch.KeepLinks(true)
	res := Resource{Service: "verl", RunID: "r", PID: 9}
	batch.AddRun(RunConfig{RunID: "r", ServiceName: "verl"}.Opens("/logs/a.err", 100, TimeLogged))
	step := batch.Add(res, Span{Trace: pcommon.TraceID{5}, ID: pcommon.SpanID{5}, Source: TimeLogged})
	trace, id := RunIDs("r")
	batch.Link(step, trace, id)
	run := batch.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	assert.Equal(t, SpanRun, run.Name())
	assert.Equal(t, map[string]any{"trainbridge.kind": "run", "trainbridge.time.source": "logged", "log.file.path": "/logs/a.err"}, run.Attributes().AsRaw())
	assert.EqualValues(t, 100+time.Millisecond, run.EndTimestamp(), "stores that keep microseconds have no span without length")
	require.Equal(t, 1, step.Links().Len())
	assert.Equal(t, run.TraceID(), step.Links().At(0).TraceID())
	assert.NotEqual(t, run.SpanID(), step.Links().At(0).SpanID(), "collectors that met the run elsewhere have other spans, and what they link alike is the run")
	_, hasPID := batch.Traces().ResourceSpans().At(0).Resource().Attributes().Get("process.pid")
	assert.False(t, hasPID, "a run is not the work of one process")

	batch = NewBatch("scope", "v")
	s := batch.Add(res, Span{Start: 5, End: 5})
	batch.Link(s, trace, id)
	assert.Zero(t, s.Links().Len(), "links are asked for")
	assert.EqualValues(t, 6, s.EndTimestamp(), "Jaeger warns of a span that is zero long")
}

func BenchmarkBatchAdd(b *testing.B) {
	res := Resource{Service: "verl", RunID: "r", PID: 7}
	s := Span{
		Trace: pcommon.TraceID{1}, ID: pcommon.SpanID{2}, Name: SpanTQGet, Kind: ptrace.SpanKindInternal, Start: 1, End: 2, Source: TimeAnchored, Attributes: 3,
	}
	b.ReportAllocs()
	batch := NewBatch("scope", "v")
	for b.Loop() {
		if batch.Len() == 2048 {
			batch = NewBatch("scope", "v")
		}
		out := batch.Add(res, s)
		out.Attributes().PutStr(AttrTQStage, StageGet)
		out.Attributes().PutInt(AttrTQBatchSize, 32)
	}
}
