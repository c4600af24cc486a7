package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lateInGroups writes NCCL Inspector's logs of eight processes in two groups of four for tensors, and four of two for data: process 5, which is rank 1 of its
// group for tensors, comes 60 ms late to each of its collectives. The training log has no clock.
func lateInGroups(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	logs := make([]strings.Builder, 8)
	collective := func(group, name string, step int, members []int, arrive *[8]int) {
		end := 0
		for _, p := range members {
			end = max(end, arrive[p]+2000)
		}
		for rank, p := range members {
			fmt.Fprintf(&logs[p], `{"header":{"id":%q,"comm_name":%q,"rank":%d,"n_ranks":%d,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0",`+
				`"git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"node","pid":%d},"coll_perf":{"coll":"AllReduce",`+
				`"coll_sn":%d,"coll_msg_size_bytes":33554432,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","event_trace_sn":{"coll_start_sn":1,`+
				`"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},"event_trace_ts":{`+
				`"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,"kernel_record_ts":%d}]}}}`+"\n",
				group, name, rank, len(members), end+1000, 100+p, step, end-arrive[p], arrive[p]-60, arrive[p]-50, arrive[p], end, end)
		}
		for _, p := range members {
			arrive[p] = end + 100*p
		}
	}
	var train strings.Builder
	var at [8]int
	for step := range 100 {
		begin := slices.Max(at[:])
		for p := range at {
			at[p] = max(begin, 1_790_000_000_000_000) + 100_000 + 100*p // us since 1970
		}
		at[5] += 60_000
		collective("0x11aa11aa", "TP", step, []int{0, 1, 2, 3}, &at)
		collective("0x22bb22bb", "TP", step, []int{4, 5, 6, 7}, &at)
		for p := range 4 {
			collective(fmt.Sprintf("0x33cc33c%d", p), "DP", step, []int{p, p + 4}, &at)
		}
		fmt.Fprintf(&train, "step %d/100 | loss %.3f | lr 3.0e-04 | step time 0.165 s\n", step+1, 9-float64(step)/20)
	}
	put := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	put("a/train.log", train.String())
	for p := range logs {
		put(fmt.Sprintf("%c/nccl/node-pid%d.log", "aaaabbbb"[p], 100+p), logs[p].String())
	}
	put("b/kern.log", "2026-09-18T03:12:44.000000+00:00 node kernel: [12345.678901] NVRM: Xid (PCI:0000:3b:00): 13, pid=9981, name=python3, "+
		"Graphics SM Warp Exception on (GPC 0, TPC 0, SM 0): Out Of Range Address\n")
	return dir
}

// A late rank is named with its communicator where ranks are numbered by communicators, and also where the training log has no clock. What the kernel said days
// before the collectives did not end the job.
func TestLateInGroups(t *testing.T) {
	text := reported(t, lateInGroups(t))
	assert.Contains(t, text, "GPU-seconds for rank 1 on node of TP 0x22bb22bb")
	assert.Contains(t, text, "b/nccl/node-pid105.log")
	assert.NotContains(t, text, "0x11aa11aa")
	assert.NotContains(t, text, "Xid")
}
