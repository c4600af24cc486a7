//go:build !linux

package inotify

import (
	"context"
	"errors"
	"time"
)

// Listener needs inotify.
type Listener struct{}

// Open returns errors.ErrUnsupported.
func Open(time.Duration, func()) (*Listener, error) { return nil, errors.ErrUnsupported }

// Add, Forget, Hints, Births and Close do nothing.
func (*Listener) Add(string) (bool, error)                   { return false, nil }
func (*Listener) Forget(func(string) bool)                   {}
func (*Listener) Hints() Hints                               { return Hints{} }
func (*Listener) Births(context.Context, func(string, bool)) {}
func (*Listener) Close()                                     {}
