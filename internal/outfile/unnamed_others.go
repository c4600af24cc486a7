//go:build !linux

package outfile

import (
	"errors"
	"os"
)

func unnamed(dir, _ string, _ uint32) (*os.File, error) { return removed(dir) }

func link(*os.File, string) error { return errors.ErrUnsupported }
