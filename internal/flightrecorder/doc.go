// Package flightrecorder reads the dumps of PyTorch's Flight Recorder and finds the ranks that lack an operation: pytorch/pytorch, version "2.x",
// torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump, a pickle, and dump_json). A dump is the memory of one rank: the last 2,000 enqueued operations
// (TORCH_FR_BUFFER_SIZE), of all process groups.
//
// # Contents of a dump
//
// An operation is recorded after the return of the enqueueing call: a rank whose last operation is N may be inside the call of N+1. A rank that is frozen, was
// killed or never saw the time-out writes no dump. State and pg_status of NCCL come from a thread that polls. Gloo never sets a state: all its entries stay
// "scheduled", and its last_completed_collective counts works that timed out; the numbers of pg_status do not match collective_seq_id, so numbers of pg_status
// are compared with each other only. Gloo names all groups "" in pg_config, where the last group overwrites the others.
package flightrecorder
