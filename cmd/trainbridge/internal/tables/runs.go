package tables

import (
	"cmp"
	"math"
	"path/filepath"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
)

// Run is a row of Runs: a run, with its conclusion.
type Run struct {
	Job       *digest.Job
	Dir       string  // of all of its logs; "": none
	End       string  // the kind of its end; "": no failure, by its logs
	Severity  string  // of the conclusion
	Lost      float64 // s, each second once
	Whole     float64 // s, the base of losses
	Steps     int64
	SlowCount int // windows that were slow

	// Set by Runs.
	name string
	step *digest.Measure // of step times; nil: no log has any
	loss float64         // the last; NaN: no log has any
}

var runs = []Column[*Run]{
	{english: "run", chinese: "运行", text: func(r *Run) string { return r.name }, judge: func(r *Run) string { return r.Severity }},
	text("failed by", "失败原因", "", func(r *Run) string { return cmp.Or(r.End, human.Unknown) }),
	count("steps", "步数", "", func(r *Run) int64 { return r.Steps }),
	number("step P50", "每步 P50", "", human.Seconds, func(r *Run) float64 {
		if r.step == nil {
			return math.NaN()
		}
		return r.step.Quantile(0.5)
	}),
	number("last loss", "最后损失", "", human.Digits, func(r *Run) float64 { return r.loss }),
	some("slow", "偏慢", "", func(r *Run) int { return r.SlowCount }),
	number("time", "总时间", "", human.Seconds, func(r *Run) float64 { return r.Whole }),
	number("lost", "损失", "", human.Seconds, func(r *Run) float64 { return r.Lost }),
	number("share", "占比", "", human.Percent, func(r *Run) float64 { return r.Lost / r.Whole }),
}

// Runs is a table of runs side by side. A run is called by the name of its directory if no other run's directory has the name, else by its run id. Step time
// and loss are those of the first log that has any.
func Runs(rows []*Run, chinese bool) Table {
	names := map[string]int{} // how many runs have a directory of the name
	for _, r := range rows {
		names[filepath.Base(r.Dir)]++
	}
	for _, r := range rows {
		r.name = r.Job.Run
		if base := filepath.Base(r.Dir); names[base] == 1 && filepath.Clean(r.Dir) != "/" && r.Dir != "" {
			r.name = base
		}
		r.step, r.loss = nil, math.NaN()
		for _, l := range r.Job.Steps.Rows() {
			if took := &l.Measures[digest.StepTime]; r.step == nil && took.Count() > 0 {
				r.step = took
			}
			if math.IsNaN(r.loss) && l.Last != nil {
				r.loss = l.Last.Value
			}
		}
	}
	return tableOf(runs, rows, chinese)
}
