package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// figure is how a figure of training logs is printed.
type figure struct {
	of             digest.Figure
	name           both
	unit           string
	scale          float64
	decimals       int
	series, stated string // the names that FlagScale has for the series and for the mean
}

const tera = 1e12

var figures = []figure{
	{digest.StepTime, both{"step time", "步耗时"}, "ms", 1e-3, 1, "", "avg_step_time_ms"},
	{digest.Loss, both{"loss", "损失"}, "", 1, 4, "", ""},
	{digest.ValidationLoss, both{"validation loss", "验证损失"}, "", 1, 4, "", ""},
	{digest.LearningRate, both{"learning rate", "学习率"}, "", 1, -1, "", ""},
	{digest.GradientNorm, both{"gradient norm", "梯度范数"}, "", 1, 3, "", ""},
	{digest.SampleThroughput, both{"throughput", "吞吐"}, "samples/s", 1, 2, "performance/samples_per_second", ""},
	{digest.TokenThroughput, both{"throughput", "吞吐"}, "tokens/s", 1, 0, "performance/tokens_per_second", "avg_throughput_tokens"},
	{digest.DeviceTokenThroughput, both{"throughput of a GPU", "单卡吞吐"}, "tokens/s", 1, 0, "", ""},
	{digest.FlopThroughputReported, both{"stated", "日志值"}, "TFLOPS", tera, 2, "performance/tflops_total", ""},
	{digest.DeviceFlopThroughputReported, both{"stated, a GPU", "日志值（单卡）"}, "TFLOPS", tera, 2, "performance/tflops_per_gpu", "avg_tflops_per_gpu"},
	{digest.FlopThroughput, both{"recomputed", "重新计算"}, "TFLOPS", tera, 2, "", ""},
	{digest.DeviceFlopThroughput, both{"recomputed, a GPU", "重新计算（单卡）"}, "TFLOPS", tera, 2, "", ""},
	{digest.MFUReported, both{"MFU, stated", "MFU（日志值）"}, "%", 0.01, 2, "", ""},
	{digest.MFU, both{"MFU", "MFU"}, "%", 0.01, 2, "", ""},
	{digest.MemoryUsage, both{"memory", "显存"}, "GiB", 1 << 30, 2, "memory/current_gb", ""},
	{digest.MemoryPeak, both{"memory, peak", "显存峰值"}, "GiB", 1 << 30, 2, "memory/peak_gb", ""},
	{digest.GPUUtilization, both{"GPU utilization", "GPU 利用率"}, "%", 0.01, 1, "", ""},
}

func (f *figure) text(x float64) string {
	if f.decimals < 0 {
		return human.Digits(x)
	}
	return human.Fixed(x/f.scale, f.decimals)
}

// training is what training logs tell: loss, throughput and its points below P10, MFU, and the series that FlagScale writes for TensorBoard.
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
		var rows [][]string
		for i := range figures {
			f := &figures[i]
			m := &l.Measures[f.of]
			if m.Count() == 0 {
				continue
			}
			title := p.of(f.name)
			if f.series != "" {
				title = f.series
			}
			rows = append(rows, []string{
				title, f.unit, human.Thousands(m.Count()), f.text(m.Mean()), f.text(m.Min()), f.text(m.Quantile(0.1)), f.text(m.Quantile(0.5)), f.text(m.Max()),
				f.text(m.Latest()),
			})
		}
		if len(rows) > 0 {
			p.table(2, []string{
				p.in("figure", "指标"), p.in("unit", "单位"), p.in("count", "数量"), p.in("mean", "平均"), p.in("min", "最小"), "P10", p.in("median", "中位数"),
				p.in("max", "最大"), p.in("last", "最后"),
			}, rows)
		}
		p.below(l)
		p.stepParts(l)
	}
}

func lossText(l *digest.LossAt) string { return name(l.String()) }

// lossAt is a loss and its step, where the log numbers it.
func (p *page) lossAt(l *digest.LossAt) string {
	if !l.Step.OK {
		return lossText(l)
	}
	return p.sf("%s at step %s", "%s（第 %s 步）", lossText(l), human.Thousands(l.Step.N))
}

// session are perf_monitor's final_statistics, by its names, recomputed from the rows: a run that was killed has none.
func (p *page) session(l *digest.Log) {
	p.value("total_iterations", human.Thousands(l.Records))
	for i := range figures {
		f := &figures[i]
		m := &l.Measures[f.of]
		if f.stated == "" || m.Count() == 0 {
			continue
		}
		p.value(f.stated, f.text(m.Mean()))
		if f.of != digest.TokenThroughput {
			p.value(strings.Replace(f.stated, "avg", "max", 1), f.text(m.Max()))
			p.value(strings.Replace(f.stated, "avg", "min", 1), f.text(m.Min()))
		}
	}
	if peak := fmax(l.Measures[digest.MemoryPeak].Max(), l.Measures[digest.MemoryUsage].Max()); peak == peak {
		p.value("peak_memory_gb", human.Fixed(peak/(1<<30), 2))
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

// below names the records whose throughput was below P10, the lowest first.
func (p *page) below(l *digest.Log) {
	for i := range figures {
		f := &figures[i]
		m := &l.Measures[f.of]
		if f.of != digest.SampleThroughput && f.of != digest.TokenThroughput || m.Count() < 10 {
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
			named = append(named, p.sf("step %d: %s", "第 %d 步：%s", b.At, f.text(b.Mean())))
		}
		text := strings.Join(named, p.in(", ", "，"))
		if n := len(points) - mostPoints; n > 0 {
			text += p.sf(", and %s more", "，另有 %s 个", human.Thousands(n))
		}
		p.paragraph("  ", p.sf("Below P10 of the throughput (%s %s), the lowest first: %s", "吞吐低于 P10（%s %s）的点，从低到高：%s", f.text(limit), f.unit, text))
		return
	}
}

// stepParts are the parts of steps that the log has times of.
func (p *page) stepParts(l *digest.Log) {
	var rows [][]string
	for _, n := range sortedKeys(l.Parts) {
		v := l.Parts[n]
		rows = append(rows, []string{name(n), human.Thousands(v.Count()), human.Seconds(v.Mean()), human.Seconds(v.Quantile(0.95)), human.Seconds(v.Max())})
	}
	if len(rows) > 0 {
		p.table(1, []string{p.in("part of a step", "步内阶段"), p.in("count", "数量"), p.in("mean", "平均"), "P95", p.in("longest", "最长")}, rows)
	}
}
