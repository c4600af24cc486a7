package steps

import (
	"math"
	"strconv"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/human"
)

// summarize writes one line about a step with a verdict on its span: "step 114 · 5.4 s · loss 7.74 · MFU 20.9% · 65.1 TFLOP/s per device". Without a verdict
// nothing is written.
func (j *judge) summarize(span ptrace.Span) {
	if j.sheet.Empty() { // the step's numbers are attributes
		return
	}
	l := &j.line
	l.Begin()
	if j.place.OK {
		l.Item("step ")
		l.Text = strconv.AppendInt(l.Text, j.place.N, 10)
	}
	number := len(l.Text) // length of the step's number
	if positive(j.seconds) {
		l.Item("")
		l.Text = human.AppendSeconds(l.Text, j.seconds)
		if j.covered > 1 {
			l.Text = append(l.Text, " (mean of "...)
			l.Text = append(strconv.AppendInt(l.Text, int64(j.covered), 10), " steps)"...)
		}
	}
	switch notFinite := j.Loss.NotFinite(); {
	case notFinite != "":
		l.Item("loss ")
		l.Text = append(l.Text, notFinite...)
	case !math.IsNaN(j.Loss.Value):
		l.Item("loss ")
		l.Text = human.AppendDigits(l.Text, j.Loss.Value)
	}
	if positive(j.mfu) {
		l.Share("MFU", j.mfu)
	}
	if positive(j.device) {
		l.Item("")
		l.Text = append(human.AppendFlops(l.Text, j.device), " per device"...)
	}
	if len(l.Text) > number { // the number of the step alone is no news
		l.Put(span)
	}
}
