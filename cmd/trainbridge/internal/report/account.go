package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/bridge/events"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// accounting writes the tables of where the wall-clock time of the run went: states, goodput, attempts.
func (c *conclusion) accounting() {
	if !c.accounted {
		return
	}
	c.head(c.in("Where the wall-clock time went", "总时间去向"))
	c.page.print(tables.Account(&c.account, c.chinese))
	c.page.print(tables.Goodput(&c.account, c.chinese))
	c.page.print(tables.Attempts(&c.account, c.chinese))
}

// whole is the time against which losses are held, s: the wall clock of the account, else the time of all windows, else from the first span to the last.
func (c *conclusion) whole() float64 {
	switch {
	case c.accounted:
		return c.account.Wall
	case c.window != nil:
		return c.window.Took.Sum()
	}
	return float64(c.job.Last-c.job.First) / 1e9
}

// gpuSeconds are seconds of all ranks, as " (1,624 GPU-seconds)"; "" where the number of ranks is not known, or is 1.
func (c *conclusion) gpuSeconds(devices float64) string {
	if c.size <= 1 {
		return ""
	}
	return c.sf(" (%s GPU-seconds)", "（%s GPU·秒）", human.Digits(devices))
}

// ranksIn is how many ranks the job had in a state, on average; 0: not known.
func (c *conclusion) ranksIn(of account.State) float64 {
	if c.accounted && c.account.Devices[of] > 0 {
		return c.account.Devices[of] / c.account.Seconds[of]
	}
	return float64(c.size)
}

// lose adds a costly claim, valid until the next: so many seconds were lost, of so many ranks on average. short is the loss in the headline.
func (c *conclusion) lose(kind string, seconds, ranks float64, what, short, advice string, proof ...proof) *claim {
	c.claims = append(c.claims, claim{
		kind: kind, what: what, short: short, cost: seconds, lost: seconds, devices: seconds * ranks, grade: costly, advice: advice, proof: proof,
	})
	return &c.claims[len(c.claims)-1]
}

// worth says whether a loss of so many seconds is worth a claim: more than little of the whole.
func (c *conclusion) worth(seconds float64) bool { return seconds > little*c.whole() && seconds > 0 }

// at is the evidence of a gap or a pause: the record of the last step before.
func (c *conclusion) at(number int64, took float64, at account.Place) proof {
	what := human.Seconds(took)
	if number >= 0 {
		what = c.sf("after step %d (%s)", "第 %d 步之后（%s）", number, what)
	}
	return proof{what, c.job.Placed(at)}
}

// share is seconds as a share of the whole: "33% of 19 min 58 s".
func (c *conclusion) share(seconds float64) string {
	return c.sf("%s of %s", "占 %[2]s 的 %[1]s", human.Percent(seconds/c.whole()), human.Seconds(c.whole()))
}

// states adds claims for the losses in the account: checkpoints, start-up, steps done again, down time, stalls, and unexplained time between steps.
// A loss must be worth a claim; only steps done again are told in any case.
func (c *conclusion) states() {
	if !c.accounted {
		return
	}
	a := &c.account
	c.checkpoints()
	c.longEvaluations()
	if lost := a.Seconds[account.StartUp]; c.worth(lost) {
		c.lose("start_up", lost, c.ranksIn(account.StartUp), c.sf("Start-up took %s: %s", "首步之前的启动用了 %s，%s", human.Seconds(lost), c.share(lost)),
			c.in("start-up", "启动"), c.in("Look at what runs before the first step: imports, loading the checkpoint, building data sets, compiling.",
				"查看首步之前的工作：导入、加载检查点、构建数据集、编译。"))
	}
	if lost := a.Seconds[account.Redone]; lost > 0 && a.Redone > 0 { // told even if short
		var ranges []string
		for _, at := range a.Attempts {
			if at.Redone > 0 && at.First >= 0 {
				ranges = append(ranges, c.sf("%d to %d", "第 %d 至 %d 步", at.First, at.First+at.Redone-1))
			}
		}
		c.lose("redone", lost, c.ranksIn(account.Redone), c.sf("%s done again after a restart (%s): %s, %s", "重启后重做了 %s（%s）：%s，%s",
			c.in(human.Plural(a.Redone, "step")+c.wereOf(a.Redone), human.Thousands(a.Redone)+" 步"), strings.Join(ranges, ", "), human.Seconds(lost), c.share(lost)),
			c.in("steps done again after a restart", "重启后重做"), c.in("Save more often, or asynchronously.", "更频繁地保存，或异步保存。"))
	}
	c.gap(account.Down, "down", c.in("Save often, and restart without a human: a job that waits to be restarted loses all of its GPUs.",
		"经常保存并自动重启：等待重启时所有 GPU 都在空转。"))
	c.gap(account.Stalled, "stalled", c.in("Look at what the job and its hosts did then (dmesg, the scheduler, the storage).",
		"查看当时任务与主机的情况（dmesg、调度器、存储）。"))
	c.gap(account.Unexplained, "unexplained", c.in("Look for saving, evaluation, logging or garbage collection between these steps.",
		"查看这些步之间是否有保存、评估、写日志或垃圾回收。"))
}

// wereOf is the English verb for a number of things.
func (c *conclusion) wereOf(n int64) string {
	if n == 1 {
		return " was"
	}
	return " were"
}

// gap adds a claim for the time in a state without steps (Down, Stalled, Unexplained), if worth a claim, with the longest gaps as evidence. The sentence names
// the step before the longest gap, if the log numbers steps.
func (c *conclusion) gap(of account.State, kind, advice string) {
	lost := c.account.Seconds[of]
	if !c.worth(lost) {
		return
	}
	var gaps []account.Gap
	for _, g := range c.account.Gaps {
		if g.State == of {
			gaps = append(gaps, g)
		}
	}
	slices.SortStableFunc(gaps, func(a, b account.Gap) int { return cmp.Compare(b.Seconds(), a.Seconds()) })
	where := ""
	if len(gaps) > 0 && gaps[0].After >= 0 {
		where = c.sf(", the longest %s after step %d", "，最长 %s，在第 %d 步之后", human.Seconds(gaps[0].Seconds()), gaps[0].After)
		if len(gaps) == 1 {
			where = c.sf(", after step %d", "，在第 %d 步之后", gaps[0].After)
		}
	}
	var text, short string
	switch of {
	case account.Down:
		text, short = c.sf("Down for %s between %s", "任务中断 %s，共 %s", human.Seconds(lost), c.in(human.Plural(len(c.account.Attempts), "attempt"),
			human.Thousands(len(c.account.Attempts))+" 次尝试")), c.in("down between attempts", "中断")
	case account.Stalled:
		text, short = c.sf("No step for %s, for reasons unknown", "有 %s 没有任何训练步，原因未知", human.Seconds(lost)), c.in("unexplained stalls", "原因未知的停滞")
	default:
		text, short = c.sf("%s between steps, for reasons unknown", "步间共 %s，原因未知", human.Seconds(lost)),
			c.in("unexplained time between steps", "步间，原因未知")
	}
	var seen []proof
	for _, g := range gaps[:min(len(gaps), evidences)] {
		seen = append(seen, c.at(g.After, g.Seconds(), g.At))
	}
	if held, during, line := c.disturbedGaps(gaps); held != nil && of != account.Down {
		text, short = c.sf("No step for %s%s", "有 %s 没有任何训练步，%s", human.Seconds(lost), during), c.of(held.while)
		advice, seen = c.of(held.advice), append(seen, line...)
	}
	why := ""
	if of == account.Down {
		var line []proof
		why, line = c.whyDown(gaps)
		seen = append(line, seen...)
	}
	c.lose(kind, lost, c.ranksIn(of), text+where+": "+c.share(lost)+why, short, advice, seen...)
}

// whyDown is what ended most of the attempts before some gaps, by the lines between the last step before a gap and the first step after, with the evidence:
// ". Before 3 of 4 times: Rank 5 raised …"; "": the logs do not say.
func (c *conclusion) whyDown(gaps []account.Gap) (text string, seen []proof) {
	type reason struct {
		n   int
		end postmortem.End
	}
	found := map[string]*reason{}
	var most *reason
	offsets := c.offsets()
	for i := range gaps {
		ends := digest.Ends{Events: c.eventsIn(&gaps[i], offsets)}
		end := postmortem.Of(&ends, nil, c.size, gaps[i].After, 0)
		if !end.Failed() {
			continue
		}
		k := fmt.Sprint(end.Kind, end.Ranks, end.Hosts)
		if found[k] == nil {
			found[k] = &reason{end: end}
		}
		if found[k].n++; most == nil || found[k].n > most.n {
			most = found[k]
		}
	}
	if most == nil {
		return "", nil
	}
	for i := range most.end.Evidence[:min(1, len(most.end.Evidence))] {
		seen = append(seen, proof{name(most.end.Evidence[i].Text), most.end.Evidence[i].At})
	}
	sentence := strings.TrimRight(c.in(most.end.Sentence, chineseEnd(&most.end)), ".。")
	if len(gaps) == 1 {
		return c.sf(". Before: %s", "。此前：%s", sentence), seen
	}
	return c.sf(". Before %d of %d times: %s", "。%[2]d 次中有 %[1]d 次之前：%[3]s", most.n, len(gaps), sentence), seen
}

// offsets returns the offsets of the steps in each file, in ascending order.
func (c *conclusion) offsets() map[string][]int64 {
	all := make(map[string][]int64)
	for _, steps := range c.account.Course {
		for i := range steps {
			at := c.job.Placed(steps[i].Place())
			all[at.File] = append(all[at.File], at.Offset)
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all
}

// eventsIn are the events of a gap between attempts: in the log of the step before, the lines up to the next step (offsets); in other logs by their times.
func (c *conclusion) eventsIn(g *account.Gap, offsets map[string][]int64) (out []digest.Event) {
	from, until := c.job.Placed(g.At), int64(math.MaxInt64)
	list := offsets[from.File]
	if i, _ := slices.BinarySearch(list, from.Offset+1); i < len(list) {
		until = list[i]
	}
	for i := range c.job.Events {
		e := &c.job.Events[i]
		if events.Class(e.Class) == events.ClassBegan { // the attempt after
			continue
		}
		same := from.Offset >= 0 && e.File == from.File
		if same && e.Offset > from.Offset && e.Offset < until || !same && e.Time >= g.Start && e.Time <= g.End {
			out = append(out, *e)
		}
	}
	return out
}

// checkpoints adds a claim for the time of checkpoints, if worth a claim. Seconds that already count as the cause of slow steps are taken off. Of three
// checkpoints or more, the longest is named if longer than 1.5 times the median.
func (c *conclusion) checkpoints() {
	all := c.account.Of(account.Checkpoint)
	lost := c.account.Seconds[account.Checkpoint] - c.blamedOn(spans.PartCheckpoint)
	if len(all) == 0 || !c.worth(lost) {
		return
	}
	usual, longest := usual(all), all[0] // account.Of has the longest first
	text := c.sf("%s took %s", "%s共用 %s", c.in(human.Plural(len(all), "checkpoint"), human.Thousands(len(all))+" 次检查点"), human.Seconds(lost))
	if len(all) > 1 {
		text += c.sf(" (%s each)", "（每次 %s）", human.Seconds(usual))
	}
	if len(all) > 2 && longest.Seconds > 1.5*usual {
		text += c.sf(", the longest %s", "，最长 %s", human.Seconds(longest.Seconds))
		if longest.After >= 0 {
			text += c.sf(" after step %d", "（第 %d 步之后）", longest.After)
		}
	}
	var seen []proof
	for _, p := range all[:min(len(all), evidences)] {
		seen = append(seen, c.at(p.After, p.Seconds, p.At))
	}
	c.lose("checkpoint", lost, c.ranksIn(account.Checkpoint), text+": "+c.share(lost), c.in("checkpoints", "检查点"), c.of(advices[spans.PartCheckpoint]), seen...)
}

// usual is the median of the times of checkpoints or evaluations, s.
func usual(all []account.Pause) float64 {
	var times []float64
	for _, p := range all {
		times = append(times, p.Seconds)
	}
	return stat.MedianInPlace(times)
}

// longEvaluations adds a remark about evaluations that took more than 1.5 times the median of four or more. No loss: a larger set takes longer, as at the end.
func (c *conclusion) longEvaluations() {
	all := c.account.Of(account.Evaluation) // the longest first
	if len(all) < 4 {
		return
	}
	usual, more := usual(all), 0.0
	var seen []proof
	long := 0
	for _, p := range all {
		if p.Seconds <= 1.5*usual {
			break
		}
		more += p.Seconds - usual
		if long++; long <= evidences {
			seen = append(seen, c.at(p.After, p.Seconds, p.At))
		}
	}
	if !c.worth(more) {
		return
	}
	text := c.sf("%s of %s took longer than usual (%s): %s more in all, %s", "%[2]s中有 %[1]s 次比通常（%[3]s）长：共多用 %[4]s，%[5]s", human.Thousands(long),
		c.in(human.Plural(len(all), "evaluation"), human.Thousands(len(all))+" 次评估"), human.Seconds(usual), human.Seconds(more), c.share(more))
	c.claims = append(c.claims, claim{
		kind: "evaluation", cost: more, grade: remark, proof: seen, what: text,
		advice: c.in("See whether these evaluations had more samples; else look at the storage and the hosts at that time.", "查看这些评估的样本是否更多；否则查看当时的存储与主机。"),
	})
}

// blamedOn is how many seconds of slow windows a part is to blame for: claims of causes have them.
func (c *conclusion) blamedOn(part string) (sum float64) {
	if !c.slow() {
		return 0
	}
	for _, of := range c.window.Costs() {
		if of.Part == part {
			sum += of.Time.Sum()
		}
	}
	return sum
}

// steadyParts adds claims for overhead in all windows, slow or not: data loading, TransferQueue, waiting for late ranks, RPCs, each if its share of the time of
// all windows is c.steady (--steady) or more. Such time makes no step slower than the others, and is lost in each. Seconds that already count as the cause of
// slow windows are taken off.
func (c *conclusion) steadyParts() {
	w := c.window
	if w == nil || w.Took.Count() == 0 {
		return
	}
	for _, of := range []struct {
		kind, short, chinese string
		parts                []string
		advice               string
	}{
		{"data_loading", "loading data", "加载数据", []string{spans.PartDataLoading}, spans.PartDataLoading},
		{"queue", "in TransferQueue (GET and PUT)", "TransferQueue（GET 与 PUT）", []string{spans.PartGet, spans.PartPut}, spans.PartGet},
		{"wait", "waiting for late ranks", "等待迟到的 rank", []string{spans.PartWait}, spans.PartWait},
		{
			"rpc", "in RPCs, outside of the server", "RPC（服务端之外）",
			[]string{spans.PartRPCSerialize, spans.PartRPCSend, spans.PartRPCReceive, spans.PartRPCDeserialize, spans.PartRPCUnattributed},
			spans.PartRPCSerialize,
		},
	} {
		sum, devices, all := 0.0, 0.0, 0.0 // s without the blamed, s times ranks, s
		for _, name := range of.parts {
			if p := w.Parts[name]; p != nil {
				sum, devices, all = sum+p.All.Sum()-c.blamedOn(name), devices+p.Devices.Sum(), all+p.All.Sum()
			}
		}
		ranks := float64(c.size) // as many as were in these parts on average, if known
		if devices > 0 {
			ranks = devices / all
		}
		took := w.Took.Sum()
		if !(sum >= c.steady*took) { // also if a time is not known (NaN)
			continue
		}
		_, several := tables.Window(w.Of, c.chinese)
		c.lose(of.kind, sum, ranks, c.sf("%s of the time of %s went to %s: %s%s, %s each", "%[2]s的时间有 %[1]s 用于%[3]s：共 %[4]s%[5]s，每个 %[6]s",
			human.Percent(sum/took), c.in("all "+several, several), c.in(of.short, of.chinese), human.Seconds(sum), c.gpuSeconds(sum*ranks),
			human.Seconds(sum/float64(w.Took.Count()))), c.in(of.short, of.chinese), c.of(advices[of.advice]))
	}
}
