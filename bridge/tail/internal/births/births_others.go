//go:build !linux

package births

import (
	"context"
	"errors"
)

// Listener needs inotify.
type Listener struct{}

// Open returns errors.ErrUnsupported.
func Open() (*Listener, error) { return nil, errors.ErrUnsupported }

// Add and Listen do nothing.
func (*Listener) Add(string) error                           { return nil }
func (*Listener) close()                                     {}
func (*Listener) Listen(context.Context, func(string, bool)) {}
