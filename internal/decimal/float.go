package decimal

import (
	"bytes"
	"math"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/ascii"
)

// exact10 are the powers of ten that a float64 holds exactly.
var exact10 = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// Float reads a decimal number, rounded to the nearest float64 as in strconv.ParseFloat, and non-finite numbers in the spelling of Python, C and JSON writers:
// nan, -nan, NaN, inf, -inf, Infinity. A number that is too large becomes infinite, as in Python. Blanks, hexadecimal, underscores and an empty text are
// refused. Up to 32 bytes are read without allocating.
func Float(b []byte) (float64, bool) {
	v, n, exact := decimal(b)
	switch {
	case n == 0:
		return notFinite(b)
	case n < len(b):
		return 0, false
	case exact:
		return v, true
	}
	return slow(b)
}

// slow reads a well-formed number that decimal cannot: of many digits, or very large or small. A number too large becomes infinite.
func slow(b []byte) (float64, bool) {
	v, err := strconv.ParseFloat(string(b), 64)
	return v, err == nil || math.IsInf(v, 0)
}

// Leading reads the number at the beginning of b, as Float does, and returns its length: "12.5ms" has the number 12.5 of length 4, "-inf," −Inf of length 4. 0:
// no number, also if the longest run of a number's bytes is none, as in "1.2.3" and "1-2".
func Leading(b []byte) (float64, int) {
	v, n, exact := decimal(b)
	if n > 0 && (n == len(b) || !continues(b[n])) {
		if !exact {
			v, _ = slow(b[:n])
		}
		return v, n
	}
	// No finite number ends where its bytes do: nan or inf, or none.
	n = 0
	for n < len(b) && continues(b[n]) {
		n++
	}
	if n < 2 { // a word, perhaps with a sign
		from := n
		if from > 0 && b[0] != '-' && b[0] != '+' { // an e or a point: no word
			from = len(b)
		}
		// Bit 0x20 makes letters small. Nine are one more than the longest word, Infinity.
		for m := from; m < len(b) && m < from+9 && ascii.IsLetter(b[m]); m++ {
			n = m + 1
		}
	}
	v, ok := Float(b[:n])
	if !ok {
		return 0, 0
	}
	return v, n
}

// continues says whether c may continue a number.
func continues(c byte) bool {
	return ascii.IsDigit(c) || c == '.' || c == '-' || c == '+' || c|0x20 == 'e'
}

// decimal reads the finite number at the beginning of b, in one pass: most of a log is numbers. n is the number's length, 0 for none. Without exact the number
// is well-formed, but v is not its value (see slow).
func decimal(b []byte) (v float64, n int, exact bool) {
	var mantissa uint64 // the digits without the point; the value is mantissa × 10^exp
	neg := len(b) > 0 && b[0] == '-'
	if neg || len(b) > 0 && b[0] == '+' {
		n++
	}
	from := n
	for n < len(b) && ascii.IsDigit(b[n]) {
		mantissa = mantissa*10 + uint64(b[n]-'0')
		n++
	}
	digits, exp := n-from, 0
	if n < len(b) && b[n] == '.' {
		n++
		from = n
		for n < len(b) && ascii.IsDigit(b[n]) {
			mantissa = mantissa*10 + uint64(b[n]-'0')
			n++
		}
		exp = from - n
		digits -= exp
	}
	if digits == 0 {
		return 0, 0, false
	}
	if n < len(b) && b[n]|0x20 == 'e' { // e or E
		e, length := exponent(b[n:])
		exp += e
		n += length
	}
	// Up to 19 digits the mantissa did not overflow; where mantissa and power of ten are exact, one operation on them rounds correctly.
	if digits > 19 || mantissa > 1<<53 || exp < -22 || exp > 22 {
		return 0, n, false
	}
	v = float64(mantissa)
	switch {
	case exp < 0:
		v /= exact10[-exp]
	case exp > 0:
		v *= exact10[exp]
	}
	if neg {
		v = -v
	}
	return v, n, true
}

// exponent reads the "e-05" at the beginning of b, as −5. n is its length; 0: the digits are missing. Numbers beyond a million are of no use, and stay there.
func exponent(b []byte) (v, n int) {
	n = 1
	neg := n < len(b) && b[n] == '-'
	if neg || n < len(b) && b[n] == '+' {
		n++
	}
	from := n
	for ; n < len(b) && ascii.IsDigit(b[n]); n++ {
		v = min(v*10+int(b[n]-'0'), 1e6)
	}
	if n == from {
		return 0, 0
	}
	if neg {
		v = -v
	}
	return v, n
}

// notFinite reads the words for NaN and infinity, with a possible sign.
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

// GroupedFloat is Float for numbers with possible commas between thousands, as in Python's "{:,}": "1,234,567.8". Commas elsewhere are refused;
// before the first may be more than three digits.
func GroupedFloat(b []byte) (float64, bool) {
	comma := bytes.IndexByte(b, ',')
	if comma < 0 {
		return Float(b)
	}
	var kept [64]byte // the number without commas
	if len(b) > len(kept) {
		return 0, false
	}
	out := append(kept[:0], b[:comma]...)
	if comma == 0 || !ascii.IsDigit(b[comma-1]) || bytes.IndexByte(out, '.') >= 0 { // the comma is not behind whole thousands
		return 0, false
	}
	for b = b[comma:]; len(b) > 0 && b[0] == ','; b = b[4:] {
		if len(b) < 4 || !ascii.IsDigit(b[1]) || !ascii.IsDigit(b[2]) || !ascii.IsDigit(b[3]) {
			return 0, false
		}
		out = append(out, b[1:4]...)
	}
	if bytes.IndexByte(b, ',') >= 0 || len(b) > 0 && ascii.IsDigit(b[0]) { // another comma behind the point, or a fourth digit
		return 0, false
	}
	return Float(append(out, b...))
}

// Thousands completes a number v, which Leading has read from the first n bytes of b, if commas between thousands follow: of "1,234,567.8 tok/s" Leading has 1.
// The result is v and n without such commas.
func Thousands(b []byte, v float64, n int) (float64, int) {
	end := n
	for end+3 < len(b) && b[end] == ',' && ascii.IsDigit(b[end+1]) && ascii.IsDigit(b[end+2]) && ascii.IsDigit(b[end+3]) &&
		(end+4 == len(b) || !ascii.IsDigit(b[end+4])) {
		end += 4
	}
	if end == n {
		return v, n
	}
	if end+1 < len(b) && b[end] == '.' && ascii.IsDigit(b[end+1]) {
		for end++; end < len(b) && ascii.IsDigit(b[end]); end++ {
		}
	}
	whole, ok := GroupedFloat(b[:end])
	if !ok { // the comma is behind a fraction: "12.5,123" are two numbers
		return v, n
	}
	return whole, end
}

// ReprFloat is Float for possible NumPy scalars in their repr since NumPy 2: "np.float64(0.0042)", "np.int64(151)".
func ReprFloat(b []byte) (float64, bool) {
	if n := len(b); n > 4 && b[0] == 'n' && b[n-1] == ')' {
		if i := bytes.IndexByte(b, '('); i > 0 && (bytes.HasPrefix(b, []byte("np.")) || bytes.HasPrefix(b, []byte("numpy."))) {
			b = b[i+1 : n-1]
		}
	}
	return Float(b)
}
