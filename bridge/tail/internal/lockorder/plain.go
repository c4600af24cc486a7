//go:build !race || !(amd64 || arm64)

package lockorder

import (
	"sync"
)

// Mutex is a sync.Mutex of a level.
type Mutex[L Level] struct{ sync.Mutex }

// RWMutex is a sync.RWMutex of a level.
type RWMutex[L Level] struct{ sync.RWMutex }
