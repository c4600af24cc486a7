package spans

// Span, attribute and metric names with their units. Names without a source comment are our own; where the
// OpenTelemetry semantic conventions (semconv 1.37) have a name, it is used.

// TimeSource says where the times of a span come from (attribute AttrTimeSource).
type TimeSource string

// The values of AttrTimeSource.
const (
	// TimeLogged: start and end both stand in the record.
	TimeLogged TimeSource = "logged"
	// TimeDerived: the end stands in the record, the start is end − duration.
	TimeDerived TimeSource = "derived"
	// TimeAnchored: a monotonic counter (perf_counter) tied to the wall clock of the log line.
	TimeAnchored TimeSource = "anchored"
	// TimeObserved: the arrival of the line while tailing.
	TimeObserved TimeSource = "observed"
	// TimeSynthetic: no clock in the log; reconstructed from order and durations, anchored at the file.
	TimeSynthetic TimeSource = "synthetic"
)

// Resource attributes.
const (
	AttrServiceName = "service.name" // semconv; the job
	AttrHostName    = "host.name"    // semconv; an IP where the log only has that
	AttrProcessPID  = "process.pid"  // semconv
	AttrRunID       = "ml.run.id"
	// AttrServiceInstanceID is Prometheus' instance label; train_metrics sets it to the run id. semconv.
	AttrServiceInstanceID = "service.instance.id"
)

// ServerSuffix goes behind the service.name of a job: it is that of the server that the job calls, where the client's log tells of both.
const ServerSuffix = "-server"

// Attributes of any span.
const (
	// AttrSummary is the span in one line for people, with units: "TQ overhead 41.6 % · get 21.8 % · put 19.8 %; batch 64; worker 1531903". The numbers are
	// attributes of their own too. Its name comes first in the alphabetical list that Jaeger shows.
	AttrSummary = "about"
	// AttrPeerService is who a CLIENT span calls. semconv 1.37
	AttrPeerService = "peer.service"

	AttrTimeSource = "trainbridge.time.source"
	// AttrTimePoint is true where only the end of the record is known: its length says nothing.
	AttrTimePoint  = "trainbridge.time.point"
	AttrIncomplete = "trainbridge.incomplete" // true: the end (or start) of the record was never seen
	// AttrIncompleteReason is one of the Incomplete… values.
	AttrIncompleteReason = "trainbridge.incomplete.reason"
	AttrLogFile          = "log.file.path" // semconv
	// AttrTrimmed is how many bytes of texts were cut from a span that no message could hold, By.
	AttrTrimmed = "trainbridge.trimmed"

	// AttrVerdict holds the names of the verdicts about this span; each that is not good is also an event EventVerdict.
	AttrVerdict         = "trainbridge.verdict"          // string[]
	AttrVerdictPrefix   = "trainbridge.verdict."         // + name of a verdict: true, a tag that can be searched
	AttrVerdictSeverity = "trainbridge.verdict.severity" // good | warning | bad: the worst of them
)

// EventVerdict is the span event that explains one verdict.
const (
	EventVerdict         = "trainbridge.verdict"
	AttrVerdictName      = "trainbridge.verdict.name"
	AttrVerdictReason    = "trainbridge.verdict.reason"    // one English sentence with the numbers
	AttrVerdictValue     = "trainbridge.verdict.value"     // unit as the attribute it judges
	AttrVerdictThreshold = "trainbridge.verdict.threshold" // same unit
)

// The values of AttrVerdictSeverity.
const (
	SeverityGood    = "good"
	SeverityWarning = "warning"
	SeverityBad     = "bad"
)

// SpanRun is the short span that stands for a whole run; every step and batch links to it.
const SpanRun = "train.run"

// Training steps. A span is one record of a training log: one step, or the several that the record covers.
// The trace is that of the iteration (StepTraceID); every receiver and rank that logs an iteration shares it.
const (
	SpanStep       = "train.step"
	SpanEvaluation = "train.evaluation" // a validation result
	SpanSummary    = "train.summary"    // what a job says about itself at its end, in the run's trace
	SpanRanks      = "train.ranks"      // what a job says about the times of its ranks (Megatron's --log-straggler)
	SpanRank       = "rank "            // the number follows: what a part of a step took on that rank (AttrRank); below a collective see NCCLRankName

	AttrRank      = "dl.rank"       // global rank
	AttrLocalRank = "dl.local_rank" // rank on its node, as in torchrun's "[default3]:"
	AttrWorldSize = "dl.world_size"

	AttrIteration  = "ml.train.iteration"  // as printed: 1-based, 0-based in NeMo
	AttrIterations = "ml.train.iterations" // planned
	AttrEpoch      = "ml.train.epoch"
	// AttrRecord is the ordinal of the record in its log, from 1, where the log names no iteration.
	AttrRecord = "ml.train.record"
	// AttrStepsCovered is how many steps the span covers, where they are several. Of the first record of a log that is not known.
	AttrStepsCovered = "ml.train.steps_covered"
	AttrSource       = "trainbridge.source"      // the format of the record: megatron, perf_monitor, jsonl, hf, …
	AttrSourceUnit   = "trainbridge.source.unit" // "ml.train.step.duration=ms …": the log's units, where they are not the base units

	// AttrStepDuration is the time of one step, s. Without AttrStepDurationKind it is what the log states of this very step.
	AttrStepDuration     = "ml.train.step.duration"
	AttrStepDurationKind = "ml.train.step.duration.kind"

	AttrLoss           = "ml.train.loss"
	AttrLearningRate   = "ml.train.learning_rate"
	AttrGradientNorm   = "ml.train.gradient.norm"
	AttrGradientZeros  = "ml.train.gradient.zeros"
	AttrParamsNorm     = "ml.train.params.norm"
	AttrLossScale      = "ml.train.loss.scale"
	AttrValidationLoss = "ml.train.validation.loss"
	AttrPerplexity     = "ml.train.validation.perplexity"

	AttrBatchSize         = "ml.train.batch.size"       // samples per step, all data-parallel ranks
	AttrConsumedSamples   = "ml.train.consumed.samples" // since the run began
	AttrConsumedTokens    = "ml.train.consumed.tokens"
	AttrSkippedIterations = "ml.train.iterations.skipped"
	AttrNaNIterations     = "ml.train.iterations.nan"
	AttrSamples           = "ml.train.samples" // of all steps covered; train_perf
	AttrTokens            = "ml.train.tokens"  // of all steps covered; train_perf

	AttrSampleThroughput      = "ml.train.sample.throughput"       // {sample}/s
	AttrTokenThroughput       = "ml.train.token.throughput"        // {token}/s, all devices
	AttrDeviceTokenThroughput = "ml.train.device.token.throughput" // {token}/s
	// {flop}/s of all devices and of one, and MFU: recomputed by train_perf, and as the log has it.
	AttrFlopThroughput               = "ml.train.flop.throughput"
	AttrFlopThroughputReported       = "ml.train.flop.throughput.reported"
	AttrDeviceFlopThroughput         = "ml.train.device.flop.throughput"
	AttrDeviceFlopThroughputReported = "ml.train.device.flop.throughput.reported"
	AttrMFU                          = "ml.train.flop.utilization"
	AttrMFUReported                  = "ml.train.flop.utilization.reported"
	// AttrHFU counts recomputed activations as work too.
	AttrHFU = "ml.train.hardware.flop.utilization"
	// AttrFlopDisagreement is |recomputed − reported| / recomputed of the device FLOP/s.
	AttrFlopDisagreement = "ml.train.flop.throughput.disagreement"
	AttrFlopFormula      = "ml.train.flop.formula"    // megatron | flagscale | reported (no model is known: MFU is of the log's number)
	AttrFlopConvention   = "ml.train.flop.convention" // causal | full: half or all of the attention matrix
	AttrFlopRecompute    = "ml.train.flop.recompute"  // none | selective | full
	// AttrFlopUnsupported says what of the model is not counted: there are no recomputed FLOPs then, and no verdict about the log's.
	AttrFlopUnsupported = "ml.train.flop.unsupported"
	AttrFlopPeak        = "ml.train.device.flop.peak"
	AttrDeviceModel     = "hw.model" // semconv
	// {flop} of one step, all devices: what train_perf computes, and what a FLOPS breakdown printed (there called TFLOPS).
	AttrFlopCount          = "ml.train.flop.count"
	AttrFlopCountReported  = "ml.train.flop.count.reported"
	AttrFlopCountForward   = "ml.train.flop.count.forward"
	AttrFlopCountBackward  = "ml.train.flop.count.backward"
	AttrFlopCountOptimizer = "ml.train.flop.count.optimizer"

	AttrMemoryUsage        = "ml.train.device.memory.usage" // By, allocated, of the rank that logs
	AttrMemoryPeak         = "ml.train.device.memory.peak"
	AttrMemoryReserved     = "ml.train.device.memory.reserved"
	AttrMemoryReservedPeak = "ml.train.device.memory.reserved.peak"
	AttrMemoryUtilization  = "ml.train.device.memory.utilization" // 0..1
	AttrGPUUtilization     = "hw.gpu.utilization"                 // semconv; 0..1; on spans the mean over the devices of the log's list
	AttrGPUUtilizationMin  = "hw.gpu.utilization.min"             // of the idlest of them
	AttrDeviceEnergy       = "ml.train.device.energy"             // J per step
	AttrDevicePower        = "ml.train.device.power"              // W
	AttrHardwareID         = "hw.id"                              // semconv; on metrics of logs: the index of the device in the log's list

	// AttrStage names a part of a step (verl's timing_s/*, Megatron's timers), which is a child span of that name.
	AttrStage = "ml.train.stage"
	// AttrStageOrder says where a stage is drawn, since logs state how long it took and not when: one of the Order… values.
	AttrStageOrder       = "ml.train.stage.order"
	AttrStageDurationMin = "ml.train.stage.duration.min" // s; of the fastest rank, where the span is the slowest
	// Where the log has the time of each rank: of how many ranks, their median, and which one was the slowest and which the fastest. Some of them are
	// child spans, SpanRank.
	AttrStageRanks          = "ml.train.stage.ranks"
	AttrStageDurationMedian = "ml.train.stage.duration.median" // s
	AttrStageRankSlowest    = "ml.train.stage.rank.slowest"
	AttrStageRankFastest    = "ml.train.stage.rank.fastest"

	// On a step, or a report about ranks: the rank that computed for the longest, compared with the others of its pipeline stage, its peers; how long that
	// took, and the median of the peers; in which part it lost most. Only where the log tells which ranks do the same.
	AttrRankSlowest              = "ml.train.rank.slowest"
	AttrRankSlowestDuration      = "ml.train.rank.slowest.duration" // s
	AttrRankSlowestStage         = "ml.train.rank.slowest.stage"
	AttrRankSlowestPeers         = "ml.train.rank.slowest.peers"          // how many
	AttrRankSlowestPeersDuration = "ml.train.rank.slowest.peers.duration" // s
	// AttrRanksBehind are the ranks that lost at least half as much as the slowest, which is the first: ranks that share each operation are slow together.
	AttrRanksBehind = "ml.train.ranks.behind" // int[], 16 at most

	// AttrTrainFieldPrefix goes before the name of a log field without a name here.
	AttrTrainFieldPrefix = "ml.train.field."
)

// The values of AttrStageOrder.
const (
	OrderTrainer = "trainer" // end to end with the others, in the order in which the trainer's code runs them
	OrderUnknown = "unknown" // from the start of what it is a part of; or that it ends with it, where the parts took longer than the whole
)

// The values of AttrStepDurationKind.
const (
	DurationStep     = "step"     // of this very step: the attribute is left out
	DurationMean     = "mean"     // over the steps covered
	DurationMedian   = "median"   // of later half of all steps so far (FlagScale's perf_monitor): an estimate for this one
	DurationInterval = "interval" // not in the log: time since the record before, by steps covered. Evaluation and checkpoints are in it
)

// Verdicts of train_perf about training steps (values of AttrVerdictName).
const (
	VerdictThroughputLow      = "train_throughput_low"       // warning: below its own P10, and clearly so (seed 004)
	VerdictSlowdown           = "train_slowdown"             // bad: drift against the run's own baseline
	VerdictLossNotFinite      = "train_loss_not_finite"      // bad: NaN or infinite
	VerdictLossSpike          = "train_loss_spike"           // warning
	VerdictRankSlow           = "train_rank_slow"            // bad: a rank computes for longer than those that do the same, again and again
	VerdictMFULow             = "train_mfu_low"              // warning
	VerdictMFUImpossible      = "train_mfu_impossible"       // bad: above 1 (2 in FP8, 4 in FP4)
	VerdictFlagScaleDP        = "flagscale_dp_omitted"       // warning: perf_monitor's samples/s and TFLOPS leave out the data-parallel size
	VerdictFlagScaleMoE       = "flagscale_moe_as_dense"     // warning: a mixture of experts counted as a dense model
	VerdictFlagScaleSwiGLU    = "flagscale_swiglu_omitted"   // warning: experts with SwiGLU counted without it
	VerdictFlagScaleGQA       = "flagscale_gqa_as_mha"       // warning: grouped queries counted as full attention heads
	VerdictFlopsDisagree      = "train_flops_disagree"       // warning: reported and recomputed FLOP/s differ, for no reason known
	VerdictThroughputReported = "train_throughput_disagrees" // warning: logged samples/s × step time is not the batch
)

// Metrics of training steps. Gauges that a log states come from its receiver and have the name of the attribute (AttrLoss, …); these
// come from the train_metrics connector, beside gauges of what train_perf adds (AttrMFU, AttrFlopThroughput, …).
const (
	MetricStepDuration = "ml.train.step.duration" // histogram, s; one value per record
	// MetricStepDurationReported is what a job itself sends as a number rather than a distribution: the name of the histogram is taken.
	MetricStepDurationReported = "ml.train.step.duration.reported" // gauge, s
	MetricStageDuration        = "ml.train.stage.duration"         // histogram, s
	MetricSteps                = "ml.train.steps"                  // counter, {step}
	MetricSamples              = "ml.train.samples"                // counter, {sample}
	MetricTokens               = "ml.train.tokens"                 // counter, {token}
	MetricFlopDisagreement     = AttrFlopDisagreement              // histogram, 1
	// MetricFinalDisagreement is |recomputed − reported| / recomputed of one final statistic (AttrStatistic), from flagscale.
	MetricFinalDisagreement = "ml.train.final.disagreement" // gauge, 1
	AttrStatistic           = "ml.train.final.statistic"
)

// TransferQueue (verl utils/transferqueue_utils.py @c55ddc26, mission seed 000).
const (
	SpanTQGet       = "tq.get"
	SpanTQCompute   = "tq.compute"
	SpanTQPut       = "tq.put"
	SpanTQClientGet = "tq.client.get"
	SpanTQClientPut = "tq.client.put"
	// SpanTQClientGetMeta and SpanTQClientClear are operations that only [TQ-LOG] lines show (verl @89c88d49).
	SpanTQClientGetMeta = "tq.client.get_meta"
	SpanTQClientClear   = "tq.client.clear"

	PeerTransferQueue = "transferqueue" // AttrPeerService of client operations

	AttrTQFunction  = "tq.function"
	AttrTQStage     = "tq.stage"      // function | get | compute | put | client_get | client_put | client_get_meta | client_clear
	AttrTQTraceID   = "tq.trace_id"   // the original text
	AttrTQBatchSize = "tq.batch.size" // samples
	AttrTQDataSize  = "tq.data.size"  // By; from data_size_mb, which is MiB
	// AttrTQThroughput is size / duration of a client operation, By/s; AttrTQThroughputReported is throughput_mbps, which is MiB/s, in By/s.
	AttrTQThroughput         = "tq.throughput"
	AttrTQThroughputReported = "tq.throughput.reported"

	// Shares of the function's time, 0..1, recomputed by train_perf from the child spans; *.reported is what FUNCTION_END printed.
	AttrTQGetUtilization             = "tq.get.utilization"
	AttrTQComputeUtilization         = "tq.compute.utilization"
	AttrTQPutUtilization             = "tq.put.utilization"
	AttrTQOverheadUtilization        = "tq.overhead.utilization"     // get + put
	AttrTQUnattributedUtilization    = "tq.unattributed.utilization" // 1 − wall-clock union of the stages
	AttrTQGetUtilizationReported     = "tq.get.utilization.reported"
	AttrTQComputeUtilizationReported = "tq.compute.utilization.reported"
	AttrTQPutUtilizationReported     = "tq.put.utilization.reported"
	// A share whose stage lines were lost is what FUNCTION_END printed, and has its source: TQShareReported. Without it it was recomputed.
	AttrTQGetUtilizationSource     = "tq.get.utilization.source"
	AttrTQComputeUtilizationSource = "tq.compute.utilization.source"
	AttrTQPutUtilizationSource     = "tq.put.utilization.source"
	// AttrTQUtilizationDisagreement is the largest |recomputed − reported| of the three, 0..1.
	AttrTQUtilizationDisagreement = "tq.utilization.disagreement"

	// Of the metrics that tq_trace makes of the records beside the [TQ-…] ones.
	AttrTQDirection   = "tq.direction"    // get | put
	AttrTQStorageUnit = "tq.storage.unit" // TQ_STORAGE_UNIT_4f1c09ab
	AttrTQOperation   = "tq.operation"    // PUT_DATA, GET_DATA, …

	// AttrTQJudged is true on the scope of spans that a train_perf has seen: the next one leaves its TransferQueue spans alone.
	AttrTQJudged = "trainbridge.tq.judged"

	// AttrTQFieldPrefix goes before the name of a log field this version does not know.
	AttrTQFieldPrefix = "tq.field."
)

// TQShareReported is the value of AttrTQGetUtilizationSource and its like.
const TQShareReported = "reported"

// The values of AttrTQStage.
const (
	StageFunction      = "function"
	StageGet           = "get"
	StageCompute       = "compute"
	StagePut           = "put"
	StageClientGet     = "client_get"
	StageClientPut     = "client_put"
	StageClientGetMeta = "client_get_meta"
	StageClientClear   = "client_clear"
)

// Verdicts of train_perf about TransferQueue (values of AttrVerdictName); thresholds from the mission, seed 000 section 4.
const (
	VerdictTQComputeShareGood = "tq_compute_share_good" // good: compute > 80 % of the function
	VerdictTQOverheadElevated = "tq_overhead_elevated"  // warning: get + put 20 to 30 %
	VerdictTQOverheadHigh     = "tq_overhead_high"      // bad: get + put > 30 %
	VerdictTQThroughputGood   = "tq_throughput_good"    // good: client operation > 500 MiB/s
	VerdictTQThroughputLow    = "tq_throughput_low"     // bad: client operation < 100 MiB/s
	VerdictTQGetFluctuating   = "tq_get_fluctuating"    // warning: GET times vary
	VerdictTQPutFluctuating   = "tq_put_fluctuating"    // warning: PUT times vary
)

// Metrics of TransferQueue. Those of spans come from the train_metrics connector, the others from tq_trace.
const (
	MetricTQFunctionDuration = "tq.function.duration" // histogram, s
	MetricTQStageDuration    = "tq.stage.duration"    // histogram, s
	// One population for the share of TransferQueue: the functions whose shares are known, and how much of that time was in each stage. The histograms
	// have two: a stage may be whole where its function is not.
	MetricTQFunctionTime            = "tq.function.time"                     // counter, s
	MetricTQStageTime               = "tq.stage.time"                        // counter, s; by AttrTQStage = get, compute, put
	MetricTQStageUtilization        = "tq.stage.utilization"                 // gauge, 1; the function that ended last
	MetricTQOverheadUtilization     = "tq.overhead.utilization"              // gauge, 1; the function that ended last
	MetricTQClientThroughput        = "tq.client.throughput"                 // histogram, By/s
	MetricTQUtilizationDisagreement = "tq.utilization.reported.disagreement" // histogram, 1
	MetricTQVerdicts                = "trainbridge.verdicts"                 // counter, {verdict}
	MetricIncompleteSpans           = "trainbridge.incomplete.spans"         // counter, {span}; kept out of the duration histograms
)

// ZeroMQ RPC (amoncjj/TSQP tee_gpu/tee_runner_optimized.py, mission seed 002). A span per call, named by its method, kind CLIENT, with
// AttrRPCSystem; below it the stages. Calls are grouped into traces whose root is one of the first three.
const (
	SpanRPCPass    = "rpc.pass"    // one forward pass: from a pass_start method to a pass_end method
	SpanRPCSession = "rpc.session" // what a client calls before its first pass (Init)
	SpanRPCCalls   = "rpc.calls"   // calls that belong to no pass
	// SpanRPCSummary is what the log says about itself at its end; in the trace of the last group.
	SpanRPCSummary = "rpc.summary"

	SpanRPCSerialize    = "rpc.serialize"
	SpanRPCSend         = "rpc.send"
	SpanRPCReceive      = "rpc.receive" // server queue, compute and transfer are in it
	SpanRPCDeserialize  = "rpc.deserialize"
	SpanRPCServer       = "rpc.server.compute" // server-reported, below rpc.receive; when in it, the log does not say
	SpanRPCUnattributed = "rpc.unattributed"   // of the call's time, what no stage explains
	SpanRPCOffline      = "rpc.offline"        // client work for a call, before it: beside the call, not in its time

	AttrRPCSystem        = "rpc.system.name"   // semconv 1.39
	AttrRPCMethod        = "rpc.method"        // semconv
	AttrNetworkTransport = "network.transport" // semconv: unix (IPC), tcp
	AttrZMQTransport     = "zeromq.transport"  // as the log has it: IPC, TCP, IPC+SHM, IPC+SHM+OTP
	// AttrZMQSharedMemory is true where tensors go through shared memory: sizes are then those of the messages only, and no bandwidth is made of them.
	AttrZMQSharedMemory = "zeromq.shared_memory"
	AttrZMQCallID       = "zeromq.call.id"       // as printed; restarts within a file
	AttrZMQRequestSize  = "zeromq.request.size"  // By; from Sent(KB), KB = 1024 B, two decimals: ± 5 B
	AttrZMQResponseSize = "zeromq.response.size" // By
	// AttrZMQThroughput is (request + response) / duration, By/s; *.reported is the log's column, which is MiB/s, in By/s.
	AttrZMQThroughput         = "zeromq.throughput"
	AttrZMQThroughputReported = "zeromq.throughput.reported"
	// AttrZMQThroughputDisagreement is |recomputed − reported| / recomputed, 0 where print rounding explains it; of a group: the largest of its calls.
	AttrZMQThroughputDisagreement = "zeromq.throughput.disagreement"
	// The slowest and the largest calls of a group carry their rank there, 1..5.
	AttrZMQCallSlowest = "zeromq.call.slowest"
	AttrZMQCallLargest = "zeromq.call.largest"

	// Of groups. Durations are sums over the calls, s; they are not there where the log has no such column.
	AttrZMQPass                 = "zeromq.pass.ordinal" // in its session, from 1; ids that begin anew do not begin a session
	AttrZMQPassCalls            = "zeromq.pass.calls"   // {call}
	AttrZMQPassEnd              = "zeromq.pass.end"     // why it ended: one of the PassEnd… values
	AttrZMQCallDuration         = "zeromq.call.duration"
	AttrZMQSerializeDuration    = "zeromq.serialize.duration"
	AttrZMQSendDuration         = "zeromq.send.duration"
	AttrZMQReceiveDuration      = "zeromq.receive.duration"
	AttrZMQDeserializeDuration  = "zeromq.deserialize.duration"
	AttrZMQServerDuration       = "zeromq.server.duration" // within receive
	AttrZMQUnattributedDuration = "zeromq.unattributed.duration"
	AttrZMQOfflineDuration      = "zeromq.offline.duration" // beside the calls
	AttrZMQSlowestMethod        = "zeromq.slowest.method"
	AttrZMQSlowestDuration      = "zeromq.slowest.duration"

	// Shares of zeromq.call.duration, by train_perf: 0..1, unless a log contradicts itself.
	AttrZMQSerializeUtilization    = "zeromq.serialize.utilization"
	AttrZMQSendUtilization         = "zeromq.send.utilization"
	AttrZMQReceiveUtilization      = "zeromq.receive.utilization"
	AttrZMQDeserializeUtilization  = "zeromq.deserialize.utilization"
	AttrZMQServerUtilization       = "zeromq.server.utilization"
	AttrZMQUnattributedUtilization = "zeromq.unattributed.utilization"
	AttrZMQTransportUtilization    = "zeromq.transport.utilization" // send + receive − server

	// AttrZMQFieldPrefix goes before the name of a column this version does not know, AttrZMQFinalPrefix before that of a line of the summary.
	AttrZMQFieldPrefix = "zeromq.field."
	AttrZMQFinalPrefix = "zeromq.final."
	// AttrZMQFinalDisagreement is the largest |recomputed − reported| / recomputed over the statistics of the summary.
	AttrZMQFinalDisagreement = "zeromq.final.disagreement"
)

// RPCSystemZeroMQ is the value of AttrRPCSystem.
const RPCSystemZeroMQ = "zeromq"

// The values of AttrZMQPassEnd.
const (
	PassEndMethod  = "method"    // a pass_end method
	PassEndNext    = "next"      // the next pass began
	PassEndMax     = "max_calls" // it had max_calls calls
	PassEndSummary = "summary"   // the log's summary
	PassEndRestart = "restart"   // the client began anew: incomplete
	PassEndTimeout = "timeout"   // nothing came for pending_timeout: incomplete
)

// Where a trace would have too many spans, the shorter ones of one name become one span with these attributes.
const (
	AttrAggregateCount = "trainbridge.aggregate.count" // spans it stands for
	AttrAggregateSum   = "trainbridge.aggregate.sum"   // s
	AttrAggregateP50   = "trainbridge.aggregate.p50"   // s
	AttrAggregateMax   = "trainbridge.aggregate.max"   // s
)

// Verdicts of train_perf about groups of RPCs (values of AttrVerdictName); thresholds and advice from the mission, seed 002.
const (
	VerdictZMQSerializeHigh = "zeromq_serialize_high" // warning: serialization > 30 % of the calls' time
	VerdictZMQTransportHigh = "zeromq_transport_high" // warning: send + receive, without server compute, > 30 %
	VerdictZMQCallsHigh     = "zeromq_calls_high"     // warning: > 50 calls per pass
	VerdictZMQTransportTCP  = "zeromq_transport_tcp"  // warning: TCP where IPC was expected
)

// Metrics of RPCs, by train_metrics but for the last.
const (
	MetricRPCCallDuration           = "rpc.client.call.duration"       // semconv 1.39; histogram, s; by AttrRPCMethod
	MetricRPCRequestSize            = "rpc.client.request.size"        // semconv 1.37, removed later; histogram, By
	MetricRPCResponseSize           = "rpc.client.response.size"       // as above
	MetricZMQPassDuration           = "zeromq.pass.duration"           // histogram, s
	MetricZMQPassCalls              = "zeromq.pass.calls"              // histogram, {call}
	MetricZMQStageUtilization       = "zeromq.stage.utilization"       // gauge, 1; by AttrZMQStage; the pass that ended last
	MetricZMQThroughputDisagreement = "zeromq.throughput.disagreement" // histogram, 1
	AttrZMQStage                    = "zeromq.stage"                   // serialize | send | receive | deserialize | server | unattributed | transport
	// MetricZMQFinalDisagreement is |recomputed − reported| / recomputed of one line of the summary (AttrZMQStatistic), from zmq_rpc.
	MetricZMQFinalDisagreement = "zeromq.final.disagreement" // gauge, 1
	AttrZMQStatistic           = "zeromq.final.statistic"
)

// Collectives (NCCL Inspector, NCCL's example profiler, PyTorch's Flight Recorder, VCCL telemetry; mission seed 003). All ranks' records of one collective
// share a trace. Its root is named by the operation (AllReduce, …) and has AttrNCCLRanks; below it a span per rank (NCCLRankName). Send and Recv are one span.
const (
	SpanNCCLRank      = "nccl.rank"       // what one rank did, where it is not named by NCCLRankName: the others of many, too many names
	SpanNCCLLate      = "nccl.late"       // below the rank that came last: from the first arrival to its own; all others wait for it
	SpanNCCLWait      = "nccl.wait"       // below a rank: from its arrival until the last has come
	SpanNCCLTransfer  = "nccl.transfer"   // below a rank: from when the last has come
	SpanNCCLChannel   = "nccl.channel"    // a kernel's channel (thread block)
	SpanNCCLProxyOp   = "nccl.proxy.op"   // CPU time of the network proxy: not to be compared with GPU time
	SpanNCCLProxyStep = "nccl.proxy.step" // a step of it

	AttrNCCLOperation    = "nccl.operation"     // AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Send, Recv, …
	AttrNCCLAlgorithm    = "nccl.algorithm"     // as logged: RING, ring, NVLS, …
	AttrNCCLProtocol     = "nccl.protocol"      // LL, LL128, SIMPLE
	AttrNCCLDatatype     = "nccl.datatype"      // as logged
	AttrNCCLCommID       = "nccl.comm.id"       // "0x…", the 64-bit hash, or as logged
	AttrNCCLCommName     = "nccl.comm.name"     // "DP Group 0"
	AttrNCCLCommSize     = "nccl.comm.size"     // ranks
	AttrNCCLCommNodes    = "nccl.comm.nodes"    // nodes
	AttrNCCLCommRank     = "nccl.comm.rank"     // rank in the communicator; AttrRank where the log has the global one
	AttrNCCLSequence     = "nccl.sequence"      // per communicator and operation
	AttrNCCLSequenceKind = "nccl.sequence.kind" // NCCLSequence…: not in the log
	AttrNCCLUnconfirmed  = "nccl.unconfirmed"   // true: ranks may be missing that took part, so that nothing is said of who was late, of bandwidth and of what is missing
	AttrNCCLMessageSize  = "nccl.message.size"  // By, as logged: per rank for AllGather and ReduceScatter of NCCL
	AttrNCCLDataSize     = "nccl.data.size"     // By, S of algbw = S/t: of all ranks together for AllGather, ReduceScatter, AllToAll
	AttrNCCLChannels     = "nccl.channels"      // how many
	AttrNCCLChannelID    = "nccl.channel.id"
	AttrNCCLStreamID     = "nccl.stream.id"
	AttrNCCLPeerRank     = "nccl.peer.rank"
	AttrNCCLSource       = "nccl.source.rank"
	AttrNCCLDestination  = "nccl.destination.rank"
	AttrNCCLSourceHost   = "nccl.source.host"
	AttrNCCLDestHost     = "nccl.destination.host"
	AttrNCCLDirection    = "nccl.direction" // send | receive
	AttrNCCLStep         = "nccl.proxy.step.index"
	AttrNCCLProxyState   = "nccl.proxy.operation" // ScheduleSend, SendWait, …
	AttrNCCLTiming       = "nccl.timing.source"   // kernel_gpu | kernel_cpu | collective_cpu, …
	AttrNCCLState        = "nccl.state"           // of what is not completed: started | scheduled

	// Of the root. AttrNCCLDuration is that of the rank that took longest, from the first arrival on; AttrNCCLTransferDuration that of the one that took
	// least: it came last and waited for no one. s. Bandwidths are of the latter.
	AttrNCCLRanks            = "nccl.ranks" // whose records are in the trace
	AttrNCCLDuration         = "nccl.collective.duration"
	AttrNCCLTransferDuration = "nccl.collective.transfer.duration"
	// By/s: S/t, and that times the factor of nccl-tests (doc/PERFORMANCE.md); on a rank's span by its own duration, waiting included.
	AttrNCCLBandwidthAlgorithm = "nccl.bandwidth.algorithm"
	AttrNCCLBandwidthBus       = "nccl.bandwidth.bus"
	// AttrNCCLBandwidthBusMean is the mean of the ranks' own, with their waiting, as perf_summary_exporter.py of NCCL Inspector has it (mean_coll_busbw_gbs).
	AttrNCCLBandwidthBusMean = "nccl.bandwidth.bus.mean"
	// On ranks: as the log has it, in By/s, with the log's unit, and |recomputed − reported| / recomputed where that is more than print rounding (on the root: the largest).
	AttrNCCLBandwidthAlgorithmReported = "nccl.bandwidth.algorithm.reported"
	AttrNCCLBandwidthBusReported       = "nccl.bandwidth.bus.reported"
	AttrNCCLBandwidthUnit              = "nccl.bandwidth.reported.unit" // GB/s | Gbit/s
	AttrNCCLBandwidthDisagreement      = "nccl.bandwidth.disagreement"
	// Against the median of the window before, for this communicator, operation and size (power of two): that median, By/s, and how many robust standard
	// deviations below it.
	AttrNCCLBandwidthBaseline  = "nccl.bandwidth.baseline"
	AttrNCCLBandwidthDeviation = "nccl.bandwidth.deviation"
	AttrNCCLErrors             = "nccl.errors"  // on the root: of all ranks
	AttrNCCLRetries            = "nccl.retries" // as above

	// Who was late. On a rank: s behind the first to arrive. On the root: the last to arrive (host, rank), how late, and what that cost the others: the time
	// that all of them together would have been spared had it come with the last but one, s.
	AttrNCCLLate     = "nccl.late"
	AttrNCCLLast     = "nccl.last" // true: of the rank that came last
	AttrNCCLLateMax  = "nccl.late.max"
	AttrNCCLLateRank = "nccl.late.rank"
	AttrNCCLLateHost = "nccl.late.host"
	AttrNCCLLateCost = "nccl.late.cost"
	// On the root: the slowest rank over the window, where one is clearly slow: how late it is by median, s behind the median rank; its relative score (the best
	// rank's time between collectives ÷ its own, 0..1) where the log has times; and what it cost the others over the window, s.
	AttrNCCLStragglerRank  = "nccl.straggler.rank"
	AttrNCCLStragglerHost  = "nccl.straggler.host"
	AttrNCCLStragglerLate  = "nccl.straggler.late"
	AttrNCCLStragglerScore = "nccl.straggler.score"
	AttrNCCLStragglerCost  = "nccl.straggler.cost"
	AttrNCCLStragglers     = "nccl.straggler.ranks" // int[]: all of them, the slowest first
	AttrNCCLStragglersOver = "nccl.straggler.over"  // int[]: those that are as fast as the others again from here on

	// What did not come. On the root: ranks that were seen in this communicator before and have no record here (int[], the first 32) and how many;
	// ranks whose record says that they had not completed; how many sequence numbers no rank has logged before this one (small messages are not).
	AttrNCCLRanksMissing      = "nccl.ranks.missing"
	AttrNCCLRanksMissingCount = "nccl.ranks.missing.count"
	AttrNCCLRanksStuck        = "nccl.ranks.stuck"
	AttrNCCLWaited            = "nccl.waited" // s, without completion
	AttrNCCLSequenceGap       = "nccl.sequence.gap"
	AttrNCCLHang              = "nccl.hang"     // true: not completed within hang_timeout
	AttrNCCLMismatch          = "nccl.mismatch" // true: the ranks disagree about the message size

	// Clocks. On a rank: how much its host's clock is ahead of the reference host's, s, and ± what. Times are corrected by it only where AttrNCCLClockCorrected.
	AttrNCCLClockOffset      = "nccl.clock.offset"
	AttrNCCLClockUncertainty = "nccl.clock.uncertainty"
	AttrNCCLClockReference   = "nccl.clock.reference" // on the root: the host
	AttrNCCLClockCorrected   = "nccl.clock.corrected" // true

	// Of a link from rank to rank: bandwidth of what the record says, By/s.
	AttrNCCLLinkBandwidth      = "nccl.link.bandwidth"
	AttrNCCLLinkBandwidthWorst = "nccl.link.bandwidth.min"
	AttrNCCLLinkSends          = "nccl.link.sends"
	AttrNCCLLinkHot            = "nccl.link.hot"  // string[] "0→8": they carry much more than the others
	AttrNCCLLinkSlow           = "nccl.link.slow" // string[] "0→8": much slower than the others
)

// The values of AttrNCCLSequenceKind, where the log has no number.
const (
	NCCLSequenceOrdinal = "ordinal" // counted: the n-th record of each rank, which agree in size and time
	NCCLSequenceTime    = "time"    // found by operation, size and time; then there is no number
)

// The reasons (AttrIncompleteReason) why a collective left without all its ranks.
const (
	NCCLIncompleteTimeout = "hang_timeout"  // nothing came for so long
	NCCLIncompleteGap     = "gap"           // the ranks that miss have gone on
	NCCLIncompleteGone    = "rank_gone"     // the ranks that miss were waited for in vain before
	NCCLIncompleteEvicted = "evicted"       // there was no more room to wait
	NCCLIncompleteEnd     = "end"           // reading ended
	NCCLIncompleteStuck   = "not_completed" // the records themselves say so
)

// Verdicts of train_perf about collectives (values of AttrVerdictName).
const (
	VerdictNCCLHang          = "nccl_hang"           // bad: did not complete
	VerdictNCCLRankMissing   = "nccl_rank_missing"   // bad: a rank that took part before has no record, and none later
	VerdictNCCLSequenceGap   = "nccl_sequence_gap"   // warning: records are missing in between
	VerdictNCCLStraggler     = "nccl_straggler"      // bad: one rank is late again and again
	VerdictNCCLLate          = "nccl_late"           // warning: one rank was late, and by more than the transfer took
	VerdictNCCLBandwidthLow  = "nccl_bandwidth_low"  // warning: below the baseline
	VerdictNCCLErrors        = "nccl_errors"         // bad
	VerdictNCCLRetries       = "nccl_retries"        // warning
	VerdictNCCLMismatch      = "nccl_mismatch"       // bad: ranks with different sizes
	VerdictNCCLLinkSlow      = "nccl_link_slow"      // warning
	VerdictNCCLLinkHot       = "nccl_link_hot"       // warning
	VerdictNCCLBandwidthUnit = "nccl_bandwidth_unit" // warning: the reported bandwidth is not what size and duration give
)

// Metrics of collectives: of spans by train_metrics …
const (
	MetricNCCLDuration  = "nccl.collective.duration"  // histogram, s; from the first arrival to the end
	MetricNCCLLate      = "nccl.collective.late"      // histogram, s: how late the last rank was
	MetricNCCLLateCost  = "nccl.collective.late.cost" // counter, s: rank time lost waiting for the last
	MetricNCCLIO        = "nccl.collective.io"        // counter, By: AttrNCCLDataSize
	MetricNCCLBandwidth = "nccl.collective.bandwidth" // gauge, By/s; by AttrNCCLBandwidthKind; the collective that ended last
	MetricNCCLErrors    = "nccl.collective.errors"    // counter, {error}
	MetricNCCLRetries   = "nccl.collective.retries"   // counter, {retry}
	MetricNCCLMissing   = "nccl.collective.missing"   // counter, {record}: ranks without a record
	// AttrNCCLBandwidthKind is algbw or busbw, the names of nccl-tests, or busbw_mean (AttrNCCLBandwidthBusMean).
	AttrNCCLBandwidthKind = "nccl.bandwidth.kind"

	// … and by the nccl receiver.
	MetricNCCLLinkIO           = "nccl.link.io"           // counter, By; by source and destination rank
	MetricNCCLLinkBandwidth    = "nccl.link.bandwidth"    // gauge, By/s; as above
	MetricNCCLNodeIO           = "nccl.node.io"           // counter, By; by source and destination host
	MetricNCCLDeviceBandwidth  = "nccl.device.bandwidth"  // gauge, By/s; of a NIC (log.file.path), as VCCL logs it; by AttrNCCLStatistic
	MetricNCCLDeviceAbnormal   = "nccl.device.abnormal"   // gauge, {status}: VCCL's status bit
	MetricNCCLRecordsDropped   = "nccl.records.dropped"   // counter, {record}: by NCCL Inspector itself; by AttrNCCLRecordKind
	MetricNCCLRankScore        = "nccl.rank.score"        // gauge, 1
	MetricNCCLClockOffset      = "nccl.clock.offset"      // gauge, s; by host.name
	MetricNCCLClockUncertainty = "nccl.clock.uncertainty" // gauge, s
	AttrNCCLStatistic          = "nccl.statistic"         // mean | max
	AttrNCCLRecordKind         = "nccl.record.kind"       // coll | p2p | proxy | proxy_op | proxy_step | proxy_pxn
)

// Metrics that tq_trace makes of log lines that state them (verl main @1dda039b, TransferQueue @b75d570d). All are gauges.
const (
	MetricTQTaskDuration = "tq.task.duration" // s; "cost time" of one get or put
	// One storage unit within the record's time range, over all operations …
	MetricTQStorageRequests    = "tq.storage.requests"             // {request}
	MetricTQStorageRate        = "tq.storage.request.rate"         // {request}/s
	MetricTQStorageDurationAvg = "tq.storage.request.duration.avg" // s
	// … and by operation.
	MetricTQOperationRequests    = "tq.storage.operation.requests"     // {request}
	MetricTQOperationRate        = "tq.storage.operation.rate"         // {request}/s
	MetricTQOperationDurationAvg = "tq.storage.operation.duration.avg" // s
	MetricTQOperationDurationMax = "tq.storage.operation.duration.max" // s
	MetricTQOperationDurationMin = "tq.storage.operation.duration.min" // s
)

// Units, UCUM.
const (
	UnitRequests          = "{request}"
	UnitRequestsPerSecond = "{request}/s"
	UnitSeconds           = "s"
	UnitBytesPerSecond    = "By/s"
	UnitOne               = "1"
	UnitVerdict           = "{verdict}"
	UnitStep              = "{step}"
	UnitSamples           = "{sample}"
	UnitTokens            = "{token}"
	UnitSamplesPerSecond  = "{sample}/s"
	UnitTokensPerSecond   = "{token}/s"
	UnitFlop              = "{flop}"
	UnitFlopPerSecond     = "{flop}/s"
	UnitBytes             = "By"
	UnitJoules            = "J"
	UnitWatts             = "W"
	UnitSpan              = "{span}"
	UnitCall              = "{call}"
	UnitError             = "{error}"
	UnitRetry             = "{retry}"
	UnitRecord            = "{record}"

	// Of numbers without a dimension that are no shares: Prometheus' exporter names a gauge of unit 1 "…_ratio".
	UnitIteration    = "{iteration}"
	UnitLoss         = "{loss}"
	UnitLearningRate = "{learning_rate}"
	UnitNorm         = "{norm}"
	UnitLossScale    = "{scale}"
	UnitPerplexity   = "{perplexity}"
	UnitStatus       = "{status}"
)

// GPUs. All metrics of nvml stand in receivers/nvmlreceiver/metadata.yaml; these are what train_perf finds the devices of a host by.
const (
	MetricHardwareStatus = "hw.status"           // semconv
	MetricGPUMemoryLimit = "hw.gpu.memory.limit" // semconv; By
	AttrHardwareType     = "hw.type"             // semconv
	AttrHardwareParent   = "hw.parent"           // semconv; of a MIG device: hw.id of its GPU
	HardwareTypeGPU      = "gpu"
)
