//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// record is some lines of a log, and the keys of their spans: each key must be accepted once. The lines are without newlines.
type record struct {
	receiver string
	lines    [2][]string // by the format's two files
	keys     []string
}

// logFormat is a kind of log that one receiver reads in the campaign, from the two files of names.
type logFormat struct {
	receiver, env string
	names         [2]string
	// joint: a record has lines in both files; else in one of them.
	joint bool
	// counts: ids depend on all earlier rows of the log, so it cannot be read from its middle without a state.
	counts bool
	head   string
	// unordered: a record's meaning does not depend on its place.
	unordered bool
	// counter is a metric of train_metrics that counts each record, or with perKey each key of a record.
	counter string
	perKey  bool
	// make writes the n-th record, from 0, of a file.
	make func(rng *rand.Rand, file, n int) record
}

var logFormats = []*logFormat{
	{
		receiver: "tq_trace", env: "TRAINBRIDGE_TQ_LOGS", names: [2]string{"worker-a-4711.err", "worker-b-4712.err"}, unordered: true,
		counter: "tq_function_duration_seconds_count", make: tqRecord,
	},
	{
		receiver: "flagscale", env: "TRAINBRIDGE_FLAGSCALE_LOGS", names: [2]string{"host_0.output", "host_1.output"},
		counter: "ml_train_step_duration_seconds_count", make: megatronRecord,
	},
	{
		receiver: "train_log", env: "TRAINBRIDGE_TRAIN_LOGS", names: [2]string{"train.jsonl", "finetune.jsonl"},
		counter: "ml_train_step_duration_seconds_count", make: jsonRecord,
	},
	{
		receiver: "zmq_rpc", env: "TRAINBRIDGE_ZMQ_LOGS", names: [2]string{"zmq_performance.log", "client2.log"}, counts: true, head: zmqHead,
		counter: "rpc_client_call_duration_seconds_count",
		perKey:  true, make: zmqRecord,
	},
	{
		receiver: "nccl", env: "TRAINBRIDGE_NCCL_LOGS", names: [2]string{"node-0-pid40000.log", "node-1-pid40001.log"}, joint: true,
		counter: "nccl_collective_duration_seconds_count", make: ncclRecord,
	},
}

// logClock is the time in the n-th record of a log.
func logClock(n int) time.Time {
	return time.Date(2026, 3, 5, 9, 30, 0, 0, time.Local).Add(time.Duration(n) * 50 * time.Millisecond)
}

// in is a record with lines in one file.
func in(file int, receiver string, lines, keys []string) record {
	r := record{receiver: receiver, keys: keys}
	r.lines[file] = lines
	return r
}

func tqRecord(rng *rand.Rand, file, n int) record {
	var b [16]byte
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	id := uuid.UUID(b).String()
	var keys []string
	for _, stage := range []string{spans.StageFunction, "get", "compute", "put"} {
		keys = append(keys, "tq "+id+" "+stage)
	}
	return in(file, "tq_trace", strings.Split(strings.TrimSuffix(waterfall(id, logClock(n)), "\n"), "\n"), keys)
}

// apart keeps the numbers of the two files of a format apart.
func apart(file, n int) int { return file*1_000_000 + n + 1 }

func megatronRecord(rng *rand.Rand, file, n int) record {
	i := apart(file, n)
	text := fmt.Sprintf("[default7]: [%s] iteration %8d/ 2000000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f | learning rate: "+
		"3.000000E-06 | global batch size:    32 | lm loss: %.6E |",
		logClock(n).Format("2006-01-02 15:04:05.000000"), i, 32*i, 40+10*rng.Float64(), 1+rng.Float64())
	return in(file, "flagscale", []string{text}, []string{fmt.Sprint("megatron ", i)})
}

func jsonRecord(rng *rand.Rand, file, n int) record { return jsonLine(rng, file, n, "") }

// jsonLine is a record with more fields than usual.
func jsonLine(rng *rand.Rand, file, n int, more string) record {
	i := apart(file, n)
	text := fmt.Sprintf(`{"step": %d, "timestamp": "%s", "loss": %.4f, "throughput": %.3f, "step_time_s": 0.05%s}`,
		i, logClock(n).UTC().Format("2006-01-02T15:04:05.000Z"), rng.Float64(), 500*rng.Float64(), more)
	return in(file, "train_log", []string{text}, []string{fmt.Sprint("jsonl ", i)})
}

// wideFields are some 1.6 KB of fields, as logged per layer.
func wideFields(rng *rand.Rand) string {
	var b strings.Builder
	for i := range 33 {
		fmt.Fprintf(&b, `, "layers.%d.linear.%s": %v`, i/3, []string{"grad_norm", "weight_rms", "act_max"}[i%3], rng.Float64())
	}
	return b.String()
}

const (
	zmqRule = "========================================================================================================================\n"
	zmqHead = "ZeroMQ Performance Log - Transport: IPC\n" + zmqRule +
		"ID    Method               Serialize(ms)   Send(ms)     Recv(ms)     Deserialize(ms)   Total(ms)    Sent(KB)     Recv(KB)     Throughput(MB/s)\n" + zmqRule
)

// zmqRecord is a pass of three calls; the first of a log follows Init.
func zmqRecord(rng *rand.Rand, file, n int) record {
	methods := []string{"Embedding", "Matmul", "LMHead"}
	id := apart(file, 3*n)
	if n == 0 {
		methods = append([]string{"Init"}, methods...)
		id--
	}
	var lines, keys []string
	for _, m := range methods {
		ser, send, recv, deser := rng.Float64(), rng.Float64(), 20*rng.Float64(), rng.Float64()
		lines = append(
			lines,
			fmt.Sprintf(
				"%-5d %-20s %-15.3f %-12.3f %-12.3f %-17.3f %-12.3f %-12.2f %-12.2f %-18.2f", id, m, ser, send, recv, deser, ser+send+recv+deser+0.1, 8.05, 4096.05, 300.0,
			),
		)
		keys = append(keys, fmt.Sprint("zmq ", id))
		id++
	}
	return in(file, "zmq_rpc", lines, keys)
}

// ncclRecord is a collective of two ranks, with a file each.
func ncclRecord(rng *rand.Rand, _, n int) record {
	r := record{receiver: "nccl", keys: []string{fmt.Sprint("nccl ", n), fmt.Sprint("nccl ", n, " rank 0"), fmt.Sprint("nccl ", n, " rank 1")}}
	for rank := range r.lines {
		r.lines[rank] = []string{fmt.Sprintf(`{"header":{"id":"0xc80a4db2fce237f6","comm_name":"DP Group 0","rank":%d,"n_ranks":2,"nnodes":2},`+
			`"metadata":{"inspector_output_format_version":"v4.0","git_rev":"","rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,`+
			`"hostname":"node-%d","pid":%d},`+
			`"coll_perf":{"coll":"AllReduce","coll_sn":%d,"coll_msg_size_bytes":4194304,"coll_exec_time_us":%d,`+
			`"coll_timing_source":"kernel_gpu","coll_algobw_gbs":99.864381,"coll_busbw_gbs":99.864381}}`,
			rank, logClock(n).UnixMicro(), rank, 40000+rank, n, 30+rng.IntN(100))}
	}
	return r
}

// spanKey names the record of a span, as record.keys does; empty for spans of no line. The number of a rank's collective is known only by the trace.
func spanKey(resource pcommon.Map, s ptrace.Span) string {
	str := func(key string) string {
		v, ok := s.Attributes().Get(key)
		if !ok {
			v, ok = resource.Get(key)
		}
		if !ok {
			return ""
		}
		return v.AsString()
	}
	if str(spans.AttrIncomplete) == "true" {
		return ""
	}
	switch {
	case s.Name() == spans.SpanStep:
		return str(spans.AttrSource) + " " + str(spans.AttrIteration)
	case view.KindOf(s) == view.KindFunction:
		return "tq " + idText(s) + " " + spans.StageFunction
	case view.KindOf(s) == view.KindStage:
		var v view.Stage
		v.Read(s)
		return "tq " + idText(s) + " " + v.Stage.String()
	case str(spans.AttrZMQCallID) != "":
		return "zmq " + str(spans.AttrZMQCallID)
	case spans.IsNCCLRank(s.Name()):
		return "rank " + str(spans.AttrNCCLCommRank)
	case str(spans.AttrNCCLRanks) == "2":
		return "nccl " + str(spans.AttrNCCLSequence)
	}
	return ""
}
