package tail

import (
	"time"
)

const (
	// sleepAfter is how long a stream must be idle before it lets go of its handler.
	sleepAfter = 30 * time.Second
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
func (s *Stream) sleeps() bool { return s.t.policy.sleeps() && !s.document }

func (s *Stream) isIdle(now time.Time) bool {
	return now.Sub(s.activeAt) >= sleepAfter || s.current != nil && now.Sub(s.current.mtime) >= oldFile && s.caught.Load() == farFuture.UnixNano()
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
