// Package gen writes logs as the originals do, made of a seeded simulation, and beside them the exact ground truth: verl with
// TransferQueue (TQ-TRACE and TQ-DETAIL lines of verl/utils/transferqueue_utils.py @c55ddc26), training logs of several formats, the log
// of a client of RPCs over ZeroMQ, and logs about collectives.
//
// For TransferQueue, simulated are processes with one event loop each: a coroutine runs from one await to the next, reading the clock
// and logging as the original does, so that lines of one process never share an instant and coroutines interleave
// between awaits only. Every host has its own perf_counter origin. Durations are kept in nanoseconds and rounded when
// printed, as Python does, so that a printed duration may differ by 1 µs from the difference of printed stamps.
//
// For training logs, simulated are the steps of one run: every format of a seed tells of the same losses and durations, and one
// printer per format writes them. The truth of a record is taken from the text that was printed, so that a reader who keeps to
// the text agrees exactly.
//
// For ZeroMQ, simulated are the calls of one client, with times around those of the real logs. A layout is only how they are printed,
// but for what only one of them measures.
//
// For collectives, simulated are the ranks of one communicator: each computes, arrives, waits for the last, and leaves with the others. What a log says of that
// is by the clock of its host, in the units of its format; faults that no clock shows (retries, lost records, slow links) are put into the logs only.
package gen
