package records

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/collectives"
	"github.com/trainbridge/trainbridge/internal/rows"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// table is a kind of record.
type table struct {
	name, means string
	kinds       []view.Kind            // of the spans of its rows; empty: rows are added by name
	only        func(ptrace.Span) bool // which of these spans are rows; nil: all
	columns     []column

	of    map[string][]int // columns by attribute
	other int              // the column of attributes with the prefix fields; -1: none
}

// Kind is what the cells of a column hold, unless empty.
type Kind uint8

// The kinds.
const (
	Text   Kind = iota // a text, an id, or a JSON object
	Number             // a number, NaN, inf or -inf
	Whole              // a number without a fraction
	Time               // RFC 3339
)

// column is a value of a record: an attribute of the span (or else of the resource), or the result of write for the row.
type column struct {
	name, unit, means string
	attr              string // the attribute; "": the cells come from write or fields
	scale             scale
	kind              Kind
	fields            string // the prefix of attributes without a column of their own; they are a JSON object
	write             func(dst []byte, r *row) []byte
}

// row is what the cells of a row are made of.
type row struct {
	res   view.Resource
	span  ptrace.Span // the zero value of a row about no span
	at    rows.Place
	name  func(path string) string // of a log
	slots []pcommon.Value          // the attribute of each column
	root  *collectiveValues        // of the rank's collective; nil: not known

	// Of rows of single tables.
	verdict   view.Verdict
	cause     view.Cause
	metric    pmetric.Metric
	point     pmetric.NumberDataPoint
	statistic string
	value     pcommon.Value
	job       *job
}

// collectiveValues is what the rows of ranks have from their collective, whose span has it once for all.
type collectiveValues struct {
	operation, algorithm, comm string
	sequence                   view.Int
	size                       float64 // By; NaN: not known
	errors, retries            bool    // the log counts them
	place                      int     // in Tables.known
}

// text returns a column of an attribute that is a text.
func text(name, attr, means string) column { return column{name: name, attr: attr, means: means} }

// number returns a column of an attribute that is a number.
func number(name, unit, attr string, s scale, means string) column {
	return column{name: name, unit: unit, attr: attr, scale: s, kind: Number, means: means}
}

// columnOf returns a column whose cells write makes from the row: numbers if unit is set, else texts.
func columnOf(name, unit, means string, write func([]byte, *row) []byte) column {
	c := column{name: name, unit: unit, means: means, write: write}
	if unit != "" {
		c.kind = Number
	}
	return c
}

// numeric returns c as a column of numbers, for numbers whose unit is another cell of the row.
func numeric(c column) column { c.kind = Number; return c }

// whole returns c as a column of numbers without a fraction.
func whole(c column) column { c.kind = Whole; return c }

// timeColumn returns a column of times, which of returns for a row.
func timeColumn(name, means string, of func(*row) pcommon.Timestamp) column {
	c := columnOf(name, "", means, func(dst []byte, r *row) []byte { return appendTime(dst, of(r)) })
	c.kind = Time
	return c
}

// textOf returns a column of texts, which of returns for a row.
func textOf(name, means string, of func(*row) string) column {
	return columnOf(name, "", means, func(dst []byte, r *row) []byte { return appendText(dst, of(r)) })
}

// numberOf returns a column of numbers, which of returns for a row; their unit is another cell of the row.
func numberOf(name, means string, of func(*row) float64) column {
	return numeric(columnOf(name, "", means, func(dst []byte, r *row) []byte { return appendGiven(dst, of(r)) }))
}

// durationColumn returns a column of the durations of records.
func durationColumn(name, unit string, s scale, means string) column {
	return columnOf(name, unit, means, func(dst []byte, r *row) []byte { return appendLength(dst, r, s) })
}

// fieldsColumn returns the column of the attributes with a prefix that have no column of their own.
func fieldsColumn(prefix string) column {
	return column{name: "fields", fields: prefix, means: "Fields of the log that no column has, as a JSON object"}
}

// head is the first columns of all tables of spans.
var head = []column{
	textOf("run", "The job: ml.run.id", func(r *row) string { return r.res.Run }),
	timeColumn("time", "When the record begins, RFC 3339 in UTC with nanoseconds", (*row).begins),
	// Some ids are digits with an e among them, and look like numbers: a program reads ids as text.
	columnOf("trace_id", "", "Its trace", func(dst []byte, r *row) []byte {
		id := r.span.TraceID()
		return hex.AppendEncode(dst, id[:])
	}),
	columnOf("span_id", "", "Its span", func(dst []byte, r *row) []byte {
		id := r.span.SpanID()
		return hex.AppendEncode(dst, id[:])
	}),
	columnOf("file", "", "Its log", func(dst []byte, r *row) []byte {
		if r.at.File == "" {
			return dst
		}
		return appendText(dst, r.name(r.at.File))
	}),
	whole(columnOf("offset", "By", "Where its first line begins in the log; of a compressed log, in its content", func(dst []byte, r *row) []byte {
		if r.at.File == "" {
			return dst
		}
		return strconv.AppendInt(dst, r.at.Offset, 10)
	})),
}

// tail is the last columns of tables whose rows are spans.
var tail = []column{
	text("time_source", spans.AttrTimeSource, "Where the times come from: logged, derived, anchored, anchored_second, observed, synthetic"),
	text("incomplete", spans.AttrIncompleteReason, "Why the record is incomplete"),
	text("severity", spans.AttrVerdictSeverity, "The worst of its verdicts: warning, bad"),
	text("verdicts", spans.AttrVerdict, "The names of its verdicts, between spaces"),
}

// columnsOf returns the columns of a table whose rows are spans: head, its own columns, tail.
func columnsOf(own ...column) []column {
	return append(append(append([]column{}, head...), own...), tail...)
}

var (
	host      = textOf("host", "The host, where the log names it", hostOf)
	service   = textOf("service", "service.name", func(r *row) string { return r.res.Service })
	duration  = durationColumn("duration_s", "s", asIs, "How long it took")
	pid       = whole(columnOf("pid", "1", "The process", func(dst []byte, r *row) []byte { return appendWhole(dst, r.res.PID) }))
	rank      = whole(number("rank", "1", spans.AttrRank, asIs, "The global rank that wrote it"))
	operation = textOf("operation", "In small letters, as VCCL writes it: allreduce, allgather, …", operationOf)
	iteration = whole(number("iteration", "{iteration}", spans.AttrIteration, asIs, "The iteration as printed"))
)

// scaleFromNS returns the scale for ns that corresponds to the scale s for seconds.
func scaleFromNS(s scale) scale { s.tens -= 9; return s }

// nanoseconds returns the duration of a record, ns: of its span, except for the last rank of a collective, whose span is drawn as long as the collective, and
// whose own duration is an attribute.
func nanoseconds(r *row) int64 {
	if own, ok := r.lastRankNS(spans.AttrNCCLDuration); ok {
		return own
	}
	return int64(r.span.EndTimestamp() - r.span.StartTimestamp())
}

// begins returns when a record begins: with its span, except for the last rank of a collective, which came late.
func (r *row) begins() pcommon.Timestamp {
	if late, ok := r.lastRankNS(spans.AttrNCCLLate); ok {
		return r.span.StartTimestamp() + pcommon.Timestamp(collectives.Ahead+late)
	}
	return r.span.StartTimestamp()
}

// lastRankNS returns an attribute of the span of the last rank of a collective, given in s, as ns; false: the span is not of such a rank, or lacks the
// attribute.
func (r *row) lastRankNS(name string) (ns int64, ok bool) {
	if r.span == (ptrace.Span{}) || !spans.IsNCCLRank(r.span.Name()) {
		return 0, false
	}
	if _, ok = r.span.Attributes().Get(spans.AttrNCCLLast); !ok {
		return 0, false
	}
	v, ok := r.span.Attributes().Get(name)
	if !ok {
		return 0, false
	}
	x := spans.ValueNumber(v)
	return int64(math.Round(x * 1e9)), x == x
}

// tables are all tables, in the order of the documentation.
var tables = []*table{
	{
		name: "steps", means: "Training steps: a row per record of a training log, which is one step or the several that it covers",
		kinds: []view.Kind{view.KindStep},
		columns: columnsOf(
			service, host, rank, iteration,
			whole(number("record", "1", spans.AttrRecord, asIs, "The ordinal of the record in its log, where the log names no iteration")),
			number("epoch", "1", spans.AttrEpoch, asIs, "The epoch, with its fraction"),
			whole(number("steps_covered", "{step}", spans.AttrStepsCovered, asIs, "How many steps the record covers, where they are several")),
			number("loss", "{loss}", spans.AttrLoss, asIs, "The training loss; NaN, inf and -inf as they are"),
			number("lr", "1", spans.AttrLearningRate, asIs, "The learning rate"),
			number("grad_norm", "1", spans.AttrGradientNorm, asIs, "The norm of the gradient"),
			number("loss_scale", "1", spans.AttrLossScale, asIs, "The loss scale of mixed-precision training"),
			columnOf("step_time_s", "s", "The time of one step", func(dst []byte, r *row) []byte { return appendStepTime(dst, r, asIs) }),
			columnOf("step_time_ms", "ms", "The same", func(dst []byte, r *row) []byte { return appendStepTime(dst, r, milli) }),
			text("step_time_kind", spans.AttrStepDurationKind, "What that time is, where it is not of this very step: mean, median, interval"),
			number("throughput", "{sample}/s", spans.AttrSampleThroughput, asIs, "Samples per second, as the log has it"),
			number("samples_per_sec", "{sample}/s", spans.AttrSampleThroughput, asIs, "The same, by the name of FlagScale's perf_monitor"),
			number("tokens_per_sec", "{token}/s", spans.AttrTokenThroughput, asIs, "Tokens per second of all devices, as the log has it"),
			number("tokens_per_sec_per_gpu", "{token}/s", spans.AttrDeviceTokenThroughput, asIs, "The same of one device"),
			number("TFLOPS_per_GPU", "TFLOP/s", spans.AttrDeviceFlopThroughputReported, tera, "10¹² FLOP/s of one device, as the log has it"),
			number("TFLOPS_total", "TFLOP/s", spans.AttrFlopThroughputReported, tera, "The same of all devices"),
			number("recomputed_TFLOPS_per_GPU", "TFLOP/s", spans.AttrDeviceFlopThroughput, tera, "The same of one device, recomputed of the model"),
			number("recomputed_TFLOPS_total", "TFLOP/s", spans.AttrFlopThroughput, tera, "The same of all devices, recomputed"),
			number("mfu_reported", "1", spans.AttrMFUReported, asIs, "Model FLOP/s utilization, as the log has it"),
			number("mfu", "1", spans.AttrMFU, asIs, "The same, recomputed; needs a model and a device"),
			number("hfu", "1", spans.AttrHFU, asIs, "Hardware FLOP/s utilization, where it is known what is computed twice"),
			number("memory_GB", "GiB", spans.AttrMemoryUsage, gibi, "Device memory allocated on the rank that logs"),
			number("peak_memory_GB", "GiB", spans.AttrMemoryPeak, gibi, "The most of it so far"),
			number("gpu_util_mean", "%", spans.AttrGPUUtilization, percent, "How busy the devices of the log's list were, mean"),
			number("gpu_util_min", "%", spans.AttrGPUUtilizationMin, percent, "The same of the idlest"),
			number("batch_size", "{sample}", spans.AttrBatchSize, asIs, "Samples of one step, of all ranks"),
			number("samples", "{sample}", spans.AttrSamples, asIs, "Samples of all steps covered"),
			number("tokens", "{token}", spans.AttrTokens, asIs, "Tokens of all steps covered"),
			number("consumed_samples", "{sample}", spans.AttrConsumedSamples, asIs, "Samples since the run began"),
			number("consumed_tokens", "{token}", spans.AttrConsumedTokens, asIs, "Tokens since the run began"),
			whole(number("skipped_iterations", "{iteration}", spans.AttrSkippedIterations, asIs, "As the log counts them")),
			whole(number("nan_iterations", "{iteration}", spans.AttrNaNIterations, asIs, "As the log counts them")),
			whole(number("slowest_rank", "1", spans.AttrRankSlowest, asIs, "The rank that computed for the longest among its peers")),
			number("slowest_rank_s", "s", spans.AttrRankSlowestDuration, asIs, "How long it took"),
			whole(number("world_size", "1", spans.AttrWorldSize, asIs, "How many ranks the job has")),
			text("format", spans.AttrSource, "The format of the log"),
			fieldsColumn(spans.AttrTrainFieldPrefix),
		),
	},
	{
		name: "step_parts", means: "Named parts of training steps: verl's timing_s, Megatron's timers, data loading", kinds: []view.Kind{view.KindPart},
		columns: columnsOf(
			rank, iteration,
			text("part", spans.AttrStage, "The name of the part"),
			duration,
			number("min_s", "s", spans.AttrStageDurationMin, asIs, "The time of the fastest rank, where the row is the slowest"),
			number("median_s", "s", spans.AttrStageDurationMedian, asIs, "The median of the ranks"),
			whole(number("ranks", "1", spans.AttrStageRanks, asIs, "Of how many ranks the log has the time")),
			whole(number("slowest_rank", "1", spans.AttrStageRankSlowest, asIs, "The slowest rank")),
			whole(number("fastest_rank", "1", spans.AttrStageRankFastest, asIs, "The fastest rank")),
		),
	},
	{
		name: "evaluations", means: "Validation results", kinds: []view.Kind{view.KindEvaluation},
		columns: columnsOf(
			rank, iteration,
			number("epoch", "1", spans.AttrEpoch, asIs, "The epoch, with its fraction"),
			number("validation_loss", "{loss}", spans.AttrValidationLoss, asIs, "The loss on the validation set"),
			number("perplexity", "1", spans.AttrPerplexity, asIs, "The perplexity on the validation set"),
			text("format", spans.AttrSource, "The format of the log"),
			fieldsColumn(spans.AttrTrainFieldPrefix),
		),
	},
	{
		name: "tq_functions", means: "Functions that a batch of TransferQueue went through", kinds: []view.Kind{view.KindFunction},
		columns: columnsOf(
			service, host, pid,
			text("func", spans.AttrTQFunction, "The function"),
			textOf("tq_trace_id", "The trace id as the log has it", loggedTrace),
			durationColumn("total_duration", "s", asIs, "How long the function took"),
			columnOf("get_duration", "s", "In GET, of the lines of the stage", func(dst []byte, r *row) []byte {
				return appendShare(dst, r, spans.AttrTQGetUtilization, spans.AttrTQGetUtilizationSource)
			}),
			columnOf("compute_duration", "s", "In COMPUTE", func(dst []byte, r *row) []byte {
				return appendShare(dst, r, spans.AttrTQComputeUtilization, spans.AttrTQComputeUtilizationSource)
			}),
			columnOf("put_duration", "s", "In PUT", func(dst []byte, r *row) []byte {
				return appendShare(dst, r, spans.AttrTQPutUtilization, spans.AttrTQPutUtilizationSource)
			}),
			number("get_ratio", "%", spans.AttrTQGetUtilizationReported, percent, "The share of GET that FUNCTION_END printed"),
			number("compute_ratio", "%", spans.AttrTQComputeUtilizationReported, percent, "The share of COMPUTE that it printed"),
			number("put_ratio", "%", spans.AttrTQPutUtilizationReported, percent, "The share of PUT that it printed"),
			number("recomputed_get_ratio", "%", spans.AttrTQGetUtilization, percent, "The share of GET, of the lines of the stages"),
			number("recomputed_compute_ratio", "%", spans.AttrTQComputeUtilization, percent, "The share of COMPUTE"),
			number("recomputed_put_ratio", "%", spans.AttrTQPutUtilization, percent, "The share of PUT"),
			number("overhead_ratio", "%", spans.AttrTQOverheadUtilization, percent, "GET and PUT together"),
			number("batch_size", "{sample}", spans.AttrTQBatchSize, asIs, "Samples in the batch"),
			fieldsColumn(spans.AttrTQFieldPrefix),
		),
	},
	{
		name: "tq_operations", means: "Stages of functions and operations of the client of TransferQueue", kinds: []view.Kind{view.KindStage},
		columns: columnsOf(
			host, pid,
			text("func", spans.AttrTQFunction, "The function"),
			textOf("stage", "get, compute, put, client_get, client_put, client_get_meta, client_clear", stageOf),
			durationColumn("duration", "s", asIs, "How long it took"),
			number("batch_size", "{sample}", spans.AttrTQBatchSize, asIs, "Samples in the batch"),
			number("data_size_mb", "MiB", spans.AttrTQDataSize, mebi, "What it moved"),
			number("throughput_mbps", "MiB/s", spans.AttrTQThroughputReported, mebi, "As the log has it"),
			number("recomputed_throughput_mbps", "MiB/s", spans.AttrTQThroughput, mebi, "Size by time"),
			fieldsColumn(spans.AttrTQFieldPrefix),
		),
	},
	{
		name: "rpc_calls", means: "RPCs of ZeroMQ, with the columns of the log by the names that its guide gives them",
		kinds: []view.Kind{view.KindCall},
		columns: columnsOf(
			whole(number("ID", "1", spans.AttrZMQCallID, asIs, "The number of the call; it restarts within a file")),
			textOf("Method", "The method", func(r *row) string { return r.span.Name() }),
			number("Serialize_ms", "ms", spans.AttrZMQSerializeDuration, milli, "Serializing the request"),
			number("Send_ms", "ms", spans.AttrZMQSendDuration, milli, "Sending it"),
			number("Recv_ms", "ms", spans.AttrZMQReceiveDuration, milli, "Waiting for the response and receiving it"),
			number("Deserialize_ms", "ms", spans.AttrZMQDeserializeDuration, milli, "Deserializing it"),
			number("Total_ms", "ms", spans.AttrZMQCallDuration, milli, "The call"),
			number("Sent_KB", "KiB", spans.AttrZMQRequestSize, kibi, "The size of the request"),
			number("Recv_KB", "KiB", spans.AttrZMQResponseSize, kibi, "The size of the response"),
			number("Throughput_MBps", "MiB/s", spans.AttrZMQThroughputReported, mebi, "As the log has it"),
			number("recomputed_Throughput_MBps", "MiB/s", spans.AttrZMQThroughput, mebi, "Both sizes by time; not where tensors go through shared memory"),
			number("Server_ms", "ms", spans.AttrZMQServerDuration, milli, "The server's computation, within Recv_ms"),
			number("Offline_ms", "ms", spans.AttrZMQOfflineDuration, milli, "Work of the client before the call, beside Total_ms"),
			text("transport", spans.AttrZMQTransport, "The transport as the log has it: IPC, TCP, …"),
			fieldsColumn(spans.AttrZMQFieldPrefix),
		),
	},
	{
		name: "rpc_passes", means: "Groups of RPCs: forward passes, the calls before the first pass, calls of no pass",
		kinds: []view.Kind{view.KindPass, view.KindSession, view.KindCalls},
		columns: columnsOf(
			textOf("group", "pass, session or calls", kindOf),
			whole(number("pass", "1", spans.AttrZMQPass, asIs, "The ordinal of the pass in its session, from 1")),
			whole(number("calls", "{call}", spans.AttrZMQPassCalls, asIs, "How many calls")),
			text("end", spans.AttrZMQPassEnd, "Why it ended"),
			duration,
			number("Total_ms", "ms", spans.AttrZMQCallDuration, milli, "The calls, added up"),
			number("Serialize_ms", "ms", spans.AttrZMQSerializeDuration, milli, "Serializing requests, of all calls; likewise what follows"),
			number("Send_ms", "ms", spans.AttrZMQSendDuration, milli, "Sending requests"),
			number("Recv_ms", "ms", spans.AttrZMQReceiveDuration, milli, "Waiting for responses and receiving them"),
			number("Deserialize_ms", "ms", spans.AttrZMQDeserializeDuration, milli, "Deserializing them"),
			number("Server_ms", "ms", spans.AttrZMQServerDuration, milli, "Within Recv_ms"),
			number("unattributed_ms", "ms", spans.AttrZMQUnattributedDuration, milli, "What no stage explains"),
			number("Offline_ms", "ms", spans.AttrZMQOfflineDuration, milli, "Beside the calls"),
			number("Sent_KB", "KiB", spans.AttrZMQRequestSize, kibi, "The sizes of the requests"),
			number("Recv_KB", "KiB", spans.AttrZMQResponseSize, kibi, "The sizes of the responses"),
			number("recomputed_Throughput_MBps", "MiB/s", spans.AttrZMQThroughput, mebi, "Both sizes by the time of the calls"),
			text("slowest_method", spans.AttrZMQSlowestMethod, "The method of the slowest call"),
			number("slowest_ms", "ms", spans.AttrZMQSlowestDuration, milli, "Its time"),
			text("transport", spans.AttrZMQTransport, "The transport as the log has it: IPC, TCP, …"),
		),
	},
	{
		name: "collectives", means: "Collectives, of all their ranks together, and Send and Recv", kinds: []view.Kind{view.KindCollective},
		columns: columnsOf(
			operation,
			text("algorithm", spans.AttrNCCLAlgorithm, "As the log has it"),
			text("comm", spans.AttrNCCLCommID, "The communicator"),
			text("comm_name", spans.AttrNCCLCommName, "Its name"),
			whole(number("comm_size", "{rank}", spans.AttrNCCLCommSize, asIs, "Its ranks")),
			whole(number("sequence", "1", spans.AttrNCCLSequence, asIs, "Its number, per communicator and operation")),
			whole(number("ranks", "{rank}", spans.AttrNCCLRanks, asIs, "How many ranks have a record")),
			number("message_size", "By", spans.AttrNCCLMessageSize, asIs, "As the log has it"),
			number("data_size", "By", spans.AttrNCCLDataSize, asIs, "S of algbw = S/t"),
			number("duration_us", "µs", spans.AttrNCCLDuration, scale{tens: 6}, "From the first rank's arrival to the end"),
			number("transfer_us", "µs", spans.AttrNCCLTransferDuration, scale{tens: 6}, "Of the rank that came last"),
			number("algbw_GBps", "GB/s", spans.AttrNCCLBandwidthAlgorithm, giga, "S/t, recomputed"),
			number("busbw_GBps", "GB/s", spans.AttrNCCLBandwidthBus, giga, "That times the operation's factor"),
			number("late_us", "µs", spans.AttrNCCLLateMax, scale{tens: 6}, "How long after the first rank the last came"),
			whole(number("late_rank", "1", spans.AttrNCCLLateRank, asIs, "Which that was")),
			text("late_host", spans.AttrNCCLLateHost, "Its host"),
			number("late_cost_s", "s", spans.AttrNCCLLateCost, asIs, "What the ranks lost together waiting for it"),
			whole(number("straggler_rank", "1", spans.AttrNCCLStragglerRank, asIs, "The rank that is late again and again")),
			whole(number("missing_ranks", "{rank}", spans.AttrNCCLRanksMissingCount, asIs, "Ranks without a record")),
			whole(number("error_count", "{error}", spans.AttrNCCLErrors, asIs, "Of all ranks")),
			whole(number("retry_count", "{retry}", spans.AttrNCCLRetries, asIs, "Of all ranks")),
		),
	},
	{
		name:  "collective_ranks",
		means: "What each rank did in a collective, a row per record of a rank's log, with the columns of VCCL's telemetry by its own names",
		kinds: []view.Kind{view.KindRank, view.KindCollective},
		only: func(s ptrace.Span) bool {
			if view.KindOf(s) == view.KindRank {
				return true
			}
			_, alone := s.Attributes().Get(spans.AttrNCCLCommRank)
			return alone // a Send or Recv is a span and a record
		},
		columns: columnsOf(
			columnOf("timestamp", "s", "When the operation began, seconds of Unix", func(dst []byte, r *row) []byte {
				return appendInt(dst, int64(r.begins()), scale{tens: -9})
			}),
			columnOf("rank", "1", "The global rank, or that in the communicator", func(dst []byte, r *row) []byte {
				return appendFirst(dst, r, spans.AttrRank, spans.AttrNCCLCommRank)
			}),
			host,
			operation,
			columnOf("algorithm", "", "As the log has it", func(dst []byte, r *row) []byte {
				if r.root != nil {
					return appendText(dst, r.root.algorithm)
				}
				return appendFirst(dst, r, spans.AttrNCCLAlgorithm)
			}),
			columnOf("message_size", "By", "As the log has it", func(dst []byte, r *row) []byte {
				if v, ok := r.span.Attributes().Get(spans.AttrNCCLMessageSize); ok || r.root == nil || math.IsNaN(r.root.size) {
					if ok {
						dst = appendNumber(dst, v, asIs)
					}
					return dst
				}
				return appendFloat(dst, r.root.size, asIs)
			}),
			durationColumn("duration_us", "µs", scale{tens: 6}, "How long the rank was in it"),
			numeric(columnOf("bandwidth_gbps", "", "As the log has it, in bandwidth_unit", appendBandwidth)),
			text("bandwidth_unit", spans.AttrNCCLBandwidthUnit, "The unit that the numbers of the log fit: GB/s or Gbit/s"),
			number("algbw_GBps", "GB/s", spans.AttrNCCLBandwidthAlgorithm, giga, "S/t, recomputed"),
			number("busbw_GBps", "GB/s", spans.AttrNCCLBandwidthBus, giga, "That times the operation's factor"),
			whole(number("src_rank", "1", spans.AttrNCCLSource, asIs, "The rank that sent")),
			whole(number("dst_rank", "1", spans.AttrNCCLDestination, asIs, "The rank that received")),
			whole(number("channel_id", "1", spans.AttrNCCLChannelID, asIs, "The channel")),
			whole(number("stream_id", "1", spans.AttrNCCLStreamID, asIs, "The CUDA stream")),
			columnOf("error_count", "{error}", "As the log has it", func(dst []byte, r *row) []byte {
				return appendCount(dst, r, spans.AttrNCCLErrors, r.root != nil && r.root.errors)
			}),
			columnOf("retry_count", "{retry}", "As the log has it", func(dst []byte, r *row) []byte {
				return appendCount(dst, r, spans.AttrNCCLRetries, r.root != nil && r.root.retries)
			}),
			columnOf("comm", "", "The communicator", func(dst []byte, r *row) []byte {
				if r.root != nil {
					return appendText(dst, r.root.comm)
				}
				return appendFirst(dst, r, spans.AttrNCCLCommID)
			}),
			columnOf("sequence", "1", "The number of the collective, per communicator and operation", func(dst []byte, r *row) []byte {
				if r.root != nil {
					return appendWhole(dst, r.root.sequence)
				}
				return appendFirst(dst, r, spans.AttrNCCLSequence)
			}),
			whole(number("comm_rank", "1", spans.AttrNCCLCommRank, asIs, "The rank in the communicator")),
			number("late_us", "µs", spans.AttrNCCLLate, scale{tens: 6}, "How long after the first rank it came"),
			number("clock_offset_us", "µs", spans.AttrNCCLClockOffset, scale{tens: 6}, "How much its clock is ahead of the reference's"),
			text("state", spans.AttrNCCLState, "How far it came, of what is not completed"),
		),
	},
	{
		name: "proxy_operations", means: "What network proxies did for collectives, and the channels of their kernels",
		kinds: []view.Kind{view.KindProxyOp, view.KindProxyStep, view.KindChannel},
		columns: columnsOf(
			textOf("of", "proxy_op, proxy_step or channel", kindOf),
			durationColumn("duration_us", "µs", scale{tens: 6}, "How long it took"),
			text("direction", spans.AttrNCCLDirection, "send or receive"),
			whole(number("comm_rank", "1", spans.AttrNCCLCommRank, asIs, "The rank in the communicator")),
			whole(number("peer_rank", "1", spans.AttrNCCLPeerRank, asIs, "The other rank")),
			whole(number("channel_id", "1", spans.AttrNCCLChannelID, asIs, "The channel")),
			whole(number("step", "1", spans.AttrNCCLStep, asIs, "The index of the proxy's step")),
			text("state", spans.AttrNCCLProxyState, "What the proxy waited for or did: ScheduleSend, SendWait, …"),
			number("message_size", "By", spans.AttrNCCLMessageSize, asIs, "What was moved"),
		),
	},
	{
		name: "breakdowns", means: "Where the time of each step, batch and pass went, by all logs together: exclusive times, which add up to its length",
		kinds: []view.Kind{view.KindBreakdown}, columns: columnsOf(breakdownColumns()...),
	},
	{
		name: "summaries", means: "What logs say about themselves at their end, a row per statistic",
		columns: append(append([]column{}, head...),
			text("format", spans.AttrSource, "The format of the log, of a training log"),
			textOf("statistic", "Its name", func(r *row) string { return r.statistic }),
			columnOf("value", "", "Its value, as the log has it or in base units", func(dst []byte, r *row) []byte { return appendNumber(dst, r.value, asIs) }),
		),
	},
	{
		name: "causes", means: "Why steps, batches and passes were slow: a row per cause of a slow one, the largest first",
		columns: append(append([]column{}, head...),
			columnOf("window", "", "step, batch or pass", func(dst []byte, r *row) []byte { return appendFirst(dst, r, spans.AttrStepWindow) }),
			iteration,
			textOf("part", "The part of the time that was longer; unattributed: what no log explains", func(r *row) string { return r.cause.Part }),
			columnOf("time_s", "s", "By how much it was longer than usual", func(dst []byte, r *row) []byte { return appendGiven(dst, r.cause.Seconds) }),
			columnOf("device_time_s", "s", "The same times the ranks that waited", func(dst []byte, r *row) []byte { return appendGiven(dst, r.cause.Cost) }),
			whole(columnOf("rank", "1", "The rank that was waited for", func(dst []byte, r *row) []byte { return appendWhole(dst, r.cause.Rank) })),
			textOf("host", "Its host", func(r *row) string { return r.cause.Host }),
			textOf("comm_name", "The communicator in which it showed", func(r *row) string { return r.cause.Comm }),
			textOf("operation", "The collective in which it showed, in small letters", func(r *row) string { return strings.ToLower(r.cause.Operation) }),
			textOf("note", "What else is known", func(r *row) string { return r.cause.Note }),
		),
	},
	{
		name: "verdicts", means: "Every verdict, with its sentence",
		columns: append(append([]column{}, head...),
			textOf("verdict", "Its name", func(r *row) string { return r.verdict.Name }),
			textOf("severity", "warning or bad", func(r *row) string { return r.verdict.Severity }),
			textOf("of", "What it is said of: step, function, collective, …", kindOf),
			textOf("name", "The name of the span", func(r *row) string { return r.span.Name() }),
			iteration,
			textOf("reason", "One English sentence with the numbers", func(r *row) string { return r.verdict.Reason }),
			numberOf("value", "What was judged, in unit", func(r *row) float64 { return r.verdict.Value }),
			numberOf("threshold", "The limit that it was held against", func(r *row) float64 { return r.verdict.Threshold }),
			columnOf("unit", "", "UCUM", func(dst []byte, r *row) []byte {
				v, _ := spans.VerdictNamed(r.verdict.Name, r.verdict.Cause)
				return appendText(dst, v.Unit)
			}),
			textOf("cause", "Of several that the name stands for, which", func(r *row) string { return r.verdict.Cause }),
			textOf("stage", "Of TransferQueue, where it is about one of several", func(r *row) string { return r.verdict.Stage }),
		),
	},
	{
		name: "runs", means: "Each job as a whole, a row per job: what it was, how it ended, where its wall-clock time went (docs/reference/goodput.md)",
		columns: slices.Concat([]column{
			head[0],
			timeColumn("time", "When it begins, RFC 3339 in UTC with nanoseconds", func(r *row) pcommon.Timestamp { return r.job.start() }),
			timeColumn("end_time", "When its last record ends, likewise", func(r *row) pcommon.Timestamp { return pcommon.Timestamp(r.job.Last) }),
			service,
			textOf("hosts", "The hosts that logs name, between spaces", func(r *row) string { return strings.Join(r.job.Hosts, " ") }),
			textOf("formats", "The formats of its training logs, between spaces", func(r *row) string { return r.job.formats() }),
			columnOf("model", "", "The model as its logs state it, a JSON object of ml.model.*", func(dst []byte, r *row) []byte {
				return appendObject(dst, r.job.facts.model)
			}),
			textOf("device", "The model of the GPUs", func(r *row) string { return r.job.facts.device }),
			jobColumn("batch_size", "{sample}", "Samples of one step, of all ranks: the most", func(j *job) float64 { return j.facts.batch }),
			columnOf("labels", "", "OTEL_RESOURCE_ATTRIBUTES, and what Slurm or Kubernetes says of the job (docs/reference/runs.md), a JSON object", appendLabels),
			textOf("severity", "Of the conclusion: good, warning, bad", func(r *row) string { return r.job.conclusion.Severity }),
			textOf("conclusion", "What there is to say, in a sentence with numbers", func(r *row) string { return r.job.conclusion.Sentence }),
			textOf("end_kind", "How it ended: silent, healthy, after_end, or what ended it (docs/reference/why-dead.md)", func(r *row) string {
				return r.job.conclusion.EndKind
			}),
			textOf("end_reason", "A sentence about that", func(r *row) string { return r.job.conclusion.EndReason }),
			textOf("end_ranks", "The ranks that the evidence names as the cause, between spaces", func(r *row) string { return joinRanks(r.job.conclusion.EndRanks) }),
			textOf("end_hosts", "The hosts, likewise", func(r *row) string { return strings.Join(r.job.conclusion.EndHosts, " ") }),
			jobColumn("step_time_s_p50", "s", "The time of one step, median of the training log", func(j *job) float64 { return j.usual(digest.StepTime) }),
			jobColumn("tokens_per_sec_p50", "{token}/s", "Tokens per second of all devices, likewise", func(j *job) float64 { return j.usual(digest.TokenThroughput) }),
			jobColumn("mfu_p50", "1", "Model FLOP/s utilization, likewise", func(j *job) float64 { return j.usual(digest.MFU) }),
			jobColumn("late_cost_s", "s", "What ranks lost together waiting for the last of each collective", (*job).lateCost),
			accountColumn("wall_s", "s", "From the first line with a clock to the last", func(a *account.Account) float64 { return a.Wall }),
		}, accountColumns()),
	},
	{
		name: "lateness", means: "How late each rank came to collectives, a row per job, communicator and rank",
		columns: []column{
			head[0],
			timeColumn("time", "When the job begins, RFC 3339 in UTC with nanoseconds", func(r *row) pcommon.Timestamp { return r.job.start() }),
			textOf("comm", "The communicator", func(r *row) string { return r.job.rank.Communicator }),
			whole(rankColumn("rank", "1", "The rank in it", func(k *digest.Rank) float64 { return float64(k.Rank) })),
			textOf("host", "Its host", func(r *row) string { return r.job.rank.Host }),
			whole(rankColumn("records", "{record}", "Its records", func(k *digest.Rank) float64 { return float64(k.Records) })),
			whole(rankColumn("times_last", "{collective}", "Collectives in which it came last", func(k *digest.Rank) float64 { return float64(k.Last) })),
			rankColumn("late_mean_s", "s", "How long after the first rank it came, mean", func(k *digest.Rank) float64 { return k.Late.Mean() }),
			rankColumn("late_max_s", "s", "The most of that", func(k *digest.Rank) float64 { return k.Late.Max() }),
			rankColumn("late_cost_s", "s", "What the others lost together waiting for it", func(k *digest.Rank) float64 { return k.Cost.Sum() }),
			whole(rankColumn("straggler", "{collective}", "Collectives in which it was late again and again", func(k *digest.Rank) float64 {
				return float64(k.Straggler)
			})),
		},
	},
	{
		name: "events", means: "Lines of logs that tell how a run ends (docs/reference/events.md)", kinds: []view.Kind{view.KindEvent},
		columns: append(append([]column{}, head...),
			host, rank,
			text("class", spans.AttrEventClass, "What the line is evidence of"),
			text("form", spans.AttrEventForm, "Which line it is"),
			text("text", spans.AttrEventText, "The line, without the prefixes of launchers"),
			text("time_source", spans.AttrTimeSource, "Where the time comes from, as of spans"),
		),
	},
	{
		name: "metrics", means: "Values that logs state over time, a row per point: what a step states stands in steps too",
		columns: []column{
			head[0],
			timeColumn("time", "RFC 3339 in UTC with nanoseconds", func(r *row) pcommon.Timestamp { return r.point.Timestamp() }),
			service, host,
			textOf("metric", "The name", func(r *row) string { return r.metric.Name() }),
			textOf("unit", "UCUM", func(r *row) string { return r.metric.Unit() }),
			numeric(columnOf("value", "", "In that unit", func(dst []byte, r *row) []byte {
				switch r.point.ValueType() {
				case pmetric.NumberDataPointValueTypeInt:
					return appendInt(dst, r.point.IntValue(), asIs)
				case pmetric.NumberDataPointValueTypeDouble:
					return appendFloat(dst, r.point.DoubleValue(), asIs)
				case pmetric.NumberDataPointValueTypeEmpty:
				}
				return dst
			})),
			columnOf("labels", "", "The labels, a JSON object", func(dst []byte, r *row) []byte { return appendObject(dst, r.point.Attributes().AsRaw()) }),
		},
	},
}

// jobColumn returns a column of numbers about a job.
func jobColumn(name, unit, means string, of func(*job) float64) column {
	return columnOf(name, unit, means, func(dst []byte, r *row) []byte { return appendGiven(dst, of(r.job)) })
}

// accountColumn returns a column of numbers about the account of a job; empty cells: the job has no account.
func accountColumn(name, unit, means string, of func(*account.Account) float64) column {
	return jobColumn(name, unit, means, func(j *job) float64 {
		if j.account == nil {
			return math.NaN()
		}
		return of(j.account)
	})
}

// rankColumn returns a column of numbers about the lateness of a rank.
func rankColumn(name, unit, means string, of func(*digest.Rank) float64) column {
	return jobColumn(name, unit, means, func(j *job) float64 { return of(j.rank) })
}

// accountColumns returns the columns of the account: the seconds in each state, then sums, goodput and counts.
func accountColumns() (columns []column) {
	for s := range account.States {
		columns = append(columns, accountColumn(s.String()+"_s", "s", "Of it in the state "+s.String(), func(a *account.Account) float64 { return a.Seconds[s] }))
	}
	return append(columns,
		accountColumn("device_s", "s", "wall_s times the ranks that the job had then", func(a *account.Account) (sum float64) {
			if a.Ranks == 0 {
				return math.NaN()
			}
			for _, s := range a.Devices {
				sum += s
			}
			return sum
		}),
		accountColumn("goodput", "1", "Time of steps that counted, none longer than usual, by wall_s", (*account.Account).Goodput),
		accountColumn("goodput_google", "1", "As Google's ml-goodput-measurement has it", (*account.Account).Google),
		accountColumn("goodput_nvidia_cre", "1", "As NVIDIA's Cluster Readiness Engine has it", (*account.Account).CRE),
		accountColumn("ettr_meta", "1", "Meta's effective training time ratio", (*account.Account).ETTR),
		whole(accountColumn("steps", "{step}", "Different steps that were done", func(a *account.Account) float64 { return float64(a.Steps) })),
		whole(accountColumn("redone_steps", "{step}", "Steps that were done again", func(a *account.Account) float64 { return float64(a.Redone) })),
		whole(accountColumn("attempts", "{attempt}", "How often the training began", func(a *account.Account) float64 { return float64(len(a.Attempts)) })),
		whole(accountColumn("ranks", "{rank}", "The most that the job had", func(a *account.Account) float64 {
			if a.Ranks == 0 {
				return math.NaN()
			}
			return float64(a.Ranks)
		})),
	)
}

// breakdownColumns returns the columns of breakdowns: for each part its exclusive time, then the sum of its spans, then their union; last the state of GPUs.
func breakdownColumns() []column {
	columns := []column{
		text("window", spans.AttrStepWindow, "step, batch or pass: they lie within each other, so add up only times of one"),
		iteration,
		{name: "partial", attr: spans.AttrJoinPartial, means: "true where not all may be in it"},
	}
	for _, kind := range []struct{ name, prefix, means string }{
		{"time", spans.StepTimePrefix, "exclusive: each instant counts for one part"},
		{"sum", spans.StepSumPrefix, "the durations of all its spans, added up"},
		{"union", spans.StepUnionPrefix, "wall-clock in which it went on"},
	} {
		for _, part := range []string{
			spans.PartCompute, spans.PartWait, spans.PartCollective, spans.PartGet, spans.PartPut, spans.PartDataLoading, spans.PartCheckpoint,
			spans.PartEvaluation, spans.PartRPCSerialize, spans.PartRPCSend, spans.PartRPCReceive, spans.PartRPCServer, spans.PartRPCDeserialize,
			spans.PartRPCUnattributed, spans.PartUnattributed,
		} {
			if part == spans.PartUnattributed && kind.prefix != spans.StepTimePrefix { // a rest, without spans
				continue
			}
			columns = append(columns, number(kind.name+"_"+strings.ReplaceAll(part, ".", "_")+"_s", "s", kind.prefix+part, asIs, part+", "+kind.means))
		}
	}
	return append(columns,
		number("gpu_util_mean", "%", spans.AttrGPUUtilization, percent, "How busy the GPUs of nvml were"),
		number("gpu_power_W", "W", spans.AttrGPUPower, asIs, "Their power, mean"),
		number("gpu_temperature_max", "Cel", spans.AttrGPUTemperatureMax, asIs, "The hottest"),
	)
}

// appendLength appends the duration of a record, in the unit of s.
func appendLength(dst []byte, r *row, s scale) []byte {
	return appendInt(dst, nanoseconds(r), scaleFromNS(s))
}

// appendTime appends a time, RFC 3339 in UTC.
func appendTime(dst []byte, t pcommon.Timestamp) []byte {
	return t.AsTime().AppendFormat(dst, "2006-01-02T15:04:05.000000000Z07:00")
}

// appendWhole appends a number, if known.
func appendWhole(dst []byte, n view.Int) []byte {
	if !n.OK {
		return dst
	}
	return strconv.AppendInt(dst, n.N, 10)
}

// appendGiven appends a number; nothing for NaN.
func appendGiven(dst []byte, x float64) []byte {
	if math.IsNaN(x) {
		return dst
	}
	return appendFloat(dst, x, asIs)
}

// hostOf returns the host of a row, from its span, else from its resource.
func hostOf(r *row) string {
	if r.span == (ptrace.Span{}) {
		return r.res.Host
	}
	return cmp.Or(spans.AttrText(r.span.Attributes(), spans.AttrHostName), r.res.Host)
}

// kindOf returns the kind of the span of a row.
func kindOf(r *row) string { return view.KindOf(r.span).String() }

// appendFirst appends the first of the named attributes that the span has.
func appendFirst(dst []byte, r *row, names ...string) []byte {
	for _, name := range names {
		if v, ok := r.span.Attributes().Get(name); ok {
			return appendValue(dst, v, asIs)
		}
	}
	return dst
}

// appendStepTime appends the time of one step: as logged, else the length of the span, divided by the number of steps in the record. A record with a point in
// time has no duration.
func appendStepTime(dst []byte, r *row, s scale) []byte {
	attrs := r.span.Attributes()
	if v, ok := attrs.Get(spans.AttrStepDuration); ok {
		return appendNumber(dst, v, s)
	}
	var step view.Step
	step.Read(r.span, &r.res)
	if step.TimePoint || math.IsNaN(step.Duration) {
		return dst
	}
	if covered := step.Covered(); covered != 1 {
		return appendFloat(dst, step.Duration, s)
	}
	return appendLength(dst, r, s)
}

// loggedTrace returns TransferQueue's trace id as logged. An id that was a UUID is the trace id of the span, without its hyphens.
func loggedTrace(r *row) string {
	if t := spans.AttrText(r.span.Attributes(), spans.AttrTQTraceID); t != "" {
		return t
	}
	id := r.span.TraceID().String()
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}

// appendShare appends the time of a stage, computed from its share, an attribute, and the duration of the function. A share that the log printed (source is
// set) has too few digits, and nothing is appended.
func appendShare(dst []byte, r *row, share, source string) []byte {
	v, ok := r.span.Attributes().Get(share)
	if _, reported := r.span.Attributes().Get(source); !ok || reported || math.IsNaN(spans.ValueNumber(v)) {
		return dst
	}
	return appendInt(dst, int64(math.Round(spans.ValueNumber(v)*float64(nanoseconds(r)))), scaleFromNS(asIs))
}

// stageOf returns the name of a stage or client operation.
func stageOf(r *row) string {
	var s view.Stage
	s.Read(r.span)
	return s.Stage.String()
}

// operationOf returns the collective operation of a row in lower case, from the span, the collective of its rank, or the name of the collective's span.
func operationOf(r *row) string {
	name := spans.AttrText(r.span.Attributes(), spans.AttrNCCLOperation)
	if name == "" && r.root != nil {
		name = r.root.operation
	}
	if name == "" && view.KindOf(r.span) == view.KindCollective {
		name = r.span.Name()
	}
	return strings.ToLower(name)
}

// appendBandwidth appends the logged bandwidth in the unit that the numbers of the log fit, GB/s or Gbit/s. Spans have By/s.
func appendBandwidth(dst []byte, r *row) []byte {
	v, ok := r.span.Attributes().Get(spans.AttrNCCLBandwidthAlgorithmReported)
	if !ok {
		v, ok = r.span.Attributes().Get(spans.AttrNCCLBandwidthBusReported)
	}
	if !ok {
		return dst
	}
	x := spans.ValueNumber(v)
	if math.IsNaN(x) {
		return dst
	}
	if strings.Contains(spans.AttrText(r.span.Attributes(), spans.AttrNCCLBandwidthUnit), "bit") {
		x *= 8
	}
	return appendFloat(dst, x, giga)
}

// appendCount appends a count of errors or retries. Spans have no zeros: a missing count is 0 if the log counts (counted), else unknown.
func appendCount(dst []byte, r *row, name string, counted bool) []byte {
	if v, ok := r.span.Attributes().Get(name); ok {
		return appendNumber(dst, v, asIs)
	}
	if counted {
		return append(dst, '0')
	}
	return dst
}

// appendObject appends a JSON object as a text, sorted by name; nothing for an empty one. NaN and infinite numbers, which JSON lacks, become texts, in fields
// itself.
func appendObject(dst []byte, fields map[string]any) []byte {
	if len(fields) == 0 {
		return dst
	}
	for name, v := range fields {
		if x, ok := v.(float64); ok && !spans.Finite(x) {
			fields[name] = strconv.FormatFloat(x, 'g', -1, 64)
		}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return dst
	}
	return appendText(dst, string(text))
}
