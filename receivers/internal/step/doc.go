// Package step turns the records of training logs into spans and gauges: where a record belongs in time, in which trace, which
// other records it is a part of. The receivers' parsers fill a Record; all else is done here, so that every format comes out alike.
package step
