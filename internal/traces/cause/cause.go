// Package cause describes the activity in a part of a step, a batch or a pass, and its culprit, in English and in Chinese: for the sentence of a slow window
// and for the report over many windows.
package cause

import (
	"strconv"

	"github.com/trainbridge/trainbridge/spans"
)

// Who is the culprit of a part of the time. Unknown fields are empty.
type Who struct {
	Rank    int64
	HasRank bool
	Host    string

	Operation string // of the collective
	Comm      string
}

// text is a text in both languages.
type text struct{ english, chinese string }

// in is the text in Chinese, or in English.
func (t text) in(chinese bool) string {
	if chinese {
		return t.chinese
	}
	return t.english
}

// parts are all parts of step_join; each text follows a time.
var parts = map[string]text{
	spans.PartCheckpoint:        {"in a checkpoint", "保存检查点"},
	spans.PartEvaluation:        {"in an evaluation", "评估"},
	spans.PartWait:              {"waiting for late ranks", "等待迟到的 rank"},
	spans.PartCollective:        {"transferring in collectives", "集合通信传输"},
	spans.PartCollectiveUnheard: {"on a rank without a log, or the network", "等待没有日志的 rank，或网络传输"},
	spans.PartRPCSerialize:      {"serializing RPC requests", "RPC 请求序列化"},
	spans.PartRPCSend:           {"sending RPC requests", "RPC 请求发送"},
	spans.PartRPCReceive:        {"waiting for RPC responses", "等待 RPC 响应"},
	spans.PartRPCServer:         {"in the RPC server", "RPC 服务端计算"},
	spans.PartRPCDeserialize:    {"deserializing RPC responses", "RPC 响应反序列化"},
	spans.PartRPCUnattributed:   {"in RPCs, outside of their stages", "RPC 各阶段之外"},
	spans.PartCompute:           {"computing", "计算"},
	spans.PartGet:               {"in TransferQueue GET", "TransferQueue GET"},
	spans.PartPut:               {"in TransferQueue PUT", "TransferQueue PUT"},
	spans.PartDataLoading:       {"loading data", "加载数据"},
	spans.PartUnattributed:      {"that no log explains", "没有日志能够解释"},
}

// Append describes a part: "waiting for rank 9 on node-1 in AllReduce of DP Group 0". The rank is named for a wait and for a timer of the trainer, operation
// and communicator for any part.
func Append(b []byte, part string, who Who, chinese bool) []byte {
	switch known, ok := parts[part]; {
	case part == spans.PartWait && who.HasRank:
		b = AppendRank(append(b, text{"waiting for ", "等待 "}.in(chinese)...), who, chinese)
	case part == spans.PartCollective && who.Operation != "":
		b = append(b, text{"transferring", "传输"}.in(chinese)...)
	case ok:
		b = append(b, known.in(chinese)...)
	default: // a timer of the trainer, by its own name
		b = append(append(b, text{"in ", ""}.in(chinese)...), part...)
		if who.HasRank {
			b = AppendRank(append(b, text{" of ", "，"}.in(chinese)...), who, chinese)
		}
	}
	if who.Operation != "" {
		b = append(append(b, text{" in ", "，于 "}.in(chinese)...), who.Operation...)
	}
	if who.Comm != "" {
		b = append(append(append(b, text{" of ", "（"}.in(chinese)...), who.Comm...), text{"", "）"}.in(chinese)...)
	}
	return b
}

// AppendRank names the rank, and its host if known.
func AppendRank(b []byte, who Who, chinese bool) []byte {
	b = strconv.AppendInt(append(b, "rank "...), who.Rank, 10)
	if who.Host != "" {
		b = append(append(append(b, text{" on ", "（"}.in(chinese)...), who.Host...), text{"", "）"}.in(chinese)...)
	}
	return b
}
