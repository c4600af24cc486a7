// Package ending has one deadline for everything that a process sends after the signal to stop. A collector stops its components one after the other, without a
// time limit: each would wait separately for an unreachable backend.
package ending

import (
	"context"
	"time"
)

var over, stop = context.WithCancel(context.Background())

// After has all contexts of Context end after d, for good.
func After(d time.Duration) { time.AfterFunc(d, stop) }

// Context is a context for a request of the process. It ends when ctx does, or at the deadline of After. The caller calls the function when the request is
// done.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(over, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}
