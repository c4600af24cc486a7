//go:build !linux

package osfile

import (
	"os"
)

// SeekData does not know.
func SeekData(*os.File, int64) (int64, bool) { return 0, false }
