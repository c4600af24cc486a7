// Package deepspeed reads the training log lines of deepspeed.
package deepspeed

import "github.com/trainbridge/trainbridge/receivers/internal/record"

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. What it puts into rec points into b.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	return false, ""
}
