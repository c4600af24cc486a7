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
	lingerMax    = time.Minute           // time for which a rotated file is still watched
	rotatedGrace = 5 * time.Second       // wait for the end of a rotated file's last line, once its successor is written
	copyGrace    = 10 * time.Second      // wait for the truncation of the original of a possible copy, after the copy's last growth
	copyMax      = 5 * time.Minute       // in which growth of a possible copy prolongs that wait
	maxBusyLooks = 3                     // a poll_interval apart
	busyLook     = 50 * time.Millisecond // next look at a stream that was being drained: the drain may have missed the last event
)

// sweeper knows the streams and the files, and assigns files to streams, in one goroutine at a time.
type sweeper struct {
	t          *Tailer
	now        time.Time                // of the current sweep
	streams    map[string]*Stream       // by path
	files      map[fingerprint.ID]*file // of all streams, by device and inode
	due        dueHeap
	stems      map[string][]*Stream // by the beginning of their path, see rotation.Stem
	globs      glob.List            // all globs together
	sights     []sight              // one per glob
	own        glob.List            // include and document
	byName     glob.List            // absolute patterns
	shared     glob.List            // include_by_content
	others     map[string]int       // files of another Tailer, by these globs only, and the last full scan that asked for them
	sorting    bool                 // some files are still to be sniffed
	documents  glob.List
	exclude    glob.List
	dirs       map[string]*directory         // within the globs, by path
	suspects   map[string]suspect            // new files that are not taken up yet, by path
	lastFull   time.Time                     // last full scan
	rescan     bool                          // the next scan is a full one
	denied     bool                          // the directory of a glob could not be looked at
	absent     []string                      // bases of globs missing at the last full scan
	absentAt   time.Time                     // last check of absent
	scans      int                           // number of full scans
	forgotten  []string                      // streams whose checkpoint is to be deleted
	indexDirty bool                          // the stored index lacks a stream, or has one too many
	saved      map[string]*checkpoint.Stream // checkpoints loaded and not yet taken up, by path
	unindexed  bool                          // the index was lost
	allAt      time.Time                     // when events were lost last
	fresh      bool                          // a new file is in no checkpoint
	first      bool                          // no full scan yet: StartAt applies
	numbered   int                           // streams numbered so far
	caughtUp   int64                         // see allCaughtUp
	caughtUpAt time.Time
	last       lastListing
	captured   map[string][]capture // by the path of the stream
	probes     map[fingerprint.ID]*probe
	probing    int       // open decoders of probes
	allowance  int64     // bytes that probes may still decompress in this sweep
	surveyed   time.Time // last survey
	rates      []rateSample
	newest     string              // the path met last
	counting   bool                // a full scan is running
	passed     nonlog.Tally        // non-logs excluded by name, at the last full scan
	kernel     kernelfs.Passed     // kernel file systems, never entered, since the last full scan
	links      map[string]struct{} // matching symbolic links skipped since the last full scan
}

// init fills a new sweeper for a Tailer, with the globs of its configuration.
func (w *sweeper) init(t *Tailer) {
	*w = sweeper{
		t: t, first: true,
		streams: map[string]*Stream{}, stems: map[string][]*Stream{}, saved: map[string]*checkpoint.Stream{}, captured: map[string][]capture{},
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

// dueHeap orders the streams by the time of their next look.
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

// sweep looks at the directories, and at the streams that are kicked or due. It returns the delay until the next sweep. The order counts: streams with a stored
// position come before new files, which may be theirs; captured files before the scan and the looks, which take them up.
func (t *Tailer) sweep(now time.Time) time.Duration {
	t.sweepMu.Lock()
	defer t.sweepMu.Unlock()
	w := &t.sweeper
	w.now, w.allowance = now, w.t.probeBytes
	t.descriptors.resume()
	w.restore(now)
	w.takeHints(now)
	w.takeCaptures(now)
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
		if s.heapAt >= 0 { // not forgotten since
			w.look(s, now)
		}
	}
	for len(w.due) > 0 && !w.due[0].next.After(now) && !t.halted() {
		w.look(w.due[0], now)
	}
	w.last = lastListing{}
	w.endCaptures(now)
	w.endProbes(now.Add(-probeMax))
	w.survey(now)
	if w.fresh && t.cfg.Storage != nil { // a crash must find the new file's path in a checkpoint
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

// newStream makes the stream of a path, without files, registers the stream, and makes its first look due at once.
func (w *sweeper) newStream(path string, now time.Time) *Stream {
	w.numbered++
	w.caughtUpAt = time.Time{} // allCaughtUp has to count the new stream
	s := &Stream{t: w.t, path: path, number: w.numbered, working: suspended, activeAt: now, metAt: now, lastExpire: now, next: now}
	s.document = w.isDocument(path)
	s.byContent = !w.isOwn(path)
	s.early = s.byContent && w.t.set.Sorter.takeEarly(path)
	s.second = s.byContent && w.t.set.Sorter.isSecond(w.t, path)
	if !s.suspends() { // else the handler is made with the first work
		s.resume()
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

// look finds out which file a stream's path names now and whether the stream's files have grown, has new bytes read, and gives up held lines that are due. A
// stream without files, held lines and batches in flight is forgotten.
func (w *sweeper) look(s *Stream, now time.Time) {
	// While a worker drains the stream, the look is put off, at most maxBusyLooks times.
	if !s.sweeping && s.missed < maxBusyLooks {
		if !s.mu.TryLock() {
			if now.Sub(s.missedAt).Abs() >= w.t.cfg.PollInterval { // tries in between are not counted
				s.missed, s.missedAt = s.missed+1, now
			}
			w.setNextLook(s, now.Add(min(w.t.cfg.PollInterval, busyLook)))
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
	// The usual case, in one call of the system: nothing has changed.
	if f := s.current; f != nil && s.isQuiet() && osfile.Unchanged(s.path, w.t.cfg.FollowSymlinks, f.id, f.size, f.mtime) {
		f.seen, f.caughtUp = w.scans, now
		w.endLook(s, now)
		return
	}
	fi, err := w.t.stat(s.path)
	switch {
	case err == nil && fi.Mode().IsRegular():
		w.lookNamed(s, fi, now)
	case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		w.lookUnnamed(s, now)
	default:
		w.t.readError(s.path, err)
		s.denied = true
		for _, f := range s.files {
			f.failed = f.failed || f.life == lifeCut // not waited for (noteCaughtUp) until the path can be looked at
		}
	}
	w.lookOld(s, now)
	s.noteCaughtUp()
	w.expire(s, now)
	remembered := func(f *file) bool { return f.life != lifeVanished }
	settled := s.held.n == 0 && len(s.flying) == 0
	if s.current == nil && !s.denied && settled && !slices.ContainsFunc(s.files, remembered) { // nothing is left
		n := len(s.files)
		if w.takeUp(s, now, false); len(s.files) == n { // nor was a file rotated unseen
			for _, f := range s.files {
				w.drop(f)
			}
			w.forget(s)
			return
		}
	}
	w.endLook(s, now)
}

// lookNamed handles the file that the path names now: the current file, perhaps grown or truncated; a file of another stream; an older file of this stream,
// back under its name; or a new file.
func (w *sweeper) lookNamed(s *Stream, fi fs.FileInfo, now time.Time) {
	id := fingerprint.IDOf(fi)
	cur := s.current
	if cur != nil && cur.id == id { // the same as before
		cur.seen = w.scans
		if cur.life == lifeDead { // given up: the inode is a new file's
			cur.rotated, s.current = now, nil
			w.takeUp(s, now, true)
			return
		}
		shorter := !cur.compressed && fi.Size() < cur.head
		// Of a file read in part, the next read detects a longer rewrite. An unread file has no bytes before head: its first bytes are compared now.
		if cur.life == lifeCut || shorter || cur.head == 0 && cur.wasCut() {
			w.truncated(s, cur, now)
			return
		}
		if s.behind {
			w.takeUpOlder(s, now)
			w.t.schedule(s)
		}
		w.noteGrowth(s, cur, fi, now)
		return
	}
	f, wait := w.claimed(s.path, fi, now)
	if wait || f != nil && f.stream != s {
		w.lookUnnamed(s, now) // another stream's file, or perhaps one
		return
	}
	if f != nil {
		// An older file of this stream has its name back.
		w.lookUnnamed(s, now)
		s.files = append(slices.DeleteFunc(s.files, func(g *file) bool { return g == f }), f)
		f.rotated, f.path, f.grown = time.Time{}, s.path, now
		switch {
		case !f.isRetired():
		case f.compressed:
			f.setLife(lifeRead)
		default:
			f.setLife(lifeUnread)
		}
		s.current = f
		w.noteActivity(s, now)
		return
	}
	// A new file, whose predecessors may have been rotated unseen.
	w.lookUnnamed(s, now)
	w.takeUp(s, now, true)
}

// endLook ends a look at a stream. An idle stream's handler is informed (Idler) or dropped (suspend). The longer nothing has happened, the later is the next
// look.
func (w *sweeper) endLook(s *Stream, now time.Time) {
	s.idle(now)
	s.suspend(now)
	w.setNextLook(s, now.Add(backOff(w.t.cfg.PollInterval, now.Sub(s.activeAt))))
}

// isQuiet reports whether a stream needs no work as long as its current file is unchanged.
func (s *Stream) isQuiet() bool {
	f := s.current
	return len(s.files) == 1 && f.head == f.size && f.head > 0 && !f.compressed && f.life == lifeRead && !f.failed && !s.behind && s.held.n == 0
}

// lock locks a stream, and returns the function that unlocks it. If the sweeper already holds the lock, both do nothing: assigning a file leads from stream to
// stream, and may come back to the first.
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

// setNextLook sets when the stream is looked at next.
func (w *sweeper) setNextLook(s *Stream, at time.Time) {
	s.next = at
	if s.heapAt >= 0 {
		heap.Fix(&w.due, s.heapAt)
	}
}

// forget removes a stream of which no file is left from all lists. Its checkpoint is deleted with the next store.
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

// expire gives up held lines of a stream: all at once where no line can complete their records any more, else those whose timeout is over. The timeout runs
// only while everything that may complete their records is read. It also bounds the number of held lines.
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
	// Ten times within the timeout, but each second at most, and every 30 s at least.
	if every := min(max(timeout/10, time.Second), 30*time.Second); now.Sub(s.lastExpire) >= every {
		s.lastExpire = now
		// Unread lines, for instance while the next component is down, may be the other half of a held line.
		s.noteCaughtUp()
		s.expire(time.Unix(0, p.readUntil(w, s, now)).Add(-timeout))
	}
	p.boundAtLook(s, now)
}

// allCaughtUp returns the time up to which all streams have been read, Unix ns. The answer is at most one poll_interval old: ten thousand streams ask in every
// sweep.
func (w *sweeper) allCaughtUp(now time.Time) int64 {
	if age := now.Sub(w.caughtUpAt); age < 0 || age >= w.t.cfg.PollInterval {
		w.caughtUpAt, w.caughtUp = now, now.UnixNano()
		for _, s := range w.streams {
			w.caughtUp = min(w.caughtUp, s.caughtUp.Load())
		}
	}
	return w.caughtUp
}

// noteActivity records that something happened to a stream: it is polled often again, and read.
func (w *sweeper) noteActivity(s *Stream, now time.Time) {
	s.activeAt = now
	w.t.schedule(s)
}

// noteGrowth records size and time of a file that is still the stream's, and has the stream read where bytes are unread: after a change, an error, or a wait
// that is over.
func (w *sweeper) noteGrowth(s *Stream, f *file, fi fs.FileInfo, now time.Time) {
	changed := fi.Size() != f.size || !fi.ModTime().Equal(f.mtime)
	if fi.Size() != f.size || changed && f.compressed {
		f.grown = now
	}
	size := f.size
	f.size, f.mtime = fi.Size(), fi.ModTime()
	switch {
	case changed:
		if f.life == lifeRead {
			f.setLife(lifeUnread)
		}
		f.nulEnd = false
		if fi.Size() <= size {
			f.nulTo = 0 // data may replace the NULs
		}
		if f.src == nil && f.head == 0 && !f.compressed && w.t.reopen(f) == nil { // the beginning may be truncated before the stream's turn
			defer w.t.spare(f)
		}
		f.begin()
		if f.compressed { // decompressed anew once the size is stable
			w.t.close(f)
		}
		w.noteActivity(s, now)
	case f.compressed:
		if f.life != lifeRead { // read once the size is stable (unpackedLater)
			w.t.schedule(s)
		}
	case f.failed:
		w.tryAgain(f, now)
	case f.size == f.head:
		f.caughtUp = now
	case now.Sub(f.grown) >= w.t.cfg.PendingTimeout || !f.rotated.IsZero() && now.Sub(f.grown) >= rotatedGrace:
		w.t.schedule(s) // the last line has waited long enough
	}
}

// tryAgain has a file read again after a read error, at most once per sweep: looks at other streams lead here too.
func (w *sweeper) tryAgain(f *file, now time.Time) {
	if at := now.UnixNano(); at != f.tried {
		f.tried = at
		w.t.schedule(f.stream)
	}
}

// lookOld looks at the rotated files of a stream. Files with unread bytes are read. Files fully read and accepted are retired once no more bytes are expected.
// Files that cannot be read any more are dropped.
func (w *sweeper) lookOld(s *Stream, now time.Time) {
	linger := min(lingerMax, w.t.cfg.PendingTimeout)
	if _, short := w.t.descriptors.pressure(); short { // others need the descriptor
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
				w.noteGrowth(s, f, fi, now) // may still be written
			} else { // not at its path any more, but perhaps open
				w.t.schedule(s)
			}
		default:
			w.lookRotated(s, f, now)
		}
		if f.outstanding > 0 || len(f.replay) > 0 || s.comesAgain(f) { // not all is accepted
			return false
		}
		if f.life == lifeDead {
			w.drop(f)
			return true
		}
		atEnd := !f.compressed && f.life != lifeCut && f.size <= f.head
		lingered := now.Sub(f.rotated) >= linger && now.Sub(f.grown) >= linger
		if f.isComplete() || atEnd && (f.gone || lingered) {
			w.t.close(f)
			f.setLife(lifeRetired)
			s.changed()
		}
		return false
	})
}

// lookRotated has the unread bytes of a rotated file read. A file that was closed to save descriptors may have been removed or replaced since: then it is
// opened under its new name, or continued in a copy.
func (w *sweeper) lookRotated(s *Stream, f *file, now time.Time) {
	fi, err := w.t.statOf(f)
	moved := errors.Is(err, fs.ErrNotExist)
	changed := err == nil && (fi.Size() != f.size || !fi.ModTime().Equal(f.mtime))
	if f.src == nil && (moved || changed) {
		err = w.t.reopen(f)
		if err == nil { // not another file with the inode
			fi, err = f.raw.Stat()
			defer w.t.spare(f)
		}
		if err == nil && f.head == 0 && f.print.N == 0 {
			if is, _ := w.copied(s, f.path, f.raw, fi); is { // a copy that got the inode
				w.t.close(f)
				f.setLife(lifeDead)
				return
			}
		}
	}
	if errors.Is(err, errTruncated) {
		c, wait := w.copyOf(s, f)
		if c != nil {
			w.continueIn(f, c, now)
		}
		f.gone = c == nil && !wait
		if f.gone && f.size > f.head {
			w.tryAgain(f, now) // the stream's turn detects the loss
		}
		return
	}
	switch {
	case err == nil:
		w.noteGrowth(s, f, fi, now)
	case f.failed:
		w.tryAgain(f, now)
	}
}

// statOf returns the stat of a rotated file: by its descriptor if open, else by its path, with fs.ErrNotExist if the path names another file now.
func (t *Tailer) statOf(f *file) (fs.FileInfo, error) {
	if f.raw != nil {
		return f.raw.Stat()
	}
	return t.statAt(f)
}

// lookMissing continues the search for a file of a checkpoint that was not found at the start. It returns true if neither the file nor a copy exists: then the
// file is lost.
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
	w.continueIn(f, c, now)
	return false
}

// drop closes a file and forgets its inode, which then is free for another file.
func (w *sweeper) drop(f *file) {
	w.t.close(f)
	if w.files[f.id] == f {
		delete(w.files, f.id)
	}
	f.stream.changed()
}

// sweepRetired drops retired files that the last full scan has not met: they are gone, or out of the globs. Those of a path that names nothing only count as
// vanished, and are dropped with their stream: earlier, they or their copies would be taken for files rotated unseen.
func (w *sweeper) sweepRetired() {
	for _, s := range w.streams {
		s.mu.Lock()
		s.files = slices.DeleteFunc(s.files, func(f *file) bool {
			switch {
			case !f.isRetired():
			case f.seen == w.scans:
				f.setLife(lifeRetired)
			default:
				if f.setLife(lifeVanished); s.current != nil {
					w.drop(f)
					return true
				}
			}
			return false
		})
		s.mu.Unlock()
	}
}
