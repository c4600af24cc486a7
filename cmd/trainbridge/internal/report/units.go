package report

import (
	"math"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// units adds claims about NICs and storage units, whose logs have values over time and nothing of steps: a NIC whose log calls its own records abnormal, and a
// unit with half of the bandwidth, or twice the time, of at least two, of NICs three, others.
func (c *conclusion) units() {
	all := c.job.Units()
	for i, u := range all {
		c.abnormal(u)
		var others []float64 // medians
		for n, o := range all {
			if n != i && o.Metric == u.Metric && o.Operation == u.Operation && o.Values.Count() > 0 {
				others = append(others, o.Values.Quantile(0.5))
			}
		}
		nic := u.Metric == spans.MetricNCCLDeviceBandwidth
		least := 2
		if nic {
			least = 3
		}
		if len(others) < least || u.Values.Count() < 3 {
			continue
		}
		switch own, usual := u.Values.Quantile(0.5), stat.MedianInPlace(others); {
		case nic && own <= usual/2:
			c.unit(c.sf("The NIC of %s sends at %s, the %d others at %s (medians)", "%s 的网卡发送速度为 %s，其他 %d 个为 %s（中位数）",
				name(u.Name), human.Rate(own), len(others), human.Rate(usual)), c.in("Check the cable, NIC and switch port.", "检查线缆、网卡与交换机端口。"))
		case !nic && own >= 2*usual:
			c.unit(c.sf("Storage unit %s takes %s for %s, the %d others %s (medians)", "存储单元 %s 的 %[3]s 用 %[2]s，其他 %[4]d 个为 %[5]s（中位数）",
				name(u.Name), human.Seconds(own), name(u.Operation), len(others), human.Seconds(usual)),
				c.in("Look at its host: load, memory, network.", "检查其主机：负载、内存、网络。"))
		}
	}
}

// abnormal adds a claim for a NIC whose log calls 1 % of its records (little) abnormal, or more. All, or few records, are nothing to hold these against.
func (c *conclusion) abnormal(u *digest.Unit) {
	n, bad := float64(u.Abnormal.Count()), u.Abnormal.Sum()
	if n <= enough || bad == 0 || bad == n || bad < little*n {
		return
	}
	what := c.sf("The log of NIC %s calls %s of %s records abnormal", "网卡 %s 的日志将 %[3]s 条记录中的 %[2]s 条标为异常", name(u.Name), human.Thousands(bad), human.Thousands(n))
	if u.Values.Count() > 0 {
		what += c.sf("; it sends at %s (median), at least at %s", "；发送速度中位数为 %s，最低 %s", human.Rate(u.Values.Quantile(0.5)), human.Rate(u.Values.Min()))
	}
	c.unit(what, c.in("Check the cable, NIC and switch port, and other traffic on the network.", "检查线缆、网卡、交换机端口，以及网络上的其他流量。"))
}

// unit adds a claim about a unit.
func (c *conclusion) unit(what, advice string) {
	c.claims = append(c.claims, claim{kind: "unit", what: what, cost: math.NaN(), grade: remark, advice: advice})
}
