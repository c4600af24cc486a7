//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package ncclreceiver reads the logs of NCCL and related libraries about collectives (NCCL Inspector, NCCL's example profiler, PyTorch's Flight Recorder, VCCL
// telemetry). The records of all ranks about one collective become one trace, which shows the waiting ranks and the late one.
//
// In place of files the receiver can read a Kafka topic (kafka.go, partition.go), with the records read by nccl receivers on other hosts.
//
// In addition, ras.go asks the RAS server of a live job for the state of its ranks.
//
// handler.go reads the lines of one file with the parser of its format, below internal/. internal/collectives joins the records of all files, judges the
// collectives and makes their spans and metrics; batch.go sends them. samples.go takes the logged values over time.
package ncclreceiver
