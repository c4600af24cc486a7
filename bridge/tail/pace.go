package tail

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"
)

// paceAhead is by which share of its files a Once may be ahead of the slowest one.
const paceAhead = 0.02

// Pace has several Once go through their files side by side: logs of one job cover the same time, and what belongs together is then met together, whatever the
// sizes of the files. The zero value is ready.
type Pace struct {
	mu      sync.Mutex
	changed sync.Cond
	at      map[*Tailer]float64 // the share of its files that each has read
}

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

// wait waits until no other Tailer is far behind.
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

func (p *Pace) slowest() float64 {
	least := 1.0
	for _, at := range p.at {
		least = min(least, at)
	}
	return least
}

// shareRead is how much of its files a Tailer has read, of 1.
func (t *Tailer) shareRead() float64 {
	return share(t.size.Load(), t.lag.Load())
}

// share is how much of so many bytes is read where so many are left, of 1.
func share(size, lag int64) float64 {
	if size <= 0 {
		return 1
	}
	return float64(size-lag) / float64(size)
}

// queued is a stream that waits in a queue.
type queued struct {
	*Stream
	read float64 // how much of its files was read when it came, of 1
}

// sideBySide are the streams of a Once that wait, as a heap: the one that has read the least of its files goes on first, of equal ones the one of the first
// path. Files of one job that are read to their end are read side by side, and in the same order each time.
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

// next takes the stream that has read least. One that has read on since it came has its place behind others.
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

// order makes a heap of streams as they are now.
func (q sideBySide) order() {
	for i := range q {
		q[i].read = q[i].share()
	}
	heap.Init(&q)
}

// share is how much of its files a stream has read, of 1.
func (s *Stream) share() float64 { return share(s.size.Load(), s.lag.Load()) }

// number numbers the streams in the order of their paths. In the order they were found in, a file would come late whose receiver was found by its content, and
// the later the longer another receiver looked at others.
func (w *sweeper) number() {
	for i, path := range slices.Sorted(maps.Keys(w.streams)) {
		w.streams[path].number = i
	}
}
