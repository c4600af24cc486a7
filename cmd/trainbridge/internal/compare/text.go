package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/postmortem"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

// document is a comparison for display: all formats have the same sentences.
type document struct {
	*Comparison
	words
	nameA, nameB string // as given
}

// sections in the order of printing, each with its title.
var sections = []struct{ name, title string }{
	{sectionSteps, "Steps"},
	{sectionBreakdown, ""}, // its window names the section
	{sectionTimers, "Timers of the trainer, per step"},
	{sectionFunctions, "TransferQueue, per call"},
	{sectionPasses, "RPC, per pass"},
	{sectionCollectives, "Collectives, each"},
	{sectionLoss, "Loss"},
}

// titleOf returns the title of a section in the language of the comparison; "": there is no figure in the section.
func (d *document) titleOf(section, title string) string {
	for _, f := range d.figures {
		if f.section == section {
			if section == sectionBreakdown {
				title = "Where the time of a " + f.of + " goes"
			}
			return d.of(title)
		}
	}
	return ""
}

// conclusion returns the first sentences: where the wall clock differs much, and which figures differ.
func (d *document) conclusion() string {
	account := d.accountSentence()
	return account + d.figuresSentence(account != "")
}

// figuresSentence returns how many figures differ, and by how much and through which parts the time of a step differs. apart: a sentence about different
// accounts comes before.
func (d *document) figuresSentence(apart bool) string {
	n, differ := d.countCompared(), 0
	var first *figure // the first figure of the time of a step, or other window, that differs
	for _, f := range d.figures {
		if !f.differs() {
			continue
		}
		differ++
		if first == nil && f.unit == "s" && (f.section == sectionSteps || f.name == nameWhole || f.name == nameUsual) {
			first = f
		}
	}
	switch {
	case n == 0:
		return d.in("A and B have no figure in common.", "A 与 B 没有可比较的共同指标。")
	case differ == 0 && len(d.untoldFigures()) > 0:
		return d.untoldSentence(n)
	case differ == 0 && apart:
		return d.sf("Otherwise no difference is found: %s compared, with 95 %% confidence for all together.",
			"以下各项指标看不出差异：比较了 %s 项，置信度合计 95 %%。", d.count(n, "figure"))
	case differ == 0:
		return d.sf("No difference is found between A and B: %s compared, with 95 %% confidence for all together.",
			"A 与 B 之间看不出差异：比较了 %s 项指标，置信度合计 95 %%。", d.count(n, "figure"))
	case first == nil:
		return d.sf("No difference is found in the time of steps. Of %s %d differ: %s.", "每步耗时看不出差异；%s 项指标中有 %d 项不同：%s。",
			d.count(n, "figure"), differ, d.differingFigures()) + d.lateSentence()
	}
	s := first.scale()
	a, b, by := digits(first.estimate.a/s.by), digits(first.estimate.b/s.by), human.Seconds(math.Abs(first.difference.value))
	of := ""
	if first.name == nameUsual {
		of = d.in(" "+nameUsual, "（不含检查点与评估）")
	}
	text := d.sf("A %s%s takes %s %[5]s in B than in A (%[6]s → %[7]s %[4]s, %[8]s).", "B 的每个 %s%s平均比 A %[5]s %[3]s（%[6]s → %[7]s %[4]s，%[8]s）",
		cmp.Or(first.of, spans.WindowStep), of, by, s.name, d.of(direction(first)), a, b, human.Change(first.ratio.value))
	if d.unlikeSteps() {
		text += d.workSentence()
	}
	if causes := d.partsSentence(); causes != "" {
		return text + d.sf(" Of it: %s.", "，其中：%s。", causes) + d.beside() + d.lateSentence()
	}
	return text + d.in(" No part alone explains it.", "。没有任何一部分能单独说明原因。") + d.beside() + d.lateSentence()
}

// workSentence returns how the work of steps differs, and whether the throughput does.
func (d *document) workSentence() string {
	what := strings.TrimSuffix(d.of(d.workOf.name), "/s")
	text := d.sf(" A step of B has %s %s", "，B 每步的 %[2]s 较 A %[1]s", human.Change(d.work), what)
	if d.workOf.differs() {
		return text + d.sf(", and %s are %s (%s).", "，%s %s（%s）", d.of(d.workOf.name), d.of(direction(d.workOf)), human.Change(d.workOf.ratio.value))
	}
	return text + d.sf("; no difference is found in %s.", "，%s 看不出差异", d.of(d.workOf.name))
}

// beside returns a sentence about collectives and RPC passes that differ and whose logs have no place in steps, so that no part of a step contains their time;
// "": there are none.
func (d *document) beside() string {
	placed := map[string]bool{}
	for _, f := range d.figures {
		if f.section == sectionBreakdown {
			placed[f.name] = true
		}
	}
	all := d.largestDifferences(3, func(f *figure) bool {
		switch f.section {
		case sectionCollectives:
			return f.unit == "s" && !placed[spans.PartCollective] && !placed[spans.PartWait]
		case sectionPasses:
			return f.unit == "s" && !placed[spans.PartRPCReceive] && !placed[spans.PartRPCUnattributed]
		}
		return false
	})
	if len(all) == 0 {
		return ""
	}
	return d.sf(" By logs without a place in steps: %s.", "未能归入各步的日志显示：%s。", strings.Join(all, ", "))
}

// untoldFigures returns the figures without an interval, those with the largest change first.
func (d *document) untoldFigures() (out []*figure) {
	for _, f := range d.figures {
		if f.finding() == findingFew {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b *figure) int {
		return cmp.Compare(math.Abs(orZero(b.ratio.value)), math.Abs(orZero(a.ratio.value)))
	})
	return out
}

// untoldSentence returns that none of n figures is found to differ, and lists those with too few values for a finding, at most five.
func (d *document) untoldSentence(n int) string {
	var all []string
	untold := d.untoldFigures()
	for _, f := range untold[:min(len(untold), 5)] {
		s := f.scale()
		called := strings.TrimSpace(reading.Clean(f.of) + " " + d.of(f.name))
		all = append(all, fmt.Sprintf("%s %s → %s %s", called, digits(f.estimate.a/s.by), digits(f.estimate.b/s.by), s.name))
	}
	if len(untold) > 5 {
		all = append(all, "…")
	}
	text := d.sf("Whether A and B differ cannot be told of %d of %s, whose values are too few, or change too seldom within a run: %s.",
		"%[2]s 项指标中有 %[1]d 项无法判断 A 与 B 是否不同，因为取值太少，或在一次运行中变化太少：%[3]s。", len(untold), d.count(n, "figure"), strings.Join(all, ", "))
	if others := n - len(untold); others > 0 {
		text += d.sf(" No difference is found in the other %d.", "其余 %d 项看不出差异。", others)
	}
	return text
}

// partsSentence returns the parts of windows that differ, at most five, the largest difference first: "data_loading +120 ms, compute +15.0 ms".
func (d *document) partsSentence() string {
	return strings.Join(d.largestDifferences(5, func(f *figure) bool {
		return f.section == sectionBreakdown && f.name != nameWhole && f.name != nameUsual
	}), ", ")
}

// largestDifferences returns the figures accepted by is that differ most: "compute +120 ms (forward_time +110 ms)". For computing, two timers of the trainer
// are added.
func (d *document) largestDifferences(most int, is func(f *figure) bool) (all []string) {
	var parts []*figure
	for _, f := range d.figures {
		if is(f) && f.differs() {
			parts = append(parts, f)
		}
	}
	slices.SortStableFunc(parts, func(a, b *figure) int { return cmp.Compare(math.Abs(b.difference.value), math.Abs(a.difference.value)) })
	for _, f := range parts[:min(len(parts), most)] {
		s := f.scale()
		called := d.of(reading.Clean(f.name))
		switch f.section {
		case sectionCollectives:
			called = reading.Clean(f.of) + " " + called
		case sectionPasses:
			called = "RPC " + called
		}
		text := fmt.Sprintf("%s %s %s", called, signedDigits(f.difference.value/s.by, f.difference.value/s.by), s.name)
		if f.section == sectionBreakdown && f.name == spans.PartCompute {
			if timers := d.largestDifferences(2, func(f *figure) bool { return f.section == sectionTimers }); len(timers) > 0 {
				text += d.sf(" (%s)", "（%s）", strings.Join(timers, ", "))
			}
		}
		all = append(all, text)
	}
	return all
}

// differingFigures returns the first five figures that differ, by name: "MFU lower, tokens/s lower".
func (d *document) differingFigures() string {
	var all []string
	for _, f := range d.figures {
		if f.differs() {
			all = append(all, strings.TrimSpace(reading.Clean(f.of)+" "+d.of(f.name))+" "+d.of(direction(f)))
		}
	}
	if n := len(all); n > 5 {
		all = append(all[:5], "…")
	}
	return strings.Join(all, ", ")
}

// direction returns the finding of a figure in words: times are longer or shorter, other figures higher or lower.
func direction(f *figure) string {
	switch finding := f.finding(); {
	case f.unit == "s" && finding == findingHigher:
		return "longer"
	case f.unit == "s" && finding == findingLower:
		return "shorter"
	default:
		return finding
	}
}

// differences returns texts about the facts in which the runs differ, "world size: A 8, B 16". refused: one of them makes the runs incomparable.
func (d *document) differences() (refused bool, all []string) {
	for _, f := range d.facts {
		if !f.differs {
			continue
		}
		refused = refused || f.needed
		all = append(all, fmt.Sprintf("%s: A %s, B %s", d.factName(f.name), d.valuesText(f.a), d.valuesText(f.b)))
	}
	return refused, all
}

// factName returns the name of a fact for display.
func (d *document) factName(name string) string {
	switch name {
	case spans.AttrWorldSize:
		return d.of("world size")
	case spans.AttrBatchSize:
		return d.of("batch size")
	case spans.AttrDeviceModel:
		return d.of("GPUs")
	}
	return d.of(reading.Clean(name))
}

// valuesText returns the values of a fact as a text.
func (d *document) valuesText(values []string) string {
	if len(values) == 0 {
		return d.of("no log says it")
	}
	return reading.Clean(strings.Join(values, ", "))
}

// warnings returns the sentences before the figures: runs that cannot be compared, that had other devices, that failed, or that have losses which are no
// numbers.
func (d *document) warnings() (all []string) {
	refused, differ := d.differences()
	switch list := strings.Join(differ, d.in("; ", "；")); {
	case refused:
		all = append(all, d.sf("NOT COMPARABLE: the runs differ in %s. Differences below may come from that alone.",
			"不可比较：两次运行的设置不同（%s）。下列差异可能由此造成。", list))
	case list != "": // the GPUs are the only fact that is not needed
		all = append(all, d.sf("The runs had other devices: %s.", "两次运行的设备不同（%s）。", list))
	}
	for i, run := range []*Run{d.a, d.b} {
		if end := postmortem.Of(&run.Ends, run.files, 0, -1, 0); end.Failed() {
			all = append(all, d.sf("%c ended in an error: %s", "%c 因错误结束：%s", 'A'+i, reading.Clean(end.Sentence)))
		}
		if n := run.notFinite; n > 0 {
			all = append(all, d.sf("The loss of %c is not finite at %s; these are not compared.", "%c 有 %s 步的损失不是有限数 (NaN/Inf)，未参与比较。",
				'A'+i, d.count(n, "step")))
		}
	}
	return all
}

// notes returns sentences about how the figures were computed, and what was left out of each run.
func (d *document) notes() (all []string) {
	all = []string{
		d.in("Figures are means. The first step of a run (without steps: its first trace) is warm-up and left out, with what began before its end.",
			"各值为均值。每次运行的第一步（没有训练步时为第一条链路）视为预热，连同在其结束前开始的内容一并排除。"),
		d.sf("Intervals: %d bootstrap draws of steps, with a fixed seed; neighbours that are alike are drawn together. "+
			"There are %s, each at %.3f %%, so that all hold at once with 95 %%.",
			"区间：按步有放回重采样 %d 次 (bootstrap 分位数，固定种子)；彼此相关的相邻步一起抽取。共 %s 项比较，每个区间的置信度为 %.3f %%，合计 95 %%。",
			resamples, d.count(d.countCompared(), "comparison"), 100*d.confidence),
		d.in("Where the interval holds zero, no difference is found.", "区间包含 0 时：看不出差异。"),
	}
	for i, run := range []*Run{d.a, d.b} {
		name := 'A' + i
		if n := run.partial; n > 0 {
			all = append(all, d.sf("%c: %s may lack something, and are left out.", "%c 有 %s 个不完整的时间窗口，未参与比较。", name, d.count(n, "window")))
		}
		if kept, seen := run.countRows(); kept < seen {
			all = append(all, d.sf("%c: of %d records %d were drawn, by their span ids.", "%c 有 %d 条记录，按 span id 抽取了 %d 条。", name, seen, kept))
		}
		if n := run.others; n > 0 {
			all = append(all, d.sf("%c: %s of further functions, operations or logs are not compared: there are more than %d of a kind.",
				"%c 另有 %s 条其他函数、操作或日志的记录未参与比较：每类最多 %d 个。", name, d.count(n, "record"), mostNames))
		}
	}
	return all
}

// lastLosses returns the last losses: "Last loss: A 2.41 at step 900, B 2.38 at step 900"; "": no run has a loss.
func (d *document) lastLosses() string {
	if d.lossA == (lastLoss{}) && d.lossB == (lastLoss{}) {
		return ""
	}
	say := func(f lastLoss) string {
		if f == (lastLoss{}) {
			return "-"
		}
		return d.sf("%s at step %d", "%s（第 %d 步）", digits(f.loss), f.step)
	}
	return d.sf("Last loss: A %s, B %s", "最后的损失：A %s，B %s", say(d.lossA), say(d.lossB))
}

// cells returns the texts of a figure: name, A, B, difference, interval, change in %, interval, finding. If a run lacks the figure, the cells from the
// difference up to the finding are empty. Intervals are empty if there are too few units.
func (d *document) cells(f *figure) [8]string {
	s := f.scale()
	a, b := f.estimate.a/s.by, f.estimate.b/s.by
	larger := max(math.Abs(orZero(a)), math.Abs(orZero(b))) // gives all differences their digits
	cell := [8]string{d.of(reading.Clean(f.name)), withUnit(a, s), withUnit(b, s), "", "", "", "", d.of(f.finding())}
	if f.of != "" && f.section != sectionBreakdown {
		cell[0] = reading.Clean(f.of) + " " + cell[0]
	}
	if len(f.a) == 0 || len(f.b) == 0 {
		return cell
	}
	cell[3], cell[5] = signedDigits(f.difference.value/s.by, larger), human.Change(f.ratio.value)
	if f.told {
		cell[4] = signedDigits(f.difference.low/s.by, larger) + " … " + signedDigits(f.difference.high/s.by, larger)
		if low, high := human.Change(f.ratio.low), human.Change(f.ratio.high); low != "-" {
			cell[6] = strings.TrimSuffix(low, "%") + " … " + high
		}
	}
	if f.differs() {
		switch cell[7] = d.of(direction(f)); {
		case f.worse():
			cell[7] += ", " + d.of("worse")
		case f.better != 0:
			cell[7] += ", " + d.of("better")
		}
	}
	return cell
}

// withUnit returns a number with its unit; "-": unknown.
func withUnit(v float64, s scale) string {
	if text := digits(v); text != "-" {
		return strings.TrimSpace(text + " " + s.name)
	}
	return "-"
}

// writeText prints a comparison for a terminal or for diff: conclusion, warnings, who A and B are, the account, a table for each section, the last losses, and
// notes. Figures without a difference are counted, not listed.
func writeText(out io.Writer, d *document) error {
	w := new(strings.Builder)
	fmt.Fprintln(w, d.conclusion())
	for _, warning := range d.warnings() {
		fmt.Fprintln(w, warning)
	}
	fmt.Fprintln(w)
	for _, side := range d.sides() {
		fmt.Fprintln(w, side)
	}
	d.writeAccount(w)
	var alike []string // sections, each with its number of figures without a difference
	for _, s := range sections {
		title := d.titleOf(s.name, s.title)
		if title == "" {
			continue
		}
		head := []string{"", "A", "B", "B − A", d.of("interval"), d.of("change"), d.of("interval"), ""}
		var rows [][]string
		same := 0
		for _, f := range d.figures {
			if f.section != s.name {
				continue
			}
			cells := d.cells(f)
			if f.finding() == findingNone {
				same++
				continue
			}
			rows = append(rows, cells[:])
		}
		if same > 0 {
			alike = append(alike, fmt.Sprintf("%s %d", title, same))
		}
		if len(rows) > 0 {
			fmt.Fprintf(w, "\n%s\n", title)
			t := tables.Texts(head, rows, func(i int) bool { return i == 0 || i == len(head)-1 })
			for _, line := range t.Lines(tables.Any) {
				fmt.Fprintln(w, "  "+line)
			}
		}
	}
	if len(alike) > 0 {
		title := d.in("No difference found, figures (--format json lists them)", "看不出差异的指标数（--format json 列出各项）")
		fmt.Fprintf(w, "\n%s: %s\n", title, strings.Join(alike, d.in(", ", "，")))
	}
	if finals := d.lastLosses(); finals != "" {
		fmt.Fprintf(w, "\n%s\n", finals)
	}
	fmt.Fprintln(w)
	for _, note := range d.notes() {
		fmt.Fprintln(w, note)
	}
	_, err := io.WriteString(out, w.String())
	return err
}

// writeAccount prints where the wall-clock time of both runs went.
func (d *document) writeAccount(w *strings.Builder) {
	title := d.accountTitle()
	if title == "" {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	if rows := d.accountRows(); len(rows) > 0 {
		t := tables.Texts(d.accountHead(), rows, func(i int) bool { return i == 0 })
		for _, line := range t.Lines(tables.Any) {
			fmt.Fprintln(w, "  "+line)
		}
	}
	if below := d.accountBelow(); below != "" {
		fmt.Fprintln(w, "  "+below)
	}
}

// sides returns a text for each of A and B: the path as given, the run, the facts from the logs.
func (d *document) sides() (all []string) {
	for _, side := range []struct {
		name, path string
		run        *Run
	}{{"A", d.nameA, d.a}, {"B", d.nameB, d.b}} {
		text := []string{fmt.Sprintf("%s  %s", side.name, reading.Clean(side.path)), reading.Clean(side.run.ID)}
		for _, f := range d.facts {
			values := f.a
			if side.name == "B" {
				values = f.b
			}
			text = append(text, d.factName(f.name)+" "+d.valuesText(values))
		}
		all = append(all, strings.Join(text, ", "))
	}
	return all
}
