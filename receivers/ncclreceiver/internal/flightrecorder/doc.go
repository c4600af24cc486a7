// Package flightrecorder makes operations of the dumps of PyTorch's Flight Recorder, read by internal/flightrecorder: the pickle that PyTorch writes to disk,
// and the JSON of torch._C._distributed_c10d._dump_fr_trace_json() and of the worker's handler dump_nccl_trace_json.
//
// # Entries
//
// collective_seq_id counts the kernel launches of a process group, of all operations together; so the numbers of two ranks are comparable, but not with the
// numbers of NCCL Inspector, a count per operation. Coalesced operations are one launch: their entries share a number and only the last, "nccl:coalesced", is
// ever completed (ProcessGroupNCCL.cpp: endCoalescing). Coalesced collectives become one operation with the sum of their sizes; sends and receives stay apart
// and get the state and the times of the last entry.
//
// Gloo sets no state and no time but time_created_ns (ProcessGroupGloo.cpp): a retired entry counts as completed, without an end.
//
// time_created_ns is the time of enqueueing; time_discovered_… is the time when a polling thread saw the start or the completion, up to a second late. So they
// make no duration; duration_ms, between two CUDA events around the kernel, does, including the wait for the other ranks. duration_ms requires
// TORCH_NCCL_ENABLE_TIMING=1.
package flightrecorder
