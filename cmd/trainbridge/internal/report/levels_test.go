package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A lasting change of the time of a step is a loss where the log tells that the work stayed the same, with the part that grew; more work at the same rate is
// none.
func TestLevels(t *testing.T) {
	const line = "step:%d - timing_s/gen:%.3f - timing_s/reward:%.3f - timing_s/step:%.3f - perf/total_num_tokens:%d - perf/throughput:%.3f\n"
	for name, tt := range map[string]struct {
		reward, work float64 // s, and a factor, from step 31 on
		rate         bool    // the log has tokens
		want, not    string
	}{
		"slower": {
			9, 1, true,
			"280 s of 16 min 20 s lost (28.6%) in 70 steps: longer steps from step 31 on.", "",
		},
		"the part": {
			9, 1, true, "From step 31 on a step takes 17 s instead of 10 s (reward: 9 s instead of 2 s), for the same work: 280 s more in all", "",
		},
		"more work":    {2, 2, true, "and does 2 times the work", " lost"},
		"no rate":      {9, 1, false, "From step 31 on a step takes 17 s instead of 10 s (reward: 9 s instead of 2 s).", " lost"},
		"another load": {9, 0.5, true, "From step 31 on a step takes 13 s instead of 10 s (reward: 9 s instead of 2 s).", " lost"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log strings.Builder
			for i := 1; i <= 70; i++ {
				gen, reward, tokens := 8.0, 2.0, 80_000
				if i > 30 {
					gen, reward, tokens = 8*tt.work, tt.reward, int(80_000*tt.work)
					if tt.reward == 2 {
						reward *= tt.work
					}
				}
				gen += 0.01 * float64(i%3-1)
				row := fmt.Sprintf(line, i, gen, reward, gen+reward, tokens, float64(tokens)/(gen+reward)/8)
				if !tt.rate {
					row, _, _ = strings.Cut(row, " - perf")
					row += "\n"
				}
				log.WriteString(row)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "verl.log"), []byte(log.String()), 0o600))
			text := reported(t, dir)
			assert.Contains(t, text, tt.want)
			if tt.not != "" {
				assert.NotContains(t, strings.Split(text, "Not known")[0], tt.not)
			}
		})
	}
}

// Waiting for a rank that makes steps longer from a step on is lost once.
func TestLevelsShare(t *testing.T) {
	dir := (&plainJob{step: func(at time.Time, step int, took time.Duration) string {
		return strings.Replace(megatron(at, step, took), "| global", fmt.Sprintf("| throughput per GPU (TFLOP/s/GPU): %.1f | global", 400/took.Seconds()), 1)
	}, ranks: 2, later: 20}).write(t)
	text := reported(t, dir)
	assert.Contains(t, text, " 12.6 s of 53.1 s lost (23.8%) in 40 steps: waiting for rank 1 on host-1.")
	assert.Contains(t, text, "(waiting for late ranks: 602 ms instead of 2 ms), for the same work")
}

// As many samples in longer steps may be of longer sequences: no loss.
func TestLevelsOfSamples(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 70; i++ {
		took := 2 + 0.003*float64(i%3)
		if i > 30 {
			took *= 1.5
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": 2.5, "step_time_s": %.3f, "samples_per_second": %.3f}`+"\n", i, took, 32/took)
	}
	text := reported(t, write1(t, "train.jsonl", log.String()))
	assert.Contains(t, text, "From step 31 on a step takes 3 s instead of 2 s, for as many samples.")
	assert.NotContains(t, strings.Split(text, "Not known")[0], " lost")
}

// An evaluation far longer than the others is a remark, and no loss: a larger set takes longer. nanoGPT does not log how long an evaluation took.
func TestLongEvaluations(t *testing.T) {
	for longest, said := range map[float64]bool{4: false, 40: true} {
		var log strings.Builder
		for i := 0; i <= 60; i++ {
			took := 1 + 0.002*float64(i%5)
			if i%10 == 0 {
				fmt.Fprintf(&log, "step %d: train loss 2.5000, val loss 2.6000\n", i)
				took += 4
			}
			if i == 40 {
				took += longest - 4
			}
			fmt.Fprintf(&log, "iter %d: loss 2.5000, time %.2fms, mfu 31.00%%\n", i, took*1e3)
		}
		text := reported(t, write1(t, "train.log", log.String()))
		assert.Equal(t, said, strings.Contains(text, "1 of 6 evaluations took longer than usual (3.99 s): 36 s more in all"), text)
		assert.NotContains(t, text, "slow steps")
		assert.Contains(t, text, "steps was slow")
		assert.Contains(t, text, "evaluations")
	}
}

// A short stretch that was faster is no measure of what is usual: the steps behind are as those before.
func TestLevelsReturn(t *testing.T) {
	for fast, lost := range map[int]bool{25: false, 90: true} {
		dir := t.TempDir()
		var log strings.Builder
		for i := 1; i <= 240; i++ {
			took := 1.0
			if i > 120 && i <= 120+fast {
				took = 0.7
			}
			took += 0.002 * float64(i%5)
			fmt.Fprintf(&log, `{"step": %d, "step_time_s": %.3f, "tokens_per_sec": %.1f}`+"\n", i, took, 65536/took)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte(log.String()), 0o600))
		if text := reported(t, dir); lost {
			assert.Contains(t, text, "for the same work", fast)
		} else {
			assert.NotContains(t, text, "for the same work", fast)
		}
	}
}

// Steps that grow after a long while are told by how much they grew, from where they began, with the part that grew.
func TestTrendLate(t *testing.T) {
	var log strings.Builder
	now, more := 1.78e9, 0.0
	r := rand.New(rand.NewPCG(1, 2))
	for i := 1; i <= 400; i++ {
		loads := 0.03 + max(0, float64(i-150))*0.0036
		took := 0.7*math.Exp(0.02*r.NormFloat64()) + loads
		now, more = now+took, more+loads-0.03
		fmt.Fprintf(&log, `{"time": %.3f, "step": %d, "loss": 2.5, "step_time_s": %.4f, "data_time_s": %.4f}`+"\n", now, i, took, loads)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(log.String()), 0o600))
	assert.InDelta(t, 113, more, 1)
	assert.Contains(t, reported(t, dir), "Steps grew slower by 110.7% from step 1 to 400 (732 ms to 1.54 s), which took 113 s more than at the beginning "+
		"(data_time_s: 842 ms instead of 30 ms).")
}
