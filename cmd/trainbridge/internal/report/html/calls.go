package html

import (
	"cmp"
	"fmt"
	"math"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
)

// mostNames is how many methods, operations or communicators a chart compares; a table has ten times as many rows.
const mostNames = 20

// calls is about RPCs: boxes of the stages and methods of calls, passes, histograms, and a table of methods.
func (c *composer) calls(j *digest.Job) section {
	s := section{Title: "RPC"}
	p := &j.Passes
	stages := &boxes{head: head{Kind: "boxes", Title: c.t("Stages of calls", "调用各阶段耗时")}, Unit: "s"}
	if p.Calls.Took.Count() > 0 {
		stages.Items = append(stages.Items, boxOf(c.t("whole call", "整个调用"), grey, &p.Calls.Took))
	}
	for i := range p.Calls.Stages {
		stage := view.RPCStage(i)
		if v := &p.Calls.Stages[i]; v.Count() > 0 && stage != view.RPCTransport { // a sum of other stages
			stages.Items = append(stages.Items, boxOf(cmp.Or(stage.String(), "offline"), i%grey, v))
		}
	}
	s.add(stages)
	methods := &boxes{head: head{Kind: "boxes", Title: c.t("Calls by method", "按方法的调用耗时")}, Unit: "s"}
	for i, m := range p.Calls.Methods() {
		if m.Took.Count() > 0 && i < mostNames {
			methods.Items = append(methods.Items, boxOf(m.Name, 0, &m.Took))
		}
	}
	s.add(methods)
	s.add(c.passes(p))
	s.add(c.distribution(c.t("Time of calls", "调用耗时分布"), c.t("time", "耗时"), "s", []named{{c.t("calls", "调用"), &p.Calls.Took}}))
	s.add(c.distribution(c.t("Size of messages", "消息大小分布"), c.t("size", "大小"), "By",
		[]named{{c.t("sent", "发送"), &p.Calls.Sent}, {c.t("received", "接收"), &p.Calls.Received}}))
	all := p.Calls.Methods()
	s.add(tableOf(c.t("Methods", "方法"), tables.Methods(all[:min(len(all), 10*mostNames)], c.chinese)))
	return s
}

// passes is the time of the newest passes, stacked: serialization, transport (without the server), server, and the rest of the duration. x is the ordinal
// of the pass among all passes of the job. Of fewer than two passes the chart is empty.
func (c *composer) passes(p *digest.Passes) *series {
	pass := c.t("pass", "前向")
	out := &series{
		head:   head{Kind: "series", Title: c.t("Passes: time of their calls", "各次前向的调用耗时"), Wide: true},
		XLabel: pass, Axes: []axis{{Unit: "s", Zero: true}}, Stacked: true, Sync: c.job + pass,
	}
	rows := p.Newest()
	if len(rows) < 2 {
		return out
	}
	names := []string{c.t("serialize", "序列化"), c.t("transport", "传输"), c.t("server", "服务端"), c.t("rest", "其余")}
	colours := []int{0, 1, 2, grey}
	values := make([]numbers, len(names))
	for i, r := range rows {
		out.Xs = append(out.Xs, float64(p.Count-len(rows)+i+1))
		rest := r.Duration
		for k, share := range []float64{r.Serialize, r.Transport, r.Server} {
			values[k] = append(values[k], share*r.Duration)
			if !math.IsNaN(share) {
				rest -= share * r.Duration
			}
		}
		values[3] = append(values[3], max(0, rest))
	}
	for k, name := range names {
		if anyKnown(values[k]) {
			out.Series = append(out.Series, line{Name: name, Colour: colours[k], Draw: "line", Values: values[k]})
		}
	}
	if p.Count > len(rows) {
		out.Note = fmt.Sprintf(c.t("The newest %s of %s passes.", "%[2]s 次前向中最近的 %[1]s 次。"), human.Thousands(len(rows)), human.Thousands(p.Count))
	}
	return out
}
