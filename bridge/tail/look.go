package tail

import (
	"cmp"
	"container/heap"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
)

const (
	lingerMax    = time.Minute      // how long a file is still watched after it was rotated away
	rotatedGrace = 5 * time.Second  // how long an unfinished last line of a rotated file waits when its successor is written
	copyGrace    = 10 * time.Second // how long what looks like a copy waits for its original to be cut
	copyMax      = 5 * time.Minute
	maxBusyLooks = 3
)

// sweeper knows the streams and the files, and decides which file belongs to which stream. One goroutine at a time uses it.
type sweeper struct {
	t          *Tailer
	now        time.Time
	streams    map[string]*Stream
	files      map[fileID]*file
	due        dueHeap
	stems      map[string][]*Stream // by the beginning of their path, see stemOf
	globs      []glob               // include and document
	documents  []glob
	exclude    []glob
	dirs       map[string]*directory
	suspects   map[string]suspect
	lastFull   time.Time
	rescan     bool
	scans      int
	forgotten  []string // streams whose checkpoint is to be deleted
	indexDirty bool
	saved      map[string]*saved // checkpoints loaded and not yet taken up, by path
	unindexed  bool              // the index was lost
	watches    int
	first      bool // no full scan yet: StartAt applies
}

func (w *sweeper) init(t *Tailer) {
	*w = sweeper{
		t: t, streams: map[string]*Stream{}, files: map[fileID]*file{}, dirs: map[string]*directory{}, stems: map[string][]*Stream{}, suspects: map[string]suspect{}, saved: map[string]*saved{},
		globs: newGlobs(slices.Concat(t.cfg.Include, t.cfg.Document)), documents: newGlobs(t.cfg.Document), exclude: newGlobs(t.cfg.Exclude), first: true,
	}
}

// dueHeap orders the streams by when they are to be looked at.
type dueHeap []*Stream

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].next.Before(h[j].next) }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].heapAt, h[j].heapAt = i, j }
func (h *dueHeap) Push(x any)        { s := x.(*Stream); s.heapAt = len(*h); *h = append(*h, s) }
func (h *dueHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	s.heapAt = -1
	return s
}

// sweep looks at the directories, the streams that were kicked and those that are due. It returns how long until the next one is.
func (t *Tailer) sweep(now time.Time) time.Duration {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	w := &t.sweeper
	w.now = now
	w.restore(now)
	w.hinted(now)
	w.scan(now)
	t.mu.Lock()
	kicked := t.kicked
	t.kicked = nil
	t.mu.Unlock()
	for _, s := range kicked {
		if s.heapAt >= 0 {
			w.look(s, now)
		}
	}
	for len(w.due) > 0 && !w.due[0].next.After(now) {
		w.look(w.due[0], now)
	}
	wait := t.cfg.PollInterval
	if len(w.due) > 0 {
		wait = min(wait, w.due[0].next.Sub(now))
	}
	return wait
}

// newStream takes up a path.
func (w *sweeper) newStream(path string, now time.Time) *Stream {
	s := &Stream{t: w.t, path: path, batch: w.t.newBatch(), flying: map[*batch]struct{}{}, held: heldLines{free: -1}, curHeld: -1, activeAt: now, lastExpire: now, next: now}
	s.document = anyMatch(w.documents, path)
	s.handler = w.t.newHandler(s)
	w.streams[path] = s
	dir, stem := stemOf(path)
	w.stems[dir+stem] = append(w.stems[dir+stem], s)
	w.indexDirty = true
	heap.Push(&w.due, s)
	w.t.watched.Add(1)
	return s
}

func (w *sweeper) stat(path string) (fs.FileInfo, error) {
	if w.t.cfg.FollowSymlinks {
		return os.Stat(path)
	}
	return os.Lstat(path)
}

// look finds out what a stream's path names now and whether its files have grown.
func (w *sweeper) look(s *Stream, now time.Time) {
	if !s.sweeping && s.missed < maxBusyLooks {
		if !s.mu.TryLock() {
			s.missed++
			w.again(s, now.Add(w.t.cfg.PollInterval))
			return
		}
		s.mu.Unlock()
	}
	defer w.hold(s)()
	s.missed = 0
	if s.document {
		w.lookDocument(s, now)
		return
	}
	fi, err := w.stat(s.path)
	switch {
	case err == nil && fi.Mode().IsRegular():
		w.named(s, fi, now)
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		w.unnamed(s, now)
	default:
		w.t.readError(s.path, err)
	}
	w.lookOld(s, now)
	w.expire(s, now)
	if s.current == nil && len(s.files) == 0 && s.held.n == 0 && len(s.flying) == 0 {
		if w.between(s, fileID{}, now); len(s.files) == 0 {
			w.forget(s)
			return
		}
	}
	w.again(s, now.Add(backOff(w.t.cfg.PollInterval, now.Sub(s.activeAt))))
}

// hold locks a stream unless the sweeper holds it already, and returns how to unlock it: deciding whose file it is leads from stream to stream.
func (w *sweeper) hold(s *Stream) (release func()) {
	if s.sweeping {
		return func() {}
	}
	s.mu.Lock()
	s.sweeping = true
	return func() {
		s.sweeping = false
		s.mu.Unlock()
	}
}

// again sets when the stream is looked at next.
func (w *sweeper) again(s *Stream, at time.Time) {
	s.next = at
	if s.heapAt >= 0 {
		heap.Fix(&w.due, s.heapAt)
	}
}

func (w *sweeper) forget(s *Stream) {
	s.gone = true
	heap.Remove(&w.due, s.heapAt)
	delete(w.streams, s.path)
	dir, stem := stemOf(s.path)
	left := slices.DeleteFunc(w.stems[dir+stem], func(o *Stream) bool { return o == s })
	if len(left) == 0 {
		delete(w.stems, dir+stem)
	} else {
		w.stems[dir+stem] = left
	}
	w.forgotten = append(w.forgotten, s.path)
	w.indexDirty = true
	w.t.watched.Add(-1)
}

// expire gives up on held lines that have waited too long, and bounds their number.
func (w *sweeper) expire(s *Stream, now time.Time) {
	if s.held.n == 0 {
		return
	}
	if s.current != nil && s.current.complete {
		s.expire(farFuture) // nothing can come any more
		return
	}
	timeout := w.t.cfg.PendingTimeout
	if every := min(max(timeout/10, time.Second), 30*time.Second); now.Sub(s.lastExpire) >= every {
		s.lastExpire = now
		s.expire(now.Add(-timeout))
	}
	if s.held.n > maxHeld {
		before := s.held.oldestThird()
		w.t.counts.bump(&w.t.counts.forced, 1)
		w.t.warn("held", "Too many lines wait for their other half; the oldest third is given up", zap.String("path", s.path))
		s.expire(before)
	}
}

// active notes that something happened, so the stream is looked at often again, and has it drained.
func (w *sweeper) active(s *Stream, now time.Time) {
	s.activeAt = now
	w.t.schedule(s)
}

// named is told which file the path names.
func (w *sweeper) named(s *Stream, fi fs.FileInfo, now time.Time) {
	id := idOf(fi)
	cur := s.current
	if cur != nil && cur.id == id {
		cur.seen = w.scans
		if cur.dead {
			cur.rotated, s.current = now, nil
			w.take(s, s.path, now)
			return
		}
		if cur.truncated || !cur.compressed && fi.Size() < cur.head {
			w.truncated(s, cur, now)
			return
		}
		w.grew(s, cur, fi, now)
		return
	}
	f, wait := w.claimed(s.path, fi, now)
	if wait || f != nil && f.stream != s {
		w.unnamed(s, now) // it is another stream's
		return
	}
	if f != nil {
		// An older file of this stream has its name back.
		w.unnamed(s, now)
		s.files = append(slices.DeleteFunc(s.files, func(g *file) bool { return g == f }), f)
		f.rotated, f.retired, f.path, f.grown = time.Time{}, false, s.path, now
		s.current = f
		w.active(s, now)
		return
	}
	w.unnamed(s, now)
	w.between(s, id, now)
	w.take(s, s.path, now)
}

// grew takes note of a file's size and has it read when it changed.
func (w *sweeper) grew(s *Stream, f *file, fi fs.FileInfo, now time.Time) {
	changed := fi.Size() != f.size || !fi.ModTime().Equal(f.mtime)
	if fi.Size() != f.size || changed && f.compressed {
		f.grown = now
	}
	f.size, f.mtime = fi.Size(), fi.ModTime()
	switch {
	case changed:
		f.changed = true
		if f.compressed {
			w.t.close(f)
			f.complete = false
		}
		w.active(s, now)
	case f.compressed:
		if !f.complete {
			w.t.schedule(s)
		}
	case f.failed:
		w.t.schedule(s)
	case f.size == f.head:
		f.caught = now
	case now.Sub(f.grown) >= w.t.cfg.PendingTimeout || !f.rotated.IsZero() && now.Sub(f.grown) >= rotatedGrace:
		w.t.schedule(s) // the last line has waited long enough
	}
}

// unnamed is told that the path no longer names the current file.
func (w *sweeper) unnamed(s *Stream, now time.Time) {
	if s.current != nil {
		w.verify(s, now)
		f := s.current
		f.rotated = now
		s.lastWrite = f.wrote
		s.current = nil
		s.dirty = true
		w.between(s, fileID{}, now)
		w.active(s, now)
	}
}

// take opens a file as the stream's next one.
func (w *sweeper) take(s *Stream, path string, now time.Time) *file {
	raw, fi, err := openRegular(path, w.t.cfg.FollowSymlinks)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			w.t.readError(path, err)
		}
		return nil
	}
	f := &file{stream: s, id: idOf(fi), path: path, size: fi.Size(), mtime: fi.ModTime(), wrote: fi.ModTime(), grown: now, changed: true, seen: w.scans}
	if w.first && !s.known && w.t.cfg.StartAt == StartAtEnd && w.t.packing(path) == CompressionNone {
		f.skipTo(raw, fi.Size())
	} else if !w.first {
		f.caught = now // it began while this process was looking
	}
	w.t.attach(f, raw, w.t.unpack(path, raw))
	if f.compressed && now.Sub(f.mtime) > rotatedGrace {
		f.grown = f.mtime // it is not being written
	}
	s.known = true
	w.files[f.id] = f
	s.files = append(s.files, f)
	s.dirty = true
	if path == s.path {
		s.current = f
	} else {
		f.rotated = now
	}
	w.active(s, now)
	return f
}

// skipTo begins at the start of the file's last, unfinished line.
func (f *file) skipTo(r io.ReaderAt, size int64) {
	b := make([]byte, min(size, 64<<10))
	n, _ := r.ReadAt(b, size-int64(len(b)))
	b = b[:n]
	i := strings.LastIndexAny(string(b), "\r\n") + 1
	f.skip = i == 0 && int64(n) < size
	if f.skip {
		i = n
	}
	first := make([]byte, min(size, printBytes))
	n, _ = r.ReadAt(first, 0)
	f.head = size - int64(len(b)) + int64(i)
	f.print.extend(0, first[:min(int64(n), f.head)])
	f.remember(b[:i])
}

// truncated is told that a file was cut or rewritten. What was unread may still be in a copy made before (copytruncate); what it holds now is the next file.
func (w *sweeper) truncated(s *Stream, f *file, now time.Time) {
	w.t.counts.bump(&w.t.counts.truncs, 1)
	f.truncated = false
	if f.head == 0 {
		w.lost(f, true) // it cannot be opened any more
		return
	}
	g := &file{stream: s, id: f.id, path: f.path, rotated: f.rotated, mtime: f.mtime, wrote: f.wrote, grown: now, caught: now, changed: true, seen: w.scans}
	if !f.compressed && f.src != nil {
		// The open file may be the only way to what it holds now.
		g.src, g.raw = f.src, f.raw
		f.src, f.raw = nil, nil
	}
	w.t.close(f)
	if f.rotated.IsZero() {
		f.rotated = now
	}
	s.lastWrite = f.wrote
	if !w.adoptCopy(s, f, now) {
		w.lost(f, f.size > f.head)
	}
	w.files[g.id] = g
	if s.current == f {
		s.current = g
		w.between(s, g.id, now)
		s.files = append(s.files, g)
	} else {
		s.files = slices.Insert(s.files, slices.Index(s.files, f)+1, g)
	}
	s.dirty = true
	w.active(s, now)
}

// lost gives up a file that cannot be read any more.
func (w *sweeper) lost(f *file, unread bool) {
	f.dead = true
	if unread || len(f.replay) > 0 {
		w.t.counts.bump(&w.t.counts.lost, 1)
	}
	f.replay = nil
}

// lookOld looks at the files that the path no longer names.
func (w *sweeper) lookOld(s *Stream, now time.Time) {
	linger := min(lingerMax, w.t.cfg.PendingTimeout)
	for _, f := range slices.Clone(s.files) {
		if f != s.current && f.truncated {
			w.truncated(s, f, now)
		}
	}
	s.files = slices.DeleteFunc(s.files, func(f *file) bool {
		if f == s.current || f.retired {
			return false
		}
		if f.raw != nil && !f.compressed {
			if fi, err := f.raw.Stat(); err == nil {
				w.grew(s, f, fi, now)
			}
		}
		if f.outstanding > 0 || len(f.replay) > 0 {
			return false
		}
		if f.dead {
			w.drop(f)
			return true
		}
		if f.complete || f.size <= f.head && now.Sub(f.rotated) >= linger && now.Sub(f.grown) >= linger {
			w.t.close(f)
			f.retired = true
			s.dirty = true
		}
		return false
	})
}

func (w *sweeper) drop(f *file) {
	w.t.close(f)
	if w.files[f.id] == f {
		delete(w.files, f.id)
	}
	f.stream.dirty = true
}

// sweepRetired forgets files that are read and gone.
func (w *sweeper) sweepRetired() {
	for _, s := range w.streams {
		s.mu.Lock()
		s.files = slices.DeleteFunc(s.files, func(f *file) bool {
			if f.retired && f.seen != w.scans {
				w.drop(f)
				return true
			}
			return false
		})
		s.mu.Unlock()
	}
}

// between takes up files that were rotated through the path unseen, between the last file seen there and the one that it names now.
func (w *sweeper) between(s *Stream, newest fileID, now time.Time) {
	if !s.known {
		return
	}
	type cand struct {
		path  string
		mtime time.Time
	}
	var found []cand
	w.siblings(s.path, func(path string, fi fs.FileInfo) {
		id := idOf(fi)
		if strings.HasPrefix(path, s.path) && rotationSuffix(path[len(s.path):]) && id != newest && w.files[id] == nil && !fi.ModTime().Before(s.lastWrite) && !w.copied(s, path, fi) {
			found = append(found, cand{path, fi.ModTime()})
		}
	})
	// Where the clock is too coarse, app.log.2 is older than app.log.1.
	number := func(c cand) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(c.path[len(s.path):], "."))
		return n
	}
	slices.SortStableFunc(found, func(a, b cand) int { return cmp.Or(a.mtime.Compare(b.mtime), number(b)-number(a)) })
	for _, c := range found {
		if f := w.take(s, c.path, now); f != nil {
			s.lastWrite = f.wrote
		}
	}
}

// copied says whether a file is a copy of one of the stream's, or of what its path names now.
func (w *sweeper) copied(s *Stream, path string, fi fs.FileInfo) bool {
	if fi.Size() > 0 && sameSoFar(s.path, path, fi) {
		return true
	}
	raw, _, err := openRegular(path, w.t.cfg.FollowSymlinks)
	if err != nil {
		return false
	}
	src := w.t.unpack(path, raw)
	defer src.Close()
	return slices.ContainsFunc(s.files, func(f *file) bool {
		// A longer file that begins like f is another run of the same program.
		return f.head > 0 && !f.dead && (f.truncated || fi.Size() <= f.size) && sameFile(f, src)
	})
}

// stemOf splits a path into its directory and the beginning that rotated files and copies of it share: the name without its extension.
func stemOf(path string) (dir, stem string) {
	dir, base := filepath.Split(path)
	stem = strings.TrimSuffix(base, filepath.Ext(base))
	if stem == "" {
		stem = base
	}
	return dir, stem
}

// endsStem says whether a name's first n bytes can be a stem: rank10.log is no copy of rank1.log.
func endsStem(name string, n int) bool {
	if n == len(name) {
		return true
	}
	c := name[n]
	return !(c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z')
}

// siblings calls f for the regular files beside path whose names begin like its own.
func (w *sweeper) siblings(path string, f func(string, fs.FileInfo)) {
	dir, stem := stemOf(path)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), stem) || !endsStem(e.Name(), len(stem)) || !e.Type().IsRegular() || dir+e.Name() == path {
			continue
		}
		if fi, err := e.Info(); err == nil {
			f(dir+e.Name(), fi)
		}
	}
}

// adoptCopy looks for the copy that was made of a file before it was cut, or for what became of a file that was compressed, and goes on reading there.
func (w *sweeper) adoptCopy(s *Stream, f *file, now time.Time) bool {
	if f.head == 0 {
		return false
	}
	done := false
	w.siblings(s.path, func(path string, fi fs.FileInfo) {
		if done || w.files[idOf(fi)] != nil {
			return
		}
		raw, fi, err := openRegular(path, w.t.cfg.FollowSymlinks)
		if err != nil {
			return
		}
		src := w.t.unpack(path, raw)
		if !sameFile(f, src) {
			_ = src.Close()
			return
		}
		done = true
		if w.files[f.id] == f {
			delete(w.files, f.id)
		}
		f.id, f.path, f.size, f.mtime, f.grown, f.seen = idOf(fi), path, fi.Size(), fi.ModTime(), now, w.scans
		f.changed = true
		w.files[f.id] = f
		delete(w.suspects, path)
		w.t.attach(f, raw, src)
		w.active(s, now)
	})
	return done
}

// isCopy says whether a new file looks like a copy of a stream's current file that is just being made, so that it must wait: if the original is cut
// next, the copy is what it was. It is a file of its own when it differs, or when nothing happens for a while.
func (w *sweeper) isCopy(s *Stream, path string, fi fs.FileInfo, now time.Time) bool {
	defer w.hold(s)()
	if s.current == nil || s.current.head == 0 && w.first || s.current.compressed || !sameSoFar(s.current.path, path, fi) {
		return false
	}
	c, ok := w.suspects[path]
	if !ok {
		c = suspect{first: now}
	}
	if !ok || c.size != fi.Size() && now.Sub(c.first) < copyMax {
		c.size, c.since = fi.Size(), now
	}
	w.suspects[path] = c
	return now.Sub(c.since) < copyGrace
}

// lookThoroughly looks at a stream before another takes up a file that may be its own: also for a rewrite that left the file longer than it was, and, when the
// path names nothing, for files that were rotated through it unseen.
func (w *sweeper) lookThoroughly(s *Stream, now time.Time, rotated bool) {
	s.missed = maxBusyLooks
	w.look(s, now)
	defer w.hold(s)()
	if s.current != nil {
		w.verify(s, now)
	} else if rotated && !s.gone {
		w.between(s, fileID{}, now)
	}
}

// verify finds out whether the current file was cut since it was read, also when it is longer now than it was.
func (w *sweeper) verify(s *Stream, now time.Time) {
	f := s.current
	if f.raw == nil || f.compressed || f.head == 0 || f.dead {
		return
	}
	if !f.truncated {
		b := make([]byte, f.tailN)
		n, _ := f.raw.ReadAt(b, f.head-int64(f.tailN))
		f.truncated = n < f.tailN || !f.tailMatches(b)
	}
	if f.truncated {
		w.truncated(s, f, now)
	}
}

// sameSoFar says whether a file is the beginning of another, by its first and last bytes. An empty file is not known to differ.
func sameSoFar(original, path string, fi fs.FileInfo) bool {
	if fi.Size() == 0 {
		return true
	}
	a, _, err := openRegular(original, true)
	if err != nil {
		return false
	}
	defer a.Close()
	b, _, err := openRegular(path, true)
	if err != nil {
		return false
	}
	defer b.Close()
	var x, y [4 << 10]byte
	for _, off := range []int64{0, max(0, fi.Size()-int64(len(x)))} {
		n, _ := b.ReadAt(x[:], off)
		m, _ := a.ReadAt(y[:n], off)
		if m < n || string(x[:n]) != string(y[:n]) {
			return false
		}
	}
	return true
}
