package stepjoinprocessor

import (
	"strconv"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// large has the items that come in thousands.
var large = []struct {
	name string
	most int64
	add  func(j *job, n int64)
}{
	{"collectives of a step", 20_000, func(j *job, n int64) {
		for i := range n {
			at := 1000*second + 1 + i*100_000
			j.collective(i, at, at+90_000, 10_000, "node-0")
		}
		j.step(1, 1000*second, 1000*second+n*100_000+second)
	}},
	{"functions without ids in a step", 72_000, func(j *job, n int64) {
		for i := range n {
			at := 1000*second + 1 + i/32*250e6 // 32 workers in turn
			j.alone(i, 100+i%32, at, at+200e6)
		}
		j.step(1, 1000*second, 1000*second+n/32*250e6+second)
	}},
	{"functions without ids at once", 10_000, func(j *job, n int64) {
		for i := range n {
			j.alone(i, 100+i, 1000*second+i, 1010*second-i)
		}
		j.step(1, 999*second, 1011*second)
	}},
	{"batches at once", 10_000, func(j *job, n int64) {
		for i := range n {
			j.function(spans.KeyTraceID(j.run, "batch", strconv.AppendInt(nil, i, 10)), "generate_sequences", i, 1000*second+i, second, second, second)
		}
	}},
	{"batches of no length", 10_000, func(j *job, n int64) {
		for i := range n {
			j.function(spans.KeyTraceID(j.run, "batch", strconv.AppendInt(nil, i, 10)), "generate_sequences", i, 1000*second+i, 0, 0, 0)
		}
	}},
	{"steps with a batch each", 10_000, func(j *job, n int64) {
		for i := range n {
			at := (1000+i)*second + 1
			j.function(spans.KeyTraceID(j.run, "uuid", strconv.AppendInt(nil, i, 10)), "update_actor", 1, at, second/4, second/4, second/4)
			j.step(i, at-1000, at+second-2000)
		}
	}},
	{"spans of a trace", 100_000, func(j *job, n int64) {
		trace := spans.KeyTraceID(j.run, "uuid", []byte("one"))
		for i := range n / 4 {
			j.function(trace, "update_actor", i%64, 1000*second+i*1e6, 3e5, 3e5, 3e5)
		}
	}},
	{"runs", 1000, func(j *job, n int64) {
		for i := range n {
			j.run = "run-" + strconv.FormatInt(i, 10)
			j.step(1, 1000*second, 1001*second)
			j.collective(1, 1000*second+1e6, 1000*second+2e6, 1e5, "node-0")
		}
	}},
	{"parts of a step", 20_000, func(j *job, n int64) {
		step := j.step(1, 1000*second, 1010*second)
		for i := range n {
			j.part(step, "timer-"+strconv.FormatInt(i, 10), 1000*second, 1000*second+1e5)
		}
	}},
}

// BenchmarkLarge passes and closes n items, for two n: in linear time, both take as long per item.
func BenchmarkLarge(b *testing.B) {
	for _, of := range large {
		for _, n := range []int64{of.most / 10, of.most} {
			b.Run(of.name+" "+strconv.FormatInt(n, 10), func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					b.StopTimer()
					p, j := newQuiet(b), newJob()
					p.cfg.MaxBytes = 256 << 20
					clock := time.Unix(1_800_000_000, 0)
					p.now = func() time.Time { return clock }
					of.add(j, n)
					td := j.traces()
					b.StartTimer()
					if err := p.ConsumeTraces(b.Context(), td); err != nil {
						b.Fatal(err)
					}
					clock = clock.Add(p.cfg.Wait + time.Second)
					p.sweep(b.Context(), clock, false)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/each")
			})
		}
	}
}

// alone is a function of a log without ids, in a trace of its own.
func (j *job) alone(n, pid, start, end int64) {
	trace := spans.KeyTraceID(j.run, "alone", strconv.AppendInt(nil, n, 10))
	s := j.out.Add(spans.Resource{Service: "verl", RunID: j.run, PID: pid, Host: "node-0", Time: spans.TimeAnchored}, spans.Span{
		Trace: trace, ID: spans.SpanID(trace, "fn"), Name: "update_actor", Is: spans.KindFunction, Kind: ptrace.SpanKindInternal, Start: start, End: end,
		Source: spans.TimeAnchored,
	})
	s.Attributes().PutStr(spans.AttrTQFunction, "update_actor")
	for i, name := range []string{spans.SpanTQGet, spans.SpanTQCompute, spans.SpanTQPut} {
		part := (end - start) / 3
		j.out.Add(spans.Resource{Service: "verl", RunID: j.run, PID: pid, Host: "node-0", Time: spans.TimeAnchored}, spans.Span{
			Trace: trace, ID: spans.SpanID(trace, name), Parent: spans.SpanID(trace, "fn"), Name: name, Is: spans.KindStage, Kind: ptrace.SpanKindInternal,
			Start: start + int64(i)*part, End: start + int64(i+1)*part, Source: spans.TimeAnchored,
		})
	}
}
