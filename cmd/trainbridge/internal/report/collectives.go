package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

const mostRows = 10 // of tables that grow with the job

// collectives writes what the scripts in VCCL's document print: bandwidth and latency per operation, message sizes, errors, topology, hot links. Ranks that the
// others waited for come last.
func (p *page) collectives(job *digest.Job) {
	operations := job.Collectives.Operations()
	if len(operations) == 0 {
		return
	}
	p.head(p.in("Collectives: bandwidth, latency, message sizes, errors, topology", "集合通信：带宽、延迟、消息大小、错误、拓扑"))
	p.bandwidth(operations)
	p.sizes(operations)
	p.errors(operations)
	p.topology(job)
	if t := tables.Ranks(&job.Digest, p.chinese); len(t.Rows) > 0 {
		p.line(p.in("Ranks that the others waited for, or that had errors", "被等待或出错的 rank"))
		p.first(t)
	}
}

// bandwidth writes two tables by operation: the records of single ranks in the logs' own numbers, as a script that reads line by line sees them, then
// collectives over all of their ranks.
func (p *page) bandwidth(operations []*digest.Collective) {
	gb := func(x float64) string { return human.Fixed(x/1e9, 2) }
	us := func(x float64) string { return human.Fixed(x*1e6, 2) }
	var records [][]string
	for _, o := range operations {
		b, t := &o.Records.Bandwidth, &o.Records.Took
		if b.Count()+t.Count() > 0 {
			records = append(records, []string{
				name(o.Operation), human.Thousands(max(b.Count(), t.Count())), gb(b.Mean()), gb(b.Quantile(0.95)), gb(b.Quantile(0.99)),
				us(t.Mean()), us(t.Quantile(0.95)), us(t.Quantile(0.99)), us(t.Max()),
			})
		}
	}
	if len(records) > 0 {
		p.line(p.in("Records of ranks, as the logs state them (GB/s, μs)", "各 rank 的记录，按日志原值 (GB/s, μs)"))
		p.table(1, []string{
			p.in("operation", "操作"), p.in("records", "记录数"), "Average Bandwidth", "P95", "P99", "Average latency", "P95", "P99", "Max",
		}, records)
		p.paragraph("  ", p.in("1 GB/s is 8 Gbit/s. VCCL's bandwidth_gbps is in Gbit/s, though its document says GB/s: 26.8 there is 3.35 here.",
			"1 GB/s = 8 Gbit/s。VCCL 的 bandwidth_gbps 实为 Gbit/s（其文档写作 GB/s）：日志中的 26.8 在此为 3.35。"))
	}
	p.line(p.in("Collectives, over their ranks", "集合通信，跨 rank 汇总"))
	p.print(tables.Collectives(operations, p.chinese))
}

// sizes writes how many messages there were of each size, by powers of two, with their time and bandwidth.
func (p *page) sizes(operations []*digest.Collective) {
	var rows [][]string
	for _, o := range operations {
		for _, i := range slices.Sorted(maps.Keys(o.Sizes)) {
			s := o.Sizes[i]
			rows = append(rows, []string{
				name(o.Operation), human.Binary(i) + " – " + human.Binary(i+1), human.Thousands(s.Count), human.Bytes(s.Bytes),
				human.Seconds(s.Took.Mean()), human.Fixed(s.Bus.Mean()/1e9, 2),
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

// errors writes how many errors, retries and hanging collectives there were.
func (p *page) errors(operations []*digest.Collective) {
	var errors, retries float64
	hangs := 0
	for _, o := range operations {
		errors, retries, hangs = errors+o.Errors, retries+o.Retries, hangs+o.Hangs
	}
	p.value(p.in("Errors", "错误次数"), human.Thousands(errors))
	p.value(p.in("Retries", "重试次数"), human.Thousands(retries))
	if hangs > 0 {
		p.value(p.in("Never finished", "挂起"), human.Thousands(hangs))
	}
}

// communicator has its number of ranks: as logged or as seen, whichever is larger.
type communicator struct {
	*digest.Communicator
	ranks int64
}

// communicators are the communicators of a job, each with the larger of its logged size and the number of its ranks with records.
func communicators(job *digest.Job) (out []communicator) {
	seen := map[string]int64{} // ranks with records, by the communicator's id, else name
	for _, r := range job.Collectives.Ranks() {
		seen[r.Communicator]++
	}
	for _, c := range job.Collectives.Communicators() {
		out = append(out, communicator{c, max(c.Size, seen[cmp.Or(c.ID, c.Name)])})
	}
	return out
}

// topology writes the communicators, and the links between hosts and between ranks.
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
	hosts, ranks := tables.Links(&job.Digest, p.chinese)
	p.first(hosts)
	p.first(ranks)
}

// first writes the first rows of a table that grows with the job.
func (p *page) first(t tables.Table) {
	n := len(t.Rows) - mostRows
	t.Rows = t.Rows[:min(len(t.Rows), mostRows)]
	if p.print(t); n > 0 {
		p.line(p.sf("  and %s more", "  另有 %s 项", human.Thousands(n)))
	}
}
