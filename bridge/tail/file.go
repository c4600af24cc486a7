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

// file is one generation of a stream: a present or former file of the path.
type file struct {
	stream *Stream
	id     fingerprint.ID
	path   string                                                   // last known path
	watch  func(text []byte, begin int64, v Verdict, reason string) // of Settings.Watch
	src    source                                                   // the content; nil while closed
	raw    *os.File                                                 // the open file, compressed or not; nil while closed
	scout  *unpack.Reader                                           // the reader of Ahead in a compressed file

	head  int64             // everything before head has been read
	print fingerprint.Print // of the first bytes of the content
	tail  fingerprint.Tail  // of the bytes before head

	enc    lines.Encoding
	nulTo  int64              // how far the NUL bytes at head are known to go, at least
	nulEnd bool               // to the end of the file
	skip   bool               // head is inside an overlong line
	replay []checkpoint.Range // holes to read again before head
	tags   []checkpoint.Tag   // of lines in replay, in order
	// arrivals are the reading times of lines without other times, as long as a restart may read the lines again.
	arrivals []checkpoint.Arrival

	size  int64 // at the last look
	mtime time.Time
	wrote time.Time // mtime at its last verification as the file being read
	grown time.Time // when the size was last seen to change
	// caughtUp is the last time without unread bytes: later lines are live.
	caughtUp time.Time

	rotated     time.Time // when the path ceased to name it; zero for the current file
	outstanding int       // pieces held or in flight
	tried       int64     // last retry by the sweeper after an error, Unix ns
	life        life
	compressed  bool
	failed      bool // the last read ended in an error
	gone        bool // closed to save descriptors, and vanished from its directory: a copy may be longer than the file's last known size
	birth       birth
	seen        int // number of the last full scan that found the file
}

// advance moves head over b, the bytes read at head, and brings the fingerprints of the beginning and of the bytes before head up to date.
func (f *file) advance(b []byte) {
	if f.head == 0 {
		f.print = fingerprint.Print{} // begin's print may be of content since rewritten
	}
	f.print.Extend(f.head, b)
	f.head += int64(len(b))
	f.nulTo, f.nulEnd = 0, false
	f.tail.Remember(b)
}

// begin takes the fingerprint of an unread file, by which a checkpoint distinguishes the file from a later file with the same inode. The print ends before the
// first NUL byte: preallocated space may yet be written.
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

// wasCut reports whether an open file was truncated or rewritten: the bytes before head differ, or for an unread file the first bytes. The answer is false for
// a closed or a compressed file.
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

// isGone reports whether the file has no name any more although part of the content was not read and accepted: at shutdown such a file is lost.
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

// sameFile reports whether src begins as f did and has the same bytes before f's head.
func sameFile(f *file, src io.ReaderAt) bool {
	same, _ := compare(f, src)
	return same
}

// compare is sameFile for a src that may be compressed. Decompressing up to f's head may take several calls: again asks for the next call.
func compare(f *file, src io.ReaderAt) (same, again bool) {
	if !f.beginsAs(src) {
		return false, false
	}
	var b [fingerprint.TailBytes]byte
	p := b[:f.tail.Len()]
	n, err := src.ReadAt(p, f.head-int64(len(p)))
	return n == len(p) && fingerprint.Hash(fingerprint.Offset, p) == f.tail.Hash(), err == unpack.ErrAgain //nolint:errorlint // ReadAt returns it itself
}

// beginsAs reports whether src begins as f did.
func (f *file) beginsAs(src io.ReaderAt) bool {
	var b [fingerprint.Bytes]byte
	p := b[:f.print.N]
	if len(p) == 0 {
		return true
	}
	n, _ := src.ReadAt(p, 0)
	return f.print.Begins(p[:n])
}

// isStill reports whether src, the present content of f's inode, is still f's content. A compressed file is compared at the beginning only: comparing at the
// head would mean decompressing up to there, and reading on detects a difference anyway.
func (f *file) isStill(src source) bool {
	if _, ok := src.(*unpack.Reader); ok {
		return f.beginsAs(src)
	}
	return sameFile(f, src)
}

// packing returns the compression of a file, by its name or by the configuration.
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

// attach gives f its open file, raw, and the source of its content, and counts the descriptor.
func (t *Tailer) attach(f *file, raw *os.File, src source) {
	_, f.compressed = src.(*unpack.Reader)
	f.src, f.raw, f.gone = src, raw, false
	t.open.Add(1)
	t.descriptors.take()
	if f.compressed {
		t.packed.Add(1)
	}
}

// close closes a file, if open, and lets others use the descriptor. All else that is known of the file stays.
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

// reopen opens a file again that was closed to save descriptors or after an error, perhaps under a new name. errTruncated: the inode has different content;
// errGone, a kind of errTruncated: no file in the directory has the inode.
func (t *Tailer) reopen(f *file) error {
	raw, fi, err := osfile.Open(f.path, t.cfg.FollowSymlinks)
	if err == nil && fingerprint.IDOf(fi) != f.id { // the path names another file now
		_ = raw.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrPermission) {
		if _, there := t.statAt(f); errors.Is(there, fs.ErrNotExist) {
			err = there // another file, which may not be read
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = t.findByID(f)
		if err == nil && raw == nil {
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

// statAt returns the file's stat at f.path. The error is fs.ErrNotExist also if the path names another file now.
func (t *Tailer) statAt(f *file) (fs.FileInfo, error) {
	fi, err := t.stat(f.path)
	if err == nil && fingerprint.IDOf(fi) != f.id {
		err = fs.ErrNotExist
	}
	return fi, err
}

// stat returns the stat of a path; where links are followed, of the link's target.
func (t *Tailer) stat(path string) (fs.FileInfo, error) {
	if t.cfg.FollowSymlinks {
		return os.Stat(path)
	}
	return os.Lstat(path)
}

// linked returns the target of a symbolic link, existing or not, and any other path unchanged.
func linked(path string) string {
	for range maxLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			dir := filepath.Dir(path)
			if own, err := filepath.EvalSymlinks(dir); err == nil { // else ".." would be of the wrong directory
				dir = own
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}

// maxLinks bounds a chain of links, which may be a circle.
const maxLinks = 8

// findByID looks for a file renamed within its directory. The search runs twice: a listing can miss a file during a rename. It returns nil if no name has the
// inode, and an error if the file was found but could not be opened.
func (t *Tailer) findByID(f *file) (raw *os.File, err error) {
	for range 2 {
		raw, err = t.findNow(f)
		if raw != nil || err != nil {
			break
		}
	}
	return raw, err
}

// findNow is one search of findByID, in the file's directory, and in the target's directory where the stream's path is a link.
func (t *Tailer) findNow(f *file) (*os.File, error) {
	raw, err := t.findIn(filepath.Dir(f.path), f)
	if raw == nil && err == nil && t.cfg.FollowSymlinks {
		if to := linked(f.stream.path); to != f.stream.path {
			return t.findIn(filepath.Dir(to), f)
		}
	}
	return raw, err
}

// findIn looks for a file in a directory by device and inode. It returns the file open, and notes its new path; nil: not found.
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
		switch { // the name may be gone, or another file's, since the listing
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

// isBlank reports whether a closed file has no fingerprint: then a later file with the same inode cannot be told apart.
func (f *file) isBlank() bool { return f.src == nil && f.head == 0 && f.print.N == 0 }

// mayBe reports whether a file with this name and f's inode may be f; their contents are compared later. Where no content of f is known, only f's own path and
// the names of rotated files are possible: the inode of a removed file is given to a new one.
func (f *file) mayBe(path string) bool {
	return f.head > 0 || f.print.N > 0 || path == f.path || rotation.IsSuffix(strings.TrimPrefix(path, f.stream.path))
}

// findEncoding detects the file's encoding by the first bytes: data, the bytes at head, where nothing was read yet; else, while unknown, read again.
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

// tag returns the tag of the line that begins at begin, 0 if none, and drops all tags up to begin: holes are read in order.
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

// life is the state of a file, from its first look to its last.
type life uint8

const (
	lifeUnread   life = iota // has, or may have, unread bytes
	lifeRead                 // read to its end; a compressed file is reopened only after a change
	lifeCut                  // found truncated or rewritten: the sweeper looks for its copy
	lifeMissing              // from a checkpoint: the sweeper still looks for the file, and later files of the stream wait
	lifeRetired              // read, accepted and closed; remembered, to keep it from being read again
	lifeVanished             // retired, and not seen by the last full scan
	lifeDead                 // nothing more can be read from it
	lives
)

// becomes lists the possible next lives of each life:
//
//	unread    end reached: read; inode has other content: cut; of a checkpoint, not found: missing; rotated, and fully read: retired
//	read      grew: unread; truncated or rewritten: cut; rotated, accepted and idle for lingerMax: retired
//	cut       a copy or a compressed file has the old content: unread, continued there; else dead. The present content is the next file, unread.
//	missing   found, or a copy of it: unread; nowhere: dead
//	retired   its path names it again, or it grew: unread, or read if compressed; not in the last full scan: vanished
//	vanished  like retired; seen again: retired. With a current file, it is dropped.
//	the first four: inode given to another file while unread, or neither file nor copy readable: dead, and dropped once nothing is in flight
var becomes = [lives][]life{
	lifeUnread:   {lifeRead, lifeCut, lifeMissing, lifeRetired, lifeDead},
	lifeRead:     {lifeUnread, lifeCut, lifeRetired, lifeDead},
	lifeCut:      {lifeUnread, lifeDead}, // unread: the rest is read in the copy
	lifeMissing:  {lifeUnread, lifeDead},
	lifeRetired:  {lifeUnread, lifeRead, lifeVanished}, // read: its path names it again
	lifeVanished: {lifeUnread, lifeRead, lifeRetired},
	lifeDead:     nil,
}

// String returns the name of a life.
func (l life) String() string {
	return [lives]string{"unread", "read", "cut", "missing", "retired", "vanished", "dead"}[l]
}

// onImpossible is called for a transition missing in becomes. In tests the function panics; a running collector continues.
var onImpossible = func(*file, life) {}

// setLife begins the next life of a file. The caller holds the stream's lock.
func (f *file) setLife(to life) {
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

// isRetired reports whether the file was read and accepted, and is only remembered.
func (f *file) isRetired() bool { return f.life == lifeRetired || f.life == lifeVanished }

// isComplete reports whether no further bytes can come: a compressed file is written once.
func (f *file) isComplete() bool { return f.compressed && f.life == lifeRead }
