package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// steps are training steps, with a row per kind of log.
var steps = domain{
	key: "training_logs",
	help: `[{"log", "steps", "step_seconds_p50", "step_seconds_p95", "loss_first", "loss_last", "tokens_per_second_p50",
                      "device_flop_per_second_reported_p50", "device_flop_per_second_p50", "mfu_ratio_p50", "verdicts"}]`,
	rows: stepRows, table: stepTable,
	what: func(t *tree.Trace) string {
		i := slices.IndexFunc(t.Spans, func(s *tree.Span) bool { return s.Kind == view.KindStep })
		if i < 0 {
			return ""
		}
		var v view.Step
		if v.Read(t.Spans[i].Span, t.Spans[i].Resource); !v.Iteration.OK {
			return "step"
		}
		return "step " + strconv.FormatInt(v.Iteration.N, 10)
	},
	details: stepDetails,
	below:   withoutRanks,
	notes:   orders,
}

type logDoc struct {
	Log          string         `json:"log"`
	Steps        float64        `json:"steps"`
	P50          *float64       `json:"step_seconds_p50,omitempty"`
	P95          *float64       `json:"step_seconds_p95,omitempty"`
	LossFirst    string         `json:"loss_first,omitempty"` // a text: it may be NaN
	LossLast     string         `json:"loss_last,omitempty"`
	Tokens       *float64       `json:"tokens_per_second_p50,omitempty"`
	FlopReported *float64       `json:"device_flop_per_second_reported_p50,omitempty"`
	Flop         *float64       `json:"device_flop_per_second_p50,omitempty"`
	MFU          *float64       `json:"mfu_ratio_p50,omitempty"`
	Verdicts     map[string]int `json:"verdicts"`
}

func logName(l *digest.Log) string { return reading.Clean(cmp.Or(l.Name, "-")) }

func stepRows(d *digest.Digest) (rows []any) {
	for _, l := range d.Steps.Rows() {
		quantile := func(of digest.Figure, q float64) *float64 { return known(l.Measures[of].Quantile(q)) }
		rows = append(rows, logDoc{
			logName(l), l.Covered, quantile(digest.StepTime, 0.5), quantile(digest.StepTime, 0.95), reading.Clean(l.First.String()), reading.Clean(l.Last.String()),
			quantile(digest.TokenThroughput, 0.5), quantile(digest.DeviceFlopThroughputReported, 0.5), quantile(digest.DeviceFlopThroughput, 0.5),
			quantile(digest.MFU, 0.5), l.Shown(),
		})
	}
	return rows
}

// stepTable says of each kind of log how many steps there are, quantiles of their time, the first and last loss, medians of the rest.
func stepTable(w *strings.Builder, d *digest.Digest, l look) {
	logs := d.Steps.Rows()
	if len(logs) == 0 {
		return
	}
	g := grid{head: []string{"training log", "steps", "time p50", "p95", "loss", "tokens/s", "FLOP/s/GPU logged", "recomputed", "MFU"}}
	for _, log := range logs {
		of := func(figure digest.Figure) *digest.Values { return &log.Measures[figure].Values }
		loss := "-"
		if log.First != nil {
			loss = reading.Clean(log.First.String()) + " → " + reading.Clean(log.Last.String())
		}
		g.add(texts(logName(log), human.Thousands(log.Covered), human.Seconds(of(digest.StepTime).Quantile(0.5)), human.Seconds(of(digest.StepTime).Quantile(0.95)), loss,
			human.Digits(of(digest.TokenThroughput).Quantile(0.5)), human.Flops(of(digest.DeviceFlopThroughputReported).Quantile(0.5)),
			human.Flops(of(digest.DeviceFlopThroughput).Quantile(0.5)), human.Percent(of(digest.MFU).Quantile(0.5)))...)
	}
	g.print(w, l)
	for _, log := range logs {
		verdictCounts(w, logName(log), log.Verdicts, l)
	}
}

// stepDetails are the numbers of a training step, of a part of it or of an evaluation.
func stepDetails(s *tree.Span) (d []string) {
	switch s.Kind {
	case view.KindStep:
		var v view.Step
		v.Read(s.Span, s.Resource)
		switch n := v.Covered(); {
		case math.IsNaN(v.Duration):
			d = append(d, "time not in the log")
		case n > 1:
			d = append(d, fmt.Sprintf("%s steps of %s", human.Thousands(n), human.Seconds(v.Duration)))
		}
		if loss := reading.Clean(digest.LossText(v.Loss)); loss != "" {
			d = append(d, "loss "+loss)
		}
		if !math.IsNaN(v.MFU) {
			d = append(d, "MFU "+human.Percent(v.MFU))
		} else if flops := v.DeviceFlopThroughputReported; !math.IsNaN(flops) {
			d = append(d, human.Flops(flops)+"/GPU")
		}
	case view.KindEvaluation:
		var v view.Evaluation
		v.Read(s.Span, s.Resource)
		if loss := reading.Clean(digest.LossText(v.Loss)); loss != "" {
			d = append(d, "validation loss "+loss)
		}
	case view.KindPart:
		d = partDetails(s)
	}
	return d
}

func partDetails(s *tree.Span) (d []string) {
	var v view.Part
	v.Read(s.Span, s.Resource)
	if whole := stepTime(s); whole > 0 {
		d = append(d, human.Percent(float64(s.NS())/whole))
	}
	if v.RankSlowest.OK {
		d = append(d, fmt.Sprintf("slowest rank %d", v.RankSlowest.N))
	}
	if !math.IsNaN(v.DurationMedian) {
		d = append(d, "median "+human.Seconds(v.DurationMedian))
	} else if !math.IsNaN(v.DurationMin) {
		d = append(d, "fastest rank "+human.Seconds(v.DurationMin))
	}
	return d
}

// stepTime is the time in ns of the step that a part of a step is below, NaN where there is none, or it is not known.
func stepTime(s *tree.Span) float64 {
	for s = s.Parent; s != nil; s = s.Parent {
		if s.Kind == view.KindStep {
			var v view.Step
			v.Read(s.Span, s.Resource)
			return v.Duration * 1e9
		}
	}
	return math.NaN()
}

// withoutRanks leaves out the ranks of a part of a step: the times that matter are in its details.
func withoutRanks(s *tree.Span, children []*tree.Span, _ extent) (drawn, told []*tree.Span) {
	if s.Kind != view.KindPart {
		return children, nil
	}
	var v view.Part
	if v.Read(s.Span, s.Resource); !v.RankSlowest.OK {
		return children, nil
	}
	return slices.DeleteFunc(slices.Clone(children), func(c *tree.Span) bool { return strings.HasPrefix(c.Name(), spans.SpanRank) }), nil
}

// orders says where the parts of steps are drawn.
func orders(t *tree.Trace, _ []row) []string {
	known, unknown := false, false
	for _, s := range t.Spans {
		if s.Kind != view.KindPart {
			continue
		}
		var v view.Part
		v.Read(s.Span, s.Resource)
		known = known || v.Order == spans.OrderTrainer
		unknown = unknown || v.Order == spans.OrderUnknown
	}
	const note = "the log says how long the parts of a step took, not when: "
	switch {
	case known && unknown:
		return []string{note + "drawn in the order in which the trainer runs them, where that is known and they fit"}
	case known:
		return []string{note + "drawn in the order in which the trainer runs them"}
	case unknown:
		return []string{note + "all are drawn from its start"}
	}
	return nil
}
