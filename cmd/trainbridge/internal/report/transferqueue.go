package report

import (
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// queue writes the report of verl's scripts/analyze_tq_logs.py, with its names and digits: times of GET, COMPUTE and PUT by function, then of all, then the
// client's operations.
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
		p.line(strings.Repeat("─", p.width))
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
		p.line(strings.Repeat("─", p.width))
		p.value(p.in("Total execution time", "总执行时间"), human.Fixed(all.Total, 6)+"s")
		p.value(p.in("Total TQ time", "总TQ时间"), human.Fixed(all.Get+all.Put, 6)+"s")
		p.value(p.in("TQ overhead of all", "全局TQ开销占比"), human.Fixed(100*all.Ratio(all.Get+all.Put), 2)+"%")
	}
	if len(operations) > 0 {
		p.blank()
		p.print(tables.Operations(&job.Digest, p.chinese))
	}
}
