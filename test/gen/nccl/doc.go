// Package nccl generates logs about collectives: NCCL Inspector, the example profiler, Flight Recorder, VCCL.
//
// The simulation is of the ranks of one communicator: each computes, arrives, waits for the last, and leaves with the others. The times in a log are by the
// clock of its host, in the units of its format; faults that no clock shows (retries, lost records, slow links) are put into the logs only.
package nccl
