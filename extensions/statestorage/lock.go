package statestorage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

var (
	errInUse   = errors.New("is in use by another collector")
	holderLine = regexp.MustCompile(`^(pid \d+ on [\w.-]+)\n$`)
)

// lockFile creates or opens a file and locks it, for as long as the file is open, and writes this process into it for others to see. Without waiting: if
// another process has the lock, the error is errInUse, with that process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w (%s)", errInUse, holder(f))
		}
		return nil, errors.Join(err, f.Close())
	}
	host, err := os.Hostname()
	if err != nil {
		host = "an-unknown-host"
	}
	// On a full disk the file stays empty: only the lock matters.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt(fmt.Appendf(nil, "pid %d on %s\n", os.Getpid(), host), 0)
	}
	return f, nil
}

// holder is the text that the lock's owner wrote. This host's /proc/locks would not do: the owner may be in another container or on another host.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 300)) // longer than the line: host names of Linux have 64 bytes at most
	if who := holderLine.FindSubmatch(b); err == nil && who != nil {
		return string(who[1])
	}
	return "its pid is not known"
}

// isAt says whether the path still names the open file: same is false if the file was deleted or replaced. at is the file at the path, nil if none.
func isAt(f *os.File, path string) (at os.FileInfo, same bool) {
	at, err := os.Stat(path)
	if err != nil {
		return nil, false
	}
	own, err := f.Stat()
	return at, err == nil && os.SameFile(own, at)
}
