package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const portEvent = "node05:900:990 [3] transport/net_ib.cc:253 NCCL WARN NET/IB : mlx5_3:1 Got non-fatal async event: "

var disturbedJobs = map[string]struct {
	slow    []int
	long    float64 // s more of a slow step
	line    func(at time.Time) string
	often   bool // the line is beside each fourth step
	want    string
	wantNot string
}{
	"a port": {
		slow: []int{23, 42, 68}, long: 9, want: "27 s while a network link was down (node05: mlx5_3:1), in 3 steps.", wantNot: "does not say why",
		line: func(at time.Time) string { return at.Format("[2006-01-02 15:04:05] ") + portEvent + "port error(10)" },
	},
	"a link": {
		slow: []int{23, 42, 68}, long: 9, want: "27 s while a network link was down (gpu-21: ens10np0), in 3 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("Jan _2 15:04:05") + " gpu-21 kernel: mlx5_core 0000:9c:00.0 ens10np0: Link down"
		},
	},
	"a port again in use": {
		slow: []int{23, 42, 68}, long: 9, want: "27 s that no log explains, in 3 steps.", wantNot: "network link",
		line: func(at time.Time) string { return at.Format("[2006-01-02 15:04:05] ") + portEvent + "port active(9)" },
	},
	"a file system": {
		slow: []int{23, 68}, long: 60, want: "120 s while a file system did not answer (gpu-12: nas01), in 2 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("Jan _2 15:04:05") + " gpu-12 kernel: nfs: server nas01 not responding, still trying"
		},
	},
	"a checkpoint": {
		slow: []int{23, 68}, long: 60, want: "120 s while a checkpoint was saved, in 2 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("[2006-01-02 15:04:05,000]") + " [INFO] [logging.py:96:log_dist] [Rank 0] [Torch] Checkpoint global_step50 is about to be saved!"
		},
	},
	"a checkpoint of a loop's own": {
		slow: []int{23, 68}, long: 60, want: "120 s while a checkpoint was saved, in 2 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("[2006-01-02 15:04:05] ") + "Saved checkpoint to /ckpt/last.pt"
		},
	},
	"an evaluation": {
		slow: []int{23, 68}, long: 60, want: "120 s while the model was evaluated, in 2 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("2006-01-02 15:04:05,000") + " - INFO - __main__ - Running validation... "
		},
	},
	"a lack of memory": {
		slow: []int{23, 42, 68}, long: 9, want: "27 s while PyTorch's allocator emptied its cache, in 3 steps.", wantNot: "do not say why",
		line: func(at time.Time) string {
			return at.Format("[2006-01-02 15:04:05,000]") + " [WARNING] [stage3.py:2236:step] 2 pytorch allocator cache flushes since last step. this happens when"
		},
	},
	"a compiler, each 20th step": {
		slow: []int{20, 40, 60, 80}, long: 9, want: "Each 20th step takes", wantNot: "See what the trainer does",
		line: func(at time.Time) string {
			return at.Format("V0102 15:04:05.000000") + " 404 torch/_dynamo/guards.py:4239] [0/1] [__recompiles] Recompiling function forward in /app/model.py:31"
		},
	},
	"beside usual steps": {
		slow: []int{23, 42, 68}, long: 9, often: true, want: "27 s that no log explains, in 3 steps.", wantNot: "compiled again",
		line: func(at time.Time) string {
			return at.Format("V0102 15:04:05.000000") + " 404 torch/_dynamo/guards.py:4239] [0/1] [__recompiles] Recompiling function forward in /app/model.py:31"
		},
	},
}

// Lines of a network, a file system or a compiler at the time of slow steps say why these took longer; lines beside usual steps too do not.
func TestDisturbed(t *testing.T) {
	for name, tt := range disturbedJobs {
		t.Run(name, func(t *testing.T) {
			dir := disturbedJob(t, tt.slow, tt.long, tt.often, tt.line)
			text := reported(t, dir)
			assert.Contains(t, text, tt.want)
			assert.NotContains(t, text, tt.wantNot)
		})
	}
}

// disturbedJob writes 90 steps of 4 s, some of them longer by long seconds, and a log with a line at each of these, or at each fourth step, too.
func disturbedJob(t *testing.T, slowSteps []int, long float64, often bool, line func(at time.Time) string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var log, events strings.Builder
	at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
	for i := 1; i <= 90; i++ {
		took := 4 + 0.02*float64(i%3)
		if slow := slices.Contains(slowSteps, i); slow || often && i%4 == 0 {
			fmt.Fprintln(&events, line(at.Add(2*time.Second)))
			if slow {
				took += long
			}
		}
		at = at.Add(time.Duration(took * 1e9))
		fmt.Fprintf(&log, "{\"step\": %d, \"timestamp\": \"%s\", \"loss\": %.3f, \"step_time_s\": %.3f}\n",
			i, at.Format("2006-01-02T15:04:05.000Z"), 2+1/float64(i), took)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(log.String()), 0o600))
	file := filepath.Join(dir, "stderr.log")
	require.NoError(t, os.WriteFile(file, []byte(events.String()), 0o600))
	require.NoError(t, os.Chtimes(file, at, at))
	return dir
}

// A compiler that gave up says why steps take longer from there on.
func TestUncompiled(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
	for i := 1; i <= 120; i++ {
		took := 2 + 0.01*float64(i%3)
		if i >= 70 {
			took *= 1.4
		}
		if i == 70 {
			fmt.Fprintf(&log, "%s 404 torch/_dynamo/convert_frame.py:1016] [0/8] torch._dynamo hit config.recompile_limit (8)\n", at.Format("W0102 15:04:05.000000"))
		}
		at = at.Add(time.Duration(took * 1e9))
		fmt.Fprintf(&log, "[titan] %s - root - INFO - step: %2d  loss:  %.4f  memory: 61.20GiB(77.29%%)  tps: %.0f  tflops: %.2f  mfu: 30.00%%\n",
			strings.Replace(at.Format("2006-01-02 15:04:05.000"), ".", ",", 1), i, 2+1/float64(i), 16384/took, 600/took)
	}
	file := filepath.Join(dir, "rank0.log")
	require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o600))
	require.NoError(t, os.Chtimes(file, at, at))
	assert.Contains(t, reported(t, dir), "(torch.compile had compiled too often, and gave up)")
}

// The rank that loads data is told with slow steps, though all ranks load for longer at the first.
func TestMostlyOneLoader(t *testing.T) {
	dir := t.TempDir()
	at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
	logs := make([]strings.Builder, 4)
	for i := 1; i <= 120; i++ {
		of := func(rank int) float64 {
			switch {
			case i == 1:
				return 4
			case rank == 3 && i%11 == 5:
				return 2
			}
			return 0.02
		}
		at = at.Add(time.Duration((0.9 + of(3)) * 1e9))
		for rank := range logs {
			fmt.Fprintf(&logs[rank], "{\"rank\": %d, \"step\": %d, \"ts\": %.3f, \"loss\": %.3f, \"data_time\": %.4f, \"step_time\": %.4f}\n",
				rank, i, float64(at.UnixMilli())/1e3, 2+1/float64(i), of(rank), 0.9+of(3)+0.005*float64(i%3))
		}
	}
	for rank := range logs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank%d.jsonl", rank)), []byte(logs[rank].String()), 0o600))
	}
	assert.Contains(t, reported(t, dir), "loading data (mostly by rank 3), in 12 steps.")
}

// An allocator that empties its cache in most steps from one on says why these take longer, though only their samples are known to be as many.
func TestFlushed(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.UTC)
	for i := 1; i <= 120; i++ {
		took := 2 + 0.01*float64(i%3)
		if i >= 70 {
			took *= 1.4
		}
		at = at.Add(time.Duration(took * 1e9))
		stamp := at.Format("[2006-01-02 15:04:05,000]")
		if i >= 70 && i%4 > 0 {
			fmt.Fprintf(&log, "%s [WARNING] [stage3.py:2236:step] 2 pytorch allocator cache flushes since last step. this happens when\n", stamp)
		}
		fmt.Fprintf(&log, "%s [INFO] [logging.py:128:log_dist] [Rank 0] step=%d, skipped=0, lr=[1.0e-05], mom=[(0.9, 0.95)]\n", stamp, i)
		fmt.Fprintf(&log, "%s [INFO] [timer.py:264:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%g, CurrSamplesPerSec=%g, MemAllocated=41.2GB, MaxMemAllocated=76.9GB\n",
			stamp, i, i, 64/took, 64/took)
	}
	file := filepath.Join(dir, "ds.log")
	require.NoError(t, os.WriteFile(file, []byte(log.String()), 0o600))
	require.NoError(t, os.Chtimes(file, at, at))
	text := reported(t, dir)
	assert.Contains(t, text, "(PyTorch's allocator emptied its cache in most of these steps)")
	assert.Contains(t, text, "for the same work")
}
