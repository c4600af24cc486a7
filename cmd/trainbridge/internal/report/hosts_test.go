package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A host whose steps load data, or compute, longer than those of the others is told; hosts of other stages of a pipeline, which load nothing, are no measure.
func TestSlowHosts(t *testing.T) {
	for name, tt := range map[string]struct {
		loads, computes [4]float64 // s, by host
		want            string
	}{
		"alike":        {[4]float64{0.05, 0.06, 0.05, 0.05}, [4]float64{1.2, 1.22, 1.2, 1.25}, ""},
		"loading data": {[4]float64{0.05, 0.06, 0.4, 0.05}, [4]float64{1.2, 1.2, 1.2, 1.2}, "Rank 16 on n2 took 400 ms a step for loading data, by the logs' timers; usual of 4 ranks is 55 ms: the others wait, 20.7 s in all"},
		"computing":    {[4]float64{0.05, 0.05, 0.05, 0.05}, [4]float64{1.2, 1.6, 1.2, 1.2}, "Rank 8 on n1 took 1.6 s a step for computing, by the logs' timers; usual of 4 ranks is 1.2 s: slower, or with more to do"},
		"a pipeline":   {[4]float64{0.4, 0, 0, 0}, [4]float64{1.2, 1.2, 1.2, 1.2}, ""},
		"two halves":   {[4]float64{0.4, 0.4, 0.05, 0.05}, [4]float64{1.2, 1.2, 1.6, 1.6}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for host := range tt.loads {
				var log strings.Builder
				for i := 1; i <= 60; i++ {
					fmt.Fprintf(&log, `{"ts": "2026-06-12T10:%02d:%02dZ", "host": "n%d", "rank": %d, "step": %d, "loss": 2.5, "step_time_s": 2.0, "data_time_s": %g, `+
						`"compute_time_s": %g}`+"\n", i/30, i%30*2, host, 8*host, i, tt.loads[host], tt.computes[host])
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("n%d.jsonl", host)), []byte(log.String()), 0o600))
			}
			text := reported(t, dir)
			if tt.want == "" {
				assert.NotContains(t, text, "by the logs' timers")
			} else {
				assert.Contains(t, text, tt.want)
				assert.NotContains(t, text, "Healthy")
			}
		})
	}
}

// A rank that computes longer in each step is told with the time of the others' waiting, if their timers of collectives show the waiting.
func TestSlowRank(t *testing.T) {
	for name, tt := range map[string]struct {
		syncs       bool // the log times collectives
		file        string
		want, short string
	}{
		"waiting is timed": {true, "rank%d.jsonl", "Rank 6 took 1.3 s a step for computing, by the logs' timers; usual of 8 ranks is 900 ms: the others wait, 24 s in all, " +
			"28.6% of 84 s", "waiting for rank 6"},
		"waiting is not timed": {false, "rank%d.jsonl", "usual of 8 ranks is 900 ms: slower, or with more to do", "None of 60 steps was slow"},
		"no rank in the names": {true, "log%d.jsonl", "", "None of 60"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for rank := range 8 {
				var log strings.Builder
				for i := 1; i <= 60; i++ {
					computes := 0.9
					if rank == 6 {
						computes = 1.3
					}
					fmt.Fprintf(&log, `{"ts": %.3f, "step": %d, "loss": 2.%d, "step_time_s": 1.4, "compute_time_s": %g`, 1.78e9+1.4*float64(i), i, rank, computes)
					if tt.syncs {
						fmt.Fprintf(&log, `, "sync_time_s": %g`, 1.4-computes)
					}
					log.WriteString("}\n")
				}
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf(tt.file, rank)), []byte(log.String()), 0o600))
			}
			text := reported(t, dir)
			assert.Contains(t, text, tt.want)
			assert.Contains(t, text, tt.short)
			assert.Equal(t, tt.want != "", strings.Contains(text, "by the logs' timers"), text)
		})
	}
}

// Where each rank logs its steps, the rank whose loading of data the others waited for is named, though the step's own log loaded nothing. Without the seconds
// of one rank alone nobody is named.
func TestSlowLoader(t *testing.T) {
	for name, tt := range map[string]struct {
		loads func(step, rank int) float64 // s
		want  string
	}{
		"one rank": {func(step, rank int) float64 {
			if step == 40 && rank == 3 {
				return 3
			}
			return 0.02
		}, "loading data (by rank 3 on n1), in 1 step."},
		"all ranks": {func(step, _ int) float64 {
			if step == 40 {
				return 3
			}
			return 0.02
		}, "loading data, in 1 step."},
		"in turn": {func(step, rank int) float64 {
			if step == 20+10*rank {
				return 3
			}
			return 0.02
		}, "loading data, in 4 steps."},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var logs [4]strings.Builder
			now := 0.0
			for step := 1; step <= 60; step++ {
				longest := 0.0
				for rank := range logs {
					longest = max(longest, tt.loads(step, rank))
				}
				now += 1 + longest
				for rank := range logs {
					fmt.Fprintf(&logs[rank], `{"time": %.3f, "host": "n%d", "rank": %d, "step": %d, "loss": 2.5, "step_time_s": %g, "data_time_s": %g}`+"\n",
						1.78e9+now, rank/2, rank, step, 1+longest, tt.loads(step, rank))
				}
			}
			for rank := range logs {
				require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.jsonl", rank)), []byte(logs[rank].String()), 0o600))
			}
			assert.Contains(t, reported(t, dir), tt.want)
		})
	}
}

// Megatron's reports on ranks name a GPU that heat holds down. GPUs that have a low clock in turn are not named.
func TestSlowClock(t *testing.T) {
	for name, one := range map[string]bool{"one GPU": true, "in turn": false} {
		var log strings.Builder
		at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		for i := 10; i <= 600; i += 10 {
			took, clock, rank, hot := 3.2, 1950, 3, 62
			if i > 200 {
				took, clock, rank, hot = 3.8, 1590, 21, 91
			}
			if !one {
				rank = i / 10 % 7
			}
			at = at.Add(time.Duration(10 * took * 1e9))
			row := megatron(at, i, time.Duration(took*1e9))
			log.WriteString(strings.Replace(row, "| global", fmt.Sprintf("| throughput per GPU (TFLOP/s/GPU): %.1f | global", 400/took), 1))
			fmt.Fprintf(&log, "INFO:megatron.core.utils:[%s] | MnRtt/Rnk: 950.00ms/7 | MxRtt/Rnk: 960.00ms/%d | MnPwr/Rnk: 400000.00W/%d | "+
				"MxPwr/Rnk: 690000.00W/4 | MnTmp/Rnk: 48.00C/5 | MxTmp/Rnk: %d.00C/%d | MnUtl/Rnk: 97.00%%/2 | MxUtl/Rnk: 100.00%%/1 | MnClk/Rnk: %d.00MHz/%d | "+
				"MxClk/Rnk: 1980.00MHz/0 | MnDRtt/Rnk: 15.00ms/2 | MxDRtt/Rnk: 30.00ms/6 | MnEtpt/Rnk: 296.02TF/0 | MxEtpt/Rnk: 297.32TF/8\n",
				at.Format(time.DateTime), rank, rank, hot, rank, clock, rank)
		}
		text := reported(t, write1(t, "train.log", log.String()))
		assert.Contains(t, text, "From step 201 on a step takes 3.8 s instead of 3.2 s", name)
		assert.Equal(t, one, strings.Contains(text, "3.8 s instead of 3.2 s (rank 21 ran at 1,590 MHz, others at 1,980 MHz), for the same work"), text)
		assert.Equal(t, one, strings.Contains(text, "The GPU of rank 21 had the lowest clock in 40 of 60 reports: down to 1,590 MHz, where another had 1,980 MHz; "+
			"it was the hottest, at up to 91 °C."), text)
	}
}
