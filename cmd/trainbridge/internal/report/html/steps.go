package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/spans"
)

// grey is the colour of the unattributed time, others of the parts without a colour of their own.
const (
	others = 6
	grey   = 7
)

// steps says where the time of steps, batches and passes went: a stacked chart and a table for each kind of window.
func (c *composer) steps(j *digest.Job) section {
	s := section{Title: c.t("Where the time went", "时间去向")}
	for _, w := range j.Windows.Rows() {
		s.add(c.breakdown(w))
		if _, many := tables.Window(w.Of, c.chinese); len(w.Parts) > 0 {
			s.add(tableOf(fmt.Sprintf(c.t("Parts of %s", "%s的构成"), many), tables.Parts(w, c.chinese)))
		}
	}
	return s
}

// breakdown is the exclusive time of the parts over the windows of a kind, stacked: the largest parts, the other parts together, the unattributed rest on top,
// and a line of the longest window where a point is the mean of several. Triangles mark slow windows, 200 at most.
func (c *composer) breakdown(w *digest.Window) *series {
	one, many := tables.Window(w.Of, c.chinese)
	out := &series{
		head:   head{Kind: "series", Title: fmt.Sprintf(c.t("Time of %s and its parts", "%s耗时及其构成"), many), Wide: true},
		XLabel: one, Axes: []axis{{Unit: "s", Zero: true}}, Stacked: true, Sync: c.job + one,
	}
	parts := w.ByTime()
	if len(parts) == 0 {
		return out
	}
	all := make([]*digest.Series, len(parts))
	for i, p := range parts {
		all[i] = &p.Over
	}
	xs, values, width := points(c.points, append(all, &w.Over)...)
	out.Xs = xs
	if w.Of == spans.WindowStep {
		out.Steps = width
	}
	named := len(parts) // of these, each may have a colour
	if parts[named-1].Name == spans.PartUnattributed {
		named--
	}
	var rest numbers // of the other parts
	var top []line   // drawn last
	for i, p := range parts {
		// Each of the largest parts has a colour. A single further part takes the colour of the others.
		own := i < others || named == others+1
		switch {
		case p.Name == spans.PartUnattributed:
			top = append(top, line{Name: c.part(p.Name), Colour: grey, Draw: "line", Values: values[i].of})
		case own:
			out.Series = append(out.Series, line{Name: c.part(p.Name), Colour: i % grey, Draw: "line", Values: values[i].of})
		default:
			rest = plus(rest, values[i].of)
		}
	}
	if rest != nil {
		out.Series = append(out.Series, line{Name: c.t("other parts", "其他部分"), Colour: others, Draw: "line", Values: rest})
	}
	if width > 1 {
		longest := line{Name: c.t("the longest", "最长"), Colour: 5, Draw: "over", Values: values[len(parts)].high}
		out.Series = append(out.Series, longest)
	}
	out.Series = append(out.Series, top...)
	for _, slow := range w.Slow {
		if at := slow.Of.Iteration; at.OK && len(out.Marks) < 200 {
			out.Marks = append(out.Marks, mark{number(floor(at.N, width) * width), spans.SeverityBad})
		}
	}
	slices.SortFunc(out.Marks, func(a, b mark) int { return cmp.Compare(a.X, b.X) })
	if len(out.Marks) > 0 {
		out.Note = fmt.Sprintf(c.t("A triangle marks a slow %s.", "三角标出慢的%s。"), one)
	}
	if width > 1 {
		out.Note = fmt.Sprintf(c.t("Means of %d %s. %s", "每点为 %d 个%s的平均。%s"), width, many, out.Note)
	}
	return out
}

// plus adds values to values, place by place; NaN is unknown, and adds nothing. to nil: all are unknown. to is changed.
func plus(to, values numbers) numbers {
	if to == nil {
		return slices.Clone(values)
	}
	for i, v := range values {
		switch {
		case math.IsNaN(to[i]):
			to[i] = v
		case !math.IsNaN(v):
			to[i] += v
		}
	}
	return to
}

// part is the name of a part in the language of the report.
func (c *composer) part(name string) string {
	if name == spans.PartUnattributed {
		return c.t("unattributed", "未归因")
	}
	return name
}

// average is the number of points of the moving averages.
const average = 20

// training has charts of what training logs state of steps: times, losses, throughput, FLOP/s, MFU, memory, then tables. Charts without values are left out.
func (c *composer) training(j *digest.Job) section {
	s := section{Title: c.t("Training", "训练")}
	logs := j.Steps.Rows()
	for _, l := range logs {
		of := ""
		if len(logs) > 1 {
			of = " (" + l.Name + ")"
		}
		s.add(c.measured(c.t("Step time", "单步耗时")+of, l, smooth{unit: "s"}, digest.StepTime))
		s.add(c.measured(c.t("Loss and learning rate", "损失与学习率")+of, l, smooth{}, digest.Loss, digest.ValidationLoss, digest.LearningRate))
		for _, f := range []digest.Figure{digest.TokenThroughput, digest.SampleThroughput} {
			s.add(c.measured(c.t("Throughput", "吞吐")+of, l, smooth{unit: units[f], low: true}, f))
		}
		s.add(c.measured(c.t("FLOP/s of a device", "单卡 FLOP/s")+of, l, smooth{unit: units[digest.DeviceFlopThroughput]},
			digest.DeviceFlopThroughput, digest.DeviceFlopThroughputReported))
		s.add(c.measured("MFU"+of, l, smooth{unit: "1"}, digest.MFU, digest.MFUReported))
		s.add(c.measured(c.t("Memory of a device", "显存")+of, l, smooth{unit: "By"}, digest.MemoryUsage, digest.MemoryPeak))
		s.add(c.measured(c.t("GPU utilization", "GPU 利用率")+of, l, smooth{unit: "1"}, digest.GPUUtilization))
		s.add(c.measured(c.t("Gradient norm", "梯度范数")+of, l, smooth{}, digest.GradientNorm))
		s.add(tableOf(c.t("Figures", "数值")+of, tables.Figures(l, c.chinese)))
		s.add(tableOf(c.t("Parts of steps", "步内阶段")+of, tables.StepParts(l, c.chinese)))
	}
	return s
}

var units = map[digest.Figure]string{
	digest.StepTime: "s", digest.TokenThroughput: "{token}/s", digest.SampleThroughput: "{sample}/s", digest.DeviceFlopThroughput: "{flop}/s", digest.MFU: "1",
}

// smooth says how measured draws figures. unit is their unit; "": none, and the axis is as long as the values need.
type smooth struct {
	unit string
	low  bool // values of the first figure below P10 are marked
}

// measured draws figures of a log over steps, those with values. The first gets a moving average if there are enough points; a learning rate beside another
// figure gets an axis of its own; validation losses are points.
func (c *composer) measured(title string, l *digest.Log, how smooth, figures ...digest.Figure) *series {
	step := c.t("step", "步")
	out := &series{head: head{Kind: "series", Title: title}, XLabel: step, Axes: []axis{{Unit: how.unit, Wide: how.unit != ""}}, Sync: c.job + step}
	figures = slices.DeleteFunc(figures, func(f digest.Figure) bool { return l.Measures[f].Count() == 0 })
	if len(figures) == 0 {
		return out
	}
	all := make([]*digest.Series, len(figures))
	for i, f := range figures {
		all[i] = &l.Measures[f].Over
	}
	xs, values, width := points(c.points, all...)
	out.Xs, out.Steps = xs, width
	for i, f := range figures {
		one := values[i].line(width, line{Name: tables.Figure(f, c.chinese), Colour: i, Draw: "line"})
		switch {
		case f == digest.LearningRate:
			if len(figures) > 1 {
				out.Axes, one.Axis = append(out.Axes, axis{Label: c.t("learning rate", "学习率")}), 1
			}
			one.Dash, one.Colour = true, 1
		case f == digest.ValidationLoss:
			one.Draw, one.Colour = "points", 3
		case i == 0:
			one.Faint = len(xs) > 2*average
		}
		out.Series = append(out.Series, one)
		if i == 0 && f != digest.LearningRate && len(xs) > 2*average {
			out.Series = append(out.Series, line{
				Name: fmt.Sprintf(c.t("mean of %d", "%d 点移动平均"), average), Colour: 0, Draw: "average", Values: movingAverage(values[i].of, average),
			})
		}
	}
	if how.low && len(xs) >= 10 { // of fewer points a tenth is less than one
		limit := l.Measures[figures[0]].Quantile(0.1)
		if below := only(values[0].of, func(v float64) bool { return v < limit }); anyKnown(below) {
			out.Series = append(out.Series, line{Name: c.t("below P10", "低于 P10"), Colour: 5, Draw: "points", Values: below})
		}
	}
	if width > 1 {
		out.Note = fmt.Sprintf(c.t("Means of %d steps, with the least and the most of them.", "每点为 %d 步的平均，并示最小与最大值。"), width)
	}
	return out
}
