//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainperfprocessor is the train_perf processor: it judges spans. It recomputes where the time of a training function went and how many FLOPs a
// training step made, keeps what the log reported beside it, and judges both with verdicts that say why; so it does with ZeroMQ RPCs. Of
// collectives it judges what the nccl receiver found out across their ranks.
//
// Each kind of work is a domain, a package of its own with its config, its memory and its sentences: internal/tq, steps, rpc and collectives. The table in
// trainperf.go lists them, and package domain brings them their spans. What they share: verdict (how a verdict is written), episode (how often a verdict is
// said), lru. On the metrics side devices notices which GPUs hosts have, for the peaks of steps, and nativemetrics renames what Megatron and NCCL send.
package trainperfprocessor
