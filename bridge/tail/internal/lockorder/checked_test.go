//go:build race && (amd64 || arm64)

package lockorder

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

type (
	outer struct{}
	many  struct{}
	inner struct{}
)

func (outer) Level() int { return 1 }
func (outer) Under() int { return 0 }
func (many) Level() int  { return 2 }
func (many) Under() int  { return 1 }
func (inner) Level() int { return 3 }
func (inner) Under() int { return 0 }

// Each broken order panics before anybody waits, and is forgotten with the locks.
func TestOrder(t *testing.T) {
	var a Mutex[outer]
	var b, c Mutex[many]
	var d RWMutex[inner]
	a.Lock()
	b.Lock()
	c.Lock() // several, since a is held
	assert.False(t, c.TryLock())
	d.RLock()
	assert.PanicsWithValue(t, "lock order: lockorder.many (level 2) is taken by one who holds levels [1 2 2 3]", func() { b.Lock() })
	assert.Panics(t, d.RLock, "no lock of a level twice")
	assert.Panics(t, a.Lock)
	d.RUnlock()
	c.Unlock()
	b.Unlock()
	a.Unlock() // not in the reverse order of locking

	b.Lock()
	assert.Panics(t, c.Lock, "several only under a")
	assert.True(t, c.TryLock(), "who does not wait may come out of order")
	c.Unlock()
	assert.Panics(t, a.Lock)
	other := make(chan struct{})
	go func() {
		defer close(other)
		a.Lock() // the locks of other goroutines do not matter
		a.Unlock()
	}()
	<-other
	d.Lock()
	d.Unlock()
	b.Unlock()
	assert.Empty(t, held.by)
}

// A condition's wait releases the lock.
func TestCond(t *testing.T) {
	var a Mutex[outer]
	cond, ready := sync.NewCond(&a), false
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Lock()
		for !ready {
			cond.Wait()
		}
		a.Unlock()
	}()
	a.Lock()
	ready = true
	cond.Broadcast()
	a.Unlock()
	<-done
	assert.Empty(t, held.by)
}
