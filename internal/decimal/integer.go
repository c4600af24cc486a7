package decimal

import (
	"bytes"
	"math"
	"math/bits"
)

// Digits reads the digits that stand at b[i:], and returns where they end; i: there are none. v is right for up to 19 digits.
func Digits(b []byte, i int) (v uint64, end int) {
	for i < len(b) && b[i]-'0' <= 9 {
		v = v*10 + uint64(b[i]-'0')
		i++
	}
	return v, i
}

// exactDigits always fit 64 bits.
const exactDigits = 19

// Unsigned is Digits as far as 64 bits go. end is i where the number is larger.
func Unsigned(b []byte, i int) (v uint64, end int) {
	v, end = Digits(b, i)
	if end-i <= exactDigits {
		return v, end
	}
	v = 0
	for _, c := range b[i:end] {
		hi, lo := bits.Mul64(v, 10)
		sum, carry := bits.Add64(lo, uint64(c-'0'), 0)
		if hi != 0 || carry != 0 {
			return 0, i
		}
		v = sum
	}
	return v, end
}

// Integer reads the digits that b begins with, at most so many (up to 18), and returns how many they are; 0: none, or more.
func Integer(b []byte, most int) (v int64, n int) {
	u, n := Digits(b, 0)
	if n > most {
		return 0, 0
	}
	return int64(u), n
}

// Thousandths reads a plain decimal number, without sign or exponent, times 1000 and rounded to the nearest: microseconds as nanoseconds. false: it is not
// one, or does not fit.
func Thousandths(b []byte) (int64, bool) {
	whole, i := Unsigned(b, 0)
	if i == 0 || whole >= math.MaxInt64/1000 {
		return 0, false
	}
	v := int64(whole) * 1000
	if i == len(b) {
		return v, true
	}
	fraction, ok := bytes.CutPrefix(b[i:], []byte("."))
	if _, end := Digits(fraction, 0); !ok || end < len(fraction) {
		return 0, false
	}
	for n, unit := 0, int64(100); n < len(fraction) && unit > 0; n++ {
		v += int64(fraction[n]-'0') * unit
		unit /= 10
	}
	if len(fraction) > 3 && fraction[3] >= '5' {
		v++
	}
	return v, true
}
