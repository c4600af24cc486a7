package megatron

import (
	"math"
	"strconv"
)

var pow10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// maxNumber bounds the text of a number: Python prints no longer ones.
const maxNumber = 64

// Float reads a decimal number as Python prints it, nan and inf included, and nothing beside it. The result is the nearest float64.
func Float(b []byte) (float64, bool) {
	v, n := Leading(b)
	if n == 0 || n != len(b) {
		return 0, false
	}
	return v, true
}

// Leading reads the number that b begins with and returns its length, 0 when there is none.
func Leading(b []byte) (float64, int) {
	n, neg := 0, false
	if n < len(b) && (b[n] == '-' || b[n] == '+') {
		neg = b[n] == '-'
		n++
	}
	var mantissa uint64
	digits, exp := 0, 0
	for ; n < len(b) && b[n]-'0' <= 9; n++ {
		mantissa = mantissa*10 + uint64(b[n]-'0') // too many digits are seen below
		digits++
	}
	if n < len(b) && b[n] == '.' {
		from := n + 1
		for n++; n < len(b) && b[n]-'0' <= 9; n++ {
			mantissa = mantissa*10 + uint64(b[n]-'0')
		}
		exp = from - n
		digits += n - from
	}
	if digits == 0 {
		return notFinite(b)
	}
	if n+1 < len(b) && b[n]|0x20 == 'e' {
		m, minus := n+1, false
		if b[m] == '-' || b[m] == '+' {
			minus = b[m] == '-'
			m++
		}
		if m < len(b) && b[m]-'0' <= 9 {
			e := 0
			for ; m < len(b) && b[m]-'0' <= 9; m++ {
				e = min(e*10+int(b[m]-'0'), 100_000)
			}
			if minus {
				e = -e
			}
			exp += e
			n = m
		}
	}
	// Both the digits and the power of ten are exact here, so that the one rounding is right (Clinger's fast path).
	if digits <= 19 && mantissa < 1<<53 && -22 <= exp && exp <= 22 {
		v := float64(mantissa)
		if exp < 0 {
			v /= pow10[-exp]
		} else {
			v *= pow10[exp]
		}
		if neg {
			v = -v
		}
		return v, n
	}
	if n > maxNumber {
		return 0, 0
	}
	v, _ := strconv.ParseFloat(string(b[:n]), 64) // the only error left is out of range, and the result is then ±Inf
	return v, n
}

// notFinite reads nan, inf and infinity, with a sign or without.
func notFinite(b []byte) (float64, int) {
	n, sign := 0, 1
	if n < len(b) && (b[n] == '-' || b[n] == '+') {
		if b[n] == '-' {
			sign = -1
		}
		n++
	}
	word := n
	for n < len(b) && n < word+9 && b[n]|0x20 >= 'a' && b[n]|0x20 <= 'z' {
		n++
	}
	var lower [9]byte
	for i, c := range b[word:n] {
		lower[i] = c | 0x20
	}
	switch string(lower[:n-word]) {
	case "nan":
		return math.NaN(), n
	case "inf", "infinity":
		return math.Inf(sign), n
	}
	return 0, 0
}

// integer reads the decimal integer that b begins with, of at most 18 digits, and returns its length, 0 when there is none.
func integer(b []byte) (v int64, n int) {
	for n < len(b) && b[n]-'0' <= 9 {
		if n == 18 {
			return 0, 0
		}
		v = v*10 + int64(b[n]-'0')
		n++
	}
	return v, n
}
