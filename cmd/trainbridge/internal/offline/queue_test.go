package offline

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Batches are done in order before close returns. After an error nothing more is passed on, and the error is returned once: to a receiver or by close.
func TestQueue(t *testing.T) {
	t.Parallel()
	refused := errors.New("no space left")
	for _, failing := range []int{-1, 0, 99} {
		var got []int
		gate := make(chan struct{}, 100)
		next, err := consumer.NewTraces(func(_ context.Context, td ptrace.Traces) error {
			<-gate
			n := td.SpanCount()
			got = append(got, n)
			if n-1 == failing {
				return refused
			}
			return nil
		})
		require.NoError(t, err)
		q := newQueue(next, queuedFirst)
		var errs []error
		ended := 0
		for i := range 100 {
			td := ptrace.NewTraces()
			list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for range i + 1 {
				list.AppendEmpty()
			}
			gate <- struct{}{}
			if err := q.ConsumeTraces(t.Context(), td); err != nil {
				errs = append(errs, err)
				break
			}
		}
		q.work <- func() { ended = len(got) }
		if err := q.close(); err != nil {
			errs = append(errs, err)
		}
		assert.Len(t, got, ended)
		for i, n := range got {
			assert.Equal(t, i+1, n)
		}
		if failing < 0 {
			assert.Len(t, got, 100)
			assert.Empty(t, errs)
		} else {
			assert.Len(t, got, failing+1)
			assert.Equal(t, []error{refused}, errs)
		}
	}
}
