package report

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Steps that are slow at a regular interval are slow windows too: their time is lost once.
func TestPeriodOfSlowSteps(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	for i := 1; i <= 800; i++ {
		loading := 0.04
		if i%100 == 0 {
			loading = 10.04
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": 2.5, "step_time_s": %.3f, "data_time_s": %.3f}`+"\n", i, 0.9+0.01*float64(i%3)+loading, loading)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(log.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "8 of 800 steps were slow (80 s of 14 min")
	assert.Contains(t, text, "Each 100th step takes 10.9 s instead of 949 ms")
	assert.NotContains(t, text, "160 s")
}

// In a log of micro-steps each 8th has the update of the accumulated gradients: nothing is lost. A period of 10 steps is none of accumulation, and neither is
// one in which a step loads data.
func TestAccumulatedGradients(t *testing.T) {
	for name, tt := range map[string]struct {
		every int
		part  string // of the longer time
		lost  bool
	}{
		"update": {8, "optimizer_time_s", false}, "each 10th": {10, "optimizer_time_s", true}, "loading": {8, "data_time_s", true},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			for i := 1; i <= 400; i++ {
				more := 0.001
				if i%tt.every == 0 {
					more = 0.7
				}
				fmt.Fprintf(&log, `{"micro_step": %d, "loss": 2.5, "step_time_s": %.3f, "%s": %.3f}`+"\n", i, 0.35+0.002*float64(i%3)+more, tt.part, more)
			}
			text := reported(t, write1(t, "train.jsonl", log.String()))
			assert.Equal(t, !tt.lost, strings.Contains(text, "as the update after gradients accumulated over 8 steps does"), text)
			assert.Equal(t, !tt.lost, strings.Contains(text, "None of 400 steps was slow") && strings.Contains(text, "goodput 100%"), text)
		})
	}
}

// Losses that are not finite are counted over the whole log, and the first is named.
func TestNotFinite(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	for i := 1; i <= 300; i++ {
		loss := "2.5"
		if i > 180 {
			loss = "NaN"
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": %s, "step_time_s": %.3f}`+"\n", i, loss, 0.9+0.01*float64(i%3))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(log.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "The loss is NaN: the run has diverged or overflowed, in 120 of 300 records, first at step 181.")
	assert.Contains(t, text, "train.jsonl:181")
	assert.NotContains(t, text, "True of")
	assert.NotContains(t, text, "worst of")
}

// A loss that is finite again is no end of the training.
func TestFiniteAgain(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 300; i++ {
		loss := "2.5"
		if i == 4 || i == 5 {
			loss = "NaN"
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": %s, "step_time_s": %.3f}`+"\n", i, loss, 0.9+0.01*float64(i%3))
	}
	text := reported(t, write1(t, "train.jsonl", log.String()))
	assert.Contains(t, text, "The loss was NaN in 2 of 300 records, first at step 4, and finite again after.")
	assert.NotContains(t, text, "diverged")
}

// Longer steps from a step on are lost once, though the first of these are slow beside the steps before. Timers may be in a group of their own.
func TestSlowAndLonger(t *testing.T) {
	var log strings.Builder
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := 1; i <= 100; i++ {
		loading := 20.0 + float64(i%3)
		if i > 60 {
			loading += 400
		}
		at = at.Add(time.Duration((9000 + 10*loading) * 1e6))
		fmt.Fprintf(&log, `{"ts": %q, "step": %d, "train": {"loss": 2.5}, "perf": {"iter_time_ms": %.2f, "data_time_ms": %.2f, "tokens_per_sec": %.1f}}`+"\n",
			at.Format(time.RFC3339Nano), 10*i, 900+loading, loading, 262144/(0.9+loading/1000))
	}
	text := reported(t, write1(t, "train.jsonl", log.String()))
	assert.Contains(t, text, "From step 601 on a step takes 1.32 s instead of 921 ms (perf.data_time_ms: 421 ms instead of 21 ms), for the same work: 160 s more")
	lost := regexp.MustCompile(`^.*?Why`).FindString(text)
	assert.NotRegexp(t, `2[0-9][0-9] s of`, lost)
}

// Steps that take longer since a restart, for the same work, are a loss; those of steps done again are lost once.
func TestSlowerSinceRestart(t *testing.T) {
	log := func(tokens func(took float64) float64) string {
		var text strings.Builder
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		row := func(step int, took float64) {
			took += 0.01 * float64(step%3)
			at = at.Add(time.Duration(took * 1e9))
			fmt.Fprintf(&text, `{"timestamp": %q, "step": %d, "loss": 2.5, "step_time_s": %.3f, "tokens_per_second": %.0f}`+"\n", at.Format(time.RFC3339Nano), step, took,
				tokens(took))
		}
		for step := 1; step <= 230; step++ {
			row(step, 1)
		}
		at = at.Add(5 * time.Minute)
		for step := 201; step <= 400; step++ {
			row(step, 1.5)
		}
		return text.String()
	}
	same := reported(t, write1(t, "train.jsonl", log(func(took float64) float64 { return 131072 / took })))
	assert.Contains(t, same, "Since the restart at step 201 a step takes 1.51 s instead of 1.01 s, for the same work: 100 s more in all")
	assert.NotContains(t, reported(t, write1(t, "train.jsonl", log(func(float64) float64 { return 131072 }))), "Since the restart")
}

// What ended the attempts before is told with the time between attempts.
func TestWhyDown(t *testing.T) {
	var log strings.Builder
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for attempt := range 4 {
		for i := 100 * attempt; i < 100*attempt+120; i++ {
			at = at.Add(time.Second)
			fmt.Fprintf(&log, "[default0]:%s [INFO] step %d/1000 loss 2.5 step_time 1.000s\n", at.Format("2006-01-02 15:04:05,000"), i)
		}
		if attempt < 3 {
			log.WriteString("[default5]:[rank5]: Traceback (most recent call last):\n[default5]:[rank5]:   File \"/app/train.py\", line 166, in main\n" +
				"[default5]:[rank5]: RuntimeError: CUDA error: an illegal memory access was encountered\n" +
				"E0301 00:10:00.000000 7 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: 5 (pid: 1006) of binary: python\n" +
				"I0301 00:10:01.000000 7 torch/distributed/elastic/agent/server/api.py:938] [default] Worker group FAILED. 2/3 attempts left; will restart worker group\n")
		}
		at = at.Add(2 * time.Minute)
	}
	text := reported(t, write1(t, "train.log", log.String()))
	assert.Regexp(t, `between 4 attempts.*Before 3 of 3 times: A CUDA call failed: an illegal memory access was encountered on rank 5\.`, text)
}

// The result of an evaluation without a duration is no part of the time with a length.
func TestPointsAreNoParts(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	for i := range 120 {
		if i%25 == 0 {
			fmt.Fprintf(&log, "step %d: train loss 2.5000, val loss 2.6000\n", i*10)
		}
		fmt.Fprintf(&log, "iter %d: loss 2.5000, time %d.00ms, mfu 38.20%%\n", i*10, 250+i%3)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "out.log"), []byte(log.String()), 0o600))
	assert.NotContains(t, reported(t, dir), " ns ")
}

// A job that has slowed down is not healthy, even where its data came in time.
func TestSlowedDown(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	for i := 1; i <= 400; i++ {
		took := 1.0 + 0.01*float64(i%3)
		if i > 150 {
			took *= 1.4
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": 2.5, "step_time_s": %.3f, "data_time_s": 0.02}`+"\n", i, took)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(log.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "The run has slowed down")
	assert.NotContains(t, text, "Healthy")
}
