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

// sight is the sweeper's knowledge of a glob, apart from the glob, which other goroutines read.
type sight struct {
	matched   bool   // a file
	directory string // a directory named by the pattern; empty: none
}

// directory is a directory within the globs.
type directory struct {
	path     string
	mtime    time.Time
	next     time.Time
	activeAt time.Time
	again    bool // list once more: the directory changed during the listing, or was unreadable
	polled   bool // inotify could not watch it
}

// suspect is a new file that may be an unfinished copy of a stream's file.
type suspect struct {
	first, since time.Time // first seen, and last grown
	size         int64
	twin         bool // a compressed file that begins like its original
}

// scan lists changed directories, or all from the bases of the globs, and takes up the files found.
func (w *sweeper) scan(now time.Time) {
	full := w.lastFull.IsZero() || now.Sub(w.lastFull) >= fullScanEvery || w.rescan || w.denied && now.Sub(w.lastFull) >= maxIdlePoll
	if full {
		w.lastFull, w.rescan, w.denied, w.absent, w.absentAt = now, false, false, w.absent[:0], now
		clear(w.links)
		w.passed, w.kernel = nonlog.Tally{}, kernelfs.Passed{} // Status has the last complete scan
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
		return
	}
	for _, d := range w.dirs {
		if now.Before(d.next) {
			continue
		}
		fi, err := os.Stat(d.path)
		if err != nil {
			w.rescan = true
			continue
		}
		if !fi.ModTime().Equal(d.mtime) || d.again {
			visited := map[string]bool{}
			w.list(d, fi.ModTime(), 0, visited, now)
		}
		d.next = now.Add(backOff(w.t.cfg.PollInterval, now.Sub(d.activeAt)))
	}
	for path := range w.suspects {
		w.found(path, now)
	}
	if now.Sub(w.absentAt) >= maxIdlePoll { // a missing base has no listed parent that would show its creation
		w.absentAt = now
		w.rescan = w.rescan || slices.ContainsFunc(w.absent, func(base string) bool {
			_, err := os.Stat(base)
			return err == nil
		})
	}
}

// backOff is the delay before the next look at something idle.
func backOff(poll, idle time.Duration) time.Duration {
	return max(poll, min(idle/10, maxIdlePoll))
}

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

// list takes up the files of one directory, and walks into new directories.
func (w *sweeper) list(d *directory, mtime time.Time, depth int, visited map[string]bool, now time.Time) {
	if !mtime.Equal(d.mtime) {
		d.activeAt = now
		d.again = true
	} else {
		d.again = false
	}
	d.mtime = mtime
	fresh := w.watch(d)
	entries, err := os.ReadDir(d.path)
	if err != nil {
		w.t.readError(d.path, err)
		d.again = true // a change of permissions leaves the modification time
	}
	for _, e := range entries {
		if w.t.halted() { // a look at many thousand files takes longer than Shutdown waits
			return
		}
		path := filepath.Join(d.path, e.Name())
		if fresh {
			if s := w.streams[path]; s != nil {
				w.again(s, now) // a file may have been written without an event since the last look
			}
		}
		w.entry(path, e, depth, visited, now)
	}
}

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

// notePassed counts paths excluded by name.
func (w *sweeper) notePassed(path string, isDir bool) {
	if name := w.globs.PassedOver(path, isDir); name != "" && w.counting && !w.exclude.Match(path) {
		w.passed[name]++
	}
}

// found takes up a file of a directory, if in the globs and not already known.
func (w *sweeper) found(path string, now time.Time) {
	s := w.streams[path]
	if s == nil && (!w.wanted(path) || !w.isMine(path, now, false)) {
		return
	}
	if s != nil {
		if s.current == nil {
			w.look(s, now)
		}
		if s.current != nil {
			s.current.seen = w.scans
			delete(w.suspects, path)
		}
		return
	}
	fi, err := w.t.stat(path)
	if err != nil || !fi.Mode().IsRegular() {
		delete(w.suspects, path)
		if d := w.dirs[filepath.Dir(path)]; d != nil && errors.Is(err, fs.ErrPermission) {
			d.again = true
			w.t.readError(path, err)
		}
		return
	}
	if w.known(path, fi) == nil && w.isPacking(path, fi, now) {
		return
	}
	f, wait := w.claimed(path, fi, now)
	if wait {
		return
	}
	if f != nil {
		delete(w.suspects, path)
		return
	}
	delete(w.suspects, path)
	// A rotated file without a successor (yet) belongs to the successor's future stream.
	if base := w.rotatedFrom(path); base != "" {
		w.met(base, now)
		if w.files[fingerprint.IDOf(fi)] != nil {
			return
		}
	}
	w.met(path, now)
}

// met begins a stream.
func (w *sweeper) met(path string, now time.Time) {
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

// wanted says whether the globs ask for a file.
func (w *sweeper) wanted(path string) bool {
	return w.globs.Match(path) && !w.exclude.Match(path)
}

// isDocument says whether a file of the globs is rewritten whole.
func (w *sweeper) isDocument(path string) bool {
	return w.documents.Match(path) || w.t.set.IsDocument != nil && w.t.set.IsDocument(path)
}

// rotatedFrom returns the former path of a rotated file, if in the globs and without a stream; otherwise "".
func (w *sweeper) rotatedFrom(path string) string {
	for base := range rotation.Bases(path) {
		if w.wanted(base) && w.streams[base] == nil && !w.isDocument(path) && w.isMine(base, w.now, true) {
			return base
		}
	}
	return ""
}

// claimed finds out whether a file met under a name is another stream's file (returned) or may prove to be (wait). The streams whose rotated files or copies
// may have the name are updated first.
func (w *sweeper) claimed(path string, fi fs.FileInfo, now time.Time) (_ *file, wait bool) {
	if f := w.known(path, fi); f != nil {
		return f, false
	}
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
			if rotated && s.behind {
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

// known returns a stream's file already known by the given name.
func (w *sweeper) known(path string, fi fs.FileInfo) *file {
	id := fingerprint.IDOf(fi)
	f := w.files[id]
	if f == nil {
		return nil
	}
	s := f.stream
	defer w.lock(s)()
	if f.src == nil && (fi.Size() != f.size || !fi.ModTime().Equal(f.mtime)) {
		// The file was closed, so its inode may have been reused.
		raw, _, err := osfile.Open(path, w.t.cfg.FollowSymlinks)
		if err != nil {
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
			f.turn(lifeUnread)
			f.size, f.mtime, f.grown = fi.Size(), fi.ModTime(), w.now
			w.active(s, w.now)
		}
	}
	f.seen, f.path = w.scans, path
	return f
}
