package inspector

import (
	"testing"

	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/op"
)

// Lines as the plugin writes them.
const (
	lineV40 = `{"header":{"id":"0x7f8c496ae9f661","comm_name":"DP Group 0","rank":0,"n_ranks":16,"nnodes":2},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":1781000000748276,"hostname":"gpu-node-1","pid":1639453},"coll_perf":{"coll":"ReduceScatter","coll_sn":102,"coll_msg_size_bytes":3145728,"coll_exec_time_us":232,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":13.559172,"coll_busbw_gbs":25.423448}}`
)

func BenchmarkLine(b *testing.B) {
	for name, lines := range map[string][]string{"v4.0": {lineV40}} {
		b.Run(name, func(b *testing.B) {
			p, size := New(), int64(0)
			var texts [][]byte
			for _, l := range lines {
				texts = append(texts, []byte(l))
				size += int64(len(l))
			}
			var out op.Out
			b.SetBytes(size / int64(len(texts)))
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				out.Reset()
				if v, reason := p.Line(texts[n%len(texts)], false, 0, &out); v != op.Record {
					b.Fatal(reason)
				}
				n++
			}
		})
	}
}
