//go:generate go tool -modfile=../../tools/go.mod mdatagen metadata.yaml

// Package zmqrpcreceiver reads the performance logs of ZeroMQ clients, a table with a row per call (amoncjj/TSQP tee_gpu, mission seed 002).
// Each call becomes a CLIENT span with its stages below it, each forward pass a trace.
package zmqrpcreceiver
