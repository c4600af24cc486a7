package show

import (
	"github.com/trainbridge/trainbridge/cmd/trainbridge/internal/tables"
	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/internal/traces/tree"
	"github.com/trainbridge/trainbridge/spans"
)

// palette colours text with ANSI escapes, or not.
type palette bool

func (p palette) paint(code, s string) string {
	if !p || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (p palette) bold(s string) string { return p.paint("1", s) }
func (p palette) dim(s string) string  { return p.paint("2", s) }

var severityColour = map[string]string{spans.SeverityBad: "31", spans.SeverityWarning: "33", tables.Head: "1", tables.Fine: "32"}

// ofParent is the share that a span has of its parent's time.
func ofParent(s *tree.Span) []string {
	whole := s.Parent.NS()
	if whole == 0 {
		return nil
	}
	return []string{human.Percent(float64(s.NS()) / float64(whole))}
}
