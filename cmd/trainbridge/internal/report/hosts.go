package report

import (
	"math"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// slowHosts adds a claim for hosts whose steps load data, or compute, longer than those of the others, by the trainer's timers in each host's log: by 20 % of
// that part, and by 10 % of a step. Most of at least four hosts must be alike. A host may have more to do, such as another stage of a pipeline: no loss.
func (c *conclusion) slowHosts() {
	const leastHosts, leastRecords = 4, 20
	for _, l := range c.job.Steps.Rows() {
		var all []*digest.HostTime
		for _, h := range l.Hosts() {
			if h.Records >= leastRecords {
				all = append(all, h)
			}
		}
		if len(all) < leastHosts {
			continue
		}
		c.slowHost(all, spans.PartDataLoading, func(h *digest.HostTime) float64 { return h.Loading })
		c.slowHost(all, spans.PartCompute, func(h *digest.HostTime) float64 { return h.Computing })
	}
}

var throttled = both{
	"Look at the cooling, the power and the throttling of that GPU (nvidia-smi -q -d PERFORMANCE,TEMPERATURE), and drain its host.",
	"检查该 GPU 的散热、供电与降频原因（nvidia-smi -q -d PERFORMANCE,TEMPERATURE），并下线所在主机。",
}

// slowClock is the GPU that has the lowest clock in most of the reports with a low one; nil: none. A rank that computes nothing at the moment has a low clock
// now and then, in turn with others.
func (c *conclusion) slowClock() *digest.SlowClock {
	all := c.job.Steps.Clocks.Slow()
	low := 0
	for _, g := range all {
		low += g.Reports
	}
	if len(all) == 0 || all[0].Reports < 3 || 10*all[0].Reports < c.job.Steps.Clocks.Reports || 4*all[0].Reports < 3*low {
		return nil
	}
	return all[0]
}

// clocks adds a claim for a GPU with a low clock in report after report of Megatron's --log-straggler.
func (c *conclusion) clocks() {
	g := c.slowClock()
	if g == nil {
		return
	}
	what := c.sf("The GPU of %s had the lowest clock in %d of %d reports: down to %s MHz, where another had %s MHz",
		"%s 的 GPU 在 %[3]d 次报告中的 %[2]d 次频率最低：低至 %[4]s MHz，而其他为 %[5]s MHz",
		c.who(view.Int{N: g.Rank, OK: true}, ""), g.Reports, c.job.Steps.Clocks.Reports, human.Thousands(math.Round(g.Least)), human.Thousands(math.Round(g.Others)))
	if g.Hottest > 0 {
		what += c.sf("; it was the hottest, at up to %s °C", "；同时温度最高，达 %s °C", human.Digits(g.Hottest))
	}
	c.claims = append(c.claims, claim{kind: "slow_clock", what: what, cost: math.NaN(), grade: remark, proof: []proof{{"", g.At}}, advice: c.of(throttled)})
}

// slowHost is slowHosts for a part. Hosts that load next to nothing, as those of a pipeline's later stages, are nothing to compare with.
func (c *conclusion) slowHost(all []*digest.HostTime, part string, of func(*digest.HostTime) float64) {
	mean := func(h *digest.HostTime) float64 { return of(h) / float64(h.Records) }
	var parts, steps []float64
	for _, h := range all {
		parts, steps = append(parts, mean(h)), append(steps, h.Took/float64(h.Records))
	}
	usual, step := stat.Among(parts), stat.Among(steps)
	if usual < 0.002*step {
		return
	}
	var who []string
	worst := 0.0
	for _, h := range all {
		if more := mean(h) - usual; more > 0.2*usual && more > 0.1*step {
			who, worst = append(who, name(h.Host)), max(worst, mean(h))
		}
	}
	if len(who) == 0 || 2*len(who) >= len(all) {
		return
	}
	named := strings.Join(who[:min(len(who), mostRanks)], ", ")
	if n := len(who) - mostRanks; n > 0 {
		named += c.sf(" and %d more", " 等另外 %d 个", n)
	}
	did := c.in("loading data", "加载数据")
	if part == spans.PartCompute {
		did = c.in("computing", "计算")
	}
	c.claims = append(c.claims, claim{
		kind: "slow_host", cost: (worst - usual) * float64(all[0].Records), grade: remark, advice: c.of(adviceOf(part)),
		what: c.sf("Of %d hosts %s took up to %s a step for %s, by the logs' timers; usual is %s: slower, or with more to do",
			"%d 台主机中，%s 每步用于%[4]s最多 %[3]s（按日志计时），通常为 %[5]s：较慢，或工作更多",
			len(all), named, human.Seconds(worst), did, human.Seconds(usual)),
	})
}
