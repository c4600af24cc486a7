package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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

// As many samples with longer collectives alone are a loss: of longer sequences computing would grow.
func TestLevelsOfCollectives(t *testing.T) {
	var log strings.Builder
	for i := 1; i <= 70; i++ {
		took, reduces := 2+0.003*float64(i%3), 0.1
		if i > 30 {
			took, reduces = took+1, 1.1
		}
		fmt.Fprintf(&log, `{"step": %d, "loss": 2.5, "step_time_s": %.3f, "allreduce_s": %.3f, "samples_per_second": %.3f}`+"\n", i, took, reduces, 32/took)
	}
	assert.Contains(t, reported(t, write1(t, "train.jsonl", log.String())),
		"From step 31 on a step takes 3 s instead of 2 s (allreduce_s: 1.1 s instead of 100 ms), for the same work: 40 s more in all")
}

// Batches of a single worker that wait for their data make steps longer: the seconds are told once, and the worker's log is named.
func TestSlowBatchesInSteps(t *testing.T) {
	dir := t.TempDir()
	logs := map[string]*strings.Builder{}
	line := func(name, format string, args ...any) {
		if logs[name] == nil {
			logs[name] = &strings.Builder{}
		}
		fmt.Fprintf(logs[name], format+"\n", args...)
	}
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	for step := 1; step <= 60; step++ {
		most := 0.0
		for worker := range 4 {
			get, now := 0.9+0.01*float64((step+worker)%4), 100.0
			if worker == 2 && step > 20 {
				get = 12.5
			}
			tell := func(after float64, text string, args ...any) {
				stamp := at.Add(time.Duration(after * 1e9)).Format("2006-01-02 15:04:05.000")
				line(fmt.Sprintf("worker-%d.err", worker), "INFO:%s:[TQ-TRACE] trace_id=s%d-%d | func=generate_sequences | "+text,
					append([]any{strings.Replace(stamp, ".", ",", 1), step, worker}, args...)...)
			}
			from := now + at.Sub(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)).Seconds()
			tell(0, "pid=%d | stage=FUNCTION_START | timestamp=%.6f", 50+worker, from)
			tell(get, "stage=GET_END | duration=%.6fs | timestamp=%.6f", get, from+get)
			tell(get+20, "stage=COMPUTE_END | duration=20.000000s | timestamp=%.6f", from+get+20)
			tell(get+20.5, "stage=PUT_END | duration=0.500000s | timestamp=%.6f", from+get+20.5)
			tell(get+20.5, "stage=FUNCTION_END | total_duration=%.6fs | timestamp=%.6f", get+20.5, from+get+20.5)
			most = max(most, get)
		}
		took := most + 40
		line("driver.log", "step:%d - actor/pg_loss:0.01 - timing_s/gen:%.3f - timing_s/step:%.3f - perf/total_num_tokens:80000 - perf/throughput:%.3f",
			step, most+20.5, took, 10000/took)
		at = at.Add(time.Duration(took * 1e9))
	}
	for name, log := range logs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(log.String()), 0o600))
	}
	text := reported(t, dir)
	assert.Contains(t, text, "in TransferQueue GET, in 40 batches, nearly all in worker-2.err.")
	assert.NotContains(t, text, "Also lost")
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

// Where each rank logs its timers, the rank whose computing grew is told, not the collective in which the others wait. A rank that is as the others is not.
func TestLevelsOfRank(t *testing.T) {
	for name, slow := range map[string]float64{"one": 1.5, "none": 1} {
		dir := t.TempDir()
		for rank := range 4 {
			var log strings.Builder
			for i := 1; i <= 120; i++ {
				computing, step := 1+0.002*float64((i+rank)%5), 1.2
				if i > 50 {
					step = 1.7
				}
				if i > 50 && rank == 2 {
					computing *= slow
				}
				fmt.Fprintf(&log, `{"ts": %.1f, "rank": %d, "step": %d, "loss": 2.5, "step_time_s": %.3f, "fwd_bwd_s": %.3f, "allreduce_s": %.3f, "tokens_per_sec": %.0f}`+"\n",
					1.78e9+step*float64(i), rank, i, step, computing, step-computing-0.01, 65536/step)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.jsonl", rank)), []byte(log.String()), 0o600))
		}
		text := reported(t, dir)
		assert.Contains(t, text, "From step 51 on a step takes 1.7 s instead of 1.2 s", name)
		assert.Equal(t, slow > 1, strings.Contains(text, "(rank 2 1.51 s for computing instead of 1 s, and the others wait)"), text)
		assert.Equal(t, slow > 1, strings.Contains(text, "from step 51 on, of rank 2"), text)
	}
}

// Gradients are reduced during the backward pass, whose timer has the waiting for a rank with a longer forward pass: fwd and bwd together grow alike on all
// ranks.
func TestLevelsOfForward(t *testing.T) {
	for name, slow := range map[string]float64{"one": 0.8, "none": 0} {
		dir := t.TempDir()
		for rank := range 4 {
			var log strings.Builder
			at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
			for i := 1; i <= 60; i++ {
				forward, step := 0.3+0.002*float64((i+rank)%5), 0.6
				if i > 30 {
					step = 1.4
				}
				if i > 30 && rank == 2 {
					forward += slow
				}
				at = at.Add(time.Duration(1e9 * step))
				fmt.Fprintf(&log, "%s [INFO] [rank%d] step %d/60 loss=2.5 step_time=%.3fs data=0.000s fwd=%.3fs bwd=%.3fs\n",
					at.Format("2006-01-02 15:04:05,000"), rank, i, step, forward, step-forward)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%d.log", rank)), []byte(log.String()), 0o600))
		}
		text := reported(t, dir)
		assert.Contains(t, text, "From step 31 on a step takes 1.4 s instead of 600 ms", name)
		assert.Equal(t, slow > 0, strings.Contains(text, "(rank 2 1.1 s for the forward pass instead of 304 ms, and the others wait), for the same work: 24 s more in all"), text)
		assert.Equal(t, slow > 0, strings.Contains(text, "from step 31 on, of rank 2"), text)
	}
}

// A timer at zero is 0 s, and a rank that alone loads data for long is named.
func TestLevelsOfLoadingRank(t *testing.T) {
	dir := t.TempDir()
	for rank := range 3 {
		var log strings.Builder
		at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		for i := 1; i <= 40; i++ {
			step, loading, waiting := 0.6+0.002*float64(i%5), 0.0, 0.1
			if i > 20 {
				step += 2
				if rank == 1 {
					loading = 2
				} else {
					waiting += 2
				}
			}
			at = at.Add(time.Duration(1e9 * step))
			fmt.Fprintf(&log, "%s [INFO] [rank%d] step %d/40 loss=2.5 step_time=%.3fs data=%.3fs fwd=0.500s bwd=%.3fs\n",
				at.Format("2006-01-02 15:04:05,000"), rank, i, step, loading, waiting)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%d.log", rank)), []byte(log.String()), 0o600))
	}
	text := reported(t, dir)
	assert.Contains(t, text, "(rank 1 2 s for loading data instead of 0 s, and the others wait), for the same work: 40 s more in all")
}

// A record of several steps is told by the first of them, with its parts as those of a step.
func TestLevelsOfRecords(t *testing.T) {
	var log strings.Builder
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	for i := 10; i <= 600; i += 10 {
		took, sync := 2.0, 150.0
		if i > 300 {
			took, sync = 2.6, 750
		}
		at = at.Add(time.Duration(10 * took * 1e9))
		rate := fmt.Sprintf("| throughput per GPU (TFLOP/s/GPU): %.1f | global", 400/took)
		log.WriteString(strings.Replace(megatron(at, i, time.Duration(took*1e9)), "| global", rate, 1))
		fmt.Fprintf(&log, "(min, max) time across ranks (ms):\n    forward-backward ...............................: (%.2f, %.2f)\n", took*1e3-20, took*1e3-10)
		fmt.Fprintf(&log, "    all-grads-sync .................................: (%.2f, %.2f)\n", sync, sync+5)
	}
	assert.Contains(t, reported(t, write1(t, "train.log", log.String())),
		"From step 301 on a step takes 2.6 s instead of 2 s (transferring in collectives: 750 ms instead of 150 ms), for the same work")
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

// Steps that grow with their tokens, as completions do in reinforcement learning, do more work.
func TestTrendOfWork(t *testing.T) {
	for more, want := range map[bool]string{true: "Steps grew longer by 89.8% from step 1 to 200", false: "Steps grew slower by 89.8% from step 1 to 200"} {
		var log strings.Builder
		tokens := 0.0
		for i := 1; i <= 200; i++ {
			took := 12 * (1 + 0.0055*float64(i))
			if more {
				tokens += 1700 * took
			} else {
				tokens += 20000
			}
			fmt.Fprintf(&log, "{'loss': 0.02, 'learning_rate': 1e-06, 'num_tokens': %.1f, 'completions/mean_length': 300.0, 'reward': 0.2, 'step_time': %.6f, 'epoch': %.3f}\n",
				tokens, took, 0.005*float64(i))
		}
		text := reported(t, write1(t, "train.out", log.String()))
		assert.Contains(t, text, want)
		assert.Equal(t, more, strings.Contains(text, "and do 1.9"), text)
	}
}

// A rank loads data for longer in some records; the others wait in a collective meanwhile, whose time on the fastest rank stays as it was.
func TestLoadingOfOneRank(t *testing.T) {
	var log strings.Builder
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	for i := 10; i <= 600; i += 10 {
		took, loads := 2.0, 0.015
		if i > 300 && i <= 360 {
			took, loads = 3.5, 1.515
		}
		took += 0.002 * float64(i/10%4)
		at = at.Add(time.Duration(10 * took * 1e9))
		log.WriteString(megatron(at, i, time.Duration(took*1e9)))
		fmt.Fprintf(&log, "(min, max) time across ranks (ms):\n    forward-backward ...............................: (%.2f, %.2f)\n", took*1e3-20, took*1e3-10)
		fmt.Fprintf(&log, "    batch-generator ................................: (12.00, %.2f)\n", loads*1e3)
		fmt.Fprintf(&log, "    all-grads-sync .................................: (70.00, %.2f)\n", loads*1e3+60)
	}
	text := reported(t, write1(t, "train.log", log.String()))
	assert.Contains(t, text, "6 of 60 records of steps were slow")
	assert.Contains(t, text, "The largest part: loading data")
	assert.NotContains(t, text, "no log explains")
}

// perf_monitor's times are medians of the second half of all steps: longer steps are told by Megatron's output beside, and leave no gaps.
func TestLevelsBesidePerfMonitor(t *testing.T) {
	dir := t.TempDir()
	var out, table strings.Builder
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	table.WriteString("Timestamp            Step     TFLOPS/GPU   TFLOPS     Samples/s    Tokens/s     Time(ms)   Memory(GB)\n")
	var all []float64
	for i := 1; i <= 300; i++ {
		took := 4.8
		if i > 180 {
			took = 6.5
		}
		at, all = at.Add(time.Duration(took*1e9)), append(all, took)
		if half := slices.Sorted(slices.Values(all[len(all)/2:])); i == 1 || i%10 == 0 {
			median := half[len(half)/2]
			fmt.Fprintf(&table, "%-20s %-8d %-12.2f %-10.2f %-12.1f %-12.0f %-10.1f %-10.2f\n",
				at.Format(time.DateTime), i, 180/median, 2880/median, 16/median, 65536/median, median*1e3, 52.31)
		}
		if i%10 == 0 {
			row := megatron(at, i, time.Duration(took*1e9))
			out.WriteString(strings.Replace(row, "| global", fmt.Sprintf("| throughput per GPU (TFLOP/s/GPU): %.1f | global", 400/took), 1))
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "host_0_a.output"), []byte(out.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "perf_metrics_20260901_000000.log"), []byte(table.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "From step 181 on a step takes 6.5 s instead of 4.8 s, for the same work: 204 s more in all")
	assert.NotContains(t, text, "no log explains")
	assert.NotContains(t, text, "for reasons unknown")
}

// Rare work with a timer of its own, such as torchtitan's collections of garbage, explains the steps that have the timer.
func TestCollectionsOfGarbage(t *testing.T) {
	var log strings.Builder
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	tell := func(format string, args ...any) {
		fmt.Fprintf(&log, "[titan] "+strings.Replace(at.Format("2006-01-02 15:04:05.000"), ".", ",", 1)+" - root - INFO - "+format+"\n", args...)
	}
	for i := 1; i <= 300; i++ {
		if i%50 == 0 {
			at = at.Add(3 * time.Second)
			tell("[GC] Performing periodic GC collection took 3.00 seconds")
		}
		at = at.Add(time.Duration(1400+i%5) * time.Millisecond)
		tell("step: %d  loss:  2.5000  grad_norm:  1.0000  memory: 61.20GiB(77.00%%)  tps: 5,900  tflops: 280.00  mfu: 28.00%%", i)
	}
	text := reported(t, write1(t, "train.log", log.String()))
	assert.Contains(t, text, "The largest part: in garbage_collection, 18 s.")
	assert.Contains(t, text, "Collect less often")
	assert.NotContains(t, text, "no log explains")
}

// Longer steps that no part explains are told with the link that is slow.
func TestLevelsOfLink(t *testing.T) {
	dir := t.TempDir()
	var steps strings.Builder
	sends := map[string]*strings.Builder{}
	at := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
	for i := 1; i <= 200; i++ {
		took := 2.9 + 0.002*float64(i%5)
		if i > 100 {
			took += 0.5
		}
		for node := range 4 {
			name, rate := fmt.Sprintf("node%d-mlx5_0-Port0-A.log", node), 184
			if sends[name] == nil {
				sends[name] = &strings.Builder{}
				sends[name].WriteString("Time,Group,FromRank,ToRank,DevIndex,Func,FuncTimes,SrcIP,DstIP,Bandwidth,SendWrCounter,RemainWrDataSize,Timestamp\n")
			}
			if node == 2 && i > 100 {
				rate = 61
			}
			for row := range 4 {
				now := at.Add(time.Second + time.Duration(row)*50*time.Millisecond)
				fmt.Fprintf(sends[name], "%s,12715772615376301750,%d,%d,0,4,%d,10.0.0.%d,10.0.0.%d,%d,3,524288,%d\n",
					now.Format("20060102150405"), node, (node+1)%4, i, node, (node+1)%4, rate+row, now.UnixNano())
			}
		}
		at = at.Add(time.Duration(took * 1e9))
		row := megatron(at, i, time.Duration(took*1e9))
		steps.WriteString(strings.Replace(row, "| global", fmt.Sprintf("| throughput per GPU (TFLOP/s/GPU): %.1f | global", 400/took), 1))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.log"), []byte(steps.String()), 0o600))
	for name, rows := range sends {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(rows.String()), 0o600))
	}
	text := reported(t, dir)
	assert.Contains(t, text, "From step 101 on a step takes 3.4 s instead of 2.9 s (a link is slow: 2→3 is from node2 to node3, last at")
	assert.Contains(t, text, "→ Check the cable, NIC and switch port.")
}
