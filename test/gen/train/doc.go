// Package train generates training logs: FlagScale, Megatron, JSON lines, Hugging Face, verl, and the trainers of trainers.go, whose logs are rows of numbers.
//
// The simulation is of the steps of one run: every format of a seed has the same losses and durations, written by a printer per format. The truth of a record
// is taken from the printed text, to compare exactly with a reader of the text.
package train
