//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package runeventsreceiver reads logs without records: the standard error of ranks, the output of launchers and schedulers, kernel logs. Their lines about the
// end of a run become spans (bridge/events). In the logs of other receivers, receivers/internal/filereceiver finds the same lines.
package runeventsreceiver
