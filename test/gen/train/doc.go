// Package train generates training logs: FlagScale, Megatron, JSON lines, Hugging Face, verl, and the trainers of trainers.go, whose logs are rows of numbers.
//
// For training logs, simulated are the steps of one run: every format of a seed tells of the same losses and durations, and one
// printer per format writes them. The truth of a record is taken from the text that was printed, so that a reader who keeps to
// the text agrees exactly.
package train
