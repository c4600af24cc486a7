package html

import "github.com/trainbridge/trainbridge/internal/traces/digest"

// mostCards is how many GPUs a chart compares.
const mostCards = 256

// gpus are the samples of the cards, side by side.
func (c *composer) gpus(j *digest.Job) section {
	s := section{Title: "GPU"}
	cards := j.GPUs()
	ranks := map[int64]bool{}
	for _, g := range cards {
		ranks[g.Rank.Or(-1)] = true
	}
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
				b.Items = append(b.Items, boxOf(card(g, len(ranks) > 1), i%grey, v))
			}
		}
		s.add(b)
	}
	return s
}

// card names a GPU.
func card(g *digest.GPU, rank bool) string {
	name := g.Name
	if name == "" {
		name = "GPU " + g.ID
	}
	if rank && g.Rank.OK {
		name = "rank" + number1(g.Rank) + " " + name
	}
	if g.Host != "" {
		name = g.Host + " " + name
	}
	return name
}
