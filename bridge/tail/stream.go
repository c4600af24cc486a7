package tail

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/trainbridge/trainbridge/bridge/tail/internal/checkpoint"
	"github.com/trainbridge/trainbridge/bridge/tail/internal/lockorder"
)

const (
	chunkBytes   = 256 << 10
	minRead      = 1 << 10
	maxBatchCost = 1 << 20 // the most that a batch takes from the budget, a line more or less
	bombBytes    = 1 << 30 // a file may decompress to so much, whatever its size
	reasonEmpty  = "empty"
	reasonLong   = "too_long"
	maxReasons   = 64
	reasonBomb   = "decompression_bomb"
	reasonOther  = "other"
	// reasonDamaged is a record of a binary file whose checksum or form is wrong.
	reasonDamaged = "damaged"
	damagedShown  = 64 // bytes of such a record that are told
	sampleBytes   = 200
	liveWithin    = 10 * time.Second
	minBatchCost  = 512 // bytes that a batch takes from the budget at least
	// The form of a record downstream (a span with its attributes, and its OTLP bytes) takes some 2 KB, however short its line was: short lines that cost little
	// of the budget must not fill the memory.
	minRecordCost = 2 << 10
)

// farFuture is later than every line, and the last time that UnixNano has a number for.
var farFuture = time.Unix(0, math.MaxInt64)

// Stream is the sequence of files that one path has named, in the order in which they are read.
type Stream struct {
	t      *Tailer
	path   string
	number int // its number among the streams of the Tailer

	mu        lockorder.Mutex[reading] // everything below, and the handler's methods
	handler   Handler                  // nil: asleep, and state has what the handler saved
	state     []byte
	files     []*file
	current   *file // the file that the path names now; nil for none
	dirty     bool  // differs from the stored checkpoint
	nextStore time.Time

	*awake

	arrived, storing, stored int // arrivals so far; those in the checkpoint that was taken last, and in the one that was stored last

	gone     bool // forgotten: not to be drained any more
	known    bool // has had a file, in this process or before
	behind   bool // rotated files are still to be compared with files that were read: takeUp must be called again
	document bool
	// byContent says that the path is in IncludeByContent only.
	byContent bool
	early     bool // by content, which was there when the Tailer started
	// lastWrite is when the file that the path named last was last written: files that were rotated through the path since are younger.
	lastWrite time.Time

	// of the scheduler, under t.mu
	inFlight int64
	sched    schedState
	blocked  bool // stands still until an ack
	waits    bool // is in Tailer.waiting
	kicked   bool // is in Tailer.kicked
	starves  bool // is in descriptors.waiting; under its lock
	// caught is when the stream was last read to its end, Unix ns; farFuture while it is at its end. Other goroutines read it without mu.
	caught atomic.Int64
	// size counts the bytes in the files, lag the bytes that are not read yet; linesRead and recordsRead count lines and records read in this process. They are
	// read without mu, too.
	size, lag, linesRead, recordsRead atomic.Int64
	// lent is how many lines are held, as of the last turn or settlement; likewise.
	lent atomic.Int64
	// of the sweeper
	next       time.Time
	heapAt     int
	metAt      time.Time
	denied     bool      // its path could not be looked at, or not be opened
	heard      bool      // the system says when a file is created at the path
	activeAt   time.Time // when something was last seen to happen
	lastExpire time.Time
	sweeping   bool // the sweeper holds mu
	resumed    bool // a position was stored
	missed     int  // looks put off because the stream was being drained
	missedAt   time.Time
}

// awake is the state that a stream needs while it has a handler.
type awake struct {
	batch  *lineBatch // being built
	flying map[*lineBatch]struct{}
	mark   *mark // beginning of the batch being built, for a handler that is InOrder
	held   heldLines
	shared map[Held]*bond // bonds of lent lines that are in more than one batch

	line    Line
	limit   int64              // the most that the batch being built takes from the budget
	text    []byte             // buffer for a decoded line
	arrival checkpoint.Arrival // of the lines of the chunk
	dated   bool               // the times of some of them are those of their arrival
	visited int64              // bytes that Ahead and Beginning read in this turn
	density int64              // the budget that each of the bytes read last took; 0: none
	cur     piece
	curHeld Held
	since   extent // extent of the batch when the line being handled began, or the record before the one that expires
	// placed says that a record has a place since the line being handled began, ownPlace that the last one is the line itself.
	placed, ownPlace bool
	tally            tally
	lastForced       time.Time // expiry of too many; of the sweeper
	doc              document
}

// asleep is the awake that all streams without a handler share. Nothing is written to it.
var asleep = newAwake()

func newAwake() *awake { return &awake{held: heldLines{free: -1}, curHeld: -1} }

type schedState uint8

const (
	idle schedState = iota
	ready
	running
	rerun
)

// Path returns the path that names the stream's files.
func (s *Stream) Path() string { return s.path }

// IsDocument says whether each line that the handler is given is a whole file (Config.Document, Settings.IsDocument).
func (s *Stream) IsDocument() bool { return s.document }

// Hold keeps the line being handled out of the current batch until Release: it pins the checkpoint, and a restart reads it again.
// It is called inside Handler.Line only.
func (s *Stream) Hold() Held {
	if s.curHeld < 0 {
		s.curHeld = s.held.put(held{piece: s.cur, at: s.line.Observed.UnixNano(), bytes: int32(s.cur.End - s.cur.Begin)})
	}
	return s.curHeld
}

// ByArrival says that the line being handled has no time of its own: what is made of it depends on when it was read (Observed, Live, ModTime, Ahead). That is
// stored before the batch is sent, so that a line which is read again has the same times. It is called inside Handler.Line only.
func (s *Stream) ByArrival() { s.dated = true }

// Release puts a held line into the batch being built. It is called inside Handler.Line and Handler.Expire only.
// A number that is not held is ignored.
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

// Place names the lines that a record of the batch being built was made of: the lines released or taken since the last Place, else the line being handled,
// which several records may share. It is called inside Handler.Line and Handler.Expire only, once for each record, after Release and Take.
func (s *Stream) Place() Place {
	b := s.batch
	now := b.extent()
	own := now == s.since
	if !own || !s.ownPlace {
		b.places = append(b.places, place{s.since, now})
		s.placed, s.ownPlace, s.since = true, own, now
	}
	return Place(len(b.places) - 1)
}

// handle gives one line to the handler. The bytes [begin,end) hold the line and its ending.
func (s *Stream) handle(f *file, text []byte, begin, end int64) {
	s.tally.lines++
	if len(text) == 0 {
		s.tally.count(Ignored, reasonEmpty)
		s.tell(f, text, begin, Ignored, reasonEmpty)
		s.batch.add(f, begin, end)
		return
	}
	if len(text) > s.t.cfg.MaxLineBytes {
		s.reject(f, reasonLong, text, begin)
		return // a dropped line leaves no hole
	}
	s.toHandler(f, text, begin, end)
}

// toHandler hands a line to the handler and counts its verdict.
func (s *Stream) toHandler(f *file, text []byte, begin, end int64) {
	if f != s.cur.file {
		s.line.File++
	}
	s.cur, s.curHeld, s.since = piece{f, checkpoint.Range{Begin: begin, End: end}}, -1, s.batch.extent()
	s.line.Text, s.line.Tag = text, 0
	if s.line.Again {
		s.line.Tag = f.tag(begin)
	}
	v, reason := s.handler.Line(&s.line)
	switch v {
	case Record:
		s.tally.records++
		s.tell(f, text, begin, v, reason)
	case Ignored:
		s.tally.count(Ignored, reason)
		s.tell(f, text, begin, v, reason)
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
	if s.placed {
		s.placed, s.ownPlace = false, false
		s.batch.places[len(s.batch.places)-1].to = s.batch.extent()
	}
}

// tell has whoever watches see a line.
func (s *Stream) tell(f *file, text []byte, begin int64, v Verdict, reason string) {
	if s.t.set.Watch == nil {
		return
	}
	if f.watch == nil {
		f.watch = s.t.set.Watch(f.path)
	}
	f.watch(text, begin, v, reason)
}

func (s *Stream) reject(f *file, reason string, text []byte, begin int64) {
	s.tally.count(Rejected, reason)
	s.t.warnRejected(reason, f.path, text)
	s.tell(f, text, begin, Rejected, reason)
}

// cut ends the batch being built and sends it on its way. A batch that has nothing to send is done at once.
func (s *Stream) cut() {
	d := s.handler.Cut()
	t := s.t
	if s.tally.lines > 0 {
		s.linesRead.Add(s.tally.lines)
		s.recordsRead.Add(s.tally.records)
	}
	t.counts.add(&s.tally)
	s.tellHeld()
	b := s.batch
	if b.empty() && d == nil {
		return
	}
	s.changed()
	if d == nil && len(b.lent) > 0 {
		d = nothing{} // other streams' lines are let go of without this one's lock
	}
	if d == nil {
		t.counts.sent(b.records)
		b.done()
		s.documentDone()
		s.setMark() // a file that ends here may be forgotten
		return
	}
	b.stream, b.what, b.from = s, d, s.mark
	b.bytes = max(b.bytes, minBatchCost)
	s.flying[b] = struct{}{}
	s.batch = t.newBatch()
	s.setMark()
	t.charge(s, b)
	t.launch(b)
}

// nothing is a batch that has nothing to send.
type nothing struct{}

func (nothing) Send(context.Context) error { return nil }
func (nothing) Join(other Delivery) bool   { return other == nothing{} }

// changed says that the stored checkpoint is no longer true.
func (s *Stream) changed() {
	s.dirty = true
	if !s.t.dirty.Load() {
		s.t.dirty.Store(true)
	}
}

// tellHeld has the Tailer know how many record lines are held, and how much memory they take.
func (s *Stream) tellHeld() {
	told := &s.held.told
	s.t.heldRecords.Add(s.held.records - told.records)
	s.t.heldBytes.Add(s.held.bytes - told.bytes)
	switch had, has := told.bytes > 0, s.held.bytes > 0; {
	case has && !had:
		s.t.holders.Add(1)
	case had && !has:
		s.t.holders.Add(-1)
	}
	told.records, told.bytes = s.held.records, s.held.bytes
}

func (s *Stream) giveUp(before time.Time, why string) {
	s.t.counts.bump(&s.t.counts.forced, 1)
	s.t.warn("held", why, zap.String("path", s.path), zap.Int("lines", s.held.n))
	s.expire(before)
}

// setMark notes where the batch being built begins.
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

// firstMark is where the oldest batch in flight begins. nil: there is none, or it does not matter.
func (s *Stream) firstMark() (first *mark) {
	for b := range s.flying {
		if b.from != nil && (first == nil || b.from.number < first.number) {
			first = b.from
		}
	}
	return first
}

// comesAgain says whether a restart now would read lines of the file again although all of it was accepted.
func (s *Stream) comesAgain(f *file) bool {
	first := s.firstMark()
	return first != nil && first.at[f] < f.head
}

// expire gives up lines that have been held since before the given time.
func (s *Stream) expire(before time.Time) {
	if s.handler != nil {
		s.t.policy.expire(s, before)
	}
}

// expireBatch gives up the lines that the handler puts into one batch; done: there were none.
func (s *Stream) expireBatch(before time.Time) (done bool) {
	s.since = s.batch.extent()
	s.handler.Expire(before)
	s.placed, s.ownPlace = false, false
	done = s.batch.empty()
	s.cut()
	return done
}

// noteCaught takes note of whether there is something to read. Files that cannot be read, or that are still being written and read only after that, are waited
// for by no one.
func (s *Stream) noteCaught() {
	at := farFuture.UnixNano()
	if s.document && s.doc.changed && s.doc.stable && !s.doc.failed {
		at = 0
	}
	for _, f := range s.files {
		if (f.life == lifeUnread || f.life == lifeCut || f.life == lifeMissing) && !f.failed && (!f.compressed || s.t.final || s.t.standsStill(f)) {
			at = min(at, unixNano(f.caught)) // 0: not yet
		}
	}
	s.caught.Store(at)
	s.noteSize()
}

// noteSize takes note of how much there is in the stream's files, and how much of it was not read.
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
			if f.life != lifeRead && !f.nulEnd { // else the bytes behind head are a line without its end
				lag += max(0, f.size-f.head)
			}
		}
	}
	s.t.size.Add(size - s.size.Swap(size))
	s.t.lag.Add(lag - s.lag.Swap(lag))
}

func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// settle takes note of a batch's fate: all its lines were accepted, but for the refused ones among its record lines.
func (s *Stream) settle(b *lineBatch, refused int64) {
	t := s.t
	// A checkpoint has all lines of a record or none, whichever streams they are from.
	t.settling.RLock()
	defer t.settling.RUnlock()
	own, bytes := b.records, b.bytes
	all := own + t.settleLent(b.lent)
	refused = min(refused, all)
	t.counts.sent(all - refused)
	t.counts.refused(refused)
	s.mu.Lock()
	delete(s.flying, b)
	b.done()
	s.documentDone()
	s.changed()
	s.sleep(t.now())
	s.mu.Unlock()
	t.batches.Put(b)
	t.refund(s, bytes, own)
}

// idle tells a handler that wants to know it that all was read and accepted.
func (s *Stream) idle(now time.Time) {
	h, ok := s.handler.(Idler)
	if !ok || s.held.n > 0 || len(s.flying) > 0 || !s.batch.empty() || s.caught.Load() != farFuture.UnixNano() {
		return
	}
	h.Idle(now)
	s.cut()
}

const (
	// sleepAfter is how long a stream must be idle before it lets go of its handler.
	sleepAfter = 10 * time.Second
	// oldFile is how long ago a file must have been written for its stream to be idle as soon as it was read.
	oldFile = 10 * time.Minute
	// maxSleepState bounds the state that a sleeping handler leaves behind: a handler with more state stays.
	maxSleepState = 4 << 10
)

// sleep lets go of everything that an idle stream can make anew from the state that a restart would have: the logs of all jobs that ever ran may lie in a
// directory, and only a few are written.
func (s *Stream) sleep(now time.Time) {
	if s.handler == nil || !s.sleeps() || !s.isIdle(now) || s.held.n > 0 || len(s.flying) > 0 || !s.batch.empty() {
		return
	}
	if _, ok := s.handler.(Forgetter); ok {
		return
	}
	state := s.handler.Save()
	if len(state) > maxSleepState {
		return
	}
	s.t.counts.add(&s.tally)
	s.t.batches.Put(s.batch)
	s.state, s.handler, s.awake = state, nil, asleep
}

// sleeps says whether the stream lets go of its handler when it is idle. A document must know the content that it gave.
func (s *Stream) sleeps() bool {
	unread := s.t.final && s.lag.Load() > 0 // a Once that waits for another one is not idle, however long that takes
	return s.t.policy.sleeps() && !s.document && !unread
}

// isIdle says whether nothing is to be expected of a stream. A Once reads a file to its end, and does not come back.
func (s *Stream) isIdle(now time.Time) bool {
	if now.Sub(s.activeAt) >= sleepAfter {
		return true
	}
	return s.current != nil && s.caught.Load() == farFuture.UnixNano() && (s.t.final || now.Sub(s.current.mtime) >= oldFile)
}

// wake makes the handler of a stream that has something for it.
func (s *Stream) wake() {
	if s.handler != nil {
		return
	}
	s.awake = newAwake()
	s.batch, s.flying = s.t.newBatch(), make(map[*lineBatch]struct{})
	s.handler = s.t.newHandler(s)
	s.remember()
}

// remember gives the handler the state that the last one left behind.
func (s *Stream) remember() {
	if s.handler != nil && len(s.state) > 0 {
		s.handler.Restore(s.state)
		s.state = nil
	}
}

// save returns the state that the handler must have after a restart.
func (s *Stream) save() []byte {
	if s.handler == nil {
		return s.state
	}
	return s.handler.Save()
}

// held is a line that waits for its other half.
type held struct {
	piece
	at     int64 // when it was read, Unix ns
	bytes  int32
	refs   int32  // number of batches that a lent line is in, or will be in
	tag    uint64 // as above: the Line.Tag of the line when it is read again
	record bool
	next   Held // next in the free list
}

// heldLines stores held lines under stable numbers, so that holding and releasing neither hash nor move anything.
type heldLines struct {
	slots []held
	free  Held // first free slot, -1 for none
	n     int
	// bytes is about how much memory the lines take; records is how many of them are records.
	bytes, records int64
	told           struct{ bytes, records int64 } // how much of these the Tailer was told
}

// heldCost is the memory of a held line, with the state that a handler keeps for it: for a call that has begun tq_trace 1.6 KB, by a heap profile of 72,000.
func heldCost(e *held) int64 { return 2<<10 + int64(e.bytes) }

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

// remove returns the held line and frees its slot; false for one that is not held.
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

// oldest returns a time before which a share of the held lines, or more, were read.
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
