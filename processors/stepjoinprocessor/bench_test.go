package stepjoinprocessor

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/metadata"
	"github.com/trainbridge/trainbridge/spans"
)

// BenchmarkConsume is the cost of passing per span, including sweeps: each batch is a second later than the batch before.
func BenchmarkConsume(b *testing.B) {
	for _, of := range []struct {
		name string
		add  func(j *job, n int64)
	}{
		{"steps", func(j *job, n int64) {
			for i := range int64(1000) {
				j.step(n*1000+i, (n*1000+i)*second, (n*1000+i+1)*second)
			}
		}},
		{"functions", func(j *job, n int64) {
			for i := range int64(20) {
				aBatch(j, n*20+i)
			}
		}},
		{"collectives", func(j *job, n int64) {
			for i := range int64(1000) {
				at := (n*1000 + i) * 1e6
				j.collective(n*1000+i, at, at+9e5, 1e5, "node-0")
			}
		}},
		{"ranks", someRanks},
		{"job", func(j *job, n int64) {
			for i := range int64(20) {
				aStep(j, n*20+i, (n*20+i)*10*second)
			}
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			p := newQuiet(b)
			count := 0
			clock := time.Unix(1_800_000_000, 0)
			p.now = func() time.Time { return clock }
			b.ReportAllocs()
			for n := range int64(b.N) {
				b.StopTimer()
				j := newJob()
				of.add(j, n)
				td := j.traces()
				count += td.SpanCount()
				clock = clock.Add(time.Second)
				b.StartTimer()
				if err := p.ConsumeTraces(b.Context(), td); err != nil {
					b.Fatal(err)
				}
				p.sweep(b.Context(), clock, false)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(count), "ns/span")
			b.ReportMetric(float64(p.size()), "bytes")
		})
	}
}

// BenchmarkOffline is the cost per step of a training log alone, with only the durations of steps.
func BenchmarkOffline(b *testing.B) {
	const steps, each = 60_000, 1000
	b.ReportAllocs()
	for b.Loop() {
		p := newQuiet(b)
		p.Offline(nil)
		for n := range int64(steps / each) {
			b.StopTimer()
			j := newJob()
			for i := n * each; i < (n+1)*each; i++ {
				j.step(i, i*second, (i+1)*second)
			}
			td := j.traces()
			b.StartTimer()
			if err := p.ConsumeTraces(b.Context(), td); err != nil {
				b.Fatal(err)
			}
		}
		p.sweep(b.Context(), time.Unix(1_800_000_000, 0), true)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/steps, "ns/step")
}

// someRanks are 60 collectives of 16 ranks, with a known process of the last rank.
func someRanks(j *job, n int64) {
	for i := range int64(60) {
		at := (n*1000 + i) * 1e6
		j.collective(n*1000+i, at, at+9e5, 1e5, "node-0")
	}
	for _, root := range j.out.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		root.Attributes().PutDouble(spans.AttrNCCLLateCost, 15*1e5/1e9)
	}
	for rank := range int32(16) {
		for i := range int64(60) {
			at := (n*1000 + i) * 1e6
			j.rank(n*1000+i, at, at+9e5, rank, "node-0", int64(1000+rank))
		}
	}
}

func aBatch(j *job, n int64) {
	for w := range int64(12) {
		j.function(spans.KeyTraceID(j.run, "uuid", strconv.AppendInt(nil, n, 10)), "generate_sequences", 100+w, n*second+w, second/2, second/4, second/4)
	}
}

func newQuiet(b *testing.B) *stepJoin {
	b.Helper()
	p, err := newStepJoin(createDefaultConfig().(*Config), processortest.NewNopSettings(metadata.Type), consumertest.NewNop())
	if err != nil {
		b.Fatal(err)
	}
	if err := p.promises.open(b.Context(), nil, nil, component.ID{}); err != nil {
		b.Fatal(err)
	}
	return p
}
