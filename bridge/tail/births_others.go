//go:build !linux

package tail

import (
	"context"
	"errors"
)

// births needs inotify.
type births struct{}

func openBirths() (*births, error) { return nil, errors.ErrUnsupported }

func (*births) add(string) error                           { return nil }
func (*births) close()                                     {}
func (*births) listen(context.Context, func(string, bool)) {}
