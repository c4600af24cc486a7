package perfetto

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// workload makes messages like the receivers' behind train_perf: passes of RPC calls with their parts, TransferQueue functions with stages and operations,
// collectives of eight ranks on two hosts. Workers go back in time, as files read side by side do.
type workload struct {
	maker
	rng   *rand.Rand
	ids   uint64
	trace uint64
	n     int
	now   int64
	// Where slices are expected, when somebody asks: process, track, name, start, duration.
	expect func(process, track, name string, start, length int64)
}

func newWorkload(expect func(process, track, name string, start, length int64)) *workload {
	return &workload{rng: rand.New(rand.NewPCG(1, 2)), now: epoch, expect: expect}
}

// message makes the next message: some thousand spans.
func (w *workload) message() ptrace.Traces {
	w.td = ptrace.NewTraces()
	for range 10 {
		w.pass()
		for worker := range int64(4) {
			w.functions(worker)
		}
		w.collectives()
	}
	return w.td
}

func (w *workload) add(process, track, kind, name string, parent pcommon.SpanID, start, length int64) (ptrace.Span, pcommon.SpanID) {
	w.ids++
	w.n++
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], w.ids*0x9e3779b97f4a7c15)
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[:8], w.trace*0xbf58476d1ce4e5b9)
	binary.BigEndian.PutUint64(trace[8:], w.trace*0x94d049bb133111eb)
	s := w.out.AppendEmpty()
	s.SetName(name)
	s.SetTraceID(trace)
	s.SetSpanID(id)
	s.SetParentSpanID(parent)
	s.SetStartTimestamp(pcommon.Timestamp(start))
	s.SetEndTimestamp(pcommon.Timestamp(start + length))
	if kind != "" {
		s.Attributes().PutStr(spans.AttrKind, kind)
	}
	if w.expect != nil {
		w.expect(process, track, name, start, length)
	}
	return s, id
}

// took is about as long as said, by the nanosecond.
func (w *workload) took(about int64) int64 { return about/2 + w.rng.Int64N(about) }

func (w *workload) pass() {
	w.resource(spans.AttrServiceName, "zeromq", spans.AttrRunID, "run-1", spans.AttrTimeSource, "observed", spans.AttrRPCSystem, "zeromq")
	const process, track = "zeromq, run run-1", "RPC client"
	w.trace++
	start := w.now
	root, id := w.add(process, track, spans.KindPass, spans.SpanRPCPass, pcommon.SpanID{}, start, 20*4_000_000)
	for i := range 12 {
		root.Attributes().PutDouble("zeromq.measure."+strconv.Itoa(i), w.rng.Float64())
	}
	at := start
	for i := range 20 {
		length := w.took(1_000_000)
		call, of := w.add(process, track, spans.KindCall, "method_"+strconv.Itoa(i%7), id, at, length)
		call.SetKind(ptrace.SpanKindClient)
		call.Attributes().PutInt(spans.AttrZMQCallID, int64(w.ids))
		call.Attributes().PutInt(spans.AttrZMQRequestSize, w.rng.Int64N(1<<26))
		call.Attributes().PutInt(spans.AttrZMQResponseSize, w.rng.Int64N(1<<26))
		call.Attributes().PutDouble(spans.AttrZMQThroughput, w.rng.Float64()*1e10)
		call.Attributes().PutStr(spans.AttrVerdict, "rpc_good")
		part := length / 5
		for k, name := range []string{spans.SpanRPCSerialize, spans.SpanRPCSend, spans.SpanRPCReceive, spans.SpanRPCDeserialize} {
			w.add(process, track, "", name, of, at+int64(k)*part, part)
		}
		at += length + w.took(10_000)
	}
	w.now = at
}

func (w *workload) functions(worker int64) {
	pid := 4000 + worker
	w.resource(spans.AttrServiceName, "verl", spans.AttrRunID, "run-1", spans.AttrHostName, "node-0", spans.AttrTimeSource, "anchored")
	w.td.ResourceSpans().At(w.td.ResourceSpans().Len()-1).Resource().Attributes().PutInt(spans.AttrProcessPID, pid)
	process, track := "verl on node-0, run run-1", "TransferQueue worker "+strconv.FormatInt(pid, 10)
	at := w.now - 30_000_000 // beside the passes
	for range 4 {            // coroutines overlap
		w.trace++
		get, compute, put := w.took(2_000_000), w.took(8_000_000), w.took(1_000_000)
		name := []string{"rollout", "compute_log_prob", "update_actor"}[w.rng.IntN(3)]
		fn, id := w.add(process, track, spans.KindFunction, name, pcommon.SpanID{}, at, get+compute+put)
		fn.Attributes().PutStr(spans.AttrTQFunction, name)
		fn.Attributes().PutInt(spans.AttrTQBatchSize, 128)
		for i := range 9 {
			fn.Attributes().PutDouble("tq.measure."+strconv.Itoa(i), w.rng.Float64())
		}
		_, first := w.add(process, track, spans.KindStage, spans.SpanTQGet, id, at, get)
		w.add(process, track, spans.KindStage, spans.SpanTQCompute, id, at+get, compute)
		w.add(process, track, spans.KindStage, spans.SpanTQPut, id, at+get+compute, put)
		op, _ := w.add(process, track, spans.KindStage, spans.SpanTQClientGet, first, at+get/10, get/2)
		op.Attributes().PutInt(spans.AttrTQDataSize, w.rng.Int64N(1<<30))
		at += get + compute/2
	}
}

func (w *workload) collectives() {
	const job = "grpo, run run-1"
	for range 10 {
		w.trace++
		start, late, length := w.now, w.took(100_000), w.took(2_000_000)
		w.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "run-1", spans.AttrTimeSource, "logged")
		root, id := w.add(job, "communicator DP", spans.KindCollective, "AllReduce", pcommon.SpanID{}, start, late+length)
		root.Attributes().PutStr(spans.AttrNCCLCommName, "DP")
		root.Attributes().PutInt(spans.AttrNCCLRanks, 8)
		root.Attributes().PutInt(spans.AttrNCCLSequence, int64(w.trace))
		for i := range 8 {
			root.Attributes().PutDouble("nccl.measure."+strconv.Itoa(i), w.rng.Float64())
		}
		for rank := range int64(8) {
			host := "node-" + strconv.FormatInt(rank/4, 10)
			if rank%4 == 0 {
				w.resource(spans.AttrServiceName, "grpo", spans.AttrRunID, "run-1", spans.AttrHostName, host, spans.AttrTimeSource, "logged")
			}
			process, track := "grpo on "+host+", run run-1", fmt.Sprintf("rank %d of DP", rank)
			from := start + late*rank/7
			s, of := w.add(process, track, spans.KindRank, "rank "+strconv.FormatInt(rank, 10)+" "+host, id, from, start+late+length-from)
			s.Attributes().PutInt(spans.AttrNCCLCommRank, rank)
			s.Attributes().PutDouble(spans.AttrNCCLLate, w.rng.Float64())
			s.Attributes().PutDouble(spans.AttrNCCLBandwidthBus, w.rng.Float64()*1e11)
			if from < start+late {
				w.add(process, track, "", spans.SpanNCCLWait, of, from, start+late-from)
			}
			w.add(process, track, "", spans.SpanNCCLTransfer, of, start+late, length)
		}
		w.now = start + late + length + w.took(10_000)
	}
}

// points makes a message of metrics: a point for each of eight GPUs and of two series of training.
func (w *workload) points(expect func(process, track string, at int64, v float64)) pmetric.Metrics {
	md := pmetric.NewMetrics()
	add := func(process, track, service, host, gpu, name string) {
		rm := md.ResourceMetrics().AppendEmpty()
		if service != "" {
			rm.Resource().Attributes().PutStr(spans.AttrServiceName, service)
		} else {
			rm.Resource().Attributes().PutStr(spans.AttrHostName, host)
		}
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit("1")
		dp := m.SetEmptyGauge().DataPoints().AppendEmpty()
		dp.SetTimestamp(pcommon.Timestamp(w.now))
		dp.SetDoubleValue(w.rng.NormFloat64())
		if gpu != "" {
			dp.Attributes().PutStr("hw.name", gpu)
		}
		expect(process, track, w.now, dp.DoubleValue())
	}
	for i := range 8 {
		host, gpu := "node-"+strconv.Itoa(i/4), "GPU "+strconv.Itoa(i%4)
		add(host, gpu+"/hw.gpu.utilization", "", host, gpu, "hw.gpu.utilization")
	}
	for _, name := range []string{"ml.train.loss", "ml.train.token.throughput"} {
		add("grpo", "values/"+name, "grpo", "", "", name)
	}
	return md
}
