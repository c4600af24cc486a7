package outfile

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// unnamed makes a file without a name in a directory; errors use name.
func unnamed(dir, name string, perm uint32) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_RDWR|unix.O_TMPFILE|unix.O_CLOEXEC, perm)
	if err != nil {
		return removed(dir) // not supported by every file system
	}
	return os.NewFile(uintptr(fd), name), nil
}

// link gives a file of unnamed a name.
func link(f *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}
