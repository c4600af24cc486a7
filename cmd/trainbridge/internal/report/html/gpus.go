package html

import (
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// mostCards is how many GPUs a chart compares.
const mostCards = 256

// gpus compares the cards of a job: boxes of utilization, power, temperature, clock and memory, then a table.
func (c *composer) gpus(j *digest.Job) section {
	s := section{Title: "GPU"}
	cards := j.GPUs()
	for i, of := range []struct {
		title, unit string
		values      func(*digest.GPU) *digest.Values
	}{
		{c.t("Utilization", "利用率"), "1", func(g *digest.GPU) *digest.Values { return &g.Utilization }},
		{c.t("Power", "功率"), "W", func(g *digest.GPU) *digest.Values { return &g.Power }},
		{c.t("Temperature", "温度"), "Cel", func(g *digest.GPU) *digest.Values { return &g.Temperature }},
		{c.t("Clock of the SMs", "SM 时钟"), "Hz", func(g *digest.GPU) *digest.Values { return &g.Clock }},
		{c.t("Memory in use", "显存占用"), "By", func(g *digest.GPU) *digest.Values { return &g.Memory }},
	} {
		b := &boxes{head: head{Kind: "boxes", Title: of.title + c.t(" by card", "（按卡）")}, Unit: of.unit}
		for _, g := range cards[:min(len(cards), mostCards)] {
			if v := of.values(g); v.Count() > 0 {
				b.Items = append(b.Items, boxOf(strings.TrimSpace(g.Host+" "+tables.Card(g)), i%grey, v))
			}
		}
		s.add(b)
	}
	s.add(tableOf(c.t("Cards", "各卡数值"), tables.GPUs(cards[:min(len(cards), mostCards)], c.chinese)))
	return s
}
