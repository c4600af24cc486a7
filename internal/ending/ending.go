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

// Context ends when ctx does, or when the process sends nothing any more.
func Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(over, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}
