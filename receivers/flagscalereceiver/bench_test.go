package flagscalereceiver

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/flagscalereceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver/filereceivertest"
)

// perfLine is a row of the table.
func perfLine(b []byte, i int) []byte {
	stamp := time.Unix(1770828000+int64(i)*48, 0).UTC().Format("2006-01-02 15:04:05")
	return fmt.Appendf(
		b, "%-20s %-8d %-12.2f %-10.2f %-12.1f %-12.0f %-10.1f %-10.2f\n", stamp, 10*i+10, 74+float64(i%100)/100, 8*74+float64(i%100)/12.5, 6.6, 13442.0,
		4875.4+float64(i%50), 52.31,
	)
}

// megatronLine is an iteration in Megatron's default format.
func megatronLine(b []byte, i int) []byte {
	stamp := time.Unix(1770828000+int64(i), int64(i%1000)*1e6).UTC().Format("2006-01-02 15:04:05.000000")
	return fmt.Appendf(b, "[default7]: [%s] iteration %8d/ 9999999 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size: %5d | lm loss: %.6E | loss scale: %.1f | grad norm: %.3f | number of skipped iterations: %3d | number of nan iterations: %3d |\n",
		stamp, i+1, 32*(i+1), 1510.4+float64(i%77), 54.1, 3e-3, 32, 4.858129+float64(i%999)/1e4, 1.0, 0.5+float64(i%31)/100, 0, 0)
}

// A log from the file to the consumer, all on one core: read, peeled, parsed, placed, and built as spans and gauges.
func BenchmarkLog(b *testing.B) {
	const lines = 100_000
	for _, log := range []struct {
		name string
		line func([]byte, int) []byte
	}{{"perf_monitor", perfLine}, {"megatron", megatronLine}} {
		var text []byte
		for i := range lines {
			text = log.line(text, i)
		}
		path := filereceivertest.Put(b, b.TempDir(), log.name+".log", string(text))
		for _, to := range []struct {
			name    string
			traces  consumer.Traces
			metrics consumer.Metrics
		}{{"parsed", nil, nil}, {"traces", consumertest.NewNop(), nil}, {"traces and metrics", consumertest.NewNop(), consumertest.NewNop()}} {
			b.Run(log.name+"/"+to.name, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					counts, err := filereceiver.ReadAll(context.Background(), receivertest.NewNopSettings(metadata.Type), config(path), newParts, nil, to.traces, to.metrics)
					if err != nil || counts.Records != lines {
						b.Fatal(err, counts)
					}
				}
				b.ReportMetric(lines*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/lines, "ns/line")
			})
		}
	}
}
