package report

import (
	"fmt"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// gpus is what logs state of the cards (004's gpu_util).
func (p *page) gpus(job *digest.Job) {
	cards := job.GPUs()
	if len(cards) == 0 {
		return
	}
	p.head(p.in("GPUs", "GPU"))
	var rows [][]string
	for _, g := range cards[:min(len(cards), maxCards)] {
		card := name(g.ID)
		if g.Name != "" {
			card = name(g.Name)
		}
		if g.Rank.OK {
			card += fmt.Sprintf(" (rank %d)", g.Rank.N)
		}
		rows = append(rows, []string{
			card, name(g.Host), human.Thousands(g.Utilization.Count()), human.Percent(g.Utilization.Mean()), human.Percent(g.Utilization.Min()), human.Percent(g.Utilization.Max()),
			human.Bytes(g.Memory.Max()), human.Fixed(g.Power.Mean(), 0), human.Fixed(g.Temperature.Max(), 0), human.Fixed(g.Clock.Mean()/1e6, 0),
		})
	}
	p.table(2, []string{
		p.in("card", "卡"), p.in("host", "主机"), p.in("samples", "样本数"), p.in("utilization", "平均利用率"), p.in("min", "最小"), p.in("max", "最大"),
		p.in("memory, most", "显存最大"), p.in("power W", "功率 W"), p.in("hottest °C", "最高温度 °C"), p.in("clock MHz", "频率 MHz"),
	}, rows)
	if n := len(cards) - maxCards; n > 0 {
		p.line(p.sf("  and %s more", "  另有 %s 张", human.Thousands(n)))
	}
}

const maxCards = 64
