package view

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Step returns the iteration, else the ordinal of the record.
func (p Place) Step() Int {
	if !p.Iteration.OK && p.Record.N > 0 {
		return p.Record
	}
	return p.Iteration
}

// Loss is a loss, finite or not.
type Loss struct {
	Value float64 // NaN: absent, or not finite
	Text  string  // of a loss that is no finite number, as sent: "NaN", "+Inf", "-Infinity", …
}

// lossOf reads a loss: a number, or the text of one that is not finite.
func lossOf(v pcommon.Value) Loss {
	l := Loss{Value: spans.ValueNumber(v)}
	if math.IsNaN(l.Value) && (v.Type() == pcommon.ValueTypeStr || v.Type() == pcommon.ValueTypeDouble) {
		l.Text = v.AsString()
	}
	return l
}

// NotFinite is "NaN", "+Inf" or "-Inf", empty for a finite or absent loss.
func (l Loss) NotFinite() string {
	if l.Text == "" {
		return ""
	}
	switch strings.ToLower(l.Text) {
	case "nan":
		return "NaN"
	case "inf", "+inf", "infinity", "+infinity":
		return "+Inf"
	case "-inf", "-infinity":
		return "-Inf"
	}
	return ""
}

// Covered returns the number of steps in the record, by default 1.
func (s *Step) Covered() float64 {
	if s.StepsCovered > 1 {
		return s.StepsCovered
	}
	return 1
}

// finish sets the duration of a step without an attribute for it, from the span's length: the mean over the steps in the record.
func (s *Step) finish(span ptrace.Span) {
	if s.ownDuration || s.TimePoint || s.Incomplete {
		return
	}
	// A length of 1 ns is none: spans.Batch makes the span of an instant 1 ns long.
	if length := int64(span.EndTimestamp() - span.StartTimestamp()); length > 1 {
		s.Duration = float64(length) / 1e9 / s.Covered()
	}
}
