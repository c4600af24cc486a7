//go:build race

package lockorder

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Mutex is a sync.Mutex of a level.
type Mutex[L Level] struct {
	mu sync.Mutex
	by string // the goroutine that holds it
}

// Lock is sync.Mutex.Lock.
func (m *Mutex[L]) Lock() {
	by := take[L]()
	m.mu.Lock()
	m.by = by
}

// TryLock is sync.Mutex.TryLock. It waits for nobody, so it may come out of order; a Lock after it may not.
func (m *Mutex[L]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.by = note[L]()
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
	by string // the goroutine that holds it for writing
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

// RLock is sync.RWMutex.RLock. A second reader of the same level would wait for a writer that waits for the first reader, so a second RLock is out of order
// too.
func (m *RWMutex[L]) RLock() {
	take[L]()
	m.mu.RLock()
}

// TryRLock is sync.RWMutex.TryRLock; it may come out of order as TryLock may.
func (m *RWMutex[L]) TryRLock() bool {
	if !m.mu.TryRLock() {
		return false
	}
	note[L]()
	return true
}

// RUnlock is sync.RWMutex.RUnlock.
func (m *RWMutex[L]) RUnlock() {
	drop[L](goroutine())
	m.mu.RUnlock()
}

// held are the levels that each goroutine holds, in the order in which it took them.
var held = struct {
	sync.Mutex
	by map[string][]int
}{by: map[string][]int{}}

// take checks the order, notes a level, and returns who takes it.
func take[L Level]() (g string) {
	var l L
	level, under := l.Level(), l.Under()
	g = goroutine()
	held.Lock()
	defer held.Unlock()
	for _, has := range held.by[g] {
		if has > level || has == level && (under == 0 || !slices.Contains(held.by[g], under)) {
			panic(fmt.Sprintf("lock order: %T (level %d) is taken by one who holds levels %v", l, level, held.by[g]))
		}
	}
	held.by[g] = append(held.by[g], level)
	return g
}

// note notes a level out of order, and returns who takes it.
func note[L Level]() (g string) {
	var l L
	g = goroutine()
	held.Lock()
	defer held.Unlock()
	held.by[g] = append(held.by[g], l.Level())
	return g
}

// drop forgets a level that the goroutine has taken.
func drop[L Level](g string) {
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
	if held.by[g] = has; len(has) == 0 {
		delete(held.by, g)
	}
}

// goroutine is the number of the one that calls, which only its stack says: "goroutine 7 [running]:". Writing the stack takes longer than all else here, so
// that the mutexes remember who holds them.
func goroutine() string {
	var b [64]byte
	_, rest, _ := bytes.Cut(b[:runtime.Stack(b[:], false)], []byte("goroutine "))
	number, _, _ := bytes.Cut(rest, []byte(" "))
	return string(number)
}
