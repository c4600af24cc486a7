// Package account says where the wall-clock time of a training run went: every second, from the first line of its logs to the last, is in exactly one state. It
// is made of the steps, checkpoints and evaluations that a training log tells of, by whoever reads the log: finished, or while it is written.
package account
