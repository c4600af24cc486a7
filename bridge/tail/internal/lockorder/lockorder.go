// Package lockorder gives mutexes a place in an order, so that two goroutines never wait for each other: who holds a lock takes only locks of higher levels.
//
// Under the race detector every Lock is checked, and a Lock that comes out of order panics, whether or not another goroutine waits just then. Without it the
// mutexes are the plain ones of package sync.
package lockorder

// Level is a place in the order. Its zero value is asked, so a lock needs no making.
type Level interface {
	// Level is higher for locks that are taken later.
	Level() int
	// Under is the level of the lock whose holder may take several locks of this level. 0: nobody may.
	Under() int
}
