// Package rpclog reads the log that amoncjj/TSQP's clients (tee_gpu/tee_runner_*.py) keep of their ZeroMQ calls: a title, a table whose header names the
// columns (four layouts are known), a summary at the end; and CSV exports. Reading a call does not allocate.
package rpclog
