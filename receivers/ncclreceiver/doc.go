//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package ncclreceiver reads what NCCL and its relatives write about collectives (NCCL Inspector, NCCL's example profiler, PyTorch's Flight Recorder, VCCL
// telemetry). The records of all ranks about one collective become one trace, which says who waited for whom.
//
// In place of files it also reads a Kafka topic (kafka.go, partition.go), with the records that such receivers on other hosts have read.
//
// Beside either, ras.go asks the RAS server of a live job how its ranks stand.
//
// handler.go reads the lines of one file with the parser of its format, below internal/. internal/collectives joins the records of all files,
// judges the collectives and makes spans and metrics of them; batch.go sends these. samples.go takes the values over time that logs state themselves.
package ncclreceiver
