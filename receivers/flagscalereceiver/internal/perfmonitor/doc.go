// Package perfmonitor reads the files of FlagScale's perf_monitor (flagscale/train/perf_monitor/perf_logger.py, of xiaodouzi666/FlagScale-new-feature @e5899478
// and as merged in flagos-ai/FlagScale #1216 @c3e88361): the tables of perf_metrics_*.log and perf_realtime.log, the FLOPS breakdown between their rows, and
// perf_summary_*.json.
package perfmonitor
