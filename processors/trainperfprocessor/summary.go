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
	l.item(name)
	l.text = append(l.text, ' ')
	l.text = append(strconv.AppendFloat(l.text, 100*x, 'f', 1, 64), " %"...)
}

// item begins what stands between dots.
func (l *line) item(text string) {
	if len(l.text) > 0 {
		l.text = append(l.text, " · "...)
	}
	l.text = append(l.text, text...)
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

// summarize writes what the step is in one line: "step 114 · 5.402 s · loss 7.738 · MFU 20.9 % · 65.1 TFLOP/s per device".
func (w *work) summarize(span ptrace.Span, s *scratch) {
	l := line{s.text[:0]}
	if w.hasIteration {
		l.item("step ")
		l.text = strconv.AppendInt(l.text, w.iteration, 10)
	}
	number := len(l.text)
	if positive(w.seconds) {
		l.item("")
		l.text = append(strconv.AppendFloat(l.text, w.seconds, 'g', 4, 64), " s"...)
		if w.covered > 1 {
			l.text = append(l.text, " (mean of "...)
			l.text = append(appendInt(l.text, int(w.covered)), " steps)"...)
		}
	}
	switch {
	case w.lossNotFinite != "":
		l.item("loss " + w.lossNotFinite)
	case !math.IsNaN(w.loss):
		l.item("loss ")
		l.text = strconv.AppendFloat(l.text, w.loss, 'g', 4, 64)
	}
	if positive(w.mfu) {
		l.share("MFU", w.mfu)
	}
	if positive(w.device) {
		l.item("")
		l.text = append(strconv.AppendFloat(l.text, w.device/1e12, 'f', 1, 64), " TFLOP/s per device"...)
	}
	if s.text = l.text; len(l.text) > number { // which alone is no news
		l.put(span)
	}
}
