// Package clock turns the clocks found in logs into nanoseconds since the Unix epoch: zone-less stamps, decimal seconds,
// and monotonic counters that are tied to the wall clock by the lines that print both.
package clock
