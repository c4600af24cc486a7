// Package gen writes logs as the originals do, made of a seeded simulation, and beside them the exact ground truth: verl with
// TransferQueue (TQ-TRACE and TQ-DETAIL lines of verl/utils/transferqueue_utils.py @c55ddc26), training logs of several formats, the log
// of a client of RPCs over ZeroMQ, and logs about collectives; and in package run the logs of one job in all of these formats.
// Each domain is a package: what its simulation does stands there.
package gen
