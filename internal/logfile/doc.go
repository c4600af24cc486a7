// Package logfile is what generators of logs write with, `trainbridge gen run` and the simulators of test/gen: files, stamps, clocks of hosts, and numbers
// as their writers print them.
package logfile
