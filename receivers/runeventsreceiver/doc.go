//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package runeventsreceiver reads logs that hold no records: the standard error of ranks, the output of launchers and schedulers, kernel logs. What tells in
// them how a run ends becomes spans (bridge/events). In the logs that other receivers read the same lines are found by receivers/internal/filereceiver.
package runeventsreceiver
