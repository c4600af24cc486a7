package trainlogreceiver

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/spans"
)

// Results of evaluations on lines of their own, as loops print them between their steps. Steps have no time of their own in these logs but the distance of two
// lines: the evaluation is no part of the step after.
func TestEvaluationsBetweenLines(t *testing.T) {
	for _, lines := range []string{
		"Validation Loss: 2.5000", "val loss 2.5000 acc 0.51", "[eval] loss=2.5000 ppl=12.2", "Step 50: val_loss=2.5000",
		"Validation started\nValidation finished val_loss=2.5000", "Running evaluation...\nEval loss: 2.5000, perplexity: 12.2",
		"Evaluation done, loss: 2.5000",
	} {
		t.Run(lines, func(t *testing.T) {
			steps, results := evaluated(t, 1, 50, lines)
			require.Len(t, results, 1)
			assert.Equal(t, "50", attr(results[0], spans.AttrIteration))
			assert.Equal(t, "2.5", attr(results[0], spans.AttrValidationLoss))
			for _, s := range steps[1:] {
				assert.InDelta(t, 1.2, filereceivertest.Took(s), 1e-6, attr(s, spans.AttrIteration))
			}
		})
	}
	// The log has each tenth step, and the evaluation comes after the line of step 50, or after step 55.
	steps, _ := evaluated(t, 10, 50, "Validation Loss: 2.5000")
	assert.InDelta(t, 1.2, filereceivertest.Took(steps[6]), 1e-6)
	steps, _ = evaluated(t, 10, 55, "Validation Loss: 2.5000")
	assert.InDelta(t, 1.2+4, filereceivertest.Took(steps[6]), 1e-6)
	// A result with its time.
	_, results := evaluated(t, 1, 50, "Validation done in 39.5s, val_loss: 2.5")
	assert.InDelta(t, 39.5, filereceivertest.Took(results[0]), 1e-6)
}

// evaluated reads the log of a loop of 80 steps of 1.2 s, which prints step 1 and each step divisible by every, and after a step the lines of an evaluation of
// 40 s, the last of them at its end.
func evaluated(t *testing.T, every, after int, lines string) (steps, results []ptrace.Span) {
	t.Helper()
	var log strings.Builder
	at := time.Date(2026, 9, 14, 8, 0, 0, 0, time.UTC)
	say := func(text string) {
		fmt.Fprintf(&log, "%s INFO %s\n", at.Format("2006-01-02 15:04:05.000"), text)
	}
	for n := 1; n <= 80; n++ {
		at = at.Add(1200 * time.Millisecond)
		if n == 1 || n%every == 0 {
			say(fmt.Sprintf("step %d loss %.4f lr 1e-4", n, 7-0.01*float64(n)))
		}
		if n == after {
			all := strings.Split(lines, "\n")
			for i, line := range all {
				if i == len(all)-1 {
					at = at.Add(40 * time.Second)
				}
				say(line)
			}
		}
	}
	b := read(t, nil, write(t, "train.log", log.String()))
	return filereceivertest.ByEnd(b.All(spans.SpanStep)), b.All(spans.SpanEvaluation)
}
