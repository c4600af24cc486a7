package logfile

import (
	"bytes"
	"math"
	"strconv"
)

// AppendPython prints a float as format(v, ".<decimals>f") does in Python ('f'), or with ".<decimals>E" ('E').
func AppendPython(b []byte, v float64, verb byte, decimals int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		text := NonFinite(v, "nan", "inf")
		if verb == 'E' {
			text = NonFinite(v, "NAN", "INF")
		}
		return append(b, text...)
	}
	return strconv.AppendFloat(b, v, verb, decimals, 64)
}

// NonFinite is the text of a float that is not finite, in the given words for NaN and infinity.
func NonFinite(v float64, nan, inf string) string {
	switch {
	case math.IsNaN(v):
		return nan
	case v < 0:
		return "-" + inf
	}
	return inf
}

// AppendRepr prints a float as Python's repr: the shortest digits, a point always, an exponent below 1e-4 and from 1e16.
func AppendRepr(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, NonFinite(v, "nan", "inf")...)
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if bytes.IndexByte(b[from:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// AppendJSONRepr prints a float as Python's json module does.
func AppendJSONRepr(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, NonFinite(v, "NaN", "Infinity")...)
	}
	return AppendRepr(b, v)
}

// PadLeft moves the text from index from on to the right end of a column.
func PadLeft(b []byte, from, width int) []byte {
	n := width - (len(b) - from)
	if n <= 0 {
		return b
	}
	end := len(b)
	b = AppendSpaces(b, n)
	copy(b[from+n:], b[from:end])
	for i := from; i < from+n; i++ {
		b[i] = ' '
	}
	return b
}

// PadRight fills a column that began at index from with blanks.
func PadRight(b []byte, from, width int) []byte { return AppendSpaces(b, width-(len(b)-from)) }

// AppendSpaces appends n blanks.
func AppendSpaces(b []byte, n int) []byte {
	for ; n > 0; n-- {
		b = append(b, ' ')
	}
	return b
}
