package rpclog

import (
	"bytes"
	"strconv"

	"github.com/trainbridge/trainbridge/internal/ascii"
	"github.com/trainbridge/trainbridge/internal/decimal"
)

var pow10 = [19]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// decimal reads the plain number at the beginning of t[i:], such as "12.345": v is the number in 10^-c.digits, so 12345 for three digits. decimals is the
// number of printed decimals, c.digits at most: those beyond are cut off. end is the index behind the number, 0 where it is not plain or too large: odd reads
// those.
func (c *cell) decimal(t []byte, i int) (v uint64, decimals, end int) {
	from := i
	for i < len(t) && ascii.IsDigit(t[i]) {
		v = v*10 + uint64(t[i]-'0')
		i++
	}
	if n := i - from; n == 0 || n > 18 || v > c.limit { // 18 digits fit 64 bits
		return 0, 0, 0
	}
	if i < len(t) && t[i] == '.' {
		i++
		from = i
		for most := min(len(t), i+c.digits); i < most && ascii.IsDigit(t[i]); i++ {
			v = v*10 + uint64(t[i]-'0')
		}
		decimals = i - from
		for i < len(t) && ascii.IsDigit(t[i]) {
			i++
		}
		if i == from {
			return 0, 0, 0
		}
	}
	return v * pow10[c.digits-decimals], decimals, i
}

// odd reads any other number in the terms of decimal: with a sign, an exponent (pandas writes small numbers that way), without a digit before the point. reason
// is why a cell is no such number; "": it is one.
func (c *cell) odd(text []byte) (v uint64, decimals int, reason string) {
	fixed, err := decimal.Fixed9(text)
	switch {
	case err != nil || text[len(text)-1] == '.': // a truncated row ends like this
		return 0, 0, reasonNumber
	case fixed < 0:
		return 0, 0, reasonNegative
	}
	v = uint64(fixed)
	if v/pow10[9] > c.limit {
		return 0, 0, reasonNumber
	}
	return v / pow10[9-c.digits], max(min(printed(text), c.digits), -9), "" // within the range of pow10 for the last digit's value
}

// printed is the number of printed decimals, with the exponent: 2 for "1.25", 4 for "1.25e-2"; below 0: the last digit is worth more than 1, as in "1e3".
func printed(text []byte) int {
	exp := 0
	if e := bytes.IndexAny(text, "eE"); e >= 0 {
		exp, _ = strconv.Atoi(string(text[e+1:])) // checked by Fixed9
		text = text[:e]
	}
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		exp -= len(text) - point - 1
	}
	return -exp
}
