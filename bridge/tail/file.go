package tail

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	printBytes = 1 << 10 // of the first bytes that tell a file from another with the same inode
	tailBytes  = 64      // before the head that must still be there when reading goes on
)

var errNotRegular = errors.New("not a regular file")

// fileID is what the file system calls a file.
type fileID struct {
	dev, ino uint64
}

func idOf(fi fs.FileInfo) fileID {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return fileID{uint64(st.Dev), st.Ino} //nolint:unconvert // other systems have other types
	}
	return fileID{}
}

// source gives the (decompressed) bytes of an open file.
type source interface {
	io.ReaderAt
	io.Closer
}

// fingerprint is the FNV-1a hash of the first n ≤ 1 KiB of what has been read, extended as reading goes on.
type fingerprint struct {
	sum uint64
	n   int
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func fnv(sum uint64, b []byte) uint64 {
	for _, c := range b {
		sum = (sum ^ uint64(c)) * fnvPrime
	}
	return sum
}

// extend takes the bytes of the file that begin at off; bytes the fingerprint has, or cannot have yet, are passed over.
func (p *fingerprint) extend(off int64, b []byte) {
	if p.n == printBytes || off > int64(p.n) || off+int64(len(b)) <= int64(p.n) {
		return
	}
	b = b[int64(p.n)-off:]
	b = b[:min(len(b), printBytes-p.n)]
	if p.n == 0 {
		p.sum = fnvOffset
	}
	p.sum = fnv(p.sum, b)
	p.n += len(b)
}

// file is one generation of a stream: a file that its path names or has named.
type file struct {
	stream *Stream
	id     fileID
	path   string // where it was last seen
	src    source // nil while closed
	raw    *os.File
	scout  *unpacked // of a compressed file: what Ahead reads

	head  int64 // everything before it has been read
	print fingerprint
	tail  [tailBytes]byte // the last bytes before head
	tailN int
	// A restored file knows the hash of its tail only, until the first read.
	tailSum  uint64
	restored bool

	enc    encoding
	nulTo  int64  // how far the NUL bytes at head are known to go, at least
	nulEnd bool   // to the end of the file
	skip   bool   // head stands inside a line that is too long
	replay []span // holes that are to be read again before head
	tags   []tag  // of lines in them, in order

	size  int64 // at the last look
	mtime time.Time
	wrote time.Time // mtime when it was last found to be the file that was being read
	grown time.Time // when the size was last seen to change
	// caught is when the file was last seen to have nothing behind head: what comes later is live.
	caught time.Time

	rotated     time.Time // when the path ceased to name it; zero for the current file
	outstanding int       // pieces held or in flight
	tried       int64     // when the sweeper last had it read after an error, Unix ns
	life        life
	compressed  bool
	failed      bool // the last read ended in an error
	birth       birth
	seen        int // the full scan that last saw it
}

// advance moves head over b, which was read there.
func (f *file) advance(b []byte) {
	if f.head == 0 {
		f.print = fingerprint{} // begin's; it may have been rewritten since
	}
	f.print.extend(f.head, b)
	f.head += int64(len(b))
	f.nulTo, f.nulEnd = 0, false
	f.remember(b)
}

// remember keeps the last bytes of b, which end at head, for the check before the next read.
func (f *file) remember(b []byte) {
	if len(b) >= tailBytes {
		f.tailN = copy(f.tail[:], b[len(b)-tailBytes:])
		return
	}
	keep := min(f.tailN, tailBytes-len(b))
	copy(f.tail[:], f.tail[f.tailN-keep:f.tailN])
	f.tailN = keep + copy(f.tail[keep:], b)
}

// tailMatches says whether b, read just before head, is what was there.
func (f *file) tailMatches(b []byte) bool {
	if !f.restored {
		return bytes.Equal(b, f.tail[:f.tailN])
	}
	if fnv(fnvOffset, b) != f.tailSum {
		return false
	}
	copy(f.tail[:], b)
	f.restored = false
	return true
}

// begins says whether b, read at the beginning, begins as the file did when it was last read or, if nothing of it was read, looked at.
func (f *file) begins(b []byte) bool {
	return f.print.n == 0 || len(b) >= f.print.n && fnv(fnvOffset, b[:f.print.n]) == f.print.sum
}

// wasCut says whether the file was cut or rewritten: the bytes before head are others, or those that were seen of a file of which nothing was read.
func (f *file) wasCut() bool {
	if f.raw == nil || f.compressed {
		return false
	}
	if f.head == 0 {
		return !sameFile(f, f.raw)
	}
	b := make([]byte, f.tailN)
	n, _ := f.raw.ReadAt(b, f.head-int64(f.tailN))
	return n < f.tailN || !f.tailMatches(b)
}

// isGone says whether nobody will find the file again although not all of it was read and accepted.
func (f *file) isGone() bool {
	if f.raw == nil || f.life == lifeDead || f.isRetired() {
		return false
	}
	fi, err := f.raw.Stat()
	return err == nil && links(fi) == 0 && (!f.compressed && fi.Size() > f.head || f.outstanding > 0 || len(f.replay) > 0)
}

// links returns how many names a file has.
func links(fi fs.FileInfo) uint64 {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink) //nolint:unconvert // other systems have other types
	}
	return 1
}

func (f *file) tailHash() uint64 {
	if f.restored {
		return f.tailSum
	}
	return fnv(fnvOffset, f.tail[:f.tailN])
}

// openRegular opens a file for reading only if it is a regular one: opening a FIFO or a device can block or have effects.
func openRegular(path string, follow bool) (*os.File, fs.FileInfo, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errNotRegular}
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

// sameFile says whether src begins as f did and has the same bytes before f's head.
func sameFile(f *file, src io.ReaderAt) bool {
	same, _ := compare(f, src)
	return same
}

// compare does so for a src that may be compressed; again: it must be called again to know.
func compare(f *file, src io.ReaderAt) (same, again bool) {
	if !f.beginsAs(src) {
		return false, false
	}
	var b [tailBytes]byte
	p := b[:f.tailN]
	n, err := src.ReadAt(p, f.head-int64(f.tailN))
	return n == len(p) && fnv(fnvOffset, p) == f.tailHash(), err == errAgain //nolint:errorlint // ReadAt returns it itself
}

// beginsAs says whether src begins as f did.
func (f *file) beginsAs(src io.ReaderAt) bool {
	var b [printBytes]byte
	p := b[:f.print.n]
	if len(p) == 0 {
		return true
	}
	n, _ := src.ReadAt(p, 0)
	return f.begins(p[:n])
}

// isStill says whether src, which is what f's inode holds now, is what f was. A compressed file is compared at its beginning only: it would have to be decompressed up to the head, and
// whether it is the same there is found out when it is read on.
func (f *file) isStill(src source) bool {
	if _, ok := src.(*unpacked); ok {
		return f.beginsAs(src)
	}
	return sameFile(f, src)
}

// unpack returns the source of an open file's content.
func (t *Tailer) unpack(path string, raw *os.File) source {
	kind := t.packing(path)
	if kind == CompressionNone {
		return raw
	}
	size := int64(0)
	if fi, err := raw.Stat(); err == nil {
		size = fi.Size()
	}
	return &unpacked{raw: raw, kind: kind, size: size, free: t.bombBytes}
}

// attach makes f readable.
func (t *Tailer) attach(f *file, raw *os.File, src source) {
	_, f.compressed = src.(*unpacked)
	f.src, f.raw = src, raw
	t.open.Add(1)
	if f.compressed {
		t.packed.Add(1)
	}
}

func (t *Tailer) close(f *file) {
	if f.src == nil {
		return
	}
	_ = f.src.Close()
	if f.scout != nil {
		f.scout.stop()
	}
	f.src, f.raw, f.scout = nil, nil, nil
	t.open.Add(-1)
	if f.compressed {
		t.packed.Add(-1)
	}
}

// closeIfMany closes a file that has been read to its end when too many are open. It is opened again, and checked, when it changes.
func (t *Tailer) closeIfMany(f *file) {
	if t.open.Load() > maxOpenFiles && f == f.stream.current {
		t.close(f)
	}
}

// reopen opens a file again that was closed to save descriptors or after an error. It may have been renamed meanwhile.
func (t *Tailer) reopen(f *file) error {
	raw, fi, err := openRegular(f.path, t.cfg.FollowSymlinks)
	if err == nil && idOf(fi) != f.id {
		_ = raw.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrPermission) {
		if _, there := t.statAt(f); errors.Is(there, fs.ErrNotExist) {
			err = there // it is another one that may not be read
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if raw, err = t.findByID(f); err == nil && raw == nil {
			return errTruncated
		}
	}
	if err != nil {
		return err
	}
	src := t.unpack(f.path, raw)
	if !f.isStill(src) {
		_ = src.Close()
		return errTruncated
	}
	t.attach(f, raw, src)
	return nil
}

// statAt says how the file is that was last seen at f.path; fs.ErrNotExist also when that is another one now.
func (t *Tailer) statAt(f *file) (fs.FileInfo, error) {
	fi, err := t.stat(f.path)
	if err == nil && idOf(fi) != f.id {
		err = fs.ErrNotExist
	}
	return fi, err
}

func (t *Tailer) stat(path string) (fs.FileInfo, error) {
	if t.cfg.FollowSymlinks {
		return os.Stat(path)
	}
	return os.Lstat(path)
}

// findByID looks for a file that was renamed within its directory. It looks twice: a listing can miss a file that is renamed just then. nil: it is not there; the error is
// of one that is there and cannot be opened.
func (t *Tailer) findByID(f *file) (raw *os.File, err error) {
	for range 2 {
		if raw, err = t.findNow(f); raw != nil || err != nil {
			break
		}
	}
	return raw, err
}

func (t *Tailer) findNow(f *file) (*os.File, error) {
	dir := filepath.Dir(f.path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		fi, err := e.Info()
		if err != nil || idOf(fi) != f.id {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if f.head == 0 && f.print.n == 0 && !rotationSuffix(strings.TrimPrefix(path, f.stream.path)) {
			continue // nothing was read that could tell it from another file with its old inode
		}
		raw, fi, err := openRegular(path, t.cfg.FollowSymlinks)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case idOf(fi) == f.id:
			f.path = path
			return raw, nil
		default:
			_ = raw.Close()
		}
	}
	return nil, nil
}

// tag is what a lent line that begins there was lent with.
type tag struct {
	begin int64
	value uint64
}

// tag returns that of the line which begins there, and forgets those before it: holes are read in order.
func (f *file) tag(begin int64) (value uint64) {
	n := 0
	for n < len(f.tags) && f.tags[n].begin <= begin {
		if f.tags[n].begin == begin {
			value = f.tags[n].value
		}
		n++
	}
	f.tags = f.tags[n:]
	return value
}
