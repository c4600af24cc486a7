package tail

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/fingerprint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lines"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/osfile"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/unpack"
)

var (
	errTruncated = errors.New("the file was cut or rewritten")
	errGone      = fmt.Errorf("%w, or is gone", errTruncated)
)

// drain reads what the stream's files have, until their end is reached or the budget or the turn is used up. again says whether drain must be called again.
func (s *Stream) drain(buf *[]byte) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.wake()
	s.visited = 0
	defer func() {
		if cap(s.text) > 4*chunkBytes {
			s.text = nil // a giant line came by
		}
		s.noteCaught()
		s.lent.Store(int64(s.held.n))
		for _, f := range s.files {
			s.spare(f)
		}
	}()
	if s.document {
		s.readDocument(buf)
		return false
	}
	if s.mark == nil {
		s.setMark()
	}
	turns := s.t.policy.chunks()
	if s.t.final {
		turns = onceQuantum
	}
	for _, f := range s.files {
		if f.life == lifeMissing {
			return false // lines keep their order
		}
		if s.unpackedLater(f) {
			return false // lines keep their order, and look comes back
		}
		if !s.readable(f) {
			continue
		}
		for {
			limit := s.t.mayRead(s)
			if limit == 0 {
				return false // an ack schedules the stream again
			}
			if turns == 0 || s.visited >= s.t.maxAhead {
				return true
			}
			more, err := s.readChunk(f, buf, limit)
			s.cut()
			s.t.policy.bound(s)
			if err == errTurn { //nolint:errorlint // readChunk returns it itself
				return false // lines keep their order
			}
			if err != nil {
				s.readFailed(f, err)
				break
			}
			if !more {
				break
			}
			turns--
		}
		s.spare(f)
	}
	return false
}

// readable says whether there can be something to read in the file now. A compressed file is read when its size stands still, and only some at a time.
func (s *Stream) readable(f *file) bool {
	switch f.life {
	case lifeUnread:
		return true
	case lifeRead:
		return !f.compressed && (f == s.current || f.size != f.head || len(f.replay) > 0) // else look sees when it grows
	default:
		return false
	}
}

// unpackedLater says whether a compressed file has still to be read but not yet: when its size stands still, and only some are read at a time.
func (s *Stream) unpackedLater(f *file) bool {
	if !f.compressed || !s.readable(f) {
		return false
	}
	if !s.t.final && !s.t.standsStill(f) {
		return true
	}
	if f.src != nil || s.t.mayUnpack() {
		return false
	}
	for _, later := range s.files { // what is read after f needs no decoder yet, and f may wait for that one
		if later.compressed {
			s.t.close(later)
		}
	}
	if s.t.mayUnpack() {
		return false
	}
	s.t.park(s)
	return true
}

// standsStill says whether a compressed file is not being written.
func (t *Tailer) standsStill(f *file) bool { return t.now().Sub(f.grown) >= t.cfg.PollInterval }

// readFailed takes note of an error. A truncated file is for look to decide on.
func (s *Stream) readFailed(f *file, err error) {
	if errors.Is(err, errTruncated) {
		f.turn(lifeCut)
		s.t.kick(s)
		return
	}
	s.t.readError(f.path, err)
	f.failed = true
	s.t.close(f)
}

// readChunk reads on in one file and handles the lines found, until the lines have taken limit bytes from the budget. more is false at the
// end of the file.
func (s *Stream) readChunk(f *file, buf *[]byte, limit int) (more bool, err error) {
	s.limit = int64(limit)
	size := max(min(chunkBytes, limit/int(max(1, s.density))), minRead)
	if f.src == nil {
		if err := s.t.reopenInTurn(f); err != nil {
			return false, err
		}
	}
	s.line.Observed = s.t.now()
	s.line.ModTime = f.mtime
	s.dated, s.arrival = false, checkpoint.Arrival{}
	if s.line.Again = len(f.replay) > 0; s.line.Again {
		return true, s.readHole(f, buf, size)
	}
	now, head := s.line.Observed, f.head
	defer func() { s.noteArrival(f, checkpoint.Range{Begin: head, End: f.head}) }()
	s.line.Live = !f.caught.IsZero() && now.Sub(f.caught) < liveWithin
	before := f.tail.Len()
	want := before + size
	for {
		// The bytes before head come along: when they differ, the file is no longer the one that was being read.
		b := grow(buf, want)
		n, err := f.src.ReadAt(b, f.head-int64(before))
		if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			return true, nil
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		f.failed = false
		atEOF := n < len(b)
		if n < before || !f.tail.Matches(b[:before]) {
			return false, errTruncated
		}
		data := b[before:n]
		f.findEncoding(data)
		if f.head == 0 && !f.print.Begins(data) {
			return false, errTruncated
		}
		if len(data) > 0 && f.raw != nil {
			if fi, err := f.raw.Stat(); err == nil {
				s.line.ModTime = fi.ModTime()
				f.wrote = fi.ModTime()
			}
		}
		used := s.lines(f, data, f.head, &f.skip, false)
		if s.isFull() {
			atEOF = false
		}
		if rest := data[used:]; atEOF && len(rest) > 0 && s.lastIsDone(f, now) && len(bytes.TrimLeft(rest, "\x00")) > 0 {
			used += s.lines(f, rest, f.head+int64(used), &f.skip, true)
		}
		if used > 0 {
			f.advance(data[:used])
			s.tally.bytes += int64(used)
			s.changed()
			s.density = max(1, (s.batch.bytes+int64(used)-1)/int64(used))
		}
		if atEOF {
			f.caught = now
			f.turn(lifeRead)
			if f.compressed {
				s.endOfPacked(f)
			}
		}
		if used > 0 {
			return !atEOF, nil
		}
		if f.nuls(data) > 0 {
			return s.passNULs(f, buf, len(data), atEOF)
		}
		if len(data) > s.t.cfg.MaxLineBytes+2 && f.enc.Rows() {
			return s.passRow(f, data)
		}
		if len(data) > s.t.cfg.MaxLineBytes+2 {
			s.tally.lines++
			s.reject(f, reasonLong, data, f.head)
			f.skip = true
			s.changed()
			f.advance(data[:f.enc.Most(len(data))])
			return !atEOF, nil
		}
		if atEOF {
			return false, nil
		}
		want = before + min(2*len(data), s.t.cfg.MaxLineBytes+3)
	}
}

// lastIsDone says whether the bytes after the last line ending are a whole line all the same.
func (s *Stream) lastIsDone(f *file, now time.Time) bool {
	if u, ok := f.src.(*unpack.Reader); ok {
		return u.Err() == nil // else the rest of it may come when the file is whole
	}
	if s.t.final || now.Sub(f.grown) >= s.t.cfg.PendingTimeout {
		return true
	}
	// The writer has gone on to the next file.
	return !f.rotated.IsZero() && s.current != nil && s.current.head > 0 && now.Sub(f.grown) >= rotatedGrace
}

// isFull says that the batch being built has as much as it may take, or that the handler has looked ahead so far that it is other streams' turn.
func (s *Stream) isFull() bool { return s.batch.bytes >= s.limit || s.visited >= s.t.maxAhead }

// lines hands over the lines of data, which stand at offset base, until the batch is full, and returns how many bytes are done with. While skip is set, the
// bytes up to the next line end belong to a line that was too long.
func (s *Stream) lines(f *file, data []byte, base int64, skip *bool, final bool) int {
	sp := lines.NewSplitter(data, f.enc, &s.text, base)
	for {
		begin := sp.Pos
		text, ok := sp.Next(final)
		if !ok {
			if *skip {
				return max(sp.Pos, f.enc.Most(len(data)))
			}
			return sp.Pos
		}
		if *skip {
			*skip = false
			continue
		}
		if sp.Bad {
			s.tally.lines++
			s.reject(f, reasonDamaged, data[begin:min(sp.Pos, begin+damagedShown)], base+int64(begin))
			continue
		}
		if len(text) > 0 && text[0] == 0 {
			text = bytes.TrimLeft(text, "\x00") // a hole that a truncation left
		}
		if base == 0 && begin == 0 {
			text = bytes.TrimPrefix(text, lines.BOM)
		}
		s.handle(f, text, base+int64(begin), base+int64(sp.Pos))
		if s.isFull() {
			return sp.Pos
		}
	}
}

// readHole reads the next part of the first hole again. Its end is the end of a line.
func (s *Stream) readHole(f *file, buf *[]byte, size int) error {
	s.line.Live = false
	if !f.compressed { // there is no going back in a compressed file: it is found out when reading has come to head
		check := grow(buf, f.tail.Len())
		if n, _ := f.src.ReadAt(check, f.head-int64(f.tail.Len())); n < f.tail.Len() || !f.tail.Matches(check) {
			return errTruncated
		}
	}
	f.findEncoding(nil)
	r := &f.replay[0]
	end := s.arrivedBefore(f, r)
	for {
		n := int(min(int64(size), end-r.Begin))
		b := grow(buf, n)
		if got, err := f.src.ReadAt(b, r.Begin); got < n {
			if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
				return nil
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return errTruncated
		}
		f.failed = false
		used := s.lines(f, b, r.Begin, new(bool), r.Begin+int64(n) == end)
		if used == 0 {
			size *= 2 // a long line; a hole is never longer than its lines
			continue
		}
		if s.arrival.End == 0 {
			s.noteArrival(f, checkpoint.Range{Begin: r.Begin, End: r.Begin + int64(used)})
		}
		r.Begin += int64(used)
		if r.Begin == r.End {
			f.replay = f.replay[1:]
		}
		return nil
	}
}

// noteArrival keeps when lines were read that have no other time.
func (s *Stream) noteArrival(f *file, lines checkpoint.Range) {
	if !s.dated || lines.Begin == lines.End || s.t.cfg.Storage == nil {
		return
	}
	a := checkpoint.Arrival{Range: lines, Observed: s.line.Observed.UnixNano(), ModTime: unixNano(s.line.ModTime), Live: s.line.Live}
	a.SeenUntil = max(s.arrival.SeenUntil, lines.End)
	at := len(f.arrivals)
	for at > 0 && f.arrivals[at-1].Begin > a.Begin { // of a hole
		at--
	}
	f.arrivals = slices.Insert(f.arrivals, at, a)
	s.arrived++
}

// arrivedBefore has the lines of a hole come as they came before, where that is known. It returns how far that goes.
func (s *Stream) arrivedBefore(f *file, hole *checkpoint.Range) (end int64) {
	for i := range f.arrivals {
		a := &f.arrivals[i]
		if a.Begin <= hole.Begin && hole.Begin < a.End {
			s.arrival = *a
			s.line.Observed, s.line.ModTime, s.line.Live = time.Unix(0, a.Observed), time.Unix(0, a.ModTime), a.Live
			return min(a.End, hole.End)
		}
		if a.Begin > hole.Begin {
			return min(a.Begin, hole.End)
		}
	}
	return hole.End
}

// passNULs moves head over the run of NUL bytes with which the n bytes at head begin, if something follows it, or looks for its end in the next part of the
// file: nulTo is how far it came. A run at the end of the file stays, for it may be space that is yet to be written; nobody writes into a compressed file.
func (s *Stream) passNULs(f *file, buf *[]byte, n int, atEOF bool) (more bool, err error) {
	data := (*buf)[f.tail.Len() : f.tail.Len()+n]
	if z := f.nuls(data); z < n || f.compressed && !atEOF {
		f.advance(data[:z])
		s.changed()
		return true, nil
	}
	if atEOF || f.nulEnd {
		return false, nil
	}
	off := max(f.head+int64(n), f.nulTo)
	for range quantum {
		if f.raw != nil {
			if to, ok := osfile.SeekData(f.raw, off); ok {
				off = to
			}
		}
		b := grow(buf, chunkBytes)
		n, err := f.src.ReadAt(b, off)
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		z := f.nuls(b[:n])
		off += int64(z)
		if z < n {
			var nuls [fingerprint.Bytes]byte
			f.print.Extend(f.head, nuls[:])
			f.head = off
			f.tail.Remember(nuls[:fingerprint.TailBytes])
			f.nulTo = 0
			s.changed()
			return true, nil
		}
		if n < len(b) {
			f.nulTo, f.nulEnd = off, true
			f.caught = s.line.Observed
			f.turn(lifeRead)
			return false, nil
		}
	}
	f.nulTo = off
	return true, nil
}

// passRow moves head over a record that is longer than any line: a picture, mostly. Its bytes may be still to come.
func (s *Stream) passRow(f *file, data []byte) (more bool, err error) {
	to := f.head + f.enc.Past(data, f.head)
	last := make([]byte, min(to, fingerprint.TailBytes))
	n, err := f.src.ReadAt(last, to-int64(len(last)))
	switch {
	case err == unpack.ErrAgain: //nolint:errorlint // ReadAt returns it itself
		return true, nil
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	case n < len(last):
		return false, nil
	}
	s.tally.lines++
	s.tally.count(Ignored, reasonLong)
	s.tell(f, nil, f.head, Ignored, reasonLong)
	f.print.Extend(f.head, data)
	f.head = to
	f.tail.Remember(last)
	s.changed()
	return true, nil
}

// nuls returns how many NUL bytes data begin with, without a half character.
func (f *file) nuls(data []byte) int {
	if f.enc.Rows() || f.enc == lines.Open {
		return 0
	}
	n := len(data) - len(bytes.TrimLeft(data, "\x00"))
	if f.enc.Wide() {
		n &^= 1
	}
	return n
}

// endOfPacked is told that a compressed file was read to its end, or to where it is damaged.
func (s *Stream) endOfPacked(f *file) {
	u, ok := f.src.(*unpack.Reader)
	if ok && u.Err() != nil {
		if errors.Is(u.Err(), unpack.ErrBomb) {
			s.tally.lines++
			s.tally.count(Rejected, reasonBomb)
			s.t.warn("bomb", "A compressed file was given up", zap.String("path", f.path), zap.Error(u.Err()))
		} else {
			s.t.counts.bump(&s.t.counts.readErrs, 1)
			s.t.warn("damaged", "A compressed file is damaged; what comes before the damage was read, and the rest is not, unless the file changes",
				zap.String("path", f.path), zap.Int64("bytes", f.head), zap.Error(u.Err()))
		}
	}
	s.t.close(f)
	s.t.kick(s)
}

func grow(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}
