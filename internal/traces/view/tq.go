package view

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// shares is the number of a function's stages with a share of its time: spans.TQGet, TQCompute and TQPut, as indices.
const shares = 3

// finish derives the stage from the span's name, without an attribute.
func (s *Stage) finish(span ptrace.Span) {
	if !s.ownStage {
		s.Stage = spans.TQStageNamed(span.Name())
	}
}
