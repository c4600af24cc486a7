package ncclreceiver

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// TestSeriesOfManyCommunicators: communicators, hosts and files that never repeat do not make a series each in Prometheus.
func TestSeriesOfManyCommunicators(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine")
	}
	for name, glob := range map[string]func(t *testing.T) string{
		"dropped records": func(t *testing.T) string {
			t.Helper()
			lines := make([]string, 20_000)
			for i := range lines {
				lines[i] = fmt.Sprintf(`{"header":{"id":"0x%x","comm_name":"TP","rank":0,"n_ranks":2,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.4",`+
					`"git_rev":"",`+
					`"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1781000000000000,"hostname":"node-%d","pid":%d},`+
					`"dump_stats":{"coll_records":0,"coll_dropped_total":17,"p2p_dropped_total":3}}`, i+1, i, i)
			}
			return filereceivertest.Write(t, "node-pid1.log", lines...)
		},
		"NICs": func(t *testing.T) string {
			t.Helper()
			dir := t.TempDir()
			for i := range 2000 {
				filereceivertest.Put(t, dir, fmt.Sprintf("node%d-mlx5_0-Port0-A.log", i),
					"Time,DevIndex,Func,MaxBandwidth,MeanBandwidth,Status\n20260112140501,0,4,187,181,1\n")
			}
			return dir + "/*"
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(glob(t))
			scraped := read(t, cfg).Scraped(t)
			assert.LessOrEqual(t, len(scraped), cfg.CardinalityLimit+1, "and target_info")
			assert.Greater(t, len(scraped), cfg.CardinalityLimit/2, "the room is used")
		})
	}
}
