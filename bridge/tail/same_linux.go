package tail

import "golang.org/x/sys/unix"

// isAsSeen says whether the path names the file as it was at the last look. Nothing is allocated but the path: ten thousand idle files are asked about every few seconds.
func (f *file) isAsSeen(path string, follow bool) bool {
	var st unix.Stat_t
	stat := unix.Lstat
	if follow {
		stat = unix.Stat
	}
	return stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && fileID{uint64(st.Dev), st.Ino} == f.id && st.Size == f.size && st.Mtim.Nano() == f.mtime.UnixNano() //nolint:unconvert // as idOf
}
