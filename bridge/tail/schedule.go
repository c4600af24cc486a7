package tail

import "container/heap"

// The scheduler: streams with possible work wait in ready; each worker drains one stream at a time. A worker never waits for the consumer: a stream without
// budget is left until one of its batches, or of the others', is settled.

// work drains ready streams, one after the other, until Shutdown. Each worker is a goroutine with this loop.
func (t *Tailer) work() {
	var buf []byte
	for {
		t.mu.Lock()
		for (len(t.ready) == 0 || !t.swept) && !t.stopping {
			t.wakeup.Wait()
		}
		if t.stopping {
			t.mu.Unlock()
			return
		}
		s := t.pop()
		t.mu.Unlock()
		t.turn(s, &buf)
		if cap(buf) > 4*chunkBytes {
			buf = nil // a giant line came by
		}
	}
}

// pop removes the next ready stream from the queue and returns it. The caller holds t.mu.
func (t *Tailer) pop() *Stream {
	s := t.next(&t.ready)
	s.sched = running
	return s
}

// put puts a stream into a queue, t.ready or t.waiting. The caller holds t.mu.
func (t *Tailer) put(queue *[]queued, s *Stream) {
	if t.isSideBySide() {
		heap.Push((*sideBySide)(queue), queued{s, s.share()})
		return
	}
	*queue = append(*queue, queued{Stream: s})
}

// next removes the next stream from a queue that is not empty, and returns it. The caller holds t.mu.
func (t *Tailer) next(queue *[]queued) *Stream {
	if t.isSideBySide() {
		return (*sideBySide)(queue).next()
	}
	t.picked++
	all := *queue
	at := t.policy.next(all, t.picked)
	s := all[at].Stream
	copy(all[1:at+1], all[:at]) // those before move up by one, in their order
	all[0] = queued{}
	*queue = all[1:]
	return s
}

// isSideBySide reports whether the queues are heaps by the share read (sideBySide): of a Once, whose streams are independent.
func (t *Tailer) isSideBySide() bool { return t.final && !t.set.Joint }

// order puts the queues of a Once in order again when files were found, or found to have grown: their shares read have changed.
func (t *Tailer) order() {
	if !t.isSideBySide() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sideBySide(t.ready).order()
	sideBySide(t.waiting).order()
}

// turn drains a stream once, and makes the stream ready again if there is more to read. buf is the worker's buffer.
func (t *Tailer) turn(s *Stream, buf *[]byte) {
	again := s.drain(buf)
	t.mu.Lock()
	defer t.mu.Unlock()
	if again || s.sched == rerun {
		s.sched = ready
		t.put(&t.ready, s)
		t.wakeup.Signal()
	} else {
		s.sched = idle
	}
	t.resume(t.policy.resumes())
}

// schedule makes a stream ready.
func (t *Tailer) schedule(s *Stream) {
	t.mu.Lock()
	t.scheduleLocked(s)
	t.mu.Unlock()
}

// scheduleLocked is schedule for a caller that holds t.mu.
func (t *Tailer) scheduleLocked(s *Stream) {
	switch s.sched {
	case idle:
		s.sched = ready
		t.put(&t.ready, s)
		t.wakeup.Signal()
	case running:
		s.sched = rerun
	case ready, rerun:
	}
}

// park puts the stream of a Once aside until a compressed file is closed. For other Tailers it does nothing, because the sweeper looks at the stream again.
func (t *Tailer) park(s *Stream) {
	if !t.final {
		return
	}
	t.mu.Lock()
	t.parked = append(t.parked, s)
	t.mu.Unlock()
}

// unpark makes the first parked stream ready, and reports whether one was parked.
func (t *Tailer) unpark() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.parked) == 0 {
		return false
	}
	s := t.parked[0]
	t.parked = t.parked[1:]
	t.scheduleLocked(s)
	return true
}

// kick has the sweeper look at a stream now.
func (t *Tailer) kick(s *Stream) {
	t.mu.Lock()
	if !s.kicked {
		s.kicked = true
		t.kicked = append(t.kicked, s)
	}
	t.mu.Unlock()
	t.wakeSweeper()
}

// wakeSweeper has the sweeper begin its next turn now.
func (t *Tailer) wakeSweeper() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// isBelowShare reports whether a stream has less in flight than a single stream may have of the budget.
func (t *Tailer) isBelowShare(s *Stream) bool {
	return s.inFlight < t.policy.share(t.cfg.MaxInFlightBytes)
}

// mayRead returns the budget for a stream's next batch, in bytes. 0: the budget, or the stream's share of the budget, is used up. Then the stream is blocked,
// and is in t.waiting, until a batch of its own is settled (refund), or other batches are settled and the stream has its turn (resume).
func (t *Tailer) mayRead(s *Stream) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	hasBudget := t.inFlight < t.cfg.MaxInFlightBytes
	if hasBudget && t.isBelowShare(s) {
		return t.chunk
	}
	s.blocked = true
	if !s.inWaiting {
		s.inWaiting = true
		t.put(&t.waiting, s)
	}
	return 0
}

// charge takes what a batch costs out of the budget.
func (t *Tailer) charge(s *Stream, b *lineBatch) {
	t.mu.Lock()
	t.inFlight += b.bytes
	t.flyingRecords += b.records
	s.inFlight += b.bytes
	t.mu.Unlock()
}

// refund returns the budget of a stream's settled batch. The stream is resumed if blocked, and stays in t.waiting until resume removes it; of the other streams
// in t.waiting a few are resumed.
func (t *Tailer) refund(s *Stream, bytes, records int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight -= bytes
	t.flyingRecords -= records
	s.inFlight -= bytes
	if s.blocked {
		s.blocked = false
		t.scheduleLocked(s)
	}
	t.resume(4) // if all were resumed, most would find the budget used up again
}

// resume takes streams out of t.waiting and resumes up to n of them, until the queue is empty or the budget is used up. A stream that is not blocked any more
// was resumed by refund, and only leaves the queue. A blocked stream without room in its share of the budget has batches in flight: it leaves the queue too,
// and refund resumes it when the next of these batches is settled. The caller holds t.mu.
func (t *Tailer) resume(n int) {
	for n > 0 && len(t.waiting) > 0 && t.inFlight < t.cfg.MaxInFlightBytes {
		s := t.next(&t.waiting)
		s.inWaiting = false
		if !s.blocked || !t.isBelowShare(s) {
			continue
		}
		s.blocked = false
		t.scheduleLocked(s)
		n--
	}
}
