package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

const mostRows = 10 // of tables that grow with the job

// collectives is what VCCL's document has its scripts say: bandwidth and latency per operation, message sizes, errors, topology, hot links.
func (p *page) collectives(job *digest.Job) {
	operations := job.Collectives.Operations()
	if len(operations) == 0 {
		return
	}
	p.head(p.in("Collectives: bandwidth, latency, message sizes, errors, topology", "集合通信：带宽、延迟、消息大小、错误、拓扑"))
	p.bandwidth(operations)
	p.sizes(operations)
	p.errors(job, operations)
	p.topology(job)
	p.lateness(job, operations)
}

// bandwidth has the records of ranks, as a script sees them that reads the logs line by line, then the collectives that were joined of them.
func (p *page) bandwidth(operations []*digest.Collective) {
	gb := func(x float64) string { return human.Fixed(x/1e9, 2) }
	us := func(x float64) string { return human.Fixed(x*1e6, 2) }
	var records, joined [][]string
	for _, o := range operations {
		b, t := &o.Records.Bandwidth, &o.Records.Took
		if b.Count()+t.Count() > 0 {
			records = append(records, []string{
				name(o.Operation), human.Thousands(max(b.Count(), t.Count())), gb(b.Mean()), gb(b.Quantile(0.95)), gb(b.Quantile(0.99)),
				us(t.Mean()), us(t.Quantile(0.95)), us(t.Quantile(0.99)), us(t.Max()),
			})
		}
		rate := &o.Bus
		if rate.Count() == 0 { // without the size of the communicator
			rate = &o.Algorithm
		}
		joined = append(joined, []string{
			name(o.Operation), human.Thousands(o.Count), human.Thousands(o.Incomplete), gb(o.Algorithm.Mean()), gb(o.Bus.Mean()), gb(rate.Quantile(0.5)), gb(rate.Min()),
			human.Seconds(o.Took.Mean()), human.Seconds(o.Took.Quantile(0.95)), human.Seconds(o.Took.Max()),
		})
	}
	if len(records) > 0 {
		p.line(p.in("Records of ranks, as the logs state them (GB/s, μs)", "各 rank 的记录，按日志原值 (GB/s, μs)"))
		p.table(1, []string{
			p.in("operation", "操作"), p.in("records", "记录数"), "Average Bandwidth", "P95", "P99", "Average latency", "P95", "P99", "Max",
		}, records)
		p.paragraph("  ", p.in("1 GB/s is 8 Gbit/s. VCCL's bandwidth_gbps is in Gbit/s, though its document says GB/s: 26.8 there is 3.35 here.",
			"1 GB/s = 8 Gbit/s。VCCL 的 bandwidth_gbps 实为 Gbit/s（其文档写作 GB/s）：日志中的 26.8 在此为 3.35。"))
	}
	p.line(p.in("Collectives, over their ranks (GB/s)", "集合通信，跨 rank 汇总 (GB/s)"))
	p.table(1, []string{
		p.in("operation", "操作"), p.in("count", "次数"), p.in("incomplete", "未完成"), "algbw", "busbw", p.in("median", "中位数"), p.in("lowest", "最低"),
		p.in("mean time", "平均耗时"), "P95", p.in("longest", "最长"),
	}, joined)
}

func (p *page) sizes(operations []*digest.Collective) {
	var rows [][]string
	for _, o := range operations {
		for _, i := range slices.Sorted(maps.Keys(o.Sizes)) {
			s := o.Sizes[i]
			rows = append(rows, []string{
				name(o.Operation), human.Binary(i) + " – " + human.Binary(i+1), human.Thousands(s.Count), human.Bytes(s.Bytes), human.Seconds(s.Took.Mean()), human.Fixed(s.Bus.Mean()/1e9, 2),
			})
		}
	}
	if len(rows) > 0 {
		p.line(p.in("Message sizes", "消息大小"))
		p.table(2, []string{
			p.in("operation", "操作"), p.in("from – below", "范围"), p.in("count", "次数"), p.in("data", "数据量"), p.in("mean time", "平均耗时"), "busbw GB/s",
		}, rows)
	}
}

func (p *page) errors(job *digest.Job, operations []*digest.Collective) {
	var errors, retries float64
	hangs := 0
	for _, o := range operations {
		errors, retries, hangs = errors+o.Errors, retries+o.Retries, hangs+o.Hangs
	}
	p.value(p.in("Errors", "错误次数"), human.Thousands(errors))
	p.value(p.in("Retries", "重试次数"), human.Thousands(retries))
	if hangs > 0 {
		p.value(p.in("Did not end", "挂起"), human.Thousands(hangs))
	}
	var rows [][]string
	for _, r := range job.Collectives.Ranks() {
		if r.Errors+r.Retries > 0 {
			rows = append(rows, []string{name(r.Communicator), fmt.Sprintf("rank %d", r.Rank), name(r.Host), human.Thousands(r.Errors), human.Thousands(r.Retries)})
		}
	}
	if len(rows) > 0 {
		p.table(3, []string{p.in("communicator", "通信域"), "rank", p.in("host", "主机"), p.in("errors", "错误"), p.in("retries", "重试")}, rows[:min(len(rows), mostRows)])
	}
}

// communicator is one, with the number of its ranks: as the logs say it, else as many as were seen.
type communicator struct {
	*digest.Communicator
	ranks int64
}

func communicators(job *digest.Job) (out []communicator) {
	seen := map[string]int64{}
	for _, r := range job.Collectives.Ranks() {
		seen[r.Communicator]++
	}
	for _, c := range job.Collectives.Communicators() {
		out = append(out, communicator{c, max(c.Size, seen[cmp.Or(c.ID, c.Name)])})
	}
	return out
}

func (p *page) topology(job *digest.Job) {
	var rows [][]string
	for _, c := range communicators(job) {
		size := unknown
		if c.ranks > 0 {
			size = human.Thousands(c.ranks)
		}
		called := name(c.Name)
		if called == unknown {
			called = p.in("without a name", "未命名")
		}
		rows = append(rows, []string{called, size, human.Thousands(c.Collectives)})
	}
	p.line(p.in("Topology", "通信拓扑"))
	p.table(1, []string{p.in("communicator", "通信域"), p.in("ranks", "rank 数"), p.in("collectives", "次数")}, rows[:min(len(rows), mostRows)])
	if n := len(rows) - mostRows; n > 0 {
		p.line(p.sf("  and %s more", "  另有 %s 个", human.Thousands(n)))
	}
	for _, kind := range []struct {
		name  string
		links []*digest.Link
	}{
		{p.in("link between hosts", "主机间链路"), job.Collectives.Nodes()}, {p.in("link between ranks", "rank 间链路"), job.Collectives.Links()},
	} {
		links := kind.links
		slices.SortStableFunc(links, func(a, b *digest.Link) int {
			return cmp.Or(cmp.Compare(b.Slow+b.Hot, a.Slow+a.Hot), cmp.Compare(b.Bytes, a.Bytes))
		})
		rows = nil
		for _, l := range links {
			rows = append(rows, []string{name(l.Source) + " → " + name(l.Destination), human.Bytes(l.Bytes), human.Fixed(l.Bandwidth/1e9, 2), human.Thousands(l.Hot), human.Thousands(l.Slow)})
		}
		if len(rows) > 0 {
			p.table(1, []string{kind.name, p.in("data", "数据量"), "GB/s", p.in("said to be hot", "热点次数"), p.in("slow", "慢链路次数")}, rows[:min(len(rows), mostRows)])
			if n := len(rows) - mostRows; n > 0 {
				p.line(p.sf("  and %s more", "  另有 %s 条", human.Thousands(n)))
			}
		}
	}
}

// lateness says which ranks came late, where the logs tell.
func (p *page) lateness(job *digest.Job, operations []*digest.Collective) {
	if !slices.ContainsFunc(operations, func(o *digest.Collective) bool { return o.Late.Count() > 0 }) {
		return
	}
	var rows [][]string
	for _, o := range operations {
		who, times := o.LastMostOften()
		if times == 0 {
			continue
		}
		rows = append(rows, []string{
			name(o.Operation), name(who), human.Thousands(times), human.Seconds(o.Late.Quantile(0.5)), human.Seconds(o.Late.Quantile(0.95)), human.Seconds(o.Late.Max()), human.Digits(o.Cost.Sum()),
		})
	}
	if len(rows) > 0 {
		p.line(p.in("How late the last rank came", "最后到达的 rank"))
		p.table(2, []string{
			p.in("operation", "操作"), p.in("last most often", "最常最后到达"), p.in("times", "次数"), p.in("median", "中位数"), "P95", p.in("most", "最大"),
			p.in("GPU-seconds", "GPU·秒"),
		}, rows)
	}
	ranks := job.Collectives.Ranks()
	slices.SortStableFunc(ranks, func(a, b *digest.Rank) int { return cmp.Compare(b.Cost.Sum(), a.Cost.Sum()) })
	rows = nil
	for _, r := range ranks[:min(len(ranks), mostRows)] {
		if r.Cost.Sum() > 0 {
			rows = append(rows, []string{
				fmt.Sprintf("rank %d", r.Rank), name(r.Host), name(r.Communicator), human.Thousands(r.Last), human.Thousands(r.Records), human.Seconds(r.Late.Mean()), human.Seconds(r.Late.Max()),
				human.Digits(r.Cost.Sum()),
			})
		}
	}
	if len(rows) > 0 {
		p.line(p.in("Ranks that the others waited for", "被等待的 rank"))
		p.table(3, []string{
			"rank", p.in("host", "主机"), p.in("communicator", "通信域"), p.in("last", "最后到达"), p.in("of", "总次数"), p.in("mean late", "平均迟到"), p.in("most", "最大"),
			p.in("GPU-seconds", "GPU·秒"),
		}, rows)
	}
}
