package report

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// queue is the report of verl's scripts/analyze_tq_logs.py.
func (p *page) queue(job *digest.Job) {
	functions, operations := job.Functions.Rows(), job.Functions.Operations()
	if len(functions)+len(operations) == 0 {
		return
	}
	p.head("TransferQueue Performance Analysis Report")
	all := job.Functions.Sum()
	if len(functions) > 0 {
		p.value("Total Traces", human.Thousands(job.Functions.Traces))
		if all.WithoutID > 0 {
			p.paragraph("  ", p.sf(
				"%s of %s calls have no id (N/A). Each is counted here; analyze_tq_logs.py keeps one of each function.",
				"%[2]s 次调用中有 %[1]s 次没有 trace_id（N/A）。此处逐次计数；analyze_tq_logs.py 对每个函数只保留一次。",
				human.Thousands(all.WithoutID), human.Thousands(all.Calls+all.Incomplete)))
		}
	}
	share := func(s *digest.FunctionSums, of float64) string {
		return human.Fixed(s.Mean(of), 6) + "s (" + human.Fixed(100*s.Ratio(of), 2) + "%)"
	}
	for _, f := range functions {
		s := f.Sums()
		p.blank()
		p.line("Function: " + name(f.Name))
		p.line(strings.Repeat("─", pageWidth))
		p.value(p.in("Calls", "调用次数"), human.Thousands(s.Calls))
		if s.Incomplete > 0 {
			p.value(p.in("Without an end", "未结束"), human.Thousands(s.Incomplete))
		}
		if s.Calls == 0 {
			continue
		}
		p.value(p.in("Mean total time", "平均总耗时"), human.Fixed(s.Mean(s.Total), 6)+"s")
		p.value(p.in("Mean GET time", "平均GET耗时"), share(&s, s.Get))
		p.value(p.in("Mean COMPUTE time", "平均COMPUTE耗时"), share(&s, s.Compute))
		p.value(p.in("Mean PUT time", "平均PUT耗时"), share(&s, s.Put))
		p.value(p.in("TQ overhead", "TQ总开销"), human.Fixed(100*s.Ratio(s.Get+s.Put), 2)+"%")
		p.value(p.in("P95, longest", "P95、最长"), human.Fixed(f.Took.Quantile(0.95), 6)+"s, "+human.Fixed(f.Took.Max(), 6)+"s")
	}
	if all.Calls > 0 {
		p.blank()
		p.line(p.in("All functions", "全局汇总"))
		p.line(strings.Repeat("─", pageWidth))
		p.value(p.in("Total execution time", "总执行时间"), human.Fixed(all.Total, 6)+"s")
		p.value(p.in("Total TQ time", "总TQ时间"), human.Fixed(all.Get+all.Put, 6)+"s")
		p.value(p.in("TQ overhead of all", "全局TQ开销占比"), human.Fixed(100*all.Ratio(all.Get+all.Put), 2)+"%")
	}
	var rows [][]string
	for _, o := range operations {
		rate := o.Overall() / (1 << 20)
		judged := unknown
		switch {
		case rate > 500:
			judged = p.in("good", "良好")
		case rate >= 100:
			judged = p.in("fair", "一般")
		case rate < 100:
			judged = p.in("low", "偏低")
		}
		rows = append(rows, []string{
			name(o.Stage.String()), judged, human.Thousands(o.Took.Count()), human.Seconds(o.Took.Mean()), human.Seconds(o.Took.Quantile(0.95)), human.Bytes(o.Size.Sum()), human.Fixed(rate, 2),
			human.Fixed(o.Throughput.Min()/(1<<20), 2),
		})
	}
	if len(rows) > 0 {
		p.blank()
		p.table(2, []string{
			p.in("operation", "操作"), p.in("throughput is", "吞吐评价"), p.in("count", "次数"), p.in("mean", "平均耗时"), "P95", p.in("data", "数据量"), "MiB/s",
			p.in("lowest MiB/s", "最低 MiB/s"),
		}, rows)
	}
}
