package facts

import "time"

// source is one receiver of a run, and the time reached.
type source struct {
	until int64     // ns: the latest end sent
	last  time.Time // time of the last input
	ended bool

	// live: the source does not catch up, which means to read old logs, faster than they were written. A live source that is behind has another clock.
	live  bool
	since time.Time // when the pace was last measured
	from  int64     // until, then
}

const (
	pace     = 2 * time.Second // interval of measurement
	catching = 3               // a source catches up if log time goes by this many times as fast as the clock
)

// Advance records that a source has reached the time until, ns, and measures the source's pace.
func (r *Run) Advance(name string, until int64, now time.Time) {
	s := r.sources[name]
	if s == nil {
		s = &source{since: now, from: until}
		r.sources[string([]byte(name))] = s
	}
	s.until, s.last = max(s.until, until), now
	if passed := now.Sub(s.since); passed >= pace {
		s.live = s.until-s.from < catching*int64(passed)
		s.since, s.from = now, s.until
	}
}

// Behind reports whether a source has not reached the time until, although it is reading old logs (not live) and has sent something within wait.
func (r *Run) Behind(until int64, now time.Time, wait time.Duration) bool {
	for _, s := range r.sources {
		if s.until < until && now.Sub(s.last) < wait && !s.live {
			return true
		}
	}
	return false
}

// Ended records the end of a source.
func (r *Run) Ended(name string) {
	if s := r.sources[name]; s != nil {
		s.ended = true
	}
}

// Unread reports whether some source has neither ended nor reached the time until. Unlike for Behind, how long a source is silent does not matter.
func (r *Run) Unread(until int64) bool {
	for _, s := range r.sources {
		if s.until < until && !s.ended {
			return true
		}
	}
	return false
}

// Reached returns how far in time the sources have come.
func (r *Run) Reached() (until int64) {
	for _, s := range r.sources {
		until = max(until, s.until)
	}
	return until
}
