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

// What makes a program write the logs that are missing.
const (
	inspectorOn = "NCCL_PROFILER_PLUGIN=…/libnccl-profiler-inspector.so NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_VERBOSE=1"
	queueOn     = "TQ_TRACE_ENABLED=1 VERL_LOGGING_LEVEL=DEBUG RAY_DEDUP_LOGS=0"
	detailOn    = "TQ_TRACE_DETAIL_ENABLED=1 VERL_LOGGING_LEVEL=DEBUG"
)

// windowsOrNone is the number of windows in words; "": no log tells of windows.
func (c *conclusion) windowsOrNone() string {
	if c.window == nil {
		return ""
	}
	return c.windows(c.window.Took.Count())
}

// unjudged is how many windows were not judged as slow or usual, for want of enough windows alike.
func (c *conclusion) unjudged() int64 {
	if c.window == nil {
		return 0
	}
	return c.window.Took.Count() - c.window.Judged
}

// gaps are the questions that the logs of the job leave open, a text each: the question, why it is open, and which switch closes the gap, if any.
func (c *conclusion) gaps() (out []string) {
	add := func(open bool, english, chinese string, args ...any) {
		if open {
			out = append(out, c.sf(english, chinese, args...))
		}
	}
	d := c.job
	logs, functions, calls, operations := d.Steps.Rows(), d.Functions.Sum(), &d.Passes.Calls, d.Collectives.Operations()
	// Which kinds of logs there are.
	steps, queue, rpc := len(logs) > 0, functions.Calls+functions.Incomplete > 0, calls.Took.Count() > 0

	// Collectives: lateness needs the times at which ranks arrived, bandwidth needs sizes and durations.
	arrivals, bandwidth := false, false
	for _, o := range operations {
		arrivals = arrivals || o.Late.Count() > 0
		bandwidth = bandwidth || o.Bus.Count()+o.Algorithm.Count()+o.Records.Bandwidth.Count() > 0
	}
	add((steps || queue) && len(operations) == 0 && !c.alone(),
		"Late ranks and a slow network: no log of collectives; set %s.",
		"rank 迟到与网络变慢：没有集合通信日志；请设置 %s。", inspectorOn)
	add(len(operations) > 0 && !arrivals,
		"Late ranks: no arrival times of ranks; set NCCL_INSPECTOR_DUMP_VERBOSE=1, and give the logs of all ranks.",
		"rank 迟到：没有各 rank 的到达时刻；请设置 NCCL_INSPECTOR_DUMP_VERBOSE=1，并提供所有 rank 的日志。")
	add(len(operations) > 0 && !bandwidth, "Bandwidth: the logs of collectives have no size or no duration.", "带宽：集合通信日志缺少大小或耗时。")

	// Training logs.
	verl, flops, mfu, model := false, false, false, false
	for _, l := range logs {
		verl = verl || l.Name == "verl"
		flops = flops || l.Measures[digest.DeviceFlopThroughput].Count()+l.Measures[digest.DeviceFlopThroughputReported].Count() > 0
		model = model || l.Measures[digest.DeviceFlopThroughput].Count() > 0
		mfu = mfu || l.Measures[digest.MFU].Count()+l.Measures[digest.MFUReported].Count() > 0
		add(l.Measures[digest.StepTime].Count() == 0, "Slow steps: the %s log has no step times.", "慢步：%s 日志没有步耗时。", name(l.Name))
	}
	add(verl && !queue,
		"TransferQueue's share of a step: no [TQ-TRACE] lines; set %s.", "TransferQueue 的开销：没有 [TQ-TRACE] 行；请设置 %s。", queueOn)
	add(steps && !mfu && flops, "MFU: name the GPUs, such as --device 'H100 SXM'.", "MFU：请用 --device 指定 GPU，例如 --device 'H100 SXM'。")
	none := steps && !mfu && !flops && !queue && !rpc
	megatron := c.trainer() == "megatron"
	add(none && megatron,
		"FLOP/s and MFU: not in the log, nor is the model; set Megatron's --log-throughput or FlagScale's --enable-perf-monitor.",
		"FLOP/s 与 MFU：日志未给出，也未说明模型；可用 Megatron 的 --log-throughput 或 FlagScale 的 --enable-perf-monitor。")
	add(none && !megatron, "FLOP/s and MFU: not in the log, nor is the model.", "FLOP/s 与 MFU：日志未给出，也未说明模型。")
	add(!steps && (queue || len(operations) > 0), "Steps, loss and throughput: no training log.", "步数、损失与吞吐：没有训练日志。")

	// TransferQueue and RPCs.
	all := functions.Calls + functions.Incomplete
	add(functions.WithoutID > 0 && (c.window == nil || functions.WithoutID == all), // without windows, or with none of TransferQueue
		"Which calls belong to one batch: %s of %s TransferQueue calls have no trace id (N/A); see integrations/verl/README.md.",
		"同一批数据的各次调用：%[2]s 次 TransferQueue 调用中有 %[1]s 次没有 trace_id（N/A）；添加方法见 integrations/verl/README.md。",
		human.Thousands(functions.WithoutID), human.Thousands(all))
	add(queue && len(d.Functions.Operations()) == 0,
		"Throughput of GET and PUT: no [TQ-DETAIL] lines; set %s.", "GET/PUT 的吞吐：没有 [TQ-DETAIL] 行；请设置 %s。", detailOn)
	add(rpc && calls.Stages[view.RPCServer].Count() == 0 && calls.Stages[view.RPCReceive].Count() > 0,
		"Server or transport: the table of RPCs has no column of the server's time; log GPU(ms).",
		"服务端还是网络：RPC 表没有服务端耗时列；请记录 GPU(ms)。")
	add(rpc && math.IsNaN(calls.Overall()), "Throughput of RPCs: their table has no sizes.", "RPC 吞吐：表中没有数据量。")

	// Slow windows: which are slow, and why.
	add(c.unjudged() > 0,
		"Whether slow: %[2]s of %[1]s; too few are alike, or logs are missing.",
		"是否偏慢：%[1]s中有 %[2]s 个未作判断；可比的太少，或相关日志不全。", c.windowsOrNone(), human.Thousands(c.unjudged()))

	out = append(append(out, c.unheard()...), c.copies()...)
	if c.slow() {
		unexplained, why := c.unexplained()
		known := map[string]bool{}
		for _, p := range c.window.ByTime() {
			known[p.Name] = true
		}
		timers := c.in(trainers.Timers(c.trainer()))
		untimed := !known[spans.PartDataLoading] && !known[spans.PartCompute]
		add(unexplained > c.lost/2 && untimed && c.window.Of == spans.WindowStep && !strings.Contains(why, timers),
			"Loading data or computing: no timers within a step; %s.", "加载数据还是计算：没有步内各阶段的计时；%s。", timers)
		add(unexplained > little*c.lost, "Why %s were lost.", "%s 损失的原因。", human.Seconds(unexplained))
	}
	return out
}
