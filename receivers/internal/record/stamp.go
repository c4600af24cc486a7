package record

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
)

// lookBack bounds the search for a time before a record.
const lookBack = 256

// LastStamp returns the last date and time in the end of b, in a form of clock.Stamps, or nil. Used for records after a text that bridge/line does not peel: a
// progress bar, "[titan]".
func LastStamp(b []byte) []byte {
	b = b[max(0, len(b)-lookBack):]
	for end := len(b); ; {
		// The year's dash comes last when looking from the end; StampLen sorts out the rest.
		i := bytes.LastIndexByte(b[:end], '-')
		if i < 4 {
			return nil
		}
		if n := line.StampLen(b[i-4:]); n > 0 {
			return b[i-4 : i-4+n]
		}
		end = i
	}
}
