package offline

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// How many batches may wait: enough that neither side waits for the other, and a few MB.
const (
	queuedFirst = 2
	queuedLast  = 1 // joined spans come thousands at once
)

// queue has what comes behind the receivers work in a goroutine of its own, while they make the next spans: one receiver sends its batches one after the other,
// and so would keep one core busy with both. It is for sums: a receiver cannot learn which of its spans was refused.
type queue struct {
	consumer.Traces
	work chan func() // in order
	done chan struct{}

	mu   sync.Mutex
	err  error // the first
	told bool  // a receiver knows of it
}

func newQueue(next consumer.Traces, queued int) *queue {
	q := &queue{Traces: next, work: make(chan func(), queued), done: make(chan struct{})}
	go func() {
		defer close(q.done)
		for do := range q.work {
			do()
		}
	}()
	return q
}

// ConsumeTraces fails for good when a batch was refused, be it an earlier one.
func (q *queue) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx = context.WithoutCancel(ctx) // the receiver may have ended when it is done
	q.work <- func() {
		if q.failed() != nil {
			return
		}
		err := q.Traces.ConsumeTraces(ctx, td)
		q.mu.Lock()
		q.err = err
		q.mu.Unlock()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.told = q.err != nil
	return q.err
}

func (q *queue) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// close returns when all that was put is done, with the error that no receiver knows of.
func (q *queue) close() error {
	close(q.work)
	<-q.done
	if q.told {
		return nil
	}
	return q.err
}
