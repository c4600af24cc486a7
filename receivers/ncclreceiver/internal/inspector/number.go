package inspector

import (
	"bytes"
	"math"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/collectives/op"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

// unknown is a value that is not stated: null, "nan", or a meaningless negative number.
const unknown = math.MaxUint64

// The functions below read the value at b[i] and return its end, -1 for a value that is unfinished. Plain digits, as the plugin prints, are read fast; any
// other form is left to a slower function ("odd"). A value that is no number, or out of range, marks the line as bad.

// integer reads an integer from 0 to 2^64-2; unknown without one.
func (p *Parser) integer(b []byte, i int) (v uint64, end int) {
	from := i
	v, i = decimal.Digits(b, i)
	if n := i - from; n == 0 || n > 19 || goesOn(b, i) { // 20 digits may exceed 64 bits
		return p.oddInteger(b, from)
	}
	return v, i
}

// goesOn reports whether a number goes on after its digits, with a point or an exponent.
func goesOn(b []byte, i int) bool { return i < len(b) && (b[i] == '.' || b[i]|0x20 == 'e') }

// oddInteger reads an integer in any other form: in quotes, with a point ("8.0"), an exponent, a sign, of 20 digits.
func (p *Parser) oddInteger(b []byte, i int) (uint64, int) {
	text, end := p.scalar(b, i)
	if len(text) == 0 {
		return unknown, end
	}
	whole, zeros, _ := bytes.Cut(text, []byte("."))
	if v, n := decimal.Unsigned(whole, 0); n > 0 && n == len(whole) && v != unknown && len(bytes.Trim(zeros, "0")) == 0 {
		return v, end
	}
	v, ok := decimal.Float(text)
	switch {
	case !ok || v >= 1<<63 || v >= 0 && v != math.Trunc(v):
		p.line.bad = true
		return unknown, end
	case !(v >= 0): // NaN too
		return unknown, end
	}
	return uint64(v), end
}

// int64 reads a non-negative integer within int64; op.Unknown without one.
func (p *Parser) int64(b []byte, i int) (int64, int) {
	v, i := p.integer(b, i)
	if v > math.MaxInt64 {
		p.line.bad = p.line.bad || v != unknown
		return op.Unknown, i
	}
	return int64(v), i
}

// int32 reads a non-negative integer within int32; op.Unknown without one.
func (p *Parser) int32(b []byte, i int) (int32, int) {
	v, i := p.int64(b, i)
	if v > math.MaxInt32 {
		p.line.bad = true
		return op.Unknown, i
	}
	return int32(v), i
}

// micros reads microseconds as nanoseconds, to the nearest. op.Unknown: null or NaN, or the line is marked as bad.
func (p *Parser) micros(b []byte, i int) (ns int64, end int) {
	from := i
	v, i := decimal.Digits(b, i)
	if n := i - from; n == 0 || n > 15 || goesOn(b, i) { // 15 digits of µs fit into int64 as ns
		return p.oddMicros(b, from)
	}
	return int64(v) * 1000, i
}

// oddMicros reads microseconds in any other form: with a fraction, in quotes, with an exponent. Results as micros; a
// negative time marks the line as bad.
func (p *Parser) oddMicros(b []byte, i int) (int64, int) {
	text, end := p.scalar(b, i)
	if len(text) == 0 {
		return op.Unknown, end
	}
	if ns, ok := decimal.Thousandths(text); ok {
		return ns, end
	}
	v, ok := decimal.Float(text)
	switch {
	case !ok || v >= math.MaxInt64/1000 || v < 0:
		p.line.bad = true
		return op.Unknown, end
	case math.IsNaN(v):
		return op.Unknown, end
	}
	return int64(math.Round(v * 1000)), end
}

// stamp reads a point in time, microseconds since the epoch, as Unix ns. 0: none. A callback that did not fire has 0, and a GPU clock with another origin is
// out of range; nanoseconds since the epoch are recognized. Fractions of a microsecond are cut.
func (p *Parser) stamp(b []byte, i int) (int64, int) {
	from := i
	v, i := decimal.Digits(b, i)
	if n := i - from; n == 0 || n > 19 || goesOn(b, i) {
		text, end := p.scalar(b, from)
		f, ok := decimal.Float(text)
		p.line.bad = p.line.bad || !ok && len(text) > 0
		if !(f >= 0 && f < 1<<63) {
			return 0, end
		}
		v, i = uint64(f), end
	}
	switch {
	case v >= 1e15 && v < 9e15: // from 2001 to 2255, exact as float64
		return int64(v) * 1000, i
	case v >= 1e18 && v < 9e18:
		return int64(v), i
	}
	return 0, i
}

// scalar reads a number, in quotes or not, as text. Empty: null, or a value of another type.
func (p *Parser) scalar(b []byte, i int) ([]byte, int) {
	if i < len(b) && b[i] == '"' {
		return p.quoted(b, i)
	}
	if i >= len(b) || b[i] == '{' || b[i] == '[' || b[i] == 't' || b[i] == 'f' || b[i] == 'n' {
		return nil, p.skipWrongType(b, i)
	}
	return lexer.Value(b, i)
}

// pow10 turns GB/s with as many decimals as the index, read as an integer, into By/s.
var pow10 = [...]float64{1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, 1}

// gigabytes reads GB/s of 1e9 By as By/s. NaN: none. The plugin prints 0 for a bandwidth without a computation: without a time, or of operations other than its
// six known ones (inspectorComputeCollBw).
func (p *Parser) gigabytes(b []byte, i int) (float64, int) {
	from := i
	digits, point := decimal.Digits(b, i) // all digits, as an integer
	i = point
	if i < len(b) && b[i] == '.' {
		for i++; i < len(b) && ascii.IsDigit(b[i]); i++ {
			digits = digits*10 + uint64(b[i]-'0')
		}
	}
	decimals := max(i-point-1, 0) // -1: without a point
	// No digits, too many to be exact, an exponent, or a point without digits after.
	odd := i == from || i-from > 15 || decimals >= len(pow10) || i < len(b) && b[i]|0x20 == 'e' || b[i-1] == '.'
	if odd {
		return p.oddGigabytes(b, from)
	}
	if digits == 0 {
		return math.NaN(), i
	}
	// Both factors are exact (15 digits fit into a float64), so the product is the float nearest to the decimal number.
	return float64(digits) * pow10[decimals], i
}

// oddGigabytes reads a bandwidth in any other form. Infinite, negative and zero ones are none.
func (p *Parser) oddGigabytes(b []byte, i int) (float64, int) {
	text, end := p.scalar(b, i)
	if len(text) == 0 {
		return math.NaN(), end
	}
	v, ok := decimal.Float(text)
	if !ok {
		p.line.bad = true
	}
	if !ok || !(v > 0) || math.IsInf(v, 0) {
		return math.NaN(), end
	}
	return v * 1e9, end
}

// truth reads true and false, also as text (the plugin's jsonBool) or number.
func (p *Parser) truth(b []byte, i int) (bool, int) {
	if i < len(b) && b[i] == '"' {
		t, end := p.quoted(b, i)
		return string(t) == "true", end
	}
	end := skip(b, i)
	return end >= 0 && (b[i] == 't' || b[i] == '1'), end
}
