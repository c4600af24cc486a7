package trainperfprocessor

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/processors/trainperfprocessor/internal/perftest"
	"github.com/trainbridge/trainbridge/spans"
)

// BenchmarkProcess: batches of 100 healthy functions of six spans each, as tq_trace sends them. ns/span and allocs/span include the attributes of the function
// and client spans.
func BenchmarkProcess(b *testing.B) {
	batch := spans.NewBatch("bench", "")
	const functions = 100
	for i := range functions {
		start := perftest.Base + int64(i)*1e9
		seed := perftest.AddFunction(batch, 10*i+10, "rollout", start, 914_024_000,
			perftest.Stage{Name: "get", To: 52_000_000}, perftest.Stage{Name: "compute", From: 52_000_000, To: 852_000_000}, perftest.Stage{
				Name: "put",
				From: 852_000_000, To: 914_024_000,
			})
		seed.Attributes().PutDouble(spans.AttrTQGetUtilizationReported, 0.0569)
		seed.Attributes().PutDouble(spans.AttrTQComputeUtilizationReported, 0.8752)
		seed.Attributes().PutDouble(spans.AttrTQPutUtilizationReported, 0.0678)
		perftest.AddClient(batch, 10*i+14, 10*i+11, spans.StageClientGet, start, 51_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 300*perftest.MiB)
		perftest.AddClient(batch, 10*i+15, 10*i+13, spans.StageClientPut, start, 60_000_000).Attributes().PutDouble(spans.AttrTQThroughput, 253.33*perftest.MiB)
	}
	// The copies, into which the processor writes, are made outside the measured time.
	const copies = 64
	fresh := make([]ptrace.Traces, copies)
	p, _ := newTest(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n%copies == 0 {
			b.StopTimer()
			for i := range fresh {
				fresh[i] = ptrace.NewTraces()
				batch.Traces().CopyTo(fresh[i])
			}
			b.StartTimer()
		}
		process(b, p, fresh[n%copies])
		n++
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(6*functions), "ns/span")
}

// BenchmarkSteps: batches of 100 healthy steps as the receivers send them: of a JSONL log without a model, and of a Megatron log with one.
func BenchmarkSteps(b *testing.B) {
	known := perftest.Job
	known.Model = &perftest.Aquila
	for name, bb := range map[string]struct {
		res   spans.Resource
		attrs perftest.Attrs
		room  int // room that receivers leave for attributes
	}{
		"no model": {perftest.Job, perftest.Attrs{
			spans.AttrSource: "jsonl", spans.AttrIteration: nil, spans.AttrRecord: int64(1), spans.AttrStepsCovered: nil, spans.AttrStepDurationKind: nil,
			spans.AttrLoss:             2.5,
			spans.AttrSampleThroughput: 64.0, spans.AttrLearningRate: 1e-4, spans.AttrGPUUtilization: 0.97, spans.AttrGPUUtilizationMin: 0.96,
		}, 12},
		"model": {known, perftest.Attrs{
			spans.AttrLoss: 2.5, spans.AttrBatchSize: int64(32), spans.AttrLearningRate: 1e-4, spans.AttrGradientNorm: 1.2,
			spans.AttrDeviceFlopThroughputReported: 700e12, spans.AttrConsumedSamples: int64(32), spans.AttrWorldSize: int64(8),
		}, 28},
	} {
		b.Run(name, func(b *testing.B) {
			const steps, copies = 100, 8 // as warm in the cache as a batch that a receiver has just built
			rng := rand.New(rand.NewPCG(1, 2))
			batch := spans.NewBatch("bench", "")
			for i := range int64(steps) {
				perftest.AddStep(batch, bb.res, i, 0.5, bb.attrs)
			}
			fresh := make([]ptrace.Traces, copies)
			p, _ := newTest(b, onH100)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%copies == 0 {
					b.StopTimer()
					for i := range fresh {
						fresh[i] = anew(batch.Traces(), (n+i)*steps, bb.room, rng)
					}
					runtime.GC() // the copies' garbage is not the processor's
					b.StartTimer()
				}
				process(b, p, fresh[n%copies])
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/steps, "ns/span")
		})
	}
}

// anew copies steps, with span ids of their own from first on, and with the values of random steps.
func anew(steps ptrace.Traces, first, room int, rng *rand.Rand) ptrace.Traces {
	fresh := ptrace.NewTraces()
	steps.CopyTo(fresh)
	for j, span := range fresh.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		at := first + j + 1
		span.SetSpanID(perftest.SpanID(at))
		m := span.Attributes()
		m.EnsureCapacity(room)
		for _, name := range []string{spans.AttrIteration, spans.AttrRecord} {
			if v, ok := m.Get(name); ok {
				v.SetInt(int64(at))
			}
		}
		m.PutDouble(spans.AttrLoss, perftest.HealthyLoss(rng, at))
		seconds := 0.5 * math.Exp(0.02*rng.NormFloat64())
		m.PutDouble(spans.AttrStepDuration, seconds)
		if v, ok := m.Get(spans.AttrSampleThroughput); ok {
			v.SetDouble(32 / seconds)
		}
	}
	return fresh
}

// BenchmarkZMQ: a pass of 98 calls, each with five stages, as zmq_rpc sends it; groups alone, healthy and with two verdicts.
func BenchmarkZMQ(b *testing.B) {
	passes := func(n int, a perftest.Attrs) *spans.Batch {
		batch := spans.NewBatch("bench", "")
		for i := range n {
			perftest.AddGroup(batch, i+1, spans.SpanRPCPass, a)
		}
		return batch
	}
	whole := spans.NewBatch("bench", "")
	perftest.AddPass(whole, 1, 98, perftest.FastPass)
	for name, batch := range map[string]*spans.Batch{"pass": whole, "groups": passes(100, perftest.FastPass), "verdicts": passes(100, perftest.RealPass)} {
		b.Run(name, func(b *testing.B) {
			const copies = 16
			fresh := make([]ptrace.SpanSlice, copies)
			td := make([]ptrace.Traces, copies)
			for i := range td {
				td[i] = ptrace.NewTraces()
				batch.Traces().CopyTo(td[i])
				fresh[i] = td[i].ResourceSpans().At(0).ScopeSpans().At(0).Spans()
			}
			list := batch.Traces().ResourceSpans().At(0).ScopeSpans().At(0).Spans()
			p, _ := newTest(b)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%copies == 0 {
					b.StopTimer()
					for i, span := range list.All() {
						for j := range fresh { // only the roots are written to
							if span.Name() == spans.SpanRPCPass {
								root := ptrace.NewSpan()
								span.CopyTo(root)
								root.MoveTo(fresh[j].At(i))
							}
						}
					}
					b.StartTimer()
				}
				process(b, p, td[n%copies])
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(batch.Traces().SpanCount()), "ns/span")
		})
	}
}

// addRoot puts the attributes of allReduce in an order, which a map would not.
func addRoot(b *spans.Batch, id int, verdicts bool) ptrace.Span {
	span := b.Add(perftest.Host(0), spans.Span{
		Trace: perftest.TraceID, ID: perftest.SpanID(id), Name: "AllReduce", Is: spans.KindCollective, Kind: ptrace.SpanKindInternal, Start: perftest.Base,
		End: perftest.Base + int64(3*time.Millisecond), Source: spans.TimeLogged, Attributes: 32,
	})
	m := span.Attributes()
	for _, name := range []string{
		spans.AttrNCCLRanks, spans.AttrNCCLOperation, spans.AttrNCCLCommID, spans.AttrNCCLCommName, spans.AttrNCCLCommSize, spans.AttrNCCLSequence,
		spans.AttrNCCLAlgorithm,
		spans.AttrNCCLProtocol, spans.AttrNCCLMessageSize, spans.AttrNCCLDataSize, spans.AttrNCCLDuration, spans.AttrNCCLTransferDuration,
		spans.AttrNCCLBandwidthAlgorithm,
		spans.AttrNCCLBandwidthBus, spans.AttrNCCLLateMax, spans.AttrNCCLLateRank, spans.AttrNCCLLateHost, spans.AttrNCCLLateCost, spans.AttrNCCLErrors,
		spans.AttrNCCLRetries,
		spans.AttrNCCLClockReference,
	} {
		if err := m.PutEmpty(name).FromRaw(perftest.AllReduce[name]); err != nil {
			panic(err)
		}
	}
	if verdicts {
		m.PutDouble(spans.AttrNCCLLateMax, 0.1)
		m.PutInt(spans.AttrNCCLStragglerRank, 5)
		m.PutStr(spans.AttrNCCLStragglerHost, "node-0")
		m.PutDouble(spans.AttrNCCLStragglerLate, 0.00123)
		m.PutDouble(spans.AttrNCCLStragglerScore, 0.951)
		m.PutDouble(spans.AttrNCCLStragglerCost, 12.4)
	}
	return span
}

// BenchmarkNCCL: 32 collectives of 64 ranks, each rank with a resource of its own; spans below the roots alone; roots alone, healthy and with two verdicts.
func BenchmarkNCCL(b *testing.B) {
	roots := func(n int, verdicts bool) *spans.Batch {
		batch := spans.NewBatch("bench", "")
		for i := range n {
			addRoot(batch, i+1, verdicts)
		}
		return batch
	}
	ranks := func(batch *spans.Batch) *spans.Batch {
		for i := range 64 {
			for j := range 32 {
				perftest.AddRank(batch, 1000+32*i+j, j+1, i)
			}
		}
		return batch
	}
	for name, batch := range map[string]*spans.Batch{
		"collectives": ranks(roots(32, false)), "ranks": ranks(roots(0, false)), "roots": roots(100, false), "verdicts": roots(100, true),
	} {
		b.Run(name, func(b *testing.B) {
			const copies = 16
			fresh := make([]ptrace.Traces, copies)
			p, _ := newTest(b)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%copies == 0 && (n == 0 || name == "verdicts") { // batches without verdicts are not written to
					b.StopTimer()
					for i := range fresh {
						fresh[i] = ptrace.NewTraces()
						batch.Traces().CopyTo(fresh[i])
					}
					b.StartTimer()
				}
				process(b, p, fresh[n%copies])
				n++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/float64(batch.Traces().SpanCount()), "ns/span")
		})
	}
}
