package tail

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

// Reads says how far a receiver understands a line.
type Reads uint8

// The answers.
const (
	ReadsNot  Reads = iota
	ReadsLast       // what stands in logs of any kind: the file is the receiver's where no other understands a line of it
	ReadsToo        // a record, of a format that is another receiver's first
	ReadsOwn        // a record
	readsKinds
)

// Detect looks at the lines of one file, from its first on.
type Detect func(text []byte) Reads

const (
	forgetKind  = 10 * time.Minute // after which nobody has asked for it
	loadingMost = 2 * time.Second
)

// Sorter decides which of several Tailers reads a file that all of them may read (Config.IncludeByContent). The first line that any of them understands
// decides, so that the answer is the same however far the file has grown, and after a restart. The zero value is ready.
type Sorter struct {
	mu      lockorder.Mutex[leaf]
	members []*Tailer
	loading []*Tailer // Tailers whose checkpoints were not read yet
	paths   map[string]*kind
	pruned  time.Time
	readers []*Tailer // kind.of of the file that was met last
	queue   kindHeap  // files with lines that nobody has looked at
	idle    kindHeap  // files that are looked at when they grow

	looking lockorder.Mutex[sniffing] // one file is looked at, at a time
	buf     []byte                    // what was read of it
	open    []*kind                   // files that have detectors
}

// kind is what is known of a file. Of a hundred thousand that nobody understands, each is to take little.
type kind struct {
	path   string
	id     fingerprint.ID
	owner  *Tailer   // nil: not known
	of     []*Tailer // who may read it; files of the same readers share it
	size   int64     // at the last stat
	seen   int64     // the size up to which all was looked at; -1: not all was
	off    int64     // the line at which the next look begins
	lines  int64     // looked at
	wrote  int64     // when it was written, ns
	rank   int64     // in its heap: the least comes first
	place  int       // in its heap
	heap   *kindHeap // nil: in none
	grown  time.Time
	asked  time.Time
	whole  bool     // a last line without an ending was looked at, too
	early  bool     // it was there when its Tailer started, and not all that it had then was looked at
	last   *Tailer  // who reads it where nobody understands it
	detect []Detect // of the Tailers of of, under Sorter.looking; nil: the next look begins at the beginning of the file
	dull   *dull    // the lines that nobody understood, as long as there is detect
}

func (s *Sorter) join(t *Tailer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members, s.loading = append(s.members, t), append(s.loading, t)
	// Of two Tailers that call a line their own, the first wins at each start.
	slices.SortFunc(s.members, func(a, b *Tailer) int { return strings.Compare(a.set.ID.String(), b.set.ID.String()) })
}

// loaded says that the checkpoints of a Tailer were read: it has claimed the files that it had.
func (s *Sorter) loaded(t *Tailer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = slices.DeleteFunc(s.loading, func(m *Tailer) bool { return m == t })
}

// await waits, not for long, for the Tailers whose checkpoints are still being read.
func (s *Sorter) await(ctx context.Context) {
	for until := time.Now().Add(loadingMost); time.Now().Before(until); time.Sleep(time.Millisecond) {
		s.mu.Lock()
		n := len(s.loading)
		s.mu.Unlock()
		if n == 0 || ctx.Err() != nil {
			return
		}
	}
}

func (s *Sorter) leave(t *Tailer) {
	var told []news
	s.mu.Lock()
	is := func(m *Tailer) bool { return m == t }
	s.members, s.loading = slices.DeleteFunc(s.members, is), slices.DeleteFunc(s.loading, is)
	for _, k := range s.paths {
		for _, m := range k.of {
			if m != t {
				told = append(told, news{t: m, path: k.path})
			}
		}
		if k.owner == t || k.owner == nil {
			s.forget(k)
		}
	}
	s.mu.Unlock()
	tell(told)
}

// takeEarly says, once, whether a file showed whose it is with what it had when its Tailer started.
func (s *Sorter) takeEarly(path string) (early bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.paths[path]; k != nil {
		early, k.early = k.early, false
	}
	return early
}

// settled says whether all files were looked at a little, and what came of that was told.
func (s *Sorter) settled() bool {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0 || s.queue[0].off > 0
}

// fate is the Sorter's answer about a file to one of the Tailers.
type fate uint8

const (
	unknown fate = iota
	mine
	others
)

// waits says whether a file is known that nobody has understood so far, and which file that is.
func (s *Sorter) waits(path string, now time.Time) (id fingerprint.ID, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.paths[path]
	if k == nil || k.owner != nil {
		return id, false
	}
	k.asked = now
	return k.id, true
}

// sort says whose a file is. Where nobody knows, its lines are looked at later (turn), or now, and then the Tailers that it concerns are told.
func (s *Sorter) sort(t *Tailer, path string, fi fs.FileInfo, at time.Time, now bool) fate {
	s.mu.Lock()
	s.prune(at)
	k := s.known(path, fi, at)
	k.early = k.early || k.asked.IsZero() && t.sweeper.first
	k.asked = at
	s.note(k, fi, at)
	owner := k.owner
	s.mu.Unlock()
	if now && owner == nil {
		var told []news
		owner, told = s.lookNow(k, sniffLook, at)
		tell(told)
	}
	switch owner {
	case nil:
		return unknown
	case t:
		return mine
	}
	return others
}

// claim gives a path that has a checkpoint to the Tailer that has it, unless it is another's.
func (s *Sorter) claim(t *Tailer, path string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.paths[path]
	if k == nil {
		k = &kind{path: path}
		s.remember(k)
	}
	if k.asked = now; k.owner == nil {
		s.decide(k, t)
	}
	return k.owner == t
}

func (s *Sorter) remember(k *kind) {
	if s.paths == nil {
		s.paths = map[string]*kind{}
	}
	s.paths[k.path] = k
}

// known returns what is known of a file. A path stays with the Tailer that it was given to, whatever file it names later.
func (s *Sorter) known(path string, fi fs.FileInfo, now time.Time) *kind {
	k := s.paths[path]
	if k != nil && (k.owner != nil || !k.isOther(fi)) {
		return k
	}
	if k != nil {
		s.forget(k)
	}
	k = &kind{path: path, id: fingerprint.IDOf(fi), seen: -1, grown: now}
	var of []*Tailer
	for _, m := range s.members {
		switch {
		case k.owner != nil:
		case m.sweeper.exclude.Match(path):
		case m.sweeper.names(path):
			k.owner = m
		case m.sweeper.shared.Match(path):
			of = append(of, m)
		}
	}
	if k.owner == nil {
		if !slices.Equal(of, s.readers) {
			s.readers = of
		}
		k.of = s.readers
	}
	s.remember(k)
	return k
}

// isOther says whether a file cannot be the one that is known.
func (k *kind) isOther(fi fs.FileInfo) bool {
	return k.id != fingerprint.IDOf(fi) || fi.Size() < k.size
}

// forget forgets a file.
func (s *Sorter) forget(k *kind) {
	s.put(k, nil)
	delete(s.paths, k.path)
}

// decide gives a file to a Tailer.
func (s *Sorter) decide(k *kind, owner *Tailer) {
	s.put(k, nil)
	k.owner, k.of = owner, nil
}

// prune forgets files that no Tailer has asked for lately.
func (s *Sorter) prune(now time.Time) {
	if age := now.Sub(s.pruned); age >= 0 && age < forgetKind {
		return
	}
	s.pruned = now
	for _, k := range s.paths {
		if now.Sub(k.asked) >= forgetKind {
			s.forget(k)
		}
	}
}

// Owner says which Tailer reads a file, looking at its lines where that is needed. The Tailers are those of NewOnce.
func (s *Sorter) Owner(path string) (of component.ID, ok bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return of, false
	}
	now := time.Now()
	s.mu.Lock()
	k := s.known(path, fi, now)
	s.note(k, fi, now)
	owner := k.owner
	s.mu.Unlock()
	if owner == nil {
		owner, _ = s.lookNow(k, sniffMost, now) // the Tailers have still to look for their files
	}
	if owner == nil {
		return of, false
	}
	return owner.set.ID, true
}

// Unsorted lists some of the files that no Tailer understands, and says how many there are.
func (s *Sorter) Unsorted(now time.Time) (some []Mute, files int, lines int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.paths {
		if k.owner != nil || k.lines == 0 || now.Sub(k.asked) > fullScanEvery+maxIdlePoll || k.lines < muteLines && now.Sub(k.grown) < muteAfter {
			continue
		}
		files++
		lines += k.lines
		if some = append(some, Mute{k.path, k.lines}); len(some) > maxMute {
			slices.SortFunc(some, mostLines)
			some = some[:maxMute]
		}
	}
	slices.SortFunc(some, mostLines)
	return some, files, lines
}

// Head tells of a file's first lines: which Tailer understands one of them first (nil: none), and which line is the first that is not empty.
func (s *Sorter) Head(path string) (reader *Tailer, first []byte) {
	s.mu.Lock()
	members := slices.Clone(s.members)
	s.mu.Unlock()
	if len(members) == 0 {
		return nil, nil
	}
	detect := make([]Detect, len(members))
	for i, m := range members {
		detect[i] = m.set.Detect(path)
	}
	var buf []byte
	var seen dull
	_, _, _ = members[0].sniff(path, 0, sniffBytes, true, &buf, func(text []byte) bool {
		if first == nil {
			first = bytes.Clone(text)
		}
		reader, _ = firstReader(detect, members, text, seen.is(text))
		return reader == nil
	})
	return reader, first
}

// isOwn says whether a file that the globs ask for is this Tailer's, whatever it holds.
func (w *sweeper) isOwn(path string) bool {
	return len(w.shared.Globs) == 0 || w.own.Match(path) || w.isDocument(path)
}

// names says whether Include or Document name a file, also by another path, or it is a document by its name. Sorter asks it of all Tailers.
func (w *sweeper) names(path string) bool {
	return w.byName.Match(absolute(path)) || w.shared.Match(path) && w.isDocument(path)
}

// isMine says whether a file is for this Tailer, by its name or by its content. A file that is another's is asked for once per full scan, one that nobody has
// understood so far not at all: the Sorter tells of it. now: the answer cannot wait.
func (w *sweeper) isMine(path string, at time.Time, now bool) bool {
	if w.isOwn(path) {
		return true
	}
	if scan, ok := w.others[path]; ok && scan == w.scans {
		return false
	}
	w.noteMatch(path)
	if id, ok := w.t.set.Sorter.waits(path, at); ok && !now && w.files[id] == nil {
		return false
	}
	fi, err := w.t.stat(path)
	if err != nil || !fi.Mode().IsRegular() || w.known(path, fi) != nil { // found knows what to do
		delete(w.others, path)
		return true
	}
	fate := w.t.set.Sorter.sort(w.t, path, fi, at, now)
	if fate == others {
		w.others[path] = w.scans
	} else {
		delete(w.others, path)
	}
	return fate == mine
}

// sortFiles has files looked at of which nobody knows whose they are, and takes up those that turn out to be this Tailer's.
func (w *sweeper) sortFiles(now time.Time) {
	if len(w.shared.Globs) == 0 {
		return
	}
	for again := true; again; {
		w.sorting = w.t.set.Sorter.turn(w.t, now)
		told := w.t.takeTold()
		for _, d := range told {
			w.found(d.path, now)
		}
		again = w.t.final && (w.sorting || len(told) > 0)
	}
}

// isMineStill says whether a path with a checkpoint is to be read on. A file that was this Tailer's by its name may be another's by its content.
func (w *sweeper) isMineStill(c *checkpoint.Stream, now time.Time) bool {
	if w.isOwn(c.Path) {
		return true
	}
	if !c.ByContent {
		if fi, err := w.t.stat(c.Path); err == nil && fi.Mode().IsRegular() {
			_ = w.t.set.Sorter.sort(w.t, c.Path, fi, now, true)
		}
	}
	return w.t.set.Sorter.claim(w.t, c.Path, now)
}

// sweepOthers forgets files that are gone.
func (w *sweeper) sweepOthers() {
	for path, scan := range w.others {
		if scan != w.scans {
			delete(w.others, path)
		}
	}
}
