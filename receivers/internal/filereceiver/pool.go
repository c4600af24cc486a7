package filereceiver

import "sync"

// Pool keeps values for use again: to grow their memory anew costs more than to fill it. A sync.Pool would lose them at every garbage collection.
// The zero value is ready.
type Pool[T any] struct {
	mu   sync.Mutex
	free []*T
}

// Get returns a value that was put back, or a new one.
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

// Put keeps a value, unless most are kept already.
func (p *Pool[T]) Put(v *T, most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) < most {
		p.free = append(p.free, v)
	}
}
