// Package flightrecorder reads the dumps of PyTorch's Flight Recorder and says who did not do what: pytorch/pytorch, version "2.x",
// torch/csrc/distributed/c10d/FlightRecorderDetail.hpp (dump, a pickle, and dump_json). A dump is what one rank remembers: the last 2,000 operations that it
// enqueued (TORCH_FR_BUFFER_SIZE), of all its process groups.
//
// # What a dump can say
//
// An operation is recorded after the call that enqueued it returned: a rank whose last operation is N may stand inside the call of N+1. A rank that is frozen,
// was killed or never saw the time-out writes no dump. State and pg_status of NCCL come from a thread that polls. Gloo never sets a state: all its entries stay
// "scheduled", and its last_completed_collective counts works that timed out; both count other things than collective_seq_id does, so numbers of pg_status are
// compared with each other only. Gloo names all groups "" in pg_config, where the last one made wins.
package flightrecorder
