package report

import (
	"github.com/trainbridge/trainbridge/internal/human"
)

const mostUnheard = 3 // communicators that are told one by one

// unheard says which ranks have no log, or one that ends early: whether the others waited for them is not known.
func (c *conclusion) unheard() (out []string) {
	all := c.job.Collectives.Unheard()
	for i := range all[:min(len(all), mostUnheard)] {
		u := &all[i]
		of := name(u.Name)
		if n := u.Size - u.Heard; n > 0 {
			which := c.in("the others", "其余 rank")
			if len(u.None) > 0 {
				which = human.Ranks(u.None)
			}
			out = append(out, c.sf(
				"%s of the %s ranks of communicator %s have a log: whether %s came late to its collectives cannot be told from a slow network.",
				"通信组 %[3]s 的 %[2]s 个 rank 中有 %[1]s 个有日志：无法区分 %[4]s 迟到与网络变慢。",
				human.Thousands(u.Heard), human.Thousands(u.Size), of, which))
		}
		if len(u.Early) > 0 {
			ranks, missed := u.Ended()
			out = append(out, c.sf(
				"The logs of %s of communicator %s end %s before those of the others: from there on their lateness cannot be told from a slow network.",
				"通信组 %[2]s 中 %[1]s 的日志比其他 rank 早结束 %[3]s：此后无法区分其迟到与网络变慢。",
				human.Ranks(ranks), of, c.in(human.Plural(missed, "collective"), human.Thousands(missed)+" 次集合通信")))
		}
	}
	if more := len(all) - mostUnheard; more > 0 {
		out = append(out, c.sf("%s more of which not all ranks have a whole log.", "另有 %s未包含所有 rank 的完整日志。",
			c.in(human.Plural(more, "communicator"), human.Thousands(more)+" 个通信组")))
	}
	return out
}
