package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/reading"
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/digest"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/internal/traces/view"
	"github.com/trainbridge/trainbridge/spans"
)

// steps is the domain of training steps; the table has a row per kind of log.
var steps = domain{
	key:  "training_logs",
	help: tables.LogsHelp, rows: tables.LogObjects, table: stepTable,
	subject: func(t *tree.Trace) string {
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
	notes:   orderNotes,
}

// logName returns the format of a log, "-" if unknown.
func logName(l *digest.Log) string { return cmp.Or(l.Name, "-") }

// stepTable prints a table with a row for each kind of log (tables.Logs): the number of steps, P50 and P95 of a step's time, the first and last loss, and the
// medians of throughput, FLOP/s and MFU. Below the table, each kind of log with verdicts on its steps gets a line with their counts. Without a log nothing is
// printed.
func stepTable(w *strings.Builder, d *digest.Digest, l style) {
	logs := d.Steps.Rows()
	if len(logs) == 0 {
		return
	}
	t := tables.Logs(d)
	printTable(w, &t, l)
	for _, log := range logs { // one for each kind
		printVerdictCounts(w, logName(log), log.Verdicts, l)
	}
}

// stepDetails returns the numbers of a training step (loss; MFU, else FLOP/s per GPU as reported), of an evaluation, or of a part of a step.
func stepDetails(s *tree.Span) (d []string) {
	switch s.Kind {
	case view.KindStep:
		var v view.Step
		v.Read(s.Span, s.Resource)
		switch n := v.Covered(); { // n: a log line may be about several steps
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

// partDetails returns the numbers of a part of a step: the share of the step's time, the slowest rank, and, to compare, the median or the fastest rank.
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

// stepTime returns the time in ns of the step above a part, NaN if absent or unknown.
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

// withoutRanks removes the times of single ranks below a part of a step whose details have the slowest rank.
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

// orderNotes returns a note that tells where on the axis parts of steps are drawn if the log has only their durations; nil if their times are logged.
func orderNotes(t *tree.Trace, _ []row) []string {
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
		return []string{note + "they are drawn in the trainer's order where it is known and they fit"}
	case known:
		return []string{note + "they are drawn in the trainer's order"}
	case unknown:
		return []string{note + "all are drawn from the start of the step"}
	}
	return nil
}
