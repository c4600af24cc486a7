package tail

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

const (
	chunkBytes   = 256 << 10 // bytes of a read, unless a line is longer
	minRead      = 1 << 10   // the least bytes of a read
	maxBatchCost = 1 << 20   // the most budget of a batch, up to a line
	bombBytes    = 1 << 30   // a file may always decompress to this size
	reasonEmpty  = "empty"
	reasonLong   = "too_long"
	maxReasons   = 64 // reasons in the counts; further reasons count as reasonOther
	reasonBomb   = "decompression_bomb"
	reasonOther  = "other"
	// reasonDamaged is a record of a binary file whose checksum or form is wrong.
	reasonDamaged = "damaged"
	damagedShown  = 64               // logged bytes of a damaged record
	sampleBytes   = 200              // of a line, in a warning
	liveWithin    = 10 * time.Second // a line is live (Line.Live) if read within this time after the file was last fully read
	minBatchCost  = 512              // the least budget of a batch
	// A record downstream (a span with attributes, and OTLP bytes) takes some 2 KB, for any length of the line: short lines must not fill the memory at little
	// budget.
	minRecordCost = 2 << 10
)

// farFuture is later than every line, and the last time with a UnixNano.
var farFuture = time.Unix(0, math.MaxInt64)

// Stream is the sequence of files that one path has named, in reading order.
type Stream struct {
	t      *Tailer
	path   string
	number int // number among the Tailer's streams

	mu        lockorder.Mutex[reading] // everything below, and the handler's methods
	handler   Handler                  // nil: suspended, with the handler's saved state in state
	state     []byte
	files     []*file
	current   *file     // the file that the path names now; nil for none
	dirty     bool      // differs from the stored checkpoint
	nextStore time.Time // the checkpoint is not stored before, see holesPerSecond

	*working

	arrived, storing, stored int // arrivals so far; in the last checkpoint taken, and in the last stored

	gone     bool // forgotten: not to be drained any more
	known    bool // has had a file, in this process or before
	behind   bool // rotated files are still to be compared with files already read: takeUp must be called again
	document bool
	// byContent: the path is in IncludeByContent only.
	byContent bool
	second    bool // Stream.IsSecond
	early     bool // by content present at the Tailer's start
	// lastWrite is the last write of the path's last file: files rotated through the path since are younger.
	lastWrite time.Time

	// of the scheduler, under t.mu
	inFlight int64 // budget of the batches that are cut and not settled, in bytes
	sched    schedState
	// blocked: mayRead had no budget for the next batch, and neither refund nor resume has resumed the stream since.
	blocked   bool
	inWaiting bool // is in Tailer.waiting, perhaps though resumed by refund
	kicked    bool // is in Tailer.kicked
	starves   bool // in descriptors.waiting; under its lock
	// caughtUp is the last time the stream was fully read, Unix ns; farFuture while at the end. It is read without mu.
	caughtUp atomic.Int64
	// size counts the bytes in the files, lag the unread bytes; linesRead and recordsRead count lines and records read in this process. All are read without
	// mu, too.
	size, lag, linesRead, recordsRead atomic.Int64
	// lent is how many lines are held, as of the last turn or settlement; likewise.
	lent atomic.Int64
	// of the sweeper
	next       time.Time // of the next look
	heapAt     int       // index in sweeper.due; -1: forgotten
	metAt      time.Time // when the path was met
	denied     bool      // its path could not be looked at, or not be opened
	births     bool      // creation events are seen
	activeAt   time.Time // when something was last seen to happen
	lastExpire time.Time
	sweeping   bool      // the sweeper holds mu
	resumed    bool      // a position was stored
	missed     int       // looks put off because the stream was being drained
	missedAt   time.Time // when the last of these was counted
}

// working is the state needed only with a handler.
type working struct {
	batch  *lineBatch              // being built
	flying map[*lineBatch]struct{} // cut, and neither accepted nor refused
	mark   *mark                   // beginning of the current batch, for an InOrder handler
	held   heldLines
	shared map[Held]*bond // bonds of lent lines in several batches

	line    Line
	limit   int64              // the most budget of the current batch
	text    []byte             // buffer for a decoded line
	arrival checkpoint.Arrival // of the lines of the chunk
	dated   bool               // some of its times are those of arrival
	visited int64              // bytes read by Ahead and Beginning in this turn
	density int64              // budget taken per byte in the last read; 0: none
	cur     piece              // the current line
	curHeld Held               // the number of the current line, if held; -1: not held
	since   extent             // extent of the batch at the beginning of the current line, or of the record before the expiring record
	// placed: a record has a place since the current line began; ownPlace: the last place is the line itself.
	placed, ownPlace bool
	tally            tally     // counts not yet in Tailer.counts
	lastForced       time.Time // when too many held lines were given up last; of the sweeper
	doc              document
}

// suspended is the working state shared by all streams without a handler. It is never written.
var suspended = newWorking()

// newWorking returns the working state of a stream without a batch and without held lines.
func newWorking() *working { return &working{held: heldLines{free: -1}, curHeld: -1} }

// schedState says where a stream is in the scheduler.
type schedState uint8

const (
	idle    schedState = iota // no work is known
	ready                     // in Tailer.ready
	running                   // a worker drains the stream
	rerun                     // likewise, and more work came meanwhile: ready again afterwards
)

// Path returns the path that names the stream's files.
func (s *Stream) Path() string { return s.path }

// IsDocument reports whether each line given to the handler is a whole file (Config.Document, Settings.IsDocument).
func (s *Stream) IsDocument() bool { return s.document }

// IsSecond reports whether a Tailer of another receiver is the first one that reads the same file (ShareWith).
func (s *Stream) IsSecond() bool { return s.second }

// ShareWith has a receiver read the stream's file too, from its beginning, if a line is a record of that receiver, and the file is in its
// Config.IncludeByContent. It returns false if the line is no such record, and another may be.
func (s *Stream) ShareWith(receiver component.Type, line []byte) (answered bool) {
	return s.t.set.Sorter == nil || s.t.set.Sorter.share(s.path, receiver, line)
}

// Hold keeps the current line out of the current batch until Release, and returns the line's number. Until then the checkpoint treats the line as unread, and a
// restart reads the line again. Call Hold inside Handler.Line only.
func (s *Stream) Hold() Held {
	if s.curHeld < 0 {
		s.curHeld = s.held.put(held{piece: s.cur, at: s.line.Observed.UnixNano(), bytes: int32(s.cur.End - s.cur.Begin)})
	}
	return s.curHeld
}

// Holds reports whether the current line is held. Call Holds inside Handler.Line only.
func (s *Stream) Holds() bool { return s.curHeld >= 0 }

// ByArrival declares the current line to have no time of its own: the output depends on the reading time (Observed, Live, ModTime, Ahead), which is stored
// before the batch is sent and restored with the line when read again. Call ByArrival inside Handler.Line only.
func (s *Stream) ByArrival() { s.dated = true }

// Release puts a held line into the current batch. Call Release inside Handler.Line and Handler.Expire only. A number not held is ignored.
func (s *Stream) Release(h Held) {
	if h == s.curHeld && h >= 0 {
		s.held.remove(h)
		s.curHeld = -1
		return // it goes with the batch when Line returns
	}
	e, ok := s.held.remove(h)
	if !ok {
		return
	}
	s.batch.add(e.file, e.Begin, e.End)
	if e.record {
		s.batch.records++
		s.batch.bytes += max(int64(e.bytes), minRecordCost)
	}
}

// Place returns the number of a record of the current batch, by which Refused names the record later. The record consists of the lines released or taken since
// the last Place, else of the current line, which several records may share. Call Place inside Handler.Line and Handler.Expire only, once per record, after
// Release and Take.
func (s *Stream) Place() Place {
	b := s.batch
	now := b.extent()
	// own: nothing was released or taken, so the record is of the current line, whose end toHandler fills in. Further such records share the place.
	own := now == s.since
	if !own || !s.ownPlace {
		pl := place{from: s.since, to: now}
		if own && s.curHeld >= 0 {
			pl.held, pl.begin = s.cur.file, s.cur.Begin
		}
		b.places = append(b.places, pl)
		s.placed, s.ownPlace, s.since = true, own, now
	}
	return Place(len(b.places) - 1)
}

// handle gives a line to the handler, except an empty line, which is ignored, and an overlong one, which is rejected. The bytes [begin,end) hold the line with
// its ending.
func (s *Stream) handle(f *file, text []byte, begin, end int64) {
	s.tally.lines++
	if len(text) == 0 {
		s.tally.count(Ignored, reasonEmpty)
		s.report(f, text, begin, Ignored, reasonEmpty)
		s.batch.add(f, begin, end) // keeps the lines around in one piece
		return
	}
	if len(text) > s.t.cfg.MaxLineBytes {
		s.reject(f, reasonLong, text, begin)
		return // a dropped line leaves no hole
	}
	s.toHandler(f, text, begin, end)
}

// toHandler hands a line to the handler and counts the verdict. The line belongs to the current batch, unless the handler holds it.
func (s *Stream) toHandler(f *file, text []byte, begin, end int64) {
	if f != s.cur.file {
		s.line.File++
	}
	s.cur, s.curHeld, s.since = piece{f, checkpoint.Range{Begin: begin, End: end}}, -1, s.batch.extent()
	s.line.Text, s.line.Tag = text, 0
	if s.line.Again {
		s.line.Tag = f.tag(begin)
	}
	v, reason := s.handler.Line(&s.line) // may call Hold, Lend, Release, Take and Place
	switch v {
	case Record:
		s.tally.records++
		s.report(f, text, begin, v, reason)
	case Ignored:
		s.tally.count(Ignored, reason)
		s.report(f, text, begin, v, reason)
	case Rejected:
		s.reject(f, reason, text, begin)
	}
	switch {
	case s.curHeld >= 0:
		if v == Record {
			s.held.slots[s.curHeld].record = true
			s.held.records++
		}
		s.curHeld = -1
	case v == Record:
		s.batch.records++
		s.batch.bytes += max(end-begin, minRecordCost)
		fallthrough
	default:
		s.batch.add(f, begin, end)
	}
	// Place was called by Line, before the current line was in the batch: the last place is extended to the line. A held line adds nothing.
	if s.placed {
		s.placed, s.ownPlace = false, false
		s.batch.places[len(s.batch.places)-1].to = s.batch.extent()
	}
}

// report shows a line with its verdict to the function of Settings.Watch.
func (s *Stream) report(f *file, text []byte, begin int64, v Verdict, reason string) {
	if s.t.set.Watch == nil {
		return
	}
	if f.watch == nil {
		f.watch = s.t.set.Watch(f.path)
	}
	f.watch(text, begin, v, reason)
}

// reject counts a line that cannot be read, warns and reports.
func (s *Stream) reject(f *file, reason string, text []byte, begin int64) {
	s.tally.count(Rejected, reason)
	s.t.warnRejected(reason, f.path, text)
	s.report(f, text, begin, Rejected, reason)
}

// cut ends the current batch and passes it on to the senders. A batch of lines without anything to send is settled at once.
func (s *Stream) cut() {
	d := s.handler.Cut()
	t := s.t
	if s.tally.lines > 0 {
		s.linesRead.Add(s.tally.lines)
		s.recordsRead.Add(s.tally.records)
	}
	t.counts.add(&s.tally)
	s.countHeld()
	b := s.batch
	if b.empty() && d == nil {
		return
	}
	s.changed()
	if d == nil && len(b.lent) > 0 {
		d = nothing{} // other streams' lines are released without this stream's lock
	}
	// Nothing to send: the lines are done, and the batch is used again.
	if d == nil {
		t.counts.sent(b.records)
		b.reset()
		s.documentDone()
		s.setMark() // a file that ends here may be dropped
		return
	}
	// Hand the batch over, and begin the next.
	b.stream, b.delivery, b.from = s, d, s.mark
	b.bytes = max(b.bytes, minBatchCost) // a batch of ignored lines takes some budget, too
	s.flying[b] = struct{}{}
	s.batch = t.newBatch()
	s.setMark()
	t.charge(s, b)
	t.launch(b)
}

// nothing is a batch with nothing to send.
type nothing struct{}

func (nothing) Send(context.Context) error { return nil }
func (nothing) Join(other Delivery) bool   { return other == nothing{} }

// changed marks the stored checkpoint as outdated.
func (s *Stream) changed() {
	s.dirty = true
	if !s.t.dirty.Load() {
		s.t.dirty.Store(true)
	}
}

// countHeld brings the Tailer's sums over all streams up to date: the held record lines, their memory, and the number of streams that hold lines.
func (s *Stream) countHeld() {
	counted := &s.held.counted
	s.t.heldRecords.Add(s.held.records - counted.records)
	s.t.heldBytes.Add(s.held.bytes - counted.bytes)
	switch had, has := counted.bytes > 0, s.held.bytes > 0; {
	case has && !had:
		s.t.holders.Add(1)
	case had && !has:
		s.t.holders.Add(-1)
	}
	counted.records, counted.bytes = s.held.records, s.held.bytes
}

// giveUp expires lines held since before the given time although their timeout is not over, because there are too many. why is the warning's text.
func (s *Stream) giveUp(before time.Time, why string) {
	s.t.counts.bump(&s.t.counts.forced, 1)
	s.t.warn("held", why, zap.String("path", s.path), zap.Int("lines", s.held.n))
	s.expire(before)
}

// setMark notes where the batch being built begins: for each file the first byte that is not in an earlier batch, and the handler's state. After a crash an
// InOrder handler continues at the mark of the oldest unaccepted batch; for any other handler there is no mark.
func (s *Stream) setMark() {
	if _, ok := s.handler.(InOrder); !ok {
		return
	}
	m := &mark{state: s.handler.Save(), at: make(map[*file]int64, len(s.files))}
	if s.mark != nil {
		m.number = s.mark.number + 1
	}
	for _, f := range s.files {
		m.at[f] = f.head
		if len(f.replay) > 0 {
			m.at[f] = f.replay[0].Begin
		}
	}
	for i := range s.held.slots {
		if h := &s.held.slots[i]; h.file != nil {
			m.at[h.file] = min(m.at[h.file], h.Begin)
		}
	}
	s.mark = m
}

// firstMark returns the mark of the oldest batch in flight. nil: no batch is in flight, or the handler is not InOrder.
func (s *Stream) firstMark() (first *mark) {
	for b := range s.flying {
		if b.from != nil && (first == nil || b.from.number < first.number) {
			first = b.from
		}
	}
	return first
}

// comesAgain reports whether a restart now would read lines of the file again although all of it was accepted.
func (s *Stream) comesAgain(f *file) bool {
	first := s.firstMark()
	return first != nil && first.at[f] < f.head
}

// expire gives up lines held since before the given time.
func (s *Stream) expire(before time.Time) {
	if s.handler != nil {
		s.t.policy.expire(s, before)
	}
}

// expireBatch asks the handler once to give up lines held since before the given time, and sends them. It returns true if the handler gave up none.
func (s *Stream) expireBatch(before time.Time) (done bool) {
	s.since = s.batch.extent()
	s.handler.Expire(before)
	s.placed, s.ownPlace = false, false
	done = s.batch.empty()
	s.cut()
	return done
}

// noteCaughtUp records since when the stream has had unread bytes (Stream.caughtUp). Unreadable files, and compressed files that are still being written, are
// not waited for.
func (s *Stream) noteCaughtUp() {
	at := farFuture.UnixNano()
	if s.document && s.doc.changed && s.doc.stable && !s.doc.failed {
		at = 0
	}
	for _, f := range s.files {
		unread := f.life == lifeUnread || f.life == lifeCut || f.life == lifeMissing
		beingPacked := f.compressed && !s.t.final && !s.t.standsStill(f)
		if unread && !f.failed && !beingPacked {
			at = min(at, unixNano(f.caughtUp)) // 0: not yet
		}
	}
	s.caughtUp.Store(at)
	s.noteSize()
}

// noteSize records the size of the stream's files, and the unread part.
func (s *Stream) noteSize() {
	size, lag := int64(0), int64(0)
	for _, f := range s.files {
		switch {
		case f.life == lifeDead || f.isRetired() || f.life == lifeMissing:
		case f.compressed: // how far in the compressed bytes reading is, nobody knows
			if size += f.size; f.life != lifeRead {
				lag += f.size
			}
		default:
			size += f.size
			if f.life != lifeRead && !f.nulEnd { // else the bytes after head are a line without its end, or NULs
				lag += max(0, f.size-f.head)
			}
		}
	}
	s.t.size.Add(size - s.size.Swap(size))
	s.t.lag.Add(lag - s.lag.Swap(lag))
}

// unixNano returns t in Unix ns, 0 for the zero time, whose UnixNano is undefined.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// settle closes a batch that was delivered: refused of its record lines were refused, all others accepted. The checkpoint counts the batch's lines as done, and
// the budget is returned.
func (s *Stream) settle(b *lineBatch, refused int64) {
	t := s.t
	// A checkpoint has all lines of a record or none, in all streams.
	t.settling.RLock()
	defer t.settling.RUnlock()
	own, bytes := b.records, b.bytes // done empties the batch
	all := own + t.settleLent(b.lent)
	refused = min(refused, all)
	t.counts.sent(all - refused)
	t.counts.refused(refused)
	s.mu.Lock()
	delete(s.flying, b)
	b.reset()
	s.documentDone()
	s.changed()
	s.suspend(t.now())
	s.mu.Unlock()
	t.batches.Put(b)
	t.refund(s, bytes, own)
}

// idle calls Idler.Idle, if the handler is an Idler and everything was read and accepted.
func (s *Stream) idle(now time.Time) {
	h, ok := s.handler.(Idler)
	if !ok || s.held.n > 0 || len(s.flying) > 0 || !s.batch.empty() || s.caughtUp.Load() != farFuture.UnixNano() {
		return
	}
	h.Idle(now)
	s.cut()
}

const (
	// suspendAfter is the idle time after which a stream drops its handler.
	suspendAfter = 10 * time.Second
	// oldFile is the age of a file's last write from which on its stream is idle as soon as it was read.
	oldFile = 10 * time.Minute
	// maxSavedState bounds the saved state of a dropped handler: a handler with more state stays.
	maxSavedState = 4 << 10
)

// suspend drops handler and working state of an idle stream, which resume restores from the handler's saved state: a directory may have the logs of all past
// jobs, and only a few are written. A handler stays if it is a Forgetter, or has more state than maxSavedState.
func (s *Stream) suspend(now time.Time) {
	if s.handler == nil || !s.suspends() || !s.isIdle(now) || s.held.n > 0 || len(s.flying) > 0 || !s.batch.empty() {
		return
	}
	if _, ok := s.handler.(Forgetter); ok {
		return
	}
	state := s.handler.Save()
	if len(state) > maxSavedState {
		return
	}
	s.t.counts.add(&s.tally)
	s.t.batches.Put(s.batch)
	s.state, s.handler, s.working = state, nil, suspended
}

// suspends reports whether the stream drops its handler when idle. A document needs the last content.
func (s *Stream) suspends() bool {
	unread := s.t.final && s.lag.Load() > 0 // a waiting Once is not idle, however long it waits
	return s.t.policy.suspends() && !s.document && !unread
}

// isIdle reports whether nothing is expected of a stream. A Once reads a file to its end, and does not come back.
func (s *Stream) isIdle(now time.Time) bool {
	if now.Sub(s.activeAt) >= suspendAfter {
		return true
	}
	return s.current != nil && s.caughtUp.Load() == farFuture.UnixNano() && (s.t.final || now.Sub(s.current.mtime) >= oldFile)
}

// resume makes the handler of a suspended stream that has work again, with the saved state.
func (s *Stream) resume() {
	if s.handler != nil {
		return
	}
	s.working = newWorking()
	s.batch, s.flying = s.t.newBatch(), make(map[*lineBatch]struct{})
	s.handler = s.t.newHandler(s)
	s.restoreState()
}

// restoreState restores the saved state into the handler.
func (s *Stream) restoreState() {
	if s.handler != nil && len(s.state) > 0 {
		s.handler.Restore(s.state)
		s.state = nil
	}
}

// save returns the handler's state for a restart.
func (s *Stream) save() []byte {
	if s.handler == nil {
		return s.state
	}
	return s.handler.Save()
}

// held is a line that waits for the rest of its record.
type held struct {
	piece
	at     int64  // reading time, Unix ns
	bytes  int32  // length of the line with its ending
	refs   int32  // number of present and future batches of a lent line
	tag    uint64 // of a lent line: the Line.Tag of the line when it is read again
	record bool   // the verdict was Record
	next   Held   // next in the free list
}

// heldLines stores held lines under stable numbers: holding and releasing neither hash nor move anything.
type heldLines struct {
	slots []held // by number; a free slot has no file
	free  Held   // first free slot, -1 for none
	n     int    // held lines
	// bytes is the approximate memory of the lines; records is the number of records among them.
	bytes, records int64
	counted        struct{ bytes, records int64 } // the part already in the Tailer's counts
}

// heldCost returns the memory of a held line, with the handler's state for it: tq_trace has 1.6 KB for an open call, by a heap profile of 72,000.
func heldCost(e *held) int64 { return 2<<10 + int64(e.bytes) }

// put stores a held line and returns its number.
func (h *heldLines) put(e held) Held {
	h.n++
	h.bytes += heldCost(&e)
	e.file.outstanding++
	if h.free >= 0 {
		i := h.free
		h.free = h.slots[i].next
		h.slots[i] = e
		return i
	}
	h.slots = append(h.slots, e)
	return Held(len(h.slots) - 1)
}

// remove returns a held line and frees its slot. It returns false for a number that is not in use.
func (h *heldLines) remove(i Held) (held, bool) {
	if i < 0 || int(i) >= len(h.slots) || h.slots[i].file == nil {
		return held{}, false
	}
	e := h.slots[i]
	h.n--
	h.bytes -= heldCost(&e)
	if e.record {
		h.records--
	}
	e.file.outstanding--
	if h.n == 0 {
		// A burst of held lines must not keep its memory for ever.
		if cap(h.slots) > 4096 {
			h.slots = nil
		}
		h.slots, h.free = h.slots[:0], -1
		return e, true
	}
	h.slots[i] = held{next: h.free}
	h.free = i
	return e, true
}

// oldest returns a time before which at least one in share of the held lines were read: for 8, the oldest eighth. The caller makes sure that lines are held.
func (h *heldLines) oldest(share int) time.Time {
	at := make([]int64, 0, h.n)
	for i := range h.slots {
		if h.slots[i].file != nil {
			at = append(at, h.slots[i].at)
		}
	}
	slices.Sort(at)
	return time.Unix(0, at[len(at)/share]+1)
}
