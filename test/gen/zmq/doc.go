// Package zmq generates the log of a client of RPCs over ZeroMQ.
//
// For ZeroMQ, simulated are the calls of one client, with times near the times of the real logs. A layout is only how calls are printed,
// but for times that only one layout has.
package zmq
