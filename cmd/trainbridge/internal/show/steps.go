package show

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/spans"
)

func (s *span) isStep() bool { return s.Name() == spans.SpanStep }

// step is the step that a part of a step is below, nil when there is none.
func (s *span) step() *span {
	for s = s.parent; s != nil && !s.isStep(); s = s.parent {
	}
	return s
}

// covered is how many steps a record stands for, 1 where that is not known.
func (s *span) covered() float64 {
	if v, ok := s.number(spans.AttrStepsCovered); ok && v > 1 {
		return v
	}
	return 1
}

// stepTime is the time of one step in ns, NaN where it is not known.
func (s *span) stepTime() float64 {
	if v, ok := s.number(spans.AttrStepDuration); ok {
		return v * 1e9
	}
	if s.attr(spans.AttrTimePoint) == "true" {
		return math.NaN()
	}
	return float64(s.ns()) / s.covered()
}

// byStep orders the records of one log: by step where they have one, then by time, then by their place in the log.
func byStep(a, b *span) int {
	place := func(s *span) (iteration, record float64) {
		iteration, known := s.number(spans.AttrIteration)
		if !known {
			iteration = math.Inf(1)
		}
		record, _ = s.number(spans.AttrRecord)
		return iteration, record
	}
	stepA, recordA := place(a)
	stepB, recordB := place(b)
	return cmp.Or(cmp.Compare(stepA, stepB), cmp.Compare(a.start(), b.start()), cmp.Compare(recordA, recordB))
}

// series is what the records of one log say, in the order of steps.
type series struct {
	log                                     string
	all                                     []*span
	steps                                   float64
	first, last                             string // loss
	times, tokens, logged, recomputed, mfus []float64
	verdicts                                *tallies
}

func (l *series) add(s *span) {
	l.steps += s.covered()
	if v := s.stepTime(); !math.IsNaN(v) {
		l.times = append(l.times, v)
	}
	for _, f := range []struct {
		attr string
		into *[]float64
	}{
		{spans.AttrTokenThroughput, &l.tokens},
		{spans.AttrDeviceFlopThroughputReported, &l.logged},
		{spans.AttrDeviceFlopThroughput, &l.recomputed},
		{spans.AttrMFU, &l.mfus},
	} {
		if v, ok := s.number(f.attr); ok {
			*f.into = append(*f.into, v)
		}
	}
	if loss := s.figure(spans.AttrLoss); loss != "" {
		l.first, l.last = cmp.Or(l.first, loss), loss
	}
	l.verdicts.count(s)
}

// figure is a number with four digits, or the text that stands for one that is not finite.
func (s *span) figure(attr string) string {
	if v, ok := s.number(attr); ok {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return clean(s.attr(attr))
}

// logs sums up the training steps per kind of log.
func logs(traces []*trace) []*series {
	byLog := map[string]*series{}
	for _, t := range traces {
		for _, s := range t.all {
			if !s.isStep() {
				continue
			}
			name := clean(cmp.Or(s.attr(spans.AttrSource), "-"))
			if byLog[name] == nil {
				byLog[name] = &series{log: name, verdicts: newTallies()}
			}
			byLog[name].all = append(byLog[name].all, s)
		}
	}
	for _, l := range byLog {
		slices.SortStableFunc(l.all, byStep)
		for _, s := range l.all {
			l.add(s)
		}
	}
	return slices.SortedFunc(maps.Values(byLog), func(a, b *series) int { return cmp.Compare(a.log, b.log) })
}

// steps prints a row per kind of log: how many steps, quantiles of their time, the way of the loss, medians of the rest.
func steps(w *strings.Builder, traces []*trace, width int, p palette) {
	byLog := logs(traces)
	if len(byLog) == 0 {
		return
	}
	g := grid{head: []string{"training log", "steps", "time p50", "p95", "loss", "tokens/s", "TFLOP/s/GPU logged", "recomputed", "MFU"}}
	for _, l := range byLog {
		loss := "-"
		if l.first != "" {
			loss = l.first + " → " + l.last
		}
		g.add(texts(l.log, fmt.Sprintf("%.0f", l.steps), time1(l.times, 0.5), time1(l.times, 0.95), loss,
			typical(l.tokens, 1, "%.0f"), typical(l.logged, 1e12, "%.1f"), typical(l.recomputed, 1e12, "%.1f"), typical(l.mfus, 0.01, "%.1f%%"))...)
	}
	g.print(w, width, p)
	for _, l := range byLog {
		l.verdicts.print(w, l.log, width, p)
	}
}

// typical is the median in a unit.
func typical(v []float64, unit float64, format string) string {
	if len(v) == 0 {
		return "-"
	}
	return fmt.Sprintf(format, quantile(v, 0.5)/unit)
}

// quantile is the smallest value that at least q of all do not exceed.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Sorted(slices.Values(v))
	return v[max(0, int(math.Ceil(q*float64(len(v))))-1)]
}

// stepDetails are the numbers of a training step, of a part of it or of an evaluation.
func stepDetails(s *span) (d []string) {
	switch {
	case s.isStep():
		switch n, took := s.covered(), s.stepTime(); {
		case math.IsNaN(took):
			d = append(d, "time not in the log")
		case n > 1:
			d = append(d, fmt.Sprintf("%.0f steps of %s", n, duration(int64(took))))
		}
		if loss := s.figure(spans.AttrLoss); loss != "" {
			d = append(d, "loss "+loss)
		}
		if v, ok := s.number(spans.AttrMFU); ok {
			d = append(d, "MFU "+percent(v))
		} else if v, ok := s.number(spans.AttrDeviceFlopThroughputReported); ok {
			d = append(d, fmt.Sprintf("%.1f TFLOP/s/GPU", v/1e12))
		}
	case s.Name() == spans.SpanEvaluation:
		if loss := s.figure(spans.AttrValidationLoss); loss != "" {
			d = append(d, "validation loss "+loss)
		}
	case s.attr(spans.AttrStage) != "":
		if step := s.step(); step != nil && step.stepTime() > 0 {
			whole := step.stepTime()
			d = append(d, percent(float64(s.ns())/whole))
		}
		if v, ok := s.number(spans.AttrStageRankSlowest); ok {
			d = append(d, fmt.Sprintf("slowest rank %.0f", v))
		}
		if v, ok := s.number(spans.AttrStageDurationMedian); ok {
			d = append(d, "median "+duration(int64(v*1e9)))
		} else if v, ok := s.number(spans.AttrStageDurationMin); ok {
			d = append(d, "fastest rank "+duration(int64(v*1e9)))
		}
	}
	return d
}
