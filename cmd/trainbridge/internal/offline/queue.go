package offline

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Batches that may wait: enough to keep both sides busy, and a few MB.
const (
	queuedFirst = 2
	queuedLast  = 1 // joined spans come thousands at once
)

// queue runs the components behind the receivers in a goroutine of its own, while the receivers make the next spans: without a queue, a receiver, which sends
// its batches one after another, would keep a single core busy with both. Only sums may come behind a queue: a receiver does not learn which of its spans was
// refused.
type queue struct {
	consumer.Traces
	work chan func() // in order
	done chan struct{}

	mu       sync.Mutex
	err      error // the first
	returned bool  // the error was returned to a receiver
}

// newQueue starts the goroutine that calls next; as many batches as queued may wait.
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

// ConsumeTraces queues a batch, waiting for room. The error is that of the first batch refused so far, mostly an earlier one: after a refusal nothing is passed
// on any more.
func (q *queue) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx = context.WithoutCancel(ctx) // the receiver may have ended when the work is done
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
	q.returned = q.err != nil
	return q.err
}

// failed returns the error of the batch that was refused, nil if none was.
func (q *queue) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// close returns when all work is done, with the error of a refused batch if no receiver has got the error yet.
func (q *queue) close() error {
	close(q.work)
	<-q.done
	if q.returned {
		return nil
	}
	return q.err
}
