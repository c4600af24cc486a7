//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainperfprocessor is the train_perf processor: it recomputes where the time of a training function went and how many FLOPs a
// training step made, keeps what the log reported beside it, and judges both with verdicts that say why; so it does with ZeroMQ RPCs. Of
// collectives it judges what the nccl receiver found out across their ranks.
//
// One file per domain: tq.go is TransferQueue; train.go counts training steps, perfmonitor.go compares them with what their log says, series.go
// compares them with the steps before; native.go renames Megatron's own metrics; devices.go notices which GPUs hosts have; zmq.go is ZeroMQ RPCs; nccl.go is collectives.
package trainperfprocessor
