package tail

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// source gives the (decompressed) bytes of an open file.
type source interface {
	io.ReaderAt
	io.Closer
}

// file is one generation of a stream: a file that its path names or has named.
type file struct {
	stream *Stream
	id     fingerprint.ID
	path   string // where it was last seen
	watch  func(text []byte, begin int64, v Verdict, reason string)
	src    source // nil while closed
	raw    *os.File
	scout  *unpack.Reader // the reader of Ahead in a compressed file

	head  int64 // everything before it has been read
	print fingerprint.Print
	tail  fingerprint.Tail // before head

	enc    lines.Encoding
	nulTo  int64              // how far the NUL bytes at head are known to go, at least
	nulEnd bool               // to the end of the file
	skip   bool               // head stands inside a line that is too long
	replay []checkpoint.Range // holes that are to be read again before head
	tags   []checkpoint.Tag   // of lines in them, in order
	// arrivals say when lines were read whose times are those of their arrival, where they may be read again.
	arrivals []checkpoint.Arrival

	size  int64 // at the last look
	mtime time.Time
	wrote time.Time // mtime when it was last found to be the file that was being read
	grown time.Time // when the size was last seen to change
	// caught is when the file was last seen to have nothing behind head: lines that come later are live.
	caught time.Time

	rotated     time.Time // when the path ceased to name it; zero for the current file
	outstanding int       // pieces held or in flight
	tried       int64     // when the sweeper last had it read after an error, Unix ns
	life        life
	compressed  bool
	failed      bool // the last read ended in an error
	gone        bool // closed to save descriptors, and not in its directory any more: a copy of it may be longer than it was when it was seen last
	birth       birth
	seen        int // the full scan that last saw it
}

// advance moves head over b, which was read there.
func (f *file) advance(b []byte) {
	if f.head == 0 {
		f.print = fingerprint.Print{} // begin's; it may have been rewritten since
	}
	f.print.Extend(f.head, b)
	f.head += int64(len(b))
	f.nulTo, f.nulEnd = 0, false
	f.tail.Remember(b)
}

// begin takes the fingerprint of a file of which no line was read yet, so that a checkpoint can tell it from another file that gets its inode. A hole in it may
// yet be written.
func (f *file) begin() {
	if f.head > 0 || f.raw == nil || f.compressed {
		return
	}
	b := make([]byte, fingerprint.Bytes)
	n, _ := f.raw.ReadAt(b, 0)
	b, _, _ = bytes.Cut(b[:n], []byte{0})
	f.print = fingerprint.Print{}
	f.print.Extend(0, b)
}

// wasCut says whether the file was cut or rewritten: the bytes before head are others. Where nothing was read yet, its first bytes tell.
func (f *file) wasCut() bool {
	if f.raw == nil || f.compressed {
		return false
	}
	if f.head == 0 {
		return !sameFile(f, f.raw)
	}
	b := make([]byte, f.tail.Len())
	n, _ := f.raw.ReadAt(b, f.head-int64(len(b)))
	return n < len(b) || !f.tail.Matches(b)
}

// isGone says whether the file cannot be found again although not all of it was read and accepted.
func (t *Tailer) isGone(f *file) bool {
	if f.life == lifeDead || f.life == lifeMissing || f.isRetired() {
		return false
	}
	if f.raw == nil { // closed while others had their turn
		unread := !f.compressed && f.size > f.head || f.outstanding > 0 || len(f.replay) > 0
		return unread && !f.failed && errors.Is(t.reopen(f), errTruncated)
	}
	fi, err := f.raw.Stat()
	return err == nil && fingerprint.Links(fi) == 0 && (!f.compressed && fi.Size() > f.head || f.outstanding > 0 || len(f.replay) > 0)
}

// sameFile says whether src begins as f did and has the same bytes before f's head.
func sameFile(f *file, src io.ReaderAt) bool {
	same, _ := compare(f, src)
	return same
}

// compare says the same as sameFile, also for a src that may be compressed; again: it must be called again to know.
func compare(f *file, src io.ReaderAt) (same, again bool) {
	if !f.beginsAs(src) {
		return false, false
	}
	var b [fingerprint.TailBytes]byte
	p := b[:f.tail.Len()]
	n, err := src.ReadAt(p, f.head-int64(len(p)))
	return n == len(p) && fingerprint.Hash(fingerprint.Offset, p) == f.tail.Hash(), err == unpack.ErrAgain //nolint:errorlint // ReadAt returns it itself
}

// beginsAs says whether src begins as f did.
func (f *file) beginsAs(src io.ReaderAt) bool {
	var b [fingerprint.Bytes]byte
	p := b[:f.print.N]
	if len(p) == 0 {
		return true
	}
	n, _ := src.ReadAt(p, 0)
	return f.print.Begins(p[:n])
}

// isStill says whether src, the present content of f's inode, is still f's content. A compressed file is compared at its beginning only: it would have to be
// decompressed up to the head, and whether its bytes are the same there is found out when reading goes on.
func (f *file) isStill(src source) bool {
	if _, ok := src.(*unpack.Reader); ok {
		return f.beginsAs(src)
	}
	return sameFile(f, src)
}

// packing returns how a file is compressed, by its name or by the configuration.
func (t *Tailer) packing(path string) string { return unpack.KindOf(path, t.cfg.Compression) }

// unpack returns the source of an open file's content.
func (t *Tailer) unpack(path string, raw *os.File) source {
	kind := t.packing(path)
	if kind == unpack.None {
		return raw
	}
	size := int64(0)
	if fi, err := raw.Stat(); err == nil {
		size = fi.Size()
	}
	return unpack.NewReader(raw, kind, size, t.bombBytes)
}

// attach makes f readable.
func (t *Tailer) attach(f *file, raw *os.File, src source) {
	_, f.compressed = src.(*unpack.Reader)
	f.src, f.raw, f.gone = src, raw, false
	t.open.Add(1)
	t.descriptors.take()
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
		f.scout.Stop()
	}
	f.src, f.raw, f.scout = nil, nil, nil
	t.open.Add(-1)
	if f.compressed {
		t.packed.Add(-1)
		t.unpark()
	}
	t.descriptors.give()
}

// reopen opens a file again that was closed to save descriptors or after an error. It may have been renamed meanwhile. errTruncated: its inode has other
// content now; errGone, which is an errTruncated: nothing in its directory has its inode.
func (t *Tailer) reopen(f *file) error {
	raw, fi, err := osfile.Open(f.path, t.cfg.FollowSymlinks)
	if err == nil && fingerprint.IDOf(fi) != f.id {
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
			return errGone
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
	if err == nil && fingerprint.IDOf(fi) != f.id {
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

// linked returns what a symbolic link leads to, which need not be there, and any other path as it is.
func linked(path string) string {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return path
}

const maxLinks = 8

// findByID looks for a file that was renamed within its directory. It looks twice: a listing can miss a file that is renamed just then. nil: it is not there;
// an error: it is there and cannot be opened.
func (t *Tailer) findByID(f *file) (raw *os.File, err error) {
	for range 2 {
		if raw, err = t.findNow(f); raw != nil || err != nil {
			break
		}
	}
	return raw, err
}

func (t *Tailer) findNow(f *file) (*os.File, error) {
	raw, err := t.findIn(filepath.Dir(f.path), f)
	if raw == nil && err == nil && t.cfg.FollowSymlinks {
		if to := linked(f.stream.path); to != f.stream.path {
			return t.findIn(filepath.Dir(to), f)
		}
	}
	return raw, err
}

func (t *Tailer) findIn(dir string, f *file) (*os.File, error) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		fi, err := e.Info()
		if err != nil || fingerprint.IDOf(fi) != f.id {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if !f.mayBe(path) {
			continue
		}
		raw, fi, err := osfile.Open(path, t.cfg.FollowSymlinks)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case fingerprint.IDOf(fi) == f.id:
			f.path = path
			return raw, nil
		default:
			_ = raw.Close()
		}
	}
	return nil, nil
}

// isBlank says whether nothing is known of a closed file that could tell it from another one which was given its inode.
func (f *file) isBlank() bool { return f.src == nil && f.head == 0 && f.print.N == 0 }

// mayBe says whether a file of this name with the file's inode may be the file.
func (f *file) mayBe(path string) bool {
	return f.head > 0 || f.print.N > 0 || path == f.path || rotation.IsSuffix(strings.TrimPrefix(path, f.stream.path))
}

// findEncoding finds out how the file writes its characters; data are the bytes read at head.
func (f *file) findEncoding(data []byte) {
	if f.head == 0 {
		f.enc = lines.EncodingOf(data)
		return
	}
	if f.enc == lines.Unknown || f.enc == lines.Open {
		var b [lines.HeadBytes]byte
		if n, err := f.src.ReadAt(b[:], 0); err == nil || err == io.EOF { //nolint:errorlint // ReadAt returns io.EOF itself
			f.enc = lines.EncodingOf(b[:n])
		}
	}
}

// tag returns the tag of the line which begins there, and forgets the tags before it: holes are read in order.
func (f *file) tag(begin int64) (value uint64) {
	n := 0
	for n < len(f.tags) && f.tags[n].Begin <= begin {
		if f.tags[n].Begin == begin {
			value = f.tags[n].Value
		}
		n++
	}
	f.tags = f.tags[n:]
	return value
}

// life is where a file stands between being met and being forgotten.
type life uint8

const (
	lifeUnread   life = iota // it has, or may have, something to read
	lifeRead                 // read to its end; a compressed file is opened again only when it changes
	lifeCut                  // found cut or rewritten: the sweeper decides what happens next
	lifeMissing              // from a checkpoint: the sweeper still looks for the file, and later files of the stream wait
	lifeRetired              // read, accepted and closed; remembered so that it is not read again
	lifeVanished             // retired, and not seen by the last full scan
	lifeDead                 // nothing more can be read from it
	lives
)

// becomes lists the lives that can follow each life.
var becomes = [lives][]life{
	lifeUnread:   {lifeRead, lifeCut, lifeMissing, lifeRetired, lifeDead},
	lifeRead:     {lifeUnread, lifeCut, lifeRetired, lifeDead},
	lifeCut:      {lifeUnread, lifeDead}, // unread: the rest is read in the copy that was made before
	lifeMissing:  {lifeUnread, lifeDead},
	lifeRetired:  {lifeUnread, lifeRead, lifeVanished}, // read: its path names it again
	lifeVanished: {lifeUnread, lifeRead, lifeRetired},
	lifeDead:     nil,
}

func (l life) String() string {
	return [lives]string{"unread", "read", "cut", "missing", "retired", "vanished", "dead"}[l]
}

// onImpossible is told of a turn that becomes does not list. The tests panic; a running collector goes on.
var onImpossible = func(*file, life) {}

// turn begins the next life of a file. The caller holds the stream's lock.
func (f *file) turn(to life) {
	if f.life == to {
		return
	}
	possible := false
	for _, l := range becomes[f.life] {
		possible = possible || l == to
	}
	if !possible {
		onImpossible(f, to)
	}
	f.life = to
}

// isRetired says that the file is done with but for being remembered.
func (f *file) isRetired() bool { return f.life == lifeRetired || f.life == lifeVanished }

// isComplete says that nothing comes any more: a compressed file is written once.
func (f *file) isComplete() bool { return f.compressed && f.life == lifeRead }
