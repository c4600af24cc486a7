package show

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// severityColour is the ANSI code of a severity, and of the head and the good values of a table.
var severityColour = map[string]string{spans.SeverityBad: "31", spans.SeverityWarning: "33", tables.Head: "1", tables.Fine: "32"}

// shareOfParent returns the share of a span in the time of its parent, as a text ("12 %"); nil if the parent took no time.
func shareOfParent(s *tree.Span) []string {
	whole := s.Parent.NS()
	if whole == 0 {
		return nil
	}
	return []string{human.Percent(float64(s.NS()) / float64(whole))}
}
