package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// shares are the stages of a function that have a share of its time: spans.TQGet, TQCompute and TQPut, which index them.
const shares = 3

// finish tells the stage from the span's name, where no attribute does.
func (s *Stage) finish(span ptrace.Span) {
	if !s.ownStage {
		s.Stage = spans.TQStageNamed(span.Name())
	}
}
