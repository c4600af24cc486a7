// Package verl reads the training log lines of verl.
package verl

import "github.com/trainbridge/trainbridge/receivers/internal/record"

// Parse fills rec, which must be empty, with the record that b holds. found false and no reason: b is no line of this format.
// A reason: it looks like one, but is malformed. What it puts into rec points into b.
func Parse(b []byte, rec *record.Record) (found bool, reason string) {
	return false, ""
}

// Key sets what verl calls key.
func Key(key []byte, v float64, rec *record.Record) {}
