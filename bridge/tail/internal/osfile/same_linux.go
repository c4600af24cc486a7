package osfile

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
)

// Unchanged reports whether a path still names the file with this id, size and time. Only the path is allocated: ten thousand idle files are checked every few
// seconds.
func Unchanged(path string, follow bool, id fingerprint.ID, size int64, mtime time.Time) bool {
	var st unix.Stat_t
	stat := unix.Lstat
	if follow {
		stat = unix.Stat
	}
	if stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	is := fingerprint.ID{Dev: uint64(st.Dev), Ino: st.Ino} //nolint:unconvert // other systems have other types
	return is == id && st.Size == size && st.Mtim.Nano() == mtime.UnixNano()
}
