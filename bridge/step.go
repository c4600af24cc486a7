package bridge

import (
	"context"

	"go.opentelemetry.io/otel/attribute"

	"github.com/trainbridge/trainbridge/spans"
)

// sourceGo is the value of spans.AttrSource: who stated the step.
var sourceGo = attribute.String(spans.AttrSource, "go")

// StartStep starts the span of a training step, like the receivers' span of a record. Where ctx has neither a current span nor a trace id, the step joins the
// trace of its iteration, as by [WithStep]; the id of another iteration does not count. The span's length is the time of the step.
//
//	ctx, s := b.StartStep(ctx, iteration)
//	defer s.End()
func (b *Bridge) StartStep(ctx context.Context, iteration int64, attrs ...attribute.KeyValue) (context.Context, *Span) {
	var j *join
	if known := joinOf(ctx); known == nil || known.step && known.iteration != iteration {
		j = &join{iteration: iteration, step: true}
	}
	ctx, s := b.begin(ctx, kindStep, spans.SpanStep, j)
	s.set(attrs, is[kindStep], timeLogged, sourceGo, attribute.Int64(spans.AttrIteration, iteration))
	return ctx, s
}
