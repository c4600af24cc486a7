package stepjoinprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// watermark says how far the collectives of a partition were sent.
func (j *job) watermark(source string, epoch, number, until, sent int64, first bool) {
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
}

// A step waits for its collectives as long as a source of them says that more may come, up to a limit. Then it is partial, and says why.
func TestWatermark(t *testing.T) {
	const start = int64(1_700_000_000) * second
	const end = start + 10*second
	type event struct {
		after time.Duration
		do    func(j *job)
	}
	collective := func(j *job) { j.collective(0, start+second, start+2*second, second/2, "node-1") }
	words := map[string]int64{}
	mark := func(source string, until, sent int64, first bool) func(j *job) {
		return func(j *job) {
			words[source]++
			j.watermark(source, 1, words[source], until, sent, first)
		}
	}
	word := func(epoch, number, until, sent int64) func(j *job) {
		return func(j *job) { j.watermark("a/0", epoch, number, until, sent, false) }
	}
	for name, tt := range map[string]struct {
		events []event
		told   time.Duration // when the step is told, after its line
		reason string
		wait   bool // the collective is in it
	}{
		"no source":                  {nil, 10 * time.Second, "", false},
		"all was sent":               {[]event{{0, collective}, {0, mark("a/0", end, 0, true)}}, 10 * time.Second, "", true},
		"a partition is behind":      {[]event{{0, mark("a/0", 0, 0, true)}, {60 * time.Second, collective}, {0, mark("a/0", end, 0, false)}}, 61 * time.Second, "", true},
		"another is, too":            {[]event{{0, mark("a/0", 0, 0, true)}, {0, mark("a/1", end-1, 0, true)}, {30 * time.Second, mark("a/0", end, 0, false)}, {5 * time.Second, mark("a/1", end, 0, false)}}, 36 * time.Second, "", false},
		"it stays so":                {[]event{{0, mark("a/0", end-1, 0, true)}}, 120 * time.Second, spans.PartialBehind, false},
		"who comes later goes back":  {[]event{{0, mark("a/0", end, 0, true)}, {time.Second, mark("a/0", start, 0, false)}}, 10 * time.Second, "", false},
		"it began before this does":  {[]event{{0, mark("a/0", end, start+5*second, false)}}, 10 * time.Second, spans.PartialRestart, false},
		"it began long before":       {[]event{{0, mark("a/0", end, start-1, false)}}, 10 * time.Second, "", false},
		"one of two began before":    {[]event{{0, mark("a/0", end, 0, true)}, {0, mark("a/1", end, start, false)}}, 10 * time.Second, spans.PartialRestart, false},
		"a word is missing":          {[]event{{0, mark("a/0", start, start, true)}, {0, word(1, 3, end, start+second)}}, 10 * time.Second, spans.PartialRestart, false},
		"one was missing before":     {[]event{{0, mark("a/0", start, start, true)}, {0, word(1, 3, end, start-second)}}, 10 * time.Second, "", false},
		"a word comes again":         {[]event{{0, mark("a/0", 0, 0, true)}, {0, word(1, 2, end, end)}, {0, word(1, 1, 0, 0)}, {0, word(1, 2, end, end)}}, 10 * time.Second, "", false},
		"another goes on":            {[]event{{0, mark("a/0", end, start, true)}, {0, word(2, 1, 0, start-second)}, {0, word(2, 2, end, start+second)}}, 10 * time.Second, spans.PartialRestart, false},
		"another had nothing of it":  {[]event{{0, mark("a/0", end, start, true)}, {0, word(2, 1, 0, start-second)}, {0, word(2, 2, end, start-second)}, {0, word(2, 3, end, end)}}, 10 * time.Second, "", false},
		"behind, and it has no name": {[]event{{0, mark("", start, 0, true)}}, 120 * time.Second, spans.PartialBehind, false},
	} {
		t.Run(name, func(t *testing.T) {
			clear(words)
			b, j := newBench(t), newJob()
			j.step(0, start, end)
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			j.part(spans.StepTraceID(j.run, 0), "forward", start, start+second) // so that there is a breakdown
			require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			began, waited := b.clock, time.Duration(0)
			breakdown := func() string {
				if all := find(told(b.sink), "/breakdown@"); len(all) > 0 {
					return all[0]
				}
				return ""
			}
			for _, e := range tt.events {
				for at := began.Add(waited + e.after); b.clock.Before(at); {
					b.clock = b.clock.Add(time.Second)
					b.sweep(t.Context(), b.clock, false)
					if b.clock.Before(began.Add(tt.told)) {
						require.Empty(t, breakdown())
					}
				}
				waited += e.after
				e.do(j)
				require.NoError(t, b.ConsumeTraces(t.Context(), j.traces()))
			}
			for breakdown() == "" {
				b.clock = b.clock.Add(time.Second)
				b.sweep(t.Context(), b.clock, false)
			}
			assert.Equal(t, tt.told, b.clock.Sub(began).Truncate(time.Second))
			if tt.reason == "" {
				assert.NotContains(t, breakdown(), spans.AttrJoinPartial)
			} else {
				assert.Contains(t, breakdown(), spans.AttrJoinPartialReason+"="+tt.reason)
			}
			if tt.wait {
				assert.Contains(t, breakdown(), "ml.step.time.collective.wait=0.5 ")
			} else {
				assert.NotContains(t, breakdown(), "ml.step.time.collective.wait")
			}
		})
	}
}

// What came while the process stood still is read before anything is told.
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
