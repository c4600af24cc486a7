package ncclreceiver

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/trainbridge/trainbridge/receivers/internal/filereceiver"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/metadata"
	"github.com/trainbridge/trainbridge/receivers/ncclreceiver/internal/offsets"
	"github.com/trainbridge/trainbridge/spans"
)

// Records of eight ranks from messages to the consumer, all on one core: unpacked, joined, judged, and built as spans; of one in a hundred, or of its root.
func BenchmarkGateway(b *testing.B) {
	for _, rate := range []float64{1, 0.01} {
		b.Run(fmt.Sprint(rate), func(b *testing.B) { benchmarkGateway(b, rate) })
	}
}

func benchmarkGateway(b *testing.B, rate float64) {
	b.Helper()
	const ranks, collectives, each = 8, 5000, 50
	partials := make([][][]byte, ranks)
	size := 0
	for rank := range ranks {
		for _, s := range agent(b, fmt.Sprintf("node-pid%d.log", rank), inspectorLog(rank, ranks, collectives), func() int { return each }) {
			out := spans.NewBatch("scope", "version")
			s.Add(out)
			message, err := new(ptrace.ProtoMarshaler).MarshalTraces(out.Messages()[0].Traces)
			require.NoError(b, err)
			partials[rank] = append(partials[rank], message)
			size += len(message)
		}
	}
	cfg := createDefaultConfig().(*Config)
	cfg.Kafka.GetOrInsertDefault()
	cfg.SampleRate = rate
	var t *kafkaTopic
	parts := func(base *filereceiver.Receiver, cfg component.Config) (filereceiver.Parts, error) {
		r, err := newReceiver(base, cfg.(*Config))
		require.NoError(b, err)
		t, err = newTopic(r, r.cfg.Kafka.Get())
		return filereceiver.Parts{Source: t, Redact: r.cfg.Redact, Scope: metadata.ScopeName, Series: 1000}, err
	}
	_, err := filereceiver.Prepare(receivertest.NewNopSettings(metadata.Type), cfg, parts, consumertest.NewNop(), nil)
	require.NoError(b, err)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		p := newPartition(t, 0, offsets.Position{}, 0)
		p.settled = time.Time{}
		var record kgo.Record
		for i := range partials[0] {
			for rank := range ranks {
				record.Value = partials[rank][i]
				p.message(&record)
				record.Offset++
			}
			if p.records >= maxBatch && !p.send() {
				b.Fatal("not sent")
			}
		}
		p.send()
		if p.tracker.Behind() > 0 {
			b.Fatal(p.tracker.Behind(), "messages wait")
		}
		p.cancel()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/(ranks*collectives), "ns/record")
	b.ReportMetric(float64(size)/(ranks*collectives), "B/record")
}
