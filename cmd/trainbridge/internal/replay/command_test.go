package replay

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/trainbridge/trainbridge/internal/refusal"
	"github.com/trainbridge/trainbridge/spans"
)

// backend answers every request alike.
type backend struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.ConsumeTracesFunc
}

func (backend) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func answering(err error) backend {
	return backend{ConsumeTracesFunc: func(context.Context, ptrace.Traces) error { return err }}
}

// Spans that a backend refuses for good are reported at the end, with an error. Any other error ends the reading.
func TestRefusedSpans(t *testing.T) {
	batch := spans.NewBatch("test", "")
	aStep(batch, 1, 1.79e18, spans.TimeLogged)
	aStep(batch, 2, 1.7e18, spans.TimeSynthetic)
	for _, tt := range []struct {
		err        error
		ended      bool
		said, want string
	}{
		{err: nil, said: "Sent 2 spans to jaeger:4317, of 2026-09-21 14:13:19 to 2026-09-21 14:13:20 UTC.\n"},
		{err: consumererror.NewPermanent(errors.New("too large")), want: "replay: --endpoint jaeger:4317 refused some spans for good: "},
		{
			err: consumererror.NewPermanent(&refusal.Partial{Rejected: 1, Message: "too old"}), want: "rejected 1 items of a request that it accepted: too old",
			said: "Sent 1 spans to jaeger:4317, of 2026-09-21 14:13:19 to 2026-09-21 14:13:20 UTC.\n",
		},
		{err: consumererror.NewPermanent(&refusal.Partial{Rejected: 2}), want: "rejected 2 items"},
		{err: errors.New("away"), ended: true},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &sending{cancel: cancel, traces: answering(tt.err), first: ^pcommon.Timestamp(0)}
		td := ptrace.NewTraces()
		batch.Traces().CopyTo(td)
		require.ErrorIs(t, s.sink().Traces.ConsumeTraces(ctx, td), tt.err)
		assert.Equal(t, tt.ended, ctx.Err() != nil)
		if tt.ended {
			require.ErrorContains(t, context.Cause(ctx), "the traces are not accepted: away")
		}
		cancel(nil)
		var out bytes.Buffer
		err := s.report(&out, options{endpoint: "jaeger:4317"})
		if tt.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tt.want)
		}
		assert.Equal(t, tt.said, out.String())
		assert.Nil(t, s.sink().Metrics, "not wanted")
	}
}
