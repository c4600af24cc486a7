package record

import (
	"bytes"
	"math"
	"strconv"
)

// exact10 are the powers of ten that a float64 holds exactly.
var exact10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float reads a decimal number, rounded to the nearest float64 as strconv.ParseFloat does, and the not finite ones as Python, C
// and JSON writers spell them: nan, -nan, NaN, inf, -inf, Infinity. What is too large becomes infinite, as in Python. It does
// not take blanks, hexadecimal, underscores or an empty text, and does not allocate for up to 32 bytes.
func Float(b []byte) (float64, bool) {
	var mantissa uint64
	digits, exp, n := 0, 0, 0
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		n++
	}
	from := n
	for n < len(b) && b[n]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(b[n]-'0')
		n++
	}
	digits = n - from
	if n < len(b) && b[n] == '.' {
		n++
		from = n
		for n < len(b) && b[n]-'0' <= 9 {
			mantissa = mantissa*10 + uint64(b[n]-'0')
			n++
		}
		exp = from - n
		digits -= exp
	}
	if digits == 0 {
		return notFinite(b)
	}
	if n < len(b) {
		e, ok := exponent(b[n:])
		if !ok {
			return 0, false
		}
		exp += e
	}
	// Up to 19 digits the mantissa did not overflow; where it and the power of ten are exact, so is one operation on them.
	if digits <= 19 && mantissa <= 1<<53 && exp >= -22 && exp <= 22 {
		v := float64(mantissa)
		if exp < 0 {
			v /= exact10[-exp]
		} else {
			v *= exact10[exp]
		}
		if neg {
			v = -v
		}
		return v, true
	}
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil || math.IsInf(v, 0)
}

// exponent reads the "e-05" of a number.
func exponent(b []byte) (int, bool) {
	if b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	n := 1
	neg := n < len(b) && b[n] == '-'
	if neg || n < len(b) && b[n] == '+' {
		n++
	}
	if n == len(b) {
		return 0, false
	}
	v := 0
	for ; n < len(b); n++ {
		if b[n]-'0' > 9 {
			return 0, false
		}
		v = min(v*10+int(b[n]-'0'), 1e6)
	}
	if neg {
		v = -v
	}
	return v, true
}

func notFinite(b []byte) (float64, bool) {
	sign := 1
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		if b[0] == '-' {
			sign = -1
		}
		b = b[1:]
	}
	switch string(b) {
	case "nan", "NaN", "NAN":
		return math.NaN(), true
	case "inf", "Inf", "INF", "Infinity", "infinity":
		return math.Inf(sign), true
	}
	return 0, false
}

// GroupedFloat is Float for numbers that may have commas between thousands, as Python's "{:,}" writes them: "1,234,567.8".
func GroupedFloat(b []byte) (float64, bool) {
	comma := bytes.IndexByte(b, ',')
	if comma < 0 {
		return Float(b)
	}
	var kept [64]byte
	if len(b) > len(kept) {
		return 0, false
	}
	out := append(kept[:0], b[:comma]...)
	if comma == 0 || b[comma-1]-'0' > 9 || bytes.IndexByte(out, '.') >= 0 {
		return 0, false
	}
	for b = b[comma:]; len(b) > 0 && b[0] == ','; b = b[4:] {
		if len(b) < 4 || b[1]-'0' > 9 || b[2]-'0' > 9 || b[3]-'0' > 9 {
			return 0, false
		}
		out = append(out, b[1:4]...)
	}
	if bytes.IndexByte(b, ',') >= 0 || len(b) > 0 && b[0]-'0' <= 9 {
		return 0, false
	}
	return Float(append(out, b...))
}

// ReprFloat is Float for numbers that may be NumPy scalars as their repr shows them since NumPy 2: "np.float64(0.0042)", "np.int64(151)".
func ReprFloat(b []byte) (float64, bool) {
	if n := len(b); n > 4 && b[0] == 'n' && b[n-1] == ')' {
		if i := bytes.IndexByte(b, '('); i > 0 && (bytes.HasPrefix(b, []byte("np.")) || bytes.HasPrefix(b, []byte("numpy."))) {
			b = b[i+1 : n-1]
		}
	}
	return Float(b)
}
