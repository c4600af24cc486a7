package compare

import (
	"fmt"

	"github.com/trainbridge/trainbridge/internal/human"
)

// words is the language of a comparison; true is Chinese. Chinese terms are those of the documents of TransferQueue, FlagScale, the ZeroMQ monitor and VCCL.
type words bool

// of returns a text in the language of the comparison if the table chinese has it. Other texts are names from logs, and are not translated.
func (w words) of(text string) string {
	if w {
		if zh, ok := chinese[text]; ok {
			return zh
		}
	}
	return text
}

// in returns one of two texts, by the language.
func (w words) in(english, chinese string) string {
	if w {
		return chinese
	}
	return english
}

// sf is fmt.Sprintf with a format in the language.
func (w words) sf(english, chinese string, args ...any) string {
	return fmt.Sprintf(w.in(english, chinese), args...)
}

// count returns a number with a noun; in Chinese the number alone, since the noun is in the sentence.
func (w words) count(n int, what string) string {
	if w {
		return human.Thousands(n)
	}
	return human.Plural(n, what)
}

// chinese are translations of English texts.
var chinese = map[string]string{
	"Steps":                           "训练步",
	"Where the time of a step goes":   "每步耗时分解",
	"Where the time of a batch goes":  "每批次耗时分解",
	"Where the time of a pass goes":   "每次前向传播耗时分解",
	"Timers of the trainer, per step": "训练框架的计时（每步）",
	"TransferQueue, per call":         "TransferQueue 函数（每次调用）",
	"RPC, per pass":                   "RPC（每次前向传播）",
	"Collectives, each":               "集合通信（每次操作）",
	"Loss":                            "损失",

	"time":                              "耗时",
	"tokens/s":                          "tokens/s",
	"samples/s":                         "samples/s",
	"FLOP/s per GPU, as logged":         "单卡 FLOP/s（日志值）",
	"FLOP/s per GPU, recomputed":        "单卡 FLOP/s（重新计算）",
	"whole":                             "总耗时",
	"without checkpoint and evaluation": "不含检查点与评估",
	"other":                             "其他",
	"compute":                           "计算 compute",
	"get":                               "取数据 get",
	"put":                               "写数据 put",
	"collective":                        "集合通信",
	"collective.wait":                   "集合通信等待",
	"rpc.serialize":                     "RPC 序列化",
	"rpc.send":                          "RPC 发送",
	"rpc.receive":                       "RPC 接收",
	"rpc.server":                        "RPC 服务端计算",
	"rpc.deserialize":                   "RPC 反序列化",
	"rpc.unattributed":                  "RPC 未归因",
	"data_loading":                      "数据加载",
	"checkpoint":                        "检查点",
	"evaluation":                        "评估",
	"unattributed":                      "未归因",
	"serialize":                         "序列化",
	"send":                              "发送",
	"receive":                           "接收",
	"server":                            "服务端计算",
	"deserialize":                       "反序列化",
	"throughput":                        "吞吐量",
	"bus bandwidth":                     "总线带宽 busbw",
	"wait for the last rank":            "等待最慢 rank",
	"at equal steps":                    "相同训练步",

	findingNone:   "看不出差异",
	findingFew:    "数据太少",
	findingOnlyA:  "仅 A 有",
	findingOnlyB:  "仅 B 有",
	findingHigher: "更高",
	findingLower:  "更低",
	"longer":      "更长",
	"shorter":     "更短",
	"worse":       "变差",
	"better":      "变好",

	"no log says it": "日志未说明",
	"change":         "变化",
	"interval":       "区间",
	"batch size":     "批大小",
	"world size":     "GPU 总数 (world size)",
	"GPUs":           "GPU 型号",
	collectiveRanks:  "最大集合通信的 rank 数",
}
