package html

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// queue is about TransferQueue: charts of its functions and of the operations of its clients, then tables.
func (c *composer) queue(j *digest.Job) section {
	s := section{Title: "TransferQueue"}
	rows := j.Functions.Rows()
	parts := &bars{
		head: head{Kind: "bars", Title: c.t("Mean time of a call: get, compute, put", "单次调用平均耗时：get、compute、put")}, Unit: "s",
		Parts: []barPart{{"get", 0}, {"compute", 2}, {"put", 1}},
	}
	took := &boxes{head: head{Kind: "boxes", Title: c.t("Time of calls", "调用耗时")}, Unit: "s"}
	wait := &boxes{head: head{Kind: "boxes", Title: c.t("Share of get and put (TQ overhead)", "get 与 put 占比（TQ 开销）")}, Unit: "1"}
	for _, f := range rows {
		sums := f.Sums()
		if sums.Calls == 0 {
			continue
		}
		if sums.Get+sums.Compute+sums.Put > 0 {
			parts.Items = append(parts.Items, bar{f.Name, numbers{sums.Mean(sums.Get), sums.Mean(sums.Compute), sums.Mean(sums.Put)}})
		}
		took.Items = append(took.Items, boxOf(f.Name, 0, &f.Took))
		if f.Overhead.Count() > 0 {
			wait.Items = append(wait.Items, boxOf(f.Name, 1, &f.Overhead))
		}
	}
	s.add(parts)
	s.add(took)
	s.add(wait)
	var sizes, speeds, times []named
	for _, o := range j.Functions.Operations() {
		name := o.Stage.String()
		sizes = append(sizes, named{name, &o.Size})
		speeds = append(speeds, named{name, &o.Throughput})
		times = append(times, named{name, &o.Took})
	}
	s.add(c.distribution(c.t("Time of client operations", "客户端操作耗时"), c.t("time", "耗时"), "s", times))
	s.add(c.distribution(c.t("Size of client operations", "客户端操作数据量"), c.t("size", "数据量"), "By", sizes))
	s.add(c.distribution(c.t("Throughput of client operations", "客户端操作吞吐"), c.t("throughput", "吞吐"), "binary By/s", speeds))
	s.add(tableOf(c.t("Functions", "函数"), tables.Functions(&j.Digest, c.chinese)))
	s.add(tableOf(c.t("Client operations", "客户端操作"), tables.Operations(&j.Digest, c.chinese)))
	return s
}
