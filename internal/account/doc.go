// Package account divides the wall-clock time of a training run: every second, from the first line of its logs to the last, is in exactly one state. The input
// is the steps, checkpoints and evaluations of a training log, by any reader of the log: of a finished or a growing log.
package account
