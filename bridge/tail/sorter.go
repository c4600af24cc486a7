package tail

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// Reads says how far a receiver understands a line.
type Reads uint8

// The answers.
const (
	ReadsNot Reads = iota
	ReadsToo       // a record, of a format that is another receiver's first
	ReadsOwn       // a record
	readsKinds
)

// Detect looks at the lines of one file, from its first on.
type Detect func(text []byte) Reads

const (
	sniffMost   = 16 << 20 // bytes of a file, to find out whose it is
	sniffLook   = 4 << 20  // bytes of these, in one go
	sniffBytes  = 256 << 10
	forgetKind  = 10 * time.Minute // after which nobody has asked for it
	loadingMost = 2 * time.Second
	quietFor    = 2 * time.Second // after which a last line without an ending is looked at as it is
)

// Sorter decides which of several Tailers reads a file that all of them may read (Config.IncludeByContent). The first line that any of them understands
// decides, so that the answer is the same however far the file has grown, and after a restart. The zero value is ready.
type Sorter struct {
	mu      lockorder.Mutex[leaf]
	members []*Tailer
	loading []*Tailer // Tailers whose checkpoints were not read yet
	paths   map[string]*kind
	pruned  time.Time
}

// kind is what is known of a file.
type kind struct {
	path   string
	id     fingerprint.ID
	owner  *Tailer // nil: not known
	detect []Detect
	of     []*Tailer // the Tailers of detect, in its order
	off    int64     // looked at up to here
	size   int64     // size at that time
	grown  time.Time
	asked  time.Time
	lines  int64
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
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(m *Tailer) bool { return m == t }
	s.members, s.loading = slices.DeleteFunc(s.members, is), slices.DeleteFunc(s.loading, is)
	for path, k := range s.paths {
		if k.owner == t || k.owner == nil {
			delete(s.paths, path)
		}
	}
}

// fate is the Sorter's answer about a file to one of the Tailers.
type fate uint8

const (
	unknown fate = iota
	mine
	others
)

// sort says whose a file is. more: it has more to look at, now.
func (s *Sorter) sort(t *Tailer, path string, fi fs.FileInfo, now time.Time) (f fate, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	k := s.known(path, fi, now)
	k.asked = now
	if k.owner == nil {
		more = s.look(k, fi, now)
	}
	switch k.owner {
	case nil:
		return unknown, more
	case t:
		return mine, false
	}
	return others, false
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
		k.owner = t
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
	id := fingerprint.IDOf(fi)
	if k := s.paths[path]; k != nil && (k.owner != nil || k.id == id && fi.Size() >= k.size) {
		return k
	}
	k := &kind{path: path, id: id, size: -1, grown: now}
	for _, m := range s.members {
		switch {
		case k.owner != nil:
		case m.sweeper.exclude.Match(path):
		case m.sweeper.names(path):
			k.owner = m
		case m.sweeper.shared.Match(path):
			k.detect, k.of = append(k.detect, m.set.Detect(path)), append(k.of, m)
		}
	}
	s.remember(k)
	return k
}

// look asks whose the lines are that were not looked at yet.
func (s *Sorter) look(k *kind, fi fs.FileInfo, now time.Time) (more bool) {
	if fi.Size() != k.size {
		k.size, k.grown = fi.Size(), now
	} else if now.Sub(k.grown) > quietFor+time.Second {
		return false // all of it was looked at
	}
	if len(k.of) == 0 || k.off >= sniffMost {
		return false
	}
	from := k.off
	final := k.of[0].final // the file does not grow, and nobody looks again
	for (final || k.off-from < sniffLook) && k.off < sniffMost {
		next, err := k.of[0].head(k.path, k.off, final || now.Sub(k.grown) >= quietFor, func(text []byte) bool {
			k.lines++
			k.owner = firstReader(k.detect, k.of, text)
			return k.owner == nil
		})
		if k.owner != nil {
			k.detect, k.of = nil, nil
			return false
		}
		if err != nil || next == k.off {
			return false
		}
		k.off = next
	}
	return k.off < sniffMost
}

// firstReader returns whose the line is. All see it, since they may need it for the next one.
func firstReader(detect []Detect, of []*Tailer, text []byte) *Tailer {
	var found [readsKinds]*Tailer
	for i, d := range detect {
		if r := d(text); found[r] == nil {
			found[r] = of[i]
		}
	}
	if found[ReadsOwn] != nil {
		return found[ReadsOwn]
	}
	return found[ReadsToo]
}

// prune forgets files that no Tailer has asked for lately.
func (s *Sorter) prune(now time.Time) {
	if age := now.Sub(s.pruned); age >= 0 && age < forgetKind {
		return
	}
	s.pruned = now
	for path, k := range s.paths {
		if now.Sub(k.asked) >= forgetKind {
			delete(s.paths, path)
		}
	}
}

// Owner says which Tailer reads a file, looking at its lines where that is needed. The Tailers are those of NewOnce.
func (s *Sorter) Owner(path string) (of component.ID, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fi, err := os.Stat(path)
	if err != nil {
		return of, false
	}
	now := time.Now()
	k := s.known(path, fi, now)
	if k.owner == nil {
		s.look(k, fi, now)
	}
	if k.owner == nil {
		return of, false
	}
	return k.owner.set.ID, true
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
		some = append(some, Mute{k.path, k.lines})
	}
	slices.SortFunc(some, mostLines)
	return some[:min(len(some), maxMute)], files, lines
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
	_, _ = members[0].head(path, 0, true, func(text []byte) bool {
		if first == nil {
			first = bytes.Clone(text)
		}
		reader = firstReader(detect, members, text)
		return reader == nil
	})
	return reader, first
}

// head visits the lines of a file that stand in its next 256 KiB, or more where a line is longer, until visit returns false, and returns where the line after
// the last one begins. A last line without its ending is visited where it may be whole; it is looked at again all the same.
func (t *Tailer) head(path string, off int64, whole bool, visit func(text []byte) bool) (next int64, err error) {
	raw, _, err := osfile.Open(path, t.cfg.FollowSymlinks)
	if err != nil {
		return off, err
	}
	src := t.unpack(path, raw)
	defer src.Close()
	var mark [2]byte
	n, err := src.ReadAt(mark[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return off, err
	}
	enc := lines.EncodingOf(mark[:n])
	for size := sniffBytes; ; size *= 2 {
		b := make([]byte, size)
		for {
			if n, err = src.ReadAt(b, off); err != unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
				break
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return off, err
		}
		var decoded []byte
		sp := lines.NewSplitter(b[:n], enc, &decoded)
		for end := 0; ; end = sp.Pos {
			text, ok := sp.Next(whole && n < size)
			if !ok {
				break
			}
			if off == 0 && end == 0 {
				text = bytes.TrimPrefix(text, lines.BOM)
			}
			if text = bytes.TrimLeft(text, "\x00"); len(bytes.TrimSpace(text)) > 0 && !visit(text) {
				return off + int64(sp.Pos), nil
			}
			if n < size && sp.Pos == n && b[n-1] != '\n' && b[n-1] != '\r' && !enc.Wide() {
				return off + int64(end), nil
			}
		}
		switch {
		case sp.Pos > 0:
			return off + int64(sp.Pos), nil
		case n < size:
			return off, nil
		case size > t.cfg.MaxLineBytes: // passed over, as when it is read
			return off + int64(n), nil
		}
	}
}

// sorted is a file that only IncludeByContent matches and that is not read.
type sorted struct {
	others bool // it is another's
	scan   int  // the full scan that last asked for it, counted from 1
	size   int64
	grown  time.Time
	next   time.Time // when to ask again
}

// isOwn says whether a file that the globs ask for is this Tailer's, whatever it holds.
func (w *sweeper) isOwn(path string) bool {
	return len(w.shared) == 0 || w.own.Match(path) || w.isDocument(path)
}

// names says whether Include or Document name a file, also by another path, or it is a document by its name. Sorter asks it of all Tailers.
func (w *sweeper) names(path string) bool {
	return w.byName.Match(absolute(path)) || w.shared.Match(path) && w.isDocument(path)
}

// isMine says whether a file is for this Tailer, by its name or by its content. A file that is another's is asked for once per full scan.
func (w *sweeper) isMine(path string, now time.Time) bool {
	if w.isOwn(path) {
		return true
	}
	f := w.sorted[path]
	if f != nil && (f.others && f.scan == w.scans+1 || !f.others && now.Before(f.next)) {
		f.scan = w.scans + 1
		return false
	}
	fi, err := w.t.stat(path)
	if err != nil || !fi.Mode().IsRegular() || w.known(path, fi) != nil { // found knows what to do
		delete(w.sorted, path)
		return true
	}
	w.noteMatch(path)
	fate, more := w.t.set.Sorter.sort(w.t, path, fi, now)
	if fate == mine {
		delete(w.sorted, path)
		return true
	}
	if f == nil {
		f = &sorted{size: -1}
		w.sorted[path] = f
	}
	f.others, f.scan = fate == others, w.scans+1
	if fi.Size() != f.size {
		f.size, f.grown = fi.Size(), now
	}
	if f.next = now.Add(backOff(w.t.cfg.PollInterval, now.Sub(f.grown))); more {
		f.next = now
	}
	return false
}

// isMineStill says whether a path with a checkpoint is to be read on. A file that was this Tailer's by its name may be another's by its content.
func (w *sweeper) isMineStill(c *checkpoint.Stream, now time.Time) bool {
	if w.isOwn(c.Path) {
		return true
	}
	if !c.ByContent {
		if fi, err := w.t.stat(c.Path); err == nil && fi.Mode().IsRegular() {
			_, _ = w.t.set.Sorter.sort(w.t, c.Path, fi, now)
		}
	}
	return w.t.set.Sorter.claim(w.t, c.Path, now)
}

// sweepSorted forgets files that are gone.
func (w *sweeper) sweepSorted() {
	for path, f := range w.sorted {
		if f.scan != w.scans+1 {
			delete(w.sorted, path)
		}
	}
}
