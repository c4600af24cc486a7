// Code generated from spans/registry by tools/semconv. DO NOT EDIT.

package view

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Head has the values that a span of any kind may have. The other views embed it.
type Head struct {
	// trainbridge.incomplete: boolean. True where the end (or the start) of the record was never seen.
	Incomplete bool
	// trainbridge.incomplete.reason: Why the record is incomplete.
	Reason string
	// trainbridge.verdict: string[]. The names of the verdicts about this span; each is also an event trainbridge.verdict.
	Verdicts List
	// trainbridge.verdict.severity: Of a span, the worst of its verdicts; of an event, a log record or a count, that of the
	// verdict.
	Severity string

	Judged bool // a train_perf has seen it
}

var noHead = blank[Head]()

// Read reads a span.
func (h *Head) Read(span ptrace.Span) {
	*h = noHead
	for name, value := range span.Attributes().All() {
		h.note(name, value)
	}
}

// note notes an attribute, if it is one of these.
func (h *Head) note(name string, value pcommon.Value) {
	switch name {
	case spans.AttrIncomplete:
		h.Incomplete = flagOf(value)
	case spans.AttrIncompleteReason:
		h.Reason = spans.ValueText(value)
	case spans.AttrVerdict:
		h.Verdicts, h.Judged = listOf(value), true
	case spans.AttrVerdictSeverity:
		h.Severity = spans.ValueText(value)
	}
}

// Verdict is an event about one verdict.
type Verdict struct {
	Said

	// trainbridge.verdict.reason: One English sentence with the numbers.
	Reason string
	// trainbridge.verdict.value: double. What was judged, in the unit of the verdict.
	Value float64
	// trainbridge.verdict.threshold: double. The limit that it was held against, in the same unit.
	Threshold float64

	Time pcommon.Timestamp
}

var noVerdict = blank[Verdict]()

// take reads attributes.
func (v *Verdict) take(attrs pcommon.Map) {
	for name, value := range attrs.All() {
		switch name {
		case spans.AttrTQStage:
			v.Said.Stage = spans.ValueText(value)
		case spans.AttrVerdictName:
			v.Said.Name = spans.ValueText(value)
		case spans.AttrVerdictSeverity:
			v.Said.Severity = spans.ValueText(value)
		case spans.AttrVerdictCause:
			v.Said.Cause = spans.ValueText(value)
		case spans.AttrVerdictReason:
			v.Reason = spans.ValueText(value)
		case spans.AttrVerdictValue:
			v.Value = spans.ValueNumber(value)
		case spans.AttrVerdictThreshold:
			v.Threshold = spans.ValueNumber(value)
		}
	}
}

// Resource is who did the work of spans, and what holds for each of them that says nothing else. Some logs name a host
// or a device per record: the span's own are in its view then.
type Resource struct {
	Job

	// ml.run.attempt: int. Which attempt of the run trained this: how often the job had begun anew, or gone back to a
	// checkpoint, before. Absent: the first. Counted in each log, by a line that says so or by iterations that go back;
	// torchrun's attempt_<n> in the log's path comes to that. A step that was trained twice has two spans in its trace, and
	// the later one has the higher number.
	RunAttempt Int
	// host.name: Of semconv 1.37. An IP address where the log only has that.
	Host string
	// process.pid: Of semconv 1.37.
	PID Int
	// hw.model: Of semconv 1.37. The device of that peak, where metrics of GPUs have the device. Not added where
	// train_perf's configuration, the log or the resource has the device.
	DeviceModel string
	// dl.rank: int. The global rank.
	Rank Int
	// dl.world_size: int. How many ranks the job has. Stands on the resource, and on a span where it is different.
	WorldSize Int
	// trainbridge.join.by: How the span came into its trace. Stands on the resource where it holds for all of its spans. A
	// span whose trace is made of its own key has none.
	JoinBy string
	// trainbridge.record_only: boolean. True of spans that are joined and counted, and not drawn: collectives that
	// sample_rate left out. No backend is to have them. Stands on the resource. The term is OpenTelemetry's: a span of the
	// sampling decision RECORD_ONLY is processed, and is exported by none. `otlp_acked` keeps such spans back, unless what
	// it sends to is another collector.
	RecordOnly bool
	// trainbridge.time.source: Where the times of the span come from. Stands on the resource, and on a span where it is
	// different.
	TimeSource spans.TimeSource
	// trainbridge.source: The format of the record. Stands on the resource, and on a span where it is different.
	Source string
	// rpc.system.name: The RPC system. The name is of semconv 1.39. Stands on the resource, and on a span where it is
	// different.
	RPCSystem string
	// network.transport: Of semconv 1.37. unix where the log says IPC, else tcp.
	NetworkTransport string
	// zeromq.transport: The transport as the log has it: IPC, TCP, IPC+SHM, IPC+SHM+OTP. Stands on the resource, and on a
	// span where it is different.
	ZMQTransport string
	// zeromq.shared_memory: boolean. True where tensors go through shared memory. Sizes are then those of the messages
	// only, and no bandwidth is made of them. Stands on the resource, and on a span where it is different.
	ZMQSharedMemory bool
	// ml.train.steps_covered: int, {step}. How many steps the span covers, where they are several. It is not known of the
	// first record of a log. Stands on the resource, and on a span where it is different.
	StepsCovered float64
	// ml.train.step.duration.kind: What the time of the step is. Stands on the resource, and on a span where it is
	// different.
	StepDurationKind string
	// ml.train.batch.size: int, {sample}. Samples per step, of all data-parallel ranks. Stands on the resource, and on a
	// span where it is different.
	BatchSize float64
	// ml.train.samples: double, {sample}. Samples of all the steps covered. Batch × steps, an int; else the log's rate ×
	// the span's time, which is an estimate and no whole number. Stands on the resource, and on a span where it is
	// different.
	Samples float64
	// ml.train.tokens: int, {token}. Tokens of all the steps covered; from the log, or by train_perf. By train_perf: batch
	// × steps, else the log's rate × the span's time, which is an estimate and no whole number. Stands on the resource, and
	// on a span where it is different.
	Tokens float64

	Judged bool // a train_perf has seen its spans
	read   bool // attributes were read: the zero value says nothing
}

var noResource = blank[Resource]()

// take reads attributes.
func (r *Resource) take(attrs pcommon.Map) {
	for name, value := range attrs.All() {
		switch name {
		case spans.AttrServiceName:
			r.Job.Service = spans.ValueText(value)
		case spans.AttrRunID:
			r.Job.Run = spans.ValueText(value)
		case spans.AttrRunAttempt:
			r.RunAttempt = ordinalOf(value)
		case spans.AttrHostName:
			r.Host = spans.ValueText(value)
		case spans.AttrProcessPID:
			r.PID = ordinalOf(value)
		case spans.AttrDeviceModel:
			r.DeviceModel = spans.ValueText(value)
		case spans.AttrRank:
			r.Rank = ordinalOf(value)
		case spans.AttrWorldSize:
			r.WorldSize = ordinalOf(value)
		case spans.AttrJoinBy:
			r.JoinBy = spans.ValueText(value)
		case spans.AttrRecordOnly:
			r.RecordOnly = flagOf(value)
		case spans.AttrTimeSource:
			r.TimeSource = spans.TimeSource(spans.ValueText(value))
		case spans.AttrSource:
			r.Source = spans.ValueText(value)
		case spans.AttrRPCSystem:
			r.RPCSystem = spans.ValueText(value)
		case spans.AttrNetworkTransport:
			r.NetworkTransport = spans.ValueText(value)
		case spans.AttrZMQTransport:
			r.ZMQTransport = spans.ValueText(value)
		case spans.AttrZMQSharedMemory:
			r.ZMQSharedMemory = flagOf(value)
		case spans.AttrStepsCovered:
			r.StepsCovered = spans.ValueNumber(value)
		case spans.AttrStepDurationKind:
			r.StepDurationKind = spans.ValueText(value)
		case spans.AttrBatchSize:
			r.BatchSize = spans.ValueNumber(value)
		case spans.AttrSamples:
			r.Samples, r.Judged = spans.ValueNumber(value), true
		case spans.AttrTokens:
			r.Tokens = spans.ValueNumber(value)
		case spans.AttrFlopFormula:
			r.Judged = true
		case spans.AttrFlopUnsupported:
			r.Judged = true
		}
	}
}

// Aggregate stands for many spans of one name: KindAggregate.
type Aggregate struct {
	// trainbridge.aggregate.count: int, {span}. How many spans it stands for.
	Count Int
	// trainbridge.aggregate.sum: double, s. Their time together.
	Sum float64
	// trainbridge.aggregate.p50: double, s. The median of their times.
	P50 float64
	// trainbridge.aggregate.max: double, s. The longest of them.
	Max float64
	// trainbridge.join.by: How the span came into its trace. Stands on the resource where it holds for all of its spans. A
	// span whose trace is made of its own key has none.
	JoinBy string
	// nccl.comm.name: The name of the communicator.
	CommName string
	// trainbridge.aggregate.wait: double, s. Of collectives: the time from the first rank's arrival to the last's, summed.
	Wait float64
}

var noAggregate = blank[Aggregate]()

// Read reads a span.
func (a *Aggregate) Read(span ptrace.Span) {
	*a = noAggregate
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrAggregateCount:
			a.Count = ordinalOf(value)
		case spans.AttrAggregateSum:
			a.Sum = spans.ValueNumber(value)
		case spans.AttrAggregateP50:
			a.P50 = spans.ValueNumber(value)
		case spans.AttrAggregateMax:
			a.Max = spans.ValueNumber(value)
		case spans.AttrJoinBy:
			a.JoinBy = spans.ValueText(value)
		case spans.AttrNCCLCommName:
			a.CommName = spans.ValueText(value)
		case spans.AttrAggregateWait:
			a.Wait = spans.ValueNumber(value)
		}
	}
}

// Breakdown says where the time of a step, a batch or a pass went: KindBreakdown.
type Breakdown struct {
	Head

	// ml.step.window: What the breakdown is of. Steps, batches and passes lie within each other, so that only the times of
	// one kind may be added up.
	Window string
	// ml.train.iteration: int, {iteration}. The iteration as printed: from 1, in NeMo from 0.
	Iteration Int
	// trainbridge.join.partial: boolean. True where not all may be here, for a reason.
	Partial bool
	// trainbridge.join.partial.reason: Why not all may be here.
	PartialReason string
	// ml.step.usual: double, s. What is usual for such a window, among those around it that are like it. A window without
	// it was not judged, as too few like it are known.
	Usual float64
	// ml.step.excess: double, s. By how much a window that was slow took longer than usual.
	Excess float64
	// dl.world_size: int. How many ranks the job has. Stands on the resource, and on a span where it is different.
	WorldSize Int

	Times []PartTime // in the order in which the span names them
	GPUs  GPUs
}

var noBreakdown = blank[Breakdown]()

// take reads attributes.
func (b *Breakdown) take(attrs pcommon.Map) {
	for name, value := range attrs.All() {
		switch name {
		case spans.AttrStepWindow:
			b.Window = spans.ValueText(value)
		case spans.AttrIteration:
			b.Iteration = ordinalOf(value)
		case spans.AttrJoinPartial:
			b.Partial = flagOf(value)
		case spans.AttrJoinPartialReason:
			b.PartialReason = spans.ValueText(value)
		case spans.AttrStepUsual:
			b.Usual = spans.ValueNumber(value)
		case spans.AttrStepExcess:
			b.Excess = spans.ValueNumber(value)
		case spans.AttrWorldSize:
			b.WorldSize = ordinalOf(value)
		case spans.AttrGPUCount:
			b.GPUs.Count = ordinalOf(value)
		case spans.AttrGPUSampleCount:
			b.GPUs.Samples = ordinalOf(value)
		case spans.AttrGPUUtilization:
			b.GPUs.Utilization = spans.ValueNumber(value)
		case spans.AttrGPUUtilizationMin:
			b.GPUs.UtilizationMin = spans.ValueNumber(value)
		case spans.AttrGPUPower:
			b.GPUs.Power = spans.ValueNumber(value)
		case spans.AttrGPUTemperature:
			b.GPUs.Temperature = spans.ValueNumber(value)
		case spans.AttrGPUTemperatureMax:
			b.GPUs.TemperatureMax = spans.ValueNumber(value)
		case spans.AttrGPUClock:
			b.GPUs.Clock = spans.ValueNumber(value)
		case spans.AttrGPUClockMin:
			b.GPUs.ClockMin = spans.ValueNumber(value)
		default:
			if key, ok := strings.CutPrefix(name, spans.StepTimePrefix); ok {
				b.part(key).Seconds = spans.ValueNumber(value)
				continue
			}
			if key, ok := strings.CutPrefix(name, spans.StepSumPrefix); ok {
				b.part(key).Sum = spans.ValueNumber(value)
				continue
			}
			if key, ok := strings.CutPrefix(name, spans.StepUnionPrefix); ok {
				b.part(key).Union = spans.ValueNumber(value)
				continue
			}
			if key, ok := strings.CutPrefix(name, spans.GPUThrottleTimePrefix); ok {
				b.GPUs.throttled(key).Seconds = spans.ValueNumber(value)
				continue
			}
			b.Head.note(name, value)
		}
	}
}

// Cause is why a window was slow.
type Cause struct {
	// ml.step.part: A part of the time.
	Part string
	// ml.step.cause.time: double, s. By how much a cause made the window longer than usual; in an event ml.step.cause.
	Seconds float64
	// ml.step.cause.cost: double, s. The same times the ranks of the job, which all waited meanwhile; where their number is
	// known.
	Cost float64
	// nccl.late.rank: int. On the root: the last to arrive.
	Rank Int
	// nccl.late.host: On the root: its host.
	Host string
	// nccl.comm.name: The name of the communicator.
	Comm string
	// nccl.operation: The operation: AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Send, Recv, …
	Operation string
	// ml.step.cause.note: What else is known of the cause.
	Note string
	// ml.step.cause.reason: Why the logs do not explain the part unattributed.
	Reason string
	// nccl.clock.offset: double, s. On a rank: how much its host's clock is ahead of the reference host's. On the root: how
	// far the clocks of its hosts are apart, where that is more than 1 ms.
	ClocksApart float64
}

var noCause = blank[Cause]()

// take reads attributes.
func (c *Cause) take(attrs pcommon.Map) {
	for name, value := range attrs.All() {
		switch name {
		case spans.AttrStepPart:
			c.Part = spans.ValueText(value)
		case spans.AttrCauseTime:
			c.Seconds = spans.ValueNumber(value)
		case spans.AttrCauseCost:
			c.Cost = spans.ValueNumber(value)
		case spans.AttrNCCLLateRank:
			c.Rank = ordinalOf(value)
		case spans.AttrNCCLLateHost:
			c.Host = spans.ValueText(value)
		case spans.AttrNCCLCommName:
			c.Comm = spans.ValueText(value)
		case spans.AttrNCCLOperation:
			c.Operation = spans.ValueText(value)
		case spans.AttrCauseNote:
			c.Note = spans.ValueText(value)
		case spans.AttrCauseReason:
			c.Reason = spans.ValueText(value)
		case spans.AttrNCCLClockOffset:
			c.ClocksApart = spans.ValueNumber(value)
		}
	}
}

// Collective is the root of a collective, or a Send or Recv: KindCollective. It has the findings about all ranks.
type Collective struct {
	Head

	// nccl.operation: The operation: AllReduce, AllGather, ReduceScatter, Broadcast, Reduce, AllToAll, Send, Recv, …
	Operation string
	// nccl.algorithm: The algorithm as logged: RING, ring, NVLS, …
	Algorithm string
	// nccl.comm.id: The communicator: its 64-bit hash as "0x…", or as logged.
	CommID string
	// nccl.comm.name: The name of the communicator.
	CommName string
	// nccl.comm.size: int, {rank}. The ranks of the communicator.
	CommSize Int
	// nccl.sequence: int. The number of the collective, per communicator and operation.
	Sequence Int
	// nccl.ranks: int, {rank}. How many ranks have a record in the trace; only the root has it.
	Ranks Int
	// nccl.comm.rank: int. The rank in the communicator; the global one, where the log has it, is dl.rank.
	Rank Int
	// nccl.peer.rank: int. The other rank.
	Peer Int
	// nccl.collective.duration: double, s. The time of the rank that took longest, from the first arrival on.
	Duration float64
	// nccl.collective.transfer.duration: double, s. The time of the rank that took least: it came last and waited for no
	// one. The root's bandwidths are of it.
	TransferDuration float64
	// nccl.message.size: int, By. The message size as logged: per rank for AllGather and ReduceScatter of NCCL.
	MessageSize float64
	// nccl.data.size: int, By. S of algbw = S/t: of all ranks together for AllGather, ReduceScatter, AllToAll.
	DataSize float64
	// nccl.bandwidth.algorithm: double, By/s. S/t; on a rank's span by its own duration, waiting included.
	BandwidthAlgorithm float64
	// nccl.bandwidth.bus: double, By/s. That times the operation's factor.
	BandwidthBus float64
	// nccl.bandwidth.bus.mean: double, By/s. The mean of the ranks' own, with their waiting, as perf_summary_exporter.py of
	// NCCL Inspector has it (mean_coll_busbw_gbs).
	BandwidthBusMean float64
	// nccl.bandwidth.bus.reported: double, By/s. On ranks: as the log has it. Or nccl.bandwidth.algorithm.reported.
	BandwidthReported float64
	// nccl.bandwidth.baseline: double, By/s. The median of the window before, for this communicator, operation and size
	// (within 1/8).
	BandwidthBaseline float64
	// nccl.bandwidth.deviation: double, 1. How many robust standard deviations below the baseline.
	BandwidthDeviation float64
	// nccl.bandwidth.disagreement: double, 1. |recomputed − reported| / recomputed, where that is more than print rounding;
	// on the root the largest.
	BandwidthDisagreement float64
	// nccl.bandwidth.reported.unit: The log's unit: GB/s or Gbit/s.
	BandwidthUnit string
	// nccl.straggler.score: double, 1. The best rank's time between collectives ÷ its own, 0..1, where the log has times.
	StragglerScore float64
	// nccl.straggler.ranks: int[]. All slow ranks, the slowest first.
	Stragglers List
	// nccl.straggler.over: int[]. Ranks that are as fast as the others again from here on.
	StragglersOver List
	// nccl.errors: int, {error}. Errors; on the root of all ranks.
	Errors float64
	// nccl.retries: int, {retry}. Retries; on the root of all ranks.
	Retries float64
	// nccl.ranks.missing: int[]. Ranks that were seen in this communicator before and have no record here, the first 32.
	Missing List
	// nccl.ranks.missing.count: int, {rank}. How many these are.
	MissingCount float64
	// nccl.ranks.stuck: int[]. Ranks whose record says that they had not completed.
	Stuck List
	// nccl.waited: double, s. How long there was no completion.
	Waited float64
	// nccl.clock.offset: double, s. On a rank: how much its host's clock is ahead of the reference host's. On the root: how
	// far the clocks of its hosts are apart, where that is more than 1 ms.
	ClocksApart float64
	// nccl.hang: boolean. True where it did not complete within hang_timeout.
	Hang bool
	// nccl.mismatch: boolean. True where the ranks disagree about the message size.
	Mismatch bool
	// nccl.link.slow: string[]. Links that are much slower than the others, as "0→8".
	LinksSlow List
	// nccl.link.hot: string[]. Links that carry much more than the others, as "0→8".
	LinksHot List

	Counted   bool     // the sequence, or that there is none, is not the log's: see spans.AttrNCCLSequenceKind
	Last      LateRank // who came last
	Straggler LateRank // who is late again and again, by median
}

var noCollective = blank[Collective]()

// Read reads a span.
func (c *Collective) Read(span ptrace.Span) {
	*c = noCollective
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLOperation:
			c.Operation = spans.ValueText(value)
		case spans.AttrNCCLAlgorithm:
			c.Algorithm = spans.ValueText(value)
		case spans.AttrNCCLCommID:
			c.CommID = spans.ValueText(value)
		case spans.AttrNCCLCommName:
			c.CommName = spans.ValueText(value)
		case spans.AttrNCCLCommSize:
			c.CommSize = ordinalOf(value)
		case spans.AttrNCCLSequence:
			c.Sequence = ordinalOf(value)
		case spans.AttrNCCLSequenceKind:
			c.Counted = true
		case spans.AttrNCCLRanks:
			c.Ranks = ordinalOf(value)
		case spans.AttrNCCLCommRank:
			c.Rank = ordinalOf(value)
		case spans.AttrNCCLPeerRank:
			c.Peer = ordinalOf(value)
		case spans.AttrNCCLDuration:
			c.Duration = spans.ValueNumber(value)
		case spans.AttrNCCLTransferDuration:
			c.TransferDuration = spans.ValueNumber(value)
		case spans.AttrNCCLMessageSize:
			c.MessageSize = spans.ValueNumber(value)
		case spans.AttrNCCLDataSize:
			c.DataSize = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthAlgorithm:
			c.BandwidthAlgorithm = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthBus:
			c.BandwidthBus = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthBusMean:
			c.BandwidthBusMean = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthBusReported:
			c.BandwidthReported = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthAlgorithmReported:
			c.BandwidthReported = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthBaseline:
			c.BandwidthBaseline = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthDeviation:
			c.BandwidthDeviation = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthDisagreement:
			c.BandwidthDisagreement = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthUnit:
			c.BandwidthUnit = spans.ValueText(value)
		case spans.AttrNCCLLateMax:
			c.Last.Late = spans.ValueNumber(value)
		case spans.AttrNCCLLateRank:
			c.Last.Rank = ordinalOf(value)
		case spans.AttrNCCLLateHost:
			c.Last.Host = spans.ValueText(value)
		case spans.AttrNCCLLateCost:
			c.Last.Cost = spans.ValueNumber(value)
		case spans.AttrNCCLStragglerRank:
			c.Straggler.Rank = ordinalOf(value)
		case spans.AttrNCCLStragglerHost:
			c.Straggler.Host = spans.ValueText(value)
		case spans.AttrNCCLStragglerLate:
			c.Straggler.Late = spans.ValueNumber(value)
		case spans.AttrNCCLStragglerCost:
			c.Straggler.Cost = spans.ValueNumber(value)
		case spans.AttrNCCLStragglerScore:
			c.StragglerScore = spans.ValueNumber(value)
		case spans.AttrNCCLStragglers:
			c.Stragglers = listOf(value)
		case spans.AttrNCCLStragglersOver:
			c.StragglersOver = listOf(value)
		case spans.AttrNCCLErrors:
			c.Errors = spans.ValueNumber(value)
		case spans.AttrNCCLRetries:
			c.Retries = spans.ValueNumber(value)
		case spans.AttrNCCLRanksMissing:
			c.Missing = listOf(value)
		case spans.AttrNCCLRanksMissingCount:
			c.MissingCount = spans.ValueNumber(value)
		case spans.AttrNCCLRanksStuck:
			c.Stuck = listOf(value)
		case spans.AttrNCCLWaited:
			c.Waited = spans.ValueNumber(value)
		case spans.AttrNCCLClockOffset:
			c.ClocksApart = spans.ValueNumber(value)
		case spans.AttrNCCLHang:
			c.Hang = flagOf(value)
		case spans.AttrNCCLMismatch:
			c.Mismatch = flagOf(value)
		case spans.AttrNCCLLinkSlow:
			c.LinksSlow = listOf(value)
		case spans.AttrNCCLLinkHot:
			c.LinksHot = listOf(value)
		default:
			c.Head.note(name, value)
		}
	}
	c.finish(span)
}

// Rank is one rank's part in a collective: KindRank.
type Rank struct {
	Head

	// nccl.comm.rank: int. The rank in the communicator; the global one, where the log has it, is dl.rank.
	Rank Int
	// host.name: Of semconv 1.37. An IP address where the log only has that.
	Host string
	// nccl.late: double, s. On a rank: how long behind the first to arrive.
	Late float64
	// nccl.last: boolean. True on the rank that came last.
	Last bool
	// nccl.state: How far it came, of what is not completed.
	State string
	// nccl.errors: int, {error}. Errors; on the root of all ranks.
	Errors float64
	// nccl.retries: int, {retry}. Retries; on the root of all ranks.
	Retries float64
	// nccl.bandwidth.bus.reported: double, By/s. On ranks: as the log has it. Or nccl.bandwidth.algorithm.reported.
	BandwidthReported float64
}

var noRank = blank[Rank]()

// Read reads a span.
func (r *Rank) Read(span ptrace.Span) {
	*r = noRank
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLCommRank:
			r.Rank = ordinalOf(value)
		case spans.AttrHostName:
			r.Host = spans.ValueText(value)
		case spans.AttrNCCLLate:
			r.Late = spans.ValueNumber(value)
		case spans.AttrNCCLLast:
			r.Last = flagOf(value)
		case spans.AttrNCCLState:
			r.State = spans.ValueText(value)
		case spans.AttrNCCLErrors:
			r.Errors = spans.ValueNumber(value)
		case spans.AttrNCCLRetries:
			r.Retries = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthBusReported:
			r.BandwidthReported = spans.ValueNumber(value)
		case spans.AttrNCCLBandwidthAlgorithmReported:
			r.BandwidthReported = spans.ValueNumber(value)
		default:
			r.Head.note(name, value)
		}
	}
}

// Link is what a channel or a network proxy moved to or from a peer, below a rank: KindChannel, KindProxyOp and
// KindProxyStep.
type Link struct {
	// nccl.channel.id: int. The channel.
	Channel Int
	// nccl.peer.rank: int. The other rank.
	Peer Int
	// nccl.proxy.step.index: int. The index of the proxy's step.
	Step Int
	// nccl.direction: Which way the proxy moved data.
	Direction string
	// nccl.proxy.operation: What the proxy waited for or did: ScheduleSend, SendWait, …
	State string
	// nccl.message.size: int, By. The message size as logged: per rank for AllGather and ReduceScatter of NCCL.
	MessageSize float64
}

var noLink = blank[Link]()

// Read reads a span.
func (l *Link) Read(span ptrace.Span) {
	*l = noLink
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrNCCLChannelID:
			l.Channel = ordinalOf(value)
		case spans.AttrNCCLPeerRank:
			l.Peer = ordinalOf(value)
		case spans.AttrNCCLStep:
			l.Step = ordinalOf(value)
		case spans.AttrNCCLDirection:
			l.Direction = spans.ValueText(value)
		case spans.AttrNCCLProxyState:
			l.State = spans.ValueText(value)
		case spans.AttrNCCLMessageSize:
			l.MessageSize = spans.ValueNumber(value)
		}
	}
}

// Event is a line about the end of a run: KindEvent.
type Event struct {
	// ml.run.event.class: What the line is evidence of; docs/reference/events.md says what each class may claim.
	Class string
	// ml.run.event.form: Which line it is, by the table of docs/reference/events.md.
	Form string
	// ml.run.event.text: The line, without the prefixes of launchers; at most 2,048 bytes.
	Text string
	// dl.rank: int. The global rank.
	Rank Int
	// dl.local_rank: int. The rank on its node, as in torchrun's "[default3]:".
	Local Int
	// exception.type: Of semconv 1.37.
	ExceptionType string
	// exception.message: Of semconv 1.37.
	ExceptionMessage string
	// code.file.path: Of semconv 1.37. Of the innermost frame of a traceback.
	CodeFile string
	// code.line.number: Of semconv 1.37.
	CodeLine Int
	// code.function.name: Of semconv 1.37.
	CodeFunction string
}

var noEvent = blank[Event]()

// Read reads a span.
func (e *Event) Read(span ptrace.Span) {
	*e = noEvent
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrEventClass:
			e.Class = spans.ValueText(value)
		case spans.AttrEventForm:
			e.Form = spans.ValueText(value)
		case spans.AttrEventText:
			e.Text = spans.ValueText(value)
		case spans.AttrRank:
			e.Rank = ordinalOf(value)
		case spans.AttrLocalRank:
			e.Local = ordinalOf(value)
		case spans.AttrExceptionType:
			e.ExceptionType = spans.ValueText(value)
		case spans.AttrExceptionMessage:
			e.ExceptionMessage = spans.ValueText(value)
		case spans.AttrCodeFile:
			e.CodeFile = spans.ValueText(value)
		case spans.AttrCodeLine:
			e.CodeLine = ordinalOf(value)
		case spans.AttrCodeFunction:
			e.CodeFunction = spans.ValueText(value)
		}
	}
}

// GPUs are what the GPUs of a window were like: means over the GPUs, and the one that was furthest from the mean.
type GPUs struct {
	// trainbridge.gpu.count: int, {gpu}. How many GPUs have a sample within the window.
	Count Int
	// trainbridge.gpu.sample.count: int, {sample}. How many samples of these GPUs are behind the means.
	Samples Int
	// hw.gpu.utilization: double, 1. The share of the time in which the devices were busy: the mean over the devices of the
	// log's list, or of the window. As a metric the name is of semconv 1.37.
	Utilization float64
	// hw.gpu.utilization.min: double, 1. The same of the idlest of them.
	UtilizationMin float64
	// hw.power: double, W. The power that a GPU drew, the mean over the GPUs. As a metric the name is of semconv 1.37.
	Power float64
	// hw.temperature: double, Cel. The temperature of a GPU, the mean over the GPUs. As a metric the name is of semconv
	// 1.37.
	Temperature float64
	// hw.temperature.max: double, Cel. The highest temperature of the hottest GPU.
	TemperatureMax float64
	// trainbridge.gpu.clock.frequency: double, Hz. The frequency of the SM clock, the mean over the GPUs.
	Clock float64
	// trainbridge.gpu.clock.frequency.min: double, Hz. The same of the slowest GPU.
	ClockMin float64

	Throttled []Throttled
}

// Mark is when and where a span of any kind was, and how it came into its trace: what joins spans of several traces.
type Mark struct {
	// trainbridge.join.by: How the span came into its trace. Stands on the resource where it holds for all of its spans. A
	// span whose trace is made of its own key has none.
	JoinBy string
	// trainbridge.time.source: Where the times of the span come from. Stands on the resource, and on a span where it is
	// different.
	Time spans.TimeSource
	// trainbridge.time.point: boolean. True where only the end of the record is known: the span's length says nothing.
	TimePoint bool
	// host.name: Of semconv 1.37. An IP address where the log only has that.
	Host string
	// process.pid: Of semconv 1.37.
	PID Int
	// ml.train.iteration: int, {iteration}. The iteration as printed: from 1, in NeMo from 0.
	Iteration Int
	// ml.train.steps_covered: int, {step}. How many steps the span covers, where they are several. It is not known of the
	// first record of a log. Stands on the resource, and on a span where it is different.
	StepsCovered float64
	// ml.train.batch.size: int, {sample}. Samples per step, of all data-parallel ranks. Stands on the resource, and on a
	// span where it is different. Or tq.batch.size.
	BatchSize float64
	// ml.train.stage: The name of the part.
	Part string
	// trainbridge.verdict.severity: Of a span, the worst of its verdicts; of an event, a log record or a count, that of the
	// verdict.
	Severity string
}

var noMark = blank[Mark]()

// Read reads a span.
func (m *Mark) Read(span ptrace.Span, res *Resource) {
	*m = noMark
	if res.read {
		m.JoinBy = res.JoinBy
		m.Time = res.TimeSource
		m.Host = res.Host
		m.PID = res.PID
		m.StepsCovered = res.StepsCovered
		m.BatchSize = res.BatchSize
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrJoinBy:
			m.JoinBy = spans.ValueText(value)
		case spans.AttrTimeSource:
			m.Time = spans.TimeSource(spans.ValueText(value))
		case spans.AttrTimePoint:
			m.TimePoint = flagOf(value)
		case spans.AttrHostName:
			m.Host = spans.ValueText(value)
		case spans.AttrProcessPID:
			m.PID = ordinalOf(value)
		case spans.AttrIteration:
			m.Iteration = ordinalOf(value)
		case spans.AttrStepsCovered:
			m.StepsCovered = spans.ValueNumber(value)
		case spans.AttrBatchSize:
			m.BatchSize = spans.ValueNumber(value)
		case spans.AttrTQBatchSize:
			m.BatchSize = spans.ValueNumber(value)
		case spans.AttrStage:
			m.Part = spans.ValueText(value)
		case spans.AttrVerdictSeverity:
			m.Severity = spans.ValueText(value)
		}
	}
}

// Group is the root of a group of calls, KindPass, KindSession or KindCalls: a forward pass, a session's set-up, or
// calls of no pass. It has the sums of its calls.
type Group struct {
	Head

	// zeromq.pass.ordinal: int. The ordinal of the pass in its session, from 1; ids that begin anew do not begin a session.
	Ordinal Int
	// zeromq.pass.block: int. How often the ids of calls had begun anew in the log, as they do after a warm-up; left out
	// where they had not.
	Block Int
	// zeromq.pass.calls: int, {call}. How many calls the group has.
	Calls float64
	// zeromq.pass.end: Why the group ended.
	End string
	// zeromq.call.duration: double, s. The calls.
	CallDuration float64
	// zeromq.offline.duration: double, s. Client work beside the calls.
	Offline float64
	// network.transport: Of semconv 1.37. unix where the log says IPC, else tcp.
	Network string
	// zeromq.transport: The transport as the log has it: IPC, TCP, IPC+SHM, IPC+SHM+OTP. Stands on the resource, and on a
	// span where it is different.
	Transport string
	// zeromq.shared_memory: boolean. True where tensors go through shared memory. Sizes are then those of the messages
	// only, and no bandwidth is made of them. Stands on the resource, and on a span where it is different.
	SharedMemory bool
	// zeromq.request.size: int, By. The size of the request; from Sent(KB), KB = 1024 B, two decimals: ± 5 B.
	RequestSize float64
	// zeromq.response.size: int, By. The size of the response, likewise.
	ResponseSize float64
	// zeromq.throughput: double, By/s. (Request + response) / duration.
	Throughput float64
	// zeromq.throughput.disagreement: double, 1. |recomputed − reported| / recomputed, 0 where print rounding explains it;
	// of a group the largest of its calls.
	Disagreement float64
	// zeromq.slowest.method: The method of the slowest call.
	SlowestMethod string
	// zeromq.slowest.duration: double, s. The time of the slowest call.
	SlowestDuration float64

	Duration [RPCStages]float64 // s, of the stages
	Share    [RPCStages]float64 // of CallDuration, train_perf's
}

var noGroup = blank[Group]()

// Read reads a span.
func (g *Group) Read(span ptrace.Span, res *Resource) {
	*g = noGroup
	if res.read {
		g.Network = res.NetworkTransport
		g.Transport = res.ZMQTransport
		g.SharedMemory = res.ZMQSharedMemory
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrZMQPass:
			g.Ordinal = ordinalOf(value)
		case spans.AttrZMQPassBlock:
			g.Block = ordinalOf(value)
		case spans.AttrZMQPassCalls:
			g.Calls = spans.ValueNumber(value)
		case spans.AttrZMQPassEnd:
			g.End = spans.ValueText(value)
		case spans.AttrZMQCallDuration:
			g.CallDuration = spans.ValueNumber(value)
		case spans.AttrZMQSerializeDuration:
			g.Duration[RPCSerialize] = spans.ValueNumber(value)
		case spans.AttrZMQSendDuration:
			g.Duration[RPCSend] = spans.ValueNumber(value)
		case spans.AttrZMQReceiveDuration:
			g.Duration[RPCReceive] = spans.ValueNumber(value)
		case spans.AttrZMQDeserializeDuration:
			g.Duration[RPCDeserialize] = spans.ValueNumber(value)
		case spans.AttrZMQServerDuration:
			g.Duration[RPCServer] = spans.ValueNumber(value)
		case spans.AttrZMQUnattributedDuration:
			g.Duration[RPCUnattributed] = spans.ValueNumber(value)
		case spans.AttrZMQOfflineDuration:
			g.Offline = spans.ValueNumber(value)
		case spans.AttrZMQSerializeUtilization:
			g.Share[RPCSerialize], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQSendUtilization:
			g.Share[RPCSend], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQReceiveUtilization:
			g.Share[RPCReceive], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQDeserializeUtilization:
			g.Share[RPCDeserialize], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQServerUtilization:
			g.Share[RPCServer], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQUnattributedUtilization:
			g.Share[RPCUnattributed], g.Judged = spans.ValueNumber(value), true
		case spans.AttrZMQTransportUtilization:
			g.Share[RPCTransport], g.Judged = spans.ValueNumber(value), true
		case spans.AttrSummary:
			g.Judged = true
		case spans.AttrNetworkTransport:
			g.Network = spans.ValueText(value)
		case spans.AttrZMQTransport:
			g.Transport = spans.ValueText(value)
		case spans.AttrZMQSharedMemory:
			g.SharedMemory = flagOf(value)
		case spans.AttrZMQRequestSize:
			g.RequestSize = spans.ValueNumber(value)
		case spans.AttrZMQResponseSize:
			g.ResponseSize = spans.ValueNumber(value)
		case spans.AttrZMQThroughput:
			g.Throughput = spans.ValueNumber(value)
		case spans.AttrZMQThroughputDisagreement:
			g.Disagreement = spans.ValueNumber(value)
		case spans.AttrZMQSlowestMethod:
			g.SlowestMethod = spans.ValueText(value)
		case spans.AttrZMQSlowestDuration:
			g.SlowestDuration = spans.ValueNumber(value)
		default:
			g.Head.note(name, value)
		}
	}
}

// Call is one RPC: KindCall.
type Call struct {
	Head

	// rpc.system.name: The RPC system. The name is of semconv 1.39. Stands on the resource, and on a span where it is
	// different.
	System string
	// rpc.method: Of semconv 1.37. The method of the call, which is also the span's name.
	Method string
	// network.transport: Of semconv 1.37. unix where the log says IPC, else tcp.
	Network string
	// zeromq.call.id: int. The number of the call as printed; it restarts within a file.
	ID Int
	// zeromq.request.size: int, By. The size of the request; from Sent(KB), KB = 1024 B, two decimals: ± 5 B.
	RequestSize float64
	// zeromq.response.size: int, By. The size of the response, likewise.
	ResponseSize float64
	// zeromq.throughput: double, By/s. (Request + response) / duration.
	Throughput float64
	// zeromq.call.duration: double, s. The calls.
	Took float64
	// zeromq.offline.duration: double, s. Client work beside the calls.
	Offline float64

	Duration [RPCUnattributed]float64 // s, of the stages before; only of a call whose stages are no spans, or where Took is said
}

var noCall = blank[Call]()

// Read reads a span.
func (c *Call) Read(span ptrace.Span, res *Resource) {
	*c = noCall
	if res.read {
		c.System = res.RPCSystem
		c.Network = res.NetworkTransport
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrRPCSystem:
			c.System = spans.ValueText(value)
		case spans.AttrRPCMethod:
			c.Method = spans.ValueText(value)
		case spans.AttrNetworkTransport:
			c.Network = spans.ValueText(value)
		case spans.AttrZMQCallID:
			c.ID = ordinalOf(value)
		case spans.AttrZMQRequestSize:
			c.RequestSize = spans.ValueNumber(value)
		case spans.AttrZMQResponseSize:
			c.ResponseSize = spans.ValueNumber(value)
		case spans.AttrZMQThroughput:
			c.Throughput = spans.ValueNumber(value)
		case spans.AttrZMQCallDuration:
			c.Took = spans.ValueNumber(value)
		case spans.AttrZMQSerializeDuration:
			c.Duration[RPCSerialize] = spans.ValueNumber(value)
		case spans.AttrZMQSendDuration:
			c.Duration[RPCSend] = spans.ValueNumber(value)
		case spans.AttrZMQReceiveDuration:
			c.Duration[RPCReceive] = spans.ValueNumber(value)
		case spans.AttrZMQDeserializeDuration:
			c.Duration[RPCDeserialize] = spans.ValueNumber(value)
		case spans.AttrZMQServerDuration:
			c.Duration[RPCServer] = spans.ValueNumber(value)
		case spans.AttrZMQOfflineDuration:
			c.Offline = spans.ValueNumber(value)
		default:
			c.Head.note(name, value)
		}
	}
	c.finish(span)
}

// Function is a call of a TransferQueue function: KindFunction. Shares are of the span's time.
type Function struct {
	Head

	// tq.function: The function that the batch went through.
	Name string
	// tq.trace_id: The trace id as the log has it.
	TraceID string
	// host.name: Of semconv 1.37. An IP address where the log only has that.
	Host string
	// tq.batch.size: int, {sample}. Samples in the batch.
	BatchSize Int
	// process.pid: Of semconv 1.37.
	PID Int
	// tq.overhead.utilization: double, 1. The share of GET and PUT together.
	Overhead float64
	// tq.unattributed.utilization: double, 1. 1 − the wall-clock union of the stages. Time that no stage accounts for; only
	// where no share is the log's.
	Unattributed float64
	// tq.utilization.disagreement: double, 1. The largest |recomputed − reported| of the three shares.
	Disagreement float64

	Share    [shares]float64
	Reported [shares]float64 // as FUNCTION_END states them
	Carried  bool            // the span came with shares: who made it has measured them, or a train_perf has
}

var noFunction = blank[Function]()

// Read reads a span.
func (f *Function) Read(span ptrace.Span) {
	*f = noFunction
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrTQFunction:
			f.Name = spans.ValueText(value)
		case spans.AttrTQTraceID:
			f.TraceID = spans.ValueText(value)
		case spans.AttrHostName:
			f.Host = spans.ValueText(value)
		case spans.AttrTQBatchSize:
			f.BatchSize = ordinalOf(value)
		case spans.AttrProcessPID:
			f.PID = ordinalOf(value)
		case spans.AttrTQGetUtilization:
			f.Share[spans.TQGet], f.Carried = spans.ValueNumber(value), true
		case spans.AttrTQComputeUtilization:
			f.Share[spans.TQCompute], f.Carried = spans.ValueNumber(value), true
		case spans.AttrTQPutUtilization:
			f.Share[spans.TQPut], f.Carried = spans.ValueNumber(value), true
		case spans.AttrTQOverheadUtilization:
			f.Overhead, f.Carried = spans.ValueNumber(value), true
		case spans.AttrTQUnattributedUtilization:
			f.Unattributed = spans.ValueNumber(value)
		case spans.AttrTQGetUtilizationReported:
			f.Reported[spans.TQGet] = spans.ValueNumber(value)
		case spans.AttrTQComputeUtilizationReported:
			f.Reported[spans.TQCompute] = spans.ValueNumber(value)
		case spans.AttrTQPutUtilizationReported:
			f.Reported[spans.TQPut] = spans.ValueNumber(value)
		case spans.AttrTQUtilizationDisagreement:
			f.Disagreement = spans.ValueNumber(value)
		default:
			f.Head.note(name, value)
		}
	}
}

// Stage is a stage of a TransferQueue function, or a client operation, alone or within a stage: KindStage.
type Stage struct {
	Head

	// tq.stage: What the span is.
	Stage spans.TQStage
	// tq.function: The function that the batch went through.
	Function string
	// tq.trace_id: The trace id as the log has it.
	TraceID string
	// tq.batch.size: int, {sample}. Samples in the batch.
	BatchSize Int
	// process.pid: Of semconv 1.37.
	PID Int
	// tq.data.size: int, By. What a client operation moved; from data_size_mb, which is MiB.
	Size float64
	// tq.throughput: double, By/s. Size / duration of a client operation.
	Throughput float64
	// tq.throughput.reported: double, By/s. As the log has it: throughput_mbps, which is MiB/s.
	ThroughputReported float64

	ownStage bool // an attribute says it, perhaps as something that is no stage
}

var noStage = blank[Stage]()

// Read reads a span.
func (s *Stage) Read(span ptrace.Span) {
	*s = noStage
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrTQStage:
			s.Stage, s.ownStage = spans.TQStageOf(value), true
		case spans.AttrTQFunction:
			s.Function = spans.ValueText(value)
		case spans.AttrTQTraceID:
			s.TraceID = spans.ValueText(value)
		case spans.AttrTQBatchSize:
			s.BatchSize = ordinalOf(value)
		case spans.AttrProcessPID:
			s.PID = ordinalOf(value)
		case spans.AttrTQDataSize:
			s.Size = spans.ValueNumber(value)
		case spans.AttrTQThroughput:
			s.Throughput = spans.ValueNumber(value)
		case spans.AttrTQThroughputReported:
			s.ThroughputReported = spans.ValueNumber(value)
		default:
			s.Head.note(name, value)
		}
	}
	s.finish(span)
}

// Source is which log a record of a training run comes from: its format, and the rank that wrote it.
type Source struct {
	// trainbridge.source: The format of the record. Stands on the resource, and on a span where it is different.
	Format string
	// dl.rank: int. The global rank.
	Rank Int
	// dl.local_rank: int. The rank on its node, as in torchrun's "[default3]:".
	LocalRank Int
	// host.name: Of semconv 1.37. An IP address where the log only has that.
	Host string
}

// Place is where a record stands in its run.
type Place struct {
	// ml.train.iteration: int, {iteration}. The iteration as printed: from 1, in NeMo from 0.
	Iteration Int
	// ml.train.record: int. The ordinal of the record in its log, from 1, where the log names no iteration.
	Record Int
}

// Slowest is the rank that computed for the longest in a step, compared with its peers, the ranks that do the same
// work.
type Slowest struct {
	// ml.train.rank.slowest: int. The rank that computed for the longest.
	Rank Int
	// ml.train.rank.slowest.stage: The part of the step in which it lost most.
	Stage string
	// ml.train.rank.slowest.peers: int. How many peers it has.
	Peers Int
	// ml.train.rank.slowest.duration: double, s. How long it took.
	Duration float64
	// ml.train.rank.slowest.peers.duration: double, s. The median of its peers.
	PeersDuration float64
	// ml.train.ranks.behind: int[]. The ranks that lost at least half as much as the slowest, which is the first; at most
	// 16. Ranks that share each operation are slow together.
	Behind List
}

// Step is a record of a training log, KindStep: one step, or the several that it covers.
type Step struct {
	Head
	Source
	Place

	// trainbridge.time.point: boolean. True where only the end of the record is known: the span's length says nothing.
	TimePoint bool
	// ml.train.iterations: int, {iteration}. How many iterations are planned. Stands on the resource, and on a span where
	// it is different.
	Iterations float64
	// ml.train.steps_covered: int, {step}. How many steps the span covers, where they are several. It is not known of the
	// first record of a log. Stands on the resource, and on a span where it is different.
	StepsCovered float64
	// ml.train.step.duration: double, s. The time of one step. Left out where the span's length over ml.train.steps_covered
	// says it. Without ml.train.step.duration.kind it is what the log states of this very step.
	Duration float64
	// ml.train.step.duration.kind: What the time of the step is. Stands on the resource, and on a span where it is
	// different.
	DurationKind string
	// dl.world_size: int. How many ranks the job has. Stands on the resource, and on a span where it is different.
	WorldSize Int
	// ml.train.epoch: double. The epoch, with its fraction.
	Epoch float64
	// hw.model: Of semconv 1.37. The device of that peak, where metrics of GPUs have the device. Not added where
	// train_perf's configuration, the log or the resource has the device.
	DeviceModel string
	// ml.train.loss: double, {loss}. The training loss. NaN and infinities are written as text, "NaN", "+Inf" and "-Inf",
	// since JSON has no such numbers.
	Loss Loss
	// ml.train.batch.size: int, {sample}. Samples per step, of all data-parallel ranks. Stands on the resource, and on a
	// span where it is different.
	BatchSize float64
	// ml.train.samples: double, {sample}. Samples of all the steps covered. Batch × steps, an int; else the log's rate ×
	// the span's time, which is an estimate and no whole number. Stands on the resource, and on a span where it is
	// different.
	Samples float64
	// ml.train.tokens: int, {token}. Tokens of all the steps covered; from the log, or by train_perf. By train_perf: batch
	// × steps, else the log's rate × the span's time, which is an estimate and no whole number. Stands on the resource, and
	// on a span where it is different.
	Tokens float64
	// ml.train.sample.throughput: double, {sample}/s. Samples per second.
	SampleThroughput float64
	// ml.train.token.throughput: double, {token}/s. Tokens per second, all devices.
	TokenThroughput float64
	// ml.train.device.token.throughput: double, {token}/s. Tokens per second and device.
	DeviceTokenThroughput float64
	// ml.train.flop.throughput: double, {flop}/s. FLOP/s of all devices, recomputed.
	FlopThroughput float64
	// ml.train.flop.throughput.reported: double, {flop}/s. FLOP/s of all devices, as the log has it.
	FlopThroughputReported float64
	// ml.train.device.flop.throughput: double, {flop}/s. FLOP/s of one device, recomputed.
	DeviceFlopThroughput float64
	// ml.train.device.flop.throughput.reported: double, {flop}/s. FLOP/s of one device, as the log has it.
	DeviceFlopThroughputReported float64
	// ml.train.flop.count.reported: double, {flop}. FLOPs of one step, all devices, as a FLOPS breakdown printed it (there
	// called TFLOPS).
	FlopCountReported float64
	// ml.train.flop.throughput.disagreement: double, 1. |recomputed − reported| / recomputed, of the device FLOP/s. With
	// the formula and convention in use.
	FlopDisagreement float64
	// ml.train.flop.utilization: double, 1. Model FLOP/s utilization (MFU), recomputed. Of one device, over its peak.
	MFU float64
	// ml.train.hardware.flop.utilization: double, 1. Hardware FLOP/s utilization (HFU): recomputed activations count as
	// work too. Only where it is known what is recomputed.
	HFU float64
	// ml.train.learning_rate: double, {learning_rate}. The learning rate.
	LearningRate float64
	// ml.train.gradient.norm: double, {norm}. The norm of the gradient.
	GradientNorm float64
	// ml.train.flop.utilization.reported: double, 1. Model FLOP/s utilization (MFU), as the log has it.
	MFUReported float64
	// hw.gpu.utilization: double, 1. The share of the time in which the devices were busy: the mean over the devices of the
	// log's list, or of the window. As a metric the name is of semconv 1.37.
	GPUUtilization float64
	// ml.train.device.memory.usage: double, By. Device memory allocated, of the rank that logs.
	MemoryUsage float64
	// ml.train.device.memory.peak: double, By. The most device memory allocated so far.
	MemoryPeak float64

	Slowest     Slowest
	ownDuration bool // an attribute says it, perhaps as something that is no number
}

var noStep = blank[Step]()

// Read reads a span.
func (s *Step) Read(span ptrace.Span, res *Resource) {
	*s = noStep
	if res.read {
		s.StepsCovered = res.StepsCovered
		s.DurationKind = res.StepDurationKind
		s.BatchSize = res.BatchSize
		s.Samples = res.Samples
		s.Judged = res.Judged
		s.Tokens = res.Tokens
		s.Source.Format = res.Source
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrTimePoint:
			s.TimePoint = flagOf(value)
		case spans.AttrIterations:
			s.Iterations = spans.ValueNumber(value)
		case spans.AttrStepsCovered:
			s.StepsCovered = spans.ValueNumber(value)
		case spans.AttrStepDuration:
			s.Duration, s.ownDuration = spans.ValueNumber(value), true
		case spans.AttrStepDurationKind:
			s.DurationKind = spans.ValueText(value)
		case spans.AttrWorldSize:
			s.WorldSize = ordinalOf(value)
		case spans.AttrEpoch:
			s.Epoch = spans.ValueNumber(value)
		case spans.AttrDeviceModel:
			s.DeviceModel = spans.ValueText(value)
		case spans.AttrLoss:
			s.Loss = lossOf(value)
		case spans.AttrBatchSize:
			s.BatchSize = spans.ValueNumber(value)
		case spans.AttrSamples:
			s.Samples, s.Judged = spans.ValueNumber(value), true
		case spans.AttrFlopFormula:
			s.Judged = true
		case spans.AttrFlopUnsupported:
			s.Judged = true
		case spans.AttrTokens:
			s.Tokens = spans.ValueNumber(value)
		case spans.AttrSampleThroughput:
			s.SampleThroughput = spans.ValueNumber(value)
		case spans.AttrTokenThroughput:
			s.TokenThroughput = spans.ValueNumber(value)
		case spans.AttrDeviceTokenThroughput:
			s.DeviceTokenThroughput = spans.ValueNumber(value)
		case spans.AttrFlopThroughput:
			s.FlopThroughput = spans.ValueNumber(value)
		case spans.AttrFlopThroughputReported:
			s.FlopThroughputReported = spans.ValueNumber(value)
		case spans.AttrDeviceFlopThroughput:
			s.DeviceFlopThroughput = spans.ValueNumber(value)
		case spans.AttrDeviceFlopThroughputReported:
			s.DeviceFlopThroughputReported = spans.ValueNumber(value)
		case spans.AttrFlopCountReported:
			s.FlopCountReported = spans.ValueNumber(value)
		case spans.AttrFlopDisagreement:
			s.FlopDisagreement = spans.ValueNumber(value)
		case spans.AttrMFU:
			s.MFU = spans.ValueNumber(value)
		case spans.AttrHFU:
			s.HFU = spans.ValueNumber(value)
		case spans.AttrLearningRate:
			s.LearningRate = spans.ValueNumber(value)
		case spans.AttrGradientNorm:
			s.GradientNorm = spans.ValueNumber(value)
		case spans.AttrMFUReported:
			s.MFUReported = spans.ValueNumber(value)
		case spans.AttrGPUUtilization:
			s.GPUUtilization = spans.ValueNumber(value)
		case spans.AttrMemoryUsage:
			s.MemoryUsage = spans.ValueNumber(value)
		case spans.AttrMemoryPeak:
			s.MemoryPeak = spans.ValueNumber(value)
		case spans.AttrSource:
			s.Source.Format = spans.ValueText(value)
		case spans.AttrRank:
			s.Source.Rank = ordinalOf(value)
		case spans.AttrLocalRank:
			s.Source.LocalRank = ordinalOf(value)
		case spans.AttrHostName:
			s.Source.Host = spans.ValueText(value)
		case spans.AttrIteration:
			s.Place.Iteration = ordinalOf(value)
		case spans.AttrRecord:
			s.Place.Record = ordinalOf(value)
		case spans.AttrRankSlowest:
			s.Slowest.Rank = ordinalOf(value)
		case spans.AttrRankSlowestStage:
			s.Slowest.Stage = spans.ValueText(value)
		case spans.AttrRankSlowestPeers:
			s.Slowest.Peers = ordinalOf(value)
		case spans.AttrRankSlowestDuration:
			s.Slowest.Duration = spans.ValueNumber(value)
		case spans.AttrRankSlowestPeersDuration:
			s.Slowest.PeersDuration = spans.ValueNumber(value)
		case spans.AttrRanksBehind:
			s.Slowest.Behind = listOf(value)
		default:
			s.Head.note(name, value)
		}
	}
	s.finish(span)
}

// Part is a named part of a step, such as generation or the backward pass: KindPart.
type Part struct {
	Head
	Source

	// ml.train.stage: The name of the part.
	Name string
	// ml.train.stage.order: Where the part is drawn, since logs state how long it took and not when.
	Order string
	// ml.train.stage.duration.min: double, s. The time of the fastest rank, where the span is the slowest.
	DurationMin float64
	// ml.train.stage.duration.median: double, s. The median of the ranks' times.
	DurationMedian float64
	// ml.train.stage.ranks: int. Of how many ranks the log has the time.
	Ranks Int
	// ml.train.stage.rank.slowest: int. The slowest rank.
	RankSlowest Int
	// ml.train.stage.rank.fastest: int. The fastest rank.
	RankFastest Int
}

var noPart = blank[Part]()

// Read reads a span.
func (p *Part) Read(span ptrace.Span, res *Resource) {
	*p = noPart
	if res.read {
		p.Source.Format = res.Source
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrStage:
			p.Name = spans.ValueText(value)
		case spans.AttrStageOrder:
			p.Order = spans.ValueText(value)
		case spans.AttrStageDurationMin:
			p.DurationMin = spans.ValueNumber(value)
		case spans.AttrStageDurationMedian:
			p.DurationMedian = spans.ValueNumber(value)
		case spans.AttrStageRanks:
			p.Ranks = ordinalOf(value)
		case spans.AttrStageRankSlowest:
			p.RankSlowest = ordinalOf(value)
		case spans.AttrStageRankFastest:
			p.RankFastest = ordinalOf(value)
		case spans.AttrSource:
			p.Source.Format = spans.ValueText(value)
		case spans.AttrRank:
			p.Source.Rank = ordinalOf(value)
		case spans.AttrLocalRank:
			p.Source.LocalRank = ordinalOf(value)
		case spans.AttrHostName:
			p.Source.Host = spans.ValueText(value)
		default:
			p.Head.note(name, value)
		}
	}
}

// Ranks is what a job reports about the times of its ranks: KindRanks.
type Ranks struct {
	Head
	Source
	Place

	// ml.train.step.duration: double, s. The time of one step. Left out where the span's length over ml.train.steps_covered
	// says it. Without ml.train.step.duration.kind it is what the log states of this very step.
	Duration float64

	Slowest Slowest
}

var noRanks = blank[Ranks]()

// Read reads a span.
func (r *Ranks) Read(span ptrace.Span, res *Resource) {
	*r = noRanks
	if res.read {
		r.Source.Format = res.Source
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrStepDuration:
			r.Duration = spans.ValueNumber(value)
		case spans.AttrSource:
			r.Source.Format = spans.ValueText(value)
		case spans.AttrRank:
			r.Source.Rank = ordinalOf(value)
		case spans.AttrLocalRank:
			r.Source.LocalRank = ordinalOf(value)
		case spans.AttrHostName:
			r.Source.Host = spans.ValueText(value)
		case spans.AttrIteration:
			r.Place.Iteration = ordinalOf(value)
		case spans.AttrRecord:
			r.Place.Record = ordinalOf(value)
		case spans.AttrRankSlowest:
			r.Slowest.Rank = ordinalOf(value)
		case spans.AttrRankSlowestStage:
			r.Slowest.Stage = spans.ValueText(value)
		case spans.AttrRankSlowestPeers:
			r.Slowest.Peers = ordinalOf(value)
		case spans.AttrRankSlowestDuration:
			r.Slowest.Duration = spans.ValueNumber(value)
		case spans.AttrRankSlowestPeersDuration:
			r.Slowest.PeersDuration = spans.ValueNumber(value)
		case spans.AttrRanksBehind:
			r.Slowest.Behind = listOf(value)
		default:
			r.Head.note(name, value)
		}
	}
}

// Evaluation is a validation result: KindEvaluation.
type Evaluation struct {
	Head
	Source
	Place

	// ml.train.validation.loss: double, {loss}. The loss on the validation set.
	Loss Loss
	// ml.train.validation.perplexity: double, {perplexity}. The perplexity on the validation set.
	Perplexity float64
}

var noEvaluation = blank[Evaluation]()

// Read reads a span.
func (e *Evaluation) Read(span ptrace.Span, res *Resource) {
	*e = noEvaluation
	if res.read {
		e.Source.Format = res.Source
	}
	for name, value := range span.Attributes().All() {
		switch name {
		case spans.AttrValidationLoss:
			e.Loss = lossOf(value)
		case spans.AttrPerplexity:
			e.Perplexity = spans.ValueNumber(value)
		case spans.AttrSource:
			e.Source.Format = spans.ValueText(value)
		case spans.AttrRank:
			e.Source.Rank = ordinalOf(value)
		case spans.AttrLocalRank:
			e.Source.LocalRank = ordinalOf(value)
		case spans.AttrHostName:
			e.Source.Host = spans.ValueText(value)
		case spans.AttrIteration:
			e.Place.Iteration = ordinalOf(value)
		case spans.AttrRecord:
			e.Place.Record = ordinalOf(value)
		default:
			e.Head.note(name, value)
		}
	}
}
