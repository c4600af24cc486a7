package trainers

import "strings"

// Part is what a trainer's timer measures.
type Part uint8

// The parts. Timers that are none of these are time of computing, where they stand right below the step.
const (
	Computing Part = iota
	Communicating
	LoadingData
	Checkpointing
	Evaluating
)

// PartOf is which part of a step's time a timer measures, by the names that Megatron-LM (training.py), verl (timing_s) and others use.
func PartOf(name string) Part {
	name = strings.ToLower(name)
	switch {
	case strings.HasSuffix(name, "-sync"), strings.Contains(name, "all-gather"), strings.Contains(name, "all-reduce"), strings.Contains(name, "reduce-scatter"),
		strings.Contains(name, "recv"), strings.Contains(name, "send"):
		return Communicating // and exposed: nothing else goes on meanwhile
	case name == "batch-generator", strings.Contains(name, "data"), strings.Contains(name, "fetch"):
		return LoadingData
	case strings.Contains(name, "checkpoint"), strings.Contains(name, "ckpt"), strings.HasPrefix(name, "save"):
		return Checkpointing
	case strings.Contains(name, "eval"), strings.Contains(name, "test"), strings.Contains(name, "valid"):
		return Evaluating
	}
	return Computing
}
