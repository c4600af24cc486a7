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

// A table of nvidia-smi beside the logs tells which GPU's clock fell where steps became longer. Of as many samples in longer steps, that makes a loss.
func TestSlowGPUs(t *testing.T) {
	for name, tt := range map[string]struct {
		clock   int // MHz of GPU 2 while steps are longer
		want    string
		wantNot string
	}{
		"held down": {1290, "(GPU 2 in dmon.log ran at 1,290 MHz instead of 1,965 MHz, held down by heat), for the same work: 50 s more in all", "had nothing that is known"},
		"as before": {1950, "From step 61 on a step takes 3.01 s instead of 2.01 s, for as many samples.", "GPU 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var log, dmon strings.Builder
			fmt.Fprintln(&dmon, "#Date       Time        gpu    pwr  gtemp   mclk   pclk  pviol  tviol \n#YYYYMMDD   HH:MM:SS    Idx      W      C    MHz    MHz      %   bool ")
			start := time.Date(2026, 9, 14, 8, 30, 0, 0, time.Local) // no stamp has a zone
			at := start
			for i := 1; i <= 110; i++ {
				took := 2 + 0.01*float64(i%3)
				if i > 60 {
					took++
				}
				at = at.Add(time.Duration(took * 1e9))
				for gpu := range 4 {
					clock, heat := 1965, 0
					if gpu == 2 && i > 60 {
						clock = tt.clock
						if clock < 1900 {
							heat = 1
						}
					}
					fmt.Fprintf(&dmon, " %s %6d    640     64   2619 %6d      0 %6d\n", at.Format("20060102   15:04:05"), gpu, clock, heat)
				}
				stamp := strings.Replace(at.Format("2006-01-02 15:04:05.000"), ".", ",", 1)
				fmt.Fprintf(&log, "[%s] [INFO] [logging.py:96:log_dist] [Rank 0] step=%d, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n", stamp, i)
				fmt.Fprintf(&log, "[%s] [INFO] [timer.py:260:stop] epoch=0/micro_step=%d/global_step=%d, RunningAvgSamplesPerSec=%f, CurrSamplesPerSec=%f, MemAllocated=1GB, MaxMemAllocated=2GB\n",
					stamp, i, i, 256/took, 256/took)
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "train.log"), []byte(log.String()), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "dmon.log"), []byte(dmon.String()), 0o600))
			text := reported(t, dir)
			assert.Contains(t, text, tt.want)
			assert.NotContains(t, text, tt.wantNot)
		})
	}
}

// GPUs that a power brake or heat holds at a low clock the whole time are named, in tables of hosts that are beside the training log, not below it. All GPUs at
// their power limit, or a GPU without work, are no fault.
func TestThrottledGPUs(t *testing.T) {
	for name, tt := range map[string]struct {
		clock  func(host, gpu int) int
		reason func(host, gpu int) int
		model  func(host int) string // nil: all are of one
		want   string                // "": no such claim
	}{
		"a host": {
			func(host, _ int) int { return 1755 - 435*min(1, host/2) }, func(host, _ int) int { return 0x80 * (host / 2) }, nil,
			"4 GPUs in node2/nvidia-smi.csv ran at 1,320 MHz, held down by a power limit; the 12 GPUs of all tables at 1,755 MHz (medians).",
		},
		"a GPU": {
			func(host, gpu int) int { return 1755 - 585*(host*gpu/6) }, func(host, gpu int) int { return 0x40 * (host * gpu / 6) }, nil,
			"GPU 3 in node2/nvidia-smi.csv ran at 1,170 MHz, held down by heat; the 12 GPUs of all tables at 1,755 MHz (medians).",
		},
		"all":          {func(int, int) int { return 1600 }, func(int, int) int { return 0x4 }, nil, ""},
		"without work": {func(host, gpu int) int { return 1755 - 1410*(host*gpu/6) }, func(host, gpu int) int { return host * gpu / 6 }, nil, ""},
		"another model": {
			func(host, _ int) int { return 1755 - 435*min(1, host/2) }, func(host, _ int) int { return 0x4 * (host / 2) },
			func(host int) string {
				return []string{"NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"}[host]
			}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put := func(file, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			var log strings.Builder
			at := time.Date(2026, 9, 14, 8, 30, 0, 0, time.Local)
			tables := make([]strings.Builder, 3)
			for host := range tables {
				tables[host].WriteString("timestamp, index, name, clocks.current.sm [MHz], power.draw [W], clocks_event_reasons.active\n")
			}
			for i := 1; i <= 60; i++ {
				at = at.Add(2 * time.Second)
				fmt.Fprintf(&log, "%s INFO step %d loss 2.5 step_time 2.000s\n", at.Format("2006-01-02 15:04:05.000"), i)
				for host := range tables {
					for gpu := range 4 {
						model := "NVIDIA H100 80GB HBM3"
						if tt.model != nil {
							model = tt.model(host)
						}
						fmt.Fprintf(&tables[host], "%s, %d, %s, %d MHz, 640.12 W, 0x%016x\n", at.Format("2006/01/02 15:04:05.000"), gpu, model, tt.clock(host, gpu),
							tt.reason(host, gpu))
					}
				}
			}
			put("logs/train.log", log.String())
			for host := range tables {
				put(fmt.Sprintf("node%d/nvidia-smi.csv", host), tables[host].String())
			}
			text := reported(t, dir)
			if tt.want == "" {
				assert.NotContains(t, text, "held down")
				return
			}
			assert.Contains(t, text, tt.want)
		})
	}
}

// RPC clients whose logs are runs of their own are compared with one another.
func TestSlowClient(t *testing.T) {
	write := func(slow float64) (dir string) {
		dir = t.TempDir()
		for client := range 3 {
			var log strings.Builder
			rule := strings.Repeat("=", 120)
			fmt.Fprintf(&log, "ZeroMQ Performance Log - Transport: TCP\n%s\n"+
				"ID Method Ser(ms) Send(ms) Recv(ms) Deser(ms) Comm(ms) GPU(ms) Total(ms) Sent(KB) Recv(KB)\n%s\n", rule, rule)
			for id := 1; id <= 40; id++ {
				receive := 5.0
				if client == 1 {
					receive *= slow
				}
				method := []string{"LMHead", "Embedding", "Matmul", "BatchLinear"}[id%4]
				fmt.Fprintf(&log, "%d %s 1.000 0.500 %.3f 1.000 %.3f 2.000 %.3f 512.00 2048.00\n", id, method, receive, receive+2.5, receive+2.5)
			}
			sub := filepath.Join(dir, fmt.Sprintf("client-%c", 'a'+client))
			require.NoError(t, os.MkdirAll(sub, 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(sub, "zmq_performance.log"), []byte(log.String()), 0o600))
		}
		return dir
	}
	assert.Contains(t, reported(t, write(5)), "client-b: a call takes 27.5 ms, those of the 2 others 7.5 ms, for as many bytes "+
		"(sending and receiving, without the server's time: 23.5 ms instead of 3.5 ms).")
	assert.NotContains(t, reported(t, write(1.1)), "a call takes")
}
