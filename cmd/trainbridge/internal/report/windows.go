package report

import (
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// windows says where the time of steps, batches and passes went.
func (p *page) windows(job *digest.Job) {
	for _, w := range job.Windows.Rows() {
		if w.Took.Count() == 0 {
			continue
		}
		of := map[string]string{
			spans.WindowStep: p.in("steps", "训练步"), spans.WindowBatch: p.in("batches", "批次"), spans.WindowPass: p.in("RPC passes", "前向过程"),
		}[w.Of]
		if of == "" {
			of = name(w.Of)
		}
		p.head(p.sf("Where the time of %s went", "%s的耗时分解", of))
		p.value(p.in("Count", "数量"), human.Thousands(w.Took.Count())+p.sf(", %s of them slow", "，其中偏慢 %s", human.Thousands(w.SlowCount)))
		p.value(p.in("Time", "耗时"), p.sf("median %s, P95 %s, longest %s, together %s", "中位数 %s，P95 %s，最长 %s，合计 %s",
			human.Seconds(w.Took.Quantile(0.5)), human.Seconds(w.Took.Quantile(0.95)), human.Seconds(w.Took.Max()), human.Seconds(w.Took.Sum())))
		var rows [][]string
		for _, part := range w.ByTime() {
			if part.All.Sum() < 1e-6 { // it is known, and took no time
				continue
			}
			slow := unknown
			if part.Slow.Count() > 0 {
				slow = human.Seconds(part.Slow.Mean())
			}
			rows = append(rows, []string{
				name(part.Name), human.Seconds(part.All.Sum()), human.Percent(w.Share(part)), human.Seconds(part.All.Mean()), human.Seconds(part.All.Quantile(0.95)), slow,
			})
		}
		p.table(1, []string{p.in("part", "部分"), p.in("together", "合计"), p.in("share", "占比"), p.in("mean", "平均"), "P95", p.in("mean of slow ones", "偏慢者平均")}, rows)
	}
}
