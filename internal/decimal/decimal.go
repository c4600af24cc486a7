// Package decimal reads decimal numbers as programs print them: as floats, as fixed-point numbers that lose no digit, as integers. Numbers of usual length are
// read without allocating. All readers of logs use decimal.
package decimal

import (
	"bytes"
	"errors"
	"math"
	"math/bits"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// The errors of Nanos.
var (
	ErrDecimal = errors.New("not a decimal number")
	ErrRange   = errors.New("number out of range")
)

// Nanos reads decimal seconds ("98231.402113", "0.052000s", "9.5e-07") as nanoseconds, without a float in between: every printed digit counts. Digits beyond
// nanoseconds are cut off. The error is ErrDecimal for any other text (such as nan, inf and the empty text) and ErrRange beyond ±292 years.
func Nanos(b []byte) (int64, error) {
	if n := len(b); n > 0 && b[n-1] == 's' {
		b = b[:n-1]
	}
	return Fixed9(b)
}

var pow10 = [10]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}

// Fixed9 reads a decimal number as a multiple of 1e-9: "15.20" gives 15200000000. Errors as Nanos.
func Fixed9(b []byte) (int64, error) {
	neg := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		neg = b[0] == '-'
		b = b[1:]
	}
	var whole uint64
	n, over := 0, false // over: beyond the range without an exponent
	for n < len(b) && ascii.IsDigit(b[n]) {
		over = over || whole > math.MaxInt64/10
		whole = whole*10 + uint64(b[n]-'0')
		n++
	}
	digits := n
	var frac uint64 // billionths
	if n < len(b) && b[n] == '.' {
		n++
		from := n
		for n < len(b) && ascii.IsDigit(b[n]) {
			if n-from < 9 {
				frac = frac*10 + uint64(b[n]-'0')
			}
			n++
		}
		digits += n - from
		if n-from < 9 {
			frac *= pow10[9-(n-from)]
		}
	}
	if digits == 0 {
		return 0, ErrDecimal
	}
	if n < len(b) { // an exponent, or no number
		return scientific(b, n, neg)
	}
	hi, lo := bits.Mul64(whole, 1e9)
	lo, carry := bits.Add64(lo, frac, 0)
	if over || hi != 0 || carry != 0 || lo > math.MaxInt64 {
		return 0, ErrRange
	}
	return signed(lo, neg), nil
}

// scientific reads "9.5367431640625e-07", Python's form of small floats, as a multiple of 1e-9. b[:i] is the number before the e, without its sign; neg: the
// sign is a minus.
func scientific(b []byte, i int, neg bool) (int64, error) {
	if b[i] != 'e' && b[i] != 'E' {
		return 0, ErrDecimal
	}
	exp, n, expNeg := 0, i+1, false
	if n < len(b) && (b[n] == '-' || b[n] == '+') {
		expNeg = b[n] == '-'
		n++
	}
	from := n
	for ; n < len(b) && ascii.IsDigit(b[n]); n++ {
		exp = min(exp*10+int(b[n]-'0'), 10000) // beyond, every number is 0 or out of range
	}
	if n == from || n < len(b) {
		return 0, ErrDecimal
	}
	if expNeg {
		exp = -exp
	}
	// The value is 0.d1d2d3… × 10^point: the first point+9 digits count, down to 1e-9. For more than there are, zeros follow.
	point, seenDot := exp, false
	for _, c := range b[:i] {
		seenDot = seenDot || c == '.'
		if !seenDot {
			point++
		}
	}
	var v uint64
	take := point + 9
	for _, c := range b[:i] {
		if c == '.' {
			continue
		}
		if take <= 0 {
			break
		}
		take--
		if v > math.MaxInt64/10 {
			return 0, ErrRange
		}
		v = v*10 + uint64(c-'0')
	}
	for ; take > 0 && v > 0; take-- { // the zeros that follow
		if v > math.MaxInt64/10 {
			return 0, ErrRange
		}
		v *= 10
	}
	if v > math.MaxInt64 {
		return 0, ErrRange
	}
	return signed(v, neg), nil
}

// signed is v with its sign.
func signed(v uint64, neg bool) int64 {
	if neg {
		return -int64(v) // the callers checked v ≤ MaxInt64
	}
	return int64(v)
}

// Digits reads the digits at the beginning of b[i:] as a number, and returns the index behind them; i: there are none. v is right for up to 19 digits, and
// garbage for more.
func Digits(b []byte, i int) (v uint64, end int) {
	for i < len(b) && ascii.IsDigit(b[i]) {
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
	v = 0 // read again, with a check of each digit
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

// Integer reads the digits at the beginning of b, not more than most of them (up to 18), and returns their number; 0: none, or more.
func Integer(b []byte, most int) (v int64, n int) {
	u, n := Digits(b, 0)
	if n > most {
		return 0, 0
	}
	return int64(u), n
}

// Thousandths reads a plain decimal number, without sign or exponent, times 1000 and rounded to the nearest: microseconds as nanoseconds. false: b is not one,
// or does not fit.
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
	for n, unit := 0, int64(100); n < len(fraction) && unit > 0; n++ { // the three digits that count
		v += int64(fraction[n]-'0') * unit
		unit /= 10
	}
	if len(fraction) > 3 && fraction[3] >= '5' {
		v++
	}
	return v, true
}
