package zmqrpcreceiver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
	"github.com/trainbridge/trainbridge/receivers/zmqrpcreceiver/internal/metadata"
)

// passes makes a log of n passes of 98 calls, in layout v1.
func passes(n int) string {
	var b strings.Builder
	b.WriteString("ZeroMQ Performance Log - Transport: IPC\n" + strings.Repeat("=", 120) + "\n")
	b.WriteString(
		"ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)  \n",
	)
	b.WriteString(strings.Repeat("=", 120) + "\n")
	for i := range n * 98 {
		method := "BatchLinear"
		switch i % 98 {
		case 0:
			method = "Embedding"
		case 97:
			method = "LMHead"
		}
		ser, send, recv, deser := 9+float64(i%50)/10, 0.8, 96.5+float64(i%97)/10, 6.3
		total := ser + send + recv + deser + 0.021
		fmt.Fprintf(
			&b, "%-5d %-20s %-15.3f %-12.3f %-12.3f %-17.3f %-12.3f %-12.2f %-12.2f %-18.2f\n", i+1, method, ser, send, recv, deser, total, 8192.11, 12288.11,
			20480.22/1024/total*1000,
		)
	}
	return b.String()
}

// A log from the file to the consumer, all on one core: read, parsed, placed, and built as spans, six or seven a row.
func BenchmarkLog(b *testing.B) {
	const n = 1000
	log := passes(n)
	path := filereceivertest.Put(b, b.TempDir(), "zmq.log", log)
	for name, to := range map[string]consumer.Traces{"parsed": nil, "traces": consumertest.NewNop()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(log)))
			b.ReportAllocs()
			for b.Loop() {
				counts, err := filereceiver.ReadAll(context.Background(), receivertest.NewNopSettings(metadata.Type), config(path), newParts, nil, to, nil)
				if err != nil || counts.Records != n*98 {
					b.Fatal(err, counts)
				}
			}
			b.ReportMetric(n*98*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(n*98), "ns/row")
		})
	}
}
