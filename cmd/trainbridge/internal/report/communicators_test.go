package report

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inspected are the logs of ranks of NCCL Inspector without event traces: they say how long each rank was in each of 40 AllReduces, of 2^28 bytes, and no when.
// took says how long a rank was in the n-th.
func inspected(t *testing.T, dir, comm string, ranks int, took func(n, rank int) time.Duration) {
	t.Helper()
	for rank := range ranks {
		var log strings.Builder
		for n := range 40 {
			us := took(n, rank).Microseconds()
			fmt.Fprintf(&log, `{"header":{"id":"0x%x","comm_name":%q,"rank":%d,"n_ranks":%d,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0",`+
				`"git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1795000000000000,"hostname":"host-%d","pid":1},"coll_perf":{`+
				`"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":268435456,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu"}}`+"\n",
				comm, comm, rank, ranks, 2*rank/ranks, n, us)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.log", comm, rank)), []byte(log.String()), 0o600))
	}
}

// Durations alone tell of the rank, or of the host, that all wait for; where each rank is the last in turn, none is named.
func TestLateWithoutClock(t *testing.T) {
	for name, tt := range map[string]struct {
		ranks int
		late  func(r *rand.Rand, rank int) bool
		want  string
	}{
		"rank":      {8, func(_ *rand.Rand, rank int) bool { return rank == 5 }, "for rank 5 on host-1, "},
		"host":      {8, func(_ *rand.Rand, rank int) bool { return rank >= 4 }, "GPU-seconds for host-1, "},
		"two ranks": {2, func(r *rand.Rand, rank int) bool { return r.IntN(2) == rank }, ""},
		"nobody":    {8, func(*rand.Rand, int) bool { return false }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, r := t.TempDir(), rand.New(rand.NewPCG(1, 2))
			lates := map[int]time.Duration{}
			inspected(t, dir, "DP 0", tt.ranks, func(n, rank int) time.Duration {
				if _, ok := lates[n*100+rank]; !ok {
					for i := range tt.ranks {
						lates[n*100+i] = time.Duration(r.IntN(900)) * time.Microsecond
						if tt.late(rand.New(rand.NewPCG(uint64(n), 3)), i) {
							lates[n*100+i] += 60 * time.Millisecond
						}
					}
				}
				return 64*time.Millisecond - lates[n*100+rank]
			})
			text := reported(t, dir)
			if tt.want == "" {
				assert.NotContains(t, text, "waited")
				return
			}
			assert.Contains(t, text, tt.want)
			assert.Contains(t, text, "of the time in collectives")
			assert.NotContains(t, text, "Inf")
		})
	}
}

// A communicator with half of the bandwidth of the others of its kind is told; others on other links, or few, are not held against each other.
func TestSlowCommunicator(t *testing.T) {
	for name, tt := range map[string]struct {
		comms []string
		want  bool
	}{
		"one of four":  {[]string{"DP Group 0", "DP Group 1", "DP Group 2", "DP Group 3"}, true},
		"one of two":   {[]string{"DP Group 0", "DP Group 2"}, false},
		"other kinds":  {[]string{"DP Group 2", "TP Group 0", "TP Group 1", "TP Group 3"}, false},
		"none is slow": {[]string{"DP Group 0", "DP Group 1", "DP Group 3"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, comm := range tt.comms {
				took := 2600 * time.Microsecond
				if comm == "DP Group 2" {
					took = 10400 * time.Microsecond
				}
				inspected(t, dir, comm, 4, func(n, rank int) time.Duration { return took + time.Duration((n+rank)%7)*time.Microsecond })
			}
			const told = "DP Group 2 runs AllReduce of 256 MiB to 512 MiB at 38.7 GB/s (bus), the 3 others like it at 155 GB/s."
			if text := reported(t, dir); tt.want {
				assert.Contains(t, text, told)
			} else {
				assert.NotContains(t, text, "others like it")
			}
		})
	}
}

// All ranks of a communicator come together, and its collectives become slower while a network link is down: the report says what that cost, and names no rank.
func TestSlowTransfers(t *testing.T) {
	dir := t.TempDir()
	logs := make([]strings.Builder, 4)
	begin := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	at := begin
	for n := range 120 {
		at = at.Add(5 * time.Second)
		took := 50 * time.Millisecond
		if n >= 60 {
			took = 1650 * time.Millisecond
		}
		start, end := at.UnixMicro(), at.Add(took).UnixMicro()
		for rank := range logs {
			fmt.Fprintf(&logs[rank], `{"header":{"id":"0x3fa1c0de","comm_name":"DP","rank":%d,"n_ranks":4,"nnodes":2},"metadata":{"inspector_output_format_version":`+
				`"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"gpu-%c","pid":1},"coll_perf":{"coll":`+
				`"AllReduce","coll_sn":%d,"coll_msg_size_bytes":536870912,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","event_trace_sn":{`+
				`"coll_start_sn":1,"coll_stop_sn":2,"kernel_events":[{"channel_id":0,"kernel_start_sn":3,"kernel_stop_sn":5,"kernel_record_sn":4}]},`+
				`"event_trace_ts":{"coll_start_ts":%d,"coll_stop_ts":%d,"kernel_events":[{"channel_id":0,"kernel_start_ts":%d,"kernel_stop_ts":%d,`+
				`"kernel_record_ts":%d}]}}}`+"\n", rank, end, "aabb"[rank], n, end-start-int64(rank), start-60, start-50, start+int64(rank), end, end)
		}
	}
	for rank := range logs {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank)), []byte(logs[rank].String()), 0o600))
	}
	kernel := begin.Add(302*time.Second).Format("2006-01-02T15:04:05.000000+00:00") + " gpu-b kernel: mlx5_core 0000:5e:00.0 ens3f0np0: Link down\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kern.log"), []byte(kernel), 0o600))
	text := reported(t, dir)
	assert.Contains(t, text, "The AllReduce of DP took 96 s longer in all than the fastest tenth of them would; a network link went down then (gpu-b: ens3f0np0)")
	assert.NotContains(t, text, "waited")
}
