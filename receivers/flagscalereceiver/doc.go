//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package flagscalereceiver reads the logs of FlagScale jobs: the files of perf_monitor (perf_metrics_*.log, perf_realtime.log, perf_summary_*.json) and
// Megatron's lines in the output of the job. Each record becomes a train.step span, and gauges.
package flagscalereceiver
