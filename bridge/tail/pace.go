package tail

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
)

// paceAhead is the share of files by which a Once may be ahead of the slowest.
const paceAhead = 0.02

// Pace keeps several Once side by side: logs of one job cover the same time, and related lines are then read together, whatever the sizes of the files. The
// zero value is ready.
type Pace struct {
	mu      sync.Mutex
	changed sync.Cond
	at      map[*Tailer]float64 // the share of its files read by each
}

// join adds a Tailer that will read. A nil Pace does nothing, as in the other methods.
func (p *Pace) join(t *Tailer) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at == nil {
		p.at, p.changed.L = make(map[*Tailer]float64), &p.mu
	}
	p.at[t] = 0
}

// leave is called when a Tailer has read all.
func (p *Pace) leave(t *Tailer) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.at, t)
	p.changed.Broadcast()
}

// wait waits until no other Tailer is behind by more than paceAhead, before a Once reads on. When ctx ends, the slowest, which never waits, leaves and wakes
// the rest.
func (p *Pace) wait(ctx context.Context, t *Tailer) {
	if p == nil {
		return
	}
	read := t.shareRead()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[t] = read
	p.changed.Broadcast()
	for ctx.Err() == nil && p.slowest() < read-paceAhead {
		p.changed.Wait()
	}
}

// slowest returns the smallest share of its files that a Tailer has read, 0 to 1.
func (p *Pace) slowest() float64 {
	least := 1.0
	for _, at := range p.at {
		least = min(least, at)
	}
	return least
}

// shareRead returns the share of a Tailer's files that was read, 0 to 1.
func (t *Tailer) shareRead() float64 {
	return share(t.size.Load(), t.lag.Load())
}

// share returns the share that was read of size bytes, of which lag bytes are unread; 1 without bytes.
func share(size, lag int64) float64 {
	if size <= 0 {
		return 1
	}
	return float64(size-lag) / float64(size)
}

// queued is a stream in a queue.
type queued struct {
	*Stream
	read float64 // the share of its files read when queued
}

// sideBySide is a heap of a Once's waiting streams: the stream with the smallest share read is next, ties by number (sweeper.numberStreams). Files of one job
// are thus read side by side, in the same order each time.
type sideBySide []queued

func (q sideBySide) Len() int { return len(q) }
func (q sideBySide) Less(i, j int) bool {
	return q[i].read < q[j].read || q[i].read == q[j].read && q[i].number < q[j].number
}
func (q sideBySide) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sideBySide) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *sideBySide) Pop() any {
	old := *q
	s := old[len(old)-1]
	old[len(old)-1] = queued{}
	*q = old[:len(old)-1]
	return s
}

// next takes the stream with the smallest share read. A stream that has advanced since it was queued moves back.
func (q *sideBySide) next() *Stream {
	for {
		first := &(*q)[0]
		read := first.share()
		if read <= first.read {
			return heap.Pop(q).(queued).Stream
		}
		first.read = read
		heap.Fix(q, 0)
	}
}

// order makes a heap of the streams' present shares.
func (q sideBySide) order() {
	for i := range q {
		q[i].read = q[i].share()
	}
	heap.Init(&q)
}

// share returns the share of the stream's files that was read, 0 to 1.
func (s *Stream) share() float64 { return share(s.size.Load(), s.lag.Load()) }

// numberStreams numbers the streams in the order of their paths. In the order of discovery, a file assigned by its content would be late, depending on the work
// of other receivers.
func (w *sweeper) numberStreams() {
	for i, path := range slices.Sorted(maps.Keys(w.streams)) {
		w.streams[path].number = i
	}
}
