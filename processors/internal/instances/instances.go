// Package instances shares values between the instances of one component: the collector creates an instance per signal and pipeline.
package instances

import (
	"sync"

	"go.opentelemetry.io/collector/component"
)

// Shared has a value per component id in use.
type Shared[T any] struct {
	make func() T
	mu   sync.Mutex
	used map[component.ID]*used[T]
}

// used is the value of a component id.
type used[T any] struct {
	value T
	users int // instances that have not released the value
}

// New returns a Shared. value makes the value at the first Use of an id.
func New[T any](value func() T) *Shared[T] {
	return &Shared[T]{make: value, used: make(map[component.ID]*used[T])}
}

// Use returns the value of a component id, and a function that releases it. The last release drops the value.
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
