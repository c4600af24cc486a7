//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package trainperfprocessor is the train_perf processor: it judges spans. It recomputes the time shares of TransferQueue functions, the FLOPs of training
// steps and the parts of ZeroMQ RPCs, keeps the log's own numbers beside its results, and gives verdicts with a reason. For collectives, it judges the nccl
// receiver's comparison of ranks.
//
// Each kind of work is a domain, a package with its own config, memory and sentences: internal/tq, steps, rpc and collectives. The table in trainperf.go lists
// the domains; package domain dispatches spans to them. Shared packages: verdict (how a verdict is written), episode (how often a verdict is repeated), lru.
// For metrics, devices records the GPUs of each host, for the peaks of steps, and nativemetrics renames the native metrics of Megatron and NCCL.
package trainperfprocessor
