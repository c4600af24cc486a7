// Package zmq generates the log of a client of RPCs over ZeroMQ.
//
// For ZeroMQ, simulated are the calls of one client, with times around those of the real logs. A layout is only how they are printed,
// but for what only one of them measures.
package zmq
