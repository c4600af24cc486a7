// Package flightrecorder makes operations of the dumps of PyTorch's Flight Recorder, which internal/flightrecorder reads: the pickle that PyTorch writes to
// disk, and the JSON of torch._C._distributed_c10d._dump_fr_trace_json() and of the worker's handler dump_nccl_trace_json.
//
// # What an entry is
//
// collective_seq_id counts the kernel launches of a process group, of all operations together; so the numbers of two ranks are comparable, but
// not with the numbers of NCCL Inspector, which counts each operation. Coalesced operations are one launch: their entries share a number and only
// the last, "nccl:coalesced", is ever completed (ProcessGroupNCCL.cpp: endCoalescing). These collectives become one operation with the sum of
// their sizes; sends and receives stay apart and get the state and the times of the last entry.
//
// Gloo sets no state and no time but time_created_ns (ProcessGroupGloo.cpp): what it has retired counts as completed, without an end.
//
// time_created_ns is when the operation was enqueued; time_discovered_… is when a thread that polls found that it had started or completed,
// which is later than it did, by up to a second. So they make no duration; duration_ms, which is between two CUDA events around the kernel and
// thus includes waiting for the other ranks, does. It is there only with TORCH_NCCL_ENABLE_TIMING=1.
package flightrecorder
