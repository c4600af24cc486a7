package facts

import "time"

// source is one receiver of a run, and the time reached.
type source struct {
	until int64     // ns: the latest end sent
	last  time.Time // time of the last input
	ended bool

	// Whether the source catches up: reading old logs, faster than they were written. A source behind that does not catch up has another clock.
	live  bool
	since time.Time
	from  int64 // until, then
}

const (
	pace     = 2 * time.Second // interval of measurement
	catching = 3               // times as fast as time goes by
)

// Advance records the time reached by a source.
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

// Behind says whether a source that reads old logs has not yet reached a time.
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

// Unread says whether a source that has not ended has not reached a time, after any delay.
func (r *Run) Unread(until int64) bool {
	for _, s := range r.sources {
		if s.until < until && !s.ended {
			return true
		}
	}
	return false
}

// Reached is how far in time the sources have come.
func (r *Run) Reached() (until int64) {
	for _, s := range r.sources {
		until = max(until, s.until)
	}
	return until
}
