// Package count makes the number of a step, over all epochs, of what loops print: the step of an epoch, and how many an epoch has.
package count

import "math"

// Counter counts the steps of one log. Its zero value is ready.
type Counter struct{ zero bool }

// Iteration is the number of a step and how many are planned; 0: not known. Where the log does not say how many epochs there are, steps may be counted over
// all of them, and the number stays as it is. epoch is NaN where the log has none; the others are 0 where they are not told. Loops that count epochs from 0
// and from 1 look alike from epoch 1 on: what was seen of the log decides.
func (c *Counter) Iteration(epoch, epochs, step, steps float64) (iteration, iterations float64) {
	if epoch == 0 {
		c.zero = true
	}
	if math.IsNaN(epoch) || epoch != math.Trunc(epoch) || !(steps > 0) || !(epochs > 0) || step > steps || epoch < 0 {
		return step, steps
	}
	if !c.zero {
		epoch--
	}
	return epoch*steps + step, epochs * steps
}

// Clock makes the times of steps of how long a run has run. Its zero value is ready.
type Clock struct {
	at, step float64
	begun    bool
}

// Step is the time of a step, s, the mean of so many since the record before; NaN: not known. elapsed is in s, number the step's.
func (c *Clock) Step(elapsed, number float64) (seconds, of float64) {
	was := *c
	*c = Clock{elapsed, number, true}
	if of = number - was.step; !was.begun || !(of > 0) || !(elapsed > was.at) {
		return math.NaN(), 0
	}
	return (elapsed - was.at) / of, of
}

// Guess tells the time of a step from how long a run has run, where a log's name is the same for both ("time"). Its zero value takes the value for a step's
// time, until so many rows in a row have risen that only a clock does.
type Guess struct {
	clock       Clock
	first, last float64
	least, most float64 // by how much a row rose above the row before
	rises       int
	is          bool // a clock

	seconds, of float64 // the answer to the last value
}

const (
	fewRises  = 3 // with values that have doubled, evenly
	manyRises = 7
	even      = 4 // the most that a clock's rows rise, of the least
)

// Step is the time of a step, s, by a value, and of how many steps that is the mean; NaN: not known.
func (g *Guess) Step(value, number float64) (seconds, of float64) {
	if value != g.last || !g.clock.begun || number != g.clock.step { // else a line is read again, with what follows
		g.seconds, g.of = g.next(value, number)
	}
	return g.seconds, g.of
}

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
	default:
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
