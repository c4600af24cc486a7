// Package trainers knows the content of the step time in each trainer's log, by the trainer's source code. docs/reference/trainers.md cites repository, commit,
// file and line for each row.
package trainers

import "github.com/trainbridge/trainbridge/spans"

// Place is the position of a part of the training loop relative to the step time of the log.
type Place uint8

const (
	// Unknown where the source differs by version or script, or the writer is unknown. Parts of a record that are together longer than its step lie between.
	Unknown Place = iota
	// Within the step time. Work after a step's line is within the step time of the next.
	Within
	// Between two steps: the gap between two windows holds the part.
	Between
)

// Loop is the positions of the parts of a training loop.
type Loop struct {
	Checkpoint, Evaluation, Data Place
}

// Beside says whether the checkpoints and evaluations of a record (beside) lie between two steps: the record's step is too short for all parts, or for these
// alone. others are the remaining parts directly below the step. All in the same unit.
func Beside(step, others, beside float64) bool {
	room := 1.01 * step // 1 %: printed numbers are rounded
	return beside > room || beside > 0 && others <= room && others+beside > room
}

// Of returns the position of the parts for a source (spans.AttrSource) and a kind of duration (spans.AttrStepDurationKind, "" for spans.DurationStep). Steps
// with the distance of two lines as their time (spans.DurationInterval) hold everything but evaluations and checkpoints of stated length, which the receiver
// subtracts. The mean shown by a bar is of the wall clock, and holds everything. For a source not listed, all positions are Unknown.
func Of(source, kind string) Loop {
	if kind == spans.DurationInterval {
		return Loop{Checkpoint: Between, Evaluation: Between, Data: Within}
	}
	all := Loop{Checkpoint: Within, Evaluation: Within, Data: Within}
	timed := Loop{Checkpoint: Between, Evaluation: Between, Data: Within} // a timer runs around the step alone, and batches are drawn in the step
	bar := kind == spans.DurationMean
	switch source {
	case "megatron", "nanochat":
		return timed
	case "torchtitan": // no step time: the distance of two lines, without checkpoints that have a line of their own
		return timed
	case "nemo", "openrlhf":
		if bar {
			return all
		}
		return timed
	case "deepspeed": // iter time, of the pipeline engine; other lines have no step time
		return timed
	case "nanogpt", "hf", "lightning", "torchtune", "slime":
		return all
	case "litgpt": // pretrain.py draws the batch before the timer starts, finetune/*.py behind
		return Loop{Checkpoint: Between, Evaluation: Between}
	case "verl": // until 0.5 testing and save_checkpoint lay within timing_s/step, from 0.6 on between
		return Loop{Data: Between}
	case "composer": // SpeedMonitor leaves evaluations out, the bar does not
		return Loop{Checkpoint: Within, Data: Within}
	}
	return Loop{}
}

// Single reports whether the step time of a source is that of the logged step alone, where the log has a line for several steps: other sources state a mean of
// these, or leave open what they state.
func Single(source string) bool { return source == "nanogpt" || source == "litgpt" }
