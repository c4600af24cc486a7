package cause

import (
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/trainers"
	"github.com/trainbridge/trainbridge/spans"
)

// Reason is why logs do not explain a part of the time.
type Reason struct {
	Of      string  // a spans.Reason… value
	Trainer string  // spans.AttrSource of the steps; "": not known
	Apart   float64 // s, by how much the hosts' clocks differ; 0: not known
}

// reasons are the fixed texts.
var reasons = map[string]text{
	spans.ReasonAlike: {
		"all timers within computing grew alike, so no part alone is slow; look at the clocks of the GPUs, the load of the hosts and the size of the batch",
		"计算内的各项计时同比变长，没有哪一部分单独变慢；请检查 GPU 频率、主机负载与批次大小",
	},
	spans.ReasonArrivals: {
		"no log says when ranks reached their collectives, so the late rank is not known; set NCCL_INSPECTOR_ENABLE=1 and NCCL_INSPECTOR_DUMP_VERBOSE=1",
		"没有日志给出各 rank 到达集合通信的时刻，无法判断谁迟到；请设置 NCCL_INSPECTOR_ENABLE=1 与 NCCL_INSPECTOR_DUMP_VERBOSE=1",
	},
	spans.ReasonSomeArrivals: {
		"some ranks do not log when they reached their collectives, so the late rank is not known; " +
			"set NCCL_INSPECTOR_ENABLE=1 and NCCL_INSPECTOR_DUMP_VERBOSE=1",
		"部分 rank 没有到达集合通信的时刻，无法判断谁迟到；请设置 NCCL_INSPECTOR_ENABLE=1 与 NCCL_INSPECTOR_DUMP_VERBOSE=1",
	},
	spans.ReasonServerTime: {
		"the server's time is not logged, so server and transport cannot be told apart; log the server's time", "没有服务端耗时列，无法区分等待服务端与网络传输；请记录服务端耗时",
	},
	spans.ReasonStageTime: {"the rest of the pass is not logged; log the time of each stage", "前向过程没有其余各列；请记录每个阶段的耗时"},
	spans.ReasonDevices:   {"no single rank was late; profile such a window, and check the clocks of the GPUs", "没有单独迟到的 rank；请对此类窗口做性能剖析，并检查 GPU 频率"},
	spans.ReasonStepTimers: {
		"no timers of the step, so loading data, checkpoint and evaluation cannot be told apart; log each training step with its timers",
		"所在步没有计时，无法区分加载数据、检查点与评估；请记录每个训练步及其计时",
	},
	spans.ReasonProfile: {"all logs that could tell were read; profile such a window", "能说明原因的日志都已读取；请对此类窗口做性能剖析"},
}

// Append adds the reason, with advice behind a semicolon: "the hosts' clocks are 50 ms apart, so their logs cannot be aligned; set the clocks by NTP or PTP".
// Nothing for an unknown reason, as of a later version.
func (r Reason) Append(b []byte, chinese bool) []byte {
	switch r.Of {
	case spans.ReasonClocksApart:
		b = append(b, text{"the hosts' clocks are ", "主机时钟"}.in(chinese)...)
		switch {
		case r.Apart <= 0:
			b = append(b, text{"", "不一致"}.in(chinese)...)
		case chinese:
			b = human.AppendSeconds(append(b, "相差 "...), r.Apart)
		default:
			b = append(human.AppendSeconds(b, r.Apart), ' ')
		}
		return append(b, text{
			"apart, so their logs cannot be aligned; set the clocks by NTP or PTP", "，其日志无法按时间对齐；请用 NTP 或 PTP 校时",
		}.in(chinese)...)
	case spans.ReasonTimers:
		english, inChinese := trainers.Timers(r.Trainer)
		return append(b, text{
			"no timers of the step, so loading data and computing cannot be told apart; " + english, "没有步内计时，无法区分加载数据与计算；" + inChinese,
		}.in(chinese)...)
	}
	return append(b, reasons[r.Of].in(chinese)...)
}
