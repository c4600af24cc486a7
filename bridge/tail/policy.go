package tail

import (
	"time"
)

// policy has the differences between streams with their own records and streams whose lines are joined to records (Settings.Joint). New chooses it.
type policy interface {
	// chunks returns how many chunks of a stream are read in a turn.
	chunks() int
	// share returns the part of a budget that one stream may have in flight.
	share(budget int64) int64
	// next returns the index of the next stream in a queue; nth counts the calls.
	next(queue []queued, nth int) int
	// resumes returns how many of the streams waiting for the budget resume after a turn.
	resumes() int
	// suspends reports whether an idle stream drops its handler.
	suspends() bool

	// ended reports whether no line can come any more that completes the records of the lines that a stream holds.
	ended(s *Stream) bool
	// readUntil returns the time up to which everything that these lines may wait for was read, Unix ns.
	readUntil(w *sweeper, s *Stream, now time.Time) int64
	// expire gives up lines held since before the given time.
	expire(s *Stream, before time.Time)
	// bound gives up the oldest of too many held lines after a chunk, and boundAtLook at a look.
	bound(s *Stream)
	boundAtLook(s *Stream, now time.Time)

	// freeze keeps the state of a checkpoint unchanged until thaw.
	freeze(t *Tailer) (thaw func())
	// due reports whether a changed stream is to be stored now, even if others are not.
	due(s *Stream, now time.Time) bool
	// pause returns the delay after a checkpoint with so many holes.
	pause(holes int) time.Duration
}

const (
	quantum      = 8         // chunks per turn
	onceQuantum  = 1         // of a Once: streams of one job are read side by side
	jointQuantum = 1         // small: lines of a stream ahead of the others wait in memory
	maxHeld      = 1_000_000 // lines of a stream, where records are joint
	maxHeldBytes = 96 << 20  // of all streams, where records are not joint
	// fairEvery: of so many turns one goes to the stream that has waited longest, regardless of its lent lines.
	fairEvery = 64
	// maxCompared bounds the waiting streams compared in choosing the next.
	maxCompared = 1024
	// holesPerSecond bounds the time spent on writing holes: many holes are stored less often. Ten tags cost as much as a hole.
	holesPerSecond = 20_000
)

// apart is the policy of independent streams.
type apart struct{}

func (apart) chunks() int                          { return quantum }
func (apart) share(budget int64) int64             { return budget / 4 } // the rest is for other streams, if a stream has much to read
func (apart) next([]queued, int) int               { return 0 }
func (apart) resumes() int                         { return 0 } // an ack resumes streams (refund)
func (apart) suspends() bool                       { return true }
func (apart) expire(s *Stream, before time.Time)   { s.expireBatch(before) }
func (apart) freeze(*Tailer) (thaw func())         { return func() {} }
func (apart) pause(int) time.Duration              { return 0 }
func (apart) due(s *Stream, now time.Time) bool    { return !now.Before(s.nextStore) }
func (a apart) boundAtLook(s *Stream, _ time.Time) { a.bound(s) }
func (apart) ended(s *Stream) bool                 { return s.current != nil && s.current.isComplete() }
func (apart) readUntil(_ *sweeper, s *Stream, now time.Time) int64 {
	return min(now.UnixNano(), s.caughtUp.Load())
}

// bound gives up the oldest eighth of a stream's held lines when those of all streams take too much memory, and this stream's no less than the average.
func (apart) bound(s *Stream) {
	t := s.t
	all := t.heldBytes.Load()
	if all <= t.maxHeldBytes || s.held.bytes < all/max(1, t.holders.Load()) {
		return
	}
	// Not all: the newest may be completed soon.
	s.giveUp(s.held.oldest(8), "Records that wait for their other half take too much memory; the oldest are given up")
}

// joint is the policy of streams whose lines become records together. See docs/reference/adr/0003-joint-records.md.
type joint struct{}

func (joint) chunks() int { return jointQuantum }

// share returns the whole budget: the stream that is behind the others sends the records of all.
func (joint) share(budget int64) int64 { return budget }

// next prefers the stream with the fewest lines waiting for other streams, of the first maxCompared in the queue: no stream gets far ahead and fills the
// memory. Every fairEvery calls the first in the queue is next, so that no stream waits for ever after files written faster than read.
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

// resumes returns 1: lines already read may wait for other streams, and then no batch is in flight whose ack would resume those streams.
func (joint) resumes() int { return 1 }

// suspends returns false: records know their streams by the handlers, and a handler may count the streams to wait for.
func (joint) suspends() bool { return false }

// ended returns false: the other half of a record may come in another stream.
func (joint) ended(*Stream) bool { return false }

// readUntil returns the time up to which all streams were read: the other half may be in any.
func (joint) readUntil(w *sweeper, s *Stream, now time.Time) int64 {
	return min(now.UnixNano(), s.caughtUp.Load(), w.allCaughtUp(now))
}

// expire repeats until the handler gives up no more lines: lines that leave with one batch may release others.
func (joint) expire(s *Stream, before time.Time) {
	for !s.expireBatch(before) {
	}
}

// bound does nothing: the handlers bound the waiting lines.
func (joint) bound(*Stream) {}

// boundAtLook acts once a second: lent lines stay until their batch is accepted, so too many may remain for a while.
func (joint) boundAtLook(s *Stream, now time.Time) {
	if s.held.n > s.t.maxHeld && now.Sub(s.lastForced) >= time.Second {
		s.lastForced = now
		s.giveUp(s.held.oldest(3), "Too many lines wait for their other half; the oldest third is given up")
	}
}

// freeze keeps the lines of a record from being released in some streams before the checkpoint and in others after.
func (joint) freeze(t *Tailer) (thaw func()) {
	t.settling.Lock()
	return t.settling.Unlock
}

// due returns true: a record has lines of several streams, and the checkpoint has all of them or none.
func (joint) due(*Stream, time.Time) bool { return true }

func (joint) pause(holes int) time.Duration { return time.Duration(holes/holesPerSecond) * time.Second }
