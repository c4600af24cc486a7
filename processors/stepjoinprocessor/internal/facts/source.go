package facts

import (
	"math"
	"time"
)

// source is one receiver of a run, and the time reached.
type source struct {
	until int64     // ns: the latest end sent
	last  time.Time // time of the last input
	ended bool

	// live: the source does not read old logs, which goes faster than they were written. If a live source has an earlier time than others, its clock differs.
	live  bool
	since time.Time // when the pace was last measured
	from  int64     // until, then
}

const (
	paceInterval  = 2 * time.Second // interval of measurement
	catchUpFactor = 3               // a source catches up if log time goes by this many times as fast as the clock
)

// Advance records that a source has sent spans up to the time until, ns, and measures whether the source is live.
func (r *Run) Advance(name string, until int64, now time.Time) {
	s := r.sources[name]
	if s == nil {
		s = &source{since: now, from: until}
		r.sources[string([]byte(name))] = s
	}
	s.until, s.last = max(s.until, until), now
	if passed := now.Sub(s.since); passed >= paceInterval {
		s.live = s.until-s.from < catchUpFactor*int64(passed)
		s.since, s.from = now, s.until
	}
}

// Behind reports whether some source may still send spans before the time until, ns: it has not reached until, is reading old logs (not live), and has sent
// something within wait.
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

// Unread returns the time from which on some source that has not ended may still send spans, ns. Unlike in Behind, the source may be silent for any time.
func (r *Run) Unread() (from int64) {
	from = math.MaxInt64
	for _, s := range r.sources {
		if !s.ended {
			from = min(from, s.until)
		}
	}
	return from
}

// Reached returns the latest time that any source has reached, ns; 0: no source.
func (r *Run) Reached() (until int64) {
	for _, s := range r.sources {
		until = max(until, s.until)
	}
	return until
}
