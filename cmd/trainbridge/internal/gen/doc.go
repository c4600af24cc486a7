// Package gen writes the logs of one job in all formats at once, with the truth about each step: a verl-like reinforcement learning job, whose workers load
// data, get from TransferQueue, compute and put; an RPC pass while sequences are generated; collectives of all ranks during the actor's update; checkpoints,
// evaluations, and at the end of the step a line of the training log.
//
// plan.go draws the durations of a step, rpc.go its calls, timeline.go places the step in time, breakdown.go sums up the time, write.go writes the logs, whose
// lines are in tq.go, rpc.go, nccl.go and train.go. All true times of workers are whole ms, of collectives and RPCs whole µs: as far as the clocks of a job
// are right, its logs are exact. test/gen makes logs of a single kind, with all variants of their writers.
package gen
