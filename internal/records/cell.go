package records

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/trainbridge/trainbridge/spans"
)

// scale turns a value in the unit of the spans into the unit of a column. A power of ten moves the decimal point of the printed number, so 0.98125 becomes
// 98.125 without another rounding; a power of two divides without rounding.
type scale struct {
	tens int8  // the value times 10^tens
	two  uint8 // the value through 2^two
	size bool  // the log printed whole bytes in this unit, with a few decimals: see divide
}

var (
	asIs    = scale{}
	percent = scale{tens: 2}
	milli   = scale{tens: 3}  // s as ms
	giga    = scale{tens: -9} // By/s as GB/s
	tera    = scale{tens: -12}
	kibi    = scale{two: 10, size: true} // By as KB of 1024 By
	mebi    = scale{two: 20}
	gibi    = scale{two: 30}
)

// appendFloat appends a number in the unit of s: the shortest text that reads back equal. Numbers that are not finite are written as pandas reads them.
func appendFloat(dst []byte, x float64, s scale) []byte {
	switch {
	case math.IsNaN(x):
		return append(dst, "NaN"...)
	case math.IsInf(x, 1):
		return append(dst, "inf"...)
	case math.IsInf(x, -1):
		return append(dst, "-inf"...)
	}
	if s.two > 0 {
		x = divide(x, s)
	}
	if s.tens == 0 && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.AppendInt(dst, int64(x), 10)
	}
	var buf [32]byte
	return appendShifted(dst, strconv.AppendFloat(buf[:0], x, 'e', -1, 64), int(s.tens))
}

// divide returns x divided by the power of two of s. For a size that a log printed with few decimals, such as 1.21 KB, the receiver has rounded to whole bytes,
// so the shortest decimal that rounds to the same bytes is returned: the printed number.
func divide(x float64, s scale) float64 {
	whole := math.Ldexp(x, -int(s.two))
	if s.size && x == math.Trunc(x) {
		for digits := range 5 {
			unit := math.Pow10(digits)
			if short := math.Round(whole*unit) / unit; math.Round(math.Ldexp(short, int(s.two))) == x {
				return short
			}
		}
	}
	return whole
}

// appendInt appends a whole number in the unit of s, without rounding.
func appendInt(dst []byte, n int64, s scale) []byte {
	if s == asIs {
		return strconv.AppendInt(dst, n, 10)
	}
	if s.two > 0 {
		return appendFloat(dst, float64(n), s)
	}
	var buf [24]byte
	return appendShifted(dst, strconv.AppendInt(buf[:0], n, 10), int(s.tens))
}

// appendShifted appends a decimal number, given in the form -d.ddde±dd or -ddd, times 10^tens. The digits stay, and the point moves; numbers from 1e21 on and
// below 1e-6 get an exponent, as in JavaScript.
func appendShifted(dst, number []byte, tens int) []byte {
	if number[0] == '-' {
		dst, number = append(dst, '-'), number[1:]
	}
	var digits [32]byte
	d, point := digits[:0], -1 // the digits, and before which of them the point is
	for i, c := range number {
		switch c {
		case '.':
			point = len(d)
			continue
		case 'e':
			exp, _ := strconv.Atoi(string(number[i+1:]))
			tens += exp
		default:
			d = append(d, c)
			continue
		}
		break // the exponent is the end
	}
	if point < 0 {
		point = len(d)
	}
	point += tens
	// Drop leading and trailing zeros.
	for len(d) > 1 && d[0] == '0' {
		d = d[1:]
		point--
	}
	for len(d) > 1 && d[len(d)-1] == '0' {
		d = d[:len(d)-1]
	}
	switch {
	case d[0] == '0':
		return append(dst, '0')
	case point > 21 || point < -5:
		dst = append(dst, d[0])
		if len(d) > 1 {
			dst = append(append(dst, '.'), d[1:]...)
		}
		return strconv.AppendInt(append(dst, 'e'), int64(point-1), 10)
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, d...)
	case point >= len(d):
		dst = append(dst, d...)
		for range point - len(d) {
			dst = append(dst, '0')
		}
		return dst
	}
	return append(append(append(dst, d[:point]...), '.'), d[point:]...)
}

// A row of a table in the making is its cells, each with cellEnd behind. A text begins with textMark; a cell without is a number, a time or an id. Both bytes
// are control characters that texts do not have (showable).
const (
	cellEnd  = 0
	textMark = 1
)

// appendText appends a text as a cell; an empty text is an empty cell.
func appendText(dst []byte, s string) []byte {
	if s == "" {
		return dst
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f {
			s = strings.Map(showable, s)
			break
		}
	}
	return append(append(dst, textMark), s...)
}

// appendCSV appends a cell by RFC 4180. A text that a spreadsheet would take for a formula (it begins with = + - @ or a tab) gets an apostrophe in front.
func appendCSV(dst, cell []byte) []byte {
	if len(cell) == 0 || cell[0] != textMark {
		return append(dst, cell...)
	}
	s := cell[1:]
	formula := bytes.IndexByte(formulas, s[0]) >= 0
	if !bytes.ContainsAny(s, ",\"\n") && s[0] != ' ' && s[len(s)-1] != ' ' {
		if formula {
			dst = append(dst, '\'')
		}
		return append(dst, s...)
	}
	dst = append(dst, '"')
	if formula {
		dst = append(dst, '\'')
	}
	for _, c := range s {
		if c == '"' {
			dst = append(dst, '"')
		}
		dst = append(dst, c)
	}
	return append(dst, '"')
}

var formulas = []byte("=+-@\t")

// showable replaces characters that a terminal or spreadsheet would interpret instead of show. Newlines and tabs stay. Invalid UTF-8 comes as a RuneError.
func showable(r rune) rune {
	if spans.Hidden(r) && r != '\n' && r != '\t' {
		return utf8.RuneError
	}
	return r
}

// appendValue appends the value of an attribute: a number in the unit of s, a list as a text separated by spaces.
func appendValue(dst []byte, v pcommon.Value, s scale) []byte {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return appendInt(dst, v.Int(), s)
	case pcommon.ValueTypeDouble:
		return appendFloat(dst, v.Double(), s)
	case pcommon.ValueTypeBool:
		return strconv.AppendBool(dst, v.Bool())
	case pcommon.ValueTypeStr:
		return appendText(dst, v.Str())
	case pcommon.ValueTypeSlice:
		var list []string
		for _, e := range v.Slice().All() {
			list = append(list, e.AsString())
		}
		return appendText(dst, strings.Join(list, " "))
	case pcommon.ValueTypeEmpty, pcommon.ValueTypeMap, pcommon.ValueTypeBytes:
	}
	return dst
}

// appendNumber appends the value of a column of numbers. Spans have a NaN or infinite loss as a text.
func appendNumber(dst []byte, v pcommon.Value, s scale) []byte {
	if v.Type() != pcommon.ValueTypeStr {
		return appendValue(dst, v, s)
	}
	x, err := strconv.ParseFloat(v.Str(), 64)
	if err != nil && !math.IsInf(x, 0) {
		return appendText(dst, v.Str())
	}
	return appendFloat(dst, x, s)
}
