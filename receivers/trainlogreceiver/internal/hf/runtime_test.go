package hf_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/receivers/trainlogreceiver/internal/hf"
)

// With include_num_input_tokens_seen rows of steps have the time since training began, which is more exact than what bars show. Evaluations are taken off; a
// time that falls is of a resumed job; times of four digits, beyond 10,000 s, are too coarse for short steps.
func TestRuntime(t *testing.T) {
	const row, evaluation = `{"loss": 1.5, "epoch": 0.1, "step": %d, "train_runtime": %s}`, `{"eval_loss": 1.5, "eval_runtime": 1.907, "epoch": 0.1, "step": %d}`
	state := `{"log_history": [` + fmt.Sprintf(row, 40, "4.0372") + "," + fmt.Sprintf(evaluation, 40) + "," + fmt.Sprintf(row, 45, "6.2552") + "," + fmt.Sprintf(row, 50, "7.8342") + "," +
		fmt.Sprintf(row, 55, "1.5") + "," + fmt.Sprintf(row, 60, "3.5") + "," + fmt.Sprintf(row, 65, "12340") + "," + fmt.Sprintf(row, 70, "12350") + `]}`
	var got []float64
	found, reason := hf.New(nil).State([]byte(state), &sink{each: func(rec *record.Record) {
		if rec.Kind == record.Step {
			got = append(got, rec.Get(record.Duration))
		}
	}})
	assert.True(t, found, reason)
	assert.InDeltaSlice(t, []float64{0, 0.0622, 0.3158, 0, 0.4, 2467.3, 0}, zeroed(got), 1e-9)
}

// The step of a dict stands in the bar drawn behind; the time is the dict's.
func TestRuntimeBesideBar(t *testing.T) {
	var got []float64
	p, out := hf.New(nil), &sink{each: func(rec *record.Record) {
		if rec.Has(record.Duration) {
			got = append(got, rec.Get(record.Duration))
		}
	}}
	for _, line := range []string{
		" 33%|███▎      | 40/120 [00:04<00:04, 16.06it/s]", "",
		"{'loss': '10.91', 'epoch': '0.16', 'train_runtime': '4.037'}", " 33%|███▎      | 40/120 [00:04<00:04, 16.06it/s]", " 38%|███▊      | 45/120 [00:06<00:15,  4.94it/s]", "",
		"{'loss': '10.89', 'epoch': '0.18', 'train_runtime': '4.437'}", " 38%|███▊      | 45/120 [00:06<00:15,  4.94it/s]",
	} {
		if line == "" {
			p.Blank()
			continue
		}
		p.Line([]byte(line), out)
	}
	assert.InDelta(t, 0.08, got[len(got)-1], 1e-9)
}

// zeroed has 0 for NaN.
func zeroed(list []float64) []float64 {
	for i, v := range list {
		if math.IsNaN(v) {
			list[i] = 0
		}
	}
	return list
}
