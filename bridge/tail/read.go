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

// drain is a worker's turn on a stream: it reads the files, oldest first, until their end, or until the budget or the turn is used up. It returns true if the
// stream has more to read and is to have another turn; otherwise an ack, the sweeper or a free descriptor makes the stream ready when there is more.
func (s *Stream) drain(buf *[]byte) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return false
	}
	s.resume()
	s.visited = 0
	defer func() {
		if cap(s.text) > 4*chunkBytes {
			s.text = nil // a giant line came by
		}
		s.noteCaughtUp()
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
	chunks := s.t.policy.chunks() // left in this turn
	if s.t.final {
		chunks = onceQuantum
	}
	for _, f := range s.files {
		if f.life == lifeMissing || f == s.current && s.behind {
			return false // the sweeper still looks for older lines, which come first
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
			if chunks == 0 || s.visited >= s.t.maxAhead {
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
			chunks--
		}
		s.spare(f)
	}
	return false
}

// readable reports whether the file may have unread bytes. For a compressed file, unpackedLater decides when they are read.
func (s *Stream) readable(f *file) bool {
	switch f.life {
	case lifeUnread:
		return true
	case lifeRead:
		return !f.compressed && (f == s.current || f.size != f.head || len(f.replay) > 0) // else look detects growth
	default:
		return false
	}
}

// unpackedLater reports whether an unread compressed file must wait: for a stable size, or for its turn among the few read at a time. A stream of a Once that
// has to wait is parked.
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
	for _, later := range s.files { // files after f need no decoder yet, and may be what f waits for
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

// standsStill reports whether a compressed file is not being written.
func (t *Tailer) standsStill(f *file) bool { return t.now().Sub(f.grown) >= t.cfg.PollInterval }

// readFailed handles an error of reading a file. A truncated file is left to the sweeper, which looks for a copy; after any other error the file is closed and
// tried again later.
func (s *Stream) readFailed(f *file, err error) {
	if errors.Is(err, errTruncated) {
		f.setLife(lifeCut)
		s.t.kick(s)
		return
	}
	s.t.readError(f.path, err)
	f.failed = true
	s.t.close(f)
}

// readChunk reads on in a file, in the first hole, else at the head, and hands the lines to the handler until the batch is worth limit bytes of the budget. It
// returns false at the end of the file. An error means that nothing was read; errTruncated: the file has other content than before.
func (s *Stream) readChunk(f *file, buf *[]byte, limit int) (more bool, err error) {
	s.limit = int64(limit)
	size := max(min(chunkBytes, limit/int(max(1, s.density))), minRead) // about as many bytes as fill the batch
	if f.src == nil {
		if err := s.t.reopenInTurn(f); err != nil {
			return false, err
		}
	}
	s.line.Observed = s.t.now()
	s.line.ModTime = f.mtime
	s.dated, s.arrival = false, checkpoint.Arrival{}
	s.line.Again = len(f.replay) > 0
	if s.line.Again {
		return true, s.readHole(f, buf, size)
	}
	now, head := s.line.Observed, f.head
	defer func() { s.noteArrival(f, checkpoint.Range{Begin: head, End: f.head}) }()
	s.line.Live = !f.caughtUp.IsZero() && now.Sub(f.caughtUp) < liveWithin
	before := f.tail.Len() // bytes before head
	want := before + size
	for { // again with a larger buffer, until a line fits
		// The bytes before head are read too: if they differ, the file was rewritten.
		b := grow(buf, want)
		n, err := f.src.ReadAt(b, f.head-int64(before))
		if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
			return true, nil // the next call goes on decompressing up to head
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
		// The lines, and at the end of the file perhaps a last one without an ending.
		used := s.lines(f, data, f.head, &f.skip, false)
		if s.isFull() { // lines may be left
			atEOF = false
		}
		if rest := data[used:]; atEOF && len(rest) > 0 && s.lastIsDone(f, now) && len(bytes.TrimLeft(rest, "\x00")) > 0 {
			used += s.lines(f, rest, f.head+int64(used), &f.skip, true)
		}
		if used > 0 {
			f.advance(data[:used])
			s.tally.bytes += int64(used)
			s.changed()
			s.density = max(1, (s.batch.bytes+int64(used)-1)/int64(used)) // rounded up
		}
		if atEOF {
			f.caughtUp = now
			f.setLife(lifeRead)
			if f.compressed {
				s.endOfPacked(f)
			}
		}
		if used > 0 {
			return !atEOF, nil
		}
		// No line: NUL bytes, an overlong line, or a line that continues after the data.
		if f.nuls(data) > 0 {
			return s.passNULs(f, buf, len(data), atEOF)
		}
		if len(data) > s.t.cfg.MaxLineBytes+2 && f.enc.Rows() { // 2: \r\n
			return s.skipRecord(f, data)
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
		want = before + min(2*len(data), s.t.cfg.MaxLineBytes+3) // more than the longest line with its ending
	}
}

// lastIsDone reports whether the bytes after the last line ending count as a whole line all the same: the file is compressed and whole, is read once, has not
// grown for pending_timeout, or its writer has gone on to the next file.
func (s *Stream) lastIsDone(f *file, now time.Time) bool {
	if u, ok := f.src.(*unpack.Reader); ok {
		return u.Err() == nil // else the rest may come with a complete file
	}
	if s.t.final || now.Sub(f.grown) >= s.t.cfg.PendingTimeout {
		return true
	}
	return !f.rotated.IsZero() && s.current != nil && s.current.head > 0 && now.Sub(f.grown) >= rotatedGrace
}

// isFull reports whether the current batch is full, or the handler has read ahead enough for this turn.
func (s *Stream) isFull() bool { return s.batch.bytes >= s.limit || s.visited >= s.t.maxAhead }

// lines handles the lines of data, at offset base, until the batch is full, and returns the number of bytes consumed. While skip is set, the bytes up to the
// next line end belong to an overlong line. final: the bytes after the last line end are a line, too.
func (s *Stream) lines(f *file, data []byte, base int64, skip *bool, final bool) int {
	sp := lines.NewSplitter(data, f.enc, &s.text, base)
	for {
		begin := sp.Pos
		text, ok := sp.Next(final)
		if !ok {
			if *skip {
				return max(sp.Pos, f.enc.Most(len(data))) // the line goes on after data: of an overlong line nothing is kept
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
			text = bytes.TrimLeft(text, "\x00") // a hole left by a truncation
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

// readHole reads the next part of a file's first hole again: lines that were not accepted before a restart, with the times at which they were read first, where
// those are recorded. A hole, and a part with one arrival, ends at a line end.
func (s *Stream) readHole(f *file, buf *[]byte, size int) error {
	s.line.Live = false
	// The bytes before head must be as remembered, else the file was rewritten. A compressed file cannot go back: reading at head detects a rewrite.
	if !f.compressed {
		check := grow(buf, f.tail.Len())
		if n, _ := f.src.ReadAt(check, f.head-int64(f.tail.Len())); n < f.tail.Len() || !f.tail.Matches(check) {
			return errTruncated
		}
	}
	f.findEncoding(nil)
	r := &f.replay[0]
	end := s.arrivedBefore(f, r) // of the lines with the same arrival
	for {
		n := int(min(int64(size), end-r.Begin))
		b := grow(buf, n)
		if got, err := f.src.ReadAt(b, r.Begin); got < n {
			if err == unpack.ErrAgain { //nolint:errorlint // ReadAt returns it itself
				return nil // the next turn decompresses on
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return errTruncated
		}
		f.failed = false
		used := s.lines(f, b, r.Begin, new(bool), r.Begin+int64(n) == end)
		if used == 0 {
			size *= 2 // a long line; it ends at end at the latest, where the rest counts as a line (final)
			continue
		}
		if s.arrival.End == 0 { // without a recorded arrival: the first reading is now
			s.noteArrival(f, checkpoint.Range{Begin: r.Begin, End: r.Begin + int64(used)})
		}
		r.Begin += int64(used)
		if r.Begin == r.End {
			f.replay = f.replay[1:]
		}
		return nil
	}
}

// noteArrival records the reading time of the lines in a range, if the handler has called ByArrival for any, in the order of the offsets. It is stored before
// the lines are sent.
func (s *Stream) noteArrival(f *file, lines checkpoint.Range) {
	if !s.dated || lines.Begin == lines.End || s.t.cfg.Storage == nil {
		return
	}
	a := checkpoint.Arrival{Range: lines, Observed: s.line.Observed.UnixNano(), ModTime: unixNano(s.line.ModTime), Live: s.line.Live}
	a.SeenUntil = max(s.arrival.SeenUntil, lines.End)
	at := len(f.arrivals)
	for at > 0 && f.arrivals[at-1].Begin > a.Begin { // lines of a hole come before those of lines read since
		at--
	}
	f.arrivals = slices.Insert(f.arrivals, at, a)
	s.arrived++
}

// arrivedBefore gives the next lines of a hole the reading time that was recorded for them, if any. It returns the end of the part of the hole with that
// Arrival, or without any.
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

// passNULs moves head over the run of NUL bytes at the beginning of the n bytes at head, if data follows, or looks for the end of the run in the next part of
// the file: nulTo is the progress. A run up to the end of the file stays, because the space may be preallocated. A compressed file has no such space, and is
// read in order: before its end head moves at once. more is false where nothing is left to read for now: at the end of the file.
func (s *Stream) passNULs(f *file, buf *[]byte, n int, atEOF bool) (more bool, err error) {
	data := (*buf)[f.tail.Len() : f.tail.Len()+n] // readChunk's
	if z := f.nuls(data); z < n || f.compressed && !atEOF {
		f.advance(data[:z])
		s.changed()
		return true, nil
	}
	if atEOF || f.nulEnd {
		return false, nil
	}
	// Further parts of the file hold NUL bytes alone, so far: pass them by at most quantum chunks in one call, holes of a sparse file at once.
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
		if z < n { // data: the head moves there; the run is longer than both fingerprints, which are of NULs alone then
			var nuls [fingerprint.Bytes]byte
			f.print.Extend(f.head, nuls[:])
			f.head = off
			f.tail.Remember(nuls[:fingerprint.TailBytes])
			f.nulTo = 0
			s.changed()
			return true, nil
		}
		if n < len(b) { // the end of the file
			f.nulTo, f.nulEnd = off, true
			f.caughtUp = s.line.Observed
			f.setLife(lifeRead)
			return false, nil
		}
	}
	f.nulTo = off
	return true, nil
}

// skipRecord skips a record longer than MaxLineBytes (usually an image) in a binary file. In an event file of TensorBoard, head moves to the end of the record;
// in a file of W&B, head moves to the beginning of the next block. data holds the bytes from head on, perhaps only part of the record. If the skipped bytes are
// not fully written yet, head stays, and more is false. more: the caller calls again, as head moved or the decompression must catch up.
func (s *Stream) skipRecord(f *file, data []byte) (more bool, err error) {
	to := f.head + f.enc.Past(data, f.head) // the new head
	// The end of the skipped bytes: shows that all are there, and is remembered to recognise the file.
	last := make([]byte, min(to, fingerprint.TailBytes))
	n, err := f.src.ReadAt(last, to-int64(len(last)))
	switch {
	case err == unpack.ErrAgain: //nolint:errorlint // ReadAt returns it itself
		return true, nil
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	case n < len(last): // not fully written yet
		return false, nil
	}
	s.tally.lines++
	s.tally.count(Ignored, reasonLong)
	s.report(f, nil, f.head, Ignored, reasonLong)
	f.print.Extend(f.head, data)
	f.head = to
	f.tail.Remember(last)
	s.changed()
	return true, nil
}

// nuls returns the number of NUL bytes at the beginning of data; in UTF-16, of whole characters.
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

// endOfPacked closes a compressed file that was read to its end, or up to damage, which is counted. The sweeper looks at the stream next: the file may be
// retired.
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

// grow returns the first n bytes of a buffer, which is replaced by a larger one if too small.
func grow(buf *[]byte, n int) []byte {
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	return (*buf)[:n]
}
