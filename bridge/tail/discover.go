package tail

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
	"github.com/trainbridge/trainbridge/internal/kernelfs"
	"github.com/trainbridge/trainbridge/internal/nonlog"
)

const maxDepth = 64 // depth of directories below a glob's base

// sight is what the sweeper has found by a glob. It is apart from the glob, which other goroutines read.
type sight struct {
	matched   bool   // a file was found
	directory string // a directory named by the pattern; empty: none
}

// directory is a directory within the globs.
type directory struct {
	path      string
	mtime     time.Time // at the last listing
	next      time.Time // of the next look
	activeAt  time.Time // when a change was last seen
	listAgain bool      // list once more: the directory may have changed during the listing, or could not be read
	polled    bool      // inotify could not watch it
}

// suspect is a new file without a stream yet, because the file may prove to be a known file of another stream: an unfinished copy, a rotated file that is not
// compared yet, or a compressed file whose original is still there. Each scan looks at the suspects again (found).
type suspect struct {
	first, since time.Time // first seen, and last grown
	size         int64     // at since
	twin         bool      // a compressed file that begins like its original
}

// scan takes up new files. A full scan, from the bases of the globs, comes first, then every fullScanEvery, when something asks for one (rescan), and
// maxIdlePoll after a directory could not be looked at (denied). Between full scans only the directories that have changed are listed.
func (w *sweeper) scan(now time.Time) {
	age := now.Sub(w.lastFull)
	full := w.lastFull.IsZero() || age >= fullScanEvery || w.rescan || w.denied && age >= maxIdlePoll
	if full {
		w.scanAll(now)
	} else {
		w.scanChanged(now)
	}
}

// scanAll walks all directories from the bases of the globs. Afterwards what the walk has not met is gone: directories, retired files, other Tailers' files.
func (w *sweeper) scanAll(now time.Time) {
	w.lastFull, w.rescan, w.denied, w.absent, w.absentAt = now, false, false, w.absent[:0], now
	clear(w.links)
	w.passed, w.kernel = nonlog.Tally{}, kernelfs.Passed{} // new maps: Status has those of the last complete scan
	w.scans++
	visited := map[string]bool{}
	w.counting = true
	for i := range w.globs.Globs {
		w.walk(w.globs.Globs[i].Base, 0, visited, now)
	}
	w.counting = false
	if w.t.halted() {
		return // unseen files may exist
	}
	for path := range w.dirs {
		if !visited[path] {
			delete(w.dirs, path)
		}
	}
	if w.t.watcher != nil {
		w.t.watcher.Forget(func(dir string) bool { return w.dirs[dir] == nil })
	}
	w.sweepRetired()
	w.sweepOthers()
	w.first = false
}

// scanChanged lists the known directories that are due and have changed, by modification time or event, and looks again at the files that may be copies.
func (w *sweeper) scanChanged(now time.Time) {
	for _, d := range w.dirs {
		if now.Before(d.next) {
			continue
		}
		fi, err := os.Stat(d.path)
		if err != nil {
			w.rescan = true
			continue
		}
		if !fi.ModTime().Equal(d.mtime) || d.listAgain {
			visited := map[string]bool{}
			w.list(d, fi.ModTime(), 0, visited, now)
		}
		d.next = now.Add(backOff(w.t.cfg.PollInterval, now.Sub(d.activeAt)))
	}
	for path := range w.suspects {
		w.found(path, now)
	}
	// A missing base of a glob has no listed parent that would show its creation.
	if now.Sub(w.absentAt) >= maxIdlePoll {
		w.absentAt = now
		w.rescan = w.rescan || slices.ContainsFunc(w.absent, func(base string) bool {
			_, err := os.Stat(base)
			return err == nil
		})
	}
}

// backOff returns the delay before the next look at something: a tenth of the time it has been idle, between poll and maxIdlePoll.
func backOff(poll, idle time.Duration) time.Duration {
	return max(poll, min(idle/10, maxIdlePoll))
}

// walk lists a directory within the globs, and takes up its files and those of the directories below. A path in visited is not walked again; walk adds the
// directory. A kernel file system such as /proc is left out, unless a glob names a file in the directory.
func (w *sweeper) walk(path string, depth int, visited map[string]bool, now time.Time) {
	if visited[path] || depth > maxDepth {
		return
	}
	fi, err := os.Stat(path)
	if err != nil || !fi.IsDir() {
		if err == nil {
			w.found(path, now) // a pattern without meta characters may name a file
		}
		w.denied = w.denied || errors.Is(err, fs.ErrPermission)
		if depth == 0 && errors.Is(err, fs.ErrNotExist) {
			w.absent = append(w.absent, path)
		}
		return
	}
	if of := kernelfs.Of(path); of != "" && !w.globs.Names(path) {
		w.kernel[path] = of
		return
	}
	d := w.dirs[path]
	if d == nil {
		d = &directory{path: path}
		w.dirs[path] = d
	}
	visited[path] = true
	w.list(d, fi.ModTime(), depth, visited, now)
	d.next = now.Add(backOff(w.t.cfg.PollInterval, now.Sub(d.activeAt)))
}

// list takes up the files of one directory, and walks into the directories in it. mtime is the directory's modification time before the listing.
func (w *sweeper) list(d *directory, mtime time.Time, depth int, visited map[string]bool, now time.Time) {
	changed := !mtime.Equal(d.mtime)
	d.listAgain = changed // a further change may come during the listing, or within the precision of the time
	if changed {
		d.activeAt = now
	}
	d.mtime = mtime
	fresh := w.watch(d)
	entries, err := os.ReadDir(d.path)
	if err != nil {
		w.t.readError(d.path, err)
		d.listAgain = true // a change of permissions leaves the modification time
	}
	for _, e := range entries {
		if w.t.halted() { // a look at many thousand files takes longer than Shutdown waits
			return
		}
		path := filepath.Join(d.path, e.Name())
		if fresh {
			if s := w.streams[path]; s != nil {
				w.setNextLook(s, now) // a file may have been written before inotify watched
			}
		}
		w.entry(path, e, depth, visited, now)
	}
}

// entry takes up an entry of a directory: a file in the globs, or a directory that may hold such files. A link is what its target is, where links are followed.
func (w *sweeper) entry(path string, e fs.DirEntry, depth int, visited map[string]bool, now time.Time) {
	mode := e.Type()
	if mode&fs.ModeSymlink != 0 {
		if !w.t.cfg.FollowSymlinks {
			if w.wanted(path) {
				w.links[path] = struct{}{}
			}
			return
		}
		fi, err := os.Stat(path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && w.globs.Match(path) {
				w.t.readError(path, err)
			}
			return
		}
		mode = fi.Mode().Type()
	}
	switch {
	case mode.IsDir():
		w.noteDirectory(path)
		if w.globs.Below(path) {
			w.walk(path, depth+1, visited, now)
		} else {
			w.notePassed(path, true)
		}
	case mode.IsRegular():
		w.notePassed(path, false)
		w.found(path, now)
	}
}

// notePassed counts, during a full scan, a path that a glob would match but for its name, which is no log's (internal/nonlog).
func (w *sweeper) notePassed(path string, isDir bool) {
	if name := w.globs.PassedOver(path, isDir); name != "" && w.counting && !w.exclude.Match(path) {
		w.passed[name]++
	}
}

// found handles a path met in a directory. A file of the globs that is for this Tailer gets a stream of its own, unless the path has a stream, or the file is
// or may be a known file of another stream (foundNew).
func (w *sweeper) found(path string, now time.Time) {
	if s := w.streams[path]; s != nil {
		w.foundAgain(s, now)
		return
	}
	if w.wanted(path) && w.isMine(path, now) {
		w.foundNew(path, now)
	}
}

// foundAgain handles the path of a stream, met in a directory: the stream's current file counts as seen by the present scan. A stream with a current file is
// looked at when due (look), one without is looked at now, because the path may name a new file.
func (w *sweeper) foundAgain(s *Stream, now time.Time) {
	if s.current == nil {
		w.look(s, now)
	}
	if s.current != nil {
		s.current.seen = w.scans
		delete(w.suspects, s.path)
	}
}

// foundNew handles a path without a stream, met in a directory, and starts a stream, unless the file is a known file of a stream under a new name, or may be
// one: then the file stays among w.suspects, and the next scan decides.
func (w *sweeper) foundNew(path string, now time.Time) {
	fi, err := w.t.stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		delete(w.suspects, path)
		if d := w.dirs[filepath.Dir(path)]; d != nil && errors.Is(err, fs.ErrPermission) {
			d.listAgain = true // a change of permissions leaves the directory's modification time
			w.t.readError(path, err)
		}
		return
	}
	if w.known(path, fi) == nil && w.awaitsOriginal(path, fi, now) {
		return
	}
	f, wait := w.claimed(path, fi, now)
	if wait {
		return
	}
	delete(w.suspects, path)
	if f != nil { // read by the stream of f
		return
	}
	// A rotated file without a successor (yet) belongs to the successor's future stream.
	if base := w.rotatedFrom(path); base != "" {
		w.startStream(base, now)
		if w.files[fingerprint.IDOf(fi)] != nil { // taken up by the new stream
			return
		}
	}
	w.startStream(path, now)
}

// startStream makes the stream of a path and looks at the path. If the index of positions was lost, the path's own stored position is looked for, and reading
// continues there.
func (w *sweeper) startStream(path string, now time.Time) {
	if w.unindexed {
		w.loadUnindexed(path)
		if c := w.saved[path]; c != nil {
			delete(w.saved, path)
			s := w.restoreStream(c, now)
			w.takeUpOlder(s, now)
			w.look(s, now)
			return
		}
	}
	w.look(w.newStream(path, now), now)
}

// wanted reports whether the globs ask for a file.
func (w *sweeper) wanted(path string) bool {
	return w.globs.Match(path) && !w.exclude.Match(path)
}

// isDocument reports whether a file of the globs is rewritten whole.
func (w *sweeper) isDocument(path string) bool {
	return w.documents.Match(path) || w.t.set.IsDocument != nil && w.t.set.IsDocument(path)
}

// rotatedFrom returns the former path of a rotated file, if in the globs and without a stream; otherwise "".
func (w *sweeper) rotatedFrom(path string) string {
	for base := range rotation.Bases(path) {
		if w.wanted(base) && w.streams[base] == nil && !w.isDocument(path) && w.isMineAtOnce(base, w.now) {
			return base
		}
	}
	return ""
}

// claimed returns the known file of a stream that has the new name path, with the stat fi. Before, the streams whose rotated files or copies may have this name
// are looked at, as they may claim the file. nil: no stream has the file, or with wait the file may prove to be a stream's: it is a suspect, and not taken up
// yet.
func (w *sweeper) claimed(path string, fi fs.FileInfo, now time.Time) (_ *file, wait bool) {
	if f := w.known(path, fi); f != nil {
		return f, false
	}
	// The streams whose files may be copied or rotated to this name have a path that begins alike: the longest first.
	dir, base := filepath.Split(path)
	for n := len(base); n > 0; n-- {
		if !rotation.EndsStem(base, n) {
			continue
		}
		for _, s := range w.stems[dir+base[:n]] {
			// Recursion ends, because only shorter names are considered.
			if s.document || len(s.path) >= len(path) {
				continue
			}
			rotated := rotation.IsSuffix(strings.TrimPrefix(path, s.path))
			w.lookThoroughly(s, now, rotated)
			if f := w.known(path, fi); f != nil {
				return f, false
			}
			if rotated && s.behind { // s has rotated files still to compare, perhaps this one
				w.suspects[path] = suspect{first: now, since: now}
				return nil, true
			}
			if f, wait := w.packedFrom(s, path, fi, now); f != nil || wait {
				return f, wait
			}
			if w.isCopy(s, path, now) {
				return nil, true
			}
		}
	}
	if p := w.probes[fingerprint.IDOf(fi)]; p != nil && p.src != nil { // a stream is still comparing it
		w.suspects[path] = suspect{first: now, since: now}
		return nil, true
	}
	return nil, false
}

// known returns the file of a stream that a path names now, found by device and inode; nil: none. It also notes that file's present path.
//
// Of a closed file that has changed, the inode may belong to a new file by now. So the contents are compared: a file that is not the same any more is forgotten
// under its inode, and nil returned; a retired file that has changed is unread again.
func (w *sweeper) known(path string, fi fs.FileInfo) *file {
	id := fingerprint.IDOf(fi)
	f := w.files[id]
	if f == nil {
		return nil
	}
	s := f.stream
	defer w.lock(s)()
	if f.src == nil && (fi.Size() != f.size || !fi.ModTime().Equal(f.mtime)) {
		raw, _, err := osfile.Open(path, w.t.cfg.FollowSymlinks)
		if err != nil { // for now the same
			return f
		}
		src := w.t.unpack(path, raw)
		same := f.mayBe(path) && f.isStill(src)
		_ = src.Close()
		if !same {
			delete(w.files, id)
			return nil
		}
		if f.isRetired() {
			f.setLife(lifeUnread)
			f.size, f.mtime, f.grown = fi.Size(), fi.ModTime(), w.now
			w.noteActivity(s, w.now)
		}
	}
	f.seen, f.path = w.scans, path
	return f
}
