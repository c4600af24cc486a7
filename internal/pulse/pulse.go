// Package pulse tells when the steps of a run stop coming, long before a watchdog of 10 to 30 min ends the job.
package pulse

import (
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	kept   = 64 // beats that are remembered
	fewest = 5  // below so many nothing is usual

	// A run stalls after so many usual times between steps, or so much more than one where the usual times are long.
	times = 20
	more  = int64(10 * time.Minute)
	// Trainers save and evaluate between steps: neither so few usual times nor so short a time is a stall, and none that is not twice the longest so far.
	fewestTimes = 3
	shortest    = int64(time.Minute)
	// An hour of evaluation hides stalls no longer than so.
	longestGap = int64(30 * time.Minute)
)

// Pulse is how regularly the steps of a run come. Its zero value has heard of none.
type Pulse struct {
	Service string // of the last step
	Number  int64  // of the last step; below 0: the log does not number steps
	Behind  string // what the collectives since then lack; "": nothing is known

	ends, came [kept]int64 // ns: of the last steps, by their log and by our clock
	n          int         // steps
	longest    int64       // ns between two steps
	over       bool        // the run has ended, or has died
	told       bool        // that it stalls
}

// Step is a step that came now, and ended at end by its log's clock, ns. planned is how many the run has; 0: not known. false: it came before.
func (p *Pulse) Step(service string, number, planned, end int64, now time.Time) bool {
	if p.n > 0 {
		gap := end - p.ends[(p.n-1)%kept]
		if gap <= 0 { // of another rank, or read again
			return false
		}
		if number > p.Number && !p.over { // no restart
			p.longest = max(p.longest, min(gap, longestGap))
		}
	}
	p.ends[p.n%kept], p.came[p.n%kept] = end, now.UnixNano()
	p.n++
	p.Service, p.Number, p.Behind = service, number, ""
	p.over, p.told = planned > 0 && number >= planned, false
	return true
}

// Over says that the run has said its last word: that it is done, or why it died.
func (p *Pulse) Over() { p.over = true }

// Stall is a run whose steps have stopped.
type Stall struct {
	Since int64 // ns: when the last step ended, by its log
	Quiet int64 // ns: for how long no step came
	Usual int64 // ns: the median time between steps
}

// Stalls says, once, that no step came for far longer than usual. deaf is until when nothing could be heard.
func (p *Pulse) Stalls(now, deaf time.Time) (s Stall, ok bool) {
	if p.over || p.told || p.n < fewest || !p.Live() {
		return s, false
	}
	s.Since = p.ends[(p.n-1)%kept]
	s.Quiet = now.UnixNano() - max(p.came[(p.n-1)%kept], deaf.UnixNano())
	s.Usual = p.usual()
	most := max(shortest, fewestTimes*s.Usual, 2*p.longest, min(times*s.Usual, s.Usual+more))
	if s.Quiet < most {
		return s, false
	}
	p.told = true
	return s, true
}

// Live says whether steps came as fast as they were done: an old log is read faster, and its end says nothing of now. No clock is compared with another.
func (p *Pulse) Live() bool {
	last := p.n - 1
	for _, back := range []int{fewest - 1, kept / 4, kept - 1} {
		if back > last {
			break
		}
		done, came := p.ends[last%kept]-p.ends[(last-back)%kept], p.came[last%kept]-p.came[(last-back)%kept]
		if 2*came >= done {
			return true
		}
	}
	return false
}

// usual is the median time between steps, ns.
func (p *Pulse) usual() int64 {
	var gaps []int64
	for i := max(1, p.n-kept+1); i < p.n; i++ {
		gaps = append(gaps, p.ends[i%kept]-p.ends[(i-1)%kept])
	}
	slices.Sort(gaps)
	return int64(stat.Median(gaps))
}
