package ncclreceiver

import (
	"bytes"
	"encoding/binary"
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
	"github.com/trainbridge/trainbridge/test/gen/nccl"
)

// Records from messages to the consumer, all on one core: unpacked, joined, judged, and built as spans; of one collective in a hundred, or of its root. The
// jobs are one communicator of eight ranks, and 1,568 communicators of 4,096 ranks.
func BenchmarkGateway(b *testing.B) {
	for name, messages := range map[string]func(*testing.B) ([][]byte, int){"8 ranks": node, "4096 ranks": hosts} {
		for _, rate := range []float64{1, 0.01} {
			b.Run(fmt.Sprint(name, "/", rate), func(b *testing.B) { benchmarkGateway(b, messages, rate) })
		}
	}
}

// node returns the messages of eight ranks of a communicator, and their number of records.
func node(b *testing.B) (messages [][]byte, records int) {
	b.Helper()
	const ranks, collectives, each = 8, 5000, 50
	partials := make([][][]byte, ranks)
	for rank := range ranks {
		for _, s := range agent(b, fmt.Sprintf("node-pid%d.log", rank), inspectorLog(rank, ranks, collectives), func() int { return each }) {
			out := spans.NewBatch("scope", "version")
			s.Add(out)
			message, err := new(ptrace.ProtoMarshaler).MarshalTraces(out.Messages()[0].Traces)
			require.NoError(b, err)
			partials[rank] = append(partials[rank], message)
		}
	}
	for i := range partials[0] {
		for rank := range ranks {
			messages = append(messages, partials[rank][i])
		}
	}
	return messages, ranks * collectives
}

// hosts returns two seconds of 512 hosts, as node.
func hosts(b *testing.B) (messages [][]byte, records int) {
	b.Helper()
	o := nccl.DefaultPartialsOptions()
	o.GPUs, o.PP, o.Duration, o.Out = 4096, 4, 2*time.Second, "-"
	var out bytes.Buffer
	run, err := nccl.GeneratePartials(b.Context(), o, &out)
	require.NoError(b, err)
	for out.Len() > 0 {
		messages = append(messages, out.Next(int(binary.BigEndian.Uint32(out.Next(4)))))
	}
	return messages, int(run.Records)
}

func benchmarkGateway(b *testing.B, job func(*testing.B) ([][]byte, int), rate float64) {
	b.Helper()
	messages, records := job(b)
	size := 0
	for _, m := range messages {
		size += len(m)
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
		for _, m := range messages {
			record.Value = m
			p.message(&record)
			record.Offset++
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
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(records), "ns/record")
	b.ReportMetric(float64(size)/float64(records), "B/record")
}
