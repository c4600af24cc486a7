//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package ncclreceiver reads what NCCL and its relatives write about collectives (NCCL Inspector, NCCL's example profiler, PyTorch's Flight Recorder, VCCL
// telemetry). The records of all ranks about one collective become one trace, which says who waited for whom.
//
// handler.go reads the lines of one file, one of the parsers below internal/ knows its format. assemble.go joins the records of all files, close.go decides when a
// collective leaves and judges it, batch.go makes spans of it, metrics.go metrics.
package ncclreceiver
