//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package stepjoinprocessor is the step_join processor: it adds to the trace of each training step, TransferQueue batch and RPC pass the concurrent events of
// other logs, a breakdown of the time, and the cause of slowness.
//
// Spans pass at once; only the roots of a trace get a parent, if the processor will add a root. read.go takes the facts of a batch; internal/facts keeps facts
// and assigns them to groups; derive.go makes the spans of a closed group, with internal/breakdown and internal/why; stepjoin.go closes groups and sends;
// journal.go stores facts, promises.go the roots still to be sent; gpu.go adds the GPU values that internal/gpus keeps of passing metrics.
package stepjoinprocessor
