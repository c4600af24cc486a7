// Package decimal reads decimal numbers as programs print them: as floats, as fixed-point numbers that lose no digit, as integers. It does not allocate for
// numbers of usual length. All readers of logs use it.
package decimal
