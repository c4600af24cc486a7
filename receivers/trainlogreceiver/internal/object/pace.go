package object

import (
	"bytes"

	"github.com/trainbridge/trainbridge/internal/decimal"
)

// Mean returns the mean time of steps, s, 0 if unknown. took is their time together, known in whole seconds: true within one. stated is a mean over other steps
// of the job, 0 without one in the log.
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

// pace follows the rows of LLaMA-Factory and ms-swift: the job's running time, in whole seconds, and the steps done, including those before a resume.
type pace struct {
	rows          int     // rows so far: 0, 1, or 2 for more
	step, elapsed float64 // of the row before: steps done, and the running time, s
	exact         bool    // elapsed is exact, not of whole seconds
	whole         bool    // the job did all of the steps itself, from 0
	mean          float64 // the answer to the row before, s
}

// addRow records a row, and returns the mean time of a step since the row before, s; 0: unknown. elapsed is the running time in whole seconds. seen (tokens)
// divided by speed (per second) is the running time, too, with a fraction: this time is used if the whole seconds agree. A job that did all steps itself also
// has elapsed/step, the mean so far.
func (p *pace) addRow(step, elapsed, seen, speed float64) float64 {
	exact := false
	// Elapsed is cut to whole seconds, or rounded (ms-swift since 2026); 0.1 s for the rounded speed.
	if bySpeed := seen / speed; bySpeed >= elapsed-0.6 && bySpeed < elapsed+1.1 {
		elapsed, exact = bySpeed, true
	} else {
		elapsed += 0.5 // the middle of the second
	}
	steps, took := step-p.step, elapsed-p.elapsed
	switch {
	case p.rows > 0 && steps == 0 && took == 0: // the same row again
		return p.mean
	case p.rows == 0 || took < 0 || steps < 0: // the first row of a job
		*p = pace{rows: 1, step: step, elapsed: elapsed, exact: exact}
		return 0
	}
	if p.rows == 1 { // rows come every n steps: a first row at step n or before means that the job began at step 0
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

// clockTime reads "0:01:08" and "1 day, 2:03:04", as Python prints a timedelta, and ms-swift's "1d 2h 3m 4s", in s. It returns false for another text.
func clockTime(b []byte) (float64, bool) {
	seconds, n := decimal.Duration(b)
	if n > 0 && n == len(b) {
		return seconds, true
	}
	seconds = 0
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
