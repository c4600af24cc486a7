package writer

import (
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/logfile"
)

// AppendPython prints a float as format(v, ".<decimals>f") does in Python ('f'), or with ".<decimals>E" ('E').
func AppendPython(b []byte, v float64, verb byte, decimals int) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		text := logfile.NonFinite(v, "nan", "inf")
		if verb == 'E' {
			text = logfile.NonFinite(v, "NAN", "INF")
		}
		return append(b, text...)
	}
	return strconv.AppendFloat(b, v, verb, decimals, 64)
}

// AppendJSONRepr prints a float as Python's json module does.
func AppendJSONRepr(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, logfile.NonFinite(v, "NaN", "Infinity")...)
	}
	return logfile.AppendRepr(b, v)
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
