package report

import (
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

const (
	inspectorOn = "NCCL_PROFILER_PLUGIN=…/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_VERBOSE=1"
	queueOn     = "TQ_TRACE_ENABLED=1 VERL_LOGGING_LEVEL=DEBUG RAY_DEDUP_LOGS=0"
	detailOn    = "TQ_TRACE_DETAIL_ENABLED=1 VERL_LOGGING_LEVEL=DEBUG"
)

func (c *conclusion) windowsOrNone() string {
	if c.window == nil {
		return ""
	}
	return c.windows(c.window.Took.Count())
}

// unjudged is how many windows were held against no others.
func (c *conclusion) unjudged() int64 {
	if c.window == nil {
		return 0
	}
	return c.window.Took.Count() - c.window.Judged
}

// gaps are what no log of the job tells, each with what switches it on.
func (c *conclusion) gaps() (out []string) {
	add := func(is bool, english, chinese string, args ...any) {
		if is {
			out = append(out, c.sf(english, chinese, args...))
		}
	}
	d := c.job
	logs, functions, calls, operations := d.Steps.Rows(), d.Functions.Sum(), &d.Passes.Calls, d.Collectives.Operations()
	steps, queue, rpc := len(logs) > 0, functions.Calls+functions.Incomplete > 0, calls.Took.Count() > 0

	arrivals, bandwidth := false, false
	for _, o := range operations {
		arrivals = arrivals || o.Late.Count() > 0
		bandwidth = bandwidth || o.Bus.Count()+o.Algorithm.Count()+o.Records.Bandwidth.Count() > 0
	}
	add((steps || queue) && len(operations) == 0 && !c.alone(),
		"No log of collectives: which rank was late, and whether the network was slow, cannot be said; set %s.",
		"没有集合通信日志：无法判断哪个 rank 迟到、网络是否变慢；请设置 %s。", inspectorOn)
	add(len(operations) > 0 && !arrivals,
		"The logs of collectives do not say when each rank came: which was late cannot be said; set NCCL_INSPECTOR_DUMP_VERBOSE=1, and give the logs of all ranks.",
		"集合通信日志没有各 rank 的到达时刻：无法判断谁迟到；请设置 NCCL_INSPECTOR_DUMP_VERBOSE=1，并提供所有 rank 的日志。")
	add(len(operations) > 0 && !bandwidth, "The logs of collectives have no size or no duration: there is no bandwidth.", "集合通信日志缺少大小或耗时：无法计算带宽。")

	verl, flops, mfu, model := false, false, false, false
	for _, l := range logs {
		verl = verl || l.Name == "verl"
		flops = flops || l.Measures[digest.DeviceFlopThroughput].Count()+l.Measures[digest.DeviceFlopThroughputReported].Count() > 0
		model = model || l.Measures[digest.DeviceFlopThroughput].Count() > 0
		mfu = mfu || l.Measures[digest.MFU].Count()+l.Measures[digest.MFUReported].Count() > 0
		add(l.Measures[digest.StepTime].Count() == 0, "The %s log has no step times: which steps were slow cannot be said.", "%s 日志没有步耗时：无法判断哪些步偏慢。", name(l.Name))
	}
	add(verl && !queue,
		"No [TQ-TRACE] lines: what TransferQueue takes of each step cannot be said; set %s.", "没有 [TQ-TRACE] 行：无法说明 TransferQueue 的开销；请设置 %s。", queueOn)
	add(steps && !mfu && flops, "No MFU: name the GPUs with --device, such as --device 'H100 SXM'.", "没有 MFU：请用 --device 指定 GPU，例如 --device 'H100 SXM'。")
	none := steps && !mfu && !flops && !queue && !rpc
	megatron := c.trainer() == "megatron"
	add(none && megatron,
		"No FLOP/s and no MFU: the log states none, and does not say the model; Megatron's --log-throughput has them, FlagScale's --enable-perf-monitor too.",
		"没有 FLOP/s 与 MFU：日志未给出，也未说明模型；可用 Megatron 的 --log-throughput 或 FlagScale 的 --enable-perf-monitor。")
	add(none && !megatron, "No FLOP/s and no MFU: the log states none, and does not say the model.", "没有 FLOP/s 与 MFU：日志未给出，也未说明模型。")
	add(!steps && (queue || len(operations) > 0), "No training log: steps, loss and throughput cannot be said.", "没有训练日志：无法说明步数、损失与吞吐。")

	add(functions.WithoutID > 0 && c.window == nil || functions.WithoutID == functions.Calls && queue,
		"%s of %s TransferQueue calls have no trace id (N/A): which calls belong to one batch cannot be said; integrations/verl/README.md says how to add it.",
		"%[2]s 次 TransferQueue 调用中有 %[1]s 次没有 trace_id（N/A）：无法关联同一批数据的各次调用；添加方法见 integrations/verl/README.md。",
		human.Thousands(functions.WithoutID), human.Thousands(functions.Calls+functions.Incomplete))
	add(queue && len(d.Functions.Operations()) == 0,
		"No [TQ-DETAIL] lines: the throughput of GET and PUT cannot be said; set %s.", "没有 [TQ-DETAIL] 行：无法说明 GET/PUT 的吞吐；请设置 %s。", detailOn)
	add(rpc && calls.Stages[view.RPCServer].Count() == 0 && calls.Stages[view.RPCReceive].Count() > 0,
		"The table of RPCs has no column of the server's time: waiting for it cannot be told from the transport; log the server's time (GPU(ms)).",
		"RPC 表没有服务端耗时列：无法区分等待服务端与网络传输；请记录服务端耗时（GPU(ms)）。")
	add(rpc && math.IsNaN(calls.Overall()), "The table of RPCs has no sizes: there is no throughput.", "RPC 表没有数据量：无法计算吞吐量。")

	add(c.unjudged() > 0,
		"%[2]s of %[1]s were not judged: too few like them are known, or not all that belongs to them.",
		"%[1]s中有 %[2]s 个未作判断：可比的太少，或相关日志不全。", c.windowsOrNone(), human.Thousands(c.unjudged()))

	out = append(append(out, c.unheard()...), c.copies()...)
	if c.slow() {
		unexplained, why := c.unexplained()
		known := map[string]bool{}
		for _, p := range c.window.ByTime() {
			known[p.Name] = true
		}
		timers := c.in(trainers.Timers(c.trainer()))
		add(unexplained > c.lost/2 && !known[spans.PartDataLoading] && c.window.Of == spans.WindowStep && !strings.Contains(why, timers),
			"No timers of the parts of a step: loading data cannot be told from computing; %s.", "没有步内各阶段的计时：无法区分加载数据与计算；%s。", timers)
		add(unexplained > little*c.lost, "%s of what was lost, no log explains.", "有 %s 的损失没有日志能够解释。", human.Seconds(unexplained))
	}
	return out
}
