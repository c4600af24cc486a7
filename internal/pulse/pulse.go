// Package pulse detects that the steps of a run have stopped, long before a watchdog of 10 to 30 min ends the job.
package pulse

import (
	"slices"
	"time"

	"github.com/trainbridge/trainbridge/internal/stat"
)

const (
	kept   = 64 // remembered beats
	fewest = 5  // with fewer steps nothing is usual

	// A run stalls after 20 usual times between steps, or after one usual time and 10 minutes, whichever is shorter.
	times = 20
	more  = int64(10 * time.Minute)
	// Trainers save and evaluate between steps: neither a few usual times nor a short time is a stall, and no time below twice the longest so far.
	fewestTimes = 3
	shortest    = int64(time.Minute)
	// longestGap bounds the longest gap that counts, so that an hour of evaluation does not hide later stalls.
	longestGap = int64(30 * time.Minute)
)

// Pulse is the rhythm of the steps of a run. The zero value has no step.
type Pulse struct {
	Service string // of the last step
	Number  int64  // of the last step; below 0: the log does not number steps
	Behind  string // deficit of the collectives since then; "": unknown

	ends, came [kept]int64 // ns: of the last steps, by their log and by our clock; step i is at i modulo kept
	n          int         // steps until now
	longest    int64       // ns between two steps without a restart, at most longestGap
	over       bool        // the run has ended, or has died
	reported   bool        // the stall was reported
}

// Step records a step that came now, and reports whether the step is new. number is below 0 if the log does not number steps; planned is the number of steps of
// the run, 0 if unknown; end is when the step ended by its log's clock, Unix ns. A step that ended no later than the last is not recorded.
func (p *Pulse) Step(service string, number, planned, end int64, now time.Time) bool {
	if p.n > 0 {
		gap := end - p.ends[(p.n-1)%kept]
		if gap <= 0 { // of another rank, or read again
			return false
		}
		isNext := number > p.Number || number < 0 // no restart, as far as the log tells
		if isNext && !p.over {
			p.longest = max(p.longest, min(gap, longestGap))
		}
		if number >= 0 && number == p.Number { // the last step again, of another rank, a moment later
			p.n-- // the later end replaces the last beat
		}
	}
	p.ends[p.n%kept], p.came[p.n%kept] = end, now.UnixNano()
	p.n++
	p.Service, p.Number, p.Behind = service, number, ""
	p.over, p.reported = planned > 0 && number >= planned, false
	return true
}

// Over says that the run has ended: finished, or dead for a known reason.
func (p *Pulse) Over() { p.over = true }

// Stall is a run whose steps have stopped.
type Stall struct {
	Since int64 // ns: end of the last step, by its log
	Quiet int64 // ns: time without a step
	Usual int64 // ns: the median time between steps
}

// Stalls reports that no step came for far longer than usual, once until the next step. outage is the end of the last time without reception: such time is not
// counted as quiet.
func (p *Pulse) Stalls(now, outage time.Time) (s Stall, ok bool) {
	if p.over || p.reported || p.n < fewest || !p.Live() {
		return s, false
	}
	s.Since = p.ends[(p.n-1)%kept]
	s.Quiet = now.UnixNano() - max(p.came[(p.n-1)%kept], outage.UnixNano())
	s.Usual = p.usual()
	// No bound alone is enough: see the constants.
	most := max(shortest, fewestTimes*s.Usual, 2*p.longest, min(times*s.Usual, s.Usual+more))
	if s.Quiet < most {
		return s, false
	}
	p.reported = true
	return s, true
}

// Live says whether steps came at the rate of their execution: an old log is read faster, and its end means nothing for the present. No clock is compared with
// another: over the last 4, 16 and 63 steps, the time of their coming is compared with the time between their ends, and one of the three is enough. Steps that
// came in half the time may be live, in batches.
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
