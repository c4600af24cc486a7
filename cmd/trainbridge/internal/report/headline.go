package report

import (
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// The shares of all time (whole) from which a loss is bad, or worth a warning. Smaller losses are still told.
const (
	badShare     = 0.05
	warningShare = 0.01
)

// total is the whole loss, s: each second once. Slow windows lost their time above usual, whatever the sum of their causes.
func (c *conclusion) total() float64 { return c.lost + c.beside() }

// beside is the loss beside slow windows, s.
func (c *conclusion) beside() float64 {
	sum := -c.twice
	for i := range c.claims {
		if c.claims[i].kind != slowWindows {
			sum += c.claims[i].lost
		}
	}
	return max(0, sum)
}

// largest is the claim with the largest loss, but for the kind except ("": none is excepted); nil: nothing was lost.
func (c *conclusion) largest(except string) (of *claim) {
	for i := range c.claims {
		if cl := &c.claims[i]; cl.kind != except && cl.lost > 0 && (of == nil || cl.lost > of.lost) {
			of = cl
		}
	}
	return of
}

// headline is the conclusion: how many steps, the loss and its share, and the largest reason. Its sentence is about slow windows if they lost the most, else
// about the losses if they are warningShare or more, else it says that nothing is known to be lost. The first claim may go before (beginsWithFirst), and the
// time of evaluations comes behind.
func (c *conclusion) headline() string {
	text := ""
	switch total := c.total(); {
	case c.slow() && c.lost >= c.beside():
		text = c.slowSteps() + c.besides(c.beside())
	case total > 0 && total >= warningShare*c.whole():
		text = c.losses(total)
	default:
		text = c.nothingLost()
	}
	text += c.evaluations()
	if c.beginsWithFirst() {
		text = strings.TrimSpace(c.sentence(c.first().what) + c.in(" ", "") + text)
	}
	return text
}

// beginsWithFirst says whether the headline begins with the first claim: the run failed, results are wrong, or time was lost that is not among the losses and
// no step was slow.
func (c *conclusion) beginsWithFirst() bool {
	first := c.first()
	return first != nil && (first.grade <= wrong || first.grade == costly && first.lost == 0 && !c.slow())
}

// slowOf is how many windows were slow of how many, for slowFew: "3", "200 steps were". All steps of the account count, those without a known time too.
func (c *conclusion) slowOf() (slow, of string) {
	n := c.window.Took.Count()
	if c.accounted && c.window.Of == spans.WindowStep && !c.several {
		n = max(n, c.account.Steps)
	}
	return c.in(human.Thousands(c.window.SlowCount), c.windows(int64(c.window.SlowCount))), c.windows(n) + c.in(c.wereOf(int64(c.window.SlowCount)), "")
}

// slowSteps is the sentence about slow windows: how many, their time above usual, and why.
func (c *conclusion) slowSteps() string {
	return c.slowFew(c.devices()) + c.why() + c.in(".", "。")
}

// slowFew is how many windows were slow, and their time above usual: "3 of 200 steps were slow (12.1 s of 20 min 3 s)". devices stands behind the times.
func (c *conclusion) slowFew(devices string) string {
	slow, of := c.slowOf()
	return c.sf("%s of %s slow (%s of %s%s)", "%[2]s中有 %[1]s偏慢（多用 %[3]s，共 %[4]s%[5]s）",
		slow, of, human.Seconds(c.lost), human.Seconds(c.whole()), devices)
}

// devices is the time above usual of slow windows in GPU-seconds, for slowFew; "": unknown.
func (c *conclusion) devices() string {
	if devices := c.window.Devices.Sum(); devices > 0 {
		return c.sf(", %s GPU-seconds", "，即 %s GPU·秒", human.Digits(devices))
	}
	return ""
}

// why says the largest cause of slow windows, and how much no log explains, if that is over a quarter; or that no log says why. The text continues a sentence.
func (c *conclusion) why() (text string) {
	unexplained, told := 0.0, false
	for _, of := range c.window.Costs() {
		switch {
		case of.Part == spans.PartUnattributed:
			unexplained = of.Time.Sum()
		case !told: // the first of Costs is the dearest
			told = true
			text += c.sf(". The largest part: %s, %s", "。其中最多的是%s：%s", c.what(of, digest.Blamed{}), human.Seconds(of.Time.Sum()))
		}
	}
	late := c.largest(slowWindows)
	switch {
	case !told && c.twice > 0 && late != nil && strings.HasPrefix(late.kind, "late_"):
		text += c.sf(". No log of steps says why; those of collectives tell of %s %s", "。训练日志没有说明原因；集合通信日志显示%[2]s：%[1]s", human.Seconds(late.lost), late.short)
	case !told && c.held != nil:
		text += c.sf(", %s", "，%s", c.of(c.held.while))
	case !told:
		text += c.sf(". %s why", "。%s原因", c.capital(c.doesNotSay()))
	case unexplained > c.lost/4:
		text += c.sf("; %s unexplained", "；%s 原因未知", human.Seconds(unexplained))
	}
	return text
}

// doesNotSay is "this log does not say", or of several "these logs do not say".
func (c *conclusion) doesNotSay() string {
	return c.logs() + c.in(c.byLogs(" does not say", " do not say"), "没有说明")
}

// besides is a sentence about a loss beside slow windows, of so many seconds; "": too little.
func (c *conclusion) besides(lost float64) string {
	of := c.largest(slowWindows)
	if of == nil || lost < warningShare*c.whole() {
		return ""
	}
	return c.sf(" Also lost: %s (%s).", "另外损失 %s（%s）。", human.Seconds(lost), c.mostly(of, lost))
}

// mostly is how a loss of so many seconds is named by its largest claim: "checkpoints", or if there is more "mostly checkpoints (12 s)".
func (c *conclusion) mostly(of *claim, lost float64) string {
	if human.Seconds(of.lost) == human.Seconds(lost) {
		return of.short
	}
	return c.sf("mostly %s (%s)", "主要是%s（%s）", of.short, human.Seconds(of.lost))
}

// losses are the sentences of a job with most of its loss, total seconds in all, outside slow windows.
func (c *conclusion) losses(total float64) string {
	text := c.sf("%s of %s lost (%s) in %s: %s.", "%[4]s共 %[2]s，损失 %[1]s（%[3]s）：%[5]s。",
		human.Seconds(total), human.Seconds(c.whole()), human.Percent(total/c.whole()), c.count(), c.mostly(c.largest(""), total))
	switch {
	case c.slow():
		text += c.in(" ", "") + c.slowFew("")
		if c.worth(c.lost) {
			text += c.why()
		}
		text += c.in(".", "。")
	case c.judged():
		text += c.noneSlow()
	}
	return text
}

// noneSlow says that no window was slow, and whether loading data can be seen.
func (c *conclusion) noneSlow() string {
	text := c.sf(" None of %s was slow", "%s中没有偏慢的", c.windows(c.window.Took.Count()))
	if !c.knowsLoading() {
		text += c.sf("; data loading is not known from %s", "；从%s无法得知数据加载", c.logs())
	}
	return text + c.in(".", "。")
}

// evaluations is a sentence about the time of evaluations, from badShare of the wall clock on: no loss, and yet much time. "": less.
func (c *conclusion) evaluations() string {
	took := c.account.Seconds[account.Evaluation]
	if !c.accounted || took < badShare*c.account.Wall {
		return ""
	}
	return c.sf(" Evaluations took %s (%s).", "评估用了 %s（%s）。", human.Seconds(took), human.Percent(took/c.account.Wall))
}

// count is what the job did, in words: "200 steps", else windows, else "the job".
func (c *conclusion) count() string {
	switch {
	case c.accounted:
		return c.steps(c.account.Steps)
	case c.window != nil:
		return c.windows(c.window.Took.Count())
	}
	return c.in("the job", "任务")
}

// nothingLost is the sentence of a job whose known loss is below warningShare, with the facts of its logs. "Healthy" is said only if the logs would have shown
// a loss, by enough windows to judge with the time of data loading, if no claim stands before (beginsWithFirst), and if nothing is slower than others like it.
// Slow windows that lost less than was lost beside them are told too. With too few windows, or none, the sentence is that the logs do not say where the time
// went. Without facts: "" if the run failed, else that the logs hold nothing complete.
func (c *conclusion) nothingLost() string {
	facts := strings.Join(c.facts(), c.in("; ", "；"))
	if facts != "" {
		facts = c.sf(" %s.", "%s。", facts)
	}
	switch {
	case c.judged() && c.knowsLoading() && !c.beginsWithFirst() && !c.uneven():
		return c.in("Healthy.", "正常：") + c.noneSlow() + facts
	case c.judged():
		return strings.TrimSpace(c.noneSlow() + facts)
	case c.slow():
		return strings.TrimSpace(facts + c.in(" ", "") + c.slowSteps())
	case facts == "" && c.end.Failed():
		return ""
	case facts == "":
		return c.in("These logs hold no complete step, call or collective.", "日志中没有完整的步骤、调用或集合通信。")
	}
	return strings.TrimSpace(facts + c.sf(" %s where the time went.", "%s时间的去向。", c.capital(c.doesNotSay())))
}

// uneven reports whether a rank, a host, a worker, a communicator or a unit is slower than others like it.
func (c *conclusion) uneven() bool {
	return slices.ContainsFunc(c.claims, func(cl claim) bool {
		return slices.Contains([]string{"slow_rank", "slow_host", "slow_worker", "slow_communicator", "unit"}, cl.kind)
	})
}

// logs is how the logs of the job are called.
func (c *conclusion) logs() string {
	return c.in(c.byLogs("this log", "these logs"), c.byLogs("该日志", "这些日志"))
}

// byLogs is the first text for a job of a single log, the second for several.
func (c *conclusion) byLogs(one, several string) string {
	if len(files(c.job, c.read)) == 1 {
		return one
	}
	return several
}

// judged says whether there are enough windows to call none of them slow.
func (c *conclusion) judged() bool {
	return c.window != nil && c.window.SlowCount == 0 && c.window.Took.Count() > enough
}

// knowsLoading says whether a log tells how long the windows waited for their data.
func (c *conclusion) knowsLoading() bool {
	for _, name := range []string{spans.PartDataLoading, spans.PartGet} {
		if p := c.window.Parts[name]; p != nil && p.All.Count() > 0 {
			return true
		}
	}
	return c.window.Of == spans.WindowPass // a pass of RPCs loads no data
}

// good is the severity of a headline without an accusation.
const good = "good"

// severity is the headline's: bad if the run failed, results are wrong or badShare of the time was lost or is the cost of a claim; a warning from warningShare
// on, or if there is doubt and no window was slow: no log has windows, a costly claim is no known loss, or a remark without a kind, such as a verdict, is worth
// a look.
func (c *conclusion) severity() string {
	lost := c.total() / c.whole() // a share
	doubt := c.window == nil
	for i := range c.claims {
		switch cl := &c.claims[i]; {
		case cl.grade <= wrong:
			return spans.SeverityBad
		case cl.grade == costly && cl.lost == 0:
			if cl.cost > 0 {
				lost = max(lost, cl.cost/c.whole())
			}
			doubt = true
		case cl.grade == remark:
			doubt = doubt || cl.kind == ""
		}
	}
	switch {
	case lost >= badShare:
		return spans.SeverityBad
	case lost >= warningShare || doubt && !c.slow():
		return spans.SeverityWarning
	}
	return good
}
