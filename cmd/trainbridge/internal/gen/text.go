package gen

import (
	"strconv"
	"time"
)

// appendSeconds prints µs as seconds with six decimals.
func appendSeconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1e6, 10)
	b = append(b, '.')
	return appendPadded(b, us%1e6, 6)
}

func appendPadded(b []byte, v int64, digits int) []byte {
	start := len(b)
	b = append(b, "000000"[:digits]...)
	for i := start + digits - 1; i >= start; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
	return b
}

// stampCache prints logging's %(asctime)s ("2026-02-11 16:40:00,120"), formatting the date once a second.
type stampCache struct {
	loc  *time.Location
	sec  int64
	text []byte
}

func (c *stampCache) append(b []byte, wall int64) []byte {
	sec, ms := wall/1e9, wall%1e9/1e6
	if sec != c.sec || len(c.text) == 0 {
		c.sec = sec
		c.text = time.Unix(sec, 0).In(c.loc).AppendFormat(c.text[:0], "2006-01-02 15:04:05")
	}
	b = append(b, c.text...)
	b = append(b, ',')
	return appendPadded(b, ms, 3)
}

// appendSeconds prints "2026-02-11 16:40:00".
func (c *stampCache) appendSeconds(b []byte, wall int64) []byte {
	return c.append(b, wall)[:len(b)+len("2006-01-02 15:04:05")]
}
