package logfile

import (
	"bytes"
	"math"
	"strconv"
	"time"
)

// AppendSeconds prints µs as seconds with six decimals.
func AppendSeconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1e6, 10)
	b = append(b, '.')
	return AppendPadded(b, us%1e6, 6)
}

// AppendPadded prints v zero-padded to a number of digits, six or fewer.
func AppendPadded(b []byte, v int64, digits int) []byte {
	start := len(b)
	b = append(b, "000000"[:digits]...)
	for i := start + digits - 1; i >= start; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// AppendHundredths prints hundredths with two decimals.
func AppendHundredths(b []byte, h int64) []byte {
	b = strconv.AppendInt(b, h/100, 10)
	b = append(b, '.')
	return AppendPadded(b, h%100, 2)
}

// Micros rounds as Python's %.6f does, but for ties.
func Micros(ns int64) int64 { return (ns + 500) / 1000 }

// Stamps prints logging's %(asctime)s ("2026-02-11 16:40:00,120"), formatting the date once a second.
type Stamps struct {
	Loc  *time.Location
	sec  int64
	text []byte
}

// Append prints a Unix time in ns.
func (c *Stamps) Append(b []byte, wall int64) []byte {
	sec, ms := wall/1e9, wall%1e9/1e6
	if sec != c.sec || len(c.text) == 0 {
		c.sec = sec
		c.text = time.Unix(sec, 0).In(c.Loc).AppendFormat(c.text[:0], "2006-01-02 15:04:05")
	}
	b = append(b, c.text...)
	b = append(b, ',')
	return AppendPadded(b, ms, 3)
}

// AppendSeconds prints "2026-02-11 16:40:00".
func (c *Stamps) AppendSeconds(b []byte, wall int64) []byte {
	return c.Append(b, wall)[:len(b)+len("2006-01-02 15:04:05")]
}

// AppendRepr prints a float as Python's repr: the shortest digits that read back as the same number, an exponent below 1e-4 and from 1e16 ("1e-05"),
// without one a point always ("3.0"), nan and inf.
func AppendRepr(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, NonFinite(v, "nan", "inf")...)
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	from := len(b)
	b = strconv.AppendFloat(b, v, 'f', -1, 64)
	if bytes.IndexByte(b[from:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

// NonFinite is the text of a non-finite float, in the given words for NaN and infinity.
func NonFinite(v float64, nan, inf string) string {
	switch {
	case math.IsNaN(v):
		return nan
	case v < 0:
		return "-" + inf
	}
	return inf
}
