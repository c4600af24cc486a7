package osfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SeekData returns the first offset at or after off outside the holes of a sparse file, or the end of the file. It returns false where the file system does not
// know.
func SeekData(f *os.File, off int64) (int64, bool) {
	fi, err := f.Stat() // before: the file may grow
	if err != nil {
		return 0, false
	}
	to, err := unix.Seek(int(f.Fd()), off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) { // no data after off
		return max(off, fi.Size()), true
	}
	return to, err == nil
}
