//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package stepjoinprocessor is the step_join processor: it tells in the trace of each training step, batch of TransferQueue and RPC pass what else happened in
// its time, where the time went, and why it was slow.
//
// Spans pass at once; only their tops get a parent, where the processor adds a root to the trace. read.go takes the facts of a batch; internal/facts keeps them
// and says which belong together; derive.go makes the spans of a group that is closed, with internal/breakdown and internal/why; stepjoin.go closes groups and
// sends; promises.go stores which roots are still to be sent; gpu.go tells of GPUs what internal/gpus keeps of the metrics that pass.
package stepjoinprocessor
