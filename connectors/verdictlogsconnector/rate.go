package verdictlogsconnector

import "time"

// burst is the time whose records may leave at once: the verdicts on one slow step come together.
const burst = 10 * time.Second

// rate says when a record may leave. It is a bucket of tokens, full at the start.
type rate struct {
	perSecond, tokens float64
	last              time.Time
}

func newRate(perSecond float64, now time.Time) rate {
	return rate{perSecond: perSecond, tokens: perSecond * burst.Seconds(), last: now}
}

// fill adds what the time since the last call allows. A clock that was set back adds nothing.
func (r *rate) fill(now time.Time) {
	r.give(r.perSecond * max(0, now.Sub(r.last).Seconds()))
	r.last = now
}

// take says whether one more record may leave.
func (r *rate) take() bool {
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// give adds tokens, as many as there is room for.
func (r *rate) give(tokens float64) {
	r.tokens = min(r.tokens+tokens, r.perSecond*burst.Seconds())
}
