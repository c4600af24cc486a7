package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// Mark is when and where a span of any kind was, and how it came into its trace: what joins spans of several traces.
type Mark struct {
	JoinBy    string           // one of the JoinBy… values; "": the writer does not say
	Time      spans.TimeSource // "": of a service, which has measured it
	TimePoint bool             // only its end is known

	Host      string // the resource's, where the span has none
	PID       Int    // as above
	Iteration Int

	StepsCovered float64 // NaN where the span does not say it
	BatchSize    float64 // samples of a step or of a function; NaN: not known
	Part         string  // of a step: which
	Bad          bool    // it has a bad verdict
}

// Read reads a span.
func (m *Mark) Read(span ptrace.Span, res *Resource) {
	*m = Mark{JoinBy: res.joinBy, Time: res.time, Host: res.Host, PID: res.PID, StepsCovered: absent, BatchSize: absent}
	if res.ofSteps {
		m.StepsCovered, m.BatchSize = res.step.StepsCovered, res.step.BatchSize
	}
	for name, v := range span.Attributes().All() {
		switch name {
		case spans.AttrJoinBy:
			m.JoinBy = spans.ValueText(v)
		case spans.AttrTimeSource:
			m.Time = spans.TimeSource(spans.ValueText(v))
		case spans.AttrTimePoint:
			m.TimePoint = flagOf(v)
		case spans.AttrHostName:
			m.Host = spans.ValueText(v)
		case spans.AttrProcessPID:
			m.PID = IntOf(v)
		case spans.AttrIteration:
			m.Iteration = IntOf(v)
		case spans.AttrStepsCovered:
			m.StepsCovered = spans.ValueNumber(v)
		case spans.AttrBatchSize, spans.AttrTQBatchSize:
			m.BatchSize = spans.ValueNumber(v)
		case spans.AttrStage:
			m.Part = spans.ValueText(v)
		case spans.AttrVerdictSeverity:
			m.Bad = spans.ValueText(v) == spans.SeverityBad
		}
	}
}
