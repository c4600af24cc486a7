// Package instances keeps what the instances of one component have in common: the collector makes an instance of it per signal and pipeline.
package instances

import (
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Shared has one value for each component id that is in use.
type Shared[T any] struct {
	make func() T
	mu   sync.Mutex
	used map[component.ID]*used[T]
}

type used[T any] struct {
	value T
	users int
}

// New returns a Shared that makes a value where an id has none.
func New[T any](value func() T) *Shared[T] {
	return &Shared[T]{make: value, used: make(map[component.ID]*used[T])}
}

// Use gives the value of a component, and what its instance calls when it no longer needs it. The last such call drops the value.
func (s *Shared[T]) Use(id component.ID) (value T, release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.used[id]
	if !ok {
		u = &used[T]{value: s.make()}
		s.used[id] = u
	}
	u.users++
	return u.value, sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if u.users--; u.users == 0 {
			delete(s.used, id)
		}
	})
}
