package trainers

import (
	"slices"
	"strings"
	"unicode"
)

// Part is the kind of work measured by a trainer's timer.
type Part uint8

// The parts. Any other timer directly below the step is computing.
const (
	Computing Part = iota
	Waiting        // for the work of another process, mostly for rollouts: nobody computes here, but for timers within
	Communicating
	LoadingData
	Checkpointing
	Evaluating
)

// transfers are the names of collectives and transfers, as Megatron, PyTorch and NCCL spell them.
var transfers = []string{
	"all-gather", "all_gather", "allgather", "all-reduce", "all_reduce", "allreduce", "reduce-scatter", "reduce_scatter", "reducescatter", "recv", "send",
}

// hasWord reports whether one of the words of a name, between other characters than letters, is wanted: "sync" of "all-grads-sync", not "async".
func hasWord(name string, wanted func(word string) bool) bool {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if wanted(word) {
			return true
		}
	}
	return false
}

func synchronizes(word string) bool { return word == "sync" || word == "barrier" }

// evaluates reports whether a word is of an evaluation. Other words only contain the beginnings: "retrieval", "fastest", "invalid".
func evaluates(word string) bool {
	return strings.HasPrefix(word, "eval") || strings.HasPrefix(word, "test") || strings.HasPrefix(word, "valid")
}

// Together reports whether a timer is of a collective that all ranks leave together: the time of the fastest rank is that of the transfer, any more is waiting
// for the rank that came last. Sends and receives between the stages of a pipeline are none.
func Together(name string) bool {
	name = strings.ToLower(name)
	return PartOf(name) == Communicating && !strings.Contains(name, "send") && !strings.Contains(name, "recv")
}

// Forward reports whether a timer is of the forward pass alone. A rank's gradients are reduced during the backward pass, so the timer of the backward pass has
// the waiting for late ranks too.
func Forward(name string) bool {
	name = strings.ToLower(name)
	return PartOf(name) == Computing && (strings.Contains(name, "forward") || strings.Contains(name, "fwd")) &&
		!strings.Contains(name, "backward") && !strings.Contains(name, "bwd")
}

// WholeOf is the name of the timer that runs over all micro batches of a step, for the timer of the last one, whose time it has too: DeepSpeed logs both
// "bwd_allreduce" and "bwd_allreduce_microstep".
func WholeOf(name string) (whole string, ok bool) { return strings.CutSuffix(name, "_microstep") }

// PartOf is the part of a step's time measured by a timer, by the names in Megatron-LM (training.py), verl (timing_s) and others. The first case that fits
// counts; any other name is Computing.
func PartOf(name string) Part {
	name = strings.ToLower(name)
	switch {
	case hasWord(name, synchronizes), strings.HasPrefix(name, "comm_"), strings.HasPrefix(name, "communication"),
		slices.ContainsFunc(transfers, func(of string) bool { return strings.Contains(name, of) }):
		return Communicating // and exposed: no other work at the same time
	case name == "train_wait", strings.HasPrefix(name, "wait_"): // slime; verl's one_step_off_policy (wait_prev_gen)
		return Waiting
	case name == "batch-generator", strings.Contains(name, "data") && !strings.Contains(name, "parallel"), strings.Contains(name, "fetch"):
		return LoadingData
	case strings.Contains(name, "checkpoint"), strings.Contains(name, "ckpt"), strings.HasPrefix(name, "save"):
		return Checkpointing
	case hasWord(name, evaluates):
		return Evaluating
	}
	return Computing
}
