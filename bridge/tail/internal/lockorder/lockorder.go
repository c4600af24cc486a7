// Package lockorder gives mutexes a place in an order, which excludes deadlocks: the holder of a lock takes only locks of higher levels.
//
// Under the race detector, on amd64 and arm64, every Lock is checked, and a Lock out of order panics, even without a waiting goroutine. Otherwise the mutexes
// are the plain mutexes of package sync.
package lockorder

// Level is a place in the order. Its methods are called on the zero value, so a lock needs no constructor.
type Level interface {
	// Level is higher for locks taken later.
	Level() int
	// Under is the level of the lock whose holder may take several locks of this level. 0: nobody may.
	Under() int
}
