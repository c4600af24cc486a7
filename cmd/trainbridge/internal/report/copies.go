package report

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
)

// copies tells of data that does not count, because it would count twice or is of another run: lines that repeat another rank's steps, the time between runs
// that lie weeks apart in the same logs, and files that were not read because another has all of their steps.
func (c *conclusion) copies() (out []string) {
	of := files(c.job, c.read)
	own := make(map[string]bool) // the files of the job, by path
	for _, path := range of {
		own[path] = true
		if f := c.read.File(path); f != nil && f.CopiedLines() > 0 {
			n := f.CopiedLines()
			out = append(out, c.sf("Slow ranks: %s of %s repeat another rank's steps, which count once.",
				"哪个 rank 偏慢：%[2]s 中有 %[1]s重复了其他 rank 的步骤，只计一次。",
				c.in(human.Plural(n, "line"), human.Thousands(n)+" 行"), reading.Clean(f.Name)))
		}
	}
	if c.accounted && len(c.account.Apart) > 0 {
		longest := slices.MaxFunc(c.account.Apart, func(a, b account.Gap) int { return cmp.Compare(a.Seconds(), b.Seconds()) })
		out = append(out, c.sf("The logs hold %s, weeks apart; the time between (%s at most) does not count.",
			"日志包含相隔数周的%s，其间的时间（最长 %s）不计入。", c.in(human.Plural(len(c.account.Apart)+1, "run"), human.Thousands(len(c.account.Apart)+1)+" 次运行"),
			human.Seconds(longest.Seconds())))
	}
	// Of Hugging Face's checkpoints each has the log from the beginning, under the same name: they are counted, and not named.
	earlier := make(map[string]int) // by the log that is read instead
	for _, copied := range c.read.Copies {
		switch {
		case !own[copied.Of]: // the copy of a log of another job
		case filepath.Base(copied.Path) == filepath.Base(copied.Of):
			earlier[copied.Of]++
		default:
			out = append(out, c.sf("%s not read: its steps are those of %s.", "未读取 %s：其步骤与 %s 相同。",
				reading.Clean(copied.Path), reading.Clean(c.read.Name(copied.Of))))
		}
	}
	for _, kept := range slices.Sorted(maps.Keys(earlier)) {
		n := earlier[kept]
		out = append(out, c.sf("%s of earlier checkpoints not read: %s has all of their steps.", "未读取 %s：%s 已包含其全部步骤。",
			c.in(human.Plural(n, filepath.Base(kept)+" file"), human.Thousands(n)+" 个较早检查点的 "+filepath.Base(kept)), reading.Clean(c.read.Name(kept))))
	}
	return out
}
