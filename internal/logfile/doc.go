// Package logfile is the output side of the generators of logs, `trainbridge gen run` and the simulators of test/gen: files, stamps, clocks of hosts, and
// numbers in the form of their writers.
package logfile
