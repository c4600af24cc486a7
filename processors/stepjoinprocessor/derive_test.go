package stepjoinprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/breakdown"
	"github.com/trainbridge/trainbridge/processors/stepjoinprocessor/internal/facts"
)

// A record of ten steps in 10 s has timers' means per step, or their sums; evaluations between its steps do not change how the other timers are read.
func TestParts(t *testing.T) {
	const ms = 1_000_000
	w := &facts.Window{Kind: facts.Step, Span: pcommon.SpanID{1}, End: 10_000 * ms, Steps: 10}
	for name, c := range map[string]struct {
		timer, evaluation int64 // ms
		factor            float64
		between           bool
	}{
		"means":                             {900, 0, 10, false},
		"sums":                              {9000, 0, 1, false},
		"means, an evaluation in the steps": {500, 400, 10, false},
		"sums, an evaluation in the steps":  {5000, 4000, 1, false},
		"means, an evaluation between":      {900, 15_000, 10, true},
		"sums, an evaluation between":       {9000, 15_000, 1, true},
	} {
		d := &deriver{parents: map[pcommon.SpanID]pcommon.SpanID{}}
		g := &facts.Group{Own: []facts.Leaf{
			{Span: pcommon.SpanID{2}, Parent: w.Span, End: c.timer * ms, Kind: breakdown.Unattributed},
			{Span: pcommon.SpanID{3}, Parent: w.Span, End: c.evaluation * ms, Kind: breakdown.Evaluation},
		}}
		assert.InDelta(t, c.factor, d.readParts(g, w), 0, name)
		assert.Equal(t, c.between, d.between, name)
	}
}
