package human

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/trainbridge/trainbridge/internal/stat"
)

// Unknown stands for an unknown number: NaN, or infinite.
const Unknown = "-"

// most is the number of significant digits; shares have one decimal. Trailing zeros are left out. The page's assets/units.js writes the same.
const most = 3

type unit struct {
	size float64
	name string
}

// Units from the largest to the smallest. Sizes are powers of 1024; rates are powers of 1000, as in NCCL and nccl-tests, and TransferQueue's and ZeroMQ's of
// 1024.
var (
	times       = []unit{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	sizes       = []unit{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	rates       = []unit{{1e12, "TB/s"}, {1e9, "GB/s"}, {1e6, "MB/s"}, {1e3, "kB/s"}, {1, "B/s"}}
	binaryRates = []unit{{1 << 40, "TiB/s"}, {1 << 30, "GiB/s"}, {1 << 20, "MiB/s"}, {1 << 10, "KiB/s"}, {1, "B/s"}}
	flops       = []unit{{1e15, "PFLOP/s"}, {1e12, "TFLOP/s"}, {1e9, "GFLOP/s"}, {1e6, "MFLOP/s"}, {1, "FLOP/s"}}
	frequencies = []unit{{1e9, "GHz"}, {1e6, "MHz"}, {1e3, "kHz"}, {1, "Hz"}}
)

// Seconds is a duration in s: in s, ms, µs or ns; from ten minutes on in min and s, from an hour on in h and min, from 100 h on in h. A duration below 2 ns,
// but not 0, is Unknown: spans.Batch makes spans without a duration 1 ns long.
func Seconds(s float64) string { return string(AppendSeconds(nil, s)) }

// Nanoseconds is Seconds of a duration in ns.
func Nanoseconds(ns int64) string { return Seconds(float64(ns) / 1e9) }

// Range joins two written numbers, with one unit if equal.
func Range(low, high string) string {
	if low == high {
		return high
	}
	return bare(low, high) + "–" + high
}

// Of joins the written numbers of a part and its whole, with one unit if equal.
func Of(part, whole string) string { return bare(part, whole) + " of " + whole }

// bare is a number without its unit, if the other number has the same unit.
func bare(number, other string) string {
	i, j := strings.IndexAny(number, " %"), strings.IndexAny(other, " %")
	if i > 0 && j > 0 && number[i:] == other[j:] {
		return number[:i]
	}
	return number
}

// The least durations of a form, s: what is rounded to ten minutes, an hour, and a hundred hours (by the minute).
const (
	tenMinutes   = 599.5
	hour         = 3599.5
	hundredHours = 359970
)

// AppendSeconds appends Seconds: "-", "0 s", "898 ms", "10 min 5 s", "2 h 14 min", "123 h".
func AppendSeconds(b []byte, s float64) []byte {
	a := math.Abs(s)
	switch {
	case !stat.Finite(s), a > 0 && a < 2e-9:
		return append(b, Unknown...)
	case a == 0:
		return append(b, "0 s"...)
	case a < tenMinutes:
		return appendIn(b, s, times)
	case s < 0:
		b = append(b, '-')
	}
	first, second := "min", "s"
	n := math.Round(a) // in the second unit; the first is 60 of them
	if n >= 3600 {
		first, second, n = "h", "min", math.Round(a/60)
	}
	if n >= 6000 && first == "h" { // from 100 h on without min: three digits
		return append(AppendDigits(b, a/3600), " h"...)
	}
	b = append(append(strconv.AppendInt(b, int64(n)/60, 10), ' '), first...)
	if rest := int64(n) % 60; rest > 0 {
		b = append(append(strconv.AppendInt(append(b, ' '), rest, 10), ' '), second...)
	}
	return b
}

// LastDigit is the value of one in the last digit of a duration as Seconds writes it, s: 0.01 for "7.73 s", 60 for "2 h 14 min", 3600 for "123 h". Durations
// that differ by less can look equal. For 0, NaN and infinities: 1e-9.
func LastDigit(s float64) float64 {
	switch a := math.Abs(s); {
	case !(a > 0) || math.IsInf(a, 0):
		return 1e-9
	case a >= hundredHours:
		return 3600
	case a >= hour:
		return 60
	case a >= tenMinutes:
		return 1
	default:
		return math.Pow10(max(exponent(a)-most+1, -9))
	}
}

// Bytes is a size in By: B, KiB, MiB, GiB or TiB.
func Bytes(n float64) string { return string(AppendBytes(nil, n)) }

// AppendBytes appends Bytes.
func AppendBytes(b []byte, n float64) []byte { return appendIn(b, n, sizes) }

// Rate is By/s: B/s, kB/s, MB/s, GB/s or TB/s, of 1000.
func Rate(n float64) string { return string(AppendRate(nil, n)) }

// AppendRate appends Rate.
func AppendRate(b []byte, n float64) []byte { return appendIn(b, n, rates) }

// BinaryRate is By/s: B/s, KiB/s, MiB/s, GiB/s or TiB/s, of 1024.
func BinaryRate(n float64) string { return string(AppendBinaryRate(nil, n)) }

// AppendBinaryRate appends BinaryRate.
func AppendBinaryRate(b []byte, n float64) []byte { return appendIn(b, n, binaryRates) }

// Flops is FLOP/s: TFLOP/s and smaller and larger units.
func Flops(n float64) string { return string(AppendFlops(nil, n)) }

// AppendFlops appends Flops.
func AppendFlops(b []byte, n float64) []byte { return appendIn(b, n, flops) }

// Hertz is a frequency: GHz and smaller units.
func Hertz(n float64) string { return string(appendIn(nil, n, frequencies)) }

// Watts is a power in W.
func Watts(n float64) string { return string(appendIn(nil, n, []unit{{1, "W"}})) }

// Celsius is a temperature in °C.
func Celsius(n float64) string { return string(appendIn(nil, n, []unit{{1, "°C"}})) }

// Percent is a share in percent, with one decimal below 1000%: 0.125 is 12.5%.
func Percent(share float64) string { return string(AppendPercent(nil, share)) }

// AppendPercent appends Percent.
func AppendPercent(b []byte, share float64) []byte {
	x := 100 * share
	switch a := math.Abs(x); {
	case !stat.Finite(x):
		return append(b, Unknown...)
	case a < 0.05:
		return append(b, "0%"...)
	case a < 1000:
		from := len(b)
		b = strconv.AppendFloat(b, x, 'f', 1, 64)
		return append(b[:from+trimmed(b[from:])], '%')
	}
	return append(AppendDigits(b, x), '%')
}

// Change is the ratio of new to old, as a change: 1.125 is +12.5%.
func Change(ratio float64) string {
	text := Percent(ratio - 1)
	if text[0] == '-' {
		return text
	}
	return "+" + text
}

// Digits is a number without a unit.
func Digits(x float64) string { return string(AppendDigits(nil, x)) }

// AppendDigits appends Digits. Numbers of 1e15 or more, or below 1e-4, have an exponent; whole numbers have all their digits, in groups.
func AppendDigits(b []byte, x float64) []byte {
	from := len(b)
	switch a := math.Abs(x); {
	case !stat.Finite(x):
		return append(b, Unknown...)
	case x == 0:
		return append(b, '0')
	case a >= mostDigits || a < 1e-4:
		b = strconv.AppendFloat(b, x, 'e', most-1, 64)
		e := from + bytes.IndexByte(b[from:], 'e')
		kept := trimmed(b[from:e]) // zeros before the exponent are left out
		return append(b[:from+kept], b[e:]...)
	default:
		b = strconv.AppendFloat(b, x, 'f', max(0, most-1-exponent(a)), 64)
	}
	b = b[:from+trimmed(b[from:])]
	if bytes.IndexByte(b[from:], '.') < 0 {
		var digits [32]byte
		b = appendGrouped(b[:from], string(append(digits[:0], b[from:]...)))
	}
	return b
}

// appendIn appends a number in the largest unit of which there is at least one, else in the smallest; Unknown if not finite.
func appendIn(b []byte, x float64, units []unit) []byte {
	if !stat.Finite(x) {
		return append(b, Unknown...)
	}
	const reached = 0.9995 // rounded to three digits: 1
	i := 0
	for i < len(units)-1 && math.Abs(x) < units[i].size*reached {
		i++
	}
	b = AppendDigits(b, x/units[i].size)
	return append(append(b, ' '), units[i].name...)
}

// exponent is the power of ten of a number's first digit.
func exponent(a float64) int { return int(math.Floor(math.Log10(a))) }

// trimmed is the length of a number without trailing zeros behind a point, and without the point.
func trimmed(digits []byte) int {
	if bytes.IndexByte(digits, '.') < 0 {
		return len(digits)
	}
	return len(bytes.TrimRight(bytes.TrimRight(digits, "0"), "."))
}

// Fixed is a number with a fixed number of decimals, for columns with a unit in the heading; from 1e15 on as Digits.
func Fixed(x float64, decimals int) string {
	if !stat.Finite(x) {
		return Unknown
	}
	if math.Abs(x) >= mostDigits {
		return Digits(x)
	}
	return strconv.FormatFloat(x, 'f', decimals, 64)
}

// Signed is Fixed with its sign.
func Signed(x float64, decimals int) string {
	text := Fixed(x, decimals)
	if x >= 0 && text != Unknown {
		return "+" + text
	}
	return text
}

// Decimals is the number of decimals of a number with three significant digits, at most 6.
func Decimals(x float64) int {
	if a := math.Abs(x); a > 0 && stat.Finite(x) {
		return min(max(0, most-1-exponent(a)), 6)
	}
	return 0
}

// Clock is a time since the start, s: "59.5 s", 90 s are "1:30", 7205 s "2:00:05"; below 0 and from 1e9 on in s.
func Clock(s float64) string {
	whole := int64(math.Round(min(max(s, -1), 1e9)))                           // bounded: a conversion beyond int64 is undefined
	two := func(n int64) string { return strconv.FormatInt(100+n%60, 10)[1:] } // n modulo 60 with two digits
	switch {
	case !stat.Finite(s):
		return Unknown
	case s < 60, s >= 1e9:
		return Digits(s) + " s"
	case whole < 3600:
		return strconv.FormatInt(whole/60, 10) + ":" + two(whole)
	}
	return strconv.FormatInt(whole/3600, 10) + ":" + two(whole/60) + ":" + two(whole)
}
