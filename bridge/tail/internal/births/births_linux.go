// Package births hears of files that are created or renamed at the moment when that happens.
package births

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Listener hears at once of files created in directories or renamed within them, and of nothing else: the watcher of hints (watch.go) hears every write as
// well, and therefore must pause.
type Listener struct {
	mu   sync.Mutex
	file *os.File // nil: closed
	fd   int
	dirs map[int32]string
}

// Open begins to listen, in no directory yet.
func Open() (*Listener, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return &Listener{file: os.NewFile(uintptr(fd), "inotify"), fd: fd, dirs: map[int32]string{}}, nil
}

// Add listens in a directory.
func (b *Listener) Add(dir string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file == nil {
		return nil
	}
	wd, err := unix.InotifyAddWatch(b.fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ONLYDIR)
	if err != nil {
		return os.NewSyscallError("inotify_add_watch", err)
	}
	b.dirs[int32(wd)] = dir
	return nil
}

func (b *Listener) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.file != nil {
		_ = b.file.Close()
		b.file = nil
	}
}

// Listen calls heard for everything that is created or renamed, until ctx ends.
func (b *Listener) Listen(ctx context.Context, heard func(path string, created bool)) {
	file := b.file
	defer context.AfterFunc(ctx, b.close)()
	buf := make([]byte, 64<<10)
	for {
		n, err := file.Read(buf)
		if err != nil {
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return
		}
		for part := buf[:n]; len(part) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(part)), binary.NativeEndian.Uint32(part[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(part[12:]))
			name, _, _ := bytes.Cut(part[unix.SizeofInotifyEvent:end], []byte{0})
			part = part[end:]
			b.mu.Lock()
			dir := b.dirs[wd]
			if mask&unix.IN_IGNORED != 0 {
				delete(b.dirs, wd)
			}
			b.mu.Unlock()
			if dir != "" && len(name) > 0 && mask&unix.IN_ISDIR == 0 {
				heard(filepath.Join(dir, string(name)), mask&unix.IN_CREATE != 0)
			}
		}
	}
}
