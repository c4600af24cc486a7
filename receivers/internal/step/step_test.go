package step

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/goleak"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/internal/logids"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// words reads "step it=3 dur=1.5 stamp=2026-01-01T00:00:00 open dedup gen:2.5 note=text", the smallest log with all features of a record.
type words struct{ lines int }

var wordFields = map[string]record.Field{
	"it": record.Iteration, "dur": record.Duration, "loss": record.Loss, "batch": record.BatchSize, "rate": record.SampleThroughput, "mem": record.MemoryUsage,
	"vloss": record.ValidationLoss, "epoch": record.Epoch,
}

var wordPlaces = record.Outline(`
pass
  forward
    load
  backward
update
  clip
  apply
save
`)

func (w *words) Line(text []byte, out Out) (tail.Verdict, string) {
	w.lines++
	found := false
	for part := range bytes.SplitSeq(text, []byte("; ")) {
		list := bytes.Fields(part)
		kind, ok := map[string]record.Kind{"step": record.Step, "eval": record.Evaluation, "summary": record.Summary, "side": record.Side}[string(list[0])]
		switch {
		case string(list[0]) == "restart":
			out.Restarted()
			return tail.Ignored, "restart"
		case string(list[0]) == "model":
			out.Model(&spans.Model{HiddenSize: 4096, NumLayers: 32, Type: "llama"})
			return tail.Ignored, "model"
		case !ok:
			return tail.Ignored, "not_a_record"
		}
		found = true
		rec := out.Record()
		rec.Kind, rec.Source = kind, "words"
		for _, f := range list[1:] {
			setWord(rec, f)
		}
		out.Emit(rec)
	}
	if !found {
		return tail.Ignored, "not_a_record"
	}
	return tail.Record, ""
}

// setWord sets the content of one word: a stage as name:seconds, a value as name=value, or a name alone.
func setWord(rec *record.Record, f []byte) {
	if name, seconds, ok := bytes.Cut(f, []byte(":")); ok && !bytes.Contains(f, []byte("=")) {
		v, _ := strconv.ParseFloat(string(seconds), 64)
		rec.Stages = append(rec.Stages, record.Stage{Name: name, Seconds: v, Place: wordPlaces[string(name)]})
		return
	}
	name, value, _ := bytes.Cut(f, []byte("="))
	v, err := strconv.ParseFloat(string(value), 64)
	switch field, known := wordFields[string(name)]; {
	case string(name) == "stamp":
		rec.Stamp = value
	case string(name) == "trace":
		rec.IDs.Set(logids.Trace, value)
	case string(name) == "open":
		rec.Open = true
	case string(name) == "join":
		rec.Join, rec.Open = true, true
	case string(name) == "unnumbered":
		rec.Unnumbered = true
	case string(name) == "several":
		rec.Several = true
	case string(name) == "late":
		rec.Late = true
	case string(name) == "dedup":
		rec.Dedup = true
	case string(name) == "mean":
		rec.Of = record.Mean
	case string(name) == "memMiB":
		rec.SetIn(record.MemoryUsage, v, record.Mebibytes)
	case string(name) == "rank":
		rec.Rank, rec.HasRank = int64(v), true
	case string(name) == "gpu":
		rec.GPUs = append(rec.GPUs, v)
	case string(name) == "onegpu":
		rec.GPUs, rec.OneGPU = append(rec.GPUs, v), true
	case string(name) == "watts":
		rec.Samples = append(rec.Samples, record.GPUSample{Metric: record.GPUPower, Device: uint16(len(rec.Samples)), Value: v})
	case string(name) == "host":
		rec.Host = value
	case string(name) == "tokens":
		rec.Set(record.Tokens, v)
		rec.EitherTokens = true
	case string(name) == "seen":
		rec.Set(record.ConsumedTokens, v)
		rec.Counted = true
	case known:
		rec.Set(field, v)
	case err == nil:
		rec.AddExtra(record.Extra{Name: name, Value: v})
	default:
		rec.AddExtra(record.Extra{Name: name, Text: value})
	}
}

func (w *words) Save() []byte     { return []byte(strconv.Itoa(w.lines)) }
func (w *words) Restore(b []byte) { w.lines, _ = strconv.Atoi(string(b)) }

var written = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

type result struct {
	traces     consumertest.TracesSink
	metrics    consumertest.MetricsSink
	counts     tail.Counts
	duplicates int
	points     PointsConfig
}

func mk(res *result) filereceiver.Make {
	return func(r *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
		tc := *cfg.(*tail.Config)
		return filereceiver.Parts{Tail: tc, Scope: "test", SpanLinks: true, HoldTimeout: HoldTimeout, NewHandler: NewHandlers(Settings{
			Receiver: r, Run: spans.RunConfig{RunID: "run", ServiceName: "job"}, Points: res.points, Zone: time.UTC, Duplicate: func() { res.duplicates++ },
			NewParser: func(string, bool) Parser { return &words{} },
		})}, nil
	}
}

// read reads files of the given lines.
func read(t *testing.T, files ...[]string) *result {
	t.Helper()
	res := &result{}
	dir := t.TempDir()
	for i, lines := range files {
		path := filepath.Join(dir, strconv.Itoa(i)+".log")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		require.NoError(t, os.Chtimes(path, written, written))
	}
	res.read(t, filepath.Join(dir, "*.log"))
	return res
}

func (res *result) read(t *testing.T, glob string) {
	t.Helper()
	cfg := tail.DefaultConfig()
	cfg.Include = []string{glob}
	var err error
	res.counts, err = filereceiver.ReadAll(
		context.Background(), receivertest.NewNopSettings(component.MustNewType("words")), &cfg, mk(res), func() time.Time { return written.Add(time.Hour) },
		&res.traces, &res.metrics,
	)
	require.NoError(t, err)
	sum := res.counts.Records
	for _, n := range res.counts.Ignored {
		sum += n
	}
	assert.Equal(t, res.counts.Lines, sum)
	assert.Equal(t, res.counts.Records, res.counts.Sent)
}

// spans returns the spans of a name by their end.
func (res *result) spans(name string) []ptrace.Span {
	return filereceivertest.ByEnd(filereceivertest.Spans(res.traces.AllTraces(), name))
}

// when draws the time of a span: end relative to a stamp, and length.
func when(s ptrace.Span, base time.Time) [2]time.Duration {
	return [2]time.Duration{s.EndTimestamp().AsTime().Sub(base), s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime())}
}

// took is the time of one step in s, nil if unknown.
func took(s ptrace.Span) any {
	if seconds := filereceivertest.Took(s); !math.IsNaN(seconds) {
		return seconds
	}
	return nil
}

func attr(s ptrace.Span, name string) any {
	v, ok := s.Attributes().Get(name)
	if !ok {
		return nil
	}
	return v.AsRaw()
}

func TestStepsCoverWhatLiesBetween(t *testing.T) {
	res := read(t, []string{
		"step it=20 dur=2 mean stamp=2026-01-01T00:00:00",
		"step it=30 dur=2 mean stamp=2026-01-01T00:01:00",
		"step it=25 dur=2 mean stamp=2026-01-01T00:02:00", // back to a checkpoint
		"step it=35 dur=2 mean stamp=2026-01-01T00:03:00",
		"restart",
		"step it=1 dur=9 stamp=2026-01-01T00:04:00",
	})
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	want := []struct {
		it, covered, kind any
		end, length       time.Duration
	}{
		{int64(20), nil, spans.DurationMean, 0, 2 * time.Second},
		{int64(30), int64(10), spans.DurationMean, time.Minute, 20 * time.Second},
		{int64(25), nil, spans.DurationMean, 2 * time.Minute, 2 * time.Second},
		{int64(35), int64(10), spans.DurationMean, 3 * time.Minute, 20 * time.Second},
		{int64(1), nil, nil, 4 * time.Minute, 9 * time.Second},
	}
	got := res.spans(spans.SpanStep)
	require.Len(t, got, len(want))
	for i, w := range want {
		assert.Equal(t, w.it, attr(got[i], spans.AttrIteration))
		assert.Equal(t, w.covered, attr(got[i], spans.AttrStepsCovered), "steps covered at %d", i)
		assert.Equal(t, w.kind, attr(got[i], spans.AttrStepDurationKind))
		assert.Equal(t, [2]time.Duration{w.end, w.length}, when(got[i], base))
		assert.Equal(t, string(spans.TimeDerived), attr(got[i], spans.AttrTimeSource))
		assert.Equal(t, spans.StepTraceID("run", w.it.(int64)), got[i].TraceID())
		assert.Equal(t, 1, got[i].Links().Len())
	}
	run := res.spans(spans.SpanRun)
	require.Len(t, run, 1)
	assert.Equal(t, run[0].TraceID(), got[0].Links().At(0).TraceID())
}

// What a record's parts put between two steps lies between the step and its line, as far as the time before the step is free.
func TestPartsBetweenStepAndLine(t *testing.T) {
	res := read(t, []string{
		"step it=1 dur=20 pass:18 stamp=2026-01-01T00:01:00",
		"step it=2 dur=20 pass:18 test:30 stamp=2026-01-01T00:01:50",
		"step it=3 dur=20 pass:9 test:10 stamp=2026-01-01T00:02:20", // within the step
		"step it=4 dur=20 pass:18 test:30 save:40 stamp=2026-01-01T00:03:00",
		"step it=5 dur=20 pass:18 stamp=2026-01-01T00:03:20",
		"step it=6 pass:18 test:9 stamp=2026-01-01T00:04:00",
	})
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 6)
	for i, end := range []time.Duration{60, 80, 140, 160, 200, 240} {
		length := 20 * time.Second
		if i == 5 { // the time since the line before
			length = 40 * time.Second
		}
		assert.Equal(t, [2]time.Duration{end * time.Second, length}, when(got[i], base), i)
	}
}

// A digit too many in an iteration must not make a span of a thousand years.
func TestSpoiltIteration(t *testing.T) {
	for _, stamp := range []string{"", " stamp=2026-01-01T00:00:00"} {
		res := read(t, []string{"step it=1 dur=2" + stamp, "step it=9000000000000 dur=2" + stamp, "step it=2 dur=2" + stamp})
		got := res.spans(spans.SpanStep)
		require.Len(t, got, 3)
		for _, s := range got {
			assert.Equal(t, 2*time.Second, s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime()))
			assert.Nil(t, attr(s, spans.AttrStepsCovered))
		}
	}
}

func TestDurationFromTheRecordBefore(t *testing.T) {
	res := read(t, []string{"step it=10 stamp=2026-01-01T00:00:00", "step it=20 stamp=2026-01-01T00:00:30", "step it=30 stamp=2026-01-01T00:00:30"})
	got := res.spans(spans.SpanStep)
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Equal(t, [2]time.Duration{1, 1}, when(got[0], base))
	assert.Nil(t, took(got[0]))
	assert.Nil(t, attr(got[0], spans.AttrStepDurationKind))
	assert.Equal(t, [2]time.Duration{30 * time.Second, 30 * time.Second}, when(got[1], base))
	assert.InDelta(t, 3.0, took(got[1]), 0)
	assert.Equal(t, spans.DurationInterval, attr(got[1], spans.AttrStepDurationKind))
	assert.Equal(t, [2]time.Duration{30*time.Second + 1, 1}, when(got[2], base))
}

// Regression: a step of 30 s got 9 s, with 60 s of evaluation as a part: an evaluation is no part of a step.
func TestEvaluationIsNoPartOfAStep(t *testing.T) {
	res := read(t, []string{
		"step it=10 stamp=2026-01-01T00:00:00", "eval vloss=3 dur=60 stamp=2026-01-01T00:01:00", "step it=20 stamp=2026-01-01T00:01:30",
		"eval it=20 vloss=3 dur=60 stamp=2026-01-01T00:01:31", "step it=30 stamp=2026-01-01T00:01:40", // the log contradicts itself: nothing is known
		"step it=40 stamp=2026-01-01T00:01:50",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 4)
	for i, want := range []any{nil, 3.0, nil, 1.0} {
		assert.Equal(t, want, took(got[i]), i)
		point := any(true)
		if want != nil {
			point = nil
		}
		assert.Equal(t, point, attr(got[i], spans.AttrTimePoint), i)
	}
	assert.Equal(t, 30*time.Second, got[1].EndTimestamp().AsTime().Sub(got[1].StartTimestamp().AsTime()))
}

// A record with its iteration and duration on the next line.
func TestNumberedByTheNextLine(t *testing.T) {
	res := read(t, []string{
		"[rank0]: step unnumbered loss=3 note=abc stamp=2026-01-01T00:00:10", "noise", "[rank0]: side it=5 dur=2 mean loss=9",
		"[rank0]: eval unnumbered vloss=4", "[rank0]: side it=5",
		"[rank0]: step unnumbered loss=2 dur=3 stamp=2026-01-01T00:00:20", "[rank1]: side it=8 dur=1", "[rank0]: side it=7 dur=1 mean",
		"[rank0]: step unnumbered loss=1 stamp=2026-01-01T00:00:30", "[rank0]: step it=20 loss=0.5 stamp=2026-01-01T00:00:40", "side it=9",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 4)
	base := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i, want := range []struct{ it, loss, duration, kind any }{
		{int64(5), 3.0, 2.0, spans.DurationMean},
		{int64(7), 2.0, 3.0, nil},
		{nil, 1.0, 10.0, spans.DurationInterval},
		{int64(20), 0.5, 10.0 / 13, spans.DurationInterval},
	} {
		assert.Equal(t, want.it, attr(got[i], spans.AttrIteration), i)
		assert.Equal(t, want.loss, attr(got[i], spans.AttrLoss), i)
		assert.Equal(t, want.duration, took(got[i]), i)
		assert.Equal(t, want.kind, attr(got[i], spans.AttrStepDurationKind), i)
		assert.Equal(t, int64(0), attr(got[i], spans.AttrRank), i)
		assert.Equal(t, base.Add(time.Duration(i+1)*10*time.Second), got[i].EndTimestamp().AsTime())
	}
	assert.Equal(t, "abc", attr(got[0], spans.AttrTrainFieldPrefix+"note"))
	eval := res.spans(spans.SpanEvaluation)
	require.Len(t, eval, 1)
	assert.Equal(t, got[0].TraceID(), eval[0].TraceID())
	assert.Equal(t, spans.StepTraceID("run", 5), eval[0].TraceID())
}

// An unknown duration is not drawn: a job that went back (an hour passed meanwhile), and records of an unknown number of steps.
func TestPoints(t *testing.T) {
	res := read(t, []string{
		"step it=10 stamp=2026-01-01T00:00:00", "step it=5 stamp=2026-01-01T01:00:00", "step it=6 stamp=2026-01-01T01:00:02",
		"step several loss=2 rank=1 stamp=2026-01-01T00:00:00", "step several loss=1 rank=1 stamp=2026-01-01T00:01:00",
		"step it=1 rank=2 stamp=2026-01-01T00:00:00 open", "step it=1 rank=2 join dur=4",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 6)
	for i, want := range []any{4.0, nil, nil, nil, nil, 2.0} {
		assert.Equal(t, want, took(got[i]), i)
		if want == nil {
			assert.Equal(t, true, attr(got[i], spans.AttrTimePoint), i)
		} else {
			assert.Nil(t, attr(got[i], spans.AttrTimePoint), i)
			assert.InDelta(t, want, got[i].EndTimestamp().AsTime().Sub(got[i].StartTimestamp().AsTime()).Seconds(), 0)
		}
	}
}

// Records of a log with neither clock nor durations had one time, and came in any order. Their different times are no durations.
func TestOrderOfALogWithoutTimes(t *testing.T) {
	got := read(t, []string{"step loss=3", "step loss=2", "step loss=1"}).spans(spans.SpanStep)
	require.Len(t, got, 3)
	for i := range 2 {
		assert.Less(t, got[i].EndTimestamp(), got[i+1].EndTimestamp())
		assert.Nil(t, took(got[i+1]))
		assert.Equal(t, true, attr(got[i+1], spans.AttrTimePoint))
	}
}

func TestNoClock(t *testing.T) {
	res := read(t, []string{"step loss=2 dur=1.5", "step loss=1.9 dur=1.5", "eval vloss=1.8 dur=2", "step loss=1.8 dur=1"})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 3)
	for i, end := range []time.Duration{1500 * time.Millisecond, 3 * time.Second, 6 * time.Second} {
		assert.Equal(t, end, when(got[i], written)[0])
		assert.Equal(t, string(spans.TimeSynthetic), attr(got[i], spans.AttrTimeSource))
		assert.Equal(t, int64(i+1), attr(got[i], spans.AttrRecord))
		assert.Nil(t, attr(got[i], spans.AttrIteration))
	}
	assert.NotEqual(t, got[0].TraceID(), got[1].TraceID())
	eval := res.spans(spans.SpanEvaluation)
	require.Len(t, eval, 1)
	assert.Equal(t, got[1].TraceID(), eval[0].TraceID(), "with the record before it")
	assert.Equal(t, [2]time.Duration{5 * time.Second, 2 * time.Second}, when(eval[0], written))
}

func TestTwoFilesSayTheSame(t *testing.T) {
	lines := []string{"step it=1 dur=2 stamp=2026-01-01T00:00:00 dedup", "step it=2 dur=2 stamp=2026-01-01T00:00:02 dedup"}
	res := read(t, lines, lines, []string{"step it=2 dur=2 stamp=2026-01-01T00:00:02 dedup; step it=3 dur=2 stamp=2026-01-01T00:00:04 dedup"})
	assert.Len(t, res.spans(spans.SpanStep), 3)
	assert.Equal(t, 3, res.duplicates)
	assert.Equal(t, map[string]int64{"duplicate": 2}, res.counts.Ignored, "a line with something new is a record")
}

func TestRanks(t *testing.T) {
	res := read(t, []string{
		"[rank0]: step it=1 dur=1 stamp=2026-01-01T00:00:00", "[rank1]: step it=1 dur=1 stamp=2026-01-01T00:00:00",
		"[rank1]: step it=2 dur=1 stamp=2026-01-01T00:00:01", "[default3]: step it=2 dur=1 stamp=2026-01-01T00:00:01",
		"step it=2 rank=7 dur=1 stamp=2026-01-01T00:00:01",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 5)
	for i, want := range []struct{ rank, local, covered any }{
		{int64(0), nil, nil}, {int64(1), nil, nil}, {int64(1), nil, nil}, {nil, int64(3), nil}, {int64(7), nil, nil},
	} {
		assert.Equal(t, want.rank, attr(got[i], spans.AttrRank), i)
		assert.Equal(t, want.local, attr(got[i], spans.AttrLocalRank), i)
		assert.Equal(t, want.covered, attr(got[i], spans.AttrStepsCovered), i)
	}
	assert.Equal(t, got[0].TraceID(), got[1].TraceID())
	assert.NotEqual(t, got[0].SpanID(), got[1].SpanID())
}

func TestLinesThatBelongTogether(t *testing.T) {
	res := read(t, []string{
		"step it=4 loss=2 dur=1 stamp=2026-01-01T00:00:00 open", "noise", "side memMiB=8 fwd:0.25 note=x",
		"step it=4 join rate=16 gpu=0.5", // another line about the same step
		"side it=9 mem=1",                // of another step
		"step it=5 join rate=8 stamp=2026-01-01T00:00:07", "step it=5 join loss=1",
		"eval it=5 vloss=3",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 2)
	for name, want := range map[string]any{
		spans.AttrLoss: 2.0, spans.AttrMemoryUsage: 8.0 * (1 << 20), spans.AttrSampleThroughput: 16.0, spans.AttrTrainFieldPrefix + "note": "x",
		spans.AttrSourceUnit: spans.AttrMemoryUsage + "=MiBy", spans.AttrGPUUtilization: 0.5,
	} {
		assert.Equal(t, want, attr(got[0], name), name)
	}
	assert.InDelta(t, 1.0, attr(got[1], spans.AttrLoss), 0)
	assert.InDelta(t, 8.0, attr(got[1], spans.AttrSampleThroughput), 0)
	stages := res.spans("fwd")
	require.Len(t, stages, 1)
	assert.Equal(t, got[0].SpanID(), stages[0].ParentSpanID())
	assert.Equal(t, got[0].StartTimestamp(), stages[0].StartTimestamp())
	assert.Equal(t, 250*time.Millisecond, stages[0].EndTimestamp().AsTime().Sub(stages[0].StartTimestamp().AsTime()))
	assert.Equal(t, spans.OrderUnknown, attr(stages[0], spans.AttrStageOrder))
	assert.Equal(t, got[1].TraceID(), res.spans(spans.SpanEvaluation)[0].TraceID())
	// A value outside of any record is a metric all the same, at the time of the record before.
	mem := gauge(t, res, spans.AttrMemoryUsage)
	require.Len(t, mem, 2)
	assert.InDelta(t, 1.0, mem[0].DoubleValue(), 0)
	assert.Equal(t, got[0].EndTimestamp(), mem[0].Timestamp())
}

func TestPartsOfSeveralMicrobatches(t *testing.T) {
	res := read(t, []string{
		"side fwd:0.5", // before any step
		"step it=1 join stamp=2026-01-01T00:00:10", "step it=2 join stamp=2026-01-01T00:00:20",
		"step it=2 join dur=4 mean", // states the value taken as an interval before
		"side fwd:0.5", "side fwd:0.25 bwd:1", "eval it=2 vloss=1", "side late:2",
	})
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 2)
	assert.Equal(t, 4*time.Second, got[1].EndTimestamp().AsTime().Sub(got[1].StartTimestamp().AsTime()))
	assert.InDelta(t, 4.0, took(got[1]), 0)
	assert.Equal(t, spans.DurationMean, attr(got[1], spans.AttrStepDurationKind))
	fwd := res.spans("fwd")
	require.Len(t, fwd, 2)
	assert.True(t, fwd[1].ParentSpanID().IsEmpty(), "no step to belong to")
	assert.Equal(t, got[1].SpanID(), fwd[0].ParentSpanID())
	assert.Equal(t, 750*time.Millisecond, fwd[0].EndTimestamp().AsTime().Sub(fwd[0].StartTimestamp().AsTime()), "the sum")
	late := res.spans("late")
	require.Len(t, late, 1)
	assert.Equal(t, got[1].SpanID(), late[0].ParentSpanID())
	assert.Equal(t, got[1].EndTimestamp(), late[0].EndTimestamp())
}

func gauge(t *testing.T, res *result, name string) []pmetric.NumberDataPoint {
	t.Helper()
	var out []pmetric.NumberDataPoint
	for _, md := range res.metrics.AllMetrics() {
		for _, rm := range md.ResourceMetrics().All() {
			assert.Equal(t, map[string]any{spans.AttrServiceName: "job", spans.AttrRunID: "run", spans.AttrServiceInstanceID: "run"}, rm.Resource().Attributes().AsRaw())
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == name {
					for _, dp := range m.Gauge().DataPoints().All() {
						out = append(out, dp)
					}
				}
			}
		}
	}
	return out
}

// With latest_points, only the last point of each series is sent, and nothing else changes.
func TestLatestPoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Join([]string{
		"step it=1 loss=3 gpu=0.9 gpu=1 stamp=2026-01-01T00:00:00", "[rank2]: step it=2 loss=7 stamp=2026-01-01T00:00:01",
		"step it=2 loss=2 gpu=0.5 stamp=2026-01-01T00:00:02", "step it=3 tgs=5 stamp=2026-01-01T00:00:03",
	}, "\n")+"\n"), 0o600))
	all, last := &result{}, &result{points: PointsConfig{LatestPoints: true}}
	all.read(t, path)
	last.read(t, path)
	assert.Len(t, gauge(t, all, spans.AttrLoss), 3)
	values := func(name string) (out []float64) {
		for _, dp := range gauge(t, last, name) {
			out = append(out, dp.DoubleValue())
		}
		return out
	}
	assert.ElementsMatch(t, []float64{2, 7}, values(spans.AttrLoss), "of each rank")
	assert.ElementsMatch(t, []float64{0.5, 1}, values(spans.AttrGPUUtilization), "of each device")
	assert.Equal(t, all.traces.SpanCount(), last.traces.SpanCount())
}

func TestGauges(t *testing.T) {
	res := read(t, []string{"step it=1 loss=2 gpu=0.9 gpu=1 stamp=2026-01-01T00:00:00", "[rank2]: step it=2 loss=nan stamp=2026-01-01T00:00:01"})
	loss := gauge(t, res, spans.AttrLoss)
	require.Len(t, loss, 2)
	assert.Equal(t, map[string]any{spans.AttrSource: "words"}, loss[0].Attributes().AsRaw())
	assert.Equal(t, map[string]any{spans.AttrSource: "words", spans.AttrRank: int64(2)}, loss[1].Attributes().AsRaw())
	assert.True(t, math.IsNaN(loss[1].DoubleValue()))
	gpus := gauge(t, res, spans.AttrGPUUtilization)
	require.Len(t, gpus, 2)
	assert.Equal(t, map[string]any{spans.AttrSource: "words", spans.AttrHardwareID: "1", spans.AttrGPUTask: "general"}, gpus[1].Attributes().AsRaw())
	assert.Equal(t, "NaN", attr(res.spans(spans.SpanStep)[1], spans.AttrLoss), "JSON has no NaN")
}

// Values of GPUs have nvml's labels, and the host in the record. A value without a list has no device.
func TestGPUsOfRecords(t *testing.T) {
	res := read(t, []string{
		"step it=1 onegpu=0.9 host=gpu-node-1 rank=3 stamp=2026-01-01T00:00:00",
		"step it=2 gpu=0.5 watts=512.5 watts=600 host=gpu-node-1 rank=3 stamp=2026-01-01T00:00:01",
	})
	of := func(more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{spans.AttrSource: "words", spans.AttrHostName: "gpu-node-1", spans.AttrRank: int64(3)})
		return more
	}
	gpus := gauge(t, res, spans.AttrGPUUtilization)
	require.Len(t, gpus, 2)
	assert.Equal(t, of(map[string]any{spans.AttrGPUTask: "general"}), gpus[0].Attributes().AsRaw())
	assert.Equal(t, of(map[string]any{spans.AttrGPUTask: "general", spans.AttrHardwareID: "0"}), gpus[1].Attributes().AsRaw())
	power := gauge(t, res, spans.MetricHardwarePower)
	require.Len(t, power, 2)
	assert.Equal(t, of(map[string]any{spans.AttrHardwareType: "gpu", spans.AttrHardwareID: "1"}), power[1].Attributes().AsRaw())
	assert.InDelta(t, 600, power[1].DoubleValue(), 0)
	assert.Equal(t, time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC), power[1].Timestamp().AsTime())
	loss := gauge(t, res, spans.AttrIteration)
	assert.Equal(t, of(map[string]any{}), loss[0].Attributes().AsRaw())
}

// Tokens of records are those of their own steps, or absent.
func TestTokens(t *testing.T) {
	for _, tt := range []struct {
		name, log, want string
	}{
		{"of each step", "it=1 tokens=100|it=2 tokens=130|it=3 tokens=90", "100 130 90"},
		{"since the start, by another name", "it=1 seen=100|it=2 seen=230|it=3 seen=320", "100 130 90"},
		{"since the start", "it=1 tokens=100|it=2 tokens=210|it=3 tokens=320", "100 110 110"},
		{"both", "it=1 seen=100 tokens=100|it=2 seen=230 tokens=230", "100 130"},
		{"of ten steps", "it=1 tokens=100|it=11 tokens=1100|it=21 tokens=950|it=31 tokens=970", "100 - 950 970"},
		{"of ten steps, more and more", "it=1 tokens=100|it=11 tokens=1100|it=21 tokens=1300", "100 - 1300"},
		{"since the start, every ten steps", "it=1 tokens=100|it=11 tokens=1100|it=21 tokens=2150|it=31 tokens=3200", "100 - 1050 1050"},
		{"a log that goes on", "it=500 seen=50000|it=501 seen=50100", "- 100"},
		{"a log that goes on, of each step", "it=500 tokens=100|it=501 tokens=110|it=502 tokens=90|it=503 tokens=120", "- - 90 120"},
		{
			"a log that goes on, since the start", "it=9 tokens=900|it=10 tokens=1000|it=11 tokens=1100|it=12 tokens=1200|it=13 tokens=1300|it=14 tokens=1400|" +
				"it=15 tokens=1500|it=16 tokens=1600|it=17 tokens=1700", "- - - - - - - - 100",
		},
		{"since the start, from iteration 0", "it=0 tokens=100|it=1 tokens=200|it=2 tokens=300|it=3 tokens=400", "- - 100 100"},
		{"of each step, from iteration 0", "it=0 tokens=100|it=1 tokens=110|it=2 tokens=120|it=3 tokens=130", "- - 120 130"},
		{
			"goes on, since the start, and again", "it=500 tokens=50000|it=501 tokens=50100|it=400 tokens=40000|it=401 tokens=40100|it=402 tokens=40200", "- - - - -",
		},
		{"back to a checkpoint", "it=1 seen=100|it=2 seen=200|it=3 seen=300|it=2 seen=200|it=3 seen=300", "100 100 100 - 100"},
		{"without a number", "it=1 tokens=nan|it=2 tokens=0|it=3 seen=-5", "- - -"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var lines []string
			for i, l := range strings.Split(tt.log, "|") {
				lines = append(lines, fmt.Sprintf("step %s stamp=2026-01-01T00:00:%02d", l, i))
			}
			res := read(t, lines)
			var got []string
			for _, s := range res.spans(spans.SpanStep) {
				text := "-"
				if v, ok := s.Attributes().Get(spans.AttrTokens); ok {
					text = v.AsString()
				}
				got = append(got, text)
			}
			assert.Equal(t, tt.want, strings.Join(got, " "))
		})
	}
}

func TestSummaryAndModel(t *testing.T) {
	res := read(
		t,
		[]string{
			"step it=1 dur=1 stamp=2026-01-01T00:00:00", "model", "step it=2 dur=1 stamp=2026-01-01T00:00:01", "summary dur=60 total=5 stamp=2026-01-01T00:01:00",
		},
	)
	sum := res.spans(spans.SpanSummary)
	require.Len(t, sum, 1)
	trace, _ := spans.RunIDs("run")
	assert.Equal(t, trace, sum[0].TraceID())
	assert.Zero(t, sum[0].ParentSpanID(), "it is at the end of the run, and Jaeger warns of what is not within its parent")
	assert.Equal(t, time.Minute, sum[0].EndTimestamp().AsTime().Sub(sum[0].StartTimestamp().AsTime()))
	models := map[int64]bool{}
	for _, td := range res.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			m, ok := spans.ModelOf(rs.Resource().Attributes())
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.Name() == spans.SpanStep {
					models[attr(s, spans.AttrIteration).(int64)] = ok
					if ok {
						assert.Equal(t, spans.Model{HiddenSize: 4096, NumLayers: 32, Type: "llama"}, m)
					}
				}
			}
		}
	}
	assert.Equal(t, map[int64]bool{1: false, 2: true}, models)
}

// direct calls a handler without a tailer.
type direct struct{ held, released int }

func (*direct) Path() string           { return "/logs/x.log" }
func (*direct) IsDocument() bool       { return false }
func (d *direct) Hold() tail.Held      { d.held++; return tail.Held(d.held) }
func (d *direct) Release(tail.Held)    { d.released++ }
func (*direct) Place() tail.Place      { return 0 }
func (*direct) ByArrival()             {}
func (d *direct) outstanding() (n int) { return d.held - d.released }

// handlerWith makes a handler with a receiver that delivers to the consumers.
func handlerWith(tb testing.TB, d *direct, traces consumer.Traces, metrics consumer.Metrics) *handler {
	tb.Helper()
	cfg := tail.DefaultConfig()
	r, err := filereceiver.Prepare(receivertest.NewNopSettings(component.MustNewType("words")), &cfg, mk(&result{}), traces, metrics)
	require.NoError(tb, err)
	return newHandler(&Settings{
		Receiver: r, Run: spans.RunConfig{RunID: "run", ServiceName: "job"}, Zone: time.UTC, Duplicate: func() {}, NewParser: func(string, bool) Parser { return &words{} },
	}, &seen{}, &filereceiver.Pool[stepBatch]{}, d)
}

func (h *handler) give(t *testing.T, live bool, texts ...string) {
	t.Helper()
	for i, text := range texts {
		h.Line(&tail.Line{Text: []byte(text), Observed: written.Add(time.Duration(i) * time.Minute), Live: live, ModTime: written})
	}
}

func TestLiveTimes(t *testing.T) {
	var sink consumertest.TracesSink
	h := handlerWith(t, &direct{}, &sink, nil)
	h.give(t, true, "step loss=1", "step loss=2", "step it=5 dur=3")
	require.NoError(t, h.Cut().Send(context.Background()))
	res := &result{}
	require.NoError(t, res.traces.ConsumeTraces(context.Background(), sink.AllTraces()[0]))
	got := res.spans(spans.SpanStep)
	assert.Equal(t, [2]time.Duration{1, 1}, when(got[0], written))
	assert.Equal(t, [2]time.Duration{time.Minute, time.Minute}, when(got[1], written))
	assert.InDelta(t, 60.0, took(got[1]), 0)
	assert.Equal(t, [2]time.Duration{2 * time.Minute, 3 * time.Second}, when(got[2], written))
	for _, s := range got {
		assert.Equal(t, string(spans.TimeObserved), attr(s, spans.AttrTimeSource))
	}
}

// An open record waits, and is not lost when the log pauses.
func TestExpire(t *testing.T) {
	var sink consumertest.TracesSink
	d := &direct{}
	h := handlerWith(t, d, &sink, nil)
	h.give(t, true, "step it=1 dur=1 open")
	assert.Nil(t, h.Cut())
	assert.Equal(t, 1, d.outstanding())
	h.Expire(written)
	assert.Nil(t, h.Cut(), "its other lines may be being written")
	h.Expire(written.Add(time.Nanosecond))
	require.NoError(t, h.Cut().Send(context.Background()))
	assert.Zero(t, d.outstanding())
	assert.Equal(t, 2, sink.SpanCount(), "the step and its run")
	h.Expire(written.Add(time.Hour))
	assert.Nil(t, h.Cut(), "nothing left")
}

// After a restart the records continue: the same ids, the same covered steps.
func TestSaveRestore(t *testing.T) {
	lines := []string{
		"model", "step it=10 dur=1", "step loss=3", "step it=20 dur=1", "step loss=2", "restart", "step it=10 dur=1", "step loss=2", "[rank1]: step it=3 dur=1",
	}
	all := func(cut int) []ptrace.Span {
		res := &result{}
		h := handlerWith(t, &direct{}, &res.traces, nil)
		give := func(lines []string) {
			h.give(t, false, lines...)
			if d := h.Cut(); d != nil {
				require.NoError(t, d.Send(context.Background()))
			}
		}
		give(lines[:cut])
		state := h.Save()
		h = handlerWith(t, &direct{}, &res.traces, nil)
		if state != nil {
			h.Restore(state)
		}
		assert.Equal(t, cut, h.parser.(*words).lines)
		give(lines[cut:])
		return res.spans(spans.SpanStep)
	}
	want := all(0)
	for cut := 1; cut <= len(lines); cut++ {
		got := all(cut)
		require.Len(t, got, len(want))
		for i := range want {
			assert.Equal(t, want[i].SpanID(), got[i].SpanID(), "span %d, restart after line %d", i, cut)
			assert.Equal(t, want[i].TraceID(), got[i].TraceID())
			assert.Equal(t, attr(want[i], spans.AttrStepsCovered), attr(got[i], spans.AttrStepsCovered))
			assert.Equal(t, want[i].EndTimestamp(), got[i].EndTimestamp())
		}
	}
	ids := map[pcommon.SpanID]bool{}
	for _, s := range want {
		assert.False(t, ids[s.SpanID()], "the second time round is another step")
		ids[s.SpanID()] = true
	}
	h := handlerWith(t, &direct{}, &consumertest.TracesSink{}, nil)
	h.Restore([]byte("not json"))
	h.Restore([]byte(`{"tracks":{"1":null}}`))
	h.give(t, true, "[rank1]: step it=1")
}

// Everything of a step is in its trace, also with a trace decided by an id, and also after a restart.
func TestRestartAfterAnID(t *testing.T) {
	lines := []string{
		"step it=1 trace=a a:1 b:2", "eval vloss=2", "eval it=1 vloss=3", "eval it=7 vloss=3", "step it=2", "eval vloss=4", "step loss=1 trace=a", "eval vloss=5",
		"step loss=1 trace=a", "eval vloss=6 trace=b", "step it=9 open trace=b", "side late:1",
	}
	all := func(cut int) (out []ptrace.Span) {
		res := &result{}
		h := handlerWith(t, &direct{}, &res.traces, nil)
		give := func(lines []string) {
			h.give(t, false, lines...)
			h.flushPending()
			if d := h.Cut(); d != nil {
				require.NoError(t, d.Send(context.Background()))
			}
		}
		give(lines[:cut])
		state := h.Save()
		h = handlerWith(t, &direct{}, &res.traces, nil)
		if state != nil {
			h.Restore(state)
		}
		give(lines[cut:])
		for _, name := range []string{spans.SpanStep, spans.SpanEvaluation, "a", "b", "late"} {
			out = append(out, res.spans(name)...)
		}
		return out
	}
	const run = "run"
	a, b := spans.TraceID(run, []byte("a")), spans.TraceID(run, []byte("b"))
	want := []pcommon.TraceID{a, spans.StepTraceID(run, 2), a, a, b, a, a, spans.StepTraceID(run, 7), spans.StepTraceID(run, 2), a, b, a, a, b}
	whole := all(0)
	for cut := range len(lines) - 1 { // the last two leave together
		var traces []pcommon.TraceID
		ids := map[pcommon.SpanID]bool{}
		for i, s := range all(cut) {
			traces = append(traces, s.TraceID())
			ids[s.SpanID()] = true
			assert.Equal(t, whole[i].SpanID(), s.SpanID(), "span %d, restart after line %d", i, cut)
		}
		assert.Equal(t, want, traces, "restart after line %d", cut)
		assert.Len(t, ids, len(want), "each span has an id of its own")
	}
}

// robber empties its argument and fails, as a pipeline may.
type robber struct {
	consumertest.TracesSink
	fails []error
}

func (*robber) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (r *robber) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if len(r.fails) == 0 {
		return r.TracesSink.ConsumeTraces(ctx, td)
	}
	err := r.fails[0]
	r.fails = r.fails[1:]
	td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { return true })
	return err
}

func TestDelivery(t *testing.T) {
	down := errors.New("down")
	for name, c := range map[string]struct {
		fails []error
		sends int
	}{
		"retried": {[]error{down, down}, 3},
		"refused": {[]error{down, consumererror.NewPermanent(errors.New("bad"))}, 2}, // both halves are accepted
	} {
		t.Run(name, func(t *testing.T) {
			traces, metrics := &robber{fails: c.fails}, &consumertest.MetricsSink{}
			h := handlerWith(t, &direct{}, traces, metrics)
			h.give(t, true, "step it=1 loss=1", "step it=2 loss=1")
			d := h.Cut()
			ctx := context.Background()
			for range c.sends - 1 {
				require.ErrorIs(t, d.Send(ctx), down)
			}
			require.NoError(t, d.Send(ctx))
			assert.Equal(t, 3, traces.SpanCount())
			assert.Len(t, metrics.AllMetrics(), 1, "the other signal gets its part, once")
		})
	}
}

func TestSeenForgetsTheOldest(t *testing.T) {
	var s seen
	const all = seenSets * seenWays
	ids := make([]pcommon.SpanID, 2*all)
	for i := range ids {
		_, ids[i] = spans.RunIDs(strconv.Itoa(i))
		require.False(t, s.checkAndAdd(ids[i], uint64(i)))
	}
	for i := all; i < 2*all; i++ {
		require.True(t, s.checkAndAdd(ids[i], uint64(i)), i)
	}
	assert.False(t, s.checkAndAdd(ids[0], 0))
}

func TestIndex(t *testing.T) {
	for i := range 30 {
		assert.Equal(t, strconv.Itoa(i), index(i))
	}
}

// Buffered records come all at once: their arrival is not the duration of their steps.
func TestRecordsHeldBack(t *testing.T) {
	var sink consumertest.TracesSink
	h := handlerWith(t, &direct{}, &sink, nil)
	h.give(t, true, "step it=10 loss=1", "step it=20 loss=2 late", "step it=30 loss=2")
	require.NoError(t, h.Cut().Send(context.Background()))
	res := &result{}
	require.NoError(t, res.traces.ConsumeTraces(context.Background(), sink.AllTraces()[0]))
	got := res.spans(spans.SpanStep)
	require.Len(t, got, 3)
	for i, want := range []any{nil, nil, 6.0} {
		assert.Equal(t, want, took(got[i]), i)
	}
	assert.Equal(t, true, attr(got[1], spans.AttrTimePoint))
}

// Without a clock the times are made of the durations, also of durations on a line after the record's.
func TestDurationInTheNextLineWithoutAClock(t *testing.T) {
	got := read(t, []string{"step it=1 open", "side dur=2", "step it=2 open", "side dur=3"}).spans(spans.SpanStep)
	require.Len(t, got, 2)
	assert.Equal(t, 2*time.Second, got[0].EndTimestamp().AsTime().Sub(got[0].StartTimestamp().AsTime()))
	assert.Equal(t, 3*time.Second, got[1].EndTimestamp().AsTime().Sub(got[1].StartTimestamp().AsTime()))
	assert.GreaterOrEqual(t, got[1].StartTimestamp(), got[0].EndTimestamp(), "one after the other")
}

// The resource distinguishes attempts: after a restart, after going back, and for a rank that logs for the first time.
func TestAttempts(t *testing.T) {
	res := read(t, []string{
		"restart", "restart", // the launch itself, as printed by two ranks
		"step it=10 dur=1 stamp=2026-01-01T00:00:10", "step it=20 dur=1 stamp=2026-01-01T00:00:20",
		"restart", "restart",
		"step it=20 dur=1 stamp=2026-01-01T00:01:20", "[rank1]: step it=20 dur=1 stamp=2026-01-01T00:01:20", "eval it=20 vloss=3 stamp=2026-01-01T00:01:21",
		"step it=15 dur=1 stamp=2026-01-01T00:02:15", "step it=20 dur=1 stamp=2026-01-01T00:02:20",
	})
	var got []string
	ids := make(map[pcommon.SpanID]bool)
	for _, td := range res.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			attempt := rs.Resource().Attributes().AsRaw()[spans.AttrRunAttempt]
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.Name() == spans.SpanStep {
					n, _ := s.Attributes().Get(spans.AttrIteration)
					got = append(got, fmt.Sprintf("%d in attempt %v", n.Int(), attempt))
					ids[s.SpanID()] = true
				}
			}
		}
	}
	assert.ElementsMatch(
		t, []string{"10 in attempt <nil>", "20 in attempt <nil>", "20 in attempt 1", "20 in attempt 1", "15 in attempt 2", "20 in attempt 2"}, got, "the first has none",
	)
	assert.Len(t, ids, len(got))
}

// Iterations that restart with each epoch are different steps in separate traces, whichever rank logs them, and no attempts. The job goes back by epoch.
func TestIterationsPerEpoch(t *testing.T) {
	res := read(t, []string{
		"step it=1 epoch=0 dur=1 stamp=2026-01-01T00:00:10", "[rank1]: step it=1 epoch=0 dur=1 stamp=2026-01-01T00:00:10",
		"step it=2 epoch=0 dur=1 stamp=2026-01-01T00:00:20", "[rank1]: step it=2 epoch=0 dur=1 stamp=2026-01-01T00:00:20",
		"step it=1 epoch=1 dur=1 stamp=2026-01-01T00:01:10", "[rank1]: step it=1 epoch=1 dur=1 stamp=2026-01-01T00:01:10",
		"step it=2 epoch=1 dur=1 stamp=2026-01-01T00:01:20", "eval it=2 vloss=3 stamp=2026-01-01T00:01:21",
		"step it=1 epoch=2 dur=1 stamp=2026-01-01T00:02:10",
		"step it=1 epoch=1 dur=1 stamp=2026-01-01T00:03:10", "step it=2 epoch=1 dur=1 stamp=2026-01-01T00:03:20",
	})
	traces, attempts := map[pcommon.TraceID]int{}, map[any]int{}
	for _, td := range res.traces.AllTraces() {
		for _, rs := range td.ResourceSpans().All() {
			for _, s := range rs.ScopeSpans().At(0).Spans().All() {
				if s.Name() == spans.SpanRun {
					continue
				}
				traces[s.TraceID()]++
				attempts[rs.Resource().Attributes().AsRaw()[spans.AttrRunAttempt]]++
			}
		}
	}
	assert.Equal(t, map[any]int{nil: 9, int64(1): 2}, attempts)
	assert.ElementsMatch(t, []int{2, 2, 3, 3, 1}, slices.Collect(maps.Values(traces)))
	assert.Equal(t, 2, traces[spans.StepTraceID("run", 1)])
}

func TestAttemptOfPath(t *testing.T) {
	for path, want := range map[string]int64{
		"/logs/none_77dl2omi/attempt_0/0/stdout.log": 0, "/logs/host_0/default_x/attempt_3/7/stderr.log": 3, "attempt_2/0/stdout.log": 2,
		"/logs/attempt_1.log": 0, "/logs/attempt_x/a.log": 0, "/logs/attempt_-1/a.log": 0, "/logs/attempt_99999999999/a.log": 0, "a.log": 0, "": 0,
	} {
		assert.Equal(t, want, attemptOf(path), path)
	}
}

func TestRankOfName(t *testing.T) {
	for name, want := range map[string]int64{
		"rank2.out": 2, "rank_0.log": 0, "train-Rank-03.log": 3, "log.rank=7": 7, "job.rank12.jsonl": 12, "frank2_rank5.log": 5,
		"local_rank2.log": noRank, "frank2.log": noRank, "rank.log": noRank, "rank2of8.log": noRank, "ranks2.log": noRank, "rank99999999999.log": noRank, "train.log": noRank,
	} {
		assert.Equal(t, want, rankOf(name), name)
	}
}
