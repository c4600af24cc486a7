// Package human writes numbers for people, and knows how wide texts are in a terminal.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const mostDigits = 1e15 // from here on neighbouring tenths can be equal as float64

// Thousands is a whole number with its digits in groups; of a float64, the nearest, or Digits from 1e15 on and for NaN.
func Thousands[N int | int64 | float64](n N) string {
	if x, ok := any(n).(float64); ok {
		if !(math.Abs(x) < mostDigits) {
			return Digits(x)
		}
		n = N(math.Round(x))
	}
	return string(appendGrouped(nil, strconv.FormatInt(int64(n), 10)))
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

// Plural is a number of items, in English: "1 step", "1,234 losses".
func Plural[N int | int64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "s"), strings.HasSuffix(what, "ch"): // losses, batches
		what += "e"
	}
	return Thousands(n) + " " + what + "s"
}

// Binary is 2ⁿ bytes: "64 KiB" for 16.
func Binary(n int) string {
	return fmt.Sprintf("%d %s", 1<<(n%10), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[n/10])
}

const mostRuns = 32 // of Ranks

// Ranks lists ascending ranks, three or more consecutive ones as a range: "ranks 3, 7, 12–15". Behind mostRuns runs of consecutive ranks comes the number of
// the rest: "5 more".
func Ranks(ascending []int64) string {
	b := []byte("ranks ")
	if len(ascending) == 1 {
		b = []byte("rank ")
	}
	for from, runs := 0, 0; from < len(ascending); runs++ {
		to := from + 1 // behind the run that begins at from
		for to < len(ascending) && ascending[to] == ascending[to-1]+1 {
			to++
		}
		if from > 0 {
			b = append(b, ", "...)
		}
		if runs == mostRuns {
			return string(append(b, Thousands(len(ascending)-from)+" more"...))
		}
		b = strconv.AppendInt(b, ascending[from], 10)
		switch to - from {
		case 1:
		case 2:
			b = strconv.AppendInt(append(b, ", "...), ascending[to-1], 10)
		default:
			b = strconv.AppendInt(append(b, "–"...), ascending[to-1], 10)
		}
		from = to
	}
	return string(b)
}
