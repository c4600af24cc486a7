package html

import (
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// queue is TransferQueue: its functions, and what its clients moved.
func (c *composer) queue(j *digest.Job) section {
	s := section{Title: "TransferQueue"}
	rows := j.Functions.Rows()
	parts := &bars{
		head: head{Kind: "bars", Title: c.t("Mean time of a call: get, compute, put", "单次调用平均耗时：get、compute、put")}, Unit: "s",
		Parts: []barPart{{"get", 0}, {"compute", 2}, {"put", 1}},
	}
	took := &boxes{head: head{Kind: "boxes", Title: c.t("Time of calls", "调用耗时")}, Unit: "s"}
	wait := &boxes{head: head{Kind: "boxes", Title: c.t("Share of get and put (TQ overhead)", "get 与 put 占比（TQ 开销）")}, Unit: "1"}
	figures := &table{
		head: head{Kind: "table", Title: c.t("Functions", "函数")},
		Head: []string{
			c.t("function", "函数"), c.t("calls", "调用次数"), c.t("mean", "平均"), "get", "compute", "put", c.t("TQ overhead", "TQ 开销"), "P95",
			c.t("most", "最大"), c.t("incomplete", "未完成"), c.t("without trace id", "无 trace id"),
		},
		Text: []bool{true, false, false, false, false, false, false, false, false, false, false},
	}
	for _, f := range rows {
		sums := f.Sums()
		part := func(total float64) string {
			return human.Seconds(sums.Mean(total)) + " (" + human.Percent(sums.Ratio(total)) + ")"
		}
		figures.Cells = append(figures.Cells, []string{
			f.Name, human.Thousands(sums.Calls), human.Seconds(sums.Mean(sums.Total)), part(sums.Get), part(sums.Compute), part(sums.Put),
			human.Percent(sums.Ratio(sums.Get + sums.Put)), human.Seconds(f.Took.Quantile(0.95)), human.Seconds(f.Took.Max()), human.Thousands(f.Incomplete),
			human.Thousands(f.WithoutID),
		})
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
	var size, speed, took2 []named
	for _, o := range j.Functions.Operations() {
		name := o.Stage.String()
		size, speed, took2 = append(size, named{name, &o.Size}), append(speed, named{name, &o.Throughput}), append(took2, named{name, &o.Took})
	}
	s.add(c.distribution(c.t("Time of client operations", "客户端操作耗时"), c.t("time", "耗时"), "s", took2))
	s.add(c.distribution(c.t("Size of client operations", "客户端操作数据量"), c.t("size", "数据量"), "By", size))
	s.add(c.distribution(c.t("Throughput of client operations", "客户端操作吞吐"), c.t("throughput", "吞吐"), "By/s", speed))
	s.add(figures)
	return s
}
