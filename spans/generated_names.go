// Code generated from spans/registry by tools/semconv. DO NOT EDIT.

package spans

// How many attributes train_perf mostly adds to a span: who makes the span leaves room for them, which saves growing its map there.
const (
	// Common · Verdicts of a span.
	AddedVerdicts = 2
	// ZeroMQ RPC · Added by train_perf.
	AddedToCalls = 10
	// TransferQueue · Added by train_perf.
	AddedToFunction = 9
	// Training steps · Added by train_perf.
	AddedToStep = 14
)

// Common · The job. Resource attributes: which run of which job, where it runs.
const (
	// Of semconv 1.37. The job.
	AttrServiceName = "service.name"
	// Of semconv 1.37. An IP address where the log only has that.
	AttrHostName = "host.name"
	// Of semconv 1.37.
	AttrProcessPID = "process.pid"
	// The run of a job: what it wrote since it was started. Every trace and metric of the run has it. From the
	// configuration, what the environment says of the job (TRAINBRIDGE_RUN_ID, SLURM_JOB_ID and others), or a hash of the
	// log's directory.
	AttrRunID = "ml.run.id"
	// int. Which attempt of the run trained this: how often the job had begun anew, or gone back to a checkpoint, before.
	// Absent: the first. Counted in each log, by a line that says so or by iterations that go back; torchrun's attempt_<n>
	// in the log's path comes to that. A step that was trained twice has two spans in its trace, and the later one has the
	// higher number.
	AttrRunAttempt = "ml.run.attempt"
	// Of semconv 1.37. The run id, on metrics: Prometheus' instance label.
	AttrServiceInstanceID = "service.instance.id"
)

// Common · Where a job runs. Resource attributes of the run that the collector's environment names, from
// OTEL_RESOURCE_ATTRIBUTES or from variables, as far as these are set: see docs/reference/runs.md. In Prometheus they
// are labels of target_info.
const (
	// Slurm's id of the job: SLURM_JOB_ID.
	AttrSlurmJobID = "slurm.job.id"
	// The name of the job: SLURM_JOB_NAME.
	AttrSlurmJobName = "slurm.job.name"
	// The partition that the job runs in: SLURM_JOB_PARTITION.
	AttrSlurmJobPartition = "slurm.job.partition"
	// The account that the job is charged to: SLURM_JOB_ACCOUNT.
	AttrSlurmJobAccount = "slurm.job.account"
	// The id of the job array that the job is of: SLURM_ARRAY_JOB_ID.
	AttrSlurmArrayJobID = "slurm.array.job.id"
	// The index of the job in its array: SLURM_ARRAY_TASK_ID.
	AttrSlurmArrayTaskID = "slurm.array.task.id"
	// The name of the cluster: SLURM_CLUSTER_NAME.
	AttrSlurmClusterName = "slurm.cluster.name"
	// Of semconv 1.37. K8S_CLUSTER_NAME.
	AttrK8SClusterName = "k8s.cluster.name"
	// Of semconv 1.37. K8S_NAMESPACE_NAME, K8S_NAMESPACE or POD_NAMESPACE.
	AttrK8SNamespaceName = "k8s.namespace.name"
	// Of semconv 1.37. K8S_JOB_NAME.
	AttrK8SJobName = "k8s.job.name"
	// Of semconv 1.37. K8S_JOB_UID.
	AttrK8SJobUID = "k8s.job.uid"
	// Of semconv 1.37. The pod of the collector, K8S_POD_NAME or POD_NAME. A label of trainbridge.run.collector.info, and
	// on no resource.
	AttrK8SPodName = "k8s.pod.name"
	// Of semconv 1.37. The node of the collector, K8S_NODE_NAME or NODE_NAME. As k8s.pod.name.
	AttrK8SNodeName = "k8s.node.name"
)

// Common · Any metric that a collector counts. What train_metrics counts over spans, and nccl learns from collectives.
const (
	// Which collector counted: no two write the same series, and `sum without (trainbridge_collector)` is the whole. From
	// the configuration, TRAINBRIDGE_COLLECTOR, or the host's name. Not on what a log states, nor in what is made of
	// finished logs.
	AttrCollector = "trainbridge.collector"
)

// Common · Any span. What a span of any domain may have.
const (
	// The span in one line for people, with units. The numbers are attributes of their own too. Its name comes first in the
	// alphabetical list that Jaeger shows.
	AttrSummary = "about"
	// Of semconv 1.37. Who a CLIENT span calls.
	AttrPeerService = "peer.service"
	// What the span stands for. Our writers put it first, so that a reader knows the span by one look. Of steps, of the
	// parts of a call and of what is below a rank the name says it.
	AttrKind = "trainbridge.kind"
	// Where the times of the span come from. Stands on the resource, and on a span where it is different.
	AttrTimeSource = "trainbridge.time.source"
	// How the span came into its trace. Stands on the resource where it holds for all of its spans. A span whose trace is
	// made of its own key has none.
	AttrJoinBy = "trainbridge.join.by"
	// boolean. True where only the end of the record is known: the span's length says nothing.
	AttrTimePoint = "trainbridge.time.point"
	// boolean. True where the end (or the start) of the record was never seen.
	AttrIncomplete = "trainbridge.incomplete"
	// Why the record is incomplete.
	AttrIncompleteReason = "trainbridge.incomplete.reason"
	// Of semconv 1.37. The log that the span was read from.
	AttrLogFile = "log.file.path"
	// int. Where in its log the record of the span begins, in bytes. Of a compressed log, in its content. Only where logs
	// are read once, as `trainbridge report` reads them, and on the first span of a record.
	AttrLogOffset = "trainbridge.log.offset"
	// boolean. True of spans that are joined and counted, and not drawn: collectives that sample_rate left out. No backend
	// is to have them. Stands on the resource. The term is OpenTelemetry's: a span of the sampling decision RECORD_ONLY is
	// processed, and is exported by none. `otlp_acked` keeps such spans back, unless what it sends to is another collector.
	AttrRecordOnly = "trainbridge.record_only"
	// int, By. How many bytes of texts were cut from a span that no message could hold.
	AttrTrimmed = "trainbridge.trimmed"
)

// Values of peer.service.
const (
	PeerTransferQueue = "transferqueue"
)

// Values of trainbridge.kind.
const (
	// A whole run.
	KindRun = "run"
	// Many spans of one name.
	KindAggregate = "aggregate"
	// A collective, or a Send or Recv.
	KindCollective = "collective"
	// What one rank did in a collective.
	KindRank = "rank"
	// When a rank was late, waited or transferred.
	KindPhase = "phase"
	// A channel of a rank's kernel.
	KindChannel = "channel"
	// What a network proxy did.
	KindProxyOp = "proxy_op"
	// A step of a network proxy's operation.
	KindProxyStep = "proxy_step"
	// A line of a log about the end of a run.
	KindEvent = "event"
	// The root of a trace that several logs have written to.
	KindRoot = "root"
	// A copy of a span of another trace, with a link to the original.
	KindJoined = "joined"
	// Where the time of a step, a batch or a pass went.
	KindBreakdown = "breakdown"
	// A group of calls: one forward pass.
	KindPass = "pass"
	// A group of calls: those before the first pass.
	KindSession = "session"
	// A group of calls: those that belong to no pass.
	KindCalls = "calls"
	// A call.
	KindCall = "call"
	// What a call spent its time on.
	KindCallPart = "call_part"
	// What a log of calls says about itself at its end.
	KindRPCSummary = "rpc_summary"
	// A TransferQueue function.
	KindFunction = "function"
	// A stage of a function, or a client operation.
	KindStage = "stage"
	// A training step.
	KindStep = "step"
	// A named part of a step.
	KindPart = "part"
	// What a part of a step took on one rank.
	KindPartRank = "part_rank"
	// A report about ranks.
	KindRanks = "ranks"
	// A validation result.
	KindEvaluation = "evaluation"
	// What a job says about itself at its end.
	KindSummary = "summary"
)

// Values of trainbridge.time.source.
const (
	// Start and end both stand in the record.
	TimeLogged TimeSource = "logged"
	// The end stands in the record; the start is the end less the duration.
	TimeDerived TimeSource = "derived"
	// A monotonic counter (perf_counter) is tied to the wall clock of the log line.
	TimeAnchored TimeSource = "anchored"
	// The same, where all stamps of the log have whole seconds: times of one process are exact to one another, and their
	// place is known to a second.
	TimeAnchoredSecond TimeSource = "anchored_second"
	// The line arrived at this time while the file was tailed.
	TimeObserved TimeSource = "observed"
	// The log has no clock: the time is reconstructed from order and durations, anchored at the file.
	TimeSynthetic TimeSource = "synthetic"
)

// Values of trainbridge.join.by.
const (
	// A trace id that the log, or the caller, gives: a UUID, 32 hex digits, a W3C traceparent or any other text.
	JoinByID = "id"
	// The iteration of training.
	JoinByIteration = "iteration"
	// The process on the same host, by containment in time.
	JoinByPID = "pid"
	// The host, by containment in time.
	JoinByHost = "host"
	// The run, by containment in time.
	JoinByRun = "run"
)

// Values of trainbridge.incomplete.reason.
const (
	// Nothing came for hang_timeout.
	NCCLIncompleteTimeout = "hang_timeout"
	// Nothing came for hang_timeout, nor anything from the agent that reads the logs of the missing ranks.
	NCCLIncompleteUnheard = "unheard"
	// The ranks that miss have gone on to later collectives.
	NCCLIncompleteGap = "gap"
	// The ranks that miss were waited for in vain before.
	NCCLIncompleteGone = "rank_gone"
	// There was no more room to wait.
	NCCLIncompleteEvicted = "evicted"
	// Reading ended.
	NCCLIncompleteEnd = "end"
	// The records themselves say that they did not complete.
	NCCLIncompleteStuck = "not_completed"
)

// Common · Verdicts of a span. What train_perf says about a span.
const (
	// string[]. The names of the verdicts about this span; each is also an event trainbridge.verdict.
	AttrVerdict = "trainbridge.verdict"
	// template[boolean]. True; the name of the verdict follows: a tag that can be searched.
	AttrVerdictPrefix = "trainbridge.verdict."
	// Of a span, the worst of its verdicts; of an event, a log record or a count, that of the verdict.
	AttrVerdictSeverity = "trainbridge.verdict.severity"
)

// Values of trainbridge.verdict.severity.
const (
	// Worth a look.
	SeverityWarning = "warning"
	// Time or results are being lost.
	SeverityBad = "bad"
)

// Common · Verdicts as events. What explains one verdict, beside its name and severity. Of tq_fluctuating, tq.stage
// says of which stage.
const (
	// What of several things the verdict says: see the table of verdicts.
	AttrVerdictCause = "trainbridge.verdict.cause"
	// One English sentence with the numbers.
	AttrVerdictReason = "trainbridge.verdict.reason"
	// double. What was judged, in the unit of the verdict.
	AttrVerdictValue = "trainbridge.verdict.value"
	// double. The limit that it was held against, in the same unit.
	AttrVerdictThreshold = "trainbridge.verdict.threshold"
)

// Values of trainbridge.verdict.cause.
const (
	// warning: the ranks that miss have gone on (`gap`): records are missing
	CauseSequenceGap = "sequence_gap"
	// warning: `nccl.retries` above 0
	CauseRetries = "retries"
	// warning: `nccl.link.slow` names links, of the run so far
	CauseLinkSlow = "slow"
	// warning: `nccl.link.hot` names links, of the run so far
	CauseLinkHot = "hot"
	// warning: perf_monitor's FLOPs or samples are 1/n of what its formula makes, n being the data-parallel size, or a
	// divisor of the world size. Seen without a model, by its samples/s × time
	CauseDPOmitted = "dp_omitted"
	// warning: its FLOPs are those of full attention heads: the earlier branch counts grouped queries so where it has no
	// model_name, which Megatron has no argument for
	CauseGQAAsMHA = "gqa_as_mha"
	// warning: they are those of a dense model (`--perf-model-type mixtral`)
	CauseMoEAsDense = "moe_as_dense"
	// warning: they are those of experts without SwiGLU (the earlier branch of perf_monitor)
	CauseSwiGLUOmitted = "swiglu_omitted"
	// warning: the log's FLOPs are more than 5 % off. perf_monitor is held against its own formula, others against
	// Megatron's with none to all of the attention matrix. Names what fits (recomputation or embedding counted, one device
	// for all, another batch, another unit), else what to compare. Never of a model that is not counted
	CauseFlopsDisagree = "flops_disagree"
	// warning: the log's samples/s × step time are more than 5 % off the batch. Says when that fits samples/s of one
	// device, or the time of several steps
	CauseThroughputDisagrees = "throughput_disagrees"
	// bad: MFU above 1 (2 with `fp8`, 4 with `fp4`). Says which causes fit the numbers, in the order in which they mostly
	// are it: another device, more devices, GFLOP/s for TFLOP/s or ms for s, steps covered, FP8, the model
	CauseMFUImpossible = "mfu_impossible"
)

// Common · Verdicts as log records. What train_verdicts makes of a verdict: a log record whose event name is
// trainbridge.verdict and whose body is the sentence, with the ids of the trace and the span, what the event has, and
// what the span says of where it happened.
const (
	// The unit of the value and the threshold, by UCUM.
	AttrVerdictUnit = "trainbridge.verdict.unit"
)

// Common · Aggregates. Where a trace would have too many spans, the shorter ones of one name become one span with these
// attributes.
const (
	// int, {span}. How many spans it stands for.
	AttrAggregateCount = "trainbridge.aggregate.count"
	// double, s. Their time together.
	AttrAggregateSum = "trainbridge.aggregate.sum"
	// double, s. The median of their times.
	AttrAggregateP50 = "trainbridge.aggregate.p50"
	// double, s. The longest of them.
	AttrAggregateMax = "trainbridge.aggregate.max"
)

// Units of metrics and verdicts, by UCUM; what is counted stands in braces. Numbers without a dimension that are no
// shares have a unit in braces too: Prometheus' exporter names a gauge of unit 1 "…_ratio".
const (
	UnitBytesPerSecond = "By/s"
	UnitOne            = "1"
	UnitSeconds        = "s"
)

// Common: spans and events.
const (
	// Explains one verdict, at the end of the span.
	EventVerdict = "trainbridge.verdict"
	// The span of 1 ms that says where a run was met first: its log, at its first record. Each collector sends one, under
	// ids of its own where it met the run elsewhere. With span_links, steps and batches link to its trace.
	SpanRun = "train.run"
)

// Common: metrics.
const (
	// counter, {verdict}. Verdicts about spans.
	MetricTQVerdicts = "trainbridge.verdicts"
	// counter, {span}. Spans whose end, start or stages were never seen; they are in no duration histogram.
	MetricIncompleteSpans = "trainbridge.incomplete.spans"
	// gauge, {info}. 1. Where the collector runs that counts for a run. Set where K8S_POD_NAME, K8S_NODE_NAME or
	// OTEL_RESOURCE_ATTRIBUTES says so.
	MetricRunCollectorInfo = "trainbridge.run.collector.info"
)

// Breakdowns · Parts. The name of a part follows each of the prefixes. A part that no log has is left out.
const (
	// A part of the time.
	AttrStepPart = "ml.step.part"
	// What the breakdown is of. Steps, batches and passes lie within each other, so that only the times of one kind may be
	// added up.
	AttrStepWindow = "ml.step.window"
	// template[double], s. Exclusive wall-clock: each instant counts for one part, the most specific that went on. The
	// times of all parts, with what is unattributed, add up to the duration.
	StepTimePrefix = "ml.step.time."
	// template[double], s. The durations of all spans of the part, added up; what goes on at the same time counts as often.
	StepSumPrefix = "ml.step.sum."
	// template[double], s. Wall-clock in which the part went on, whatever else did.
	StepUnionPrefix = "ml.step.union."
	// double, s. What is usual for such a window, among those around it that are like it. A window without it was not
	// judged, as too few like it are known.
	AttrStepUsual = "ml.step.usual"
	// double, s. By how much a window that was slow took longer than usual.
	AttrStepExcess = "ml.step.excess"
	// double, s. By how much a cause made the window longer than usual; in an event ml.step.cause.
	AttrCauseTime = "ml.step.cause.time"
	// double, s. The same times the ranks of the job, which all waited meanwhile; where their number is known.
	AttrCauseCost = "ml.step.cause.cost"
	// What else is known of the cause.
	AttrCauseNote = "ml.step.cause.note"
	// Why the logs do not explain the part unattributed.
	AttrCauseReason = "ml.step.cause.reason"
)

// Values of ml.step.part.
const (
	// Saving or loading a checkpoint.
	PartCheckpoint = "checkpoint"
	// Evaluating the model.
	PartEvaluation = "evaluation"
	// Waiting within a collective: from the arrival of the first rank to that of the last.
	PartWait = "collective.wait"
	// The rest of a collective.
	PartCollective = "collective"
	// Of a cause: collective, where a rank of the communicator has no record. Its lateness counts as transfer.
	PartCollectiveUnheard = "collective.unheard"
	// Serializing requests of an RPC pass.
	PartRPCSerialize = "rpc.serialize"
	// Sending them.
	PartRPCSend = "rpc.send"
	// Waiting for responses and receiving them, without the server's computation.
	PartRPCReceive = "rpc.receive"
	// The server's computation.
	PartRPCServer = "rpc.server"
	// Deserializing responses.
	PartRPCDeserialize = "rpc.deserialize"
	// What no stage of the pass explains.
	PartRPCUnattributed = "rpc.unattributed"
	// Computing.
	PartCompute = "compute"
	// Getting data from TransferQueue.
	PartGet = "get"
	// Putting data there.
	PartPut = "put"
	// Waiting for the data loader.
	PartDataLoading = "data_loading"
	// What no part explains.
	PartUnattributed = "unattributed"
)

// Values of ml.step.window.
const (
	// A training step, or the several that one record covers.
	WindowStep = "step"
	// A batch or a function of TransferQueue.
	WindowBatch = "batch"
	// An RPC pass.
	WindowPass = "pass"
)

// Values of ml.step.cause.reason.
const (
	// all timers within computing took longer by about the same factor, so no part alone is slow
	ReasonAlike = "alike"
	// no log says when ranks came to their collectives
	ReasonArrivals = "arrivals"
	// the clocks of the hosts are too far apart to say in which window something was; nccl.clock.offset has the difference
	ReasonClocksApart = "clocks_apart"
	// computing took longer, and no rank alone was late
	ReasonDevices = "devices"
	// all kinds of logs with a reason were read
	ReasonProfile = "profile"
	// no column has the RPC server's time
	ReasonServerTime = "server_time"
	// no log says when every rank came to its collectives
	ReasonSomeArrivals = "some_arrivals"
	// no column of the pass has the rest of its time
	ReasonStageTime = "stage_time"
	// the step of a batch has no timers
	ReasonStepTimers = "step_timers"
	// the step has no timers of its parts
	ReasonTimers = "timers"
)

// Breakdowns: spans and events.
const (
	// A cause of why the window was slow, the largest first, after the verdict: the same as its sentence says. The part
	// unattributed is what was not explained.
	EventCause = "ml.step.cause"
)

// Breakdowns: metrics.
const (
	// counter, s. Exclusive wall-clock time of steps, batches and passes, by part. The parts of one kind of window add up
	// to its time.
	MetricStepTime = "ml.step.time"
)

// Collectives · Collectives and ranks. On the root and on the span of a rank.
const (
	// The operation: AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Send, Recv, …
	AttrNCCLOperation = "nccl.operation"
	// The algorithm as logged: RING, ring, NVLS, …
	AttrNCCLAlgorithm = "nccl.algorithm"
	// The protocol: LL, LL128, SIMPLE.
	AttrNCCLProtocol = "nccl.protocol"
	// The type of the data as logged.
	AttrNCCLDatatype = "nccl.datatype"
	// The communicator: its 64-bit hash as "0x…", or as logged.
	AttrNCCLCommID = "nccl.comm.id"
	// The name of the communicator.
	AttrNCCLCommName = "nccl.comm.name"
	// int, {rank}. The ranks of the communicator.
	AttrNCCLCommSize = "nccl.comm.size"
	// int, {node}. The nodes of the communicator.
	AttrNCCLCommNodes = "nccl.comm.nodes"
	// int. The rank in the communicator; the global one, where the log has it, is dl.rank.
	AttrNCCLCommRank = "nccl.comm.rank"
	// The id of a trace as the record of the rank has it, where that is no UUID that is the trace id.
	AttrNCCLTraceID = "nccl.trace_id"
	// int. The number of the collective, per communicator and operation.
	AttrNCCLSequence = "nccl.sequence"
	// Where the number comes from, where the log has none.
	AttrNCCLSequenceKind = "nccl.sequence.kind"
	// boolean. True where ranks that took part may be missing: nothing is said then of who was late, of bandwidth and of
	// what is missing.
	AttrNCCLUnconfirmed = "nccl.unconfirmed"
	// int, By. The message size as logged: per rank for AllGather and ReduceScatter of NCCL.
	AttrNCCLMessageSize = "nccl.message.size"
	// int, By. S of algbw = S/t: of all ranks together for AllGather, ReduceScatter, AllToAll.
	AttrNCCLDataSize = "nccl.data.size"
	// int, {channel}. How many channels there were.
	AttrNCCLChannels = "nccl.channels"
	// int. The channel.
	AttrNCCLChannelID = "nccl.channel.id"
	// int. The CUDA stream.
	AttrNCCLStreamID = "nccl.stream.id"
	// int. The other rank.
	AttrNCCLPeerRank = "nccl.peer.rank"
	// int. The rank that sent.
	AttrNCCLSource = "nccl.source.rank"
	// int. The rank that received.
	AttrNCCLDestination = "nccl.destination.rank"
	// The host that sent.
	AttrNCCLSourceHost = "nccl.source.host"
	// The host that received.
	AttrNCCLDestHost = "nccl.destination.host"
	// Which way the proxy moved data.
	AttrNCCLDirection = "nccl.direction"
	// int. The index of the proxy's step.
	AttrNCCLStep = "nccl.proxy.step.index"
	// What the proxy waited for or did: ScheduleSend, SendWait, …
	AttrNCCLProxyState = "nccl.proxy.operation"
	// The clock that the duration was taken by: kernel_gpu, kernel_cpu, collective_cpu, …
	AttrNCCLTiming = "nccl.timing.source"
	// How far it came, of what is not completed.
	AttrNCCLState = "nccl.state"
)

// Values of nccl.sequence.kind.
const (
	// Counted: the n-th record of each rank, which agree in size and time.
	NCCLSequenceOrdinal = "ordinal"
	// The ranks' records were found by operation, size and time; then there is no number.
	NCCLSequenceTime = "time"
)

// Collectives · How far collectives were sent. On spans named nccl.watermark, which go from the collectors that join
// collectives to those that join steps, and to no backend.
const (
	// Whose collectives: the topic and the partition that their records came by.
	AttrNCCLWatermarkSource = "trainbridge.nccl.watermark.source"
	// int, ns. Until when all collectives of the source that began are sent, Unix ns. 0: that is not known yet.
	AttrNCCLWatermarkUntil = "trainbridge.nccl.watermark.until"
	// int, ns. The latest end of a collective that was sent, Unix ns.
	AttrNCCLWatermarkSent = "trainbridge.nccl.watermark.sent"
	// boolean. True of the first of a run, before which no collective was sent. Of a later one: the run's collectives may
	// have been sent by another, as partitions were added.
	AttrNCCLWatermarkFirst = "trainbridge.nccl.watermark.first"
	// int. Its number, from 1: who misses one misses collectives.
	AttrNCCLWatermarkNumber = "trainbridge.nccl.watermark.number"
	// int, ns. When the reading of the partition began, Unix ns. Numbers begin anew with it.
	AttrNCCLWatermarkEpoch = "trainbridge.nccl.watermark.epoch"
	// int, ns. The latest end of records that the source could not read, Unix ns: collectives until then may lack ranks.
	// Absent: none.
	AttrNCCLWatermarkUnreadable = "trainbridge.nccl.watermark.unreadable"
)

// Collectives · Packed records. On spans named nccl.partial, which go from the collectors on the hosts to those that
// join.
const (
	// any. Records of one log in one communicator as bytes, packed by internal/collectives/partial.
	AttrNCCLPartialRecords = "trainbridge.nccl.partial.records"
	// int, {record}. How many records there are. 0: a heartbeat, for a log that had none for a while.
	AttrNCCLPartialCount = "trainbridge.nccl.partial.count"
	// The tool that wrote the log. Records of two tools are not joined.
	AttrNCCLPartialFamily = "trainbridge.nccl.partial.family"
	// boolean. True where the times are of a clock of the log's own, such as a GPU's.
	AttrNCCLPartialOwnClock = "trainbridge.nccl.partial.own_clock"
	// boolean. True where the times are about when it was, and are not compared.
	AttrNCCLPartialCoarse = "trainbridge.nccl.partial.coarse"
	// int. Of a heartbeat: until when the log was read and has nothing more. Of records: all operations of the log that
	// began before were sent earlier. Ns since 1970.
	AttrNCCLPartialReadTo = "trainbridge.nccl.partial.read_to"
)

// Collectives · Time and bandwidth. By/s are S/t and that times the factor of nccl-tests (doc/PERFORMANCE.md).
const (
	// int, {rank}. How many ranks have a record in the trace; only the root has it.
	AttrNCCLRanks = "nccl.ranks"
	// double, s. The time of the rank that took longest, from the first arrival on.
	AttrNCCLDuration = "nccl.collective.duration"
	// double, s. The time of the rank that took least: it came last and waited for no one. The root's bandwidths are of it.
	AttrNCCLTransferDuration = "nccl.collective.transfer.duration"
	// double, By/s. S/t; on a rank's span by its own duration, waiting included.
	AttrNCCLBandwidthAlgorithm = "nccl.bandwidth.algorithm"
	// double, By/s. That times the operation's factor.
	AttrNCCLBandwidthBus = "nccl.bandwidth.bus"
	// double, By/s. The mean of the ranks' own, with their waiting, as perf_summary_exporter.py of NCCL Inspector has it
	// (mean_coll_busbw_gbs).
	AttrNCCLBandwidthBusMean = "nccl.bandwidth.bus.mean"
	// double, By/s. On ranks: as the log has it.
	AttrNCCLBandwidthAlgorithmReported = "nccl.bandwidth.algorithm.reported"
	// double, By/s. On ranks: as the log has it.
	AttrNCCLBandwidthBusReported = "nccl.bandwidth.bus.reported"
	// The log's unit: GB/s or Gbit/s.
	AttrNCCLBandwidthUnit = "nccl.bandwidth.reported.unit"
	// double, 1. |recomputed − reported| / recomputed, where that is more than print rounding; on the root the largest.
	AttrNCCLBandwidthDisagreement = "nccl.bandwidth.disagreement"
	// double, By/s. The median of the window before, for this communicator, operation and size (within 1/8).
	AttrNCCLBandwidthBaseline = "nccl.bandwidth.baseline"
	// double, 1. How many robust standard deviations below the baseline.
	AttrNCCLBandwidthDeviation = "nccl.bandwidth.deviation"
	// int, {error}. Errors; on the root of all ranks.
	AttrNCCLErrors = "nccl.errors"
	// int, {retry}. Retries; on the root of all ranks.
	AttrNCCLRetries = "nccl.retries"
)

// Collectives · Who was late. A collective moves no data before its last rank has come.
const (
	// double, s. On a rank: how long behind the first to arrive.
	AttrNCCLLate = "nccl.late"
	// boolean. True on the rank that came last.
	AttrNCCLLast = "nccl.last"
	// double, s. On the root: how late the last rank was.
	AttrNCCLLateMax = "nccl.late.max"
	// int. On the root: the last to arrive.
	AttrNCCLLateRank = "nccl.late.rank"
	// On the root: its host.
	AttrNCCLLateHost = "nccl.late.host"
	// double, s. On the root: the time that all the others together would have been spared had it come with the last but
	// one.
	AttrNCCLLateCost = "nccl.late.cost"
	// int. On the root: the slowest rank over the window, where one is clearly slow.
	AttrNCCLStragglerRank = "nccl.straggler.rank"
	// Its host.
	AttrNCCLStragglerHost = "nccl.straggler.host"
	// double, s. How late it is by median, behind the median rank.
	AttrNCCLStragglerLate = "nccl.straggler.late"
	// double, 1. The best rank's time between collectives ÷ its own, 0..1, where the log has times.
	AttrNCCLStragglerScore = "nccl.straggler.score"
	// double, s. What it cost the others over the window.
	AttrNCCLStragglerCost = "nccl.straggler.cost"
	// int[]. All slow ranks, the slowest first.
	AttrNCCLStragglers = "nccl.straggler.ranks"
	// int[]. Ranks that are as fast as the others again from here on.
	AttrNCCLStragglersOver = "nccl.straggler.over"
)

// Collectives · What did not come. On the root.
const (
	// int[]. Ranks that were seen in this communicator before and have no record here, the first 32.
	AttrNCCLRanksMissing = "nccl.ranks.missing"
	// int, {rank}. How many these are.
	AttrNCCLRanksMissingCount = "nccl.ranks.missing.count"
	// int[]. Of the missing ranks those of silent hosts, whose agents sent nothing; the first 32. Joined from several
	// hosts.
	AttrNCCLRanksUnheard = "nccl.ranks.unheard"
	// int[]. Ranks whose record says that they had not completed.
	AttrNCCLRanksStuck = "nccl.ranks.stuck"
	// double, s. How long there was no completion.
	AttrNCCLWaited = "nccl.waited"
	// int. How many sequence numbers no rank has logged before this one; small messages are not logged.
	AttrNCCLSequenceGap = "nccl.sequence.gap"
	// boolean. True where it did not complete within hang_timeout.
	AttrNCCLHang = "nccl.hang"
	// boolean. True where the ranks disagree about the message size.
	AttrNCCLMismatch = "nccl.mismatch"
)

// Collectives · What NCCL's RAS says. On spans run.event of the class nccl_ras, which nccl makes of a live job. The
// forms are ras.behind, ras.diverged, ras.missing, ras.failed, ras.still and ras.moved.
const (
	// int[]. Ranks that have not launched what others of the communicator wait in, the first 32. That is no guilt.
	AttrNCCLRanksBehind = "nccl.ranks.behind"
	// int, {rank}. How many these are.
	AttrNCCLRanksBehindCount = "nccl.ranks.behind.count"
	// int[]. Ranks that have launched all that any rank has, the first 32.
	AttrNCCLRanksAhead = "nccl.ranks.ahead"
	// int, {rank}. How many these are.
	AttrNCCLRanksAheadCount = "nccl.ranks.ahead.count"
	// int, {rank}. Ranks of the communicator that have reported; of ras.still the processes and GPUs of the job.
	AttrNCCLRASHeard = "nccl.ras.heard"
	// int, {communicator}. Communicators of which the same answer says the same; of ras.still all of the job.
	AttrNCCLRASCommunicators = "nccl.ras.communicators"
	// double, s. How long no collective has been launched, at least.
	AttrNCCLRASStill = "nccl.ras.still"
	// string[]. For each operation how many collectives the ranks have launched. Send, Recv and CUDA graphs are not
	// counted.
	AttrNCCLRASCounts = "nccl.ras.counts"
	// string[]. Where the ranks that are named run, the first 16; the GPU is the index of nvidia-smi.
	AttrNCCLRASProcesses = "nccl.ras.processes"
	// string[]. The errors that ranks report. Who reports one need not be its cause.
	AttrNCCLRASErrors = "nccl.ras.errors"
	// The version of NCCL.
	AttrNCCLRASVersion = "nccl.ras.version"
	// What RAS says of a rank.
	AttrNCCLRASState = "nccl.ras.state"
)

// Values of nccl.ras.state.
const (
	// It has reported.
	NCCLRASHeard = "heard"
	// It has reported, and is in nccl.ranks.behind.
	NCCLRASBehind = "behind"
	// It reports an error.
	NCCLRASFailed = "failed"
	// Its process has not answered.
	NCCLRASUnresponsive = "unresponsive"
	// Its process could not be reached for 60 s, or has ended.
	NCCLRASDead = "dead"
	// Its process is no member (yet, or any more), or not known to RAS.
	NCCLRASAbsent = "absent"
)

// Collectives · Clocks. Times are corrected by these only where nccl.clock.corrected says so.
const (
	// double, s. On a rank: how much its host's clock is ahead of the reference host's. On the root: how far the clocks of
	// its hosts are apart, where that is more than 1 ms.
	AttrNCCLClockOffset = "nccl.clock.offset"
	// double, s. ± of the offset.
	AttrNCCLClockUncertainty = "nccl.clock.uncertainty"
	// On the root: the host whose clock is the reference.
	AttrNCCLClockReference = "nccl.clock.reference"
	// boolean. True where the times were moved by the offset.
	AttrNCCLClockCorrected = "nccl.clock.corrected"
)

// Collectives · Links. From rank to rank, of what the record says.
const (
	// double, By/s. The bandwidth of the link.
	AttrNCCLLinkBandwidth = "nccl.link.bandwidth"
	// double, By/s. The lowest of its sends.
	AttrNCCLLinkBandwidthWorst = "nccl.link.bandwidth.min"
	// int, {send}. How many sends it were.
	AttrNCCLLinkSends = "nccl.link.sends"
	// string[]. Links that carry much more than the others, as "0→8".
	AttrNCCLLinkHot = "nccl.link.hot"
	// string[]. Links that are much slower than the others, as "0→8".
	AttrNCCLLinkSlow = "nccl.link.slow"
)

// Collectives · Labels of metrics. What only metrics of collectives have.
const (
	// Which bandwidth, by the names of nccl-tests.
	AttrNCCLBandwidthKind = "nccl.bandwidth.kind"
	// The size of the data: at most 64 KiB, 1, 16 or 256 MiB, 4 GiB, or more.
	AttrNCCLSizeClass = "nccl.data.size.class"
	// What the value is over its interval.
	AttrNCCLStatistic = "nccl.statistic"
	// The kind of the records that NCCL Inspector dropped.
	AttrNCCLRecordKind = "nccl.record.kind"
)

// Collectives: spans and events.
const (
	// What one rank did, where it is not named by NCCLRankName: the others of many, too many names.
	SpanNCCLRank = "nccl.rank"
	// Below the rank that came last: from the first arrival to its own; all others wait for it.
	SpanNCCLLate = "nccl.late"
	// Below a rank: from its arrival until the last has come.
	SpanNCCLWait = "nccl.wait"
	// Below a rank: from when the last has come.
	SpanNCCLTransfer = "nccl.transfer"
	// A kernel's channel (thread block).
	SpanNCCLChannel = "nccl.channel"
	// CPU time of the network proxy: not to be compared with GPU time.
	SpanNCCLProxyOp = "nccl.proxy.op"
	// A step of the proxy's operation.
	SpanNCCLProxyStep = "nccl.proxy.step"
	// Records of one log in one communicator, packed, on their way to where they are joined.
	SpanNCCLPartial = "nccl.partial"
	// How far the collectives of a run were sent, by who joined those of one partition: steps wait for it.
	SpanNCCLWatermark = "nccl.watermark"
)

// Collectives: metrics.
const (
	// histogram, s. Time of complete collectives, from the first rank's arrival to the end.
	MetricNCCLDuration = "nccl.collective.duration"
	// histogram, s. How long after the first rank the last came.
	MetricNCCLLate = "nccl.collective.late"
	// counter, s. Time that the ranks lost together waiting for the last.
	MetricNCCLLateCost = "nccl.collective.late.cost"
	// counter, By. Data of complete collectives, S of algbw = S/t. The data is nccl.data.size.
	MetricNCCLIO = "nccl.collective.io"
	// histogram, By/s. Bandwidth of complete collectives, of all communicators.
	MetricNCCLBandwidth = "nccl.collective.bandwidth"
	// counter, s. Time that the other ranks lost together waiting for a rank that came last. The first 64 ranks of a run
	// that cost anything, where no communicator has more; else those that cost 1 % of all. What the others cost is in one
	// point without a rank.
	MetricNCCLRankLateCost = "nccl.rank.late.cost"
	// counter, {error}. Errors that the log tells of.
	MetricNCCLErrors = "nccl.collective.errors"
	// counter, {retry}. Retries that the log tells of.
	MetricNCCLRetries = "nccl.collective.retries"
	// counter, {record}. Ranks without a record.
	MetricNCCLMissing = "nccl.collective.missing"
	// counter, By. What went from rank to rank, as far as records name both. The first links, a fifth of cardinality_limit;
	// the others together have otel.metric.overflow.
	MetricNCCLLinkIO = "nccl.link.io"
	// gauge, By/s. Bandwidth from rank to rank, of the last record. The first links, a fifth of cardinality_limit; the
	// others together have otel.metric.overflow.
	MetricNCCLLinkBandwidth = "nccl.link.bandwidth"
	// counter, By. What went from host to host, as far as records name both ranks. Where hosts are known; bounded as links
	// are.
	MetricNCCLNodeIO = "nccl.node.io"
	// gauge, By/s. Bandwidth of a NIC as VCCL logs it. Of vccl_packed and vccl_mean.
	MetricNCCLDeviceBandwidth = "nccl.device.bandwidth"
	// gauge, {status}. VCCL's status of a NIC: 1 is abnormal. VCCL's status bit.
	MetricNCCLDeviceAbnormal = "nccl.device.abnormal"
	// counter, {record}. Records that NCCL Inspector itself dropped, since the process began. From Inspector v4.1 on.
	MetricNCCLRecordsDropped = "nccl.records.dropped"
	// gauge, 1. The best rank's time between collectives over this rank's, over the window. Told after ten collectives,
	// then once per window_size; of a run at most a fifth of cardinality_limit.
	MetricNCCLRankScore = "nccl.rank.score"
	// gauge, s. How much a host's clock is ahead of the reference host's. Of a host, or of a file that is a clock.
	MetricNCCLClockOffset = "nccl.clock.offset"
	// gauge, s. ± of nccl.clock.offset.
	MetricNCCLClockUncertainty = "nccl.clock.uncertainty"
	// gauge, {rank}. Ranks of all communicators of a live job, by what NCCL's RAS says of them. A GPU counts in each of its
	// communicators. Only with ras.
	MetricNCCLRASRanks = "nccl.ras.ranks"
	// gauge, s. How long no process of a live job has launched a collective that NCCL's RAS counts, at least. Only with
	// ras; in steps of its interval.
	MetricNCCLRASStill = "nccl.ras.still"
)

// Events · Events of a run. Of the spans run.event: a line, or a few, about the end of a run.
const (
	// What the line is evidence of; docs/reference/events.md says what each class may claim.
	AttrEventClass = "ml.run.event.class"
	// Which line it is, by the table of docs/reference/events.md.
	AttrEventForm = "ml.run.event.form"
	// The line, without the prefixes of launchers; at most 2,048 bytes.
	AttrEventText = "ml.run.event.text"
	// Of semconv 1.37.
	AttrExceptionType = "exception.type"
	// Of semconv 1.37.
	AttrExceptionMessage = "exception.message"
	// Of semconv 1.37. Of the innermost frame of a traceback.
	AttrCodeFile = "code.file.path"
	// Of semconv 1.37.
	AttrCodeLine = "code.line.number"
	// Of semconv 1.37.
	AttrCodeFunction = "code.function.name"
)

// Events: spans and events.
const (
	// A line about the end of a run, in the trace of the run; of 1 ms, at the time of the line, or of the one before that
	// has a time. Its status is Error where the line is of something that failed. Of the class nccl_ras: what NCCL's RAS
	// says of the live job, at the time of its answer.
	SpanEvent = "run.event"
)

// Events: metrics.
const (
	// counter, {event}. Lines that tell how a run ends.
	MetricRunEvents = "ml.run.events"
)

// GPUs · GPUs. Labels of metrics of GPUs.
const (
	// Of semconv 1.37. The device; on metrics of logs its index in the log's list.
	AttrHardwareID = "hw.id"
	// Of semconv 1.37. The kind of hardware.
	AttrHardwareType = "hw.type"
	// Of semconv 1.37. Of a MIG device: hw.id of its GPU.
	AttrHardwareParent = "hw.parent"
	// Of semconv 1.37. The GPU and its index, as in nvidia-smi; of MIG devices also their own.
	AttrHardwareName = "hw.name"
	// Of semconv 1.37. general (any kernel ran), encoder or decoder.
	AttrGPUTask = "hw.gpu.task"
	// Of semconv 1.37. Where the sensor is.
	AttrSensorLocation = "hw.sensor_location"
	// Of semconv 1.37. corrected or uncorrected (ECC), or xid_ and the code of the driver's XID error.
	AttrErrorType = "error.type"
	// Which of the GPU's clocks: graphics, sm, memory, video.
	AttrGPUClockDomain = "trainbridge.gpu.clock.domain"
	// What holds the clocks down.
	AttrGPUThrottlePolicy = "trainbridge.gpu.throttle.policy"
	// Why the clocks are held down.
	AttrGPUThrottleReason = "trainbridge.gpu.throttle.reason"
)

// Values of hw.type.
const (
	HardwareTypeGPU = "gpu"
)

// GPUs · GPUs of a window. What the GPUs were like in the time of a step, a batch or a pass: means over its time, of
// nvml's samples. There is none where no sample was taken within it.
const (
	// int, {gpu}. How many GPUs have a sample within the window.
	AttrGPUCount = "trainbridge.gpu.count"
	// int, {sample}. How many samples of these GPUs are behind the means.
	AttrGPUSampleCount = "trainbridge.gpu.sample.count"
	// double, W. The power that a GPU drew, the mean over the GPUs. As a metric the name is of semconv 1.37.
	AttrGPUPower = "hw.power"
	// double, Cel. The temperature of a GPU, the mean over the GPUs. As a metric the name is of semconv 1.37.
	AttrGPUTemperature = "hw.temperature"
	// double, Cel. The highest temperature of the hottest GPU.
	AttrGPUTemperatureMax = "hw.temperature.max"
	// double, Hz. The frequency of the SM clock, the mean over the GPUs.
	AttrGPUClock = "trainbridge.gpu.clock.frequency"
	// double, Hz. The same of the slowest GPU.
	AttrGPUClockMin = "trainbridge.gpu.clock.frequency.min"
	// template[double], s. The cause follows: thermal, power_brake, hw_slowdown, reliability, board_limit, sync_boost or
	// power. For how long it held down the clocks of a GPU, at least; on the span of a window, of the GPU that it held down
	// the longest. power is the GPU's own limit, which GPUs at full load reach.
	GPUThrottleTimePrefix = "trainbridge.gpu.throttle.time."
	// int, {error}. How often the driver has reported the error since the sample before.
	AttrGPUErrorCount = "trainbridge.gpu.error.count"
)

// GPUs: spans and events.
const (
	// The clocks of a GPU were held down in the window, by something else than its power limit. It stands where that began.
	EventGPUThrottled = "trainbridge.gpu.throttled"
	// The driver had reported an XID error of a GPU, when nvml looked next.
	EventGPUXID = "trainbridge.gpu.xid"
)

// GPUs: metrics.
const (
	// Of semconv 1.37.
	MetricGPUMemoryLimit = "hw.gpu.memory.limit"
	// Of semconv 1.37.
	MetricGPUUtilization = "hw.gpu.utilization"
	// Of semconv 1.37.
	MetricHardwareErrors = "hw.errors"
	// Of semconv 1.37.
	MetricHardwarePower = "hw.power"
	// Of semconv 1.37.
	MetricHardwareStatus = "hw.status"
	// Of semconv 1.37.
	MetricHardwareTemperature = "hw.temperature"
	// gauge, Hz. Current frequency of a clock.
	MetricGPUClock = "trainbridge.gpu.clock.frequency"
	// updowncounter, By. Device memory that a process with a compute context uses.
	MetricGPUProcessMemory = "trainbridge.gpu.process.memory.usage"
	// gauge, {info}. 1. Which run a GPU works for, and as which rank where a log says that. Where the driver names a
	// process that has memory of the GPU, and the process has written spans of the run, on the same host by name.
	MetricRunGPUInfo = "trainbridge.run.gpu.info"
	// gauge, {status}. 1 where the reason holds the clocks down at the moment of the scrape, else 0.
	MetricGPUThrottleActive = "trainbridge.gpu.throttle.active"
	// counter, s. Time in which the clocks were held down, since the driver was loaded.
	MetricGPUThrottleTime = "trainbridge.gpu.throttle.time"
)

// Joins · Joins. Of the spans that step_join adds.
const (
	// boolean. True where not all may be here, for a reason.
	AttrJoinPartial = "trainbridge.join.partial"
	// Why not all may be here.
	AttrJoinPartialReason = "trainbridge.join.partial.reason"
	// double, s. The wall-clock time that the spans cover together.
	AttrAggregateUnion = "trainbridge.aggregate.union"
	// double, s. The 99th percentile of their times.
	AttrAggregateP99 = "trainbridge.aggregate.p99"
	// double, s. Of collectives: the time from the first rank's arrival to the last's, summed.
	AttrAggregateWait = "trainbridge.aggregate.wait"
)

// Values of trainbridge.join.partial.reason.
const (
	// A collector was started anew, or took over from another, and knows less than the one before.
	PartialRestart = "restart"
	// Records of collectives could not be read: they were broken, or a collector of a later version had sent them.
	PartialUnreadable = "unreadable"
	// There was no room to wait, or to keep what may belong here, or a step came more than keep (15 min) after it.
	PartialRoom = "room"
	// Clocks of hosts differ by more than tolerance (1 ms), so that what other hosts logged is here only where its place is
	// certain.
	PartialClocks = "clocks"
	// A source that was at work had not come to its end in time, or not all collectives of its time were sent.
	PartialBehind = "behind"
	// Collectives were sampled, and those left out did not come.
	PartialSampled = "sampled"
)

// Joins: spans and events.
const (
	// The root of a trace that has several tops, none of them a TransferQueue function. It lasts as long as all of them.
	SpanStepRoot = "step"
	// The root of a trace with TransferQueue functions that have a trace id. It lasts as long as all that is in the trace.
	SpanTQBatch = "tq.batch"
	// Where the time of a step, a batch or a pass went: exclusive times, which add up to its length, sums and wall-clock
	// unions.
	SpanBreakdown = "breakdown"
)

// ZeroMQ RPC · Calls. By zmq_rpc.
const (
	// The RPC system. The name is of semconv 1.39. Stands on the resource, and on a span where it is different.
	AttrRPCSystem = "rpc.system.name"
	// Of semconv 1.37. The method of the call, which is also the span's name.
	AttrRPCMethod = "rpc.method"
	// Of semconv 1.37. unix where the log says IPC, else tcp.
	AttrNetworkTransport = "network.transport"
	// The transport as the log has it: IPC, TCP, IPC+SHM, IPC+SHM+OTP. Stands on the resource, and on a span where it is
	// different.
	AttrZMQTransport = "zeromq.transport"
	// boolean. True where tensors go through shared memory. Sizes are then those of the messages only, and no bandwidth is
	// made of them. Stands on the resource, and on a span where it is different.
	AttrZMQSharedMemory = "zeromq.shared_memory"
	// int. The number of the call as printed; it restarts within a file.
	AttrZMQCallID = "zeromq.call.id"
	// int, By. The size of the request; from Sent(KB), KB = 1024 B, two decimals: ± 5 B.
	AttrZMQRequestSize = "zeromq.request.size"
	// int, By. The size of the response, likewise.
	AttrZMQResponseSize = "zeromq.response.size"
	// double, By/s. (Request + response) / duration.
	AttrZMQThroughput = "zeromq.throughput"
	// double, By/s. The log's column, which is MiB/s.
	AttrZMQThroughputReported = "zeromq.throughput.reported"
	// double, 1. |recomputed − reported| / recomputed, 0 where print rounding explains it; of a group the largest of its
	// calls.
	AttrZMQThroughputDisagreement = "zeromq.throughput.disagreement"
	// int. The place of the call among the slowest of its group, 1 to 5.
	AttrZMQCallSlowest = "zeromq.call.slowest"
	// int. The place of the call among the largest of its group, 1 to 5.
	AttrZMQCallLargest = "zeromq.call.largest"
	// template[any]. The name of a column follows, where this registry has no name for it.
	AttrZMQFieldPrefix = "zeromq.field."
)

// Values of rpc.system.name.
const (
	// ZeroMQ.
	RPCSystemZeroMQ = "zeromq"
)

// ZeroMQ RPC · Groups of calls. Of a pass, a session, or other calls. Durations are sums over the calls; they are left
// out where the log has no such column. A call has its own where its stages are no spans, and where logs are read once,
// as `trainbridge report` reads them.
const (
	// int. The ordinal of the pass in its session, from 1; ids that begin anew do not begin a session.
	AttrZMQPass = "zeromq.pass.ordinal"
	// int. How often the ids of calls had begun anew in the log, as they do after a warm-up; left out where they had not.
	AttrZMQPassBlock = "zeromq.pass.block"
	// int, {call}. How many calls the group has.
	AttrZMQPassCalls = "zeromq.pass.calls"
	// int, {call}. How many calls of the group carry another trace id than most of them, and are in that trace.
	AttrZMQPassLeft = "zeromq.pass.left"
	// Why the group ended.
	AttrZMQPassEnd = "zeromq.pass.end"
	// double, s. The calls.
	AttrZMQCallDuration = "zeromq.call.duration"
	// double, s. Serializing requests.
	AttrZMQSerializeDuration = "zeromq.serialize.duration"
	// double, s. Sending them.
	AttrZMQSendDuration = "zeromq.send.duration"
	// double, s. Waiting for responses and receiving them.
	AttrZMQReceiveDuration = "zeromq.receive.duration"
	// double, s. Deserializing them.
	AttrZMQDeserializeDuration = "zeromq.deserialize.duration"
	// double, s. The server's computation, by its own clock; it lies within receive.
	AttrZMQServerDuration = "zeromq.server.duration"
	// double, s. What no stage explains.
	AttrZMQUnattributedDuration = "zeromq.unattributed.duration"
	// double, s. Client work beside the calls.
	AttrZMQOfflineDuration = "zeromq.offline.duration"
	// The method of the slowest call.
	AttrZMQSlowestMethod = "zeromq.slowest.method"
	// double, s. The time of the slowest call.
	AttrZMQSlowestDuration = "zeromq.slowest.duration"
)

// Values of zeromq.pass.end.
const (
	// A pass_end method was called.
	PassEndMethod = "method"
	// The next pass began.
	PassEndNext = "next"
	// It had max_calls calls.
	PassEndMax = "max_calls"
	// The log's summary came.
	PassEndSummary = "summary"
	// The client began anew: the group is incomplete.
	PassEndRestart = "restart"
	// Nothing came for pending_timeout: the group is incomplete.
	PassEndTimeout = "timeout"
)

// ZeroMQ RPC · Added by train_perf. Shares of zeromq.call.duration: 0..1, unless a log contradicts itself.
const (
	// double, 1. The share of serializing. Where the log has the column.
	AttrZMQSerializeUtilization = "zeromq.serialize.utilization"
	// double, 1. The share of sending. Where the log has the column.
	AttrZMQSendUtilization = "zeromq.send.utilization"
	// double, 1. The share of receiving. Where the log has the column.
	AttrZMQReceiveUtilization = "zeromq.receive.utilization"
	// double, 1. The share of deserializing. Where the log has the column.
	AttrZMQDeserializeUtilization = "zeromq.deserialize.utilization"
	// double, 1. The share of the server's computation. Where the log says; it is within receive.
	AttrZMQServerUtilization = "zeromq.server.utilization"
	// double, 1. The share that no stage explains.
	AttrZMQUnattributedUtilization = "zeromq.unattributed.utilization"
	// double, 1. The share of the transport: send + receive − server. Where the server's time is not known, its computation
	// is in it; the server's queue always is.
	AttrZMQTransportUtilization = "zeromq.transport.utilization"
)

// ZeroMQ RPC · Summaries. What the log says about itself at its end.
const (
	// template[any]. The name of a line of the summary follows.
	AttrZMQFinalPrefix = "zeromq.final."
	// double, 1. The largest |recomputed − reported| / recomputed over the statistics of the summary.
	AttrZMQFinalDisagreement = "zeromq.final.disagreement"
)

// ZeroMQ RPC · Labels of metrics. What only metrics of RPCs have.
const (
	// The part of the calls' time.
	AttrZMQStage = "zeromq.stage"
	// The line of the summary that was compared.
	AttrZMQStatistic = "zeromq.final.statistic"
)

// ZeroMQ RPC: spans and events.
const (
	// One forward pass: from a pass_start method to a pass_end method.
	SpanRPCPass = "rpc.pass"
	// What a client calls before its first pass (Init).
	SpanRPCSession = "rpc.session"
	// Calls that belong to no pass.
	SpanRPCCalls = "rpc.calls"
	// What the log says about itself at its end; in the trace of the last group.
	SpanRPCSummary = "rpc.summary"
	// Serializing the request.
	SpanRPCSerialize = "rpc.serialize"
	// Sending it.
	SpanRPCSend = "rpc.send"
	// Waiting for the response and receiving it: the server's queue and computation, and the transfer, are in it.
	SpanRPCReceive = "rpc.receive"
	// Deserializing the response.
	SpanRPCDeserialize = "rpc.deserialize"
	// The server's computation by its own clock, below rpc.receive; when in it, the log does not say.
	SpanRPCServer = "rpc.server.compute"
	// What no stage explains of the call's time.
	SpanRPCUnattributed = "rpc.unattributed"
	// Client work for a call, before it: beside the call, not in its time.
	SpanRPCOffline = "rpc.offline"
)

// ZeroMQ RPC: metrics.
const (
	// histogram, s. Measures the duration of an outgoing Remote Procedure Call (RPC). The name is of semconv 1.39.
	MetricRPCCallDuration = "rpc.client.call.duration"
	// histogram, By. Size of requests. The name is of semconv 1.37; later versions have removed it.
	MetricRPCRequestSize = "rpc.client.request.size"
	// histogram, By. Size of responses. The name is of semconv 1.37; later versions have removed it.
	MetricRPCResponseSize = "rpc.client.response.size"
	// histogram, s. Duration of complete forward passes.
	MetricZMQPassDuration = "zeromq.pass.duration"
	// histogram, {call}. Calls in a complete forward pass.
	MetricZMQPassCalls = "zeromq.pass.calls"
	// gauge, 1. Share of the calls' time in the last pass, by stage.
	MetricZMQStageUtilization = "zeromq.stage.utilization"
	// counter, s. Time of complete calls, by method and stage; that of the server is within receive. Of calls whose stages
	// have spans.
	MetricZMQStageTime = "zeromq.stage.time"
	// histogram, 1. Largest difference of a pass between reported and recomputed throughput, as a share of the latter.
	MetricZMQThroughputDisagreement = "zeromq.throughput.disagreement"
	// gauge, 1. Difference between a line of the log's summary and what its rows add up to, as a share of the latter. 0:
	// print rounding explains it. The rows since the ids began anew. Lines that do not follow from rows are not compared.
	MetricZMQFinalDisagreement = "zeromq.final.disagreement"
)

// TransferQueue · Functions, stages and client operations. By tq_trace and by Go services.
const (
	// The function that the batch went through.
	AttrTQFunction = "tq.function"
	// What the span is.
	AttrTQStage = "tq.stage"
	// The trace id as the log has it.
	AttrTQTraceID = "tq.trace_id"
	// int, {sample}. Samples in the batch.
	AttrTQBatchSize = "tq.batch.size"
	// int, By. What a client operation moved; from data_size_mb, which is MiB.
	AttrTQDataSize = "tq.data.size"
	// double, By/s. Size / duration of a client operation.
	AttrTQThroughput = "tq.throughput"
	// double, By/s. As the log has it: throughput_mbps, which is MiB/s.
	AttrTQThroughputReported = "tq.throughput.reported"
	// double, 1. The share of GET that FUNCTION_END printed.
	AttrTQGetUtilizationReported = "tq.get.utilization.reported"
	// double, 1. The share of the computation that FUNCTION_END printed.
	AttrTQComputeUtilizationReported = "tq.compute.utilization.reported"
	// double, 1. The share of PUT that FUNCTION_END printed.
	AttrTQPutUtilizationReported = "tq.put.utilization.reported"
	// template[any]. The name of a field of the log follows, where this registry has no name for it.
	AttrTQFieldPrefix = "tq.field."
)

// Values of tq.stage.
const (
	// The whole function.
	StageFunction = "function"
	// Getting its input from TransferQueue.
	StageGet = "get"
	// The function itself.
	StageCompute = "compute"
	// Putting its output there.
	StagePut = "put"
	// A get of the client.
	StageClientGet = "client_get"
	// A put of the client.
	StageClientPut = "client_put"
	// A get_meta of the client, which only [TQ-LOG] lines show (verl @89c88d49).
	StageClientGetMeta = "client_get_meta"
	// A clear of the client, likewise.
	StageClientClear = "client_clear"
)

// TransferQueue · Added by train_perf. Shares of the function's time, recomputed from its stages.
const (
	// double, 1. The share of GET. Σ of the stage's durations / the function's. Stages that overlap can sum to more than 1.
	AttrTQGetUtilization = "tq.get.utilization"
	// double, 1. The share of the computation. Σ of the stage's durations / the function's. Stages that overlap can sum to
	// more than 1.
	AttrTQComputeUtilization = "tq.compute.utilization"
	// double, 1. The share of PUT. Σ of the stage's durations / the function's. Stages that overlap can sum to more than 1.
	AttrTQPutUtilization = "tq.put.utilization"
	// double, 1. The share of GET and PUT together.
	AttrTQOverheadUtilization = "tq.overhead.utilization"
	// double, 1. 1 − the wall-clock union of the stages. Time that no stage accounts for; only where no share is the log's.
	AttrTQUnattributedUtilization = "tq.unattributed.utilization"
	// Where the share comes from; without it, it was recomputed.
	AttrTQGetUtilizationSource = "tq.get.utilization.source"
	// Where the share comes from; without it, it was recomputed.
	AttrTQComputeUtilizationSource = "tq.compute.utilization.source"
	// Where the share comes from; without it, it was recomputed.
	AttrTQPutUtilizationSource = "tq.put.utilization.source"
	// double, 1. The largest |recomputed − reported| of the three shares.
	AttrTQUtilizationDisagreement = "tq.utilization.disagreement"
	// boolean. True on the scope of spans that a train_perf has seen: the next one leaves its TransferQueue spans alone.
	AttrTQJudged = "trainbridge.tq.judged"
)

// Values of tq.get.utilization.source.
const (
	// The stage's lines were lost: it is what FUNCTION_END printed.
	TQShareReported = "reported"
)

// TransferQueue · Labels of metrics. Of the metrics that tq_trace makes of the lines beside the [TQ-…] ones.
const (
	// Which way a task's data went.
	AttrTQDirection = "tq.direction"
	// The storage unit.
	AttrTQStorageUnit = "tq.storage.unit"
	// The operation of a storage unit.
	AttrTQOperation = "tq.operation"
)

// TransferQueue: spans and events.
const (
	// Getting the function's input.
	SpanTQGet = "tq.get"
	// The function itself.
	SpanTQCompute = "tq.compute"
	// Putting its output.
	SpanTQPut = "tq.put"
	// A get of the client.
	SpanTQClientGet = "tq.client.get"
	// A put of the client.
	SpanTQClientPut = "tq.client.put"
	// A get_meta of the client, which only [TQ-LOG] lines show.
	SpanTQClientGetMeta = "tq.client.get_meta"
	// A clear of the client, likewise.
	SpanTQClientClear = "tq.client.clear"
)

// TransferQueue: metrics.
const (
	// histogram, s. Duration of complete TransferQueue functions.
	MetricTQFunctionDuration = "tq.function.duration"
	// histogram, s. Duration of complete stages and client operations.
	MetricTQStageDuration = "tq.stage.duration"
	// counter, s. Time of functions whose shares are known. With tq.stage.time one population for the share of
	// TransferQueue. The duration histograms have two: a stage may be whole where its function is not.
	MetricTQFunctionTime = "tq.function.time"
	// counter, s. Time of those functions in each stage.
	MetricTQStageTime = "tq.stage.time"
	// histogram, By/s. Throughput of client operations.
	MetricTQClientThroughput = "tq.client.throughput"
	// histogram, 1. Largest difference between a reported and a recomputed share.
	MetricTQUtilizationDisagreement = "tq.utilization.reported.disagreement"
	// gauge, 1. Share of the last function's time, by stage.
	MetricTQStageUtilization = "tq.stage.utilization"
	// gauge, 1. Share of the last function's time in GET and PUT.
	MetricTQOverheadUtilization = "tq.overhead.utilization"
	// gauge, s. How long a task took to get its input from TransferQueue, or to put its output there. Of lines such as
	// "Task f (pid=1) is getting …, cost time: 0.18" (verl main @1dda039b).
	MetricTQTaskDuration = "tq.task.duration"
	// gauge, {request}. Successful requests to a storage unit within the record's time range. TransferQueue's [Performance]
	// record (@b75d570d), over all operations; the start time is that of its time range.
	MetricTQStorageRequests = "tq.storage.requests"
	// gauge, {request}/s. Successful requests to a storage unit per second.
	MetricTQStorageRate = "tq.storage.request.rate"
	// gauge, s. Mean time a storage unit took for a request.
	MetricTQStorageDurationAvg = "tq.storage.request.duration.avg"
	// gauge, {request}. Requests of one operation within the record's time range. Of the record's line for each operation.
	MetricTQOperationRequests = "tq.storage.operation.requests"
	// gauge, {request}/s. Requests of one operation per second.
	MetricTQOperationRate = "tq.storage.operation.rate"
	// gauge, s. Mean time of one operation.
	MetricTQOperationDurationAvg = "tq.storage.operation.duration.avg"
	// gauge, s. Longest time of one operation within the record's time range.
	MetricTQOperationDurationMax = "tq.storage.operation.duration.max"
	// gauge, s. Shortest time of one operation within the record's time range.
	MetricTQOperationDurationMin = "tq.storage.operation.duration.min"
)

// Training steps · Ranks. Which rank logged it.
const (
	// int. The global rank.
	AttrRank = "dl.rank"
	// int. The rank on its node, as in torchrun's "[default3]:".
	AttrLocalRank = "dl.local_rank"
	// int. How many ranks the job has. Stands on the resource, and on a span where it is different.
	AttrWorldSize = "dl.world_size"
)

// Training steps · Model. Resource attributes: the model and its layout, from the arguments that the log prints or from
// train_perf's configuration.
const (
	// template[any]. The name of an argument of Megatron follows, such as hidden_size; train_perf computes FLOPs from them.
	ModelPrefix = "ml.model."
)

// Training steps · Steps. What a log says about a step, by receivers.
const (
	// int, {iteration}. The iteration as printed: from 1, in NeMo from 0.
	AttrIteration = "ml.train.iteration"
	// int, {iteration}. How many iterations are planned. Stands on the resource, and on a span where it is different.
	AttrIterations = "ml.train.iterations"
	// double. The epoch, with its fraction.
	AttrEpoch = "ml.train.epoch"
	// int. The ordinal of the record in its log, from 1, where the log names no iteration.
	AttrRecord = "ml.train.record"
	// int, {step}. How many steps the span covers, where they are several. It is not known of the first record of a log.
	// Stands on the resource, and on a span where it is different.
	AttrStepsCovered = "ml.train.steps_covered"
	// The format of the record. Stands on the resource, and on a span where it is different.
	AttrSource = "trainbridge.source"
	// The log's units, where they are not the base units. Stands on the resource, and on a span where it is different.
	AttrSourceUnit = "trainbridge.source.unit"
	// double, s. The time of one step. Left out where the span's length over ml.train.steps_covered says it. Without
	// ml.train.step.duration.kind it is what the log states of this very step.
	AttrStepDuration = "ml.train.step.duration"
	// What the time of the step is. Stands on the resource, and on a span where it is different.
	AttrStepDurationKind = "ml.train.step.duration.kind"
	// double, {loss}. The training loss. NaN and infinities are written as text, "NaN", "+Inf" and "-Inf", since JSON has
	// no such numbers.
	AttrLoss = "ml.train.loss"
	// double, {learning_rate}. The learning rate.
	AttrLearningRate = "ml.train.learning_rate"
	// double, {norm}. The norm of the gradient.
	AttrGradientNorm = "ml.train.gradient.norm"
	// double. How many of the gradient's elements are zero.
	AttrGradientZeros = "ml.train.gradient.zeros"
	// double, {norm}. The norm of the parameters.
	AttrParamsNorm = "ml.train.params.norm"
	// double, {scale}. The loss scale of mixed-precision training. Stands on the resource, and on a span where it is
	// different.
	AttrLossScale = "ml.train.loss.scale"
	// double, {loss}. The loss on the validation set.
	AttrValidationLoss = "ml.train.validation.loss"
	// double, {perplexity}. The perplexity on the validation set.
	AttrPerplexity = "ml.train.validation.perplexity"
	// int, {sample}. Samples per step, of all data-parallel ranks. Stands on the resource, and on a span where it is
	// different.
	AttrBatchSize = "ml.train.batch.size"
	// int, {sample}. Samples since the run began.
	AttrConsumedSamples = "ml.train.consumed.samples"
	// double, {token}. Tokens since the run began.
	AttrConsumedTokens = "ml.train.consumed.tokens"
	// int, {iteration}. Iterations that were skipped, as the log counts them. Stands on the resource, and on a span where
	// it is different.
	AttrSkippedIterations = "ml.train.iterations.skipped"
	// int, {iteration}. Iterations with a NaN, as the log counts them. Stands on the resource, and on a span where it is
	// different.
	AttrNaNIterations = "ml.train.iterations.nan"
	// int, {token}. Tokens of all the steps covered; from the log, or by train_perf. By train_perf: batch × steps, else the
	// log's rate × the span's time, which is an estimate and no whole number. Stands on the resource, and on a span where
	// it is different.
	AttrTokens = "ml.train.tokens"
	// double, {sample}/s. Samples per second.
	AttrSampleThroughput = "ml.train.sample.throughput"
	// double, {token}/s. Tokens per second, all devices.
	AttrTokenThroughput = "ml.train.token.throughput"
	// double, {token}/s. Tokens per second and device.
	AttrDeviceTokenThroughput = "ml.train.device.token.throughput"
	// double, {flop}/s. FLOP/s of all devices, as the log has it.
	AttrFlopThroughputReported = "ml.train.flop.throughput.reported"
	// double, {flop}/s. FLOP/s of one device, as the log has it.
	AttrDeviceFlopThroughputReported = "ml.train.device.flop.throughput.reported"
	// double, 1. Model FLOP/s utilization (MFU), as the log has it.
	AttrMFUReported = "ml.train.flop.utilization.reported"
	// double, {flop}. FLOPs of one step, all devices, as a FLOPS breakdown printed it (there called TFLOPS).
	AttrFlopCountReported = "ml.train.flop.count.reported"
	// double, {flop}. The forward pass' part of it.
	AttrFlopCountForward = "ml.train.flop.count.forward"
	// double, {flop}. The backward pass' part of it.
	AttrFlopCountBackward = "ml.train.flop.count.backward"
	// double, {flop}. The optimizer's part of it.
	AttrFlopCountOptimizer = "ml.train.flop.count.optimizer"
	// double, By. Device memory allocated, of the rank that logs.
	AttrMemoryUsage = "ml.train.device.memory.usage"
	// double, By. The most device memory allocated so far.
	AttrMemoryPeak = "ml.train.device.memory.peak"
	// double, By. Device memory that the allocator reserved.
	AttrMemoryReserved = "ml.train.device.memory.reserved"
	// double, By. The most device memory reserved so far.
	AttrMemoryReservedPeak = "ml.train.device.memory.reserved.peak"
	// double, 1. The share of the device memory in use.
	AttrMemoryUtilization = "ml.train.device.memory.utilization"
	// double, 1. The share of the time in which the devices were busy: the mean over the devices of the log's list, or of
	// the window. As a metric the name is of semconv 1.37.
	AttrGPUUtilization = "hw.gpu.utilization"
	// double, 1. The same of the idlest of them.
	AttrGPUUtilizationMin = "hw.gpu.utilization.min"
	// double, J. Energy of one device in one step.
	AttrDeviceEnergy = "ml.train.device.energy"
	// double, W. Power of one device.
	AttrDevicePower = "ml.train.device.power"
	// template[any]. The name of a field of the log follows, where this registry has no name for it.
	AttrTrainFieldPrefix = "ml.train.field."
)

// Values of ml.train.step.duration.kind.
const (
	// Of this very step: the attribute is left out.
	DurationStep = "step"
	// The mean over the steps covered.
	DurationMean = "mean"
	// The median of the later half of all steps so far (FlagScale's perf_monitor): an estimate for this one.
	DurationMedian = "median"
	// Not in the log: the time since the record before, by steps covered. Evaluation and checkpoints are in it.
	DurationInterval = "interval"
)

// Training steps · Added by train_perf. What train_perf computes of a step.
const (
	// double, {sample}. Samples of all the steps covered. Batch × steps, an int; else the log's rate × the span's time,
	// which is an estimate and no whole number. Stands on the resource, and on a span where it is different.
	AttrSamples = "ml.train.samples"
	// double, {flop}/s. FLOP/s of all devices, recomputed.
	AttrFlopThroughput = "ml.train.flop.throughput"
	// double, {flop}/s. FLOP/s of one device, recomputed.
	AttrDeviceFlopThroughput = "ml.train.device.flop.throughput"
	// double, 1. Model FLOP/s utilization (MFU), recomputed. Of one device, over its peak.
	AttrMFU = "ml.train.flop.utilization"
	// double, 1. Hardware FLOP/s utilization (HFU): recomputed activations count as work too. Only where it is known what
	// is recomputed.
	AttrHFU = "ml.train.hardware.flop.utilization"
	// double, 1. |recomputed − reported| / recomputed, of the device FLOP/s. With the formula and convention in use.
	AttrFlopDisagreement = "ml.train.flop.throughput.disagreement"
	// Whose count of FLOPs it is. Stands on the resource, and on a span where it is different.
	AttrFlopFormula = "ml.train.flop.formula"
	// How much of the attention matrix counts. Stands on the resource, and on a span where it is different.
	AttrFlopConvention = "ml.train.flop.convention"
	// Which activations are recomputed. Stands on the resource, and on a span where it is different.
	AttrFlopRecompute = "ml.train.flop.recompute"
	// What of the model is not counted: there are no recomputed FLOPs then, and no verdict about the log's.
	AttrFlopUnsupported = "ml.train.flop.unsupported"
	// double, {flop}/s. The peak of the device that MFU is a share of. The dense BF16 peak. Stands on the resource, and on
	// a span where it is different.
	AttrFlopPeak = "ml.train.device.flop.peak"
	// Of semconv 1.37. The device of that peak, where metrics of GPUs have the device. Not added where train_perf's
	// configuration, the log or the resource has the device.
	AttrDeviceModel = "hw.model"
	// double, {flop}. FLOPs of one step, all devices, as train_perf computes them. Recomputation is left out. Stands on the
	// resource, and on a span where it is different.
	AttrFlopCount = "ml.train.flop.count"
)

// Training steps · Parts of a step. A part of a step (verl's timing_s/*, Megatron's timers) is a child span of its
// name.
const (
	// The name of the part.
	AttrStage = "ml.train.stage"
	// Where the part is drawn, since logs state how long it took and not when.
	AttrStageOrder = "ml.train.stage.order"
	// double, s. The time of the fastest rank, where the span is the slowest.
	AttrStageDurationMin = "ml.train.stage.duration.min"
	// int. Of how many ranks the log has the time.
	AttrStageRanks = "ml.train.stage.ranks"
	// double, s. The median of the ranks' times.
	AttrStageDurationMedian = "ml.train.stage.duration.median"
	// int. The slowest rank.
	AttrStageRankSlowest = "ml.train.stage.rank.slowest"
	// int. The fastest rank.
	AttrStageRankFastest = "ml.train.stage.rank.fastest"
)

// Values of ml.train.stage.order.
const (
	// End to end with the others, in the order in which the trainer's code runs them.
	OrderTrainer = "trainer"
	// From the start of what it is a part of; or so that it ends with it, where the parts took longer than the whole.
	OrderUnknown = "unknown"
)

// Training steps · The slowest rank. On a step, or a report about ranks: the rank that computed for the longest,
// compared with the others of its pipeline stage, its peers. Only where the log says which ranks do the same.
const (
	// int. The rank that computed for the longest.
	AttrRankSlowest = "ml.train.rank.slowest"
	// double, s. How long it took.
	AttrRankSlowestDuration = "ml.train.rank.slowest.duration"
	// The part of the step in which it lost most.
	AttrRankSlowestStage = "ml.train.rank.slowest.stage"
	// int. How many peers it has.
	AttrRankSlowestPeers = "ml.train.rank.slowest.peers"
	// double, s. The median of its peers.
	AttrRankSlowestPeersDuration = "ml.train.rank.slowest.peers.duration"
	// int[]. The ranks that lost at least half as much as the slowest, which is the first; at most 16. Ranks that share
	// each operation are slow together.
	AttrRanksBehind = "ml.train.ranks.behind"
)

// Training steps · Labels of metrics. What only metrics of training have.
const (
	// What the run did in a second of its wall clock. start_up, step, checkpoint, evaluation, redone (steps done again),
	// down (between attempts), stalled, unexplained (between steps), after_end.
	AttrRunState = "ml.run.state"
	// How a run ended.
	AttrRunOutcome = "ml.run.outcome"
	// The final statistic of FlagScale's perf_monitor that was compared.
	AttrStatistic = "ml.train.final.statistic"
)

// Training steps: spans and events.
const (
	// One step, or the several that a record covers.
	SpanStep = "train.step"
	// A validation result.
	SpanEvaluation = "train.evaluation"
	// What a job says about itself at its end, in the run's trace.
	SpanSummary = "train.summary"
	// What a job says about the times of its ranks (Megatron's --log-straggler).
	SpanRanks = "train.ranks"
	// The number follows: what a part of a step took on that rank. Below a collective the host may follow, see
	// NCCLRankName.
	SpanRank = "rank "
)

// Training steps: metrics.
const (
	// histogram, s. Time of one training step, one value per record of the log.
	MetricStepDuration = "ml.train.step.duration"
	// gauge, s. Time of one training step, one value per record of the log. As the job itself sends it, a number rather
	// than a distribution: the name without reported is the histogram's.
	MetricStepDurationReported = "ml.train.step.duration.reported"
	// histogram, s. Duration of the parts of training steps.
	MetricStageDuration = "ml.train.stage.duration"
	// counter, {step}. Training steps. Those that the record covers, 1 where it does not say.
	MetricSteps = "ml.train.steps"
	// counter, {sample}. Samples trained on.
	MetricSamples = "ml.train.samples"
	// counter, {token}. Tokens trained on.
	MetricTokens = "ml.train.tokens"
	// updowncounter, s. Where the wall-clock time of a run went, from its first step to the last that was told. Each second
	// is in one state. A second may change its state: a gap is unexplained until the next attempt says that the run was
	// down.
	MetricRunTime = "ml.run.time"
	// gauge, {run}. 1 where the run has ended so, else 0. Of runs whose steps came while they ran.
	MetricRunEnded = "ml.run.ended"
	// gauge, s. When the latest step came, by the collector's clock, since 1970. Of runs whose steps came while they ran.
	MetricStepLastTime = "ml.train.step.last.time"
	// gauge, 1. Share of the run's time in steps that counted, none of them longer than is usual.
	MetricGoodput = "ml.train.goodput"
	// histogram, 1. Difference between reported and recomputed FLOP/s, as a share of the latter.
	MetricFlopDisagreement = "ml.train.flop.throughput.disagreement"
	// gauge, 1. As the log states it. |recomputed − reported| / recomputed of one final statistic.
	MetricFinalDisagreement = "ml.train.final.disagreement"
)

// Verdicts · Verdicts. The events and metrics of verdicts name them.
const (
	// The verdict.
	AttrVerdictName = "trainbridge.verdict.name"
)

// Values of trainbridge.verdict.name.
const (
	// warning: a step, a batch (or a function of TransferQueue) or an RPC pass, as `ml.step.window` says, took 10 % longer
	// than the median of comparable ones (same steps covered, same batch), and six robust standard deviations (1.4826 MAD):
	// of finished logs of the 64 before and after it in its regime, live of the 64 before it; a checkpoint and an
	// evaluation are each held against 32 of their kind, where there are five others. Names the parts that took more than
	// usual, and a rank where it alone is most of it; where no log explains most of it, which log would
	VerdictStepSlow = "step_slow"
	// bad: `nccl.hang`: it did not complete within the receiver's `hang_timeout`. Names the ranks that miss and those that
	// are stuck
	VerdictNCCLHang = "nccl_hang"
	// bad: ranks that took part before have no record, and did not go on: `trainbridge.incomplete.reason` is
	// `hang_timeout`, `rank_gone`, `end` or `evicted`. Not beside `nccl_hang`
	VerdictNCCLRankMissing = "nccl_rank_missing"
	// bad or warning: `nccl.straggler.rank`: one rank is late again and again, by the receiver's window. Where that begins,
	// where that rank was late and where it is over. Says how late, its score, and what it cost the others
	VerdictNCCLStraggler = "nccl_straggler"
	// warning: the last rank came more than 1 ms after the first, and more than the transfer took; where that is not known,
	// nothing is said: clocks of two hosts may be seconds apart
	VerdictNCCLLate = "nccl_late"
	// warning: the third in a row, or a later one, that is 20 % and the receiver's `anomaly_threshold`
	// (`nccl.bandwidth.deviation`) below the baseline; where bandwidths vary more, a longer row. Not where a rank has no
	// record: its lateness would count as transfer
	VerdictNCCLBandwidthLow = "nccl_bandwidth_low"
	// bad: `nccl.errors` above 0
	VerdictNCCLErrors = "nccl_errors"
	// bad: `nccl.mismatch`: the ranks disagree about the message size, or (Flight Recorder) about the operation
	VerdictNCCLMismatch = "nccl_mismatch"
	// warning: links differ from the others, over the run so far
	VerdictNCCLLink = "nccl_link"
	// warning: `nccl.bandwidth.disagreement`: the logged bandwidth is more than 5 % off what size and duration give
	VerdictNCCLBandwidthUnit = "nccl_bandwidth_unit"
	// warning: serialize > 30 %; on one in 100 where it is true of nearly all
	VerdictZMQSerializeHigh = "zeromq_serialize_high"
	// warning: transport > 30 %, and either over TCP, or moving the bytes at 1 GiB/s alone takes > 30 %. Waiting is no
	// proof: receive has the server's queue and compute in it. All public logs (IPC, up to 162 MiB/s) wait 80 to 99 % and
	// get none
	VerdictZMQTransportHigh = "zeromq_transport_high"
	// warning: more than 50 calls; on the first, then on one in 100
	VerdictZMQCallsHigh = "zeromq_calls_high"
	// warning: TCP, where IPC is expected; it has no value and threshold; on the first, then on one in 100
	VerdictZMQTransportTCP = "zeromq_transport_tcp"
	// bad or warning: bad: get + put > 30 %; a warning: 20 % ≤ get + put ≤ 30 %; of either, on one in 100 where it is true
	// of nearly all
	VerdictTQOverhead = "tq_overhead"
	// warning: coefficient of variation of the last 100 of a stage (`tq.stage` is `get` or `put`) > 0.5; said at once, then
	// at most once per window
	VerdictTQFluctuating = "tq_fluctuating"
	// bad: < 100 MiB/s; on one in 100 where it is true of nearly all
	VerdictTQThroughputLow = "tq_throughput_low"
	// warning: below the P10 of the run's last 100 records, and 20 % below their median, and six robust standard deviations
	// (1.4826 MAD, of logarithms)
	VerdictThroughputLow = "train_throughput_low"
	// bad: steps of the last 100 records take 10 % longer (median) than those of the run's best 100, and noise does not
	// explain it; then again once per 100
	VerdictSlowdown = "train_slowdown"
	// bad: the loss is NaN or infinite
	VerdictLossNotFinite = "train_loss_not_finite"
	// warning: 10 robust standard deviations and 10 % above the median of the last 100; said at its start
	VerdictLossSpike = "train_loss_spike"
	// bad: a rank computed for more than 10 % (`slowdown`) longer than its peers, which cost at least 1 % of the step, in 9
	// of the last 10 records; said once, then again once per 100
	VerdictRankSlow = "train_rank_slow"
	// warning or bad: the log's FLOPs, or what they are made of or held against, cannot be right; the cause says what is
	// wrong
	VerdictFlopsWrong = "train_flops_wrong"
	// warning: MFU < 30 %, but for the first iteration. Not of perf_monitor's own number, which leaves the data-parallel
	// size out
	VerdictMFULow = "train_mfu_low"
)
