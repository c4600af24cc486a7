package verdict

import (
	"math"
	"strconv"
)

// AppendPercent writes a share as a percentage with one decimal, without a trailing ".0": thresholds are mostly round.
func AppendPercent(b []byte, share float64) []byte {
	return append(AppendDecimal(b, 100*share, 1), '%')
}

// AppendFixed writes x with the given decimals; a number of more than 15 digits with an exponent.
func AppendFixed(b []byte, x float64, decimals int) []byte {
	if math.Abs(x) >= 1e15 {
		return AppendShort(b, x)
	}
	return strconv.AppendFloat(b, x, 'f', decimals, 64)
}

// AppendDecimal writes x with at most the given decimals.
func AppendDecimal(b []byte, x float64, decimals int) []byte {
	if b = AppendFixed(b, x, decimals); math.Abs(x) >= 1e15 {
		return b
	}
	for b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	return b
}

// AppendShort writes x with at most six digits.
func AppendShort(b []byte, x float64) []byte { return strconv.AppendFloat(b, x, 'g', 6, 64) }

// scale are units from the largest to the smallest.
type scale []struct {
	size float64
	name string
}

var (
	seconds        = scale{{1, " s"}, {1e-3, " ms"}, {1e-6, " µs"}, {1e-9, " ns"}}
	bytes          = scale{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}, {1, " B"}}
	bytesPerSecond = scale{{1e9, " GB/s"}, {1e6, " MB/s"}, {1e3, " kB/s"}, {1, " B/s"}} // decimal, as in nccl-tests
)

// append writes x with about four digits, in the largest unit that x reaches.
func (of scale) append(b []byte, x float64) []byte {
	i := 0
	for i < len(of)-1 && math.Abs(x) < of[i].size {
		i++
	}
	switch x /= of[i].size; {
	case !(x < 1e6):
		b = AppendShort(b, x)
	case x >= 100:
		b = AppendDecimal(b, x, 1)
	case x >= 10:
		b = AppendDecimal(b, x, 2)
	default:
		b = AppendDecimal(b, x, 3)
	}
	return append(b, of[i].name...)
}
