package tail

import (
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
	size, lag := int64(0), int64(0)
	for _, s := range t.sweeper.streams {
		size += s.size.Load()
		lag += s.lag.Load()
	}
	return share(size, lag)
}

// share is how much of so many bytes is read where so many are left, of 1.
func share(size, lag int64) float64 {
	if size <= 0 {
		return 1
	}
	return float64(size-lag) / float64(size)
}

// leastRead is the place of the stream that has read the least of its files, of equal ones the one of the first path: files of one job that are read to
// their end are read side by side, and in the same order each time.
func leastRead(queue []*Stream) (at int) {
	least := 2.0
	for i, s := range queue {
		if read := share(s.size.Load(), s.lag.Load()); read < least || read == least && s.number < queue[at].number {
			least, at = read, i
		}
	}
	return at
}

// number numbers the streams in the order of their paths. In the order they were found in, a file would come late whose receiver was found by its content, and
// the later the longer another receiver looked at others.
func (w *sweeper) number() {
	for i, path := range slices.Sorted(maps.Keys(w.streams)) {
		w.streams[path].number = i
	}
}
