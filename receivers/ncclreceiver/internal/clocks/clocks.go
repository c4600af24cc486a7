// Package clocks estimates how far hosts' clocks are apart from when collectives end.
package clocks

// End is when a collective ended for one rank, by its host's clock.
type End struct {
	Clock int32 // the host: a small number, 0 … MaxClocks−1
	At    int64 // Unix ns
}

// Estimator holds what is known about the clocks. The zero value is ready; it is not safe for concurrent use.
type Estimator struct{ first int32 }

// Observe takes the ends of one collective that all ranks leave together.
func (e *Estimator) Observe(ends []End) {}

// Offset is how far a clock is ahead of the reference's when it shows at (Unix ns): at − offset is what the reference showed then.
func (e *Estimator) Offset(clock int32, at int64) (offset, uncertainty float64, ok bool) {
	return 0, 0, false
}

// Reference is the first clock seen; −1: none.
func (e *Estimator) Reference() int32 { return e.first }
