package trainmetricsconnector

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/spans"
)

func addBreakdown(b *spans.Batch, res spans.Resource, id int, window string, times map[string]float64) ptrace.Span {
	s := b.Add(res, spans.Span{
		Trace: pcommon.TraceID{2}, ID: spanID(id), Name: spans.SpanBreakdown, Is: spans.KindBreakdown, Start: base, End: base + 1e9, Source: spans.TimeDerived,
	})
	if window != "" {
		s.Attributes().PutStr(spans.AttrStepWindow, window)
	}
	for part, seconds := range times {
		s.Attributes().PutDouble(spans.StepTimePrefix+part, seconds)
		s.Attributes().PutDouble(spans.StepSumPrefix+part, 2*seconds)
	}
	return s
}

// Times are added up by part, verdicts are counted. A span with an impossible time counts as invalid.
func TestBreakdowns(t *testing.T) {
	c := newBed(t)
	b := spans.NewBatch("test", "")
	judged(addBreakdown(b, resourceA, 1, spans.WindowStep, map[string]float64{spans.PartCompute: 4, spans.PartWait: 1}), spans.VerdictStepSlow)
	addBreakdown(b, resourceA, 2, spans.WindowStep, map[string]float64{spans.PartCompute: 3, spans.PartUnattributed: 0.5})
	addBreakdown(b, resourceA, 3, spans.WindowPass, map[string]float64{spans.PartRPCSend: 0.25, spans.PartCompute: -1})
	addBreakdown(b, resourceA, 4, spans.WindowPass, map[string]float64{spans.PartRPCSend: math.Inf(1)})
	addBreakdown(b, resourceA, 5, "", map[string]float64{spans.PartGet: 7})
	addBreakdown(b, resourceA, 6, spans.WindowPass, map[string]float64{spans.PartPut: 7}).Attributes().PutBool(spans.AttrIncomplete, true)
	addBreakdown(b, resourceA, 7, spans.WindowStep, map[string]float64{spans.PartUnattributed: 100}).Attributes().PutBool(spans.AttrJoinPartial, true)
	c.consume(b.Traces())
	values := map[string]float64{}
	for name, p := range c.flushed(time.Second) {
		values[name] = p.value
	}
	assert.Equal(t, map[string]float64{
		prefix + "ml.step.time|[ml.step.part=compute ml.step.window=step]":                                                            7,
		prefix + "ml.step.time|[ml.step.part=collective.wait ml.step.window=step]":                                                    1,
		prefix + "ml.step.time|[ml.step.part=unattributed ml.step.window=step]":                                                       0.5,
		prefix + "ml.step.time|[ml.step.part=rpc.send ml.step.window=pass]":                                                           0.25,
		prefix + "ml.step.time|[ml.step.part=get]":                                                                                    7,
		prefix + "trainbridge.verdicts|[ml.step.window=step trainbridge.verdict.name=step_slow trainbridge.verdict.severity=warning]": 1,
		prefix + "trainbridge.incomplete.spans|[ml.step.window=pass]":                                                                 1,
	}, values)
	assertInvalid(t, c, 1) // an infinite time
}
