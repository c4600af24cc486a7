package tail

import (
	"cmp"
	"container/heap"
	"errors"
	"io/fs"
	"slices"
	"syscall"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/glob"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
)

const (
	lingerMax    = time.Minute      // how long a file is still watched after it was rotated away
	rotatedGrace = 5 * time.Second  // how long an unfinished last line of a rotated file waits when its successor is written
	copyGrace    = 10 * time.Second // how long a file that looks like a copy waits for its original to be cut
	copyMax      = 5 * time.Minute
	maxBusyLooks = 3                     // a poll_interval apart
	busyLook     = 50 * time.Millisecond // until a stream that was being drained is looked at again: drained, it may not have what inotify told of
)

// sweeper knows the streams and the files, and decides which file belongs to which stream. One goroutine at a time uses it.
type sweeper struct {
	t          *Tailer
	now        time.Time
	streams    map[string]*Stream
	files      map[fingerprint.ID]*file
	due        dueHeap
	stems      map[string][]*Stream // by the beginning of their path, see stemOf
	globs      glob.List            // all globs together
	sights     []sight              // one for each of globs
	own        glob.List            // include and document
	byName     glob.List            // these, as absolute paths
	shared     glob.List            // include_by_content
	others     map[string]int       // files that only these globs match and that are another's, and the full scan that last asked for them
	sorting    bool                 // there are files to look at
	documents  glob.List
	exclude    glob.List
	dirs       map[string]*directory
	suspects   map[string]suspect
	lastFull   time.Time
	rescan     bool
	denied     bool      // the directory of a glob could not be looked at
	absent     []string  // bases of globs that were not there at the last full scan
	absentAt   time.Time // when they were asked for last
	scans      int
	forgotten  []string // streams whose checkpoint is to be deleted
	indexDirty bool
	saved      map[string]*checkpoint.Stream // checkpoints loaded and not yet taken up, by path
	unindexed  bool                          // the index was lost
	allAt      time.Time                     // when events were lost last
	fresh      bool                          // a file was taken up that no checkpoint knows
	first      bool                          // no full scan yet: StartAt applies
	numbered   int                           // streams so far
	caught     int64                         // see allCaught
	caughtAt   time.Time
	last       lastListing
	nets       map[string][]caught // by the path of the stream
	probes     map[fingerprint.ID]*probe
	probing    int   // decoders that they have open
	allowance  int64 // bytes that they may still decompress in this sweep
	surveyed   time.Time
	rates      []rateSample
	newest     string              // the path that was met last
	counting   bool                // a full scan goes on
	passed     nonlog.Tally        // what is no log by its name, at the last full scan
	kernel     kernelfs.Passed     // file systems of the kernel, which are not entered, since the last full scan
	links      map[string]struct{} // symbolic links that match and are passed over, since the last full scan
}

func (w *sweeper) init(t *Tailer) {
	*w = sweeper{
		t: t, first: true,
		streams: map[string]*Stream{}, stems: map[string][]*Stream{}, saved: map[string]*checkpoint.Stream{}, nets: map[string][]caught{},
		files: map[fingerprint.ID]*file{}, probes: map[fingerprint.ID]*probe{}, suspects: map[string]suspect{}, others: map[string]int{},
		dirs: map[string]*directory{}, links: map[string]struct{}{},
		exclude: glob.New(t.cfg.Exclude),
	}
	list := glob.Sifting
	if t.cfg.IncludeNonLogs {
		list = glob.New
	}
	w.own, w.documents = list(slices.Concat(t.cfg.Include, t.cfg.Document)), list(t.cfg.Document)
	if t.set.Sorter != nil && t.set.Detect != nil {
		w.shared = list(t.cfg.IncludeByContent)
		w.byName = list(absolutes(slices.Concat(t.cfg.Include, t.cfg.Document)))
	}
	w.globs = w.own.With(w.shared)
	w.sights = make([]sight, len(w.globs.Globs))
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

// sweep looks at the directories, the streams that were kicked and the streams that are due. It returns how long until the next stream is due.
func (t *Tailer) sweep(now time.Time) time.Duration {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	w := &t.sweeper
	w.now, w.allowance = now, w.t.probeBytes
	t.descriptors.rouse()
	w.restore(now)
	w.hinted(now)
	w.takeCaught(now)
	w.scan(now)
	w.sortFiles(now)
	if t.halted() {
		return 0
	}
	t.mu.Lock()
	kicked := t.kicked
	t.kicked = nil
	for _, s := range kicked {
		s.kicked = false
	}
	t.mu.Unlock()
	for _, s := range kicked {
		if s.heapAt >= 0 {
			w.look(s, now)
		}
	}
	for len(w.due) > 0 && !w.due[0].next.After(now) && !t.halted() {
		w.look(w.due[0], now)
	}
	w.last = lastListing{}
	w.endCaught(now)
	w.endProbes(now.Add(-probeMax))
	w.survey(now)
	if w.fresh && t.cfg.Storage != nil {
		w.fresh = false
		select {
		case t.early <- struct{}{}:
		default:
		}
	}
	wait := t.cfg.PollInterval
	if w.sorting {
		wait = 0
	}
	if len(w.due) > 0 {
		wait = min(wait, w.due[0].next.Sub(now))
	}
	return wait
}

// newStream takes up a path.
func (w *sweeper) newStream(path string, now time.Time) *Stream {
	w.numbered++
	w.caughtAt = time.Time{}
	s := &Stream{t: w.t, path: path, number: w.numbered, awake: asleep, activeAt: now, metAt: now, lastExpire: now, next: now}
	s.document = w.isDocument(path)
	s.byContent = !w.isOwn(path)
	s.early = s.byContent && w.t.set.Sorter.takeEarly(path)
	if !s.sleeps() {
		s.wake()
	}
	w.streams[path] = s
	w.newest = path
	w.noteMatch(path)
	dir, stem := rotation.Stem(path)
	w.stems[dir+stem] = append(w.stems[dir+stem], s)
	w.indexDirty = true
	heap.Push(&w.due, s)
	w.t.watched.Add(1)
	return s
}

// look finds out which file a stream's path names now and whether its files have grown.
func (w *sweeper) look(s *Stream, now time.Time) {
	if !s.sweeping && s.missed < maxBusyLooks {
		if !s.mu.TryLock() {
			if now.Sub(s.missedAt).Abs() >= w.t.cfg.PollInterval {
				s.missed, s.missedAt = s.missed+1, now
			}
			w.again(s, now.Add(min(w.t.cfg.PollInterval, busyLook)))
			return
		}
		s.mu.Unlock()
	}
	defer w.lock(s)()
	s.missed, s.denied = 0, false
	if s.document {
		w.lookDocument(s, now)
		return
	}
	if f := s.current; f != nil && s.isQuiet() && osfile.Unchanged(s.path, w.t.cfg.FollowSymlinks, f.id, f.size, f.mtime) {
		f.seen, f.caught = w.scans, now
		w.rest(s, now)
		return
	}
	fi, err := w.t.stat(s.path)
	switch {
	case err == nil && fi.Mode().IsRegular():
		w.named(s, fi, now)
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		w.unnamed(s, now)
	default:
		w.t.readError(s.path, err)
		s.denied = true
		for _, f := range s.files {
			f.failed = f.failed || f.life == lifeCut // it stays so until the path can be looked at
		}
	}
	w.lookOld(s, now)
	s.noteCaught()
	w.expire(s, now)
	remembered := func(f *file) bool { return f.life != lifeVanished }
	if s.current == nil && !s.denied && s.held.n == 0 && len(s.flying) == 0 && !slices.ContainsFunc(s.files, remembered) {
		n := len(s.files)
		if w.takeUp(s, now, false); len(s.files) == n {
			for _, f := range s.files {
				w.drop(f)
			}
			w.forget(s)
			return
		}
	}
	w.rest(s, now)
}

// named is told which file the path names.
func (w *sweeper) named(s *Stream, fi fs.FileInfo, now time.Time) {
	id := fingerprint.IDOf(fi)
	cur := s.current
	if cur != nil && cur.id == id {
		cur.seen = w.scans
		if cur.life == lifeDead {
			cur.rotated, s.current = now, nil
			w.takeUp(s, now, true)
			return
		}
		if cur.life == lifeCut || !cur.compressed && fi.Size() < cur.head || cur.head == 0 && cur.wasCut() {
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
		f.rotated, f.path, f.grown = time.Time{}, s.path, now
		switch {
		case !f.isRetired():
		case f.compressed:
			f.turn(lifeRead)
		default:
			f.turn(lifeUnread)
		}
		s.current = f
		w.active(s, now)
		return
	}
	w.unnamed(s, now)
	w.takeUp(s, now, true)
}

// rest ends a look at a stream.
func (w *sweeper) rest(s *Stream, now time.Time) {
	s.idle(now)
	s.sleep(now)
	w.again(s, now.Add(backOff(w.t.cfg.PollInterval, now.Sub(s.activeAt))))
}

// isQuiet says that there is nothing to do for a stream whose current file is as it was.
func (s *Stream) isQuiet() bool {
	f := s.current
	return len(s.files) == 1 && f.head == f.size && f.head > 0 && !f.compressed && f.life == lifeRead && !f.failed && !s.behind && s.held.n == 0
}

// lock locks a stream unless the sweeper holds it already, and returns how to unlock it: deciding whose file it is leads from stream to stream.
func (w *sweeper) lock(s *Stream) (unlock func()) {
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
	if h, ok := s.handler.(Forgetter); ok {
		h.Forget()
	}
	heap.Remove(&w.due, s.heapAt)
	delete(w.streams, s.path)
	dir, stem := rotation.Stem(s.path)
	left := slices.DeleteFunc(w.stems[dir+stem], func(o *Stream) bool { return o == s })
	if len(left) == 0 {
		delete(w.stems, dir+stem)
	} else {
		w.stems[dir+stem] = left
	}
	w.forgotten = append(w.forgotten, s.path)
	w.indexDirty = true
	w.t.watched.Add(-1)
	w.t.size.Add(-s.size.Swap(0))
	w.t.lag.Add(-s.lag.Swap(0))
}

// expire gives up on held lines that have waited too long, and bounds their number.
func (w *sweeper) expire(s *Stream, now time.Time) {
	if s.held.n == 0 {
		return
	}
	p := w.t.policy
	if p.ended(s) {
		s.expire(farFuture)
		return
	}
	timeout := cmp.Or(w.t.set.HoldTimeout, w.t.cfg.PendingTimeout)
	if every := min(max(timeout/10, time.Second), 30*time.Second); now.Sub(s.lastExpire) >= every {
		s.lastExpire = now
		// Lines that are still to be read, as while the next component is down, may be the other half of a held line.
		s.noteCaught()
		s.expire(time.Unix(0, p.readUntil(w, s, now)).Add(-timeout))
	}
	p.boundAtLook(s, now)
}

// allCaught returns when all that there was, of all streams, had been read, Unix ns. It asks them all once per poll_interval: ten thousand that hold lines ask.
func (w *sweeper) allCaught(now time.Time) int64 {
	if age := now.Sub(w.caughtAt); age < 0 || age >= w.t.cfg.PollInterval {
		w.caughtAt, w.caught = now, now.UnixNano()
		for _, s := range w.streams {
			w.caught = min(w.caught, s.caught.Load())
		}
	}
	return w.caught
}

// active notes that something happened, so the stream is looked at often again, and has it drained.
func (w *sweeper) active(s *Stream, now time.Time) {
	s.activeAt = now
	w.t.schedule(s)
}

// grew takes note of a file's size and has it read when it changed.
func (w *sweeper) grew(s *Stream, f *file, fi fs.FileInfo, now time.Time) {
	changed := fi.Size() != f.size || !fi.ModTime().Equal(f.mtime)
	if fi.Size() != f.size || changed && f.compressed {
		f.grown = now
	}
	size := f.size
	f.size, f.mtime = fi.Size(), fi.ModTime()
	switch {
	case changed:
		if f.life == lifeRead {
			f.turn(lifeUnread)
		}
		if f.nulEnd = false; fi.Size() <= size {
			f.nulTo = 0 // it may have been written where there was NUL
		}
		if f.src == nil && f.head == 0 && !f.compressed && w.t.reopen(f) == nil { // its beginning may be cut away before its turn comes
			defer w.t.spare(f)
		}
		f.begin()
		if f.compressed {
			w.t.close(f)
		}
		w.active(s, now)
	case f.compressed:
		if f.life != lifeRead {
			w.t.schedule(s)
		}
	case f.failed:
		w.tryAgain(f, now)
	case f.size == f.head:
		f.caught = now
	case now.Sub(f.grown) >= w.t.cfg.PendingTimeout || !f.rotated.IsZero() && now.Sub(f.grown) >= rotatedGrace:
		w.t.schedule(s) // the last line has waited long enough
	}
}

// tryAgain has a file read that could not be read, once per moment: other streams' looks lead here too.
func (w *sweeper) tryAgain(f *file, now time.Time) {
	if at := now.UnixNano(); at != f.tried {
		f.tried = at
		w.t.schedule(f.stream)
	}
}

// lookOld looks at the files that the path no longer names.
func (w *sweeper) lookOld(s *Stream, now time.Time) {
	linger := min(lingerMax, w.t.cfg.PendingTimeout)
	if _, short := w.t.descriptors.pressure(); short {
		linger = min(linger, rotatedGrace)
	}
	for _, f := range slices.Clone(s.files) {
		if f != s.current && f.life == lifeCut {
			w.truncated(s, f, now)
		}
	}
	s.files = slices.DeleteFunc(s.files, func(f *file) bool {
		if f == s.current || f.isRetired() {
			return false
		}
		switch {
		case f.life == lifeMissing:
			return w.lookMissing(s, f, now)
		case f.life == lifeDead, f.isComplete():
		case f.compressed:
			if fi, err := w.t.statAt(f); err == nil {
				w.grew(s, f, fi, now) // it may still be being written
			} else {
				w.t.schedule(s)
			}
		default:
			w.lookRotated(s, f, now)
		}
		if f.outstanding > 0 || len(f.replay) > 0 || s.comesAgain(f) {
			return false
		}
		if f.life == lifeDead {
			w.drop(f)
			return true
		}
		atEnd := !f.compressed && f.life != lifeCut && f.size <= f.head
		if f.isComplete() || atEnd && (f.gone || now.Sub(f.rotated) >= linger && now.Sub(f.grown) >= linger) {
			w.t.close(f)
			f.turn(lifeRetired)
			s.changed()
		}
		return false
	})
}

// lookRotated looks at a file that the path no longer names. It may have been closed to save descriptors, and gone since, with a copy left.
func (w *sweeper) lookRotated(s *Stream, f *file, now time.Time) {
	fi, err := w.t.statOf(f)
	moved := errors.Is(err, fs.ErrNotExist)
	if f.src == nil && (moved || err == nil && (fi.Size() != f.size || !fi.ModTime().Equal(f.mtime))) {
		if err = w.t.reopen(f); err == nil { // it is not another file with the inode
			fi, err = f.raw.Stat()
			defer w.t.spare(f)
		}
		if err == nil && f.head == 0 && f.print.N == 0 {
			if is, _ := w.copied(s, f.path, f.raw, fi); is { // a copy that was given the inode
				w.t.close(f)
				f.turn(lifeDead)
				return
			}
		}
	}
	if errors.Is(err, errTruncated) {
		c, wait := w.copyOf(s, f)
		if c != nil {
			w.become(f, c, now)
		}
		if f.gone = c == nil && !wait; f.gone && f.size > f.head {
			w.tryAgain(f, now) // its stream's turn finds out that it is lost
		}
		return
	}
	switch {
	case err == nil:
		w.grew(s, f, fi, now)
	case f.failed:
		w.tryAgain(f, now)
	}
}

// statOf says how a file is that the path no longer names. It may be closed: it could not be opened yet, or was closed while the path named it, and names were
// exchanged since.
func (t *Tailer) statOf(f *file) (fs.FileInfo, error) {
	if f.raw != nil {
		return f.raw.Stat()
	}
	return t.statAt(f)
}

// lookMissing goes on looking for a file of a checkpoint, under whatever name it has now. It returns true when the file is nowhere.
func (w *sweeper) lookMissing(s *Stream, f *file, now time.Time) (gone bool) {
	c, wait := w.copyOf(s, f)
	if wait {
		return false
	}
	if c == nil {
		w.lost(f, len(f.replay) > 0 || f.size > f.head)
		w.drop(f)
		return true
	}
	w.become(f, c, now)
	return false
}

func (w *sweeper) drop(f *file) {
	w.t.close(f)
	if w.files[f.id] == f {
		delete(w.files, f.id)
	}
	f.stream.changed()
}

// sweepRetired forgets files that are read and gone, or out of the globs. Files of a path that names nothing are forgotten with their stream: they or copies of
// them must not be taken for files that were rotated unseen.
func (w *sweeper) sweepRetired() {
	for _, s := range w.streams {
		s.mu.Lock()
		s.files = slices.DeleteFunc(s.files, func(f *file) bool {
			switch {
			case !f.isRetired():
			case f.seen == w.scans:
				f.turn(lifeRetired)
			default:
				if f.turn(lifeVanished); s.current != nil {
					w.drop(f)
					return true
				}
			}
			return false
		})
		s.mu.Unlock()
	}
}
