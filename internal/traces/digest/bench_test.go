package digest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// jobLike makes messages of a job like receivers and train_perf, with a number of records of each kind.
type jobLike struct {
	*spans.Batch
	n uint64
}

func (m *jobLike) trace() (t pcommon.TraceID) {
	m.n++
	binary.LittleEndian.PutUint64(t[:], m.n*0x9e3779b97f4a7c15)
	binary.LittleEndian.PutUint64(t[8:], m.n)
	return t
}

func spanID(n uint64) (id pcommon.SpanID) {
	binary.LittleEndian.PutUint64(id[:], n+1)
	return id
}

// function makes 6 spans.
func (m *jobLike) function(pid int64) {
	res := spans.Resource{Service: "verl", RunID: "run", Host: "node-0", PID: pid, Time: spans.TimeLogged}
	trace, start := m.trace(), base+int64(m.n)*ms
	took := 100*ms + int64(m.n*7919%50)*ms
	s := m.Add(res, spans.Span{
		Trace: trace, ID: spanID(0), Name: "rollout", Is: spans.KindFunction,
		Start: start, End: start + took, Source: spans.TimeLogged, Attributes: 12,
	})
	a := s.Attributes()
	a.PutStr(spans.AttrTQFunction, "rollout")
	a.PutInt(spans.AttrTQBatchSize, 32)
	for _, name := range []string{spans.AttrTQGetUtilization, spans.AttrTQPutUtilization} {
		a.PutDouble(name, 0.05)
	}
	a.PutDouble(spans.AttrTQComputeUtilization, 0.9)
	a.PutDouble(spans.AttrTQOverheadUtilization, 0.1)
	a.PutStr(spans.AttrSummary, "TQ overhead 10 %")
	a.PutEmptySlice(spans.AttrVerdict).AppendEmpty().SetStr(spans.VerdictTQFluctuating)
	for i, name := range []string{spans.SpanTQGet, spans.SpanTQCompute, spans.SpanTQPut} {
		c := m.Add(res, spans.Span{
			Trace: trace, ID: spanID(uint64(i) + 1), Parent: spanID(0), Name: name, Is: spans.KindStage,
			Start: start, End: start + took/20, Source: spans.TimeLogged, Attributes: 2,
		})
		c.Attributes().PutStr(spans.AttrTQFunction, "rollout")
	}
	for i, name := range []string{spans.SpanTQClientGet, spans.SpanTQClientPut} {
		c := m.Add(res, spans.Span{
			Trace: trace, ID: spanID(uint64(i) + 4), Parent: spanID(1), Name: name, Is: spans.KindStage,
			Start: start, End: start + took/20, Source: spans.TimeLogged, Attributes: 5,
		})
		c.Attributes().PutStr(spans.AttrTQFunction, "rollout")
		c.Attributes().PutInt(spans.AttrTQDataSize, 1<<20+int64(m.n))
		c.Attributes().PutDouble(spans.AttrTQThroughput, 5e8+float64(m.n))
	}
}

// pass makes 1 + 5 × 98 spans.
func (m *jobLike) pass() {
	res := spans.Resource{Service: "zeromq", RunID: "run", System: spans.RPCSystemZeroMQ, Network: "unix", Time: spans.TimeObserved}
	trace, start := m.trace(), base+int64(m.n)*1000*ms
	s := m.Add(res, spans.Span{
		Trace: trace, ID: spanID(0), Name: spans.SpanRPCPass, Is: spans.KindPass,
		Start: start, End: start + 1000*ms, Source: spans.TimeObserved, Attributes: 12,
	})
	s.Attributes().PutInt(spans.AttrZMQPassCalls, 98)
	s.Attributes().PutDouble(spans.AttrZMQCallDuration, 0.98)
	for i := range uint64(98) {
		at := start + int64(i)*10*ms
		id := spanID(1 + 5*i)
		c := m.Add(res, spans.Span{
			Trace: trace, ID: id, Parent: spanID(0), Name: "BatchLinear", Is: spans.KindCall, Kind: ptrace.SpanKindClient, Start: at, End: at + 10*ms + int64(m.n*i%977)*1000,
			Source: spans.TimeObserved, Attributes: 6,
		})
		c.Attributes().PutInt(spans.AttrZMQCallID, int64(i)+2)
		c.Attributes().PutInt(spans.AttrZMQRequestSize, 8<<20)
		c.Attributes().PutInt(spans.AttrZMQResponseSize, 24<<20)
		c.Attributes().PutDouble(spans.AttrZMQThroughput, 3e9+float64(m.n*i))
		for j, name := range []string{spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize} {
			m.AddPart(&spans.Span{Trace: trace, ID: spanID(2 + 5*i + uint64(j)), Parent: id, Name: name, Start: at, End: at + 2*ms + int64(m.n%1009)*1000})
		}
	}
}

func (m *jobLike) step(iteration int64) {
	res := spans.Resource{Service: "llm", RunID: "run", Source: "megatron", Time: spans.TimeDerived}
	start := base + iteration*2000*ms
	s := m.Add(res, spans.Span{
		Trace: m.trace(), ID: spanID(0), Name: spans.SpanStep, Is: spans.KindStep,
		Start: start, End: start + 2000*ms, Source: spans.TimeDerived, Attributes: 16,
	})
	a := s.Attributes()
	a.PutInt(spans.AttrIteration, iteration)
	x := float64(iteration * 7919 % 1000)
	for _, name := range []string{
		spans.AttrLoss, spans.AttrLearningRate, spans.AttrGradientNorm, spans.AttrTokens, spans.AttrDeviceFlopThroughput,
		spans.AttrFlopThroughput, spans.AttrMFU, spans.AttrHFU, spans.AttrTokenThroughput, spans.AttrMemoryPeak,
	} {
		a.PutDouble(name, 1+x/1e4)
	}
}

// collective makes 1 + 3 × ranks spans.
func (m *jobLike) collective(ranks int64) {
	res := spans.Resource{Service: "nccl", RunID: "run", Time: spans.TimeLogged}
	trace, start := m.trace(), base+int64(m.n)*10*ms
	root := spanID(m.n)
	s := m.Add(res, spans.Span{
		Trace: trace, ID: root, Name: "AllReduce", Is: spans.KindCollective,
		Start: start, End: start + 5*ms, Source: spans.TimeLogged, Attributes: 16,
	})
	a := s.Attributes()
	a.PutInt(spans.AttrNCCLRanks, ranks)
	a.PutStr(spans.AttrNCCLOperation, "AllReduce")
	a.PutStr(spans.AttrNCCLCommID, "0xabc")
	a.PutStr(spans.AttrNCCLCommName, "DP Group 0")
	a.PutInt(spans.AttrNCCLMessageSize, 1<<28)
	a.PutDouble(spans.AttrNCCLDuration, 0.005+float64(m.n%1000)*1e-6)
	a.PutDouble(spans.AttrNCCLBandwidthBus, 2e11+float64(m.n%997)*1e8)
	a.PutDouble(spans.AttrNCCLBandwidthAlgorithm, 1e11+float64(m.n%997)*1e8)
	a.PutDouble(spans.AttrNCCLLateMax, 0.001)
	a.PutInt(spans.AttrNCCLLateRank, int64(m.n)%ranks)
	a.PutStr(spans.AttrNCCLLateHost, "node-1")
	for rank := range ranks {
		id := spanID(m.n<<16 | uint64(rank)<<4)
		own := res
		own.Host, own.PID = fmt.Sprintf("node-%d", rank/8), rank
		r := m.Add(own, spans.Span{
			Trace: trace, ID: id, Parent: root, Name: "rank", Is: spans.KindRank,
			Start: start, End: start + 5*ms, Source: spans.TimeLogged, Attributes: 4,
		})
		r.Attributes().PutInt(spans.AttrNCCLCommRank, rank)
		r.Attributes().PutDouble(spans.AttrNCCLLate, float64(rank)*1e-6)
		for _, name := range []string{spans.SpanNCCLWait, spans.SpanNCCLTransfer} {
			m.AddPart(&spans.Span{Trace: trace, ID: spanID(uint64(rank)), Parent: id, Name: name, Start: start, End: start + ms})
		}
	}
}

func newJobLike() *jobLike { return &jobLike{Batch: spans.NewBatch("test", "")} }

func BenchmarkBatch(b *testing.B) {
	for name, fill := range map[string]func(m *jobLike){
		"functions": func(m *jobLike) {
			for i := range int64(1000) {
				m.function(i % 8)
			}
		},
		"passes": func(m *jobLike) {
			for range 15 {
				m.pass()
			}
		},
		"steps": func(m *jobLike) {
			for i := range int64(5000) {
				m.step(i)
			}
		},
		"collectives": func(m *jobLike) {
			for range 40 {
				m.collective(64)
			}
		},
	} {
		m := newJobLike()
		fill(m)
		td := m.Traces()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			j := New()
			j.Batch(td)
			n := td.SpanCount()
			for b.Loop() {
				j.Batch(td)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/span")
		})
	}
}
