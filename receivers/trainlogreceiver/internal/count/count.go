// Package count computes the number of a step, over all epochs, from the output of loops: the step within an epoch, and the number of steps of an epoch.
package count

import "math"

// Counter counts the steps of one log. The zero value is ready.
type Counter struct {
	zero bool // the log counts epochs from 0
}

// Iteration returns the number of a step and of all planned steps, over all epochs: step 100 of 600 in epoch 2 of 5 is 700 of 3000. 0: unknown. Without a whole
// epoch, the number of epochs or of the epoch's steps in the log, or beyond the latter, steps may already count over all epochs, and the number is kept. epoch
// is NaN without one in the log; the other arguments are 0 if unknown. Loops that count epochs from 0 and from 1 look alike from epoch 1 on: the earlier lines
// of the log decide.
func (c *Counter) Iteration(epoch, epochs, step, steps float64) (iteration, iterations float64) {
	if epoch == 0 {
		c.zero = true
	}
	wholeEpoch := epoch >= 0 && epoch == math.Trunc(epoch) // false for NaN
	withinEpoch := steps > 0 && epochs > 0 && step <= steps
	if !wholeEpoch || !withinEpoch {
		return step, steps
	}
	if !c.zero {
		epoch--
	}
	return epoch*steps + step, epochs * steps
}

// Clock makes the times of steps from the running time of a run. The zero value is ready.
type Clock struct {
	at, step float64 // running time, s, and number of the step of the record before
	begun    bool    // there was a record
}

// Step takes the running time of a record, s, and the number of the record's step. seconds is the mean time of a step since the record before, of the number of
// those steps. NaN and 0: unknown, for a first record or if the clock or the number has not risen.
func (c *Clock) Step(elapsed, number float64) (seconds, of float64) {
	was := *c
	*c = Clock{elapsed, number, true}
	of = number - was.step
	if !was.begun || !(of > 0) || !(elapsed > was.at) {
		return math.NaN(), 0
	}
	return (elapsed - was.at) / of, of
}

// Guess makes the time of a step from a value called "time" in the log, a step's time or the run's. The zero value takes the value as a step's time, until
// enough rows in a row have risen for a clock.
type Guess struct {
	clock       Clock
	first, last float64 // values: of the first row of the rises, and of the row before
	least, most float64 // rise of a row above the row before
	rises       int     // rows in a row above the row before
	is          bool    // the values are a clock

	seconds, of float64 // the answer to the last value
}

const (
	fewRises  = 3 // with values that doubled, evenly
	manyRises = 7
	even      = 4 // largest ratio of the rises of a clock's rows
)

// Step returns the time of a step, s, from the value of a row and the number of the row's step. of is the number of steps in the mean; NaN: unknown. The same
// row again has the same answer: a parser may read a line again together with the lines after.
func (g *Guess) Step(value, number float64) (seconds, of float64) {
	if value != g.last || !g.clock.begun || number != g.clock.step {
		g.seconds, g.of = g.next(value, number)
	}
	return g.seconds, g.of
}

// next updates the guess from a new row. Values are a clock after many rows that rose, or after a few if they at least doubled in even rises, as times of steps
// hardly do. A falling value is no clock, unless a clock of many rises falls below its first value + 1 s: another run has begun.
func (g *Guess) next(value, number float64) (seconds, of float64) {
	switch {
	case value > g.last && g.last > 0:
		rise := value - g.last
		if g.rises++; g.rises == 1 {
			g.least, g.most = rise, rise
		}
		g.least, g.most = min(g.least, rise), max(g.most, rise)
	case value < g.last && g.is && g.rises >= manyRises && value < g.first+1: // the clock of another run
		*g = Guess{is: true, first: value, rises: manyRises}
	case value < g.last: // no clock falls
		g.is, g.rises, g.first = false, 0, value
	default: // the first row, a rise from 0, or an equal value
		g.rises, g.first = 0, value
	}
	g.last = value
	if !g.is && (g.rises >= manyRises || g.rises >= fewRises && value >= 2*g.first && g.most <= even*g.least) {
		g.is = true
	}
	seconds, of = g.clock.Step(value, number)
	if !g.is {
		return value, 1
	}
	return seconds, of
}
