//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainperfprocessor is the train_perf processor: it recomputes, from the child spans, where the time of a
// training function went, keeps what the log reported beside it, and judges both with verdicts that say why.
//
// One file per domain: tq.go is TransferQueue.
package trainperfprocessor
