//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package zmqrpcreceiver reads the performance logs of ZeroMQ clients, a table with a row per call (tee_gpu of amoncjj/TSQP).
// Each call becomes a CLIENT span with its stages below it, each forward pass a trace.
package zmqrpcreceiver
