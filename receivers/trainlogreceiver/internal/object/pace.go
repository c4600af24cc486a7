package object

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Mean is the mean time of a step, in seconds, from the total time of all steps in whole seconds. stated is a mean over other steps, 0 without one in the log.
// 0: unknown.
func Mean(stated, took, steps float64) float64 {
	switch {
	case steps <= 0:
		return 0
	case stated > 0: // the stated mean holds unless the whole seconds contradict it
		return min(max(stated, (took-1)/steps), (took+1)/steps)
	case took >= 10: // fewer whole seconds are too coarse
		return took / steps
	}
	return 0
}

// pace follows the rows of LLaMA-Factory: the job's running time, in whole seconds, and the steps done, including those before a resume.
type pace struct {
	rows          int
	step, elapsed float64
	exact         bool // elapsed is
	whole         bool // the job did all of the steps itself
	mean          float64
}

// row takes a row, and returns the mean time of a step since the row before. The tokens seen divided by the tokens per second are the elapsed
// time, too, and not in whole seconds.
func (p *pace) row(step, elapsed, tokens, throughput float64) float64 {
	exact := false
	if v := tokens / throughput; v >= elapsed-0.1 && v < elapsed+1.1 {
		elapsed, exact = v, true
	} else {
		elapsed += 0.5
	}
	steps, took := step-p.step, elapsed-p.elapsed
	switch {
	case p.rows > 0 && steps == 0 && took == 0: // the same row again
		return p.mean
	case p.rows == 0 || took < 0 || steps < 0:
		*p = pace{rows: 1, step: step, elapsed: elapsed, exact: exact}
		return 0
	}
	if p.rows == 1 { // rows come at regular steps: the first is not later than the first of a job
		p.whole = p.step <= steps
	}
	mean := 0.0
	switch {
	case exact && p.exact && steps > 0:
		mean = took / steps
	case p.whole:
		mean = Mean(elapsed/step, took, steps)
	default:
		mean = Mean(0, took, steps)
	}
	*p = pace{rows: 2, step: step, elapsed: elapsed, exact: exact, whole: p.whole, mean: mean}
	return mean
}

// clockTime reads "0:01:08" and "1 day, 2:03:04", as Python prints a timedelta.
func clockTime(b []byte) (float64, bool) {
	seconds := 0.0
	if days, rest, ok := bytes.Cut(b, []byte(", ")); ok {
		n, _, _ := bytes.Cut(days, []byte(" "))
		v, ok := decimal.Float(n)
		if !ok {
			return 0, false
		}
		seconds, b = v*86400, rest
	}
	clock, parts := decimal.Sexagesimal(b, len(b))
	return seconds + clock, parts == 3
}
