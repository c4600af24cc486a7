package tail

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
)

const (
	maxCaught  = 128             // files held open until the sweeper has looked
	maxEvents  = 10_000          // between two sweeps
	caughtFor  = 5 * time.Second // at most, in which a stream may take a captured file
	firstBirth = time.Second     // time after the first look at a path in which creation events may be of files already seen
)

// capture is the file after a creation or rename event, opened at once: it may be gone when the sweeper looks.
type capture struct {
	path string
	own  bool     // the path is the stream's own, not the path of a rotated file
	born bool     // own, and created there: another generation
	raw  *os.File // nil: already gone, or too many are open
	fi   fs.FileInfo
	at   time.Time // of the event
}

// captures are the files captured since the last sweep, in order, by the path of their stream.
type captures struct {
	events map[string][]capture
	n      int                     // events since the last sweep, kept or not
	open   map[fingerprint.ID]bool // files held open, also those taken by the sweeper
}

// birth is the known origin of a file at its path.
type birth uint8

const (
	birthOld    birth = iota // present at the first look
	birthMissed              // found by a look
	birthSeen                // its creation event was seen
)

// capture handles an event of inotify: a file was created at a path, or renamed to the path (not created). The file is opened and held for the sweeper, before
// further rotations remove its name.
func (t *Tailer) capture(path string, created bool) {
	base := t.baseOf(path)
	beside := base != path
	if base == "" || beside && (created || t.packing(path) != CompressionNone) {
		return // beside a path, a created file is a copy, and a compressed file is compared by the sweeper
	}
	c := capture{path: path, own: base == path, born: base == path && created, at: t.now()}
	raw, fi, err := osfile.Open(path, t.cfg.FollowSymlinks)
	if err == nil {
		c.fi = fi
	} else if !c.born {
		return // of a birth, the event alone counts: see countBirths
	}
	tookDescriptor := err == nil && t.descriptors.mayTake()
	t.mu.Lock()
	all := &t.captures
	if all.events == nil {
		all.events = map[string][]capture{}
	}
	held := tookDescriptor && !all.open[fingerprint.IDOf(fi)] && len(all.open) < maxCaught
	if held {
		all.open[fingerprint.IDOf(fi)] = true
		c.raw = raw
	}
	if all.n++; all.n <= maxEvents || held {
		all.events[base] = append(all.events[base], c)
	}
	t.mu.Unlock()
	if tookDescriptor && !held {
		t.descriptors.give()
	}
	if raw != nil && !held {
		_ = raw.Close()
	}
	if c.own {
		t.wakeSweeper()
	}
}

// baseOf returns the path of the stream that may own a file of the given name: for a rotated name the path before the rotation, if in the globs; else the
// path itself. "": not in the globs, or a document.
func (t *Tailer) baseOf(path string) string {
	w := &t.sweeper // only the globs are used here, which never change
	for base := range rotation.Bases(path) {
		if w.wanted(base) {
			path = base
			break
		}
	}
	if !w.wanted(path) || w.isDocument(path) {
		return ""
	}
	return path
}

// takeCaptures hands the sweeper the files captured since the last sweep. The streams of these files are looked at now, even while a worker reads them.
func (w *sweeper) takeCaptures(now time.Time) {
	w.t.mu.Lock()
	events := w.t.captures.events
	w.t.captures.events, w.t.captures.n = nil, 0
	w.t.mu.Unlock()
	for base, e := range events {
		w.captured[base] = append(w.captured[base], e...)
		if s := w.streams[base]; s != nil {
			w.setNextLook(s, now)
			s.missed = maxBusyLooks
		}
	}
}

// detach takes the open file out of a capture, and returns it, to be read or closed by the caller.
func (w *sweeper) detach(c *capture) (raw *os.File) {
	raw, c.raw = c.raw, nil
	w.t.mu.Lock()
	delete(w.t.captures.open, fingerprint.IDOf(c.fi))
	w.t.mu.Unlock()
	w.t.descriptors.give()
	return raw
}

// endCaptures accounts for the creation events after the streams were looked at, and closes the captured files that are known by now, or that no stream has
// taken for caughtFor.
func (w *sweeper) endCaptures(now time.Time) {
	moved := w.renamedFiles()
	for base, events := range w.captured {
		s := w.streams[base]
		// Without a stream, or with a stream that still compares its rotated files, a later look may take them.
		if age := now.Sub(events[0].at); (s == nil || s.behind) && age >= 0 && age < caughtFor {
			continue
		}
		if s != nil {
			w.countBirths(s, events, moved)
		}
		w.dropCaught(base)
	}
}

// dropCaught closes and forgets the captured files of a stream's path.
func (w *sweeper) dropCaught(base string) {
	events := w.captured[base]
	for i := range events {
		if events[i].raw != nil {
			_ = w.detach(&events[i]).Close()
		}
	}
	delete(w.captured, base)
}

// renamedFiles returns the files that were just renamed to paths of streams and that no stream had before, with these paths.
func (w *sweeper) renamedFiles() map[fingerprint.ID]string {
	all := map[fingerprint.ID]string{}
	for base, events := range w.captured {
		for _, c := range events {
			if !c.own || c.born || c.fi == nil {
				continue
			}
			id := fingerprint.IDOf(c.fi)
			if f := w.files[id]; f == nil || f.birth != birthSeen && !f.stream.metAt.Before(c.at) {
				all[id] = base
			}
		}
	}
	return all
}

// countBirths counts as lost the files that were created at the stream's path and never seen. Each creation event is of a captured file that a stream has, of a
// file found by a look, of a file renamed since to another stream's path in the directory (train.log to train.0.log, with *.log in the globs), or else of a
// lost file. A file is counted for one event only: it gets birthSeen, or is removed from moved.
func (w *sweeper) countBirths(s *Stream, events []capture, moved map[fingerprint.ID]string) {
	defer w.lock(s)()
	unseen, early := 0, 0 // events without a file so far; those among them that may be of a file already seen at the first look
	s.births = s.births || slices.ContainsFunc(events, func(c capture) bool { return c.born })
	for _, c := range events {
		if !c.born || c.at.Before(s.metAt) {
			continue
		}
		var f *file
		if c.fi != nil {
			f = w.files[fingerprint.IDOf(c.fi)]
			if path, ok := moved[fingerprint.IDOf(c.fi)]; ok && path != s.path {
				delete(moved, fingerprint.IDOf(c.fi))
				if f == nil {
					continue
				}
			}
		}
		switch {
		case f == nil, f.stream == s && f.birth == birthSeen:
			if unseen++; c.at.Sub(s.metAt) < firstBirth {
				early++
			}
		default:
			f.birth = birthSeen
		}
	}
	for _, f := range s.files { // the files that looks have found take the rest of the events
		if unseen > 0 && (f.birth == birthMissed || early > 0 && f.birth == birthOld) {
			if f.birth == birthOld {
				early--
			}
			f.birth = birthSeen
			unseen--
		}
	}
	for id, path := range moved {
		if unseen > 0 && path != s.path && filepath.Dir(path) == filepath.Dir(s.path) {
			delete(moved, id)
			unseen--
		}
	}
	w.countLost(s, unseen)
}

// countLost adds to a stream's lost files those rotated away before they could be opened, and warns.
func (w *sweeper) countLost(s *Stream, files int) {
	if files <= 0 {
		return
	}
	w.t.counts.bump(&w.t.counts.lost, int64(files))
	w.t.warn("jumped", "Files were rotated away before they could be opened: keep more rotated files, or larger ones",
		zap.String("path", s.path), zap.Int("files", files))
}

// countMissing returns the number of generations lost between the newest known generation and those found now, if no creation events are seen: the numbers
// missing in the chain of rotated names. If the newest known generation is not in the chain and all generations in the chain are new, at least one may be
// missing: 1. Copies of files already read are not new.
func (w *sweeper) countMissing(s *Stream, own fs.FileInfo, beside []sibling, copies []fingerprint.ID) int {
	if own == nil || s.births || len(w.captured[s.path]) > 0 { // the chain lacks its newest file; with creation events, countBirths is more exact
		return 0
	}
	var last *file // the newest known generation
	for _, f := range s.files {
		if f.life != lifeDead {
			last = f
		}
	}
	numbers := map[int]bool{} // of the rotated files that are there
	at, known := 0, false     // the number of last; whether another known generation is there
	for _, b := range beside {
		suffix, ok := strings.CutPrefix(b.named, s.path) // train.err.1 is another log's
		n, isNumber := rotation.Number(suffix)
		if !ok || !isNumber {
			continue
		}
		numbers[n] = true
		switch f := w.files[fingerprint.IDOf(b.fi)]; {
		case last != nil && fingerprint.IDOf(b.fi) == last.id:
			at = n
		// A file of a stream, a file older than the last one read, or a copy.
		case f != nil, b.fi.ModTime().Before(s.lastWrite), slices.Contains(copies, fingerprint.IDOf(b.fi)):
			known = true
		}
	}
	switch {
	case at > 0: // .1 to .at-1 are younger than last
		gaps := 0
		for n := 1; n < at; n++ {
			if !numbers[n] {
				gaps++
			}
		}
		return gaps
	case len(numbers) > 0 && !known && (last == nil || fingerprint.IDOf(own) != last.id):
		return 1
	}
	return 0
}
