package tail

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

// Sniffing: reading files to find their receiver. A folder may have a log and ten thousand other files, hence a short first look at each file, the newest
// first; files with more content are read further afterwards.
const (
	sniffMost  = 16 << 20        // bytes of a file to sniff at most
	sniffFirst = 16 << 10        // bytes in the first look
	sniffLook  = 4 << 20         // bytes in a later look
	sniffTurn  = 2 << 20         // of all files, before the sweeper does something else
	sniffCost  = 16 << 10        // cost of opening a file, in bytes
	sniffStats = 1000            // stats of files per turn
	sniffOpen  = 256             // files with detectors: some 20 KiB each
	sniffBytes = 256 << 10       // bytes in a read, and in Sorter.Head
	quietFor   = 2 * time.Second // age at which a last line without an ending is sniffed as it is

	// settledFor is the time without a new line after which a file goes to the receiver of last resort: until then the first record may come.
	settledFor = 5 * time.Minute

	// sniffEvery bounds the stats of idle files: a hundred thousand take 50 s. Events of inotify come sooner.
	sniffEvery = 500 * time.Microsecond
)

// kindHeap are files by their rank.
type kindHeap []*kind

func (h kindHeap) Len() int           { return len(h) }
func (h kindHeap) Less(i, j int) bool { return h[i].rank < h[j].rank }
func (h kindHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].place, h[j].place = i, j }
func (h *kindHeap) Push(x any)        { k := x.(*kind); k.place = len(*h); *h = append(*h, k) }
func (h *kindHeap) Pop() any {
	old := *h
	k := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return k
}

// moveToHeap moves a file to a heap (nil: to none), or to its new place there after a change of its rank. The caller holds mu.
func (s *Sorter) moveToHeap(k *kind, to *kindHeap) {
	if k.heap == to {
		if to != nil {
			heap.Fix(to, k.place)
		}
		return
	}
	if k.heap != nil {
		heap.Remove(k.heap, k.place)
	}
	k.heap = to
	if to != nil {
		heap.Push(to, k)
	}
}

// noteStat records size and time of an unassigned file. A file with unsniffed bytes is queued to be sniffed, also at the end of a wait that decides about a
// last line without an ending (quietFor) or the receiver of last resort (settledFor). Any other file is left alone for a while. The caller holds mu.
func (s *Sorter) noteStat(k *kind, fi fs.FileInfo, now time.Time) {
	if k.owner != nil {
		return
	}
	if fi.Size() != k.size {
		k.size, k.grown, k.whole = fi.Size(), now, false
	}
	unsniffed := k.off < min(k.size, sniffMost) && (k.seen != k.size || !k.whole && now.Sub(k.grown) >= quietFor)
	goesToLast := k.last != nil && now.Sub(k.grown) >= settledFor
	if len(k.readers) > 0 && (unsniffed || goesToLast) {
		k.wrote = fi.ModTime().UnixNano()
		s.enqueue(k)
		return
	}
	s.makeIdle(k, now)
}

// enqueue queues a file to be sniffed: never sniffed files first, the newest before older.
func (s *Sorter) enqueue(k *kind) {
	k.rank = -k.wrote
	if k.off > 0 { // after all that were never sniffed: the time of no log is larger, before 2116
		k.rank += math.MaxInt64 / 2
	}
	s.moveToHeap(k, &s.queue)
}

// makeIdle leaves a file alone until its next stat: the longer the file has not grown, and the more idle files there are, the later.
func (s *Sorter) makeIdle(k *kind, now time.Time) {
	poll := maxIdlePoll
	if len(k.readers) > 0 {
		poll = k.readers[0].cfg.PollInterval
	}
	k.rank = now.Add(max(backOff(poll, now.Sub(k.grown)), sniffEvery*time.Duration(len(s.idle)))).UnixNano()
	s.moveToHeap(k, &s.idle)
}

// hint makes idle files due for a stat now: an event of inotify names them.
func (s *Sorter) hint(paths []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, path := range paths {
		if k := s.paths[path]; k != nil && k.heap == &s.idle {
			k.rank = now.UnixNano()
			s.moveToHeap(k, &s.idle)
		}
	}
}

// news is a Sorter's message to a Tailer about a file: the file is the Tailer's, or was replaced.
type news struct {
	t    *Tailer
	path string
	err  error // nil, or the file could not be read
}

// deliver gives the messages to their Tailers. The caller holds none of the Sorter's locks but looking.
func deliver(all []news) {
	for _, n := range all {
		n.t.receive(n)
	}
}

// receive takes a message about a file: an error is counted, else the file is queued for the sweeper.
func (t *Tailer) receive(n news) {
	if n.err != nil {
		t.readError(n.path, n.err)
		return
	}
	t.mu.Lock()
	t.news = append(t.news, n)
	t.mu.Unlock()
	t.wakeSweeper()
}

// hasNews reports whether messages of the Sorter wait for the sweeper.
func (t *Tailer) hasNews() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.news) > 0
}

// takeNews removes and returns the messages of the Sorter, in the order of the paths: a rotated file comes after its successor.
func (t *Tailer) takeNews() []news {
	t.mu.Lock()
	list := t.news
	t.news = nil
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b news) int { return strings.Compare(a.path, b.path) })
	return list
}

// turn sniffs queued files, sniffTurn bytes at most, and informs the Tailers concerned; for a Once, all queued files. It returns whether queued files are left.
// If another Tailer is sniffing, turn does nothing and returns false, except for a Once, which waits.
func (s *Sorter) turn(t *Tailer, now time.Time) (more bool) {
	if t.final {
		s.looking.Lock()
	} else if !s.looking.TryLock() {
		return false
	}
	defer s.looking.Unlock()
	s.mu.Lock()
	found := s.poll(now)
	s.mu.Unlock()
	for left := int64(sniffTurn); left > 0 || t.final; {
		var k *kind
		s.mu.Lock()
		if len(s.queue) > 0 {
			k = s.queue[0]
		}
		s.mu.Unlock()
		if k == nil || t.halted() {
			break
		}
		n, looked := s.sniffNext(k, now)
		found = append(found, n...)
		left -= looked + sniffCost
	}
	deliver(found)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// poll stats idle files that are due, sniffStats at most. If a path names another file now, or none, the file is forgotten, and the messages returned ask the
// possible readers to look for themselves. The caller holds mu.
func (s *Sorter) poll(now time.Time) (found []news) {
	for n := 0; n < sniffStats && len(s.idle) > 0 && s.idle[0].rank <= now.UnixNano(); n++ {
		k := s.idle[0]
		if len(k.readers) == 0 {
			s.moveToHeap(k, nil) // for nobody
			continue
		}
		fi, err := k.readers[0].stat(k.path)
		switch {
		case err == nil && fi.Mode().IsRegular() && !k.isOther(fi):
			s.noteStat(k, fi, now)
		case err == nil || errors.Is(err, fs.ErrNotExist):
			for _, t := range k.readers {
				found = append(found, news{t: t, path: k.path})
			}
			s.forget(k)
		default:
			s.makeIdle(k, now)
		}
	}
	return found
}

// sniffNow sniffs a file to its end, or up to most bytes. It returns the file's owner (nil: none yet) and the messages to be delivered.
func (s *Sorter) sniffNow(k *kind, most int64, now time.Time) (owner *Tailer, found []news) {
	s.looking.Lock()
	defer s.looking.Unlock()
	for looked, more := int64(0), true; more && looked < most; {
		messages, n := s.sniffNext(k, now)
		found = append(found, messages...)
		looked += n
		s.mu.Lock()
		more = k.heap == &s.queue
		s.mu.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return k.owner, found
}

// sniffNext sniffs the next part of a queued file, a short one at the first look. The Tailer whose detector understands a line gets the file. A file that no
// detector understands goes to the Tailer of last resort, once nothing more is to be sniffed. It returns the messages to be delivered, and the number of bytes
// sniffed. The caller holds looking.
func (s *Sorter) sniffNext(k *kind, now time.Time) (found []news, looked int64) {
	s.mu.Lock()
	of, off, lines, size := k.readers, k.off, k.lines, k.size
	quiet, settled, due := now.Sub(k.grown) >= quietFor, now.Sub(k.grown) >= settledFor, k.heap == &s.queue
	s.mu.Unlock()
	if !due {
		return nil, 0
	}
	most := int64(sniffLook)
	if off == 0 {
		most = sniffFirst
	}
	if k.detect == nil { // detectors begin at a file's first line
		off, lines = 0, 0
		for _, t := range of {
			k.detect = append(k.detect, t.set.Detect(k.path))
		}
		k.dull, s.spare = s.spare, nil
		if k.dull == nil {
			k.dull = new(dull)
		}
		s.open = append(s.open, k)
	}
	most = min(most, sniffMost-off)
	from, whole := off, of[0].final || quiet // whole: the file does not grow, so a last line without an ending counts
	var owner *Tailer
	last := k.last
	off, end, err := of[0].sniff(k.path, off, most, whole, &s.buf, nil, func(text []byte) bool {
		lines++
		first, rest := firstReader(k.detect, of, text, k.dull.isRepetitive(text))
		owner = first
		if last == nil {
			last = rest
		}
		return owner == nil
	})
	sniffedAll := end && of[0].final || off >= sniffMost || settled
	if owner == nil && sniffedAll { // no other Tailer will understand a line
		owner = last
	}
	if cap(s.buf) > 4*chunkBytes {
		s.buf = nil // a giant line came by
	}
	// Note the result.
	s.mu.Lock()
	defer s.mu.Unlock()
	looked, k.last = off-from, last
	k.off, k.lines = off, lines
	if owner != nil || off >= sniffMost { // the detectors are done
		*k.dull = dull{}
		k.detect, k.dull, s.spare = nil, nil, k.dull
	}
	s.bound()
	switch {
	case k.heap == nil: // forgotten, or claimed, meanwhile
	case owner != nil:
		found = append(found, news{t: owner, path: k.path})
		s.decide(k, owner)
	case err != nil:
		if !errors.Is(err, fs.ErrNotExist) {
			found = append(found, news{t: of[0], path: k.path, err: err})
		}
		s.makeIdle(k, now)
	case end || off >= sniffMost:
		k.seen, k.whole, k.early = size, whole, false
		s.makeIdle(k, now)
	default:
		s.enqueue(k)
	}
	return found, looked
}

// bound limits the files with detectors to sniffOpen: it drops the detectors of files that need none any more, then of those with the fewest bytes sniffed,
// which are cheapest to sniff again.
func (s *Sorter) bound() {
	s.open = slices.DeleteFunc(s.open, func(k *kind) bool { return k.detect == nil })
	for len(s.open) > sniffOpen {
		least := 0 // in s.open; a file in no heap is assigned or forgotten, and goes first
		for i, k := range s.open {
			if k.heap == nil || s.open[least].heap != nil && k.off < s.open[least].off {
				least = i
			}
		}
		s.open[least].detect, s.open[least].dull = nil, nil
		s.open = slices.Delete(s.open, least, least+1)
	}
}

// firstReader shows a line to the detectors of the Tailers of. first is the first Tailer with ReadsOwn, else the first with ReadsToo; last is the receiver of
// last resort, the first with ReadsLast; nil: none. All detectors see the line, as context for the next; a repetitive (dull) line is shown only to detectors
// that ask for all lines.
func firstReader(detect []Detect, of []*Tailer, text []byte, dull bool) (first, last *Tailer) {
	var found [readsKinds]*Tailer
	for i, d := range detect {
		if dull && !of[i].set.DetectAll {
			continue
		}
		if r := d(text); found[r] == nil {
			found[r] = of[i]
		}
	}
	return cmp.Or(found[ReadsOwn], found[ReadsToo]), found[ReadsLast]
}

// sniff visits the lines in the next most bytes of a file from off on, or of a longer line, until visit returns false. next is the beginning of the next line.
// end: no whole line follows yet, or visit returned false. whole: the file is not being written, so a last line without an ending is visited; except in UTF-16
// and files of rows, next is the beginning of this line, which is visited again once it is longer.
//
// with, unless empty, is a text that visit wants in a line: most reads without the text are passed over without a look at their lines.
func (t *Tailer) sniff(
	path string, off, most int64, whole bool, buf *[]byte, with []byte, visit func(text []byte) bool,
) (next int64, end bool, err error) {
	raw, fi, err := osfile.Open(path, t.cfg.FollowSymlinks)
	if err != nil {
		return off, true, err
	}
	src := t.unpack(path, raw)
	defer src.Close()
	size := min(sniffBytes, most)
	if src == source(raw) { // not compressed: no larger buffer than the file
		size = min(size, max(fi.Size()-off+1, minRead))
	}
	var mark [lines.HeadBytes]byte
	n, err := src.ReadAt(mark[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return off, true, err
	}
	p := sniffer{src: src, enc: lines.EncodingOf(mark[:n]), most: t.cfg.MaxLineBytes, buf: buf, with: with, visit: visit}
	for until := off + most; ; off = next {
		next, end, err = p.lines(off, int(min(size, until-off)), whole)
		if end || err != nil || next >= until {
			return next, end, err
		}
	}
}

// sniffer looks at the lines of an open file.
type sniffer struct {
	src   source
	enc   lines.Encoding
	most  int // bytes of a line
	buf   *[]byte
	with  []byte // of sniff
	visit func(text []byte) bool
}

// lines visits the lines in the next size bytes from off on, or in more if no line ends there. The results are those of Tailer.sniff, for one read.
func (p *sniffer) lines(off int64, size int, whole bool) (next int64, end bool, err error) {
	for ; ; size *= 2 {
		b := grow(p.buf, size)
		n, err := readAgain(p.src, b, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return off, true, err
		}
		if n == size && p.enc == lines.Bytes && !bytes.Contains(b[:n], p.with) {
			if end := bytes.LastIndexByte(b[:n], '\n') + 1; end > 0 {
				return off + int64(end), false, nil
			}
		}
		var decoded []byte
		sp := lines.NewSplitter(b[:n], p.enc, &decoded, off)
		for at := 0; ; at = sp.Pos {
			text, ok := sp.Next(whole && n < size)
			if !ok {
				break
			}
			if off == 0 && at == 0 {
				text = bytes.TrimPrefix(text, lines.BOM)
			}
			text = bytes.TrimLeft(text, "\x00")
			if len(bytes.TrimSpace(text)) > 0 && !p.visit(text) {
				return off + int64(sp.Pos), true, nil
			}
			withoutEnding := sp.Pos == n && b[n-1] != '\n' && b[n-1] != '\r'
			if n < size && withoutEnding && p.enc == lines.Bytes { // to be visited again when it is longer
				return off + int64(at), true, nil
			}
		}
		switch {
		case sp.Pos > 0:
			return off + int64(sp.Pos), n < size, nil
		case n < size:
			return off, true, nil
		case size > p.most && p.enc.Rows():
			return off + p.enc.Past(b[:n], off), false, nil
		case size > p.most: // skipped, as in reading
			return off + int64(n), false, nil
		}
	}
}

// readAgain calls ReadAt again while the source asks for another call to go on decompressing, and returns the last answer.
func readAgain(src source, b []byte, off int64) (n int, err error) {
	for {
		n, err = src.ReadAt(b, off)
		if err != unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			return n, err
		}
	}
}
