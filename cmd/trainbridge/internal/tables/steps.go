package tables

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// figure is a value that training logs state of steps, with its name and how its numbers are printed.
type figure struct {
	english, chinese string
	of               digest.Figure
	write            func(float64) string
}

var figures = []figure{
	{"step time", "单步耗时", digest.StepTime, human.Seconds},
	{"loss", "损失", digest.Loss, human.Digits},
	{"validation loss", "验证损失", digest.ValidationLoss, human.Digits},
	{"learning rate", "学习率", digest.LearningRate, human.Digits},
	{"gradient norm", "梯度范数", digest.GradientNorm, human.Digits},
	{"samples/s", "samples/s", digest.SampleThroughput, human.Digits},
	{"tokens/s", "tokens/s", digest.TokenThroughput, human.Digits},
	{"tokens/s of a GPU", "单卡 tokens/s", digest.DeviceTokenThroughput, human.Digits},
	{"FLOP/s, as logged", "FLOP/s（日志值）", digest.FlopThroughputReported, human.Flops},
	{"FLOP/s of a GPU, as logged", "单卡 FLOP/s（日志值）", digest.DeviceFlopThroughputReported, human.Flops},
	{"FLOP/s, recomputed", "FLOP/s（重新计算）", digest.FlopThroughput, human.Flops},
	{"FLOP/s of a GPU, recomputed", "单卡 FLOP/s（重新计算）", digest.DeviceFlopThroughput, human.Flops},
	{"MFU, as logged", "MFU（日志值）", digest.MFUReported, human.Percent},
	{"MFU, recomputed", "MFU（重新计算）", digest.MFU, human.Percent},
	{"memory of a GPU", "显存", digest.MemoryUsage, human.Bytes},
	{"memory of a GPU, peak", "显存峰值", digest.MemoryPeak, human.Bytes},
	{"GPU utilization", "GPU 利用率", digest.GPUUtilization, human.Percent},
}

// Figure is the name of a figure of training logs; "": not a figure of this table.
func Figure(f digest.Figure, chinese bool) string {
	for i := range figures {
		if figures[i].of == f {
			return figures[i].name(chinese)
		}
	}
	return ""
}

func (f *figure) name(chinese bool) string {
	if chinese {
		return f.chinese
	}
	return f.english
}

// stated is a row of Figures: the values of a figure in a log.
type stated struct {
	*digest.Measure
	name  string
	write func(float64) string
}

// as is a column of numbers that are printed as each row's figure is: seconds in one row, FLOP/s in another.
func as(english, chinese string, of func(*stated) float64) Column[*stated] {
	return Column[*stated]{english: english, chinese: chinese, text: func(s *stated) string { return s.write(of(s)) }, of: of}
}

func measured(s *stated) *digest.Values { return &s.Values }

var statedColumns = []Column[*stated]{
	text("figure", "指标", "", func(s *stated) string { return s.name }),
	count("records", "记录数", "", func(s *stated) int64 { return s.Count() }),
	as("mean", "平均", mean(measured)),
	as("least", "最小", at(measured, 0)),
	as("P10", "P10", at(measured, 0.1)),
	as("P50", "P50", at(measured, 0.5)),
	as("P95", "P95", at(measured, 0.95)),
	as("most", "最大", at(measured, 1)),
	as("last", "最后", func(s *stated) float64 { return s.Latest() }),
}

// Figures are the values that a training log states of its steps.
func Figures(l *digest.Log, chinese bool) Table {
	var rows []*stated
	for _, f := range figures {
		if m := &l.Measures[f.of]; m.Count() > 0 {
			rows = append(rows, &stated{m, f.name(chinese), f.write})
		}
	}
	return tableOf(statedColumns, rows, chinese)
}

// timed is a row of StepParts: a named part of steps, with its times.
type timed struct {
	name string
	*digest.Values
}

func times(t timed) *digest.Values { return t.Values }

var timedColumns = []Column[timed]{
	text("part of a step", "步内阶段", "", func(t timed) string { return t.name }),
	count("count", "数量", "", func(t timed) int64 { return t.Count() }),
	number("mean", "平均", "", human.Seconds, mean(times)),
	number("P50", "P50", "", human.Seconds, at(times, 0.5)),
	number("P95", "P95", "", human.Seconds, at(times, 0.95)),
	number("longest", "最长", "", human.Seconds, at(times, 1)),
}

// StepParts are the parts of steps that a training log has times of.
func StepParts(l *digest.Log, chinese bool) Table {
	var rows []timed
	for _, name := range slices.Sorted(maps.Keys(l.Parts)) {
		rows = append(rows, timed{name, &l.Parts[name].Values})
	}
	return tableOf(timedColumns, rows, chinese)
}

func of(f digest.Figure) func(*digest.Log) *digest.Values {
	return func(l *digest.Log) *digest.Values { return &l.Measures[f].Values }
}

var logs = []Column[*digest.Log]{
	text("training log", "训练日志", "log", func(l *digest.Log) string { return cmp.Or(l.Name, human.Unknown) }),
	count("steps", "步数", "steps", func(l *digest.Log) float64 { return l.Covered }),
	number("time P50", "耗时 P50", "step_seconds_p50", human.Seconds, at(of(digest.StepTime), 0.5)),
	number("P95", "P95", "step_seconds_p95", human.Seconds, at(of(digest.StepTime), 0.95)),
	text("loss", "损失", "", func(l *digest.Log) string {
		if l.First == nil {
			return human.Unknown
		}
		return l.First.String() + " → " + l.Last.String()
	}),
	text("", "", "loss_first", func(l *digest.Log) string { return l.First.String() }), // texts: may be NaN
	text("", "", "loss_last", func(l *digest.Log) string { return l.Last.String() }),
	number("tokens/s", "tokens/s", "tokens_per_second_p50", human.Digits, at(of(digest.TokenThroughput), 0.5)),
	number("FLOP/s/GPU logged", "单卡 FLOP/s（日志值）", "device_flop_per_second_reported_p50", human.Flops, at(of(digest.DeviceFlopThroughputReported), 0.5)),
	number("recomputed", "重新计算", "device_flop_per_second_p50", human.Flops, at(of(digest.DeviceFlopThroughput), 0.5)),
	number("MFU", "MFU", "mfu_ratio_p50", human.Percent, at(of(digest.MFU), 0.5)),
}

// Logs are the training logs.
func Logs(d *digest.Digest) Table { return tableOf(logs, d.Steps.Rows(), false) }

// LogsHelp are the keys of LogObjects.
var LogsHelp = "{" + keys(logs, `"verdicts"`) + "}"

// LogObjects are the training logs for the document.
func LogObjects(d *digest.Digest) []any {
	return objects(logs, d.Steps.Rows(), func(l *digest.Log, o *Object) { o.Add("verdicts", l.Shown()) })
}
