// Package zmq generates the log of a client of RPCs over ZeroMQ.
//
// The simulation is of the calls of one client, with times near the times of the real logs. A layout is only the form of printing, but for times of a single
// layout.
package zmq
