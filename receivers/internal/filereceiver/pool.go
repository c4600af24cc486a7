package filereceiver

import "sync"

// Pool keeps what is done with for use again: growing it anew costs more than filling it. A sync.Pool would lose it at every collection.
// The zero value is ready.
type Pool[T any] struct {
	mu   sync.Mutex
	free []*T
}

// Get returns one that was put back, or a new one.
func (p *Pool[T]) Get() *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return new(T)
	}
	v := p.free[n-1]
	p.free = p.free[:n-1]
	return v
}

// Put keeps one, unless so many are kept already.
func (p *Pool[T]) Put(v *T, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < most {
		p.free = append(p.free, v)
	}
}
