package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls writes the [TQ-TRACE] lines of 6 workers, without ids, into a file for each: 30 calls each, of a GET, computing and a PUT as took says, s.
func calls(t *testing.T, took func(r *rand.Rand, worker, call int) [3]float64) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r := rand.New(rand.NewPCG(7, 8))
	for worker := range 6 {
		var log strings.Builder
		now := 1000.0
		line := func(text string, args ...any) {
			fmt.Fprintf(&log, "INFO:2026-02-11 16:%02d:%06.3f:[TQ-TRACE] trace_id=N/A | func=generate | %s | timestamp=%.6f\n", int(now/60)%60,
				math.Mod(now, 60), fmt.Sprintf(text, args...), now)
		}
		for call := range 30 {
			parts, start := took(r, worker, call), now
			line("pid=%d | stage=FUNCTION_START", 100+worker)
			for i, stage := range []string{"GET", "COMPUTE", "PUT"} {
				if line("stage=%s_START", stage); true {
					now += parts[i]
				}
				line("stage=%s_END | duration=%.6fs", stage, parts[i])
			}
			total := now - start
			line("stage=FUNCTION_END | total_duration=%.6fs | get_ratio=%.2f%% | compute_ratio=%.2f%% | put_ratio=%.2f%%", total,
				100*parts[0]/total, 100*parts[1]/total, 100*parts[2]/total)
			now += 2
		}
		text := strings.ReplaceAll(log.String(), ":60.000:", ":59.999:")
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%d.err", 100+worker)), []byte(text), 0o600))
	}
	return dir
}

// Calls without ids are in no batch: slow calls, lasting changes and slow workers are told of the calls themselves. Noise, and calls that grow, are no faults.
func TestSlowCalls(t *testing.T) {
	noise := func(r *rand.Rand, sigma float64) float64 { return math.Exp(sigma * r.NormFloat64()) }
	for name, tt := range map[string]struct {
		took func(r *rand.Rand, worker, call int) [3]float64
		want string // "": none of these claims
	}{
		"usual": {func(r *rand.Rand, _, _ int) [3]float64 {
			return [3]float64{0.1 * noise(r, 0.15), 5 * noise(r, 0.1), 0.2 * noise(r, 0.15)}
		}, ""},
		"long tails": {func(r *rand.Rand, _, _ int) [3]float64 { return [3]float64{0.1, 5 * noise(r, 0.35), 0.2} }, ""},
		"growing": {func(r *rand.Rand, _, call int) [3]float64 {
			return [3]float64{0.1, 5 * (1 + float64(call)/20) * noise(r, 0.02), 0.2}
		}, ""},
		"one call": {func(r *rand.Rand, worker, call int) [3]float64 {
			if worker == 2 && call == 17 {
				return [3]float64{0.1, 45, 0.2}
			}
			return [3]float64{0.1, 5 * noise(r, 0.02), 0.2}
		}, "1 of 180 calls of generate took longer than usual, 40 s added up, mostly computing."},
		"a worker": {func(r *rand.Rand, worker, _ int) [3]float64 {
			if worker == 4 {
				return [3]float64{1.5, 5 * noise(r, 0.02), 0.2}
			}
			return [3]float64{0.1, 5 * noise(r, 0.02), 0.2}
		}, "Of 6 workers of generate 1 (pid 104) takes 1.5 s a call in TransferQueue GET; usual is 100 ms."},
		"half of the workers": {func(r *rand.Rand, worker, _ int) [3]float64 {
			if worker >= 3 {
				return [3]float64{1.5, 5 * noise(r, 0.02), 0.2}
			}
			return [3]float64{0.1, 5 * noise(r, 0.02), 0.2}
		}, "Of 6 workers of generate 3 (pid 103, pid 104, pid 105) take 1.5 s a call in TransferQueue GET; usual is 100 ms."},
		"from a call on": {func(r *rand.Rand, worker, call int) [3]float64 {
			if worker == 1 && call >= 18 {
				return [3]float64{0.1, 5 * noise(r, 0.01), 3}
			}
			return [3]float64{0.1, 5 * noise(r, 0.01), 0.2}
		}, "The calls of generate of pid 101 take 8.11 s from its 19th on, before 5.29 s (in TransferQueue PUT: 3 s instead of 200 ms): 33.9 s more, added up."},
		"all from a call on": {func(r *rand.Rand, _, call int) [3]float64 {
			if call >= 18 {
				return [3]float64{0.1, 5 * noise(r, 0.01), 3}
			}
			return [3]float64{0.1, 5 * noise(r, 0.01), 0.2}
		}, "The calls of generate of 6 of 6 workers take longer from their 19th on (in TransferQueue PUT: 3 s instead of 200 ms)"},
		"all from a call on, of calls that vary": {func(r *rand.Rand, _, call int) [3]float64 {
			if call >= 9 {
				return [3]float64{0.1, 5 * noise(r, 0.35), 3}
			}
			return [3]float64{0.1, 5 * noise(r, 0.35), 0.2}
		}, "The calls of generate of 6 of 6 workers take longer from their calls 10 to 11 on (in TransferQueue PUT: 3 s instead of 200 ms): 344 s more"},
	} {
		t.Run(name, func(t *testing.T) {
			text := reported(t, calls(t, tt.took))
			if tt.want != "" {
				assert.Contains(t, text, tt.want)
				return
			}
			for _, not := range []string{"longer than usual", "workers of", "take longer"} {
				assert.NotContains(t, text, not)
			}
		})
	}
}

// The steps of a trainer's own log judge no calls of TransferQueue. A worker with a larger batch has more work.
func TestSlowCallsBesideSteps(t *testing.T) {
	dir := calls(t, func(r *rand.Rand, worker, call int) [3]float64 {
		if worker == 2 && call == 17 {
			return [3]float64{0.1, 45, 0.2}
		}
		return [3]float64{0.1, 5, 0.2}
	})
	var console strings.Builder
	for step := 1; step <= 30; step++ {
		fmt.Fprintf(&console, "(TaskRunner pid=42) step:%d - timing_s/gen:5.3 - timing_s/update_actor:1.7 - timing_s/step:7.%d\n", step, step%3)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "driver.log"), []byte(console.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "None of 30 steps was slow")
	assert.Contains(t, text, "1 of 180 calls of generate took longer than usual, 40 s added up, mostly computing.")

	dir = calls(t, func(_ *rand.Rand, worker, _ int) [3]float64 { return [3]float64{0.1, 2 * float64(1+worker), 0.2} })
	for worker := range 6 {
		file := filepath.Join(dir, fmt.Sprintf("worker-%d.err", 100+worker))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		sized := strings.ReplaceAll(string(text), "stage=GET_START", fmt.Sprintf("stage=GET_START | batch_size=%d", 8*(1+worker)))
		require.NoError(t, os.WriteFile(file, []byte(sized), 0o600))
	}
	assert.NotContains(t, reported(t, dir), "workers of")
}

// Passes of RPCs without a clock are in no window either.
func TestSlowPasses(t *testing.T) {
	var log strings.Builder
	rule := strings.Repeat("=", 120) + "\n"
	log.WriteString("ZeroMQ Performance Log - Transport: IPC\n" + rule +
		"ID Method Serialize(ms) Send(ms) Recv(ms) Deserialize(ms) Total(ms) Sent(KB) Recv(KB) Throughput(MB/s)\n" + rule)
	id := 0
	call := func(method string, receive float64) {
		id++
		fmt.Fprintf(&log, "%d %s 0.100 0.100 %.3f 0.100 %.3f 8.00 8.00 1.00\n", id, method, receive, receive+0.3)
	}
	call("Init", 1)
	for pass := range 30 {
		receive := 2.0
		switch {
		case pass == 7:
			receive = 40
		case pass >= 16:
			receive = 5
		}
		call("Embedding", 1)
		for i := range 10 {
			call("Matmul", receive+0.01*float64((i+pass)%3))
		}
		call("LMHead", 1)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "zmq_performance.log"), []byte(log.String()), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "1 of 30 passes took longer than usual, 380 ms added up, mostly waiting for RPC responses.")
	assert.Contains(t, text, "From pass 17 of zmq_performance.log on a pass takes 55.7 ms instead of 25.7 ms (waiting for RPC responses: 52.1 ms instead of 22.1 ms): "+
		"420 ms more, added up.")
}

// operations writes the [TQ-DETAIL] and [TQ-TRACE] lines of a worker's 30 calls: the PUT of put MiB takes took s, computing 5 s.
func operations(t *testing.T, put func(call int) (mb, took float64)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for worker := range 4 {
		var log strings.Builder
		now := 1000.0
		line := func(text string, args ...any) {
			stamp := fmt.Sprintf("INFO:2026-02-11 16:%02d:%06.3f:", int(now/60)%60, math.Mod(math.Floor(now*1000)/1000, 60))
			fmt.Fprintf(&log, stamp+text+" | timestamp=%.6f\n", append(args, now)...)
		}
		for call := range 30 {
			mb, took := put(call)
			start := now
			line("[TQ-TRACE] trace_id=N/A | func=generate | pid=%d | stage=FUNCTION_START", 100+worker)
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=GET_START")
			now += 0.1
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=GET_END | duration=0.100000s")
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=COMPUTE_START")
			now += 5
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=COMPUTE_END | duration=5.000000s")
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=PUT_START")
			line("[TQ-DETAIL] trace_id=N/A | func=generate | pid=%d | stage=TQ_CLIENT_PUT_START | batch_size=torch.Size([32]) | data_size_mb=%.2f",
				100+worker, mb)
			now += took
			line("[TQ-DETAIL] trace_id=N/A | func=generate | pid=%d | stage=TQ_CLIENT_PUT_END | duration=%.6fs | throughput_mbps=%.2f",
				100+worker, took, mb/took)
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=PUT_END | duration=%.6fs", took)
			total := now - start
			line("[TQ-TRACE] trace_id=N/A | func=generate | stage=FUNCTION_END | total_duration=%.6fs | get_ratio=%.2f%% | compute_ratio=%.2f%% | "+
				"put_ratio=%.2f%%", total, 10/total, 500/total, 100*took/total)
			now += 2
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("worker-%d.err", 100+worker)), []byte(log.String()), 0o600))
	}
	return dir
}

// Operations of a few milliseconds are no slow queue, whatever their throughput. Where a payload grew, the report says so.
func TestPayloads(t *testing.T) {
	text := reported(t, operations(t, func(int) (mb, took float64) { return 2, 0.04 }))
	assert.NotContains(t, text, "client_put moved")
	text = reported(t, operations(t, func(int) (mb, took float64) { return 200, 4 }))
	assert.Contains(t, text, "at 50 MiB/s (limit 100 MiB/s)")
	text = reported(t, operations(t, func(call int) (mb, took float64) {
		if call >= 15 {
			return 400, 2.5
		}
		return 16, 0.1
	}))
	assert.Contains(t, text, "(in TransferQueue PUT: 2.5 s instead of 100 ms): 144 s more, added up, for 25 times the bytes.")
	assert.Contains(t, text, "the payload grew")
}
