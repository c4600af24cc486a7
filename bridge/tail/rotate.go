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

const maxListings = 20 // limit for a directory that is changing all the time

// unnamed is told that the path no longer names the current file.
func (w *sweeper) unnamed(s *Stream, now time.Time) {
	if s.current == nil {
		if s.behind {
			w.takeUp(s, now, false)
		}
		return
	}
	if w.verify(s, now); s.current != nil {
		f := s.current
		f.rotated = now
		s.lastWrite = f.wrote
		s.current = nil
		s.changed()
		w.takeUp(s, now, false)
		w.active(s, now)
	}
}

// adopt makes an open file the stream's next one; g.current: the one that the path names. first: it was there when the tailer started, and nothing is known of
// it.
func (w *sweeper) adopt(s *Stream, g generation, now time.Time, first bool) {
	path, raw, fi := g.path, g.raw, g.fi
	f := &file{stream: s, id: fingerprint.IDOf(fi), path: path, size: fi.Size(), mtime: fi.ModTime(), wrote: fi.ModTime(), grown: now, seen: w.scans}
	w.t.attach(f, raw, w.t.unpack(path, raw))
	if first && w.t.cfg.StartAt == StartAtEnd && !f.compressed {
		f.skipTo(raw, fi.Size())
	} else if !w.first && !first {
		f.caught = now // it began while this process was looking
	}
	f.begin()
	w.t.spare(f)
	if f.compressed && now.Sub(f.mtime) > rotatedGrace {
		f.grown = f.mtime // it is not being written
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
	w.active(s, now)
}

// skipTo begins at the start of the file's last, unfinished line.
func (f *file) skipTo(r io.ReaderAt, size int64) {
	first := make([]byte, min(size, fingerprint.Bytes))
	n, _ := r.ReadAt(first, 0)
	first = first[:n]
	if f.enc = lines.EncodingOf(first); f.enc.Rows() {
		f.skipRows(r, size)
		f.print.Extend(0, first[:min(int64(len(first)), f.head)])
		return
	}
	from := max(0, size-64<<10) &^ 1
	b := make([]byte, size-from)
	n, _ = r.ReadAt(b, from)
	b = b[:n]
	i := f.enc.LineEnd(b)
	if f.skip = i == 0 && from > 0; f.skip {
		i = n
		if f.enc.Wide() {
			i &^= 1
		}
	}
	f.head = from + int64(i)
	f.print.Extend(0, first[:min(int64(len(first)), f.head)])
	f.tail.Remember(b[:i])
}

// skipRows is skipTo for files of rows.
func (f *file) skipRows(r io.ReaderAt, size int64) {
	off := max(0, f.enc.Begin(size))
	b := make([]byte, min(size-off+1, 4*chunkBytes))
	var text []byte
	for {
		n, _ := r.ReadAt(b, off)
		sp := lines.NewSplitter(b[:n], f.enc, &text, off)
		for ok := true; ok; {
			_, ok = sp.Next(false)
		}
		step := int64(sp.Pos)
		if step == 0 {
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

// truncated is told that a file was cut or rewritten. Lines that were unread may still be in a copy made before (copytruncate); its present content is the next
// file.
func (w *sweeper) truncated(s *Stream, f *file, now time.Time) {
	c, wait := w.copyOf(s, f)
	if wait {
		f.turn(lifeCut)
		return
	}
	s.lastWrite = f.wrote
	g := w.successor(f, now)
	w.t.close(f)
	if f.rotated.IsZero() {
		f.rotated = now
	}
	found := c != nil
	if found {
		w.become(f, c, now)
	}
	if g != nil || found {
		w.t.counts.bump(&w.t.counts.truncs, 1)
	}
	if g == nil { // it is gone
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
		f.turn(lifeDead)
	}
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
		w.lost(f, f.head == 0 || f.size > f.head)
	}
	s.changed()
	w.active(s, now)
}

// successor is the present content of a file that was cut, with its descriptor. nil: it cannot be opened any more.
func (w *sweeper) successor(f *file, now time.Time) *file {
	g := &file{stream: f.stream, id: f.id, path: f.path, rotated: f.rotated, mtime: f.mtime, wrote: f.wrote, grown: now, caught: now, seen: w.scans}
	switch {
	case f.compressed:
		return g
	case f.src == nil:
		// Another file may have the inode of one that was rotated and closed, and then deleted.
		if !f.rotated.IsZero() || errors.Is(w.t.reopen(g), errTruncated) {
			return nil
		}
	default: // the open file may be the only way to its present content
		g.src, g.raw = f.src, f.raw
		f.src, f.raw = nil, nil
	}
	g.begin() // the new content may be cut as well before any of it is read
	w.t.spare(g)
	return g
}

// lost gives up a file that cannot be read any more.
func (w *sweeper) lost(f *file, unread bool) {
	f.turn(lifeDead)
	if unread || len(f.replay) > 0 {
		w.t.counts.bump(&w.t.counts.lost, 1)
		w.t.warn("lost", "A file was cut or is gone before all of it was read and delivered: keep more rotated files, or larger ones",
			zap.String("path", f.path))
	}
	f.replay, f.tags, f.arrivals = nil, nil, nil
}

// takeUp takes up the files that were rotated through the path unseen since the last file seen there, oldest first, and, if named is set, the file that the
// path names now. At the first look at a path these are all its rotated files that the globs match.
//
// Rotation may go on meanwhile. So takeUp takes one state of the directory, with every file of it open; files that are rotated after that are younger, and
// found next time.
func (w *sweeper) takeUp(s *Stream, now time.Time, named bool) {
	met := !s.known
	first := met && (w.first || s.early)
	if s.current == nil {
		w.verify(s, now) // else a copy of another stream's file is taken for a rotated one of this
	}
	for range maxListings {
		own, beside := w.beside(s.path)
		done, wait := w.older(s, own, beside, now, met)
		if s.behind = wait; wait {
			return
		}
		if !done {
			continue
		}
		if !named || own == nil {
			return
		}
		if f := w.files[fingerprint.IDOf(own)]; f != nil && f.life != lifeDead {
			return // the next look sees whose it is
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

// older takes up the rotated files of one listing. It takes none and returns false when the names were given to other files since, or when it must be called
// again to know whose files they are (wait).
func (w *sweeper) older(s *Stream, own fs.FileInfo, beside []sibling, now time.Time, met bool) (done, wait bool) {
	first := met && (w.first || s.early)
	var gens []generation
	var copies []fingerprint.ID
	for _, b := range beside {
		suffix, ok := strings.CutPrefix(b.named, s.path)
		id := fingerprint.IDOf(b.fi)
		if ok && s.current != nil && id == s.current.id {
			gens = append(gens, generation{path: b.path, suffix: suffix, fi: b.fi, current: true})
			continue
		}
		if !ok || !rotation.IsSuffix(suffix) || w.known(b.path, b.fi) != nil || own != nil && id == fingerprint.IDOf(own) ||
			b.fi.ModTime().Before(s.lastWrite) || met && !w.wanted(b.path) {
			continue
		}
		if slices.ContainsFunc(beside, func(o sibling) bool { return w.packedAs(o.path, o.fi, b.path) }) {
			continue // its uncompressed file is read
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
		if int64(len(gens)) >= w.t.descriptors.share(maxOpenFiles, 4) {
			_ = raw.Close()
			raw = nil
		}
		gens = append(gens, generation{path: b.path, suffix: suffix, raw: raw, fi: fi})
	}
	if !met {
		w.jumped(s, w.missing(s, own, beside, copies))
	}
	gens = w.addCaught(s, gens, own, met)
	sortGenerations(gens, own)
	// A current file that was rotated meanwhile is one of gens: younger files are taken up when its own rotation is noticed.
	late := false
	for i, g := range gens {
		switch late = late || g.current; {
		case !late:
			if g.net != nil {
				w.detach(g.net)
			}
			if g.raw == nil && !w.openAgain(&g) { // it has another name by now
				closeAll(gens[i:])
				return false, false
			}
			w.adopt(s, g, now, first)
		case g.raw != nil && g.net == nil:
			_ = g.raw.Close()
		}
	}
	return true, false
}

// openAgain opens a rotated file that was closed while others were compared.
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

// addCaught adds the files that were caught and are no longer there, and says of the others in which order they were.
func (w *sweeper) addCaught(s *Stream, gens []generation, own fs.FileInfo, met bool) []generation {
	events := w.nets[s.path]
	for i := range events {
		c := &events[i]
		if c.raw == nil {
			continue
		}
		id := fingerprint.IDOf(c.fi)
		if at := slices.IndexFunc(gens, func(g generation) bool { return fingerprint.IDOf(g.fi) == id }); at >= 0 {
			if c.own {
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
			continue // it was there before, or is a copy
		}
		g := generation{path: c.path, suffix: strings.TrimPrefix(c.path, s.path), raw: c.raw, fi: fi, net: c}
		if c.own {
			g.order = i + 1
		}
		gens = append(gens, g)
	}
	return gens
}

func closeAll(gens []generation) {
	for _, g := range gens {
		if g.raw != nil && g.net == nil {
			_ = g.raw.Close()
		}
	}
}

// generation is a rotated file, open, or the stream's current file, which was cut before: its inode is older than its content.
type generation struct {
	path, suffix string
	raw          *os.File // nil: it is opened again
	fi           fs.FileInfo
	current      bool
	order        int     // its number in the order of catching; 0: not caught
	net          *caught // the catch that holds it
}

// sortGenerations puts the oldest first: by modification time, to the nanosecond. Clocks of file systems are coarse and copying may set all times alike: then
// the numbers decide, in the direction in which the other files' times go. If all are alike and the inode of the file that the path names now (own) is the
// highest, inodes were given in the order of creation, and say the direction. Without any evidence .1 is the youngest, as logrotate and Python's handlers have
// it. Other suffixes are dates.
func sortGenerations(gens []generation, own fs.FileInfo) {
	up, upIno, fresh := 0, 0, own != nil // how many pairs have the higher number on the younger file
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
	if up == 0 && fresh {
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

// copied says whether a file is a copy of a file of the stream, or of the file that its path names now; wait: copied must be called again.
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
			if f.head > 0 || f.print.N > 0 {
				candidates = append(candidates, f)
			}
		// A longer file that begins like f is another run of the same program.
		case f.head > 0 && (f.life == lifeCut || f.gone && !f.isRetired() || fi.Size() <= f.size):
			candidates = append(candidates, f)
		}
	}
	if !packed {
		return slices.ContainsFunc(candidates, func(f *file) bool { return sameFile(f, raw) }), false
	}
	f, wait := w.whose(s, path, fi, candidates)
	return f != nil, wait
}

// sibling is a regular file beside a stream's path whose name begins like the path's own. Where the path is a link, it lies beside what the link leads to.
type sibling struct {
	path  string
	fi    fs.FileInfo
	named string // its path if what the link leads to had the stream's path; otherwise path
}

// beside lists the siblings of a path, and says what the path itself names (nil: no regular file). A listing takes a while, and a file that is renamed
// meanwhile may be missing or be there twice: only two equal listings in a row are trusted.
func (w *sweeper) beside(path string) (own fs.FileInfo, all []sibling) {
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

// listing returns the file that a path names and then its siblings, by name.
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

// siblings adds those of a path.
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

// copyOf looks for the copy that was made of a file before it was cut, or for the compressed form of a file that was compressed. nil: there is none; wait:
// copyOf must be called again. Where nothing of a file was read only its beginning is known, so the copy's name or time must fit too; the copy of a file that
// was cut is then taken up as rotated unseen.
func (w *sweeper) copyOf(s *Stream, f *file) (_ *replica, wait bool) {
	if f.head == 0 && f.print.N == 0 {
		return nil, false
	}
	_, beside := w.beside(s.path)
	if dir, stem := rotation.Stem(s.path); !strings.HasPrefix(f.path, dir+stem) { // names were swapped
		_, more := w.beside(f.path)
		beside = append(beside, more...)
	}
	for _, b := range beside {
		if g := w.files[fingerprint.IDOf(b.fi)]; g != nil && g != f && !g.isBlank() && w.known(b.path, b.fi) != nil { // it may have the inode that f had
			continue
		}
		if w.t.packing(b.path) != CompressionNone {
			if f.head == 0 && unpack.Name(b.path) != f.path && !b.fi.ModTime().Equal(f.mtime) {
				continue
			}
			g, wait := w.whose(s, b.path, b.fi, []*file{f})
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

// become goes on reading a file in the copy or compressed file that was made of it.
func (w *sweeper) become(f *file, c *replica, now time.Time) {
	if w.files[f.id] == f {
		delete(w.files, f.id)
	}
	w.t.close(f)
	f.id, f.path, f.size, f.mtime, f.grown, f.seen = fingerprint.IDOf(c.fi), c.path, c.fi.Size(), c.fi.ModTime(), now, w.scans
	f.turn(lifeUnread)
	w.files[f.id] = f
	f.supersede()
	delete(w.suspects, c.path)
	w.t.attach(f, c.raw, c.src)
	f.stream.changed()
	w.active(f.stream, now)
}

// supersede is told which file has an inode: one that was closed while nothing of it was read, and that had the inode too, is not there any more.
func (f *file) supersede() {
	for _, g := range f.stream.files {
		if g != f && g.id == f.id && g.src == nil && g.head == 0 && !g.isRetired() {
			g.turn(lifeDead)
		}
	}
}

// packedAs says whether a compressed file's name without its suffix belongs to a file that is read, or will be: then the compressed file is made of that file.
func (w *sweeper) packedAs(path string, fi fs.FileInfo, packed string) bool {
	return path != packed && path == unpack.Name(packed) && w.t.packing(packed) != CompressionNone && (w.wanted(path) || w.files[fingerprint.IDOf(fi)] != nil)
}

// isPacking says whether a compressed file stands beside the file that it is made of, and must wait until that file is gone. It is a file of its own when it
// differs although nothing happens for a while.
func (w *sweeper) isPacking(path string, fi fs.FileInfo, now time.Time) bool {
	original, err := w.t.stat(unpack.Name(path))
	if err != nil || !original.Mode().IsRegular() || !w.packedAs(unpack.Name(path), original, path) {
		return false
	}
	c, ok := w.suspects[path]
	if !ok {
		c = suspect{first: now}
	}
	if !ok || c.size != fi.Size() {
		c.size, c.since, c.twin = fi.Size(), now, false
	}
	if !c.twin && now.Sub(c.since) >= copyGrace {
		if c.twin = w.unpacksTo(path, unpack.Name(path)); !c.twin {
			return false
		}
	}
	w.suspects[path] = c
	return true
}

// unpacksTo says whether the decompressed content of packed begins as original does, as far as both go.
func (w *sweeper) unpacksTo(packed, original string) bool {
	a, _, err := osfile.Open(original, w.t.cfg.FollowSymlinks)
	if err != nil {
		return true // it is being removed
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

// packedFrom says whether a compressed file was made of one of the stream's files: then it returns that file. wait: packedFrom must be called again.
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
	f, wait := w.whose(s, path, fi, gone)
	switch {
	case wait:
	case f == nil: // the bytes that were stored last may not have been seen yet
		wait = now.Sub(fi.ModTime()).Abs() < rotatedGrace
	case f.raw == nil:
		raw, err := w.t.findByID(f)
		if wait = raw != nil || err != nil; raw != nil {
			_ = raw.Close() // it was renamed
		}
	default:
		wait = f.head == 0 // only when it was read is it known for sure
	}
	if wait {
		w.suspects[path] = suspect{first: now, since: now}
		for _, f := range gone {
			f.seen = w.scans // it must not be forgotten
		}
		return nil, true
	}
	if f != nil {
		w.become(f, w.replicaOf(path, fi), now)
	}
	return f, false
}

// isRemoved says whether a file is no longer where it was seen last, and not open under another name.
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

// isCopy says whether a new file looks like a copy of a stream's current file that is just being made, so that it must wait: if the original is cut next, the
// copy has its old content. It is a file of its own when it differs, or when nothing happens for a while.
func (w *sweeper) isCopy(s *Stream, path string, now time.Time) bool {
	defer w.lock(s)()
	f := w.namedNow(s)
	if f == nil || f.compressed {
		return false
	}
	defer w.lock(f.stream)()
	raw, fi, err := osfile.Open(path, true)
	if err != nil {
		return isShort(err)
	}
	defer raw.Close()
	unknown := f.failed && f.head > 0 && sameFile(f, raw) // whether it was cut is seen when it can be opened
	if !unknown && !sameSoFar(s.path, raw, fi) {
		return false
	}
	c, ok := w.suspects[path]
	if !ok {
		c = suspect{first: now}
	}
	if !ok || c.size != fi.Size() && now.Sub(c.first) < copyMax {
		c.size, c.since = fi.Size(), now
	}
	w.suspects[path] = c
	return unknown || now.Sub(c.since) < copyGrace
}

// lookThoroughly looks at a stream before another stream takes up a file that may belong to this one: also for a rewrite that left the file longer than it was,
// and, when the path names nothing, for files that were rotated through it unseen.
func (w *sweeper) lookThoroughly(s *Stream, now time.Time, rotated bool) {
	s.missed = maxBusyLooks
	w.look(s, now)
	defer w.lock(s)()
	if w.verify(s, now); s.current == nil && rotated && !s.gone {
		w.takeUp(s, now, false)
	}
}

// verify finds out whether the file that the path names was cut since it was read, also when it is longer now than it was.
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
			f.turn(lifeCut)
		}
	}
	if _, err := w.t.statAt(f); err != nil && f.raw == nil {
		return // it has another name by now, and maybe its copy has too: that is found out when its rotation was noticed
	}
	if f.life == lifeCut || f.wasCut() {
		w.truncated(f.stream, f, now)
	}
}

// namedNow returns the stream's current file, or else the one that its path names, which is another stream's when names were swapped.
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

// sameSoFar says whether an open file is the beginning of another, by its first and last bytes. An empty file is not known to differ. A file is no copy of
// itself.
func sameSoFar(original string, b *os.File, fi fs.FileInfo) bool {
	if fi.Size() == 0 {
		return true
	}
	a, of, err := osfile.Open(original, true)
	if err != nil {
		return false
	}
	defer a.Close()
	if fingerprint.IDOf(of) == fingerprint.IDOf(fi) {
		return false
	}
	var x, y [4 << 10]byte
	for _, off := range []int64{0, max(0, fi.Size()-int64(len(x)))} {
		n, _ := b.ReadAt(x[:], off)
		m, _ := a.ReadAt(y[:n], off)
		if m < n || string(x[:n]) != string(y[:n]) {
			return false
		}
	}
	return true
}

// settledAfter is how old a directory's modification time must be to prove that a listing is still true: file systems round it, so
// that a younger one may hide a second change.
const settledAfter = time.Second

// lastListing is kept for the streams of one sweep: otherwise ten thousand files of a directory would have it listed ten thousand times.
type lastListing struct {
	dir     string
	mtime   time.Time
	entries []fs.DirEntry
}

// entries lists a directory by name, or returns the last listing while nothing in the directory can have changed.
func (w *sweeper) entries(dir string) []fs.DirEntry {
	fi, err := os.Stat(dir)
	if err == nil && w.last.dir == dir && fi.ModTime().Equal(w.last.mtime) {
		return w.last.entries
	}
	w.last = lastListing{}
	entries, _ := os.ReadDir(dir)
	// The directory's clock is the file system's, so the real time it is, whatever clock the tailer was given.
	if err == nil && time.Since(fi.ModTime()) > settledAfter {
		w.last = lastListing{dir, fi.ModTime(), entries}
	}
	return entries
}
