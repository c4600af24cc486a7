package ncclreceiver

import (
	"fmt"
	"testing"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

func TestOddTimes(t *testing.T) {
	for _, us := range []string{"0", "1", "-5", "9000000000000000", "9223372036854775", "92233720368547758070"} {
		read := func(path string) *filereceivertest.Result { return read(t, config(path)) }
		filereceivertest.OddTimes(t, read, fmt.Sprintf(`{"header":{"id":"0x5eed0000000000b2","rank":0,"n_ranks":1,"nnodes":1},`+
			`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%s,"hostname":"n",`+
			`"pid":300},"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":1024,"coll_exec_time_us":9000000,"coll_timing_source":"kernel_gpu",`+
			`"coll_algobw_gbs":0.113778,"coll_busbw_gbs":0.113778}}`, us))
	}
	for _, s := range []string{"0", "0.5", "-5", "9000000000", "9.2e9", "9.3e9", "1e30"} {
		read := func(path string) *filereceivertest.Result {
			cfg := config(path)
			cfg.Format = "vccl_json"
			return read(t, cfg)
		}
		filereceivertest.OddTimes(t, read, fmt.Sprintf(`{"timestamp": %s, "rank": 0, "operation": "allreduce", "algorithm": "ring", "message_size": 4194304,`+
			` "duration_us": 12500000.5, "bandwidth_gbps": 26.8, "error_count": 0, "retry_count": 0}`, s))
	}
}
