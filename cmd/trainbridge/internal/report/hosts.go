package report

import (
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
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
