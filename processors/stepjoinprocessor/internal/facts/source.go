package facts

import "time"

// source is one receiver of a run, and how far in time it has come.
type source struct {
	until int64     // ns: the latest end that it has sent
	last  time.Time // when it sent something
	ended bool

	// Whether it catches up: it reads old logs, faster than they were written. One that does not, and is behind, has another clock.
	live  bool
	since time.Time
	from  int64 // until, then
}

const (
	pace     = 2 * time.Second // how often it is measured
	catching = 3               // times as fast as time goes by
)

// Heard notes how far in time a source has come.
func (r *Run) Heard(name string, until int64, now time.Time) {
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

// Behind says whether a source that reads old logs has not yet come to a time.
func (r *Run) Behind(until int64, now time.Time, wait time.Duration) bool {
	for _, s := range r.sources {
		if s.until < until && now.Sub(s.last) < wait && !s.live {
			return true
		}
	}
	return false
}

// Ended notes that nothing more comes of a source.
func (r *Run) Ended(name string) {
	if s := r.sources[name]; s != nil {
		s.ended = true
	}
}

// Unread says whether a source that has not ended has not come to a time, whatever time has passed.
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
