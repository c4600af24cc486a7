package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

const kibi = 1 << 10

// calls writes the report of TSQP's analyze_zmq_performance.py, with its names and units: of each log without its warm-up, then of all logs together; of a
// single log without a warm-up once. dir is the directory of the logs, which their names leave out.
func (p *page) calls(job *digest.Job, read *offline.Reading, dir string) {
	all := &job.Passes.Calls
	if all.Took.Count() == 0 {
		return
	}
	p.head("ZeroMQ Performance Analysis Report")
	p.paragraph("  ", p.in(
		"analyze_zmq_performance.py stops at the second rule of a log, below the names of its columns, and finds no call; here all rows are read.",
		"analyze_zmq_performance.py 在日志的第二条分隔线（列名下方）即停止，读不到任何调用；此处读取全部数据行。"))
	logs := job.Passes.Logs()
	warm := int64(0)
	for _, l := range logs {
		warm += l.WarmUp
		if l.Took.Count() == 0 || len(logs) == 1 && l.WarmUp == 0 { // warm-up alone; or the log is all calls, told below
			continue
		}
		title := name(strings.TrimPrefix(read.Name(l.File), dir))
		if l.WarmUp > 0 {
			title += p.sf(", without the warm-up (%s before the numbers began anew)", "，不含预热（编号重新开始前的 %s 次调用）",
				p.in(human.Plural(l.WarmUp, "call"), human.Thousands(l.WarmUp)))
		}
		p.callTables(title, l.Transports, &l.Calls)
	}
	if len(logs) > 1 || warm > 0 {
		transports := map[string]int{}
		for _, l := range logs {
			for t, n := range l.Transports {
				transports[t] += n
			}
		}
		p.callTables(p.sf("all %s of %s, with the warm-up", "全部 %s 次调用（%s 个文件，含预热）", p.in(human.Plural(all.Took.Count(), "call"), human.Thousands(all.Took.Count())),
			p.in(human.Plural(len(logs), "file"), human.Thousands(len(logs)))), transports, all)
		return
	}
	p.callTables("", logs[0].Transports, all)
}

// callTables writes the report about some calls: times by stage, bytes, methods, bottlenecks, advice. transports counts the groups of calls of each transport.
func (p *page) callTables(title string, transports map[string]int, c *digest.Calls) {
	p.blank()
	if title != "" {
		p.paragraph("", title)
		p.line(strings.Repeat("-", p.width))
	}
	total, n := c.Took.Sum(), float64(c.Took.Count())
	ms := func(s float64, decimals int) string { return human.Fixed(s*1e3, decimals) + " ms" }
	p.line(p.in("OVERALL STATISTICS", "总体统计 (OVERALL STATISTICS)"))
	p.value("Transport", transportNames(transports))
	p.value("Total RPC Calls", strconv.FormatInt(c.Took.Count(), 10))
	p.value("Total Time", ms(total, 2))
	p.value("Average Time/Call", ms(c.Took.Mean(), 3))
	p.line(p.in("Time Breakdown (Average per call)", "耗时分解，每次调用平均 (Time Breakdown)"))
	for _, stage := range []struct {
		name string
		of   view.RPCStage
	}{
		{"Serialize", view.RPCSerialize},
		{"Send", view.RPCSend},
		{"Receive", view.RPCReceive},
		{p.in("  of it the server", "  其中服务端"), view.RPCServer},
		{"Deserialize", view.RPCDeserialize},
		{p.in("In no stage", "各阶段之外"), view.RPCUnattributed},
		{p.in("Beside calls (Offline)", "调用之外 (Offline)"), digest.RPCOffline},
	} {
		sum := c.Total(stage.of)
		if stage.of != view.RPCUnattributed && c.Stages[stage.of].Count() == 0 { // a stage that is not logged; the time in no stage is computed
			continue
		}
		p.value(stage.name, fmt.Sprintf("%10s ms  (%5s%%)", human.Fixed(sum/n*1e3, 3), human.Fixed(100*sum/total, 1)))
	}
	if moved := c.Sent.Sum() + c.Received.Sum(); moved > 0 {
		p.line(p.in("Data Transfer", "数据传输 (Data Transfer)"))
		size := func(v *digest.Values) string {
			return fmt.Sprintf("%s MiB  (%s KiB/call)", human.Fixed(v.Sum()/(1<<20), 2), human.Fixed(v.Sum()/n/kibi, 2))
		}
		p.value("Total Sent", size(&c.Sent))
		p.value("Total Received", size(&c.Received))
		p.value("Total", human.Fixed(moved/(1<<20), 2)+" MiB")
		throughput := human.Fixed(c.Overall()/(1<<20), 2) + " MiB/s"
		if c.Throughput.Count() == 0 { // of calls with tensors in their messages
			throughput += p.in(" of messages; tensors go through shared memory", "（仅消息；张量经由共享内存）")
		}
		p.value("Throughput", throughput)
	}
	p.methods(c, total)
	p.bottlenecks(c)
	p.advice(c, transports)
}

// transportNames are the transports, the most usual first, as the log's header calls them: "IPC, TCP".
func transportNames(transports map[string]int) string {
	var out []string
	for _, t := range digest.ByCount(transports) {
		switch t {
		case "unix":
			t = "IPC"
		case "tcp":
			t = "TCP"
		}
		out = append(out, name(t))
	}
	return strings.Join(out, ", ")
}

// methods writes a table of calls by method. total is the time of all calls, s.
func (p *page) methods(c *digest.Calls, total float64) {
	p.blank()
	p.line(p.in("STATISTICS BY METHOD", "按方法统计 (STATISTICS BY METHOD)"))
	var rows [][]string
	for _, m := range c.Methods() {
		n := float64(m.Took.Count())
		rows = append(rows, []string{
			name(m.Name), strconv.FormatInt(m.Took.Count(), 10), human.Fixed(m.Took.Mean()*1e3, 3), human.Fixed(m.Took.Sum()*1e3, 2),
			human.Fixed(m.Sent.Sum()/n/kibi, 2),
			human.Fixed(m.Received.Sum()/n/kibi, 2), human.Fixed(100*m.Took.Sum()/total, 1) + "%",
		})
	}
	p.table(1, []string{"Method", "Calls", "Avg Time(ms)", "Total Time(ms)", "Avg Sent(KiB)", "Avg Recv(KiB)", "% of Total"}, rows)
}

// bottlenecks writes a table of the slowest calls, and one of the calls that moved the most bytes, if any did.
func (p *page) bottlenecks(c *digest.Calls) {
	id := func(v view.Int) string {
		if !v.OK {
			return unknown
		}
		return strconv.FormatInt(v.N, 10)
	}
	ms := func(s float64) string { return human.Fixed(s*1e3, 3) }
	var slowest, largest [][]string
	for _, r := range c.Slowest {
		s := r.Of.Stages
		slowest = append(slowest, []string{
			name(r.Of.Method), id(r.Of.ID), ms(r.Of.Took), ms(s[view.RPCSerialize]), ms(s[view.RPCSend]), ms(s[view.RPCReceive]), ms(s[view.RPCDeserialize]),
		})
	}
	for _, r := range c.Largest {
		largest = append(largest, []string{
			name(r.Of.Method), id(r.Of.ID), human.Fixed(r.Of.Sent/kibi, 2), human.Fixed(r.Of.Received/kibi, 2), human.Fixed((r.Of.Sent+r.Of.Received)/kibi, 2),
			human.Fixed(r.Of.Throughput/(1<<20), 2),
		})
	}
	p.blank()
	p.line(p.in("BOTTLENECK ANALYSIS", "瓶颈分析 (BOTTLENECK ANALYSIS)"))
	p.line(p.sf("Top %d Slowest Calls", "最慢的 %d 次调用 (Slowest Calls)", len(slowest)))
	p.table(1, []string{"Method", "ID", "Total(ms)", "Serialize", "Send", "Recv", "Deserialize"}, slowest)
	if len(largest) > 0 && c.Largest[0].Weight > 0 {
		p.line(p.sf("Top %d Largest Data Transfers", "数据量最大的 %d 次传输 (Largest Data Transfers)", len(largest)))
		p.table(1, []string{"Method", "ID", "Sent(KiB)", "Recv(KiB)", "Total(KiB)", "Throughput(MiB/s)"}, largest)
	}
}

// advice writes the recommendations of the document of TSQP's analyze_zmq_performance.py, by its limits: serialization, or sending and receiving (here with the
// server's time, unlike view.RPCTransport), over 30 % of the time; over 50 calls.
func (p *page) advice(c *digest.Calls, transports map[string]int) {
	total := c.Took.Sum()
	serialize, transport := c.Total(view.RPCSerialize)/total, (c.Total(view.RPCSend)+c.Total(view.RPCReceive))/total
	var out []string
	if serialize > 0.3 {
		out = append(out, p.sf(
			"Serialization takes %s of the time: use shared memory instead of msgpack; use a leaner encoding (protobuf); send fewer bytes (bfloat16).",
			"Serialization占%s的时间 - 建议：使用共享内存替代msgpack序列化；使用更高效的序列化格式(如protobuf)；减少传输的数据量(如使用bfloat16)。", human.Percent(serialize)))
	}
	if transport > 0.3 {
		text := p.sf("Sending and receiving take %s of the time", "网络传输占%s的时间", human.Percent(transport))
		if c.Stages[view.RPCServer].Count() > 0 {
			text += p.sf(", %s of it the server's computation", "，其中 %s 为服务端计算", human.Percent(c.Total(view.RPCServer)/(c.Total(view.RPCSend)+c.Total(view.RPCReceive))))
		} else {
			text += p.in(", which includes the server's queue and its computation", "，其中包含服务端排队与计算")
		}
		switch {
		case transports["tcp"] > 0:
			text += p.in(": use IPC in place of TCP where both share a host; enlarge ZeroMQ's buffers; transfer in batches.", " - 建议：确认使用IPC而非TCP；增大ZeroMQ缓冲区；考虑批量传输。")
		case transports["unix"] > 0 && len(transports) == 1:
			text += p.in(": it is not TCP; look at the server first; then enlarge ZeroMQ's buffers, transfer in batches.", " - 建议：未使用TCP，先查看服务端；再增大ZeroMQ缓冲区，考虑批量传输。")
		default: // not known
			text += p.in(": look at the server first; then enlarge ZeroMQ's buffers, transfer in batches.", " - 建议：先查看服务端；再增大ZeroMQ缓冲区，考虑批量传输。")
		}
		out = append(out, text)
	}
	if n := c.Took.Count(); n > 50 {
		out = append(out, p.sf(
			"Many calls (%s): fuse operators so that fewer are needed; batch several operations into one; cache results that are computed again.",
			"RPC调用次数过多(%s次) - 建议：算子融合，减少RPC调用次数；批量处理多个操作；缓存重复计算的结果。", human.Thousands(n)))
	}
	if len(out) == 0 {
		return
	}
	p.blank()
	p.line(p.in("OPTIMIZATION RECOMMENDATIONS", "优化建议 (OPTIMIZATION RECOMMENDATIONS)"))
	for _, text := range out {
		p.paragraph("  - ", text)
	}
}
