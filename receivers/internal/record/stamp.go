package record

import (
	"bytes"

	"github.com/trainbridge/trainbridge/bridge/line"
)

// lookBack bounds the search for a time before a record.
const lookBack = 256

// LastStamp returns the last time with a date in dashes ("2026-08-21 16:40:00", line.StampLen) in the last 256 bytes of b, or nil without one. Parsers of
// records behind a text that bridge/line does not peel (a progress bar, "[titan]") look for the time of the record in the text before.
func LastStamp(b []byte) []byte {
	b = b[max(0, len(b)-lookBack):]
	for end := len(b); ; {
		// A dash may be the one behind the year of "2026-08-21 …": StampLen decides.
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
