package tail

import (
	"io/fs"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
)

const (
	maxCaught  = 128             // files held open until the sweeper has looked
	maxEvents  = 10_000          // between two sweeps
	caughtFor  = 5 * time.Second // at most
	firstBirth = time.Second     // after a path was met, until which its births may be of files that were there
)

// caught is the file that a path named when something was created or renamed there. It is held open at once: it may be gone when the sweeper looks.
type caught struct {
	path string
	own  bool     // the path is the stream's own, not the path of a rotated file
	born bool     // own, and created there: one generation more
	raw  *os.File // nil: it was gone already, or too many are held
	fi   fs.FileInfo
	at   time.Time
}

// catches are the files caught since the last sweep, in order, by the path of their stream.
type catches struct {
	events map[string][]caught
	n      int
	open   map[fingerprint.ID]bool // files held open, also files that the sweeper has taken
}

// birth says how a file came to have its path, as far as that is known.
type birth uint8

const (
	birthOld    birth = iota // it was there at the first look
	birthMissed              // found by a look
	birthHeard               // its creation was heard of
)

// catch is told that something was created at a path or renamed to it.
func (t *Tailer) catch(path string, created bool) {
	base := t.baseOf(path)
	if base == "" || base != path && (created || t.packing(path) != CompressionNone) {
		return // a file that is created beside a path is a copy
	}
	c := caught{path: path, own: base == path, born: base == path && created, at: t.now()}
	raw, fi, err := osfile.Open(path, t.cfg.FollowSymlinks)
	if err == nil {
		c.fi = fi
	} else if !c.born {
		return
	}
	may := err == nil && t.descriptors.mayTake()
	t.mu.Lock()
	n := &t.catches
	if n.events == nil {
		n.events = map[string][]caught{}
	}
	if may && !n.open[fingerprint.IDOf(fi)] && len(n.open) < maxCaught {
		n.open[fingerprint.IDOf(fi)] = true
		c.raw, raw = raw, nil
		may = false
	}
	if n.n++; n.n <= maxEvents || c.raw != nil {
		n.events[base] = append(n.events[base], c)
	}
	t.mu.Unlock()
	if may {
		t.descriptors.give()
	}
	if raw != nil {
		_ = raw.Close()
	}
	if c.own {
		t.wakeSweeper()
	}
}

// baseOf returns the path whose stream a file of this name may be of; "" when the globs do not ask for it.
func (t *Tailer) baseOf(path string) string {
	w := &t.sweeper // only its globs are used here, and they never change
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

// takeCaught hands the sweeper the files caught since the last sweep. The streams of these files are looked at now, also while a worker reads them.
func (w *sweeper) takeCaught(now time.Time) {
	w.t.mu.Lock()
	events := w.t.catches.events
	w.t.catches.events, w.t.catches.n = nil, 0
	w.t.mu.Unlock()
	for base, e := range events {
		w.nets[base] = append(w.nets[base], e...)
		if s := w.streams[base]; s != nil {
			w.again(s, now)
			s.missed = maxBusyLooks
		}
	}
}

// detach gives a file that was caught away, to be read or closed.
func (w *sweeper) detach(c *caught) (raw *os.File) {
	raw, c.raw = c.raw, nil
	w.t.mu.Lock()
	delete(w.t.catches.open, fingerprint.IDOf(c.fi))
	w.t.mu.Unlock()
	w.t.descriptors.give()
	return raw
}

// endCaught takes the account of births once the streams were looked at, and lets go of files that are known by now, or that were no stream's for too long.
func (w *sweeper) endCaught(now time.Time) {
	for base, events := range w.nets {
		s := w.streams[base]
		if age := now.Sub(events[0].at); (s == nil || s.behind) && age >= 0 && age < caughtFor {
			continue
		}
		if s != nil {
			w.births(s, events)
		}
		w.dropCaught(base)
	}
}

func (w *sweeper) dropCaught(base string) {
	events := w.nets[base]
	for i := range events {
		if events[i].raw != nil {
			_ = w.detach(&events[i]).Close()
		}
	}
	delete(w.nets, base)
}

// births counts the files that were created at the stream's path and never seen: each creation is of a file that was caught, of a file that a look found, or of
// a file that is lost.
func (w *sweeper) births(s *Stream, events []caught) {
	defer w.lock(s)()
	unseen, early := 0, 0
	s.heard = s.heard || slices.ContainsFunc(events, func(c caught) bool { return c.born })
	for _, c := range events {
		if !c.born || c.at.Before(s.metAt) {
			continue
		}
		var f *file
		if c.fi != nil {
			f = w.files[fingerprint.IDOf(c.fi)]
		}
		switch {
		case f == nil, f.stream == s && f.birth == birthHeard:
			if unseen++; c.at.Sub(s.metAt) < firstBirth {
				early++
			}
		default:
			f.birth = birthHeard
		}
	}
	for _, f := range s.files {
		if unseen > 0 && (f.birth == birthMissed || early > 0 && f.birth == birthOld) {
			if f.birth == birthOld {
				early--
			}
			f.birth = birthHeard
			unseen--
		}
	}
	w.jumped(s, unseen)
}

// jumped is told how many files of a stream were rotated away before they could be opened.
func (w *sweeper) jumped(s *Stream, files int) {
	if files <= 0 {
		return
	}
	w.t.counts.bump(&w.t.counts.lost, int64(files))
	w.t.warn("jumped", "Files were rotated away before they could be opened: keep more rotated files, or larger ones",
		zap.String("path", s.path), zap.Int("files", files))
}

// missing counts the generations that must have been between the newest known one and the ones found now, and whose creation was not heard of: the numbers that
// are missing in the chain. Where the newest known generation is not in the chain and all generations there are new, at least one may be missing. Copies of
// files that were read are not new.
func (w *sweeper) missing(s *Stream, own fs.FileInfo, beside []sibling, copies []fingerprint.ID) int {
	if own == nil || s.heard || len(w.nets[s.path]) > 0 {
		return 0
	}
	var last *file
	for _, f := range s.files {
		if f.life != lifeDead {
			last = f
		}
	}
	numbers := map[int]bool{}
	at, known := 0, false
	for _, b := range beside {
		n, ok := rotation.Number(b.named[min(len(s.path), len(b.named)):])
		if !ok {
			continue
		}
		numbers[n] = true
		switch f := w.files[fingerprint.IDOf(b.fi)]; {
		case last != nil && fingerprint.IDOf(b.fi) == last.id:
			at = n
		case f != nil, b.fi.ModTime().Before(s.lastWrite), slices.Contains(copies, fingerprint.IDOf(b.fi)):
			known = true
		}
	}
	switch {
	case at > 0:
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
