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

// Open opens a regular file for reading. Opening a FIFO or a device can block or have effects, so anything else is ErrNotRegular. follow: also through a
// symbolic link; otherwise a link is an error (ELOOP).
func Open(path string, follow bool) (*os.File, fs.FileInfo, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK // opening a FIFO does not wait for its writer
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
