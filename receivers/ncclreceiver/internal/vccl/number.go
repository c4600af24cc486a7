package vccl

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/bridge/clock"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// The reasons of rejected lines.
const (
	reasonNotJSON     = "not_json"
	reasonTooLong     = "too_long"     // an object over more than maxObject
	reasonNoOperation = "no_operation" // a record without its operation
	reasonNoTime      = "no_time"      // a record without a time and a duration
	reasonNumber      = "number"       // a value that is no number, or absurdly large
	reasonNegative    = "negative"
	reasonNoHeader    = "no_header"
	reasonColumnCount = "column_count" // a truncated row
	reasonNotARow     = "not_a_row"
)

// The reasons of ignored lines.
const (
	ignoredBlank    = "blank"
	ignoredBracket  = "bracket"
	ignoredHeader   = "header"
	ignoredOverflow = "overflow" // VCCL's word for a time too large to pack
)

// absent reports whether a value is missing: an empty cell, null, or a number that could not be computed.
func absent(b []byte) bool {
	switch string(b) {
	case "", "null", "None", "NaN", "nan":
		return true
	}
	return false
}

// integer reads an integer, also "4194304.0" and "4.194304e+06", as pandas and printf may write it.
func integer(b []byte) (int64, bool) {
	digits, neg := bytes.CutPrefix(b, []byte("-"))
	if v, n := decimal.Integer(digits, 18); n > 0 && n == len(digits) {
		if neg {
			return -v, true
		}
		return v, true
	}
	f, ok := decimal.Float(b)
	if !ok || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// micros reads decimal microseconds ("1250.5") as ns. Digits below a nanosecond are cut off. false: no number, or one out of range.
func micros(b []byte) (int64, bool) {
	v, err := decimal.Fixed9(b)
	switch {
	case err == nil:
		return v / 1e6, true // v has 9 decimals of µs, ns are 3 of them
	case errors.Is(err, decimal.ErrRange): // beyond 2.5 hours
		if f, ok := decimal.Float(b); ok && math.Abs(f) < math.MaxInt64/1000 {
			return int64(f * 1000), true
		}
	}
	return 0, false
}

// signed is decimal.Unsigned, but accepts a minus sign, for numbers within int64.
func signed(b []byte, i int) (v int64, end int) {
	neg := i < len(b) && b[i] == '-'
	from := i
	if neg {
		i++
	}
	u, end := decimal.Unsigned(b, i)
	if end == i || u > math.MaxInt64 {
		return 0, from
	}
	if neg {
		return -int64(u), end
	}
	return int64(u), end
}

// digits14 reports whether b begins with 14 digits, as VCCL's local time is, and then sep.
func digits14(b []byte, sep byte) bool {
	if len(b) < 15 || b[14] != sep {
		return false
	}
	_, n := decimal.Digits(b[:14], 0)
	return n == 14
}

// compactStamp reads VCCL's local time at the beginning of b, "20260108180000" (strftime %Y%m%d%H%M%S), as Unix ns. b has passed digits14.
func compactStamp(s *clock.Stamps, b []byte) (int64, bool) {
	text := [19]byte{4: '-', 7: '-', 10: ' ', 13: ':', 16: ':'}
	copy(text[0:], b[0:4])
	copy(text[5:], b[4:6])
	copy(text[8:], b[6:8])
	copy(text[11:], b[8:10])
	copy(text[14:], b[10:12])
	copy(text[17:], b[12:14])
	at, err := s.Parse(text[:])
	return at, err == nil
}

// appendHash writes a 64-bit hash as NCCL Inspector does.
func appendHash(b []byte, v uint64) []byte { return strconv.AppendUint(append(b, "0x"...), v, 16) }

// trim removes blanks at both ends, a byte order mark, and the zeros that a writer leaves before its row after another has truncated the file.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] <= ' ') {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	if len(b) >= 3 && b[0] == 0xef && b[1] == 0xbb && b[2] == 0xbf {
		return trim(b[3:])
	}
	return b
}
