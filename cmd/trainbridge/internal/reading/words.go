package reading

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Size is a number of bytes with three digits, in a unit that fits.
func Size(bytes float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB", "TB"} {
		if bytes < 999.5 || unit == "TB" {
			if unit == "B" || bytes >= 99.95 {
				return fmt.Sprintf("%.0f %s", Number(bytes), unit)
			}
			return fmt.Sprintf("%.3g %s", bytes, unit)
		}
		bytes /= 1000
	}
	return ""
}

// Binary is 2ⁿ bytes.
func Binary(n int) string {
	return fmt.Sprintf("%d %s", 1<<(n%10), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[n/10])
}

// Clean keeps control characters of logged text from the terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Number prints a number as fmt does. Where it has more digits before its point than are known of it, or than a column has room for, it has an exponent.
type Number float64

const mostDigits = 1e15 // from here on a float64 does not tell neighbouring tenths apart

// Format implements fmt.Formatter for verbs such as %.2f.
func (n Number) Format(s fmt.State, verb rune) {
	if math.Abs(float64(n)) < mostDigits {
		_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), float64(n))
		return
	}
	format := "%.4g"
	if s.Flag('+') {
		format = "%+.4g"
	}
	_, _ = fmt.Fprintf(s, format, float64(n))
}

// Thousands is a whole number with its digits in groups.
func Thousands[N int | int64 | float64](n N) string {
	if x, ok := any(n).(float64); ok && !(math.Abs(x) < mostDigits) {
		return fmt.Sprintf("%.0f", Number(x))
	}
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Columns is how wide a text is in a terminal.
func Columns(text string) (n int) {
	for _, r := range text {
		n += ColumnsOf(r)
	}
	return n
}

// ColumnsOf is 2 for what East Asian scripts have as wide as two letters (Unicode's annex 11: wide, full width).
func ColumnsOf(r rune) int {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
