package tail

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/rotation"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

const maxListings = 20 // for a directory that changes all the time

// lookUnnamed handles a path that no longer names the stream's current file. That file counts as rotated from now on, and files rotated through the path after
// it are taken up. Without a current file, rotated files whose comparison was not finished (s.behind) are compared again.
func (w *sweeper) lookUnnamed(s *Stream, now time.Time) {
	if s.current == nil {
		if s.behind {
			w.takeUp(s, now, false)
		}
		return
	}
	if w.verify(s, now); s.current != nil { // verify may have found the file gone
		f := s.current
		f.rotated = now
		s.lastWrite = f.wrote
		s.current = nil
		s.changed()
		w.takeUp(s, now, false)
		w.noteActivity(s, now)
	}
}

// adopt appends an open file to the stream's files; with g.current the path names the file, else the file is a rotated one. first: the file was present at the
// tailer's start without a stored position, so StartAt applies.
func (w *sweeper) adopt(s *Stream, g generation, now time.Time, first bool) {
	path, raw, fi := g.path, g.raw, g.fi
	f := &file{stream: s, id: fingerprint.IDOf(fi), path: path, size: fi.Size(), mtime: fi.ModTime(), wrote: fi.ModTime(), grown: now, seen: w.scans}
	w.t.attach(f, raw, w.t.unpack(path, raw))
	if first && w.t.cfg.StartAt == StartAtEnd && !f.compressed {
		f.skipTo(raw, fi.Size())
	} else if !w.first && !first {
		f.caughtUp = now // created while this process was running: its lines are live
	}
	f.begin()
	w.t.spare(f)
	if f.compressed && now.Sub(f.mtime) > rotatedGrace {
		f.grown = f.mtime // not being written
	}
	w.files[f.id] = f
	f.supersede()
	s.files = append(s.files, f)
	s.changed()
	w.fresh = true
	if s.known && !first {
		f.birth = birthMissed
	}
	if g.current {
		s.current = f
	} else {
		f.rotated = now
		s.lastWrite = f.wrote
	}
	s.known = true
	w.noteActivity(s, now)
}

// skipTo moves the head to the start of the last, unfinished line in the first size bytes of r, for start_at: end. Of a last line longer than 64 KiB, the
// remaining bytes are skipped, too (f.skip).
func (f *file) skipTo(r io.ReaderAt, size int64) {
	first := make([]byte, min(size, fingerprint.Bytes))
	n, _ := r.ReadAt(first, 0)
	first = first[:n]
	f.enc = lines.EncodingOf(first)
	if f.enc.Rows() {
		f.skipRows(r, size)
		f.print.Extend(0, first[:min(int64(len(first)), f.head)])
		return
	}
	from := max(0, size-64<<10) &^ 1 // even: a character of UTF-16 has two bytes
	b := make([]byte, size-from)
	n, _ = r.ReadAt(b, from)
	b = b[:n]
	end := f.enc.LineEnd(b)
	f.skip = end == 0 && from > 0
	if f.skip {
		end = n
		if f.enc.Wide() {
			end &^= 1
		}
	}
	f.head = from + int64(end)
	f.print.Extend(0, first[:min(int64(len(first)), f.head)])
	f.tail.Remember(b[:end])
}

// skipRows moves the head of a file of rows to the start of the last, unfinished row in the first size bytes of r. Where a row begins is known only from the
// row before, so the file is walked from the last block on, or from the beginning.
func (f *file) skipRows(r io.ReaderAt, size int64) {
	off := max(0, f.enc.Begin(size))
	b := make([]byte, min(size-off+1, 4*chunkBytes)) // 1 more than is left: a read at the end does not fill the buffer
	var text []byte
	for {
		n, _ := r.ReadAt(b, off)
		sp := lines.NewSplitter(b[:n], f.enc, &text, off)
		for ok := true; ok; {
			_, ok = sp.Next(false)
		}
		step := int64(sp.Pos)
		if step == 0 { // nothing is left, the last row is unfinished, or one is too long for the buffer
			step = f.enc.Past(b[:n], off)
			if n < len(b) || off+step > size {
				break
			}
		}
		off += step
	}
	f.head = off
	before := make([]byte, min(off, fingerprint.TailBytes))
	n, _ := r.ReadAt(before, off-int64(len(before)))
	f.tail.Remember(before[:n])
}

// truncated handles a file f found truncated or rewritten. If a copy of the old content exists (copytruncate), f is read on in the copy; otherwise f is dead,
// and counts as lost if bytes were unread. The present content becomes a new file with f's path and inode, after f in the order of reading. While the search
// for a copy takes several looks, f stays lifeCut.
func (w *sweeper) truncated(s *Stream, f *file, now time.Time) {
	c, wait := w.copyOf(s, f)
	if wait { // the next look continues the comparison
		f.setLife(lifeCut)
		return
	}
	s.lastWrite = f.wrote
	g := w.successor(f, now)
	w.t.close(f)
	if f.rotated.IsZero() {
		f.rotated = now
	}
	found := c != nil // the old content
	if found {
		w.continueIn(f, c, now)
	}
	if g != nil || found { // else the file is gone: a loss, but no truncation
		w.t.counts.bump(&w.t.counts.truncs, 1)
	}
	if g == nil { // there is no present content: the file is gone
		if !found {
			w.lost(f, f.size > f.head)
		}
		if s.current == f {
			s.current = nil
			w.takeUp(s, now, false)
		}
		s.changed()
		return
	}
	if !found {
		f.setLife(lifeDead)
	}
	// g takes f's place, after f in the order of reading.
	w.files[g.id] = g
	if s.current == f {
		s.current = g
		n := len(s.files)
		w.takeUp(s, now, false)
		found = found || f.head == 0 && len(s.files) > n // the copy of an unread file is like a file rotated unseen
		s.files = append(s.files, g)
	} else {
		s.files = slices.Insert(s.files, slices.Index(s.files, f)+1, g)
	}
	if !found {
		w.lost(f, f.head == 0 || f.size > f.head) // of an unread file, the fingerprint has shown the change: bytes were there
	}
	s.changed()
	w.noteActivity(s, now)
}

// successor returns a new file for the present content of a truncated file f, and hands f's descriptor over. A file that cannot be opened now is returned
// closed. nil: f was closed, and is a rotated file, or no file in its directory has the inode.
func (w *sweeper) successor(f *file, now time.Time) *file {
	g := &file{stream: f.stream, id: f.id, path: f.path, rotated: f.rotated, mtime: f.mtime, wrote: f.wrote, grown: now, caughtUp: now, seen: w.scans}
	switch {
	case f.compressed: // opened when the size is stable
		return g
	case f.src == nil:
		// The inode of a rotated, closed and deleted file may have been reused.
		if !f.rotated.IsZero() || errors.Is(w.t.reopen(g), errTruncated) {
			return nil
		}
	default: // the open file may be the only way to its present content
		g.src, g.raw = f.src, f.raw
		f.src, f.raw = nil, nil
	}
	g.begin() // the new content may be truncated as well, before any of it is read
	w.t.spare(g)
	return g
}

// lost marks a file as dead that cannot be read any more, and counts a lost file if bytes were unread, or read and not accepted.
func (w *sweeper) lost(f *file, unread bool) {
	f.setLife(lifeDead)
	if unread || len(f.replay) > 0 {
		w.t.counts.bump(&w.t.counts.lost, 1)
		w.t.warn("lost", "A file was cut or is gone before all of it was read and delivered: keep more rotated files, or larger ones",
			zap.String("path", f.path))
	}
	f.replay, f.tags, f.arrivals = nil, nil, nil
}

// takeUp makes the files that were rotated through the path unseen, since the last known file, the stream's next files, oldest first; with named, also the file
// that the path names now. At the first look at a path all rotated files in the globs are taken up. s.behind is set if the search is not finished: then takeUp
// must be called again.
//
// Rotation may continue meanwhile. So takeUp works on one listing of the directory, with every file open; files rotated later are younger, and found next time.
func (w *sweeper) takeUp(s *Stream, now time.Time, named bool) {
	met := !s.known
	first := met && (w.first || s.early)
	if s.current == nil {
		w.verify(s, now) // else a copy of another stream's file would count as a rotated file of this stream
	}
	// Again with a new listing, as long as the names change hands meanwhile.
	for range maxListings {
		own, beside := w.listSiblings(s.path)
		done, wait := w.takeUpRotated(s, own, beside, now, met)
		s.behind = wait
		if wait {
			return
		}
		if !done {
			continue
		}
		if !named || own == nil {
			return
		}
		if f := w.files[fingerprint.IDOf(own)]; f != nil && f.life != lifeDead {
			return // the next look decides its owner
		}
		raw, fi, err := osfile.Open(s.path, w.t.cfg.FollowSymlinks)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.t.readError(s.path, err)
				s.denied = true
				return
			}
			continue
		}
		if fingerprint.IDOf(fi) == fingerprint.IDOf(own) {
			w.adopt(s, generation{path: s.path, raw: raw, fi: fi, current: true}, now, first)
			return
		}
		_ = raw.Close()
	}
	s.behind = true // the names change hands too fast for now
}

// takeUpRotated takes up the rotated files of one listing, oldest first. ownInfo is of the file that the path itself names (nil: none), beside its siblings;
// firstLook: the stream has had no file yet. done is false if names were given to other files since the listing: the caller makes a new listing. wait: no file
// is taken up, because identifying the files needs another call.
func (w *sweeper) takeUpRotated(s *Stream, ownInfo fs.FileInfo, beside []sibling, now time.Time, firstLook bool) (done, wait bool) {
	first := firstLook && (w.first || s.early)
	var gens []generation
	var copies []fingerprint.ID
	for _, b := range beside {
		suffix, ok := strings.CutPrefix(b.named, s.path)
		id := fingerprint.IDOf(b.fi)
		if ok && s.current != nil && id == s.current.id { // rotated meanwhile
			gens = append(gens, generation{path: b.path, suffix: suffix, fi: b.fi, current: true})
			continue
		}
		isRotated := ok && rotation.IsSuffix(suffix)
		isOwn := ownInfo != nil && id == fingerprint.IDOf(ownInfo)
		tooOld := b.fi.ModTime().Before(s.lastWrite)
		if !isRotated || w.known(b.path, b.fi) != nil || isOwn || tooOld || firstLook && !w.wanted(b.path) {
			continue
		}
		if slices.ContainsFunc(beside, func(o sibling) bool { return w.packedAs(o.path, o.fi, b.path) }) {
			continue // its uncompressed original is read
		}
		raw, fi, err := osfile.Open(b.path, w.t.cfg.FollowSymlinks)
		if err == nil && fingerprint.IDOf(fi) != id {
			_ = raw.Close()
			err = fs.ErrNotExist
		}
		if errors.Is(err, fs.ErrNotExist) {
			closeAll(gens)
			return false, false
		}
		if isShort(err) {
			closeAll(gens)
			return false, true
		}
		if err != nil {
			w.t.readError(b.path, err)
			continue
		}
		copied, wait := w.copied(s, b.path, raw, fi)
		if wait {
			_ = raw.Close()
			closeAll(gens)
			return false, true
		}
		if copied {
			_ = raw.Close()
			copies = append(copies, id)
			continue
		}
		if int64(len(gens)) >= w.t.descriptors.share(maxOpenFiles, 4) { // too many to hold all open
			_ = raw.Close()
			raw = nil
		}
		gens = append(gens, generation{path: b.path, suffix: suffix, raw: raw, fi: fi})
	}
	if !firstLook {
		w.countLost(s, w.countMissing(s, ownInfo, beside, copies))
	}
	gens = w.addCaptures(s, gens, ownInfo, firstLook)
	sortGenerations(gens, ownInfo)
	// If the current file was rotated meanwhile, it is one of gens: younger files are taken up once its own rotation is noticed.
	late := false
	for i, g := range gens {
		switch late = late || g.current; {
		case !late:
			if g.capture != nil {
				w.detach(g.capture)
			}
			if g.raw == nil && !w.openAgain(&g) { // renamed meanwhile
				closeAll(gens[i:])
				return false, false
			}
			w.adopt(s, g, now, first)
		case g.raw != nil && g.capture == nil: // younger than the current file
			_ = g.raw.Close()
		}
	}
	return true, false
}

// openAgain opens the file of g, which was closed during the comparison of others. It returns false if the path does not name that file any more.
func (w *sweeper) openAgain(g *generation) bool {
	raw, fi, err := osfile.Open(g.path, w.t.cfg.FollowSymlinks)
	if err != nil {
		return false
	}
	if fingerprint.IDOf(fi) != fingerprint.IDOf(g.fi) {
		_ = raw.Close()
		return false
	}
	g.raw, g.fi = raw, fi
	return true
}

// addCaptures returns gens with the files that were captured at their creation or renaming and are gone from the directory. It numbers (generation.order) the
// files captured at the stream's own path in the order of the events. met: the stream has had no file yet, so files outside the globs are left out.
func (w *sweeper) addCaptures(s *Stream, gens []generation, own fs.FileInfo, met bool) []generation {
	events := w.captured[s.path]
	for i := range events {
		c := &events[i]
		if c.raw == nil {
			continue
		}
		id := fingerprint.IDOf(c.fi)
		if at := slices.IndexFunc(gens, func(g generation) bool { return fingerprint.IDOf(g.fi) == id }); at >= 0 {
			if c.own { // still in the directory
				gens[at].order = i + 1
			}
			continue
		}
		fi, err := c.raw.Stat()
		if err != nil || w.files[id] != nil || own != nil && id == fingerprint.IDOf(own) {
			continue
		}
		isCopy := func(f *file) bool { return f.head > 0 && f.life != lifeDead && sameFile(f, c.raw) }
		if !c.own && (met && !w.wanted(c.path) || fi.ModTime().Before(s.lastWrite) || slices.ContainsFunc(s.files, isCopy)) {
			continue // outside the globs at the first look, an old file, or a copy
		}
		g := generation{path: c.path, suffix: strings.TrimPrefix(c.path, s.path), raw: c.raw, fi: fi, capture: c}
		if c.own {
			g.order = i + 1
		}
		gens = append(gens, g)
	}
	return gens
}

// closeAll closes the files of generations that are not taken up. A captured file stays open in its capture.
func closeAll(gens []generation) {
	for _, g := range gens {
		if g.raw != nil && g.capture == nil {
			_ = g.raw.Close()
		}
	}
}

// generation is a file of a path: a rotated one, or the file that the path names or has just ceased to name.
type generation struct {
	path, suffix string   // suffix: of the rotated file's name, such as .1
	raw          *os.File // nil: to be opened again
	fi           fs.FileInfo
	current      bool     // the stream's current file; for adopt, the file that the path names
	order        int      // order of capture; 0: not captured
	capture      *capture // the capture that holds it
}

// sortGenerations sorts the oldest first. own is the path's present file, nil for none. The order follows from, in turn:
//
//   - modification times, to the nanosecond. Clocks of file systems are coarse, and copying may set equal times;
//   - of two captured files, the order of capture;
//   - the numbers of the names, up or down as in most pairs of files whose times differ. Without a direction by times, the inodes of three files or more
//     show the direction, if own has the highest inode: then inodes were probably given in the order of creation. Of two files, one inode used again would
//     turn the direction. Without any evidence .1 is the youngest, as in logrotate and Python's handlers;
//   - where a suffix is no number, the suffixes as texts: dates, and before them the empty suffix of a captured file that is gone.
func sortGenerations(gens []generation, own fs.FileInfo) {
	// up and upIno: how many pairs have the higher number on the younger file (by time, by inode) more than on the older. fresh: own has the highest inode.
	// The stream's current file proves nothing: a truncation leaves the old inode to new content.
	up, upIno, fresh := 0, 0, own != nil
	for i, a := range gens {
		fresh = fresh && !a.current && fingerprint.IDOf(a.fi).Ino < fingerprint.IDOf(own).Ino
		for _, b := range gens[:i] {
			x, isX := rotation.Number(a.suffix)
			y, isY := rotation.Number(b.suffix)
			if isX && isY {
				up += a.fi.ModTime().Compare(b.fi.ModTime()) * cmp.Compare(x, y)
				upIno += cmp.Compare(fingerprint.IDOf(a.fi).Ino, fingerprint.IDOf(b.fi).Ino) * cmp.Compare(x, y)
			}
		}
	}
	if up == 0 && fresh && len(gens) > 2 {
		up = upIno
	}
	slices.SortStableFunc(gens, func(a, b generation) int {
		if c := a.fi.ModTime().Compare(b.fi.ModTime()); c != 0 {
			return c
		}
		if a.order > 0 && b.order > 0 {
			return cmp.Compare(a.order, b.order)
		}
		x, isX := rotation.Number(a.suffix)
		y, isY := rotation.Number(b.suffix)
		switch {
		case !isX || !isY:
			return cmp.Compare(a.suffix, b.suffix)
		case up > 0:
			return cmp.Compare(x, y)
		}
		return cmp.Compare(y, x)
	})
}

// copied reports whether a file with a rotated name is no generation of its own, but a copy, possibly compressed, of a file of the stream or of the path's
// present file. wait: the comparison is not finished; call again.
func (w *sweeper) copied(s *Stream, path string, raw *os.File, fi fs.FileInfo) (is, wait bool) {
	if fi.Size() > 0 && sameSoFar(s.path, raw, fi) {
		return true, false
	}
	var candidates []*file
	packed := w.t.packing(path) != CompressionNone
	for _, f := range s.files {
		switch {
		case f.life == lifeDead:
		case packed:
			if f.head > 0 || f.print.N > 0 { // known well enough to compare
				candidates = append(candidates, f)
			}
		// A longer file that begins like f is another run of the same program, unless f was cut or is gone: f may have grown since its last look.
		case f.head > 0 && (f.life == lifeCut || f.gone && !f.isRetired() || fi.Size() <= f.size):
			candidates = append(candidates, f)
		}
	}
	if !packed {
		return slices.ContainsFunc(candidates, func(f *file) bool { return sameFile(f, raw) }), false
	}
	f, wait := w.findOriginal(s, path, fi, candidates)
	return f != nil, wait
}

// sibling is a regular file beside a stream's path whose name begins like the path's own. Of a link, beside its target.
type sibling struct {
	path  string
	fi    fs.FileInfo
	named string // its path, with the link's target replaced by the stream's path
}

// listSiblings returns the siblings of a path, and the path's own file (nil: no regular file). During a listing, a renamed file may be missing or be listed
// twice: only two equal listings in a row are trusted, or else the last of maxListings.
func (w *sweeper) listSiblings(path string) (own fs.FileInfo, all []sibling) {
	list := w.listing(path)
	for range maxListings {
		last := list
		list = w.listing(path)
		if slices.EqualFunc(last, list, func(a, b sibling) bool { return a.path == b.path && fingerprint.IDOf(a.fi) == fingerprint.IDOf(b.fi) }) {
			break
		}
	}
	w.t.listed()
	if len(list) > 0 && list[0].path == path {
		return list[0].fi, list[1:]
	}
	return nil, list
}

// listing returns the file that a path names, if regular, and then its siblings, by name. If the path is a link and links are followed, the siblings of the
// target come last.
func (w *sweeper) listing(path string) (all []sibling) {
	if fi, err := w.t.stat(path); err == nil && fi.Mode().IsRegular() {
		all = append(all, sibling{path, fi, path})
	}
	all = w.siblings(all, path)
	if !w.t.cfg.FollowSymlinks {
		return all
	}
	if to := linked(path); to != path {
		n := len(all)
		all = w.siblings(all, to)
		for i := n; i < len(all); i++ {
			all[i].named = path + strings.TrimPrefix(all[i].path, to)
		}
	}
	return all
}

// siblings appends the siblings of a path to all. They are found by their common stem in the sorted listing of the directory.
func (w *sweeper) siblings(all []sibling, path string) []sibling {
	dir, stem := rotation.Stem(path)
	entries := w.entries(filepath.Clean(dir))
	w.t.listed()
	first, _ := slices.BinarySearchFunc(entries, stem, func(e fs.DirEntry, stem string) int { return strings.Compare(e.Name(), stem) })
	for _, e := range entries[first:] {
		if !strings.HasPrefix(e.Name(), stem) {
			break
		}
		if !rotation.EndsStem(e.Name(), len(stem)) || !e.Type().IsRegular() || dir+e.Name() == path {
			continue
		}
		if fi, err := e.Info(); err == nil {
			all = append(all, sibling{dir + e.Name(), fi, dir + e.Name()})
		}
	}
	return all
}

// copyOf looks beside a file that was truncated, or is gone, for a file with the old content: a copy, or the compressed form. nil: there is none. wait: the
// comparison is not finished; call again. Of an unread file only the beginning is known, so the name or time of the compressed form must fit too; an
// uncompressed copy of an unread file is taken up like a file rotated unseen.
func (w *sweeper) copyOf(s *Stream, f *file) (_ *replica, wait bool) {
	if f.head == 0 && f.print.N == 0 {
		return nil, false
	}
	_, beside := w.listSiblings(s.path)
	if dir, stem := rotation.Stem(s.path); !strings.HasPrefix(f.path, dir+stem) { // names were swapped
		_, more := w.listSiblings(f.path)
		beside = append(beside, more...)
	}
	for _, b := range beside {
		// A file of a stream is no copy, unless the file is f itself, or blank and so no proof. known, because a closed file may only have left its inode to b.
		if g := w.files[fingerprint.IDOf(b.fi)]; g != nil && g != f && !g.isBlank() && w.known(b.path, b.fi) != nil {
			continue
		}
		if w.t.packing(b.path) != CompressionNone {
			if f.head == 0 && unpack.Name(b.path) != f.path && !b.fi.ModTime().Equal(f.mtime) {
				continue
			}
			g, wait := w.findOriginal(s, b.path, b.fi, []*file{f})
			if wait {
				return nil, true
			}
			if g != nil {
				return w.replicaOf(b.path, b.fi), false
			}
			continue
		}
		if f.head == 0 {
			continue
		}
		raw, fi, err := osfile.Open(b.path, w.t.cfg.FollowSymlinks)
		if err != nil {
			wait = wait || isShort(err)
			continue
		}
		if sameFile(f, raw) {
			return &replica{b.path, raw, fi, raw}, false
		}
		_ = raw.Close()
	}
	return nil, wait
}

// continueIn continues a file in its copy or compressed form c: from now on f has c's name and inode, and is read on from f's head.
func (w *sweeper) continueIn(f *file, c *replica, now time.Time) {
	if w.files[f.id] == f {
		delete(w.files, f.id)
	}
	w.t.close(f)
	f.id, f.path, f.size, f.mtime, f.grown, f.seen = fingerprint.IDOf(c.fi), c.path, c.fi.Size(), c.fi.ModTime(), now, w.scans
	f.setLife(lifeUnread)
	w.files[f.id] = f
	f.supersede()
	delete(w.suspects, c.path)
	w.t.attach(f, c.raw, c.src)
	f.stream.changed()
	w.noteActivity(f.stream, now)
}

// supersede marks as dead any unread, closed file of the stream with f's inode: the inode was reused for f, so that file no longer exists.
func (f *file) supersede() {
	for _, g := range f.stream.files {
		if g != f && g.id == f.id && g.src == nil && g.head == 0 && !g.isRetired() {
			g.setLife(lifeDead)
		}
	}
}

// packedAs reports whether path is the name of packed without its compression suffix, and belongs to a file that is or will be read: the original of the
// compressed file.
func (w *sweeper) packedAs(path string, fi fs.FileInfo, packed string) bool {
	return path != packed && path == unpack.Name(packed) && w.t.packing(packed) != CompressionNone && (w.wanted(path) || w.files[fingerprint.IDOf(fi)] != nil)
}

// awaitsOriginal reports whether a compressed file has its original beside it, and stays a suspect until the original is removed. If the contents differ and
// the compressed file has not grown for copyGrace, the answer is false: the compressed file is a file of its own.
func (w *sweeper) awaitsOriginal(path string, fi fs.FileInfo, now time.Time) bool {
	original, err := w.t.stat(unpack.Name(path))
	if err != nil || !original.Mode().IsRegular() || !w.packedAs(unpack.Name(path), original, path) {
		return false
	}
	c, ok := w.suspects[path]
	if !ok {
		c = suspect{first: now}
	}
	if !ok || c.size != fi.Size() { // still being written
		c.size, c.since, c.twin = fi.Size(), now, false
	}
	if !c.twin && now.Sub(c.since) >= copyGrace {
		c.twin = w.unpacksTo(path, unpack.Name(path))
		if !c.twin {
			return false
		}
	}
	w.suspects[path] = c
	return true
}

// unpacksTo reports whether the decompressed content of packed begins as original does, in the first KiB, as far as both go. It returns true where one of the
// files cannot be opened.
func (w *sweeper) unpacksTo(packed, original string) bool {
	a, _, err := osfile.Open(original, w.t.cfg.FollowSymlinks)
	if err != nil {
		return true // being removed
	}
	defer a.Close()
	b, _, err := osfile.Open(packed, w.t.cfg.FollowSymlinks)
	if err != nil {
		return true
	}
	src := w.t.unpack(packed, b)
	defer src.Close()
	var x, y [fingerprint.Bytes]byte
	n, _ := a.ReadAt(x[:], 0)
	m, _ := src.ReadAt(y[:], 0)
	n = min(n, m)
	return bytes.Equal(x[:n], y[:n])
}

// packedFrom finds the file of a stream from which a compressed file was made, continues that file in the compressed one, and returns it. Only files that are
// gone come into question: the compressed form replaces its original. nil: none; wait: the file stays a suspect, to be looked at again.
func (w *sweeper) packedFrom(s *Stream, path string, fi fs.FileInfo, now time.Time) (_ *file, wait bool) {
	if w.t.packing(path) == CompressionNone {
		return nil, false
	}
	defer w.lock(s)()
	var gone []*file
	for _, f := range s.files {
		if f != s.current && f.life != lifeDead && !f.compressed && (f.head > 0 || f.print.N > 0) && w.isRemoved(f) {
			gone = append(gone, f)
		}
	}
	if len(gone) == 0 {
		return nil, false
	}
	f, wait := w.findOriginal(s, path, fi, gone)
	switch {
	case wait:
	case f == nil: // no match so far: a compressed file written just now may still grow
		wait = now.Sub(fi.ModTime()).Abs() < rotatedGrace
	case f.raw == nil: // closed, and perhaps only renamed
		raw, err := w.t.findByID(f)
		wait = raw != nil || err != nil
		if raw != nil {
			_ = raw.Close()
		}
	default:
		wait = f.head == 0 // certain only for a file with read bytes
	}
	if wait {
		w.suspects[path] = suspect{first: now, since: now}
		for _, f := range gone {
			f.seen = w.scans // must not be dropped
		}
		return nil, true
	}
	if f != nil {
		w.continueIn(f, w.replicaOf(path, fi), now)
	}
	return f, false
}

// isRemoved reports whether a file is not at its last known path any more and, if open, has no name at all.
func (w *sweeper) isRemoved(f *file) bool {
	if f.life == lifeMissing {
		return true
	}
	if f.raw != nil {
		fi, err := f.raw.Stat()
		return err == nil && fingerprint.Links(fi) == 0
	}
	_, err := w.t.statAt(f)
	return err != nil
}

// isCopy reports whether a new file may be an unfinished copy of a stream's current file and must wait: if the original is truncated next, the copy has the old
// content. If the contents differ, or the new file has not grown for copyGrace, the answer is false: it is a file of its own.
func (w *sweeper) isCopy(s *Stream, path string, now time.Time) bool {
	defer w.lock(s)()
	f := w.namedNow(s)
	if f == nil || f.compressed {
		return false
	}
	defer w.lock(f.stream)()
	raw, fi, err := osfile.Open(path, true)
	if err != nil {
		return isShort(err) // too many files are open: the comparison comes later
	}
	defer raw.Close()
	unknown := f.failed && f.head > 0 && sameFile(f, raw) // a truncation of f, unreadable now, is detected once f can be opened
	if !unknown && !sameSoFar(s.path, raw, fi) {
		return false
	}
	c, ok := w.suspects[path]
	if !ok {
		c = suspect{first: now}
	}
	if !ok || c.size != fi.Size() && now.Sub(c.first) < copyMax { // a growing file prolongs the wait, but not for ever
		c.size, c.since = fi.Size(), now
	}
	w.suspects[path] = c
	return unknown || now.Sub(c.since) < copyGrace
}

// lookThoroughly looks at a stream before another stream takes up a file that may belong to the first. Beyond a usual look, a rewrite that made the file longer
// is detected, and a worker reading the stream is waited for. rotated: the file's name is a rotated name of the path; then, if the path names nothing, files
// rotated unseen are taken up.
func (w *sweeper) lookThoroughly(s *Stream, now time.Time, rotated bool) {
	s.missed = maxBusyLooks // even while a worker reads the stream
	w.look(s, now)
	defer w.lock(s)()
	if w.verify(s, now); s.current == nil && rotated && !s.gone {
		w.takeUp(s, now, false)
	}
}

// verify compares the content of the path's file with what was read of the file, and so detects a truncation since the last read, even if the file is longer
// now. A closed file is opened for the comparison.
func (w *sweeper) verify(s *Stream, now time.Time) {
	f := w.namedNow(s)
	if f == nil {
		return
	}
	defer w.lock(f.stream)()
	if f.compressed || f.life == lifeDead {
		return
	}
	if f.raw == nil && (f.life == lifeUnread || f.life == lifeRead) {
		defer w.t.spare(f)
		switch err := w.t.reopen(f); {
		case errors.Is(err, errGone):
			f.gone = true
		case errors.Is(err, errTruncated):
			f.setLife(lifeCut)
		}
	}
	if _, err := w.t.statAt(f); err != nil && f.raw == nil {
		return // renamed, perhaps with a copy: detected once the rotation is noticed
	}
	if f.life == lifeCut || f.wasCut() {
		w.truncated(f.stream, f, now)
	}
}

// namedNow returns the stream's current file, or else the known file that the path names now, which is another stream's after a swap of names. nil: none.
func (w *sweeper) namedNow(s *Stream) *file {
	if s.current != nil {
		return s.current
	}
	fi, err := w.t.stat(s.path)
	if err != nil {
		return nil
	}
	return w.files[fingerprint.IDOf(fi)]
}

// sameSoFar reports whether the open file b, of info fi, may be an unfinished copy of the file at original: b's first and last bytes are at the same offsets of
// original. An empty b may be a copy; original itself is none.
func sameSoFar(original string, b *os.File, fi fs.FileInfo) bool {
	if fi.Size() == 0 {
		return true
	}
	a, info, err := osfile.Open(original, true)
	if err != nil {
		return false
	}
	defer a.Close()
	if fingerprint.IDOf(info) == fingerprint.IDOf(fi) {
		return false
	}
	var x, y [4 << 10]byte
	for _, off := range []int64{0, max(0, fi.Size()-int64(len(x)))} { // the first 4 KiB and the last
		n, _ := b.ReadAt(x[:], off)
		m, _ := a.ReadAt(y[:n], off)
		if m < n || string(x[:n]) != string(y[:n]) {
			return false
		}
	}
	return true
}

// settledAfter is the age of a directory's modification time that proves a listing current: file systems round the time, and a younger time may hide a second
// change.
const settledAfter = time.Second

// lastListing is shared by the streams of one sweep: otherwise ten thousand files of a directory would cause ten thousand listings.
type lastListing struct {
	dir     string
	mtime   time.Time
	entries []fs.DirEntry
}

// entries returns the entries of a directory, sorted by name: the last listing again, as long as nothing in the directory can have changed.
func (w *sweeper) entries(dir string) []fs.DirEntry {
	fi, err := os.Stat(dir)
	if err == nil && w.last.dir == dir && fi.ModTime().Equal(w.last.mtime) {
		return w.last.entries
	}
	w.last = lastListing{}
	entries, _ := os.ReadDir(dir)
	// The directory's clock is the file system's, so real time is used, not the tailer's clock.
	if err == nil && time.Since(fi.ModTime()) > settledAfter {
		w.last = lastListing{dir, fi.ModTime(), entries}
	}
	return entries
}
