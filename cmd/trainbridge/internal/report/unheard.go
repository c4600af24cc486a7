package report

import (
	"github.com/trainbridge/trainbridge/internal/human"
)

const mostUnheard = 3 // communicators; of more their number

// unheard are the gaps that ranks of communicators leave whose logs are missing or end early: whether the others waited for them, or for a slow network, is
// unknown. A communicator has a text about missing logs, or about logs that end early, or both. Beyond mostUnheard communicators, a last text has the number of
// the rest.
func (c *conclusion) unheard() (out []string) {
	all := c.job.Collectives.Unheard()
	for i := range all[:min(len(all), mostUnheard)] {
		u := &all[i]
		of := name(u.Name) // the communicator
		if n := u.Size - u.Heard; n > 0 {
			which := c.in("the others", "其余 rank") // without the numbers of the silent ranks
			if len(u.None) > 0 {
				which = human.Ranks(u.None)
			}
			out = append(out, c.sf(
				"Late ranks or a slow network in %[3]s: no log of %[4]s (%[1]s of %[2]s ranks have one).",
				"通信组 %[3]s 是 rank 迟到还是网络变慢：没有 %[4]s 的日志（%[2]s 个 rank 中有 %[1]s 个有日志）。",
				human.Thousands(u.Heard), human.Thousands(u.Size), of, which))
		}
		if len(u.Early) > 0 {
			ranks, missed := u.Ended()
			out = append(out, c.sf(
				"Late ranks or a slow network at the end of %[2]s: the logs of %[1]s end %[3]s early.",
				"通信组 %[2]s 末尾是 rank 迟到还是网络变慢：%[1]s 的日志早结束 %[3]s。",
				human.Ranks(ranks), of, c.in(human.Plural(missed, "collective"), human.Thousands(missed)+" 次集合通信")))
		}
	}
	if more := len(all) - mostUnheard; more > 0 {
		out = append(out, c.sf("The same of %s more.", "另有 %s也是如此。",
			c.in(human.Plural(more, "communicator"), human.Thousands(more)+" 个通信组")))
	}
	return out
}
