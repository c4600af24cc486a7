package logfile

import (
	"strconv"
	"time"
)

// AppendSeconds prints µs as seconds with six decimals.
func AppendSeconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1e6, 10)
	b = append(b, '.')
	return AppendPadded(b, us%1e6, 6)
}

// AppendPadded prints v with so many digits, at most six, zeros in front.
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
