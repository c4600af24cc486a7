// Package human writes numbers for people, and knows how wide texts are in a terminal.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Number prints a number as fmt does, for columns with fixed decimals. Where it has more digits before its point than are known of it, or than a column has
// room for, it has an exponent.
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

// Thousands is a whole number with its digits in groups; of a float64, the nearest.
func Thousands[N int | int64 | float64](n N) string {
	switch x := float64(n); {
	case x-x != 0:
		return Unknown
	case !(math.Abs(x) < mostDigits) && any(n) == any(x):
		return fmt.Sprintf("%.0f", Number(x))
	}
	return string(appendGrouped(nil, strconv.FormatInt(whole(n), 10)))
}

func whole[N int | int64 | float64](n N) int64 {
	if x, ok := any(n).(float64); ok {
		return int64(math.Round(x))
	}
	return int64(n)
}

// appendGrouped writes the digits of a whole number in groups.
func appendGrouped(b []byte, digits string) []byte {
	for i := range len(digits) {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b = append(b, ',')
		}
		b = append(b, digits[i])
	}
	return b
}

// Plural is a number of things, in English.
func Plural[N int | int64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"): // losses, passes
		what += "e"
	case strings.HasSuffix(what, "ch"): // batches
		what += "e"
	}
	return Thousands(n) + " " + what + "s"
}

// Binary is 2ⁿ bytes.
func Binary(n int) string {
	return fmt.Sprintf("%d %s", 1<<(n%10), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[n/10])
}
