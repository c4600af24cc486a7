// Package osfile asks the operating system about log files.
package osfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is the error for a directory, a device or a FIFO.
var ErrNotRegular = errors.New("not a regular file")

// Open opens a regular file for reading, and returns the file's FileInfo too. A directory, a device or a FIFO is opened without blocking and closed at once,
// and the error wraps ErrNotRegular: a caller that must not open a device, as opening may have effects, calls os.Stat first. follow: a symbolic link is
// followed; if false, a link is an error (ELOOP).
func Open(path string, follow bool) (*os.File, fs.FileInfo, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK // else the opening of a FIFO would wait for a writer
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}
