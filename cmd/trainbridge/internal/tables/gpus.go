package tables

import (
	"cmp"
	"fmt"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

func busy(g *digest.GPU) *digest.Values { return &g.Utilization }

var gpus = []Column[*digest.GPU]{
	text("card", "卡", "", Card),
	text("host", "主机", "", func(g *digest.GPU) string { return g.Host }),
	count("samples", "样本数", "", func(g *digest.GPU) int64 { return g.Utilization.Count() }),
	number("utilization", "平均利用率", "", human.Percent, mean(busy)),
	number("least", "最小", "", human.Percent, at(busy, 0)),
	number("most", "最大", "", human.Percent, at(busy, 1)),
	number("memory, most", "显存最大", "", human.Bytes, func(g *digest.GPU) float64 { return g.Memory.Max() }),
	number("power", "功率", "", human.Watts, func(g *digest.GPU) float64 { return g.Power.Mean() }),
	number("hottest", "最高温度", "", human.Celsius, func(g *digest.GPU) float64 { return g.Temperature.Max() }),
	number("clock", "频率", "", human.Hertz, func(g *digest.GPU) float64 { return g.Clock.Mean() }),
}

// Card names a GPU without its host: "NVIDIA H100 (rank 3)", or "GPU 3" where the log has no name.
func Card(g *digest.GPU) string {
	card := cmp.Or(g.Name, "GPU "+g.ID)
	if g.Rank.OK {
		card += fmt.Sprintf(" (rank %d)", g.Rank.N)
	}
	return card
}

// GPUs are the GPUs with values in logs.
func GPUs(rows []*digest.GPU, chinese bool) Table { return tableOf(gpus, rows, chinese) }
