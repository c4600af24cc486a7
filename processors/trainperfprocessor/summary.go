package trainperfprocessor

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

// line is spans.AttrSummary as it is written: shares with one decimal between dots, other parts behind semicolons.
type line struct{ text []byte }

// share writes a share of the span's time. What is not known is left out.
func (l *line) share(name string, x float64) {
	if math.IsNaN(x) {
		return
	}
	if len(l.text) > 0 {
		l.text = append(l.text, " · "...)
	}
	l.text = append(append(l.text, name...), ' ')
	l.text = append(strconv.AppendFloat(l.text, 100*x, 'f', 1, 64), " %"...)
}

// part begins another part.
func (l *line) part(text string) {
	if len(l.text) > 0 {
		l.text = append(l.text, "; "...)
	}
	l.text = append(l.text, text...)
}

// put sets the attribute, if there is something to say, and returns the memory for the next.
func (l *line) put(span ptrace.Span) []byte {
	if len(l.text) > 0 {
		span.Attributes().PutStr(spans.AttrSummary, string(l.text))
	}
	return l.text
}
