package step

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/bridge/tail"
	"github.com/trainbridge/trainbridge/receivers/internal/record"
	"github.com/trainbridge/trainbridge/spans"
)

// typical emits a record with the usual fields for every line, without parsing.
type typical struct{ n int64 }

func (p *typical) Line(_ []byte, out Out) (tail.Verdict, string) {
	p.n++
	rec := out.Record()
	rec.Source = "bench"
	rec.Unix, rec.RawUnix = 1770828000_000000000+p.n*1e8, []byte("1770828000.1")
	rec.Set(record.Iteration, float64(p.n))
	rec.SetIn(record.Duration, 100, record.Milliseconds)
	for _, f := range [...]record.Field{record.Loss, record.LearningRate, record.GradientNorm, record.SampleThroughput, record.BatchSize} {
		rec.Set(f, float64(p.n))
	}
	out.Emit(rec)
	return tail.Record, ""
}

func (*typical) Save() []byte   { return nil }
func (*typical) Restore([]byte) {}

// One record of seven fields, from the parser on: placed and packed, as spans, as gauges, and as OTLP bytes.
func BenchmarkRecord(b *testing.B) {
	const records = 1000
	run := func(b *testing.B, work func(*stepBatch)) {
		b.Helper()
		h := handlerWith(b, &direct{}, consumertest.NewNop(), consumertest.NewNop())
		h.parser = &typical{}
		l := tail.Line{Text: []byte("line"), Observed: time.Unix(1770828000, 0)}
		b.ReportAllocs()
		for b.Loop() {
			for range records {
				h.Line(&l)
			}
			work(h.batch)
			h.batch.Done()
			h.batch = nil
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/records, "ns/record")
	}
	b.Run("packed", func(b *testing.B) { run(b, func(*stepBatch) {}) })
	b.Run("spans", func(b *testing.B) { run(b, func(bt *stepBatch) { built(bt) }) })
	b.Run("gauges", func(b *testing.B) { run(b, func(bt *stepBatch) { bt.Metrics() }) })
	b.Run("spans as OTLP", func(b *testing.B) {
		m := &ptrace.ProtoMarshaler{}
		run(b, func(bt *stepBatch) { _, _ = m.MarshalTraces(built(bt)) })
	})
	b.Run("gauges as OTLP", func(b *testing.B) {
		m := &pmetric.ProtoMarshaler{}
		run(b, func(bt *stepBatch) { _, _ = m.MarshalMetrics(bt.Metrics()) })
	})
}

func built(b *stepBatch) ptrace.Traces {
	out := spans.NewBatch("bench", "")
	b.Traces(out, func(tail.Place) {})
	return out.Traces()
}
