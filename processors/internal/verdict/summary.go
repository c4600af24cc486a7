package verdict

import (
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
	"github.com/trainbridge/trainbridge/spans"
)

// Summary is spans.AttrSummary as it is written: shares between dots, other parts behind semicolons. Its memory is used again.
type Summary struct{ Text []byte }

// Begin starts the summary of the next span.
func (s *Summary) Begin() { s.Text = s.Text[:0] }

// Share writes a share of the span's time. A share that is not known (NaN) is left out.
func (s *Summary) Share(name string, x float64) {
	if math.IsNaN(x) {
		return
	}
	s.Item(name)
	s.Text = human.AppendPercent(append(s.Text, ' '), x)
}

// Item begins what stands between dots.
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

// Put sets the attribute, if there is something to say.
func (s *Summary) Put(span ptrace.Span) {
	if len(s.Text) > 0 {
		span.Attributes().PutStr(spans.AttrSummary, string(s.Text))
	}
}
