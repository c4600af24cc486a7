package tail

import (
	"bytes"
	"context"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

// Reads is how far a receiver understands a line.
type Reads uint8

// The answers.
const (
	ReadsNot  Reads = iota
	ReadsLast       // a line found in logs of any kind: the file is the receiver's if no other understands a line
	ReadsToo        // a record, of a format that is another receiver's first
	ReadsOwn        // a record
	readsKinds
)

// Detect reads the lines of one file, from its first on.
type Detect func(text []byte) Reads

const (
	forgetKind  = 10 * time.Minute // lifetime without requests
	loadingMost = 2 * time.Second
)

// Sorter assigns each file of several Tailers' globs (Config.IncludeByContent) to one Tailer. The first understood line decides: the answer depends neither on
// the file's growth, nor on restarts. A file with two kinds of logs gets a second Tailer once its owner meets a line of the second kind (Stream.ShareWith). The
// zero value is ready.
type Sorter struct {
	mu      lockorder.Mutex[leaf]
	members []*Tailer
	loading []*Tailer // Tailers whose checkpoints were not read yet
	paths   map[string]*kind
	pruned  time.Time
	readers []*Tailer // kind.of of the file met last
	queue   kindHeap  // files with unsniffed lines
	idle    kindHeap  // files to sniff after growth

	looking lockorder.Mutex[sniffing] // one file is sniffed at a time
	buf     []byte                    // its bytes
	open    []*kind                   // files with detectors
	spare   *dull                     // of a file that needs none any more
}

// kind is the state of a file. It must be small: a hundred thousand files may be unassigned.
type kind struct {
	path    string
	id      fingerprint.ID
	owner   *Tailer   // nil: not known
	second  *Tailer   // also reads the file; nil: none
	readers []*Tailer // the possible readers; shared between files with the same readers
	size    int64     // at the last stat
	seen    int64     // the size at the last complete look; -1: incomplete
	off     int64     // the line at which the next look begins
	lines   int64     // looked at
	wrote   int64     // modification time, ns
	rank    int64     // in its heap: the smallest is next
	place   int       // index in its heap
	heap    *kindHeap // nil: in none
	grown   time.Time // when the size was last seen to change
	asked   time.Time // last request of a Tailer
	whole   bool      // a last line without an ending was looked at, too
	early   bool      // present at the Tailer's start, and the content of that time was not sniffed whole
	last    *Tailer   // owner of last resort
	detect  []Detect  // of the Tailers of of, under Sorter.looking; nil: the next look begins at the beginning of the file
	dull    *dull     // repetitive lines, as long as detect is set
}

// join adds a Tailer, before its Start.
func (s *Sorter) join(t *Tailer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members, s.loading = append(s.members, t), append(s.loading, t)
	// If two Tailers call a line their own, the first wins at each start.
	slices.SortFunc(s.members, func(a, b *Tailer) int { return strings.Compare(a.set.ID.String(), b.set.ID.String()) })
}

// doneLoading is called by a Tailer that has read its checkpoints, and claimed the files of these.
func (s *Sorter) doneLoading(t *Tailer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loading = slices.DeleteFunc(s.loading, func(m *Tailer) bool { return m == t })
}

// await waits until all Tailers have read their checkpoints, for loadingMost: a file with a checkpoint must not be given to another Tailer meanwhile.
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

// leave removes a Tailer that shuts down, and forgets its files and those without an owner. The remaining possible readers of the latter are asked to look for
// these files anew; full scans meet the former.
func (s *Sorter) leave(t *Tailer) {
	var found []news
	s.mu.Lock()
	is := func(m *Tailer) bool { return m == t }
	s.members, s.loading = slices.DeleteFunc(s.members, is), slices.DeleteFunc(s.loading, is)
	for _, k := range s.paths {
		for _, m := range k.readers {
			if m != t {
				found = append(found, news{t: m, path: k.path})
			}
		}
		if k.owner == t || k.owner == nil {
			s.forget(k)
		}
		if k.second == t {
			k.second = nil
		}
	}
	s.mu.Unlock()
	deliver(found)
}

// takeEarly reports whether a file was present at its Tailer's start and assigned by the content of that time. Only the first call for a path returns true.
func (s *Sorter) takeEarly(path string) (early bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.paths[path]; k != nil {
		early, k.early = k.early, false
	}
	return early
}

// settled reports whether all files were sniffed once, and the messages of these looks delivered.
func (s *Sorter) settled() bool {
	s.looking.Lock()
	defer s.looking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0 || s.queue[0].off > 0 // the queue begins with the files never sniffed, see enqueue
}

// fate is the Sorter's answer about a file to one of the Tailers.
type fate uint8

const (
	unknown fate = iota // not assigned yet
	mine                // assigned to the asking Tailer
	others              // assigned to another Tailer
)

// waits reports whether the path's file is known and unassigned, and returns the file's id in this case. The file counts as asked for.
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

// sort returns what is known of the owner of a file that t has met: t itself (mine), another Tailer (others), or nobody yet (unknown). An unassigned file is
// sniffed later (turn) or, with atOnce, before the answer; then the Tailers concerned are informed.
func (s *Sorter) sort(t *Tailer, path string, fi fs.FileInfo, now time.Time, atOnce bool) fate {
	s.mu.Lock()
	s.prune(now)
	k := s.stateOf(path, fi, now)
	k.early = k.early || k.asked.IsZero() && t.sweeper.first // new, in a Tailer's first scan
	k.asked = now
	s.noteStat(k, fi, now)
	owner, second := k.owner, k.second
	s.mu.Unlock()
	if atOnce && owner == nil {
		var found []news
		owner, found = s.sniffNow(k, sniffLook, now)
		deliver(found)
	}
	switch {
	case owner == nil:
		return unknown
	case owner == t || second == t:
		return mine
	}
	return others
}

// share makes the Tailer of a receiver the second one of an assigned file, if the line is a record of that receiver. It returns false if the line is none.
func (s *Sorter) share(path string, with component.Type, line []byte) (answered bool) {
	s.mu.Lock()
	k := s.paths[path]
	i := slices.IndexFunc(s.members, func(m *Tailer) bool {
		return m.set.ID.Type() == with && m.sweeper.shared.Match(path) && !m.sweeper.exclude.Match(path)
	})
	if k == nil || k.owner == nil || k.second != nil || i < 0 || s.members[i] == k.owner {
		s.mu.Unlock()
		return true
	}
	second := s.members[i]
	s.mu.Unlock()
	if second.set.Detect(path)(line) != ReadsOwn {
		return false
	}
	s.mu.Lock()
	k.second = second
	s.mu.Unlock()
	deliver([]news{{t: second, path: path}})
	return true
}

// isSecond reports whether a Tailer is the second one of a file.
func (s *Sorter) isSecond(t *Tailer, path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.paths[path]
	return k != nil && k.second == t
}

// claimSaved claims a path that a checkpoint calls assigned to a Tailer by its content. If another Tailer has claimed the path, the file is shared.
func (s *Sorter) claimSaved(t *Tailer, path string, now time.Time) {
	if s.claim(t, path, now) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.paths[path]; k != nil && k.second == nil {
		k.second = t
	}
}

// claim assigns a path to a Tailer that knows the file to be its own, as by a checkpoint. It returns false if the path is assigned to another Tailer already.
func (s *Sorter) claim(t *Tailer, path string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.paths[path]
	if k == nil {
		k = &kind{path: path}
		s.remember(k)
	}
	k.asked = now
	if k.owner == nil {
		s.decide(k, t)
	}
	return k.owner == t || k.second == t
}

// remember adds the state of a file to paths.
func (s *Sorter) remember(k *kind) {
	if s.paths == nil {
		s.paths = map[string]*kind{}
	}
	s.paths[k.path] = k
}

// stateOf returns the state of a file, made anew if the path is unknown or names another file now. An assigned path stays with its Tailer for all later files.
// A new file that a Tailer's Include names is assigned to that Tailer, of several the first by id; the possible readers of any other file are the Tailers with
// a matching glob of Config.IncludeByContent. The caller holds mu.
func (s *Sorter) stateOf(path string, fi fs.FileInfo, now time.Time) *kind {
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
		if !slices.Equal(of, s.readers) { // most files have the same readers: a list for all of them
			s.readers = of
		}
		k.readers = s.readers
	}
	s.remember(k)
	return k
}

// isOther reports whether the file of info fi cannot be the known file: it has another id, or is shorter.
func (k *kind) isOther(fi fs.FileInfo) bool {
	return k.id != fingerprint.IDOf(fi) || fi.Size() < k.size
}

// forget removes the state of a file.
func (s *Sorter) forget(k *kind) {
	s.moveToHeap(k, nil)
	delete(s.paths, k.path)
}

// decide assigns a file to a Tailer.
func (s *Sorter) decide(k *kind, owner *Tailer) {
	s.moveToHeap(k, nil)
	k.owner, k.readers = owner, nil
}

// prune forgets files without a request for forgetKind, at most once in that time.
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

// Owner returns the receiver that reads a file, sniffing the file if necessary. It returns false if no receiver understands the file, or the file does not
// exist. The Tailers are those of NewOnce.
func (s *Sorter) Owner(path string) (of component.ID, ok bool) {
	fi, err := os.Stat(path)
	if err != nil {
		return of, false
	}
	now := time.Now()
	s.mu.Lock()
	k := s.stateOf(path, fi, now)
	s.noteStat(k, fi, now)
	owner := k.owner
	s.mu.Unlock()
	if owner == nil {
		owner, _ = s.sniffNow(k, sniffMost, now) // the Tailers have still to look for their files
	}
	if owner == nil {
		return of, false
	}
	return owner.set.ID, true
}

// Understands returns the receiver of type of, and whether its detector calls a line of the file its own, among the lines with a text for which may returns
// true. All lines are looked at. It also returns false if no receiver of the type has the file in its globs. The Tailers are those of NewOnce.
func (s *Sorter) Understands(path string, of component.Type, with []byte, may func(text []byte) bool) (reader component.ID, ok bool) {
	s.mu.Lock()
	i := slices.IndexFunc(s.members, func(m *Tailer) bool {
		return m.set.ID.Type() == of && (m.sweeper.names(path) || m.sweeper.shared.Match(path)) && !m.sweeper.exclude.Match(path)
	})
	var member *Tailer
	if i >= 0 {
		member = s.members[i]
	}
	s.mu.Unlock()
	if member == nil {
		return reader, false
	}
	detect := member.set.Detect(path)
	var buf []byte
	_, _, _ = member.sniff(path, 0, math.MaxInt64, true, &buf, with, func(text []byte) bool {
		ok = bytes.Contains(text, with) && may(text) && detect(text) == ReadsOwn
		return !ok
	})
	return member.set.ID, ok
}

// Unsorted returns how many files no receiver has understood so far, how many lines these have, and the maxMute files of them with the most lines. Files that
// were not asked for lately, or may be too new to judge, are left out.
func (s *Sorter) Unsorted(now time.Time) (some []Mute, files int, lines int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.paths {
		gone := now.Sub(k.asked) > fullScanEvery+maxIdlePoll // each full scan asks
		tooNew := k.lines < muteLines && now.Sub(k.grown) < muteAfter
		if k.owner != nil || k.lines == 0 || gone || tooNew {
			continue
		}
		files++
		lines += k.lines
		some = append(some, Mute{k.path, k.lines})
		if len(some) > maxMute {
			slices.SortFunc(some, mostLines)
			some = some[:maxMute]
		}
	}
	slices.SortFunc(some, mostLines)
	return some, files, lines
}

// Head returns the Tailer that first understands one of a file's first lines (nil: none), and the first line that is not empty (nil: none). A file that cannot
// be read has neither.
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
	var shapes dull // of the lines so far
	// One Tailer reads the lines for all detectors.
	_, _, _ = members[0].sniff(path, 0, sniffBytes, true, &buf, nil, func(text []byte) bool { // an error only ends the lines
		if first == nil {
			first = bytes.Clone(text)
		}
		reader, _ = firstReader(detect, members, text, shapes.isRepetitive(text))
		return reader == nil
	})
	return reader, first
}

// isOwn reports whether a file of the globs is this Tailer's for any content.
func (w *sweeper) isOwn(path string) bool {
	return len(w.shared.Globs) == 0 || w.own.Match(path) || w.isDocument(path)
}

// names reports whether Include or Document name a file, also by another path, or the file is in the globs and its name is a document's. The Sorter asks this
// of all Tailers.
func (w *sweeper) names(path string) bool {
	return w.byName.Match(absolute(path)) || w.shared.Match(path) && w.isDocument(path)
}

// isMine reports whether a file is for this Tailer, by name or by content. Of a file that is not assigned yet the answer is false: the Sorter informs the
// Tailer later if the file is for it (takeNews).
func (w *sweeper) isMine(path string, now time.Time) bool { return w.assigned(path, now, false) }

// isMineAtOnce is isMine for a caller that cannot wait: a file that is not assigned yet is sniffed and assigned now.
func (w *sweeper) isMineAtOnce(path string, now time.Time) bool { return w.assigned(path, now, true) }

// assigned implements isMine, and with atOnce isMineAtOnce. A file known to be another Tailer's is checked again in each full scan.
func (w *sweeper) assigned(path string, now time.Time, atOnce bool) bool {
	if w.isOwn(path) {
		return true
	}
	if scan, ok := w.others[path]; ok && scan == w.scans {
		return false
	}
	w.noteMatch(path)
	if id, ok := w.t.set.Sorter.waits(path, now); ok && !atOnce && w.files[id] == nil { // no stream has the file by another name
		return false
	}
	fi, err := w.t.stat(path)
	if err != nil || !fi.Mode().IsRegular() || w.known(path, fi) != nil { // gone, not regular, or a stream's: found handles all three
		delete(w.others, path)
		return true
	}
	fate := w.t.set.Sorter.sort(w.t, path, fi, now, atOnce)
	if fate == others {
		w.others[path] = w.scans
	} else {
		delete(w.others, path)
	}
	return fate == mine
}

// sortFiles has the Sorter sniff unassigned files for a turn, and takes up the files that it assigned to this Tailer. A Once goes on until all files are
// assigned.
func (w *sweeper) sortFiles(now time.Time) {
	if len(w.shared.Globs) == 0 {
		return
	}
	for again := true; again; {
		w.sorting = w.t.set.Sorter.turn(w.t, now)
		found := w.t.takeNews()
		for _, d := range found {
			delete(w.others, d.path) // a shared file was another's alone
			w.found(d.path, now)
		}
		again = w.t.final && (w.sorting || len(found) > 0)
	}
}

// isMineStill reports whether a path with a checkpoint is read on by this Tailer: a file formerly this Tailer's by name may be another's by content now.
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

// sweepOthers forgets files of other Tailers that the last full scan has not met.
func (w *sweeper) sweepOthers() {
	for path, scan := range w.others {
		if scan != w.scans {
			delete(w.others, path)
		}
	}
}
