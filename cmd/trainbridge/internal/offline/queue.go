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

// queue calls the components after the receivers in a separate goroutine, while the receivers make the next spans. Without a queue, a receiver, which sends its
// batches one after another, would keep a single core busy with both. Only sums may come after a queue: a receiver does not learn which of its spans was
// refused.
type queue struct {
	consumer.Traces
	work chan func() // in order
	done chan struct{}

	mu       sync.Mutex
	err      error // the first
	returned bool  // the error was returned to a receiver
}

// newQueue starts the goroutine that calls next; queued is how many batches may wait.
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

// ConsumeTraces adds a batch to the queue, and waits for room. It returns the error of the first batch refused so far, mostly an earlier one: after a refusal
// no batch is passed to next.
func (q *queue) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	ctx = context.WithoutCancel(ctx) // the receiver may have ended when the work is done
	q.work <- func() {
		if q.refusal() != nil {
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

// refusal returns the error of the batch that was refused; nil: none was.
func (q *queue) refusal() error {
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
