// Package logfile is what all generators write with: log files that rotate, the truth beside them, options, stamps, and numbers printed as Python prints them.
package logfile
