package ncclreceiver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
)

// inspectorLog is rank's log of a number of collectives.
func inspectorLog(rank, ranks, collectives int) string {
	var b strings.Builder
	for i := range collectives {
		us := 500 + (i*37+rank*53)%200
		alg := 67108864 / float64(us) / 1e3
		fmt.Fprintf(&b, `{"header":{"id":"0x959b6ba309c59fcf","comm_name":"DP Group 0","rank":%d,"n_ranks":%d,"nnodes":1},`+
			`"metadata":{"inspector_output_format_version":"v4.0",`+
			`"git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":"gpu-node-0","pid":%d},"coll_perf":{"coll":"AllReduce",`+
			`"coll_sn":%d,`+
			`"coll_msg_size_bytes":67108864,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":%.6f,"coll_busbw_gbs":%.6f}}`+"\n",
			rank, ranks, 1795262875894460+i*20000+rank, 40000+rank, i, us, alg, alg*2*float64(ranks-1)/float64(ranks))
	}
	return b.String()
}

// Records of eight ranks from the files to the consumer, all on one core: read, parsed, joined, judged, and built as spans, one a record and one a collective;
// or read, parsed and packed.
func BenchmarkLogs(b *testing.B) {
	const ranks, collectives = 8, 5000
	dir, size := b.TempDir(), 0
	for rank := range ranks {
		log := inspectorLog(rank, ranks, collectives)
		size += len(log)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("node-pid%d.log", rank)), []byte(log), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, to := range map[string]consumer.Traces{"joined": nil, "traces": consumertest.NewNop(), joinRemote: consumertest.NewNop()} {
		b.Run(name, func(b *testing.B) {
			cfg := config(dir + "/*.log")
			if name == joinRemote {
				cfg.Join = joinRemote
			}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				counts, err := filereceiver.ReadAll(context.Background(), receivertest.NewNopSettings(metadata.Type), cfg, newParts, nil, to, nil)
				if err != nil || counts.Records != ranks*collectives {
					b.Fatal(err, counts)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(ranks*collectives), "ns/record")
		})
	}
}
