package verdictlogsconnector

import "time"

// burst is the time whose records may leave at once: the verdicts on one slow step come together.
const burst = 10 * time.Second

// rate is a token bucket, full at the start.
type rate struct {
	perSecond, tokens float64
	last              time.Time
}

// newRate is a bucket of burst seconds' tokens.
func newRate(perSecond float64, now time.Time) rate {
	return rate{perSecond: perSecond, tokens: perSecond * burst.Seconds(), last: now}
}

// fill adds the tokens since the last call. A clock set back adds none.
func (r *rate) fill(now time.Time) {
	r.give(r.perSecond * max(0, now.Sub(r.last).Seconds()))
	r.last = now
}

// take reports whether one more record may leave, and takes its token.
func (r *rate) take() bool {
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// give adds tokens, up to the burst.
func (r *rate) give(tokens float64) {
	r.tokens = min(r.tokens+tokens, r.perSecond*burst.Seconds())
}
