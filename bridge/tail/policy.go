package tail

import (
	"time"
)

// policy has the differences between streams whose records are their own and streams whose lines become records together (Settings.Joint). New chooses it.
type policy interface {
	// chunks is how many chunks of a stream are read in a turn.
	chunks() int
	// share is how much of a budget one stream may have in flight.
	share(budget int64) int64
	// next is the place of the stream in a queue that goes on, the nth that does.
	next(queue []queued, nth int) int
	// rouses is how many of the streams that wait for the budget go on after a turn.
	rouses() int
	// sleeps says whether an idle stream lets go of its handler.
	sleeps() bool

	// ended says whether nothing can come any more that the lines a stream holds wait for.
	ended(s *Stream) bool
	// readUntil is until when all that these may wait for was read, Unix ns.
	readUntil(w *sweeper, s *Stream, now time.Time) int64
	// expire gives up lines that have been held since before the given time.
	expire(s *Stream, before time.Time)
	// bound gives up the oldest held lines after a chunk, and boundAtLook at a look, where there are too many.
	bound(s *Stream)
	boundAtLook(s *Stream, now time.Time)

	// freeze keeps the state that a checkpoint is taken of unchanged until thaw.
	freeze(t *Tailer) (thaw func())
	// due says whether a stream that changed is to be stored now, also when others are not.
	due(s *Stream, now time.Time) bool
	// pause is how long after a checkpoint with so many holes the next one is taken.
	pause(holes int) time.Duration
}

const (
	quantum      = 8         // chunks per turn
	onceQuantum  = 1         // of a Once: streams of one job are read side by side
	jointQuantum = 1         // small: a stream's lines wait in memory while it is ahead of the others
	maxHeld      = 1_000_000 // lines of a stream, where records are joint
	maxHeldBytes = 96 << 20  // of all streams, where records are not joint
	// fairEvery is how often the stream that has waited longest is read next, whatever it has lent.
	fairEvery = 64
	// maxCompared is how many streams that wait are compared to find the one that goes on.
	maxCompared = 1024
	// holesPerSecond bounds how much time goes into writing down holes: where there are many, they are stored less often. Ten tags cost as much as a hole.
	holesPerSecond = 20_000
)

// apart is the policy of streams that have nothing to do with one another.
type apart struct{}

func (apart) chunks() int                          { return quantum }
func (apart) share(budget int64) int64             { return budget / 4 }
func (apart) next([]queued, int) int               { return 0 }
func (apart) rouses() int                          { return 0 }
func (apart) sleeps() bool                         { return true }
func (apart) expire(s *Stream, before time.Time)   { s.expireBatch(before) }
func (apart) freeze(*Tailer) (thaw func())         { return func() {} }
func (apart) pause(int) time.Duration              { return 0 }
func (apart) due(s *Stream, now time.Time) bool    { return !now.Before(s.nextStore) }
func (a apart) boundAtLook(s *Stream, _ time.Time) { a.bound(s) }
func (apart) ended(s *Stream) bool                 { return s.current != nil && s.current.isComplete() }
func (apart) readUntil(_ *sweeper, s *Stream, now time.Time) int64 {
	return min(now.UnixNano(), s.caught.Load())
}

// bound is for a stream that holds much, when the held lines of all streams take too much memory.
func (apart) bound(s *Stream) {
	t := s.t
	all := t.heldBytes.Load()
	if all <= t.maxHeldBytes || s.held.bytes < all/max(1, t.holders.Load()) {
		return
	}
	s.giveUp(s.held.oldest(8), "Records that wait for their other half take too much memory; the oldest are given up")
}

// joint is the policy of streams whose lines become records together. See docs/adr/0003-joint-records.md.
type joint struct{}

func (joint) chunks() int { return jointQuantum }

// share has no bound: the stream that is behind the others sends for all.
func (joint) share(budget int64) int64 { return budget }

// next prefers the stream with the fewest lines that wait for lines of others, so that no stream gets far ahead and fills the memory. But no stream waits for
// ever for files that are written faster than they are read.
func (joint) next(queue []queued, nth int) int {
	if nth%fairEvery == 0 {
		return 0
	}
	least := 0
	for i, o := range queue[:min(len(queue), maxCompared)] {
		if o.lent.Load() < queue[least].lent.Load() {
			least = i
		}
	}
	return least
}

// rouses is not 0: lines that were read may wait for other streams, and then nothing is in flight whose ack would make those streams go on.
func (joint) rouses() int { return 1 }

// sleeps is false: the records know their streams by the handlers, which may count the streams that they have to wait for.
func (joint) sleeps() bool { return false }

// ended is false: the other half may come in another stream.
func (joint) ended(*Stream) bool { return false }

func (joint) readUntil(w *sweeper, s *Stream, now time.Time) int64 {
	return min(now.UnixNano(), s.caught.Load(), w.allCaught(now))
}

// expire goes on until nothing is left: lines that leave with one batch may let others leave.
func (joint) expire(s *Stream, before time.Time) {
	for !s.expireBatch(before) {
	}
}

// bound does nothing: the handlers bound the lines that wait.
func (joint) bound(*Stream) {}

// boundAtLook comes once a second: lent lines stay until the batch that they left with was accepted, so that there may be too many for a while.
func (joint) boundAtLook(s *Stream, now time.Time) {
	if s.held.n > s.t.maxHeld && now.Sub(s.lastForced) >= time.Second {
		s.lastForced = now
		s.giveUp(s.held.oldest(3), "Too many lines wait for their other half; the oldest third is given up")
	}
}

func (joint) freeze(t *Tailer) (thaw func()) {
	t.settling.Lock()
	return t.settling.Unlock
}

// due is true: a record has lines of several streams, and all are stored or none.
func (joint) due(*Stream, time.Time) bool { return true }

func (joint) pause(holes int) time.Duration { return time.Duration(holes/holesPerSecond) * time.Second }
