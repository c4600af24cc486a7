// Package gen writes the logs of one job in all formats at once, with the truth about each of its steps: a training of reinforcement learning as verl does it,
// whose workers load data, get from TransferQueue, compute and put; an RPC pass while sequences are generated; collectives of all ranks while the actor is
// updated; checkpoints, evaluations, and at the end of the step a line of the training log.
//
// plan.go draws what a step does, rpc.go its calls, timeline.go places it in time, breakdown.go says where the time went, write.go writes the logs, whose lines
// are in tq.go, rpc.go, nccl.go and train.go. All true times of workers are whole ms, those of collectives and RPCs whole µs: as far as the clocks of a job
// are right, its logs say exactly what was. Logs of one kind, with all that their writers can do, are made by test/gen.
package gen
