package verdict

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

// Summary is the text of spans.AttrSummary: shares between dots, then parts behind semicolons. The buffer is reused.
type Summary struct{ Text []byte }

// Begin starts the summary of the next span.
func (s *Summary) Begin() { s.Text = s.Text[:0] }

// Share writes a share of the span's time, unless NaN.
func (s *Summary) Share(name string, x float64) {
	if math.IsNaN(x) {
		return
	}
	s.Item(name)
	s.Text = human.AppendPercent(append(s.Text, ' '), x)
}

// Item begins an item between dots.
func (s *Summary) Item(text string) {
	if len(s.Text) > 0 {
		s.Text = append(s.Text, " · "...)
	}
	s.Text = append(s.Text, text...)
}

// Part begins another part.
func (s *Summary) Part(text string) {
	if len(s.Text) > 0 {
		s.Text = append(s.Text, "; "...)
	}
	s.Text = append(s.Text, text...)
}

// Put sets the attribute, unless the text is empty.
func (s *Summary) Put(span ptrace.Span) {
	if len(s.Text) > 0 {
		span.Attributes().PutStr(spans.AttrSummary, string(s.Text))
	}
}
