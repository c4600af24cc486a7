package report

import (
	"cmp"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/regimes"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// course adds claims about the series of steps of each attempt: a long first step, steps that are slow periodically, steps that grow slower, changes of level.
func (c *conclusion) course() {
	for i, steps := range c.account.Course {
		run := c.account.Judged[i]
		ranks := float64(cmp.Or(c.account.Attempts[i].Ranks, c.size))
		c.warmUp(steps, run, ranks)
		c.periods(steps, run, ranks)
		c.levels(steps, run, ranks)
		c.sinceRestart(i, ranks)
	}
}

// sinceRestart adds a claim where the steps of the i-th attempt take 1.1 times as long as those of the fastest attempt before, or more, for the same work on
// the same ranks: a restart may come to a slower host.
func (c *conclusion) sinceRestart(i int, ranks float64) {
	const least = 20 // records of an attempt to compare
	steps, found := c.account.Course[i], -1
	first, ok := longest(c.account.Judged[i], least)
	if !ok {
		return
	}
	var before, since regimes.Segment
	var l *levels
	for n, earlier := range c.account.Course[:i] {
		s, ok := longest(c.account.Judged[n], least)
		if !ok || first.Level < 1.1*s.Level || earlier[s.From].Ranks != steps[first.From].Ranks || found >= 0 && s.Level >= before.Level {
			continue
		}
		both := levels{c, slices.Concat(earlier, steps), nil, ranks}
		now := regimes.Segment{From: len(earlier) + first.From, To: len(earlier) + first.To, Level: first.Level}
		if work, by, ok := both.work(&s, &now); ok && by != digest.SampleThroughput && math.Abs(work-1) < 0.1 {
			found, before, since, l = n, s, now, &both
		}
	}
	if found < 0 {
		return
	}
	lost, again := 0.0, 0.0
	redone := c.account.Attempts[i].First + c.account.Attempts[i].Redone // the first step that is new
	for k := first.From; k < first.To; k++ {
		more := (first.Level - before.Level) * float64(steps[k].Steps)
		lost += more
		if steps[k].Number < redone {
			again += more
		}
	}
	if !c.worth(lost) {
		return
	}
	text := c.sf("Since the restart at step %s a step takes %s instead of %s", "自第 %s 步处的重启起每步用 %s，此前为 %s", l.begin(since.From), human.Seconds(since.Level),
		human.Seconds(before.Level))
	advice := c.in("See whether other hosts run it, and their GPUs' clocks: or what else the restart changed.", "查看是否换了主机、其 GPU 频率，以及重启改变的其他内容。")
	if part, was, is := l.grown(&before, &since); part != "" {
		text += c.sf(" (%s: %s instead of %s)", "（%s：%s，此前为 %s）", l.part(part), human.Seconds(is), human.Seconds(was))
	}
	text += c.sf(", for the same work: %s more in all, %s", "，而工作量相同：共多用 %s，%s", human.Seconds(lost), c.share(lost))
	seen := l.proofOf(&steps[first.From], steps[first.From].Each())
	cl := c.lose("level", lost, ranks, text, c.in("longer steps since a restart", "重启后步时变长"), advice, seen)
	cl.lost = max(0, lost-again) // the time of steps done again is lost already
}

// longest is the longest segment of an attempt; false: it has fewer records than least.
func longest(run *regimes.Run, least int) (s regimes.Segment, ok bool) {
	for _, of := range run.Segments {
		if of.To-of.From > s.To-s.From {
			s = of
		}
	}
	return s, s.To-s.From >= least
}

// proofOf is the evidence of a step that took so many seconds: "step 12 (3.1 s)" and its record.
func (c *conclusion) proofOf(s *account.Step, took float64) proof {
	what := human.Seconds(took)
	if s.Number >= 0 {
		what = c.sf("step %d (%s)", "第 %d 步（%s）", s.Number, what)
	}
	return proof{what, c.job.Placed(s.Place())}
}

// warmUp adds a claim for a first step that takes much longer than usual: it compiles, allocates, connects.
func (c *conclusion) warmUp(steps []account.Step, run *regimes.Run, ranks float64) {
	if len(run.Steps) == 0 || run.Steps[0].State != regimes.First {
		return
	}
	took := steps[0].Each() // of one step: a record may cover several
	more := (took - run.Steps[0].Usual) * float64(steps[0].Steps)
	if !c.worth(more) {
		return
	}
	what := c.sf("The first step took %s, %s more than usual: it compiles, allocates and connects", "首步用了 %s，比正常多 %s：编译、分配与建立连接",
		human.Seconds(took), human.Seconds(more))
	if n := steps[0].Steps; n > 1 {
		what = c.sf("The first %s steps, in one record, took %s, %s more than usual: the first compiles, allocates and connects",
			"同一记录中的前 %s 步用了 %s，比正常多 %s：首步编译、分配与建立连接", human.Thousands(int64(n)), human.Seconds(took*float64(n)), human.Seconds(more))
	}
	c.lose("warm_up", more, ranks, what, c.in("the first step", "首步"),
		c.in("Cache what is compiled, and warm up the data loader before the first step.", "缓存编译结果，并在首步之前预热数据加载。"), c.proofOf(&steps[0], took))
}

// periods adds a claim for steps that are slow at a regular interval, such as each 100th.
func (c *conclusion) periods(steps []account.Step, run *regimes.Run, ranks float64) {
	for period, p := range run.Periods {
		if !c.worth(p.Excess) {
			continue
		}
		// The usual time of a slow step, less what it takes too long on average, is the usual time of the others.
		each := c.sf("Each %s step", "每 %s 步有一步", ordinal(p.Every, c.chinese))
		what := c.sf("%s takes %s instead of %s (%s of %s do): %s more in all, %s", "%s用了 %s 而非 %s（%[4]s / %[5]s）：共多用 %[6]s，%[7]s", each, human.Seconds(p.Usual),
			human.Seconds(p.Usual-p.Excess/float64(max(1, p.Slow))), human.Thousands(p.Slow), human.Thousands(p.Of), human.Seconds(p.Excess), c.share(p.Excess))
		advice := c.in("See what the trainer does at this interval: the update after accumulated gradients, saving, evaluation, logging, garbage collection, "+
			"the end of an epoch.",
			"查看训练程序在此间隔做什么：梯度累积后的参数更新、保存、评估、写日志、垃圾回收、一个 epoch 结束。")
		var seen []proof // the first steps of the period
		var times []span
		for i := range steps {
			if of := &run.Steps[i]; of.State == regimes.Periodic && of.Period == period {
				times = append(times, span{steps[i].Start, steps[i].End, steps[i].Each() - of.Usual})
				if len(seen) < evidences {
					seen = append(seen, c.proofOf(&steps[i], steps[i].Each()))
				}
			}
		}
		held, during, line := c.disturbed(times)
		if held != nil {
			what, advice, seen = what+","+during, c.of(held.advice), append(seen, line...)
		}
		inWindows := c.slowIn(steps, run, period)
		if held == nil && p.Accumulates() && inWindows == 0 {
			what += c.sf(", as the update after gradients accumulated over %d steps does", "，与累积 %d 步梯度后的参数更新相符", p.Every)
			advice = c.in("If gradients are not accumulated, see what else the trainer does at this interval.", "若未使用梯度累积，查看训练程序在此间隔还做什么。")
			c.claims = append(c.claims, claim{kind: "period", cost: p.Excess, grade: remark, what: what, advice: advice, proof: seen})
			continue
		}
		cl := c.lose("period", p.Excess, ranks, what, c.sf("each %s step", "每 %s 步一次的慢步", ordinal(p.Every, c.chinese)),
			advice, seen...)
		cl.lost = max(0, p.Excess-inWindows)
	}
}

// slowIn is the time, in s, that periodic steps took above usual as slow windows: in the sum of all losses that time counts there.
func (c *conclusion) slowIn(steps []account.Step, run *regimes.Run, period int) (sum float64) {
	if !c.slow() || c.window.Of != spans.WindowStep {
		return 0
	}
	excess := make(map[int64]float64, len(c.window.Slow))
	for i := range c.window.Slow {
		if of := &c.window.Slow[i].Of; of.Iteration.OK && of.Usual > 0 {
			excess[of.Iteration.N] = of.Took - of.Usual
		}
	}
	for i := range steps {
		if of := &run.Steps[i]; of.State == regimes.Periodic && of.Period == period {
			sum += excess[steps[i].Number]
		}
	}
	return sum
}

// ordinal is 1st, 2nd, 3rd, 4th, …; Chinese has the number alone.
func ordinal(n int64, chinese bool) string {
	if chinese {
		return human.Thousands(n)
	}
	suffix := "th"
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		suffix = "st"
	case n%10 == 2:
		suffix = "nd"
	case n%10 == 3:
		suffix = "rd"
	}
	return human.Thousands(n) + suffix
}
