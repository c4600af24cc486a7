package report

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/offline"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/account"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/stat"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// The first screen of a report. Several runs have a table, and the first of them the conclusion and the first claim.
const (
	briefWidth  = 80 // without a terminal
	leastWidth  = 40
	briefClaims = 3  // of a single run
	briefParts  = 5  // of the time of windows
	worstParts  = 4  // of the time of the slowest window
	barWidth    = 24 // of the bar of a part
	briefGaps   = 2
	briefRuns   = 5  // with their conclusions
	tableRuns   = 20 // in the table
)

// severityColours are codes for reading.Palette.
var severityColours = map[string]string{spans.SeverityBad: "31", spans.SeverityWarning: "33", good: "32"}

// brief writes the report of all jobs on a single screen: a table of several runs, a short conclusion of the first briefRuns, and what was not read. Failed
// runs come first.
func (p *page) brief(jobs []*digest.Job, read *offline.Reading) {
	all := make([]*conclusion, len(jobs))
	for i, job := range jobs {
		all[i] = conclude(p, job, read)
	}
	slices.SortStableFunc(all, func(a, b *conclusion) int {
		switch {
		case a.end.Failed() == b.end.Failed():
			return 0
		case a.end.Failed():
			return -1
		}
		return 1
	})
	claims := briefClaims
	if len(all) > 1 {
		claims = 1
		p.runs(all)
	}
	for i, c := range all[:min(len(all), briefRuns)] {
		if i > 0 {
			p.blank()
		}
		c.brief(claims, len(all) == 1)
	}
	if n := len(all) - briefRuns; n > 0 {
		p.blank()
		p.line(p.sf("and %s", "另有 %s", p.in(human.Plural(int64(n), "more run"), human.Thousands(n)+" 个运行")))
	}
	p.blank()
	if text := p.unreadBriefly(read); text != "" {
		p.paragraph("", text)
	}
	if len(all) > 0 {
		p.paragraph("", p.in("Add --full for all figures, -o report.html for the page with waterfalls.", "加 --full 得到全部数值，加 -o report.html 得到带瀑布图的页面。"))
	}
}

// runs writes how many runs there are, and the first tableRuns side by side.
func (p *page) runs(all []*conclusion) {
	rows := make([]*tables.Run, min(len(all), tableRuns))
	for i, c := range all[:len(rows)] {
		r := c.row(directory(files(c.job, c.read), c.read))
		rows[i] = &r
	}
	p.line(p.colours.Bold(p.in(human.Plural(int64(len(all)), "run"), human.Thousands(len(all))+" 个运行")))
	t := tables.Runs(rows, p.chinese)
	p.lines(t.Fit(p.width-2), p.width-2)
	if text := p.slowClient(all); text != "" {
		p.paragraph("  ", text)
	}
	p.blank()
}

// slowClient compares the calls of RPC clients whose logs are runs of their own: of at least three with about as many calls and bytes, the one whose calls
// take 1.5 times those of the others, and the stage with most of the difference; "": none.
func (p *page) slowClient(all []*conclusion) string {
	var clients []*conclusion
	var took, sizes []float64
	for _, c := range all {
		if calls := &c.job.Passes.Calls; calls.Took.Count() > 0 {
			bytes := (calls.Sent.Sum() + calls.Received.Sum()) / float64(calls.Took.Count())
			clients, took, sizes = append(clients, c), append(took, calls.Took.Mean()), append(sizes, bytes)
		}
	}
	if len(clients) < 3 || slices.Max(sizes) > 1.2*slices.Min(sizes) {
		return ""
	}
	worst := 0
	for i := range took {
		if took[i] > took[worst] {
			worst = i
		}
	}
	mean := func(c *conclusion, stage view.RPCStage) float64 {
		return c.job.Passes.Calls.Total(stage) / float64(c.job.Passes.Calls.Took.Count())
	}
	others := func(of func(i int) float64) float64 {
		var values []float64
		for i := range clients {
			if i != worst {
				values = append(values, of(i))
			}
		}
		return stat.MedianInPlace(values)
	}
	usual := others(func(i int) float64 { return took[i] })
	if took[worst] < 1.5*usual {
		return ""
	}
	for _, part := range []struct {
		stage  view.RPCStage
		called string
	}{
		{view.RPCSerialize, p.in("serializing", "序列化")},
		{view.RPCTransport, p.in("sending and receiving, without the server's time", "收发，不含服务端时间")},
		{view.RPCServer, p.in("the server", "服务端")},
		{view.RPCDeserialize, p.in("deserializing", "反序列化")},
	} {
		was, is := others(func(i int) float64 { return mean(clients[i], part.stage) }), mean(clients[worst], part.stage)
		if is-was > (took[worst]-usual)/2 {
			c := clients[worst]
			return p.sf("%s: a call takes %s, those of the %d others %s, for as many bytes (%s: %s instead of %s).",
				"%s：每次调用 %s，其他 %d 个为 %s，数据量相同（%s：%s，而非 %s）。", name(filepath.Base(directory(files(c.job, c.read), c.read))),
				human.Seconds(took[worst]), len(clients)-1, human.Seconds(usual), part.called, human.Seconds(is), human.Seconds(was))
		}
	}
	return ""
}

// brief writes the conclusion of a run, and so many claims. Of a run that stands alone it also writes where the time went, the slowest window, and what the
// logs do not tell.
func (c *conclusion) brief(claims int, alone bool) {
	dir := directory(files(c.job, c.read), c.read)
	c.painted("1", "", c.jobTitle(c.job, c.read, dir))
	c.blank()
	c.painted(severityColours[c.severity()], "", c.headline())
	left := c.claims
	if c.beginsWithFirst() { // the first claim is told by then: its evidence follows at once
		c.support(dir, &left[0], evidences)
		left, claims = left[1:], claims-1
	}
	shown := left[:min(len(left), claims)]
	if len(shown) > 0 {
		c.section(c.in("Why, what it cost, and what to do", "原因、代价与建议"))
	}
	c.told(dir, shown, 1)
	if n := len(left) - len(shown); n > 0 && alone {
		c.line(c.sf("    and %s", "    另有 %s", c.in(human.Plural(int64(n), "more finding"), human.Thousands(n)+" 项")))
	}
	if !alone {
		return
	}
	c.whereTimeWent()
	c.slowest(c.section)
	if gaps := c.gaps(); len(gaps) > 0 {
		c.section(c.in("Not known from these logs", "这些日志无法说明的"))
		for _, text := range gaps[:min(len(gaps), briefGaps)] {
			c.paragraph("  - ", text)
		}
		if n := len(gaps) - briefGaps; n > 0 {
			c.line(c.sf("    and %s more", "    另有 %s 项", human.Thousands(n)))
		}
	}
}

// section begins a part of the first screen.
func (p *page) section(title string) {
	p.blank()
	p.line(p.colours.Bold(title))
}

// goodput ends the sentence of whereTimeWent. The usual speed is that of the steps around, so that a loss by longer steps from some step on is not taken off.
func (c *conclusion) goodput() string {
	share := human.Percent(c.account.Goodput())
	if slices.ContainsFunc(c.claims, func(cl claim) bool { return cl.kind == "level" && cl.lost > 0 }) {
		return c.sf("; goodput %s, by the speed of the steps around.", "；有效时间比 %s（按邻近各步的速度）。", share)
	}
	return c.sf("; goodput %s.", "；有效时间比 %s。", share)
}

// whereTimeWent is the wall clock by states in a sentence, states of a thousandth or more, and the largest parts of the time of windows, if there are several.
func (c *conclusion) whereTimeWent() {
	if !c.accounted && (c.window == nil || len(c.window.ByTime()) < 2) {
		return
	}
	c.section(c.in("Where the time went", "时间去向"))
	if c.accounted {
		var states []string
		for s, seconds := range c.account.Seconds {
			if share := seconds / c.account.Wall; share >= 0.001 {
				states = append(states, tables.State(account.State(s), c.chinese)+" "+human.Percent(share))
			}
		}
		c.paragraph("  ", c.sf("Wall clock %s: %s", "总时间 %s：%s", human.Seconds(c.account.Wall), strings.Join(states, c.in(", ", "，")))+
			c.goodput())
	}
	if c.window == nil {
		return
	}
	t := tables.Parts(c.window, c.chinese)
	if len(t.Rows) < 3 { // a single part and the whole
		return
	}
	if n := len(t.Rows) - 1 - briefParts; n > 0 { // the largest parts stay, and the last row, the whole
		t.Rows = slices.Delete(t.Rows, briefParts, briefParts+n)
	}
	c.lines(t.Fit(c.width-2), c.width-2)
}

// slowest draws the largest parts of the slowest window, the furthest above its limit, as bars, each beside the usual time of the part. head writes the title.
// Without a slow window nothing is written.
func (c *conclusion) slowest(head func(string)) {
	if !c.slow() || len(c.window.Worst) == 0 {
		return
	}
	w, slow := c.window, c.window.Slow[0].Of
	title := c.sf("The slowest: %s, %s", "最慢的：%s，%s", c.numbered(slow.Iteration), human.Seconds(slow.Took))
	if slow.Usual > 0 {
		title += c.sf("; usual is %s", "；通常为 %s", human.Seconds(slow.Usual))
	}
	head(title)
	parts := slices.Clone(w.Worst[0].Of)
	slices.SortStableFunc(parts, func(a, b view.PartTime) int { return cmp.Compare(b.Seconds, a.Seconds) }) // NaN comes last
	wide := 0
	for _, p := range parts[:min(len(parts), worstParts)] {
		wide = max(wide, human.Columns(name(p.Part)))
	}
	for _, p := range parts[:min(len(parts), worstParts)] {
		if !(p.Seconds > 0) {
			break
		}
		bar := strings.Repeat("█", max(1, int(math.Round(barWidth*min(1, p.Seconds/slow.Took)))))
		text := "  " + human.Pad(name(p.Part), wide) + human.PadLeft(human.Seconds(p.Seconds), 12) + "  " + human.Pad(bar, barWidth)
		if of := w.Parts[p.Part]; of != nil && of.All.Count() > 0 {
			text += c.sf("  usual %s", "  通常 %s", human.Seconds(of.All.Quantile(0.5)))
		}
		c.line(human.Cut(text, c.width))
	}
}

// unreadBriefly says how many files could not be read, and how many files and lines were not understood; "": all were.
func (p *page) unreadBriefly(read *offline.Reading) string {
	unread, foreign, lines := int64(0), int64(0), int64(0)
	for _, f := range read.Files {
		switch {
		case f.Receiver != "":
		case f.Err != nil:
			unread++
		case isTable(f): // levels.slowGPUs reads it
		default:
			foreign++
		}
		for _, r := range f.Rejected {
			lines += r.Lines
		}
	}
	var what []string
	if unread > 0 {
		what = append(what, p.in(human.Plural(unread, "file")+" could not be read", human.Thousands(unread)+" 个文件未能读取"))
	}
	if foreign > 0 {
		what = append(what, p.in(human.Plural(foreign, "file")+" had nothing that is known", human.Thousands(foreign)+" 个文件没有可识别的内容"))
	}
	if lines > 0 {
		what = append(what, p.in(human.Plural(lines, "line")+" could not be understood", human.Thousands(lines)+" 行无法理解"))
	}
	if len(what) == 0 {
		return ""
	}
	return strings.Join(what, p.in(", ", "，")) + p.in("; trainbridge check says more.", "；详见 trainbridge check。")
}
