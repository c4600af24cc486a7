// Package tq generates logs of verl with TransferQueue.
//
// The simulation is of processes with one event loop each: a coroutine runs from one await to the next, reading the clock and logging as the original does.
// Lines of one process never share an instant, and coroutines interleave between awaits only. Every host has its own perf_counter origin. Durations are kept in
// nanoseconds and rounded when printed, as Python does: a printed duration may differ by 1 µs from the difference of printed stamps.
package tq
