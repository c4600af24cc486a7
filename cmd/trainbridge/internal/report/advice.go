package report

import (
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// both is a text in English and in Chinese.
type both struct{ english, chinese string }

// of is the text in the page's language.
func (p *page) of(b both) string { return p.in(b.english, b.chinese) }

// adviceOf is the advice about a part of the time. A part with a name of the trainer's own is of the kind that the name tells; the unattributed time has no
// advice.
func adviceOf(part string) both {
	if a, ok := advices[part]; ok || part == spans.PartUnattributed {
		return a
	}
	switch trainers.PartOf(part) {
	case trainers.LoadingData:
		return advices[spans.PartDataLoading]
	case trainers.Communicating:
		return advices[spans.PartCollective]
	case trainers.Checkpointing:
		return advices[spans.PartCheckpoint]
	case trainers.Evaluating:
		return advices[spans.PartEvaluation]
	case trainers.Computing, trainers.Waiting:
	}
	return advices[spans.PartCompute]
}

// advices are for parts of the time that took longer.
var advices = map[string]both{
	spans.PartCheckpoint: {"Save asynchronously or less often, and look at the bandwidth of the storage.", "异步保存或降低保存频率，并检查存储带宽。"},
	spans.PartEvaluation: {"Evaluate less often, or on fewer samples.", "降低评估频率，或减少评估样本数。"},
	spans.PartWait: {
		"See what the rank did before: its GPU's clocks and temperature, its host, its data, and whether it has more work than the others.",
		"查看该 rank 此前在做什么：GPU 频率与温度、所在主机、数据加载，以及负载是否多于其他 rank。",
	},
	spans.PartCollective: {"Look for a slow link or NIC, and for other traffic on the network.", "检查是否有慢链路或慢网卡，以及网络上的其他流量。"},
	spans.PartCollectiveUnheard: {
		"Give the logs of all ranks, or of the whole time: a rank that came late and a slow network cannot be told apart; trainbridge check lists the ranks.",
		"请提供所有 rank 在整个期间的日志：否则无法区分 rank 迟到与网络变慢；trainbridge check 会列出这些 rank。",
	},
	spans.PartRPCSerialize: {
		"Use shared memory instead of msgpack, or a leaner encoding (protobuf), or send fewer bytes (bfloat16).",
		"使用共享内存替代msgpack序列化，或使用更高效的序列化格式(如protobuf)，或减少传输的数据量(如使用bfloat16)。",
	},
	spans.PartRPCSend: {"Use IPC where client and server share a host, else check the network.", "同一主机请使用IPC而非TCP，否则检查网络。"},
	spans.PartRPCReceive: {
		"Log the server's time, which tells waiting for it from the transport; use IPC where both share a host.",
		"在日志中记录服务端耗时以区分等待与传输；同一主机请使用IPC。",
	},
	spans.PartRPCServer: {"Profile the server in such a pass.", "对此类前向过程中的服务端做性能剖析。"},
	spans.PartRPCDeserialize: {
		"Use shared memory for tensors, or a leaner encoding (protobuf), or send fewer bytes (bfloat16).",
		"使用共享内存传输张量，或使用更高效的序列化格式(如protobuf)，或减少传输的数据量(如使用bfloat16)。",
	},
	spans.PartRPCUnattributed: {"Log the time of each stage.", "记录每个阶段的耗时。"},
	spans.PartCompute: {
		"Profile such a step, and look at the clocks of the GPUs, at recompilation and at the memory allocator.",
		"对此类步骤做性能剖析，并检查 GPU 频率、重新编译与显存分配。",
	},
	"garbage_collection": {
		"Collect less often (torchtitan: gc_freq), or look for what keeps so many objects of Python.", "降低垃圾回收频率（torchtitan：gc_freq），或查找哪些代码保留了大量 Python 对象。",
	},
	"reward": {
		"Look at the reward function or its server in these steps: time-outs, its load, slow samples.", "查看这些步骤中的奖励函数或奖励服务：超时、负载、耗时样本。",
	},
	spans.PartGet: {
		"Check the storage backend (Redis or distributed storage), tune the batch size so that fewer transfers are needed, consider compression.",
		"检查存储后端配置（Redis/分布式存储），优化批次大小（batch_size）以减少传输次数，考虑数据压缩。",
	},
	spans.PartPut: {
		"Check the storage backend (Redis or distributed storage), tune the batch size so that fewer transfers are needed, consider compression.",
		"检查存储后端配置（Redis/分布式存储），优化批次大小（batch_size）以减少传输次数，考虑数据压缩。",
	},
	spans.PartDataLoading: {
		"Raise num_workers and prefetch_factor, set pin_memory=True, pack samples; look at the storage that the data comes from.",
		"增大 num_workers / prefetch_factor，确保 pin_memory=True，采用 packing 或大块样本；检查数据所在存储。",
	},
}

// meant is a verdict and its cause.
type meant struct{ verdict, cause string }

// finding is how the conclusion tells of a verdict.
type finding struct {
	chinese string // the meaning
	advice  string // in Chinese; the English advice stands in the verdict's sentence
	grade   int
}

// The grades of claims and verdicts: claims stand in this order.
const (
	elsewhere = iota // the zero value, of verdicts that are not in findings: no claim is made of the verdict, because figures say more, or nobody is accused
	ended            // how the run ended
	wrong            // results are lost, or the job stands
	costly           // time is lost
	remark           // worth a look
	distrust         // numbers of the log not to be trusted
)

// findings are the verdicts that become claims as they are. For other verdicts (TransferQueue, late ranks) the conclusion has rules of its own.
var findings = map[meant]finding{
	{spans.VerdictNCCLHang, ""}:        {"集合通信未在时限内完成", "先看缺失的 rank（崩溃、走入其他代码、等待数据）；若无缺失，检查 rank 间的网络。", wrong},
	{spans.VerdictNCCLRankMissing, ""}: {"部分 rank 没有记录", "检查该 rank 是否仍在运行，是否仍在写日志。", wrong},
	{spans.VerdictNCCLErrors, ""}:      {"集合通信出错", "检查相关 rank 的链路、网卡与交换机端口。", wrong},
	{spans.VerdictNCCLMismatch, ""}:    {"各 rank 的调用不一致", "各 rank 执行的不是同一个调用，会损坏数据或挂起：比较它们的代码分支与数据。", wrong},
	{spans.VerdictLossNotFinite, ""}: {
		"损失为 NaN 或无穷大", "训练已发散或溢出：回退到最近的正常检查点，检查学习率、loss scale 与该步数据。", wrong,
	},
	{spans.VerdictFlopsWrong, spans.CauseMFUImpossible}: {"MFU 不可能如此之高", "按英文原因修正配置（设备、卡数、单位、模型）。", distrust},
	{spans.VerdictSlowdown, ""}:                         {"训练变慢", "检查是否有变慢或降频的设备、网络或存储上的其他任务、显存碎片。", costly},
	{spans.VerdictRankSlow, ""}:                         {"某个 rank 持续偏慢", "检查其设备的频率、温度与错误，主机上的其他进程，以及负载划分。", costly},
	{spans.VerdictNCCLErrors, spans.CauseRetries}:       {"集合通信有重试", "检查相关 rank 的链路、网卡与交换机端口是否有错误。", remark},
	{spans.VerdictNCCLLink, spans.CauseLinkSlow}:        {"存在慢链路", "检查线缆、网卡与交换机端口。", remark},
	{spans.VerdictNCCLBandwidthLow, ""}:                 {"带宽低于基线", "检查是否有慢链路或慢网卡，以及网络上的其他流量。", remark},
	{spans.VerdictLossSpike, ""}:                        {"损失突增", "检查该步数据、梯度范数与学习率。", remark},
	{spans.VerdictMFULow, ""}:                           {"MFU 偏低", "检查数据加载、micro batch 大小、未被掩盖的通信与流水线气泡。", remark},
	{spans.VerdictThroughputLow, ""}:                    {"吞吐低于 P10", "查看当时主机上还在运行什么：检查点、评估、其他任务。", remark},
	{spans.VerdictZMQSerializeHigh, ""}: {
		"序列化占比超过 30%", "使用共享内存替代msgpack序列化，使用更高效的序列化格式(如protobuf)，减少传输的数据量(如使用bfloat16)。", remark,
	},
	{spans.VerdictZMQTransportHigh, ""}: {"发送/接收占比超过 30%", "确认使用IPC而非TCP，使用共享内存传输张量，或减少传输的数据量。", remark},
	{spans.VerdictZMQCallsHigh, ""}:     {"RPC调用次数过多", "算子融合，减少RPC调用次数；批量处理多个操作；缓存重复计算的结果。", remark},
	{spans.VerdictZMQTransportTCP, ""}:  {"使用了TCP而非IPC", "客户端与服务端在同一主机时，将地址改为 ipc:///…。", remark},
	{spans.VerdictTQFluctuating, ""}:    {"耗时波动大", "网络或存储不稳定：查看当时还有谁在使用。", remark},

	{spans.VerdictNCCLRankMissing, spans.CauseSequenceGap}:    {"部分记录丢失", "查找丢失的记录：磁盘已满、日志行被丢弃。", distrust},
	{spans.VerdictNCCLBandwidthUnit, ""}:                      {"日志中的带宽与消息大小、耗时不符", "确认单位是 GB/s 还是 Gbit/s，大小是单个 rank 还是全部；请使用重新计算的值。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseDPOmitted}:           {"perf_monitor 的数值漏乘数据并行度", "请使用重新计算的值。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseGQAAsMHA}:            {"perf_monitor 将 GQA 按 MHA 计算", "请使用重新计算的值。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseMoEAsDense}:          {"perf_monitor 将 MoE 按稠密模型计算", "请使用重新计算的值，并设置 --perf-model-type。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseSwiGLUOmitted}:       {"perf_monitor 漏算 SwiGLU", "请使用重新计算的值。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseFlopsDisagree}:       {"日志中的 FLOPs 与重新计算的不符", "比较配置中的模型与实际任务。", distrust},
	{spans.VerdictFlopsWrong, spans.CauseThroughputDisagrees}: {"日志中的吞吐与步耗时、批大小不符", "以步耗时为准。", distrust},
}
