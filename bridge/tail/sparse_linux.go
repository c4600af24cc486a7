package tail

import (
	"os"

	"golang.org/x/sys/unix"
)

// seekData returns the first offset at or after off that is not in a hole of a sparse file.
func seekData(f *os.File, off int64) (int64, bool) {
	to, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	return to, err == nil
}
