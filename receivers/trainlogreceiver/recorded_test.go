package trainlogreceiver

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// logged is a row of the truth beside a recording (tools/record-trainers/hf.py), written by a callback.
type logged struct {
	Step, Of     float64
	Loss         *float64
	EvalLoss     *float64 `json:"eval_loss"`
	EvalRuntime  float64  `json:"eval_runtime"`
	TrainRuntime float64  `json:"train_runtime"`
	Seconds      float64  // of one step, mean
}

func truth(t *testing.T, name string) (steps, evaluations []logged) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".json"))
	require.NoError(t, err)
	var all []logged
	require.NoError(t, json.Unmarshal(b, &all))
	for _, row := range all {
		switch {
		case row.Loss != nil:
			steps = append(steps, row)
		case row.EvalLoss != nil:
			evaluations = append(evaluations, row)
		}
	}
	return steps, evaluations
}

// Regression: the output of the Trainer of Transformers and of TRL has neither step nor time outside of tqdm's bar, and was read as records 1, 2, 3 of 1 ns.
func TestRecordedBars(t *testing.T) {
	for name, c := range map[string]struct {
		timed int // records with a duration
		near  float64
	}{
		"bar":          {12, 0.15},
		"bar4":         {6, 0.15},
		"buffered":     {12, 0.15}, // python … >log 2>&1: records come many lines after their bars
		"ranks":        {3, 0.25},  // torchrun --tee 3: standard output and error are read apart
		"tokens":       {3, 0.15},
		"blocks":       {150, 0.25}, // 8 KB of records at a time, some within a write
		"epochs":       {6, 0.15},
		"llamafactory": {6, 0.15},
		"resumed":      {7, 0.15}, // "22.00it/s" after the resumption, where a step takes 0.31 s: not believed
		"fast":         {4, 0.25}, // many steps before the bar is drawn first, and more at one speed
		"sft":          {3, 0.25},
		"axolotl":      {3, 0.15},
		"grpo":         {4, 0.02}, // step_time is the record's own
	} {
		t.Run(name, func(t *testing.T) {
			b := read(t, nil, filepath.Join("testdata", "recorded", name+".log"))
			steps, evaluations := truth(t, name)
			got := filereceivertest.ByEnd(b.All(spans.SpanStep))
			require.Len(t, got, len(steps))
			timed := 0
			for i, want := range steps {
				assert.InDelta(t, want.Step, number(got[i], spans.AttrIteration), 0, "record %d", i)
				assert.InDelta(t, want.Of, number(got[i], spans.AttrIterations), 0)
				assert.InDelta(t, *want.Loss, number(got[i], spans.AttrLoss), 1e-3)
				if attr(got[i], spans.AttrTimePoint) == "" {
					timed++
					assert.InEpsilon(t, want.Seconds, filereceivertest.Took(got[i]), c.near, "step %v", want.Step)
				}
			}
			assert.Equal(t, c.timed, timed)
			if name != "grpo" {
				assert.Less(t, number(got[len(got)-1], spans.AttrLoss), number(got[0], spans.AttrLoss))
			}
			evals := b.All(spans.SpanEvaluation)
			require.Len(t, evals, len(evaluations))
			for i, want := range evaluations {
				assert.InDelta(t, want.Step, number(evals[i], spans.AttrIteration), 0)
				assert.InDelta(t, want.EvalRuntime, evals[i].EndTimestamp().AsTime().Sub(evals[i].StartTimestamp().AsTime()).Seconds(), 1e-6)
			}
		})
	}
}

// Without a bar the duration of a step is unknown.
func TestRecordedPrinter(t *testing.T) {
	b := read(t, nil, filepath.Join("testdata", "recorded", "printer.log"))
	steps, _ := truth(t, "printer")
	got := b.All(spans.SpanStep)
	require.Len(t, got, len(steps))
	for i, want := range steps {
		assert.InDelta(t, *want.Loss, number(got[i], spans.AttrLoss), 1e-3)
		assert.Equal(t, "true", attr(got[i], spans.AttrTimePoint))
		assert.True(t, math.IsNaN(filereceivertest.Took(got[i])))
		assert.Empty(t, attr(got[i], spans.AttrIteration))
	}
}

// Regression: LLaMA-Factory's trainer_log.jsonl, without durations and times: its throughput, 90 tokens per second, was read as samples, its last row as a
// step. The job's running time is in whole seconds, and the first row may come from a resumed job.
func TestRecordedLlamaFactory(t *testing.T) {
	b := read(t, nil, filepath.Join("testdata", "recorded", "trainer_log.jsonl"))
	steps, evaluations := truth(t, "llamafactory")
	got := b.All(spans.SpanStep)
	require.Len(t, got, len(steps))
	for i, want := range steps {
		assert.InDelta(t, want.Step, number(got[i], spans.AttrIteration), 0)
		assert.InDelta(t, want.Of, number(got[i], spans.AttrIterations), 0)
		assert.InDelta(t, *want.Loss, number(got[i], spans.AttrLoss), 0)
		assert.InEpsilon(t, 128/want.Seconds/2, number(got[i], spans.AttrTokenThroughput), 0.02) // 4 rows of 16 tokens a step
		assert.Empty(t, attr(got[i], spans.AttrSampleThroughput))
		if i == 0 {
			assert.Equal(t, "true", attr(got[i], spans.AttrTimePoint))
			continue
		}
		assert.InEpsilon(t, want.Seconds, filereceivertest.Took(got[i]), 0.01)
	}
	evals := b.All(spans.SpanEvaluation)
	require.Len(t, evals, len(evaluations))
	for i, want := range evaluations {
		assert.InDelta(t, want.Step, number(evals[i], spans.AttrIteration), 0)
		assert.InDelta(t, *want.EvalLoss, number(evals[i], spans.AttrValidationLoss), 0)
	}
	assert.Empty(t, b.All(spans.SpanSummary))
}

func TestRecordedAxolotl(t *testing.T) {
	b := read(t, nil, filepath.Join("testdata", "recorded", "axolotl.log"))
	got := b.All(spans.SpanStep)
	require.Len(t, got, 3)
	for i, want := range []float64{128, 256, 384} {
		assert.InDelta(t, want, number(got[i], spans.AttrConsumedTokens), 0)
		assert.InDelta(t, 1.75*(1<<30), number(got[i], spans.AttrMemoryPeak), 0)
		assert.InDelta(t, 2.25*(1<<30), number(got[i], spans.AttrMemoryReserved), 0)
		if i > 0 { // 64 tokens a step
			assert.InEpsilon(t, 64/filereceivertest.Took(got[i]), number(got[i], spans.AttrDeviceTokenThroughput), 0.15)
		}
	}
	assert.InEpsilon(t, 42.04, number(b.All(spans.SpanEvaluation)[0], spans.AttrPerplexity), 1e-9)
}

// trainer_state.json repeats standard output: in one series, each step would count twice.
func TestRecordedStateBesideOutput(t *testing.T) {
	b := read(t, nil, filepath.Join("testdata", "recorded", "bar.log"), filepath.Join("testdata", "recorded", "trainer_state.json"))
	bySource := map[string][]string{}
	for _, s := range b.All(spans.SpanStep) {
		bySource[attr(s, spans.AttrSource)] = append(bySource[attr(s, spans.AttrSource)], s.TraceID().String())
	}
	require.Len(t, bySource, 2)
	assert.Len(t, bySource["hf"], 12)
	assert.ElementsMatch(t, bySource["hf"], bySource["trainer_state"], "the traces of the same steps")
}

func number(s ptrace.Span, name string) float64 {
	v, err := strconv.ParseFloat(attr(s, name), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
