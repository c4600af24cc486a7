package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// figure is how FlagScale's perf_monitor prints a figure, and its name there.
type figure struct {
	of             digest.Figure
	unit           string
	scale          float64 // of the unit, in the figure's own
	decimals       int
	series, stated string // the names of the series for TensorBoard, and of the mean; "": there is none
}

const tera = 1e12

var figures = []figure{
	{digest.StepTime, "ms", 1e-3, 1, "", "avg_step_time_ms"},
	{digest.SampleThroughput, "samples/s", 1, 2, "performance/samples_per_second", ""},
	{digest.TokenThroughput, "tokens/s", 1, 0, "performance/tokens_per_second", "avg_throughput_tokens"},
	{digest.FlopThroughputReported, "TFLOPS", tera, 2, "performance/tflops_total", ""},
	{digest.DeviceFlopThroughputReported, "TFLOPS", tera, 2, "performance/tflops_per_gpu", "avg_tflops_per_gpu"},
	{digest.MemoryUsage, "GiB", 1 << 30, 2, "memory/current_gb", ""},
}

func (f *figure) text(x float64) string { return human.Fixed(x/f.scale, f.decimals) }

// training writes a section for each training log: losses, figures such as throughput and MFU, points with a low throughput, parts of steps; of FlagScale's
// perf_monitor also its session.
func (p *page) training(job *digest.Job) {
	for _, l := range job.Steps.Rows() {
		p.head(p.sf("Training log: %s", "训练日志：%s", name(l.Name)))
		steps := human.Thousands(l.Records)
		if l.Covered != float64(l.Records) {
			steps += p.sf(", which cover %s steps", "，覆盖 %s 步", human.Thousands(l.Covered))
		}
		p.value(p.in("Records", "记录数"), steps)
		if l.First != nil {
			loss := p.lossAt(l.First) + p.in(" → ", "→ ") + p.lossAt(l.Last)
			if l.Lowest != nil {
				loss += p.in(", lowest ", "，最低 ") + p.lossAt(l.Lowest)
			}
			p.value(p.in("Loss", "损失"), loss)
		}
		if l.NotFinite > 0 {
			p.value(p.in("Not finite", "非有限值"), p.in(human.Plural(l.NotFinite, "loss"), human.Thousands(l.NotFinite)))
		}
		if strings.HasPrefix(l.Name, "perf_") {
			p.session(l)
		}
		p.print(tables.Figures(l, p.chinese))
		p.below(l)
		p.print(tables.StepParts(l, p.chinese))
	}
}

func lossText(l *digest.LossAt) string { return name(l.String()) }

// lossAt is a loss and its step, if the log numbers steps.
func (p *page) lossAt(l *digest.LossAt) string {
	if !l.Step.OK {
		return lossText(l)
	}
	return p.sf("%s at step %s", "%s（第 %s 步）", lossText(l), human.Thousands(l.Step.N))
}

// session writes the statistics of a whole run of FlagScale's perf_monitor under the names of its final_statistics, and a table of its series, by their names
// in TensorBoard. They are recomputed from the rows, because a killed run has written none.
func (p *page) session(l *digest.Log) {
	p.value("total_iterations", human.Thousands(l.Records))
	var rows [][]string
	for i := range figures {
		f := &figures[i]
		m := &l.Measures[f.of]
		if m.Count() == 0 {
			continue
		}
		if f.series != "" {
			row := []string{f.series, f.unit, human.Thousands(m.Count())}
			for _, x := range []float64{m.Mean(), m.Min(), m.Quantile(0.1), m.Quantile(0.5), m.Max(), m.Latest()} {
				row = append(row, f.text(x))
			}
			rows = append(rows, row)
		}
		if f.stated == "" {
			continue
		}
		p.value(f.stated, f.text(m.Mean()))
		if f.of != digest.TokenThroughput { // of tokens perf_monitor has the mean alone
			p.value(strings.Replace(f.stated, "avg", "max", 1), f.text(m.Max()))
			p.value(strings.Replace(f.stated, "avg", "min", 1), f.text(m.Min()))
		}
	}
	// The writer that prints tables has no peaks: the most of the memory in use stands in.
	if peak := fmax(l.Measures[digest.MemoryPeak].Max(), l.Measures[digest.MemoryUsage].Max()); !math.IsNaN(peak) {
		p.value("peak_memory_gb", human.Fixed(peak/(1<<30), 2))
	}
	if len(rows) > 0 {
		p.table(2, []string{
			p.in("series", "指标"), p.in("unit", "单位"), p.in("count", "数量"), p.in("mean", "平均"), p.in("min", "最小"), "P10", p.in("median", "中位数"),
			p.in("max", "最大"), p.in("last", "最后"),
		}, rows)
	}
}

// fmax is the larger of two numbers that may be unknown.
func fmax(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}

// mostPoints is how many points below P10 are named.
const mostPoints = 10

// below names the steps whose throughput was below P10, the lowest first: samples/s if the log has ten values, else tokens/s if ten. Of a long log a point is
// the mean of several steps, under the number of the first.
func (p *page) below(l *digest.Log) {
	for of, unit := range map[digest.Figure]string{digest.SampleThroughput: "samples/s", digest.TokenThroughput: "tokens/s"} {
		m := &l.Measures[of]
		// One figure at most passes, so the order of the map does not matter.
		if m.Count() < 10 || of == digest.TokenThroughput && l.Measures[digest.SampleThroughput].Count() >= 10 {
			continue
		}
		limit := m.Quantile(0.1)
		points := m.Below(limit)
		if len(points) == 0 {
			continue
		}
		slices.SortStableFunc(points, func(a, b digest.Bucket) int { return cmp.Compare(a.Mean(), b.Mean()) })
		var named []string
		for _, b := range points[:min(len(points), mostPoints)] {
			named = append(named, p.sf("step %d: %s", "第 %d 步：%s", b.At, human.Digits(b.Mean())))
		}
		text := strings.Join(named, p.in(", ", "，"))
		if n := len(points) - mostPoints; n > 0 {
			text += p.sf(", and %s more", "，另有 %s 个", human.Thousands(n))
		}
		p.paragraph("  ", p.sf("Below P10 of the throughput (%s %s), the lowest first: %s", "吞吐低于 P10（%s %s）的点，从低到高：%s", human.Digits(limit), unit, text))
		return
	}
}
