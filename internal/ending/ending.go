// Package ending has one end for all that a process still sends after it was told to stop. A collector stops its components one after the other, with no time
// limit: each would wait by itself for a backend that is away.
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
