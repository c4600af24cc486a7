//go:build race && (amd64 || arm64)

package lockorder

import (
	"fmt"
	"slices"
	"sync"
)

// Mutex is a sync.Mutex of a level.
type Mutex[L Level] struct {
	mu sync.Mutex
	by uintptr // the goroutine that holds the lock
}

// Lock is sync.Mutex.Lock.
func (m *Mutex[L]) Lock() {
	by := take[L]()
	m.mu.Lock()
	m.by = by
}

// TryLock is sync.Mutex.TryLock. A TryLock never waits, and may be out of order; a later Lock may not.
func (m *Mutex[L]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.by = takeUnchecked[L]()
	return true
}

// Unlock is sync.Mutex.Unlock.
func (m *Mutex[L]) Unlock() {
	drop[L](m.by)
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex of a level.
type RWMutex[L Level] struct {
	mu sync.RWMutex
	by uintptr // the goroutine that holds the lock for writing
}

// Lock is sync.RWMutex.Lock.
func (m *RWMutex[L]) Lock() {
	by := take[L]()
	m.mu.Lock()
	m.by = by
}

// Unlock is sync.RWMutex.Unlock.
func (m *RWMutex[L]) Unlock() {
	drop[L](m.by)
	m.mu.Unlock()
}

// RLock is sync.RWMutex.RLock. A second reader of the same level would wait for a writer waiting for the first reader, so a second RLock is out of order too.
func (m *RWMutex[L]) RLock() {
	take[L]()
	m.mu.RLock()
}

// TryRLock is sync.RWMutex.TryRLock, in any order like TryLock.
func (m *RWMutex[L]) TryRLock() bool {
	if !m.mu.TryRLock() {
		return false
	}
	takeUnchecked[L]()
	return true
}

// RUnlock is sync.RWMutex.RUnlock.
func (m *RWMutex[L]) RUnlock() {
	drop[L](goroutine())
	m.mu.RUnlock()
}

// held are the levels held by each goroutine, in the order of locking.
var held = struct {
	sync.Mutex
	by map[uintptr][]int
}{by: map[uintptr][]int{}}

// take checks the order, records a level, and returns the goroutine.
func take[L Level]() (g uintptr) {
	var l L
	level, under := l.Level(), l.Under()
	g = goroutine()
	held.Lock()
	defer held.Unlock()
	for _, has := range held.by[g] {
		mayHaveSeveral := under != 0 && slices.Contains(held.by[g], under)
		if has > level || has == level && !mayHaveSeveral {
			panic(fmt.Sprintf("lock order: %T (level %d) is taken by one who holds levels %v", l, level, held.by[g]))
		}
	}
	held.by[g] = append(held.by[g], level)
	return g
}

// takeUnchecked is take without the order check: the calling goroutine holds level L from here on. For TryLock and TryRLock, which never wait and so cannot
// deadlock.
func takeUnchecked[L Level]() (g uintptr) {
	var l L
	g = goroutine()
	held.Lock()
	defer held.Unlock()
	held.by[g] = append(held.by[g], l.Level())
	return g
}

// drop removes a level of the goroutine at an Unlock: the one taken last, of several.
func drop[L Level](g uintptr) {
	var l L
	held.Lock()
	defer held.Unlock()
	has := held.by[g]
	for i := len(has) - 1; i >= 0; i-- {
		if has[i] == l.Level() {
			has = slices.Delete(has, i, i+1)
			break
		}
	}
	held.by[g] = has
	if len(has) == 0 {
		delete(held.by, g)
	}
}

// goroutine returns the address of the runtime's record of the calling goroutine. Go offers no identity of goroutines but their number in runtime.Stack, and
// writing the stack would take half of the time of the tests.
func goroutine() uintptr
