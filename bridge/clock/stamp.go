package clock

import (
	"errors"
	"time"
)

// ErrStamp says that a text is no date and time.
var ErrStamp = errors.New("not a time stamp")

// Stamps reads the stamps of one log. It remembers the last minute, because finding a zone's offset is the costly part.
// It is not safe for concurrent use.
type Stamps struct{ local, utc minutes }

// minutes reads the minutes of one zone.
type minutes struct {
	loc  *time.Location
	text [16]byte // "2026-02-11 16:40"
	unix int64    // its Unix time, ns
}

// NewStamps reads stamps without a zone as times in loc. An hour that happens twice, or never, when clocks change is read as Go's time.Date reads it: the text
// cannot tell. Such a log is right to the hour only where it carries a zone.
func NewStamps(loc *time.Location) *Stamps {
	return &Stamps{minutes{loc: loc}, minutes{loc: time.UTC}}
}

// Parse reads "2026-02-11 16:40:00" with a blank or T between, an optional fraction after "." or "," (digits beyond nanoseconds
// are dropped) and an optional zone (Z, +08:00, +0800), and returns Unix nanoseconds. Years 1970 to 2261.
func (s *Stamps) Parse(b []byte) (int64, error) {
	if len(b) < 19 {
		return 0, ErrStamp
	}
	sec := int64(b[17]-'0')*10 + int64(b[18]-'0')
	if b[16] != ':' || b[17]-'0' > 5 || b[18]-'0' > 9 {
		return 0, ErrStamp
	}
	frac, zone, ok := fraction(b[19:])
	if !ok {
		return 0, ErrStamp
	}
	if len(zone) > 0 {
		offset, ok := zoneSeconds(zone)
		if !ok {
			return 0, ErrStamp
		}
		minute, err := s.utc.parse(b)
		return since1970(minute+(sec-offset)*1e9+frac, err)
	}
	minute, err := s.local.parse(b)
	return since1970(minute+sec*1e9+frac, err)
}

// since1970 refuses a time that is in 1970 in its own zone but before 1970 in UTC.
func since1970(ns int64, err error) (int64, error) {
	if err == nil && ns < 0 {
		return 0, ErrStamp
	}
	return ns, err
}

// parse reads the minute that b begins with.
func (m *minutes) parse(b []byte) (int64, error) {
	if string(b[:16]) != string(m.text[:]) {
		unix, err := parseMinute(b, m.loc)
		if err != nil {
			return 0, err
		}
		m.unix = unix
		copy(m.text[:], b)
	}
	return m.unix, nil
}

// fraction reads the text behind the seconds, up to the zone.
func fraction(b []byte) (ns int64, zone []byte, ok bool) {
	if len(b) == 0 || b[0] != '.' && b[0] != ',' {
		return 0, b, true
	}
	b = b[1:]
	n, scale := 0, int64(1e8)
	for n < len(b) && b[n]-'0' <= 9 {
		ns += int64(b[n]-'0') * scale
		scale /= 10
		n++
	}
	return ns, b[n:], n > 0
}

func zoneSeconds(z []byte) (int64, bool) {
	if len(z) == 1 && z[0] == 'Z' {
		return 0, true
	}
	if len(z) == 6 && z[3] == ':' {
		z = []byte{z[0], z[1], z[2], z[4], z[5]}
	}
	if len(z) != 5 || z[0] != '+' && z[0] != '-' || z[1]-'0' > 2 || z[2]-'0' > 9 || z[3]-'0' > 5 || z[4]-'0' > 9 {
		return 0, false
	}
	hours := int64(z[1]-'0')*10 + int64(z[2]-'0')
	if hours > 23 {
		return 0, false
	}
	sec := hours*3600 + (int64(z[3]-'0')*10+int64(z[4]-'0'))*60
	if z[0] == '-' {
		sec = -sec
	}
	return sec, true
}

func parseMinute(b []byte, loc *time.Location) (int64, error) {
	if b[4] != '-' || b[7] != '-' || b[10] != ' ' && b[10] != 'T' || b[13] != ':' {
		return 0, ErrStamp
	}
	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15} {
		if b[i]-'0' > 9 {
			return 0, ErrStamp
		}
	}
	two := func(i int) int { return int(b[i]-'0')*10 + int(b[i+1]-'0') }
	year, month, day, hour, minute := two(0)*100+two(2), two(5), two(8), two(11), two(14)
	// 2262 is where int64 nanoseconds end.
	if year < 1970 || year > 2261 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 {
		return 0, ErrStamp
	}
	t := time.Date(year, time.Month(month), day, hour, minute, 0, 0, loc)
	if time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC).Day() != day { // 31 February
		return 0, ErrStamp
	}
	return t.UnixNano(), nil
}
