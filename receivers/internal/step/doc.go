// Package step turns the records of training logs into spans and gauges: the time of a record, its trace, and the record that it is a part of. The receivers'
// parsers fill a Record; everything else is here, so that all formats have equal spans.
package step
