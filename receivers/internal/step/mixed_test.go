package step

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// sources puts "b:" lines under a source of their own.
type sources struct{ words }

type renamed struct{ Out }

func (r renamed) Emit(rec *record.Record) {
	rec.Source = "other"
	r.Out.Emit(rec)
}

func (s *sources) Line(text []byte, out Out) (tail.Verdict, string) {
	if len(text) > 2 && string(text[:2]) == "b:" {
		return s.words.Line(text[2:], renamed{out})
	}
	return s.words.Line(text, out)
}

// FlagScale's output has Megatron's lines and perf_monitor's rows, at intervals of their own.
func TestSourcesCountForThemselves(t *testing.T) {
	res := &result{}
	h := handlerWith(t, &direct{}, &res.traces, nil)
	h.parser = &sources{}
	h.give(t, false, "step it=5 dur=1 stamp=2026-01-01T00:00:05", "b:step it=10 dur=1 stamp=2026-01-01T00:00:10", "step it=10 dur=1 stamp=2026-01-01T00:00:10",
		"step it=15 dur=1 stamp=2026-01-01T00:00:15", "b:step it=20 dur=1 stamp=2026-01-01T00:00:20", "step it=20 dur=1 stamp=2026-01-01T00:00:20")
	state := h.Save()
	require.NoError(t, h.Cut().Send(t.Context()))
	h = handlerWith(t, &direct{}, &res.traces, nil)
	h.parser = &sources{}
	h.Restore(state)
	h.give(t, false, "b:step it=30 dur=1 stamp=2026-01-01T00:00:30")
	require.NoError(t, h.Cut().Send(t.Context()))
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 7)
	for i, covered := range []any{nil, nil, int64(5), int64(5), int64(5), int64(10), int64(10)} {
		assert.Equal(t, covered, attr(got[i], spans.AttrStepsCovered), i)
	}
	assert.Equal(t, got[1].TraceID(), got[2].TraceID())
	assert.NotEqual(t, got[1].SpanID(), got[2].SpanID())
}

// A logger that writes to its file and to the root logger prints copies between the lines of one record.
func TestCopiesBetweenLines(t *testing.T) {
	res := read(t, []string{
		"step it=1 dur=1 stamp=2026-01-01T00:00:01 open dedup", "step it=1 dur=1 stamp=2026-01-01T00:00:01 open dedup", "side it=1 mem=5", "side it=1 mem=5",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 1)
	assert.InDelta(t, 5.0, attr(got[0], spans.AttrMemoryUsage), 0)
	assert.Equal(t, 1, res.duplicates)
}

// A line of another rank about a step does not become a part of the record of the rank that logged the step.
func TestSideOfAnotherRank(t *testing.T) {
	res := read(t, []string{"step it=1 dur=1 stamp=2026-01-01T00:00:01 open", "side it=1 rank=3 mem=5", "side it=1 rate=2"})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 1)
	assert.Nil(t, attr(got[0], spans.AttrMemoryUsage))
	assert.InDelta(t, 2.0, attr(got[0], spans.AttrSampleThroughput), 0)
	mem := gauge(t, res, spans.AttrMemoryUsage)
	require.Len(t, mem, 1)
	assert.Equal(t, map[string]any{spans.AttrSource: "words", spans.AttrRank: int64(3)}, mem[0].Attributes().AsRaw())
	assert.Len(t, gauge(t, res, spans.AttrIteration), 1, "one step, one iteration")
}

// A validation result without a clock follows the clock of the step before, and not the file's modification time.
func TestEvaluationWithoutClock(t *testing.T) {
	res := read(
		t,
		[]string{
			"step it=1 dur=1 stamp=2026-01-01T00:00:01", "eval it=1 vloss=2", "[2026-01-01 00:00:05] eval it=1 vloss=3", "[2026-01-01 00:00:05] eval it=1 vloss=4",
		},
	)
	got := res.spans(spans.SpanEvaluation)
	require.Len(t, got, 3)
	assert.Equal(t, [2]time.Duration{1, 1}, when(got[0], time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)))
	assert.Equal(t, string(spans.TimeSynthetic), attr(got[0], spans.AttrTimeSource))
	assert.NotEqual(t, got[1].SpanID(), got[2].SpanID(), "two sets in one second")
	res = read(t, []string{"step it=1 dur=1 stamp=2026-01-01T00:00:01", "eval it=1 vloss=2 dur=3", "eval it=1 vloss=4 dur=2"})
	got = res.spans(spans.SpanEvaluation)
	require.Len(t, got, 2)
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, [2]time.Duration{4 * time.Second, 3 * time.Second}, when(got[0], base), "begins when the step has ended")
	assert.Equal(t, [2]time.Duration{6 * time.Second, 2 * time.Second}, when(got[1], base), "begins when the evaluation before has ended")
}

// A summary is of the run, not of the step before.
func TestSummaryHasNoIteration(t *testing.T) {
	res := read(t, []string{"step it=7 dur=1 stamp=2026-01-01T00:00:01", "summary total=7 stamp=2026-01-01T00:00:02"})
	require.Len(t, res.spans(spans.SpanSummary), 1)
	assert.Nil(t, attr(res.spans(spans.SpanSummary)[0], spans.AttrIteration))
}
